//! Every open loop of the process by its id, so that a waker, which is a number, finds its loop from any thread.
//!
//! A static table with one lock per id: two threads that wake two loops do not meet. Nothing here fails or panics on a number that means
//! nothing any more; a wake for a loop that is gone has nobody to reach. Ids are reused oldest first, so a stale number meets the next loop
//! with its id as late as possible, and even then the generation in it tells the two apart almost always. A wake costs two locks.

use std::collections::VecDeque;
use std::io;

use crate::engine::inbox::{Inbox, Message};
use crate::engine::word::{LOOP_BITS, LoopId, Word};
use crate::primitives::{Arc, Mutex, lock};

/// How many loops can be open at a time in one process.
const LOOPS_MAX: u16 = 1 << LOOP_BITS;

static TABLE: [Mutex<Option<Arc<Inbox>>>; LOOPS_MAX as usize] = [const { Mutex::new(None) }; LOOPS_MAX as usize];
static FREE_IDS: Mutex<FreeIds> = Mutex::new(FreeIds::new());

/// Gives a loop its id.
///
/// # Errors
/// When 4,096 loops are open.
pub(crate) fn register(inbox: Arc<Inbox>) -> io::Result<LoopId> {
    let id = lock(&FREE_IDS)
        .take()
        .ok_or_else(|| io::Error::other(format!("{LOOPS_MAX} event loops are open in this process, and no more fit: close some first")))?;
    *lock(&TABLE[id.0 as usize]) = Some(inbox);
    Ok(id)
}

/// Takes the id back: the loop cannot be reached any more, and another one may get its id. Once per [`register`].
pub(crate) fn unregister(id: LoopId) {
    *lock(&TABLE[id.0 as usize]) = None;
    lock(&FREE_IDS).give_back(id);
}

/// Wakes a job of a loop that does not run on this thread. Does nothing when the loop or the job is gone.
pub(crate) fn send_wake(word: Word) {
    let Some(place) = TABLE.get(word.loop_id().0 as usize) else {
        return;
    };
    // The inbox outlives the lock, which is not held while it rings: the loop may be closing and waiting for it.
    let inbox = lock(place).clone();
    if let Some(inbox) = inbox {
        // Refused means closed: as above, there is nobody to wake.
        let _ = inbox.push(Message::Wake(word));
    }
}

struct FreeIds {
    /// Ids from here on were never used.
    fresh: u16,
    /// Used and given back, oldest first.
    returned: VecDeque<LoopId>,
}

impl FreeIds {
    const fn new() -> FreeIds {
        FreeIds { fresh: 0, returned: VecDeque::new() }
    }

    fn take(&mut self) -> Option<LoopId> {
        if self.fresh == LOOPS_MAX {
            return self.returned.pop_front();
        }
        self.fresh += 1;
        Some(LoopId(self.fresh - 1))
    }

    fn give_back(&mut self, id: LoopId) {
        self.returned.push_back(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doorbell::Doorbell;
    use crate::slots::Key;

    fn word(id: LoopId) -> Word {
        Word::new(id, Key { index: 1, generation: 1 })
    }

    #[test]
    fn ids_are_reused_oldest_first_and_end_at_the_bound() {
        let mut ids = FreeIds::new();
        let all: Vec<u16> = std::iter::from_fn(|| ids.take()).map(|id| id.0).collect();
        assert!(all.iter().copied().eq(0..4_096));
        for id in [9, 3, 5] {
            ids.give_back(LoopId(id));
        }
        assert_eq!(std::iter::from_fn(|| ids.take()).map(|id| id.0).collect::<Vec<_>>(), [9, 3, 5]);
    }

    #[test]
    fn a_wake_reaches_its_loop_until_it_is_gone() {
        let inbox = Arc::new(Inbox::new(Doorbell::new().unwrap()));
        let id = register(Arc::clone(&inbox)).unwrap();
        send_wake(word(id));
        assert_eq!(inbox.close().len(), 1);
        send_wake(word(id));
        unregister(id);
        send_wake(word(id));
        assert_eq!((inbox.close().len(), Arc::strong_count(&inbox)), (0, 1));
    }

    #[test]
    fn a_wake_for_a_loop_that_never_was_is_nothing() {
        send_wake(word(LoopId(LOOPS_MAX - 1)));
        send_wake(Word::from_u64(u64::MAX));
    }
}
