//! Tasks that end at once: spawned and awaited one by one, or many spawned and then all awaited. Next: `programs/timers.rs`.

use crate::contract::Runtime;
use crate::effort::{Effort, Figures, Stopwatch, steady};

/// One operation is one task: made, run and joined.
pub(crate) fn measure<R: Runtime>(effort: Effort, batch: usize) -> Figures {
    R::run(steady(effort, async move |repetitions| {
        let mut tasks = Vec::with_capacity(batch);
        let watch = Stopwatch::start();
        for _ in 0..repetitions {
            tasks.extend((0..batch).map(|number| R::spawn(async move { number })));
            for (number, task) in tasks.drain(..).enumerate() {
                assert_eq!(task.await, number, "each handle gives the value of its own task");
            }
        }
        watch.stop().of(repetitions * batch as u64)
    }))
}
