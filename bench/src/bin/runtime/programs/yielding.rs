//! Tasks that yield by turns: what it costs to be woken by oneself, queued and polled. Next: `programs/ping_pong.rs`.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::contract::{Runtime, give_way};
use crate::effort::{Effort, Figures, Stopwatch, Stretch, steady};
use crate::gate::Gate;

struct Shared {
    /// All tasks are there.
    ready: Gate,
    /// All have done their part.
    done: Gate,
    watch: RefCell<Option<Stopwatch>>,
    stretch: Cell<Option<Stretch>>,
}

/// One operation is one yield of one task. Starting and ending the tasks is another program.
pub(crate) fn measure<R: Runtime>(effort: Effort, tasks: usize) -> Figures {
    R::run(steady(effort, async move |rounds| {
        let shared = Rc::new(Shared { ready: Gate::of(tasks), done: Gate::of(tasks), watch: RefCell::default(), stretch: Cell::default() });
        let spawned: Vec<_> = (0..tasks).map(|_| R::spawn(yielding(shared.clone(), rounds))).collect();
        for task in spawned {
            assert_eq!(task.await, rounds, "each task does its part");
        }
        let stretch = shared.stretch.take().expect("the last one to be done has stopped the clock");
        stretch.of(tasks as u64 * rounds)
    }))
}

async fn yielding(shared: Rc<Shared>, rounds: u64) -> u64 {
    if shared.ready.arrive() {
        *shared.watch.borrow_mut() = Some(Stopwatch::start());
    }
    shared.ready.all().await;
    let mut done = 0;
    while done < rounds {
        give_way().await;
        done += 1;
    }
    // The last one to set it is the last one to arrive.
    shared.stretch.set(shared.watch.borrow().as_ref().map(Stopwatch::stop));
    shared.done.arrive();
    shared.done.all().await;
    done
}
