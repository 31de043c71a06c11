//! Processors: who runs on which one, and how much of it was used.
//!
//! Server and load, or two threads that wake each other, are pinned to different cores, so that the scheduler is no part of what is
//! measured. Time used is asked from the kernel: it drifts least on a shared machine. Next: `descriptors.rs`.

use std::time::Duration;
use std::{fs, io};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;

/// Where servers run, and what is one thread only.
pub const SERVER_CORE: usize = 0;
/// Where that runs which keeps a server busy.
pub const LOAD_CORE: usize = 1;

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

/// The part of [`used_by`] that was not spent in the kernel. It is a share that the kernel has estimated by looking at each tick of its
/// clock, in steps of 10 ms: only the mean of many seconds is exact.
///
/// # Errors
///
/// There is no such process.
pub fn used_outside_kernel(process: u32) -> io::Result<Duration> {
    const STEPS_PER_SECOND: u32 = 100;
    let path = format!("/proc/{process}/stat");
    let text = fs::read_to_string(&path)?;
    // The name of the program stands in brackets and may hold anything; behind it, the twelfth field.
    let steps = text.rsplit_once(") ").and_then(|(_, fields)| fields.split(' ').nth(11)?.parse::<u32>().ok());
    let steps = steps.ok_or_else(|| io::Error::other(format!("{path} is not what it was: the time outside the kernel is not there")))?;
    Ok(Duration::from_secs(1) * steps / STEPS_PER_SECOND)
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
    fn what_is_used_outside_the_kernel_is_a_part() {
        let outside = used_outside_kernel(std::process::id()).unwrap();
        // Shown in steps, each of which may round up.
        assert!(outside <= used_here().unwrap() + Duration::from_millis(20));
    }

    #[test]
    fn a_core_that_is_not_there_is_an_error() {
        assert!(pin(CpuSet::count()).is_err());
    }
}
