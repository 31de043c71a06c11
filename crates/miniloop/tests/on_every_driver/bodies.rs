//! What is tested on every driver, and what these tests share.

mod connect_and_vanish;
mod datagrams;
mod descriptors;
mod out_of_descriptors;
mod readiness;
mod sock;
mod streams;
mod system_calls;
mod taken_over;
mod tcp;
mod unix;
mod wakes;

use std::fs;
use std::os::fd::AsRawFd;

use futures_util::FutureExt;
use miniloop::net::UnixStream;
use miniloop::{Builder, EventLoop, LoopHandle, VirtualClock, yield_now};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::DRIVER;
use crate::support::{self, Trace};

/// The settings of a loop on the driver under test.
fn builder() -> Builder {
    EventLoop::builder().driver(DRIVER)
}

fn event_loop() -> EventLoop {
    builder().build().unwrap()
}

/// A loop whose clock moves by hand.
fn manual() -> (EventLoop, VirtualClock, Trace) {
    let clock = VirtualClock::manual();
    (builder().clock(&clock).build().unwrap(), clock, Trace::default())
}

/// Runs `body` on a loop of its own.
fn on_a_loop(body: impl AsyncFnOnce(LoopHandle)) {
    let mut event_loop = event_loop();
    let handle = event_loop.handle();
    event_loop.run_until_complete(body(handle)).unwrap();
}

/// Returns when the loop has waited once more, and all that was woken then has run.
async fn after_a_wait() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut byte = [0];
    let mut read = ours.read(&mut byte);
    assert!((&mut read).now_or_never().is_none());
    theirs.write(b"x").await.unwrap();
    read.await.unwrap();
    yield_now().await;
}

/// A probe that counts the descriptors that a loop watches: for the kernel where it keeps the list, for the loop where that does.
fn watched(event_loop: &EventLoop) -> impl Fn() -> usize + use<> {
    let handle = event_loop.handle();
    let epoll = event_loop.try_as_fd().ok().map(|fd| fd.as_raw_fd());
    let told = move |epoll| fs::read_to_string(format!("/proc/self/fdinfo/{epoll}")).unwrap().matches("tfd:").count();
    let doorbell = epoll.map_or(0, told);
    move || {
        let count = handle.stats().descriptors;
        assert_eq!(epoll.map_or(count, |epoll| told(epoll) - doorbell), count, "the kernel and the loop agree");
        count
    }
}

/// What is still registered would make the loop's descriptor readable, where it has one.
#[track_caller]
fn check_quiet(event_loop: &EventLoop, expected: bool) {
    if let Ok(pollable) = event_loop.try_as_fd() {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let readable_count = poll(&mut [PollFd::new(&pollable, PollFlags::IN)], Some(&now)).unwrap();
        assert_eq!(readable_count == 0, expected);
    }
}

/// Runs `body`, the rest of the test with this name in the module `module_path!()`, in a process of its own.
#[track_caller]
fn in_a_process_of_its_own(module: &str, test: &str, body: impl FnOnce()) {
    support::in_a_process_of_its_own(&test_name(module, test), body);
}

/// What the test program calls a test of the module `module_path!()`.
fn test_name(module: &str, test: &str) -> String {
    let (_crate_name, module) = module.split_once("::").unwrap();
    format!("{module}::{test}")
}
