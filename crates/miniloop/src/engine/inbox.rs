//! What other threads want of a loop: wakes and calls, in the order in which they came (O6).
//!
//! The loop knows nothing of the threads and the threads know of the loop only this. Its work is to let a loop sleep without losing a
//! message and without paying for messages while it is awake:
//!
//! ```text
//!            fall_asleep, no mail (the loop)
//!   Awake --------------------------------------> Asleep
//!     ^                                              |
//!     +---- wake_up (the loop), push: rings ---------+         close (the loop) leads from both to Closed, and nothing leads out
//! ```
//!
//! `Asleep` means "and the inbox is empty": a loop falls asleep only after it has looked, under the lock, and the first message of a sleep
//! rings and ends it. So there is one eventfd write per sleep at most and none while the loop is awake. A push costs the lock; the loop's
//! question at each round, [`has_mail`](Inbox::has_mail), costs one plain load.
//!
//! Messages own user values, and a user's destructor may do anything, push again for instance. So no message is ever dropped in here: each
//! one goes to its loop or back to its sender. `tests/loom.rs` proves these claims on this very file. Next: `registry.rs`, which finds the
//! inbox of a loop by its id.

use std::collections::VecDeque;
use std::panic::Location;

use crate::doorbell::Doorbell;
use crate::engine::word::Word;
use crate::outcome::Flow;
use crate::primitives::{AtomicBool, Mutex, Ordering, lock};

/// The mailbox of one loop, shared with every thread that may want something of it.
pub(crate) struct Inbox {
    doorbell: Doorbell,
    /// Whether there are messages, readable without the lock. Written under it.
    mail: AtomicBool,
    state: Mutex<State>,
}

/// One thing that another thread wants.
pub(crate) enum Message {
    /// Make this job ready.
    Wake(Word),
    /// Run this on the loop's thread.
    Call {
        job: Box<dyn FnOnce() -> Flow + Send>,
        /// Where it was asked for.
        place: &'static Location<'static>,
    },
}

struct State {
    messages: VecDeque<Message>,
    presence: Presence,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Awake,
    Asleep,
    Closed,
}

impl Inbox {
    /// The inbox of a loop that does not run yet, and so is asleep.
    pub(crate) fn new(doorbell: Doorbell) -> Inbox {
        let state = State { messages: VecDeque::new(), presence: Presence::Asleep };
        Inbox { doorbell, mail: AtomicBool::new(false), state: Mutex::new(state) }
    }

    pub(crate) fn doorbell(&self) -> &Doorbell {
        &self.doorbell
    }

    /// Adds a message, and wakes the loop if it sleeps. For any thread. A wake that repeats the newest message is already there.
    ///
    /// # Errors
    /// The loop is closed. The message comes back, so that its sender drops it, outside the lock.
    pub(crate) fn push(&self, message: Message) -> Result<(), Message> {
        let must_ring = {
            let mut state = lock(&self.state);
            if state.presence == Presence::Closed {
                return Err(message);
            }
            if message.repeats(state.messages.back()) {
                return Ok(());
            }
            state.messages.push_back(message);
            self.mail.store(true, Ordering::Relaxed);
            std::mem::replace(&mut state.presence, Presence::Awake) == Presence::Asleep
        };
        // Outside the lock, so that the woken loop does not run into it. If the loop has woken by itself meanwhile, this ring cuts its next
        // sleep short: it costs one poll.
        if must_ring {
            self.doorbell.ring();
        }
        Ok(())
    }

    /// Whether there is something to drain. For the loop while it is awake: a message that is missed here is found when the loop falls
    /// asleep.
    pub(crate) fn has_mail(&self) -> bool {
        // Relaxed: what follows from "yes" is taken under the lock.
        self.mail.load(Ordering::Relaxed)
    }

    /// How many messages there are.
    pub(crate) fn len(&self) -> usize {
        lock(&self.state).messages.len()
    }

    /// Moves the oldest messages to the end of `into`, in their order and at most `count_max` of them. The others are still mail.
    pub(crate) fn drain(&self, into: &mut Vec<Message>, count_max: usize) {
        let mut state = lock(&self.state);
        let count = state.messages.len().min(count_max);
        into.extend(state.messages.drain(..count));
        self.mail.store(!state.messages.is_empty(), Ordering::Relaxed);
    }

    /// The last step before the loop waits or leaves `run_*`. False: there is mail, so it is still awake and must drain first.
    #[must_use = "a loop that sleeps with mail in its inbox may never wake"]
    pub(crate) fn fall_asleep(&self) -> bool {
        let mut state = lock(&self.state);
        if !state.messages.is_empty() {
            return false;
        }
        if state.presence != Presence::Closed {
            state.presence = Presence::Asleep;
        }
        true
    }

    /// The first step after waiting, and on entering `run_*`: from now on the loop looks by itself, nobody needs to ring.
    pub(crate) fn wake_up(&self) {
        let mut state = lock(&self.state);
        if state.presence != Presence::Closed {
            state.presence = Presence::Awake;
        }
    }

    /// Refuses all messages from now on and gives what is left to the loop, to be dropped. Empty when it was closed before.
    #[must_use = "the messages own user values, to be dropped with care"]
    pub(crate) fn close(&self) -> VecDeque<Message> {
        let mut state = lock(&self.state);
        state.presence = Presence::Closed;
        self.mail.store(false, Ordering::Relaxed);
        std::mem::take(&mut state.messages)
    }
}

impl Message {
    fn repeats(&self, newest: Option<&Message>) -> bool {
        matches!((self, newest), (Message::Wake(word), Some(Message::Wake(newest))) if word == newest)
    }
}
