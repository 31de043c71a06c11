//! What waits for time, for others, and for those who belong together.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use miniloop::sync::channel;
use miniloop::{
    Abandoned, LoopHandle, ScopeOptions, Shared, TaskError, catch, promise, scope, shield, sleep, sleep_until, spawn, task_group, timeout,
    yield_now,
};

use crate::harness::{Facility, How, at, check, facility};
use crate::support::{ms, on_drop};

pub(crate) type List = Rc<RefCell<Vec<u32>>>;

/// The receiver of a channel into which 1, 2 and 3 come, at 1, 3 and 5 ms; it is closed then.
pub(crate) fn three() -> channel::Receiver<u32> {
    let (sender, receiver) = channel::channel(3);
    for (number, time) in [(1, 1), (2, 3), (3, 5)] {
        let sender = sender.clone();
        at(time, move || sender.try_send(number));
    }
    receiver
}

pub(crate) async fn drain(receiver: &mut channel::Receiver<u32>, got: &RefCell<Vec<u32>>) {
    while let Some(number) = receiver.recv().await {
        got.borrow_mut().push(number);
    }
}

/// A value whose destructors are counted.
pub(crate) fn counted(drops: &Rc<Cell<u32>>) -> impl Sized + use<> {
    let drops = drops.clone();
    on_drop(move || drops.set(drops.get() + 1))
}

/// Time and what bounds it.
fn times() -> Vec<Facility> {
    vec![
        facility("sleep, sleep_until, yield_now", async |p| {
            p.take(async {
                sleep(ms(1)).await;
                sleep_until(miniloop::now() + ms(1)).await;
                yield_now().await;
            })
            .await;
        }),
        facility("timeout", async |p| {
            let (mut receiver, got) = (three(), RefCell::<Vec<u32>>::default());
            p.take(async {
                loop {
                    match timeout(ms(1), receiver.recv()).await {
                        Ok(Some(number)) => got.borrow_mut().push(number),
                        Ok(None) => break,
                        Err(_) => {}
                    }
                }
            })
            .await;
            drain(&mut receiver, &got).await;
            assert_eq!(got.take(), [1, 2, 3]);
        }),
        facility("scope", async |p| {
            let (mut receiver, got) = (three(), RefCell::<Vec<u32>>::default());
            p.take(async {
                for _ in 0..2 {
                    let options = ScopeOptions::new().timeout(ms(4));
                    let _ = scope(options, async |scope| {
                        scope.set_deadline(Some(miniloop::now() + ms(3)));
                        drain(&mut receiver, &got).await;
                        scope.cancel();
                        sleep(ms(100)).await;
                    })
                    .await;
                }
            })
            .await;
            drain(&mut receiver, &got).await;
            assert_eq!(got.take(), [1, 2, 3]);
        }),
        facility("shield", async |p| {
            let (mut receiver, got) = (three(), RefCell::<Vec<u32>>::default());
            let value = p.take(shield(drain(&mut receiver, &got))).await;
            let is_shielded = matches!(p.how(), Some(How::Task | How::Timeout | How::Scope | How::Race | How::Member)) && p.polls() > 0;
            assert!(value.is_some() || !is_shielded, "{:?}", got.take());
            drain(&mut receiver, &got).await;
            assert_eq!(got.take(), [1, 2, 3]);
        }),
        facility("catch, with clean-up that waits", async |p| {
            let (mut receiver, got, cleaned) = (three(), RefCell::default(), Cell::new(0));
            let value = p
                .take(async {
                    let body = catch(drain(&mut receiver, &got));
                    body.cleanup(async |_| {
                        sleep(ms(1)).await;
                        yield_now().await;
                        cleaned.set(cleaned.get() + 1);
                    })
                    .await
                })
                .await;
            let is_graceful = p.how().is_some_and(|how| how != How::Drop);
            let is_complete = value.is_some_and(|value| value.is_ok());
            assert!(cleaned.get() <= 1);
            if is_graceful && p.polls() > 0 {
                assert_ne!(is_complete, cleaned.get() == 1, "either all is done or the clean-up is");
            }
            drain(&mut receiver, &got).await;
            assert_eq!(got.take(), [1, 2, 3]);
        }),
    ]
}

