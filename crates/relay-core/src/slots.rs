//! A table of values, each addressed by its index and a generation.
//!
//! The generation makes an old key harmless: once a value is removed, its key finds nothing, also when another value has its place by now.
//! Insert, look up and remove cost a few nanoseconds each. Knows nothing of what it holds. Next: `once_queue.rs`.

use alloc::vec::Vec;

/// A table whose keys go stale when their value is removed.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    places: Vec<Place<T>>,
    /// The places without a value, reused newest first, while they are still in the cache.
    vacant: Vec<u32>,
}

/// The address of a value in a [`Slots`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) index: u32,
    /// Wraps after four thousand million uses of one place, which no key outlives.
    generation: u32,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slots<T> {
    pub(crate) const fn new() -> Slots<T> {
        Slots { places: Vec::new(), vacant: Vec::new() }
    }

    pub(crate) fn insert(&mut self, value: T) -> Key {
        if let Some(index) = self.vacant.pop() {
            let place = &mut self.places[index as usize];
            place.value = Some(value);
            return Key { index, generation: place.generation };
        }
        self.places.push(Place { generation: 0, value: Some(value) });
        Key { index: self.places.len() as u32 - 1, generation: 0 }
    }

    #[inline]
    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        let place = self.places.get(key.index as usize)?;
        if place.generation == key.generation { place.value.as_ref() } else { None }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let place = self.places.get_mut(key.index as usize)?;
        if place.generation == key.generation { place.value.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        self.get(key)?;
        let place = &mut self.places[key.index as usize];
        place.generation = place.generation.wrapping_add(1);
        self.vacant.push(key.index);
        place.value.take()
    }

    /// The key of what is now at `index`.
    pub(crate) fn key_at(&self, index: u32) -> Option<Key> {
        let place = self.places.get(index as usize)?;
        place.value.as_ref()?;
        Some(Key { index, generation: place.generation })
    }

    /// The keys of all values, in the order of their places.
    pub(crate) fn keys(&self) -> Vec<Key> {
        (0..self.places.len() as u32).filter_map(|index| self.key_at(index)).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.vacant.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_finds_its_value_until_it_is_removed() {
        let mut slots = Slots::new();
        let (a, b) = (slots.insert("a"), slots.insert("b"));
        assert_eq!((slots.get(a), slots.get(b), slots.len()), (Some(&"a"), Some(&"b"), 2));
        assert_eq!(slots.remove(a), Some("a"));
        assert_eq!((slots.remove(a), slots.get(a), slots.len()), (None, None, 1));
        assert_eq!(slots.keys(), [b]);
    }

    #[test]
    fn a_stale_key_does_not_find_the_next_value_in_its_place() {
        let mut slots = Slots::new();
        let old = slots.insert(1);
        slots.remove(old);
        let new = slots.insert(2);
        assert_eq!(old.index, new.index);
        assert_eq!(slots.get_mut(old), None);
        assert_eq!((slots.get(new), slots.key_at(old.index)), (Some(&2), Some(new)));
    }
}
