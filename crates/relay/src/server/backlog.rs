//! How much of the log is not folded yet, and what that means for the next commit.
//!
//! The log may grow to a bound. From half of it on, commits are spaced so that they approach the pace at which the archive folds: the
//! distance begins at nothing and grows with every byte, so nobody meets a step. Three quarters up they come as fast as they are folded,
//! beyond it slower; at the bound the next one waits. Commits that bring less than the archive folds are never touched: what they bring is
//! folded before its time is over.
//!
//! ```text
//! unfolded   0 -------------- half -------- 3/4 -------- bound
//! slowness   0                 0             1             2    then the next commit waits, or is refused while the disk is full
//! ```
//!
//! Pure state: time and bytes go in, a verdict comes out. Costs a few comparisons per commit. Next: `fold_schedule.rs`.

use std::time::Duration;

use relay_core::Nanos;

use crate::limits::PACE_WINDOW_BYTES;

/// What the next commit has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    Go,
    /// Wait for this time, or until more is folded.
    NotBefore(Nanos),
    /// Wait until more is folded.
    WhenFolded,
    /// Give up: the log may not grow, and nothing can be folded until somebody frees space.
    Full,
}

#[derive(Debug)]
pub(super) struct Backlog {
    bytes_max: u64,
    unfolded_bytes: u64,
    unfolded_peak_bytes: u64,
    /// What was unfolded when the archive began its piece of work.
    begun_bytes: u64,
    pace: Pace,
    /// What the archive said last.
    state: ArchiveState,
    /// The commit that the next one has to keep its distance from.
    last_submitted: Nanos,
    last_log_bytes: u64,
    /// From the first commit that had to wait until much is folded: one episode for those who read the log.
    is_slowing: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArchiveState {
    Works,
    /// It will go on when there is room.
    Full,
    /// It will not go on: waiting for it would be for ever.
    Failed,
}

impl Backlog {
    /// Everything is folded, and at most so much of the log may be unfolded, the last commit not counted.
    pub(super) fn new(bytes_max: u64) -> Backlog {
        Backlog {
            bytes_max,
            unfolded_bytes: 0,
            unfolded_peak_bytes: 0,
            begun_bytes: 0,
            pace: Pace::default(),
            state: ArchiveState::Works,
            last_submitted: Nanos(0),
            last_log_bytes: 0,
            is_slowing: false,
        }
    }

    pub(super) fn verdict(&self, now: Nanos) -> Verdict {
        match self.state {
            // What was accepted is stored, though the log becomes longer than it should; nothing more is accepted then.
            ArchiveState::Failed => return Verdict::Go,
            ArchiveState::Full if self.unfolded_bytes >= self.bytes_max => return Verdict::Full,
            ArchiveState::Works if self.unfolded_bytes >= self.bytes_max => return Verdict::WhenFolded,
            ArchiveState::Works | ArchiveState::Full => {}
        }
        let at = self.last_submitted + self.distance();
        if at > now { Verdict::NotBefore(at) } else { Verdict::Go }
    }

    /// A commit is on its way.
    pub(super) fn submitted(&mut self, now: Nanos) {
        self.last_submitted = now;
        self.last_log_bytes = 0;
    }

    /// It is in the log.
    pub(super) fn committed(&mut self, log_bytes: u64) {
        self.last_log_bytes = log_bytes;
        self.unfolded_bytes += log_bytes;
        self.unfolded_peak_bytes = self.unfolded_peak_bytes.max(self.unfolded_bytes);
    }

    /// The archive begins a piece of work.
    pub(super) fn work_begins(&mut self) {
        self.begun_bytes = self.unfolded_bytes;
    }

    /// It has folded everything that there was when it began. What its pieces bring is an estimate, and this is exact: an error does not
    /// stay. True as below.
    pub(super) fn folded_all(&mut self, took: Duration) -> bool {
        self.folded(self.begun_bytes, took)
    }

    /// A piece of the archive's work is done. True when this ends an episode of slow commits.
    pub(super) fn folded(&mut self, log_bytes: u64, took: Duration) -> bool {
        self.state = ArchiveState::Works;
        // Before, it pauses, and deletes for hours what is old: that says nothing of what it does when commits are to be slowed.
        if self.unfolded_bytes >= self.bytes_max / 4 {
            self.pace.measure(log_bytes, took);
        }
        self.unfolded_bytes = self.unfolded_bytes.saturating_sub(log_bytes);
        // Far below where it began: an episode that swings around half is one.
        self.is_slowing && self.unfolded_bytes < self.bytes_max / 4 && std::mem::take(&mut self.is_slowing)
    }

    pub(super) fn archive_is_full(&mut self) {
        self.state = ArchiveState::Full;
    }

    pub(super) fn archive_has_failed(&mut self) {
        self.state = ArchiveState::Failed;
    }

    /// A commit has to wait. True when this begins an episode.
    pub(super) fn begin_slowing(&mut self) -> bool {
        !std::mem::replace(&mut self.is_slowing, true)
    }

    pub(super) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    pub(super) fn unfolded_bytes(&self) -> u64 {
        self.unfolded_bytes
    }

    /// The most that was ever unfolded.
    pub(super) fn unfolded_peak_bytes(&self) -> u64 {
        self.unfolded_peak_bytes
    }

    /// The pace of the archive when it was last behind, in log bytes per second; 0 when it never was.
    pub(super) fn pace_bytes_per_second(&self) -> u64 {
        self.pace.ns_per_byte().map_or(0, |ns_per_byte| (1e9 / ns_per_byte) as u64)
    }

    /// The time from the last commit to the next one. Until the archive has folded something that it was behind with, its pace is unknown,
    /// and there is none.
    fn distance(&self) -> Duration {
        let half_bytes = self.bytes_max / 2;
        let above_bytes = self.unfolded_bytes.saturating_sub(half_bytes);
        let Some(ns_per_byte) = self.pace.ns_per_byte().filter(|_| above_bytes > 0) else { return Duration::ZERO };
        let slowness = SLOWNESS_AT_BOUND * above_bytes as f64 / (self.bytes_max - half_bytes) as f64;
        Duration::from_nanos((self.last_log_bytes as f64 * ns_per_byte * slowness) as u64)
    }
}

/// Twice the time that the archive needs for a commit: so the bound is approached, and rarely reached.
const SLOWNESS_AT_BOUND: f64 = 2.0;

/// How fast the archive folds, from what it did last. The time includes the loads between its pieces of work: they slow it down.
#[derive(Debug, Default)]
struct Pace {
    bytes: u64,
    time_ns: u64,
}

impl Pace {
    fn measure(&mut self, bytes: u64, took: Duration) {
        self.bytes += bytes;
        self.time_ns = self.time_ns.saturating_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        if self.bytes >= PACE_WINDOW_BYTES {
            self.bytes /= 2;
            self.time_ns /= 2;
        }
    }

    fn ns_per_byte(&self) -> Option<f64> {
        // A clock that stands still, as a test's, has measured nothing.
        (self.bytes > 0 && self.time_ns > 0).then(|| self.time_ns as f64 / self.bytes as f64)
    }
}

#[cfg(test)]
#[path = "backlog_tests.rs"]
mod tests;