/// Tasks, promises, groups.
fn owners() -> Vec<Facility> {
    vec![
        facility("Task", async |p| {
            let drops = Rc::new(Cell::new(0));
            let (mine, got) = (counted(&drops), List::default());
            let (mut receiver, noted) = (three(), got.clone());
            let task = spawn(async move {
                let _mine = mine;
                drain(&mut receiver, &noted).await;
                7
            });
            let value = p
                .take(async {
                    yield_now().await;
                    task.await.unwrap()
                })
                .await;
            yield_now().await;
            yield_now().await;
            assert_eq!(drops.get(), 1, "the task has ended, and once");
            assert!(value != Some(7) || got.take() == [1, 2, 3]);
        }),
        facility("&mut Task", async |p| {
            let mut task = spawn(async {
                let (mut receiver, got) = (three(), RefCell::<Vec<u32>>::default());
                drain(&mut receiver, &got).await;
                got.take()
            });
            let awaited = p
                .take_from(async {
                    yield_now().await;
                    (&mut task).await.unwrap()
                })
                .await;
            let got = if let Some(got) = awaited { got } else { task.await.unwrap() };
            assert_eq!(got, [1, 2, 3]);
        }),
        facility("Shared", async |p| {
            let (resolver, promise) = promise::<u32, Abandoned>();
            at(1, move || resolver.set_result(7));
            let shared = promise.shared();
            let other = spawn(shared.clone());
            let read = |shared: Shared<Result<u32, Abandoned>>| async move { *shared.await.as_ref().as_ref().unwrap() };
            p.take(async {
                yield_now().await;
                assert_eq!(read(shared.clone()).await, 7);
            })
            .await;
            assert_eq!(read(shared).await, 7);
            assert!(matches!(*other.await.unwrap(), Ok(7)));
        }),
        facility("Promise and Resolver::cancelled", async |p| {
            let (resolver, promise) = promise::<u32, Abandoned>();
            let told = spawn(async move {
                timeout(ms(1), resolver.cancelled()).await.ok();
                timeout(ms(1), resolver.cancelled()).await.ok();
                let is_cancelled = resolver.is_cancelled();
                resolver.set_result(7);
                is_cancelled
            });
            let value = p
                .take(async {
                    yield_now().await;
                    promise.await.unwrap()
                })
                .await;
            assert!(!told.await.unwrap() || value.is_none(), "who has the value has not given up");
        }),
        facility("Resolver::cancelled", async |p| {
            let (resolver, promise) = promise::<u32, Abandoned>();
            at(1, move || promise);
            p.take(async {
                yield_now().await;
                resolver.cancelled().await;
            })
            .await;
            resolver.cancelled().await;
        }),
        facility("task_group: members, a service, a task", async |p| {
            let drops = Rc::new(Cell::new(0));
            let got = List::default();
            let value = p
                .take(async {
                    let (mut receiver, mut second) = (three(), three());
                    let mine = [counted(&drops), counted(&drops), counted(&drops)];
                    let [one, two, three] = mine;
                    task_group(async |group| {
                        let child = group.spawn_caught(async {
                            let _one = one;
                            drain(&mut receiver, &got).await;
                        });
                        group.spawn_service(async {
                            let _two = two;
                            drain(&mut second, &RefCell::default()).await;
                        });
                        group.spawn_task(async move {
                            let _three = three;
                            sleep(ms(4)).await;
                        });
                        child.await.unwrap();
                    })
                    .await;
                })
                .await;
            yield_now().await;
            yield_now().await;
            assert!(drops.get() == 3 || (p.polls() == 0 && drops.get() == 0), "{}", drops.get());
            assert!(value.is_none() || got.take() == [1, 2, 3]);
        }),
        facility("Child", async |p| {
            if p.how() == Some(How::Task) {
                return; // it would be the group that is asked
            }
            let got = List::default();
            let mut receiver = three();
            task_group(async |group| {
                let child = group.spawn_caught(drain(&mut receiver, &got));
                p.take(async {
                    yield_now().await;
                    child.await.unwrap();
                })
                .await;
            })
            .await;
            assert_eq!(got.take(), [1, 2, 3], "dropping the child changes nothing for the member");
        }),
        facility("RemoteTask", async |p| {
            let drops = Rc::new(Cell::new(0));
            let mine = Rc::new(RefCell::new(Some(counted(&drops))));
            MINE.set(Some(Box::new(move || mine.take().map(|mine| Box::new(mine) as Box<dyn std::any::Any>))));
            let task = LoopHandle::current()
                .remote()
                .spawn(|| async {
                    let _mine = MINE.take().and_then(|take| take());
                    sleep(ms(1)).await;
                    yield_now().await;
                    7
                })
                .unwrap();
            let value: Option<Result<_, TaskError>> = p
                .take(async {
                    yield_now().await;
                    task.await
                })
                .await;
            assert!(value.is_none_or(|value| value.unwrap() == 7));
            sleep(ms(10)).await;
            drop(MINE.take());
            assert_eq!(drops.get(), 1);
        }),
    ]
}

type Take = Box<dyn Fn() -> Option<Box<dyn std::any::Any>>>;

thread_local! {
    /// What a future that is made on the loop's thread finds there.
    static MINE: Cell<Option<Take>> = const { Cell::new(None) };
}

#[test]
fn times_and_their_bounds_end_at_every_poll_c12() {
    check(&times());
}

#[test]
fn tasks_promises_and_groups_end_at_every_poll_c12() {
    check(&owners());
}
