//! The number that stands for a job: loop id, generation and index in one 64-bit word.
//!
//! Wakers, queue entries, timers and messages between threads carry this word and nothing else. Copying it costs nothing, nobody owns
//! anything by holding it, and one that has gone stale finds nothing when it is looked up.

use crate::slots::{GENERATION_BITS, INDEX_BITS, Key};

/// How many bits hold the loop's id: 4,096 loops at a time in one process.
pub(crate) const LOOP_BITS: u32 = 64 - INDEX_BITS - GENERATION_BITS;

/// The place of a loop in the process-wide registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LoopId(pub(crate) u16);

/// A job of a loop, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    /// A word that no job ever has.
    pub(crate) const STALE: Word = Word(u64::MAX);

    pub(crate) const fn new(loop_id: LoopId, key: Key) -> Word {
        Word((loop_id.0 as u64) << (INDEX_BITS + GENERATION_BITS) | (key.generation as u64) << INDEX_BITS | key.index as u64)
    }

    pub(crate) const fn from_u64(number: u64) -> Word {
        Word(number)
    }

    pub(crate) const fn as_u64(self) -> u64 {
        self.0
    }

    pub(crate) const fn loop_id(self) -> LoopId {
        LoopId((self.0 >> (INDEX_BITS + GENERATION_BITS)) as u16)
    }

    pub(crate) const fn key(self) -> Key {
        Key { index: (self.0 & ((1 << INDEX_BITS) - 1)) as u32, generation: ((self.0 >> INDEX_BITS) & ((1 << GENERATION_BITS) - 1)) as u32 }
    }
}

const _: () = assert!(size_of::<usize>() == 8, "a waker is one pointer wide and must hold a 64-bit word: miniloop needs a 64-bit target");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_gives_back_its_parts() {
        for (loop_id, generation, index) in [(0, 0, 0), (4095, (1 << 26) - 1, (1 << 26) - 1), (7, 1, (1 << 26) - 1), (1, 1 << 25, 3)] {
            let key = Key { index, generation };
            let word = Word::new(LoopId(loop_id), key);
            assert_eq!((word.loop_id(), word.key()), (LoopId(loop_id), key));
            assert_eq!(Word::from_u64(word.as_u64()), word);
        }
    }
}
