//! Wakers that are numbers, and where a wake goes.
//!
//! A `Waker` of this runtime holds a [`Word`] where others hold a pointer: cloning copies it, dropping it does nothing, and waking looks
//! the word up. So a waker is free to keep, may go stale at any time and outlive its loop, and costs no atomic operation on the loop's own
//! thread. Three ways lead to the queue: the loop that runs here, another loop that lives on this thread, and the inbox of a loop
//! elsewhere.

use std::task::{RawWaker, RawWakerVTable, Waker};

use crate::engine::context;
use crate::engine::registry;
use crate::engine::word::Word;

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake_data, wake_data, |_| ());

/// The waker of a job.
pub(crate) fn of(word: Word) -> Waker {
    // SAFETY: the functions of `VTABLE` treat the pointer as a number and never dereference it. They are safe to call from any thread, any
    // number of times, in any order, also after the job, its loop or its thread have gone; `clone` gives the same number and table.
    unsafe { Waker::new(data(word), &VTABLE) }
}

/// The job of a waker that [`of`] has made.
pub(crate) fn word_of(waker: &Waker) -> Word {
    Word::from_u64(waker.data().addr() as u64)
}

/// Makes a job of any loop ready, from any thread.
pub(crate) fn wake(word: Word) {
    let is_here = context::with_resident(word.loop_id(), |core| core.schedule(word));
    if is_here.is_none() {
        registry::send_wake(word);
    }
}

fn data(word: Word) -> *const () {
    std::ptr::without_provenance(word.as_u64() as usize)
}

fn clone(data: *const ()) -> RawWaker {
    RawWaker::new(data, &VTABLE)
}

fn wake_data(data: *const ()) {
    wake(Word::from_u64(data.addr() as u64));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::word::LoopId;
    use crate::slots::Key;

    #[test]
    fn a_waker_of_nothing_does_nothing() {
        let waker = of(Word::new(LoopId(4_095), Key { index: 1 << 20, generation: 9 }));
        assert!(waker.will_wake(&waker.clone()));
        waker.wake_by_ref();
        std::thread::scope(|scope| {
            scope.spawn(|| waker.wake());
        });
    }
}
