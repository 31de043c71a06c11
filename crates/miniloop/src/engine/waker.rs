//! Wakers that are numbers, and where a wake goes.
//!
//! A `Waker` of this runtime holds a [`Word`] where others hold a pointer: cloning copies it, dropping it does nothing, and waking looks
//! the word up. So a waker is free to keep, may go stale at any time and outlive its loop, and costs no atomic operation on the loop's own
//! thread. Three ways lead to the queue: the loop that runs here, another loop that lives on this thread (both in `context.rs`), and the
//! inbox of a loop elsewhere (`registry.rs`, `inbox.rs`).

use std::mem::{self, ManuallyDrop};
use std::task::{RawWaker, RawWakerVTable, Waker};

use crate::engine::context;
use crate::engine::registry;
use crate::engine::word::Word;

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake_data, wake_data, |_| ());

/// The waker of a job.
pub(crate) fn of(word: Word) -> Waker {
    // SAFETY: the functions of `VTABLE` treat the pointer as a number and never dereference it. They are safe to call from any thread, any
    // number of times, in any order, also after the job, its loop or its thread have gone; `clone` gives the same number and table.
    unsafe { Waker::new(data(word), &VTABLE) }
}

/// The same for the time of a poll: it need not be dropped, since dropping it does nothing.
pub(crate) fn borrowed(word: Word) -> ManuallyDrop<Waker> {
    ManuallyDrop::new(of(word))
}

/// The job of a waker that [`of`] has made.
pub(crate) fn word_of(waker: &Waker) -> Word {
    Word::from_u64(waker.data().addr() as u64)
}

/// The same for any waker: `None` for one of another executor.
pub(crate) fn try_word_of(waker: &Waker) -> Option<Word> {
    std::ptr::eq(waker.vtable(), &VTABLE).then(|| word_of(waker))
}

/// Puts a copy of `waker` there if nobody's code runs by that: it is one of this runtime, and so is the one that it displaces. False, and
/// nothing has happened, when foreign code would run: then it is to be done with nothing borrowed.
pub(crate) fn exchange_own(place: &mut Option<Waker>, waker: &Waker) -> bool {
    let is_own = |waker: &Waker| std::ptr::eq(waker.vtable(), &VTABLE);
    let may_exchange = is_own(waker) && place.as_ref().is_none_or(is_own);
    if may_exchange {
        // Dropping it would do nothing, through a pointer.
        mem::forget(place.replace(of(word_of(waker))));
    }
    may_exchange
}

/// Makes a job of any loop ready, from any thread.
pub(crate) fn wake(word: Word) {
    match context::with_resident(word.loop_id(), |core| core.make_ready(word, true)) {
        None => registry::send_wake(word),
        // The job is a member of a group, and this is who polls that: another executor's perhaps.
        Some(poller) => poller.into_iter().for_each(Waker::wake),
    }
}

fn data(word: Word) -> *const () {
    std::ptr::without_provenance(word.as_u64() as usize)
}

fn clone(data: *const ()) -> RawWaker {
    RawWaker::new(data, &VTABLE)
}

