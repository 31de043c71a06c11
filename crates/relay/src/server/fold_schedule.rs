//! When the archive is due to work.
//!
//! ```text
//! at the start, and after a commit that took a log file    at once: the next file is made ahead of time
//! enough of the log is unfolded                            at once
//! the archive has a piece of work left                     at once, or after a rest while commits come
//! a commit has waited for FOLD_AGE to be folded            then
//! the archive said when                                    then
//! the disk was full                                        after ARCHIVE_RETRY, or when messages can be stored again
//! ```
//!
//! Nothing is due while nothing was committed and the archive wants nothing: an idle server has no timer.
//!
//! While commits come, folding gives way to them: its syncs and theirs wait for each other, and its time is theirs. So after each piece it
//! rests a multiple of what that took: long while little is unfolded, less and less on the way to a quarter of the bound, and from there on
//! not at all. A burst is committed at full speed, and folded behind it; a flood that goes on meets no step. Pure state, a few comparisons
//! per commit. Next: `metrics.rs`.

use std::time::Duration;

use relay_core::Nanos;

use crate::limits::{ARCHIVE_RETRY, FOLD_AGE, FOLD_REST_MAX};
use crate::storage::{Committed, FOLD_WINDOW_BYTES, Next, Worked};

#[derive(Debug)]
pub(super) struct FoldSchedule {
    /// So much unfolded log is worth folding.
    enough_bytes: u64,
    /// With so much of it folding does not rest.
    pressing_bytes: u64,
    /// The last commit, and the last one that is folded.
    committed: u64,
    folded: u64,
    unfolded_bytes: u64,
    /// Since when, at the latest, the first unfolded commit waits.
    waits_since: Option<Nanos>,
    /// Something was committed since work was last begun: only then it may find more to fold.
    has_grown: bool,
    /// Work is due however little is unfolded.
    is_wanted: bool,
    wanted_at: Option<Nanos>,
    /// Until then folding gives way to commits.
    rests_until: Option<Nanos>,
    retry_at: Option<Nanos>,
}

impl FoldSchedule {
    /// Everything up to commit `sequence` is folded. A log that may have few bytes unfolded is folded in smaller pieces.
    pub(super) fn new(sequence: u64, unfolded_bytes_max: u64) -> FoldSchedule {
        FoldSchedule {
            enough_bytes: (FOLD_WINDOW_BYTES as u64).min(unfolded_bytes_max / 4),
            pressing_bytes: unfolded_bytes_max / 4,
            committed: sequence,
            folded: sequence,
            unfolded_bytes: 0,
            waits_since: None,
            has_grown: false,
            is_wanted: true,
            wanted_at: None,
            rests_until: None,
            retry_at: None,
        }
    }

    /// True if work is due earlier than before.
    pub(super) fn committed(&mut self, now: Nanos, committed: Committed, unfolded_bytes: u64) -> bool {
        let was_due_at = self.due_at();
        self.committed = committed.sequence;
        self.unfolded_bytes = unfolded_bytes;
        self.waits_since.get_or_insert(now);
        self.has_grown = true;
        self.is_wanted |= committed.file_taken;
        self.due_at() != was_due_at
    }

    /// Work begins. Returns the commit up to which it may go.
    pub(super) fn begin(&mut self) -> u64 {
        self.has_grown = false;
        self.is_wanted = false;
        self.wanted_at = None;
        self.rests_until = None;
        self.retry_at = None;
        self.committed
    }

    /// A piece of work is done, in this time. Returns the last commit that is folded if that has moved.
    pub(super) fn worked(&mut self, now: Nanos, worked: &Worked, took: Duration, unfolded_bytes: u64) -> Option<u64> {
        let has_moved = worked.folded > self.folded;
        self.folded = self.folded.max(worked.folded);
        self.unfolded_bytes = unfolded_bytes;
        match worked.next {
            Next::Soon if self.has_grown && unfolded_bytes < self.pressing_bytes => self.rests_until = Some(now + self.rest_after(took)),
            Next::Now | Next::Soon => self.is_wanted = true,
            Next::In(wait) => self.wanted_at = Some(now + wait),
            Next::WhenCommitted => {}
        }
        if has_moved || !worked.next.goes_on() {
            self.waits_since = (self.folded < self.committed).then_some(now);
        }
        has_moved.then_some(self.folded)
    }

