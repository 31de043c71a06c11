//! A queue of places in a table, each at most once.
//!
//! It never grows beyond the table, whatever is put in and however often, and forgetting a place is not necessary: whoever takes one out
//! looks whether there is still something to do. Next: `deadlines.rs`.

use alloc::{collections::VecDeque, vec::Vec};

/// First in, first out; what is already in is not put in again.
#[derive(Debug, Default)]
pub(crate) struct OnceQueue {
    queue: VecDeque<u32>,
    queued: Vec<bool>,
}

impl OnceQueue {
    #[inline]
    pub(crate) fn push(&mut self, index: u32) {
        let place = index as usize;
        if place >= self.queued.len() {
            self.queued.resize(place + 1, false);
        }
        if !self.queued[place] {
            self.queued[place] = true;
            self.queue.push_back(index);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn pop(&mut self) -> Option<u32> {
        let index = self.queue.pop_front()?;
        self.queued[index as usize] = false;
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_comes_out_once_in_the_order_of_the_first_push() {
        let mut queue = OnceQueue::default();
        for index in [7, 3, 7, 3, 0] {
            queue.push(index);
        }
        assert_eq!([queue.pop(), queue.pop()], [Some(7), Some(3)]);
        queue.push(7);
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some(0), Some(7), None]);
    }
}
