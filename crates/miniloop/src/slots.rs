//! A table of values, each addressed by its index and a generation.
//!
//! The generation makes an old key harmless: once a value is removed, its key finds nothing, also when the place holds another value by
//! now. A place whose generations are used up is retired instead of starting over, so a key is never valid twice in the life of the table.
//! Insert, look up and remove cost a few nanoseconds each; freed places are reused newest first, while they are still in the cache.

/// How many bits of a key's number hold the index: 67 million values at a time.
pub(crate) const INDEX_BITS: u32 = 26;
/// How many bits hold the generation: 67 million uses of one place.
pub(crate) const GENERATION_BITS: u32 = 26;

const INDEX_MAX: u32 = (1 << INDEX_BITS) - 1;
const GENERATION_MAX: u32 = (1 << GENERATION_BITS) - 1;
const NO_PLACE: u32 = u32::MAX;

/// The address of a value in a [`Slots`] table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// A table whose keys go stale when their value is removed.
pub(crate) struct Slots<T> {
    places: Vec<Place<T>>,
    /// The generation of the first value in a place.
    first_generation: u32,
    /// The head of the list of vacant places that may be reused.
    vacant: u32,
    len: usize,
}

struct Place<T> {
    /// The generation of the value that is here, or of the next one.
    generation: u32,
    content: Content<T>,
}

enum Content<T> {
    Value(T),
    Vacant { next: u32 },
}

impl<T> Slots<T> {
    pub(crate) const fn new() -> Slots<T> {
        Slots::starting_at(0)
    }

    /// A table whose generations start somewhere else than at 0, so that its keys are not those of another table. At most at half of them:
    /// a place that is retired early leaks.
    pub(crate) const fn starting_at(first_generation: u32) -> Slots<T> {
        assert!(first_generation <= GENERATION_MAX / 2);
        Slots { places: Vec::new(), first_generation, vacant: NO_PLACE, len: 0 }
    }

    pub(crate) fn insert(&mut self, value: T) -> Key {
        self.insert_with(|_| value)
    }

    /// Puts in the value that `make` makes of its key.
    ///
    /// # Panics
    /// With 67 million values in the table.
    pub(crate) fn insert_with(&mut self, make: impl FnOnce(Key) -> T) -> Key {
        let index = if self.vacant == NO_PLACE { self.places.len() as u32 } else { self.vacant };
        assert!(index <= INDEX_MAX, "a loop holds at most {INDEX_MAX} tasks, timers and callbacks at a time");
        match self.places.get_mut(index as usize) {
            Some(place) => {
                let key = Key { index, generation: place.generation };
                if let Content::Vacant { next } = std::mem::replace(&mut place.content, Content::Value(make(key))) {
                    self.vacant = next;
                }
                self.len += 1;
                key
            }
            None => {
                let key = Key { index, generation: self.first_generation };
                self.places.push(Place { generation: key.generation, content: Content::Value(make(key)) });
                self.len += 1;
                key
            }
        }
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        match self.places.get(key.index as usize) {
            Some(Place { generation, content: Content::Value(value) }) if *generation == key.generation => Some(value),
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        match self.places.get_mut(key.index as usize) {
            Some(Place { generation, content: Content::Value(value) }) if *generation == key.generation => Some(value),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        self.get(key)?;
        let place = &mut self.places[key.index as usize];
        let content = if place.generation == GENERATION_MAX {
            Content::Vacant { next: NO_PLACE }
        } else {
            place.generation += 1;
            Content::Vacant { next: std::mem::replace(&mut self.vacant, key.index) }
        };
        self.len -= 1;
        match std::mem::replace(&mut place.content, content) {
            Content::Value(value) => Some(value),
            Content::Vacant { .. } => None,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The live values with their keys, in order of their places: not an order that anybody may observe.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.places.iter().zip(0..).filter_map(|(place, index)| match &place.content {
            Content::Value(value) => Some((Key { index, generation: place.generation }, value)),
            Content::Vacant { .. } => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_finds_its_value_until_it_is_removed() {
        let mut slots = Slots::new();
        let a = slots.insert("a");
        let b = slots.insert("b");
        assert_eq!((slots.get(a), slots.get(b), slots.len()), (Some(&"a"), Some(&"b"), 2));
        assert_eq!(slots.remove(a), Some("a"));
        assert_eq!(slots.remove(a), None);
        assert_eq!((slots.get(a), slots.len()), (None, 1));
    }

    #[test]
    fn a_stale_key_does_not_find_the_next_value_in_its_place() {
        let mut slots = Slots::new();
        let old = slots.insert(1);
        slots.remove(old);
        let new = slots.insert(2);
        assert_eq!(old.index, new.index);
        assert_eq!(slots.get_mut(old), None);
        assert_eq!(slots.get(new), Some(&2));
    }

    #[test]
    fn a_place_is_retired_when_its_generations_are_used_up() {
        let mut slots = Slots::new();
        let first = slots.insert(());
        slots.places[first.index as usize].generation = GENERATION_MAX;
        let last = Key { index: first.index, generation: GENERATION_MAX };
        assert_eq!(slots.remove(last), Some(()));
        assert_ne!(slots.insert(()).index, first.index);
        assert_eq!(slots.get(last), None);
    }

    #[test]
    fn a_key_that_was_never_given_finds_nothing() {
        let mut slots = Slots::new();
        slots.insert(());
        assert_eq!(slots.get(Key { index: INDEX_MAX, generation: 0 }), None);
        assert_eq!(slots.remove(Key { index: 0, generation: 7 }), None);
    }
}
