//! The timer queue: words in order of (deadline, sequence).
//!
//! Most timers are cancelled before they fire, so that is the case made cheap: cancelling only counts, and once more than half of the
//! entries are dead the heap is rebuilt without them. The queue does not know which word is alive; its owner, who does, passes the
//! question in. Arming costs a push at the end of a binary heap (a timer usually fires later than those before it), cancelling an
//! addition. Next: `core.rs`, which arms and cancels; `turn.rs`, which takes what is due.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::config::TIMERS_PURGED_FROM_LEN;
use crate::engine::word::Word;
use crate::instant::Instant;
use crate::mutant::{Mutant, is_broken};

#[derive(Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Timer>,
    /// How many entries of the heap have been cancelled since they were armed.
    dead_len: usize,
    /// Breaks ties of equal deadlines: they fire in the order in which they were armed.
    next_sequence: u64,
}

struct Timer {
    deadline: Instant,
    sequence: u64,
    word: Word,
}

impl Timers {
    pub(crate) fn arm(&mut self, deadline: Instant, word: Word) {
        let sequence = if is_broken(Mutant::EqualDeadlinesNewestFirst) { u64::MAX - self.next_sequence } else { self.next_sequence };
        self.heap.push(Timer { deadline, sequence, word });
        self.next_sequence += 1;
    }

    /// Takes note that the word of one entry has died, and drops all dead entries when they are the majority.
    pub(crate) fn cancelled(&mut self, is_alive: impl Fn(Word) -> bool) {
        self.dead_len += 1;
        if self.heap.len() >= TIMERS_PURGED_FROM_LEN && self.dead_len > self.heap.len() / 2 {
            self.heap.retain(|timer| is_alive(timer.word));
            self.dead_len = 0;
        }
    }

    /// How many entries are alive.
    pub(crate) fn live_len(&self) -> usize {
        self.heap.len() - self.dead_len
    }

    /// The earliest deadline of a live entry. Dead ones before it are dropped: they must not wake the loop.
    pub(crate) fn earliest(&mut self, is_alive: impl Fn(Word) -> bool) -> Option<Instant> {
        while let Some(timer) = self.heap.peek() {
            if is_alive(timer.word) {
                return Some(timer.deadline);
            }
            self.heap.pop();
            self.dead_len -= 1;
        }
        None
    }

    /// Takes the next live word whose deadline is not after `now`.
    pub(crate) fn pop_due(&mut self, now: Instant, is_alive: impl Fn(Word) -> bool) -> Option<Word> {
        let deadline = self.earliest(is_alive)?;
        if deadline > now {
            return None;
        }
        self.heap.pop().map(|timer| timer.word)
    }
}

impl Ord for Timer {
    /// The heap keeps its greatest entry on top, so the earliest must be the greatest.
    fn cmp(&self, other: &Timer) -> Ordering {
        (other.deadline, other.sequence).cmp(&(self.deadline, self.sequence))
    }
}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Timer) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Timer {
    fn eq(&self, other: &Timer) -> bool {
        self.sequence == other.sequence
    }
}

impl Eq for Timer {}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Arms one timer for each deadline; its word is its position.
    fn armed(deadlines: &[u64]) -> Timers {
        let mut timers = Timers::default();
        for (word, deadline) in deadlines.iter().enumerate() {
            timers.arm(Instant::from_nanos(*deadline), Word::from_u64(word as u64));
        }
        timers
    }

    fn due(timers: &mut Timers, now: u64, is_alive: impl Fn(Word) -> bool) -> Vec<u64> {
        std::iter::from_fn(|| timers.pop_due(Instant::from_nanos(now), &is_alive)).map(Word::as_u64).collect()
    }

    #[test]
    fn words_come_in_order_of_deadline_and_equal_deadlines_in_order_of_arming() {
        let mut timers = armed(&[5, 1, 5, 3, 5, 1]);
        assert_eq!(due(&mut timers, 4, |_| true), [1, 5, 3]);
        assert_eq!(due(&mut timers, 5, |_| true), [0, 2, 4]);
        assert!(timers.heap.is_empty());
    }

    #[test]
    fn a_dead_entry_is_neither_due_nor_the_earliest() {
        let mut timers = armed(&[1, 2, 3]);
        timers.cancelled(|word| word.as_u64() != 0);
        assert_eq!(timers.earliest(|word| word.as_u64() != 0), Some(Instant::from_nanos(2)));
        assert_eq!(due(&mut timers, 9, |word| word.as_u64() != 0), [1, 2]);
        assert_eq!(timers.dead_len, 0);
    }

    #[test]
    fn the_heap_is_rebuilt_when_more_than_half_is_dead_c019() {
        let mut timers = armed(&[7; TIMERS_PURGED_FROM_LEN]);
        let dead = RefCell::new(Vec::new());
        for word in 0..=TIMERS_PURGED_FROM_LEN / 2 {
            dead.borrow_mut().push(word as u64);
            timers.cancelled(|word| !dead.borrow().contains(&word.as_u64()));
        }
        assert_eq!(timers.heap.len(), TIMERS_PURGED_FROM_LEN / 2 - 1);
    }
}