    /// The share of the time that folding takes goes from a fifth to all of it.
    fn rest_after(&self, took: Duration) -> Duration {
        let calm = 1.0 - self.unfolded_bytes as f64 / self.pressing_bytes as f64;
        took.mul_f64(FOLD_REST_MAX * calm.clamp(0.0, 1.0))
    }

    pub(super) fn disk_is_full(&mut self, now: Nanos) {
        self.retry_at = Some(now + ARCHIVE_RETRY);
    }

    /// The disk may have room again. True if work is due earlier than before.
    pub(super) fn disk_has_room(&mut self) -> bool {
        self.is_wanted |= self.retry_at.is_some();
        self.retry_at.take().is_some()
    }

    /// When work is due; a time that has passed means at once.
    pub(super) fn due_at(&self) -> Option<Nanos> {
        if self.retry_at.is_some() {
            return self.retry_at;
        }
        if self.is_wanted {
            return Some(Nanos(0));
        }
        if self.rests_until.is_some() {
            return self.rests_until;
        }
        if self.has_grown && self.unfolded_bytes >= self.enough_bytes {
            return Some(Nanos(0));
        }
        [self.waits_since.map(|since| since + FOLD_AGE), self.wanted_at].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_that_found_the_disk_full_is_tried_again_after_five_seconds() {
        let mut schedule = FoldSchedule::new(5, 1 << 30);
        schedule.begin();
        schedule.disk_is_full(Nanos(7));
        assert_eq!(schedule.due_at(), Some(Nanos(5_000_000_007)));
        assert!(schedule.disk_has_room());
        assert_eq!(schedule.due_at(), Some(Nanos(0)));
    }

    /// A piece of 10 ms is done with so much unfolded, and a commit has come meanwhile or has not: how long folding rests.
    #[track_caller]
    fn check_rest(unfolded_mib: u64, has_grown: bool, next: Next, expected: Duration) {
        let mut schedule = FoldSchedule::new(0, 1 << 30);
        schedule.begin();
        let unfolded_bytes = unfolded_mib << 20;
        if has_grown {
            schedule.committed(Nanos(1), Committed { sequence: 1, log_bytes: 4096, file_taken: false }, unfolded_bytes);
        }
        let (now, took) = (Nanos(5), Duration::from_millis(10));
        schedule.worked(now, &Worked { folded: 0, log_bytes: 0, next }, took, unfolded_bytes);
        assert_eq!(schedule.due_at().unwrap().since(now), expected, "{unfolded_mib} MiB, {next:?}");
    }

    #[test]
    fn folding_rests_while_commits_come_and_little_is_unfolded() {
        check_rest(0, true, Next::Soon, Duration::from_millis(40));
        check_rest(128, true, Next::Soon, Duration::from_millis(20));
        check_rest(192, true, Next::Soon, Duration::from_millis(10));
        check_rest(256, true, Next::Soon, Duration::ZERO);
        check_rest(1000, true, Next::Soon, Duration::ZERO);
        check_rest(0, false, Next::Soon, Duration::ZERO);
        check_rest(0, true, Next::Now, Duration::ZERO);
    }

    #[test]
    fn a_log_file_that_is_needed_ends_a_rest() {
        let mut schedule = FoldSchedule::new(0, 1 << 30);
        schedule.begin();
        let committed = |file_taken| Committed { sequence: 1, log_bytes: 4096, file_taken };
        schedule.committed(Nanos(1), committed(false), 40 << 20);
        schedule.worked(Nanos(5), &Worked { folded: 0, log_bytes: 0, next: Next::Soon }, Duration::from_millis(10), 40 << 20);
        assert!(!schedule.committed(Nanos(6), committed(false), 40 << 20) && schedule.due_at() > Some(Nanos(6)));
        assert!(schedule.committed(Nanos(7), committed(true), 40 << 20));
        assert_eq!(schedule.due_at(), Some(Nanos(0)));
    }
}
