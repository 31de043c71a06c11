//! What is in a queue, and in which order it leaves: all that the three kinds of [`Queue`](super::Queue) differ in.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// Changing it may run the `Ord` of the items, which is foreign code and may panic. What is in here then is counted by [`Items::len`].
pub(super) enum Items<T> {
    FirstInFirstOut(VecDeque<T>),
    LastInFirstOut(Vec<T>),
    SmallestFirst { heap: BinaryHeap<Ranked<T>>, next_sequence: u64, compare: Compare<T> },
}

/// `Ord` of items for which the queue was made, so that the type of a queue says nothing about its order.
type Compare<T> = fn(&T, &T) -> Ordering;

impl<T> Items<T> {
    pub(super) fn smallest_first(compare: Compare<T>) -> Self {
        Items::SmallestFirst { heap: BinaryHeap::new(), next_sequence: 0, compare }
    }

    pub(super) fn push(&mut self, item: T) {
        match self {
            Items::FirstInFirstOut(items) => items.push_back(item),
            Items::LastInFirstOut(items) => items.push(item),
            Items::SmallestFirst { heap, next_sequence, compare } => {
                let sequence = *next_sequence;
                *next_sequence += 1;
                heap.push(Ranked { item, sequence, compare: *compare });
            }
        }
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        match self {
            Items::FirstInFirstOut(items) => items.pop_front(),
            Items::LastInFirstOut(items) => items.pop(),
            Items::SmallestFirst { heap, .. } => heap.pop().map(|ranked| ranked.item),
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Items::FirstInFirstOut(items) => items.len(),
            Items::LastInFirstOut(items) => items.len(),
            Items::SmallestFirst { heap, .. } => heap.len(),
        }
    }

    /// Leaves nothing.
    pub(super) fn take(&mut self) -> Self {
        let empty = match self {
            Items::FirstInFirstOut(_) => Items::FirstInFirstOut(VecDeque::new()),
            Items::LastInFirstOut(_) => Items::LastInFirstOut(Vec::new()),
            Items::SmallestFirst { compare, .. } => Items::smallest_first(*compare),
        };
        std::mem::replace(self, empty)
    }
}

pub(super) struct Ranked<T> {
    item: T,
    /// Of equal items that which came first leaves first.
    sequence: u64,
    compare: Compare<T>,
}

impl<T> Ord for Ranked<T> {
    /// The other way round: the heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (self.compare)(&other.item, &self.item).then(other.sequence.cmp(&self.sequence))
    }
}

impl<T> PartialOrd for Ranked<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Ranked<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Ranked<T> {}
