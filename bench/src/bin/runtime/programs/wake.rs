//! One thread wakes the loops of others, one after the other, and waits for each one's answer. Next: `programs/load.rs`.

use std::future::poll_fn;
use std::hint;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::thread;

use bench::processor;
use futures_util::task::AtomicWaker;

use crate::contract::Runtime;
use crate::effort::{Effort, Figures, Stopwatch};

/// A task on another thread.
#[derive(Default)]
struct Sleeper {
    waker: AtomicWaker,
    /// The number of the last wake; [`END`] when it was the last one.
    asked: AtomicU64,
    answered: AtomicU64,
}

const END: u64 = u64::MAX;

/// One operation is one wake and its answer. The thread that wakes has a core of its own and spins for the answer, so that only the
/// sleeper's way is measured.
pub(crate) fn measure<R: Runtime>(effort: Effort, loops: usize) -> Figures {
    let sleepers: Vec<Arc<Sleeper>> = (0..loops).map(|_| Arc::default()).collect();
    let threads: Vec<_> = sleepers
        .iter()
        .map(|sleeper| {
            let sleeper = sleeper.clone();
            thread::spawn(move || {
                processor::pin(processor::SERVER_CORE).expect("the core was there for the process");
                R::run(sleep(sleeper))
            })
        })
        .collect();
    processor::pin(processor::LOAD_CORE).expect("waking another thread is measured on two cores");
    let wake_all = |repetitions: u64, before: u64| {
        let watch = Stopwatch::start();
        for number in 1..=repetitions {
            for sleeper in &sleepers {
                sleeper.asked.store(before + number, Ordering::Release);
                sleeper.waker.wake();
                while sleeper.answered.load(Ordering::Acquire) != before + number {
                    hint::spin_loop();
                }
            }
        }
        watch.stop().of(repetitions * loops as u64)
    };
    let (mut repetitions, mut before) = (1, 0);
    let stretch = loop {
        let stretch = wake_all(repetitions, before);
        before += repetitions;
        if stretch.wall() >= effort.sample() {
            break stretch;
        }
        repetitions *= 2;
    };
    for sleeper in &sleepers {
        sleeper.asked.store(END, Ordering::Release);
        sleeper.waker.wake();
    }
    for (thread, sleeper) in threads.into_iter().zip(&sleepers) {
        thread.join().expect("a task that only answers does not panic");
        assert_eq!(sleeper.answered.load(Ordering::Acquire), before, "each wake is answered");
    }
    vec![stretch.wall_ns()]
}

async fn sleep(sleeper: Arc<Sleeper>) {
    poll_fn(|cx| {
        sleeper.waker.register(cx.waker());
        match sleeper.asked.load(Ordering::Acquire) {
            END => Poll::Ready(()),
            number => {
                sleeper.answered.store(number, Ordering::Release);
                Poll::Pending
            }
        }
    })
    .await;
}
