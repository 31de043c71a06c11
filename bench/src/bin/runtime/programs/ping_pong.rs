//! Two tasks that wake each other, through the wakers of std and nothing else. Next: `programs/spawning.rs`.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use crate::contract::Runtime;
use crate::effort::{Effort, Figures, Stopwatch, steady};

#[derive(Default)]
struct TableTennis {
    /// Whose turn it is.
    turn: Cell<usize>,
    wakers: [RefCell<Option<Waker>>; 2],
}

/// One operation is one wake of the other one, who then runs.
pub(crate) fn measure<R: Runtime>(effort: Effort) -> Figures {
    R::run(steady(effort, async |strokes| {
        let table = Rc::new(TableTennis::default());
        let watch = Stopwatch::start();
        let [ping, pong] = [0, 1].map(|side| R::spawn(play(table.clone(), side, strokes)));
        assert_eq!((ping.await, pong.await), (strokes, strokes), "each stroke is answered");
        watch.stop().of(2 * strokes)
    }))
}

async fn play(table: Rc<TableTennis>, side: usize, strokes: u64) -> u64 {
    let other = 1 - side;
    let mut done = 0;
    poll_fn(|cx| {
        if table.turn.get() == side {
            done += 1;
            table.turn.set(other);
            if let Some(waker) = &*table.wakers[other].borrow() {
                waker.wake_by_ref();
            }
        }
        if done == strokes {
            return Poll::Ready(done);
        }
        let mut waker = table.wakers[side].borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        Poll::Pending
    })
    .await
}
