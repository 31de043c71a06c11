//! Futures polled by hand: the test says who runs when, and sees who was woken.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use miniloop::{Task, spawn};

pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// One future with a waker of its own. Dropping it drops the future.
pub(crate) struct Hand<'a, T> {
    future: Boxed<'a, T>,
    bell: Arc<Bell>,
}

impl<'a, T> Hand<'a, T> {
    pub(crate) fn new(future: impl Future<Output = T> + 'a) -> Self {
        Self::named("", &Bells::default(), future)
    }

    /// One whose waker writes `name` into `bells`.
    pub(crate) fn named(name: &'static str, bells: &Bells, future: impl Future<Output = T> + 'a) -> Self {
        let bell = Bell { is_rung: AtomicBool::new(false), name, bells: bells.clone() };
        Self { future: Box::pin(future), bell: Arc::new(bell) }
    }

    /// The same, polled once, which must be pending.
    #[track_caller]
    pub(crate) fn waiting(future: impl Future<Output = T> + 'a) -> Self {
        let mut hand = Self::new(future);
        assert!(hand.poll().is_pending(), "it should have waited");
        hand
    }

    pub(crate) fn poll(&mut self) -> Poll<T> {
        self.future.as_mut().poll(&mut Context::from_waker(&Waker::from(self.bell.clone())))
    }

    /// What it gives now.
    #[track_caller]
    pub(crate) fn ready(&mut self) -> T {
        match self.poll() {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("it still waits"),
        }
    }

    /// Whether it was woken since the last call.
    pub(crate) fn is_woken(&self) -> bool {
        self.bell.is_rung.swap(false, Ordering::Relaxed)
    }
}

/// What a future gives that need not wait.
#[track_caller]
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    Hand::new(future).ready()
}

/// The names of those who were woken, in order.
#[derive(Clone, Default)]
pub(crate) struct Bells(Arc<Mutex<Vec<&'static str>>>);

impl Bells {
    pub(crate) fn take(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

struct Bell {
    is_rung: AtomicBool,
    name: &'static str,
    bells: Bells,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.is_rung.store(true, Ordering::Relaxed);
        self.bells.0.lock().unwrap().push(self.name);
    }
}

/// A task whose future somebody else can drop at any moment; it ends with `None` then.
pub(crate) struct Mortal<T> {
    future: Rc<RefCell<Option<Boxed<'static, T>>>>,
    pub(crate) task: Task<Option<T>>,
}

impl<T: 'static> Mortal<T> {
    pub(crate) fn spawn(future: impl Future<Output = T> + 'static) -> Self {
        let future: Boxed<'static, T> = Box::pin(future);
        let future = Rc::new(RefCell::new(Some(future)));
        let polled = future.clone();
        let task = spawn(poll_fn(move |cx| match &mut *polled.borrow_mut() {
            Some(future) => future.as_mut().poll(cx).map(Some),
            None => Poll::Ready(None),
        }));
        Self { future, task }
    }

    /// Drops the future, here and now, and gives the task.
    pub(crate) fn kill(self) -> Task<Option<T>> {
        let future = self.future.take();
        drop(future);
        self.task
    }
}
