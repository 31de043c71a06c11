//! A number of equal things, handed out in order: the semaphore under all that counts here.
//!
//! A [`Semaphore`](super::Semaphore) is this and a name; a mutex is one permit and a value, a channel as many as there are free places, a
//! queue two of them: places for those who put, items for those who get.
//!
//! Invariant: somebody in line asks for more than there is. So a newcomer gets permits only when nobody waits, and whatever ends a wait
//! (a permit that comes back, a big request that is cancelled) is followed by [`Permits::serve`].

use std::cell::Cell;

use super::line::{Line, Wakes};

pub(super) struct Permits {
    /// Neither taken nor given to anybody in line.
    available: Cell<usize>,
    line: Line<Granted, usize>,
}

/// What somebody in line is given: the permits that they asked for, or the news that there will be none.
pub(super) enum Granted {
    Permits,
    Closed,
}

impl Permits {
    pub(super) const fn new(available: usize) -> Self {
        Self { available: Cell::new(available), line: Line::new() }
    }

    pub(super) fn line(&self) -> &Line<Granted, usize> {
        &self.line
    }

    pub(super) fn available(&self) -> usize {
        self.available.get()
    }

    /// Takes `count` unless somebody waits: a newcomer overtakes nobody, not even one who waits for more than there is.
    pub(super) fn try_take(&self, count: usize) -> bool {
        let Some(rest) = self.available.get().checked_sub(count) else { return false };
        let is_free = self.line.is_empty();
        if is_free {
            self.available.set(rest);
        }
        is_free
    }

    /// Gives back `count`, or adds them. More than [`usize::MAX`] are as many as that.
    pub(super) fn release(&self, count: usize, wakes: &mut Wakes) {
        self.available.set(self.available.get().saturating_add(count));
        self.serve(wakes);
    }

    /// To be told when one who asked for `count` has left the line.
    pub(super) fn pass_on(&self, count: usize, granted: Option<Granted>) {
        let mut wakes = Wakes::default();
        match granted {
            Some(Granted::Permits) => self.release(count, &mut wakes),
            Some(Granted::Closed) => {}
            // It may have been the one for whom the others had to wait.
            None => self.serve(&mut wakes),
        }
        wakes.wake();
    }

    /// Everybody in line is told that there will be no more. To whoever comes later the owner says so.
    pub(super) fn close(&self, wakes: &mut Wakes) {
        self.line.grant_all(|| Granted::Closed, wakes);
    }

    fn serve(&self, wakes: &mut Wakes) {
        while let Some(count) = self.line.first()
            && let Some(rest) = self.available.get().checked_sub(count)
        {
            self.available.set(rest);
            self.line.grant_first(Granted::Permits, wakes);
        }
    }
}
