//! What `sync` has: permits, locks, items and news get to somebody.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use miniloop::sync::{Barrier, Condvar, Event, Mutex, Queue, Semaphore, broadcast, channel, watch};
use miniloop::{sleep, spawn, yield_now};

use crate::harness::{Facility, at, check, facility};
use crate::structure::{drain, three};
use crate::support::ms;

fn locks() -> Vec<Facility> {
    vec![
        facility("Semaphore: acquire, acquire_many, owned", async |p| {
            let semaphore = Rc::new(Semaphore::new(0));
            let rival = spawn({
                let semaphore = semaphore.clone();
                async move {
                    sleep(ms(1)).await;
                    for _ in 0..2 {
                        drop(semaphore.acquire_many(2).await);
                    }
                }
            });
            for time in [2, 3, 4] {
                let semaphore = semaphore.clone();
                at(time, move || semaphore.add_permits(1));
            }
            p.take(async {
                drop(semaphore.acquire().await);
                let two = semaphore.acquire_many(2).await;
                yield_now().await;
                drop(two);
                drop(semaphore.clone().acquire_owned().await);
                drop(semaphore.clone().acquire_many_owned(3).await);
            })
            .await;
            rival.await.unwrap();
            sleep(ms(10)).await;
            let statistics = semaphore.statistics();
            assert_eq!((statistics.available, statistics.waiting), (3, 0));
        }),
        facility("Mutex: lock, lock_owned", async |p| {
            let mutex = Rc::new(Mutex::new(0));
            let rivals = [0, 1].map(|_| {
                let mutex = mutex.clone();
                spawn(async move {
                    for _ in 0..2 {
                        let mut value = mutex.lock().await;
                        yield_now().await;
                        *value += 1;
                    }
                })
            });
            yield_now().await;
            let added = Cell::new(0);
            p.take(async {
                let mut value = mutex.lock().await;
                *value += 1;
                added.set(1);
                drop(value);
                let mut value = mutex.clone().lock_owned().await;
                *value += 1;
                added.set(2);
            })
            .await;
            for rival in rivals {
                rival.await.unwrap();
            }
            assert_eq!(*mutex.try_lock().expect("nobody holds it"), 4 + added.get());
        }),
        facility("Event", async |p| {
            let event = Rc::new(Event::new());
            for time in [1, 3] {
                let event = event.clone();
                at(time, move || {
                    event.set();
                    event.clear();
                });
            }
            p.take(async {
                event.wait().await;
                event.wait().await;
            })
            .await;
            assert_eq!(event.statistics().waiting, 0);
        }),
        facility("Condvar: wait, wait_while", async |p| {
            let (mutex, condvar) = (Rc::new(Mutex::new(0)), Rc::new(Condvar::new()));
            for time in [2, 4, 6] {
                let (mutex, condvar) = (mutex.clone(), condvar.clone());
                at(time, move || {
                    spawn(async move {
                        *mutex.lock().await += 1;
                        condvar.notify_one();
                    })
                    .detach()
                });
            }
            // Whoever is notified and goes passes it on to this one.
            let other = spawn({
                let (mutex, condvar) = (mutex.clone(), condvar.clone());
                async move {
                    sleep(ms(1)).await;
                    let mut value = mutex.lock().await;
                    while *value < 3 {
                        value = condvar.wait(value).await;
                        condvar.notify_one();
                    }
                }
            });
            p.take(async {
                let value = condvar.wait(mutex.lock().await).await;
                condvar.notify_one();
                let value = condvar.wait_while(value, |value| *value < 3).await;
                drop(value);
                condvar.notify_one();
            })
            .await;
            condvar.notify_one();
            other.await.unwrap();
            assert_eq!(*mutex.try_lock().expect("nobody holds it"), 3);
            assert_eq!(condvar.statistics().waiting, 0);
        }),
        facility("Barrier", async |p| {
            let barrier = Rc::new(Barrier::new(2));
            for time in [1, 3] {
                let barrier = barrier.clone();
                at(time, move || {
                    spawn(async move { barrier.wait().await.map(drop) }).detach();
                });
            }
            let passed = Cell::new(0);
            p.take(async {
                for _ in 0..2 {
                    barrier.wait().await.unwrap();
                    passed.set(passed.get() + 1);
                }
            })
            .await;
            sleep(ms(5)).await;
            // Whoever has no partner is still there.
            while barrier.statistics().waiting > 0 {
                barrier.wait().await.unwrap();
            }
            assert!(!barrier.is_broken());
        }),
    ]
}

