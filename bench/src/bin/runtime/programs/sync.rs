//! What tasks share: a channel, a lock that is handed over, a group that ends when all of its members have. Next: `programs/wake.rs`.

use std::cell::Cell;
use std::rc::Rc;

use crate::contract::{Runtime, give_way};
use crate::effort::{Effort, Figures, Stopwatch, steady};

const CAPACITY: usize = 64;

/// One operation is one value from a producer to a consumer.
pub(crate) fn channel<R: Runtime>(effort: Effort) -> Figures {
    R::run(steady(effort, async |values| {
        let watch = Stopwatch::start();
        let (sender, mut receiver) = R::channel(CAPACITY);
        let producer = R::spawn(async move {
            for value in 0..values {
                R::send(&sender, value).await;
            }
        });
        let consumer = R::spawn(async move {
            let mut received = 0;
            while let Some(value) = R::receive(&mut receiver).await {
                assert_eq!(value, received, "values come in the order in which they were sent");
                received += 1;
            }
            received
        });
        producer.await;
        assert_eq!(consumer.await, values, "no value is lost");
        watch.stop().of(values)
    }))
}

/// One operation is one task that gets the lock, gives way while it has it, and leaves it to the next one, who waits already.
pub(crate) fn mutex<R: Runtime>(effort: Effort, tasks: u64) -> Figures {
    R::run(steady(effort, async move |repetitions| {
        let watch = Stopwatch::start();
        let shared = Rc::new((R::mutex(), Cell::new(false), Cell::new(0)));
        let tasks: Vec<_> = (0..tasks)
            .map(|_| {
                let shared = shared.clone();
                R::spawn(async move {
                    let (mutex, is_held, count) = &*shared;
                    for _ in 0..repetitions {
                        let body = async {
                            assert!(!is_held.replace(true), "one at a time has the lock");
                            give_way().await;
                            is_held.set(false);
                            count.set(count.get() + 1);
                        };
                        R::locked(mutex, body).await;
                    }
                })
            })
            .collect();
        let operations = tasks.len() as u64 * repetitions;
        for task in tasks {
            task.await;
        }
        assert_eq!(shared.2.get(), operations, "everybody has got the lock each time");
        watch.stop().of(operations)
    }))
}

/// One operation is one member that gives way once and ends.
pub(crate) fn group<R: Runtime>(effort: Effort, members: u64) -> Figures {
    R::run(steady(effort, async move |repetitions| {
        let watch = Stopwatch::start();
        for _ in 0..repetitions {
            let member = |number: u64| async move {
                give_way().await;
                number
            };
            let sum = R::group((0..members).map(member)).await;
            assert_eq!(sum, members * (members - 1) / 2, "each member has ended with its value");
        }
        watch.stop().of(repetitions * members)
    }))
}
