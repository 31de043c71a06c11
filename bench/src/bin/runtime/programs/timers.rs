//! Timers: armed and given up, which is what almost all of them are there for, and fired. Next: `programs/sync.rs`.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use crate::contract::{Runtime, give_way};
use crate::effort::{Effort, Figures, Stopwatch, Stretch, steady};
use crate::gate::Gate;

/// Longer than any sample.
const LONG: Duration = Duration::from_secs(600);
/// After so many the task gives way: some contenders make a task that does not give way wait, and would arm nothing then.
const TIMERS_PER_POLL: u64 = 64;

/// One operation is one future that is made, polled once and dropped, while `others` are armed.
pub(crate) fn armed_and_cancelled<R: Runtime>(effort: Effort, others: usize) -> Figures {
    R::run(async move {
        let armed = Rc::new(Gate::of(others + 1));
        for number in 0..others {
            let armed = armed.clone();
            R::detach(R::spawn(async move {
                let sleep = R::sleep(LONG + Duration::from_micros(number as u64));
                armed.arrive();
                sleep.await;
                unreachable!("a sample is shorter");
            }));
        }
        armed.arrive();
        armed.all().await;
        let measured = steady(effort, async |repetitions| {
            let watch = Stopwatch::start();
            for number in 0..repetitions {
                let mut sleep = pin!(R::sleep(LONG / 2 + Duration::from_micros(number % 1_000_000)));
                poll_fn(|cx| {
                    assert!(sleep.as_mut().poll(cx).is_pending(), "no timer fires early");
                    Poll::Ready(())
                })
                .await;
                if number % TIMERS_PER_POLL == 0 {
                    give_way().await;
                }
            }
            watch.stop().of(repetitions)
        });
        measured.await
    })
}

/// The deadlines of one round lie so far apart at most.
const SPREAD: Duration = Duration::from_millis(5);

/// One operation is one task that arms a timer, waits for it and ends; only processor time says something, since all wait most of the
/// time.
pub(crate) fn fired<R: Runtime>(effort: Effort, timers: usize) -> Figures {
    R::run(async move {
        // So that all are armed before the first is due.
        let mut lead = Duration::from_millis(1) + Duration::from_micros(timers as u64);
        let mut sum = Stretch::default();
        let mut is_warm = false;
        while !is_warm || sum.wall() < effort.sample() {
            match fire::<R>(timers, lead, effort.checks_everything() || !is_warm).await {
                Some(stretch) if is_warm => sum.add(stretch),
                Some(_) => is_warm = true,
                None => lead *= 2,
            }
        }
        vec![sum.processor_ns()]
    })
}

/// Nothing when arming took longer than `lead`.
async fn fire<R: Runtime>(timers: usize, lead: Duration, checks: bool) -> Option<Stretch> {
    let armed = Rc::new(Gate::of(timers));
    let first = Instant::now() + lead;
    let tasks: Vec<_> = (0..timers)
        .map(|number| {
            // A prime step: neighbours in the order of arming are none in that of the deadlines.
            let place = (number * 7_919 % timers) as f64 / timers as f64;
            let deadline = first + SPREAD.mul_f64(place);
            let armed = armed.clone();
            R::spawn(async move {
                let sleep = R::sleep(deadline.saturating_duration_since(Instant::now()));
                armed.arrive();
                sleep.await;
                !checks || Instant::now() >= deadline
            })
        })
        .collect();
    let watch = Stopwatch::start();
    armed.all().await;
    let is_in_time = Instant::now() < first;
    let mut early = 0;
    for task in tasks {
        early += usize::from(!task.await);
    }
    assert_eq!(early, 0, "no timer fires early");
    is_in_time.then(|| watch.stop().of(timers as u64))
}
