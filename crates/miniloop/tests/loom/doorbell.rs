//! Stands in for `src/doorbell.rs`: a bell that is watched edge-triggered, and that counts.

use crate::primitives::{Condvar, Mutex, lock, wait};

#[derive(Default)]
pub(crate) struct Doorbell {
    state: Mutex<State>,
    rung: Condvar,
}

#[derive(Default)]
struct State {
    edge: bool,
    rings: usize,
}

impl Doorbell {
    pub(crate) fn ring(&self) {
        let mut state = lock(&self.state);
        state.rings += 1;
        state.edge = true;
        self.rung.notify_one();
    }

    /// What the driver does: waits for an edge and takes it.
    pub(crate) fn wait(&self) {
        let mut state = lock(&self.state);
        while !state.edge {
            state = wait(&self.rung, state);
        }
        state.edge = false;
    }

    pub(crate) fn rings(&self) -> usize {
        lock(&self.state).rings
    }
}
