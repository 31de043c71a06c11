//! In which order things leave a queue. The only thing that the three kinds of [`Queue`](super::Queue) differ in.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// What is in a queue. `push` and `pop` may run the `Ord` of the items, which is foreign code and may panic.
pub(super) trait Order<T> {
    fn push(&mut self, item: T);
    fn pop(&mut self) -> Option<T>;
    fn len(&self) -> usize;
    /// Another one of the kind, empty.
    fn empty(&self) -> Box<dyn Order<T>>;
}

/// First in, first out.
impl<T: 'static> Order<T> for VecDeque<T> {
    fn push(&mut self, item: T) {
        self.push_back(item);
    }

    fn pop(&mut self) -> Option<T> {
        self.pop_front()
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn empty(&self) -> Box<dyn Order<T>> {
        Box::new(VecDeque::new())
    }
}

/// Last in, first out.
impl<T: 'static> Order<T> for Vec<T> {
    fn push(&mut self, item: T) {
        self.push(item);
    }

    fn pop(&mut self) -> Option<T> {
        self.pop()
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn empty(&self) -> Box<dyn Order<T>> {
        Box::new(Vec::new())
    }
}

/// The smallest first; of equal ones that which came first.
pub(super) struct SmallestFirst<T> {
    heap: BinaryHeap<Ranked<T>>,
    next_sequence: u64,
}

impl<T: Ord> SmallestFirst<T> {
    pub(super) fn new() -> Self {
        Self { heap: BinaryHeap::new(), next_sequence: 0 }
    }
}

impl<T: Ord + 'static> Order<T> for SmallestFirst<T> {
    fn push(&mut self, item: T) {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.heap.push(Ranked { item, sequence });
    }

    fn pop(&mut self) -> Option<T> {
        self.heap.pop().map(|ranked| ranked.item)
    }

    fn len(&self) -> usize {
        self.heap.len()
    }

    fn empty(&self) -> Box<dyn Order<T>> {
        Box::new(SmallestFirst::new())
    }
}

struct Ranked<T> {
    item: T,
    sequence: u64,
}

impl<T: Ord> Ord for Ranked<T> {
    /// The other way round: the heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.item.cmp(&self.item).then(other.sequence.cmp(&self.sequence))
    }
}

impl<T: Ord> PartialOrd for Ranked<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> PartialEq for Ranked<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T: Ord> Eq for Ranked<T> {}
