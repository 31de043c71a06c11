//! What a loop does now, for another thread to read while the loop cannot answer.
//!
//! ```text
//!   beat   0        1         2        3
//!          idle ->  job runs  idle ->  job runs       odd: something runs, and its place, task and turn belong to this beat
//! ```
//!
//! The loop writes a few words per job, only while a watchdog is attached, and never waits. A reader that finds the same odd beat before
//! and after it has read the words has read those of one job: the writer makes the beat even before it touches them. Each store is a plain
//! one on x86. This file is listed for `unsafe`: a place travels as the address of a static.

use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};

#[derive(Default)]
pub(crate) struct Pulse {
    beat: AtomicU64,
    /// Null, or the address of a place: every one that is stored lives as long as the program.
    place: AtomicPtr<Location<'static>>,
    /// One more than the number of the task, 0 for a callback.
    task: AtomicU64,
    turn: AtomicU64,
    /// How many watchdogs read it. The loop stops writing when there are none.
    pub(crate) readers: AtomicUsize,
}

/// One job that runs.
#[derive(Clone, Copy)]
pub(crate) struct Beat {
    /// Different for each job.
    pub(crate) beat: u64,
    pub(crate) place: &'static Location<'static>,
    pub(crate) task: Option<u64>,
    pub(crate) turn: u64,
}

impl Pulse {
    /// A job begins. Only the loop's thread calls this and [`Pulse::end`].
    pub(crate) fn begin(&self, place: &'static Location<'static>, task: Option<u64>, turn: u64) {
        self.end();
        // Whoever sees one of the stores below sees the even beat, too.
        fence(Ordering::Release);
        self.place.store(ptr::from_ref(place).cast_mut(), Ordering::Relaxed);
        self.task.store(task.map_or(0, |number| number.wrapping_add(1)), Ordering::Relaxed);
        self.turn.store(turn, Ordering::Relaxed);
        self.beat.store(self.beat.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Nothing runs.
    pub(crate) fn end(&self) {
        let beat = self.beat.load(Ordering::Relaxed);
        if !beat.is_multiple_of(2) {
            self.beat.store(beat + 1, Ordering::Release);
        }
    }

    /// The job that runs, for any thread; `None` between jobs.
    pub(crate) fn read(&self) -> Option<Beat> {
        let beat = self.beat.load(Ordering::Acquire);
        let place = self.place.load(Ordering::Relaxed);
        let task = self.task.load(Ordering::Relaxed).checked_sub(1);
        let turn = self.turn.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        if beat.is_multiple_of(2) || self.beat.load(Ordering::Relaxed) != beat {
            return None;
        }
        // SAFETY: only `begin` stores here, addresses of `Location`s that are borrowed for `'static`, which are shared and never written.
        let place = unsafe { place.as_ref() }?;
        Some(Beat { beat, place, task, turn })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_the_job_that_runs_and_nothing_in_between() {
        let pulse = Pulse::default();
        assert!(pulse.read().is_none());
        let here = Location::caller();
        pulse.begin(here, Some(4), 9);
        let first = pulse.read().unwrap();
        assert_eq!((first.place, first.task, first.turn), (here, Some(4), 9));
        // One that never ended, because somebody attached while it ran.
        pulse.begin(here, None, 9);
        let second = pulse.read().unwrap();
        assert_eq!((second.task, second.beat != first.beat), (None, true));
        pulse.end();
        pulse.end();
        assert!(pulse.read().is_none());
    }

    #[test]
    fn what_another_thread_reads_belongs_to_one_job() {
        let pulse = Pulse::default();
        let is_over = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while is_over.load(Ordering::Relaxed) == 0 {
                    if let Some(beat) = pulse.read() {
                        // The numbers of one job are the same.
                        assert_eq!(beat.task, Some(beat.turn));
                    }
                }
            });
            for number in 0..20_000 {
                pulse.begin(Location::caller(), Some(number), number);
                if number.is_multiple_of(3) {
                    pulse.end();
                }
            }
            is_over.store(1, Ordering::Relaxed);
        });
    }
}
