//! Processors: who runs on which one, and how much of it was used.
//!
//! Server and load, or two threads that wake each other, are pinned to different cores, so that the scheduler is no part of what is
//! measured. Time used is asked from the kernel: it drifts least on a shared machine. Next: `descriptors.rs`.

use std::io;
use std::time::Duration;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;

/// Keeps the calling thread, and those that it starts, on one core: `0` is the first that this process may use.
///
/// # Errors
///
/// There is no such core, or the kernel refuses.
pub fn pin(core: usize) -> io::Result<()> {
    let this_thread = Pid::from_raw(0);
    let allowed = sched_getaffinity(this_thread)?;
    let core = (0..CpuSet::count()).filter(|&cpu| allowed.is_set(cpu).unwrap_or(false)).nth(core);
    let core = core.ok_or_else(|| io::Error::other("this process may not use that many cores: measuring needs two"))?;
    let mut only = CpuSet::new();
    only.set(core)?;
    Ok(sched_setaffinity(this_thread, &only)?)
}

/// The processor time that this process has used so far, in all its threads, to the nanosecond.
///
/// # Errors
///
/// The kernel has no such clock.
pub fn used_here() -> io::Result<Duration> {
    used(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

/// The processor time that another process has used so far, in all its threads, to the nanosecond.
///
/// # Errors
///
/// There is no such process.
pub fn used_by(process: u32) -> io::Result<Duration> {
    used(clock_getcpuclockid(Pid::from_raw(process as i32))?)
}

fn used(clock: ClockId) -> io::Result<Duration> {
    let now: TimeSpec = clock.now()?;
    Ok(Duration::from(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_one_clock_whoever_asks() {
        let before = used_here().unwrap();
        let from_outside = used_by(std::process::id()).unwrap();
        assert!(before <= from_outside && from_outside <= used_here().unwrap());
        // Above the highest number that the kernel gives.
        assert!(used_by(1 << 23).is_err());
    }

    #[test]
    fn a_core_that_is_not_there_is_an_error() {
        assert!(pin(CpuSet::count()).is_err());
    }
}
