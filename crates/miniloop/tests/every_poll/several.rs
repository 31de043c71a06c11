//! What waits for several things at once.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use miniloop::schedule::Scheduler;
use miniloop::{Task, all_completed, as_completed, first_completed, interval, join_all, race, sleep, spawn, try_join_all, wait, yield_now};

use crate::harness::{Facility, at, check, facility};
use crate::structure::{counted, drain, three};
use crate::support::ms;

fn facilities() -> Vec<Facility> {
    vec![
        facility("join_all", async |p| {
            let mut receivers = [three(), three()];
            let got = [RefCell::<Vec<u32>>::default(), RefCell::default()];
            p.take(async {
                join_all(receivers.iter_mut().zip(&got).map(|(receiver, got)| drain(receiver, got))).await;
            })
            .await;
            for (receiver, got) in receivers.iter_mut().zip(&got) {
                drain(receiver, got).await;
                assert_eq!(got.take(), [1, 2, 3]);
            }
        }),
        facility("try_join_all", async |p| {
            let mut receivers = [three(), three()];
            let got = [RefCell::<Vec<u32>>::default(), RefCell::default()];
            p.take(async {
                let joined = try_join_all(receivers.iter_mut().zip(&got).enumerate().map(async |(index, (receiver, got))| {
                    for _ in 0..2 + index {
                        let number = receiver.recv().await;
                        got.borrow_mut().extend(number);
                    }
                    if index == 0 { Err("two are enough") } else { Ok(()) }
                }))
                .await;
                assert!(joined.is_err());
            })
            .await;
            for (receiver, got) in receivers.iter_mut().zip(&got) {
                drain(receiver, got).await;
                assert_eq!(got.take(), [1, 2, 3]);
            }
        }),
        facility("race", async |p| {
            let mut receivers = [three(), three()];
            let got = RefCell::new(Vec::new());
            p.take(async {
                loop {
                    let raced = race(receivers.iter_mut().map(miniloop::sync::channel::Receiver::recv)).await;
                    let is_over = raced.value.is_none();
                    got.borrow_mut().extend(raced.value);
                    got.borrow_mut().extend(raced.late.into_iter().filter_map(|(_, value)| value));
                    if is_over {
                        break;
                    }
                }
            })
            .await;
            for receiver in &mut receivers {
                drain(receiver, &got).await;
            }
            let mut got = got.take();
            got.sort_unstable();
            assert_eq!(got, [1, 1, 2, 2, 3, 3]);
        }),
        facility("wait", async |p| {
            let mut tasks: Vec<Task<u64>> = [3, 1, 1, 5]
                .map(|time| {
                    spawn(async move {
                        sleep(ms(time)).await;
                        time
                    })
                })
                .into();
            let got = RefCell::new(Vec::new());
            p.take(async {
                while !tasks.is_empty() {
                    for task in wait(&mut tasks, first_completed).await {
                        let value = task.await.unwrap();
                        got.borrow_mut().push(value);
                    }
                }
            })
            .await;
            for task in wait(&mut tasks, all_completed).await {
                let value = task.await.unwrap();
                got.borrow_mut().push(value);
            }
            let mut got = got.take();
            got.sort_unstable();
            assert_eq!(got, [1, 1, 3, 5]);
        }),
        facility("as_completed", async |p| {
            let mut outputs = as_completed([3, 1, 1, 5].map(async |time| sleep(ms(time)).await));
            let mut got = BTreeSet::new();
            p.take_from(async {
                while let Some((index, ())) = outputs.next().await {
                    assert!(got.insert(index));
                }
            })
            .await;
            while let Some((index, ())) = outputs.next().await {
                assert!(got.insert(index));
            }
            assert_eq!(got.len(), 4);
        }),
        facility("interval", async |p| {
            let mut interval = interval(ms(2));
            let start = miniloop::now();
            let mut ticks = 0;
            // The interval goes on ticking for whoever asks next.
            p.take_from(async {
                for _ in 0..3 {
                    interval.tick().await;
                    ticks += 1;
                }
            })
            .await;
            while ticks < 4 {
                interval.tick().await;
                ticks += 1;
            }
            let ticked = miniloop::now() - start;
            assert!(ticked == ms(6) || p.how().is_some(), "{ticked:?}");
        }),
        facility("Scheduler::stop", async |p| {
            let drops = Rc::new(Cell::new(0));
            let scheduler = Scheduler::new();
            for _ in 0..2 {
                let mine = counted(&drops);
                scheduler.every("job", ms(1), move || {
                    let _mine = &mine;
                    sleep(ms(3))
                });
            }
            p.take(async {
                sleep(ms(2)).await;
                yield_now().await;
                scheduler.stop().await;
            })
            .await;
            at(1, || ());
            sleep(ms(20)).await;
            assert_eq!(drops.get(), 2);
        }),
    ]
}

#[test]
fn waiting_for_several_ends_at_every_poll_c12() {
    check(&facilities());
}