fn items() -> Vec<Facility> {
    vec![
        facility("channel: recv", async |p| {
            let (mut receiver, got) = (three(), RefCell::default());
            p.take(drain(&mut receiver, &got)).await;
            drain(&mut receiver, &got).await;
            assert_eq!(got.take(), [1, 2, 3]);
        }),
        facility("channel: send", async |p| {
            let (sender, mut receiver) = channel::channel(1);
            let sent = Rc::new(Cell::new(0));
            let got = spawn(async move {
                let mut got = Vec::new();
                while let Some(number) = receiver.recv().await {
                    got.push(number);
                    sleep(ms(1)).await;
                }
                got
            });
            p.take(async {
                for number in 1..=4 {
                    sender.send(number).await.unwrap();
                    sent.set(number);
                }
            })
            .await;
            drop(sender);
            assert_eq!(got.await.unwrap(), (1..=sent.get()).collect::<Vec<u32>>(), "what was sent, and nothing else");
        }),
        facility("Queue: put, get, join", async |p| {
            let queue = Queue::new(1);
            let (put, got) = (Cell::new(0), Rc::new(RefCell::new(Vec::new())));
            let other = spawn({
                let (queue, got) = (queue.clone(), got.clone());
                async move {
                    sleep(ms(1)).await;
                    while let Some(number) = queue.get().await {
                        got.borrow_mut().push(number);
                        queue.task_done().unwrap();
                        sleep(ms(1)).await;
                    }
                }
            });
            p.take(async {
                for number in 1..=3 {
                    queue.put(number).await.unwrap();
                    put.set(number);
                }
                queue.join().await;
                let got_here = queue.get();
                queue.try_put(4).unwrap();
                put.set(4);
                if let Some(number) = got_here.await {
                    got.borrow_mut().push(number);
                    queue.task_done().unwrap();
                }
            })
            .await;
            queue.close();
            queue.join().await;
            other.await.unwrap();
            assert_eq!(got.take(), (1..=put.get()).collect::<Vec<u32>>());
        }),
        facility("Queue: get", async |p| {
            let queue = Queue::new(None);
            for (number, time) in [(1, 1), (2, 3), (3, 5)] {
                let queue = queue.clone();
                at(time, move || queue.try_put(number).unwrap());
            }
            let got = RefCell::new(Vec::new());
            p.take(async {
                while got.borrow().len() < 3 {
                    let number = queue.get().await;
                    got.borrow_mut().extend(number);
                }
            })
            .await;
            while got.borrow().len() < 3 {
                let number = queue.get().await;
                got.borrow_mut().extend(number);
            }
            assert_eq!(got.take(), [1, 2, 3]);
        }),
        facility("broadcast: recv", async |p| {
            let (sender, mut receiver) = broadcast::broadcast(4);
            for (number, time) in [(1, 1), (2, 3), (3, 5)] {
                let sender = sender.clone();
                at(time, move || sender.send(number).unwrap());
            }
            drop(sender);
            let got = RefCell::new(Vec::new());
            p.take(async {
                while let Ok(number) = receiver.recv().await {
                    got.borrow_mut().push(number);
                }
            })
            .await;
            while let Ok(number) = receiver.recv().await {
                got.borrow_mut().push(number);
            }
            assert_eq!(got.take(), [1, 2, 3]);
        }),
        facility("watch: changed, wait_for", async |p| {
            let (sender, mut receiver) = watch::watch(0);
            for (number, time) in [(1, 1), (2, 3), (3, 5)] {
                let sender = sender.clone();
                at(time, move || sender.send(number).unwrap());
            }
            drop(sender);
            let seen = Cell::new(0);
            p.take(async {
                receiver.changed().await.unwrap();
                seen.set(*receiver.borrow_and_update());
                drop(receiver.wait_for(|value| *value == 3).await.unwrap());
                seen.set(3);
            })
            .await;
            while receiver.changed().await.is_ok() {
                let value = *receiver.borrow_and_update();
                assert!(value > seen.get(), "a change is seen once");
                seen.set(value);
            }
            assert_eq!(seen.get(), 3, "the last one is seen");
        }),
    ]
}

#[test]
fn locks_end_at_every_poll_c130_c133() {
    check(&locks());
}

#[test]
fn queues_end_at_every_poll_c124_c125() {
    check(&items());
}
