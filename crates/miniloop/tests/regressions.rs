//! What once went wrong, each with the least program that shows it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use miniloop::EventLoop;

#[test]
fn threads_that_send_without_end_do_not_keep_a_loop_from_returning() {
    let mut event_loop = EventLoop::new().unwrap();
    let remote = event_loop.handle().remote();
    let is_over = &AtomicBool::new(false);
    let (returned, has_returned) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| while !is_over.load(Ordering::Relaxed) && remote.call_soon(|| ()).is_ok() {});
        }
        let in_time = scope.spawn(move || {
            let in_time = has_returned.recv_timeout(Duration::from_secs(6)).is_ok();
            is_over.store(true, Ordering::Relaxed);
            in_time
        });
        while event_loop.next_timeout().is_none() {
            event_loop.run_ready().unwrap();
        }
        returned.send(()).unwrap();
        assert!(in_time.join().unwrap(), "one poll and one round lasted as long as there was something to receive");
    });
}