fn wake_data(data: *const ()) {
    wake(Word::from_u64(data.addr() as u64));
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::pin::Pin;
    use std::rc::Rc;
    use std::task::Context;
    use std::time::Duration;

    use super::*;
    use crate::completion::Completion;
    use crate::driver::{Direction, Kind};
    use crate::engine::word::LoopId;
    use crate::registration::{Place, Registration};
    use crate::slots::Key;
    use crate::sync::{Event, Semaphore, channel};
    use crate::{EventLoop, LoopHandle, sleep, sock_recv};

    #[test]
    fn a_waker_of_nothing_does_nothing() {
        let waker = of(Word::new(LoopId(4_095), Key { index: 1 << 20, generation: 9 }));
        assert!(waker.will_wake(&waker.clone()));
        waker.wake_by_ref();
        std::thread::scope(|scope| {
            scope.spawn(|| waker.wake());
        });
    }

    thread_local!(static TOUCHED: RefCell<Rc<dyn Fn()>> = RefCell::new(Rc::new(|| ())));

    fn touched() {
        let call = TOUCHED.with_borrow(Rc::clone);
        call();
    }

    /// A waker of another executor, whose every function does what user code may: it uses the loop and what is waited for.
    fn foreign(number: usize) -> Waker {
        fn clone(data: *const ()) -> RawWaker {
            touched();
            RawWaker::new(data, &FOREIGN)
        }
        static FOREIGN: RawWakerVTable = RawWakerVTable::new(clone, |_| touched(), |_| touched(), |_| touched());
        // SAFETY: the pointer is a number, as in `of`.
        unsafe { Waker::new(std::ptr::without_provenance(number), &FOREIGN) }
    }

    /// Waits twice with wakers that differ, so that one displaces the other, and gives up.
    #[track_caller]
    fn check(mut poll: impl FnMut(&mut Context<'_>) -> bool, touch: impl Fn() + 'static) {
        TOUCHED.set(Rc::new(move || {
            touch();
            let handle = LoopHandle::current();
            handle.call_soon(|| ());
            assert!(handle.core.driver().is_ok());
        }));
        assert!([1, 2, 2].iter().all(|number| poll(&mut Context::from_waker(&foreign(*number)))));
        drop(poll);
        drop(TOUCHED.replace(Rc::new(|| ())));
    }

    #[test]
    fn a_foreign_waker_may_use_the_loop_whenever_it_is_cloned_or_dropped() {
        fn is_pending(mut future: impl Future + Unpin) -> impl FnMut(&mut Context<'_>) -> bool {
            move |cx| Pin::new(&mut future).poll(cx).is_pending()
        }
        let event_loop = EventLoop::new().unwrap();
        let _entered = event_loop.handle().enter();
        let (ours, _theirs) = UnixStream::pair().unwrap();
        check(is_pending(sleep(Duration::from_secs(1))), || ());
        check(is_pending(sock_recv(&ours, &mut [0])), || ());
        let sole = Rc::new(Completion::<()>::new());
        let reader = sole.clone();
        check(move |cx| reader.poll_take(cx, "value", &"a value").is_pending(), move || assert!(sole.is_pending()));
        let (shared, mut key) = (Rc::new(Completion::<()>::new()), None);
        shared.share();
        let reader = shared.clone();
        check(move |cx| reader.poll_shared(cx, &mut key, "value").is_pending(), move || assert!(shared.is_pending()));
        let registration = Registration::new(ours.as_fd(), Kind::Other, true).unwrap();
        let nothing = || Err::<(), _>(io::ErrorKind::WouldBlock.into());
        check(|cx| registration.poll_io(Direction::Read, Place::Alone, cx, nothing).is_pending(), || ());
        let mut key = None;
        check(|cx| registration.poll_io(Direction::Read, Place::InLine(&mut key), cx, nothing).is_pending(), || ());
        let semaphore = Rc::new(Semaphore::new(0));
        let waiting = semaphore.clone().acquire_owned();
        check(is_pending(waiting), move || assert!(semaphore.try_acquire().is_none() && semaphore.statistics().waiting < 2));
        let (sender, mut receiver) = channel::<()>(1);
        check(is_pending(receiver.recv()), move || assert_eq!(sender.statistics().len, 0));
    }

    #[test]
    fn what_a_foreign_waker_gives_while_it_is_cloned_is_not_missed() {
        #[track_caller]
        fn check(mut future: impl Future + Unpin, give: impl Fn() + 'static) {
            TOUCHED.set(Rc::new(give));
            assert!(Pin::new(&mut future).poll(&mut Context::from_waker(&foreign(1))).is_ready(), "it was there before it waited");
            drop(TOUCHED.replace(Rc::new(|| ())));
        }
        let event = Rc::new(Event::new());
        let set = event.clone();
        check(event.wait(), move || set.set());
        let semaphore = Rc::new(Semaphore::new(0));
        let adding = semaphore.clone();
        check(semaphore.acquire(), move || adding.add_permits(1));
        let (sender, mut receiver) = channel(1);
        check(receiver.recv(), move || sender.try_send(()).unwrap_or_default());
    }
}
