//! Values that travel with a task: to what it calls, and to what it schedules.
//!
//! asyncio's context variables. There a task has a copy of its maker's context and changes it; here a value is bound for the time of a
//! future or a call, and everything spawned or scheduled inside inherits it, so nobody has to take it back. `engine/locals.rs` carries it.

use std::any::Any;
use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use crate::engine::locals::{self, InLocals, Locals};

/// A value that everything done on behalf of something can see: the id of the request, say, for every line that is logged.
///
/// ```
/// use miniloop::{TaskLocal, spawn};
///
/// static REQUEST: TaskLocal<u64> = TaskLocal::new();
///
/// async fn log(what: &str) -> String {
///     format!("request {:?}: {what}", REQUEST.get())
/// }
///
/// miniloop::run(async {
///     let line = REQUEST.scope(7, async { spawn(log("spawned")).await.unwrap() }).await;
///     assert_eq!(line, "request Some(7): spawned");
///     assert_eq!(REQUEST.get(), None);
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
///
/// Tasks, members of groups, callbacks, timers and readers see what was bound where they were made, and the
/// [error handler](crate::LoopHandle::on_error) what the failed one saw. What goes to other threads takes no values along:
/// [`Remote`](crate::Remote), [`spawn_blocking`](crate::spawn_blocking()) and [`Worker`](crate::thread::Worker) start without.
///
/// It costs two small allocations to bind a value, and nothing where none is bound.
#[doc(alias = "ContextVar")]
#[doc(alias = "contextvars")]
pub struct TaskLocal<T> {
    /// Zero until it is used for the first time.
    key: AtomicU64,
    _binds: PhantomData<fn() -> T>,
}

impl<T: 'static> TaskLocal<T> {
    /// A name for values of the type, for a `static`. A `const` of it would be another name at each use.
    #[expect(clippy::new_without_default, reason = "it is a name, and made once")]
    pub const fn new() -> TaskLocal<T> {
        TaskLocal { key: AtomicU64::new(0), _binds: PhantomData }
    }

    /// Binds `value` for `future`: while it is polled, and while it is dropped if it had begun.
    ///
    /// # Cancellation
    /// As that of `future`.
    pub fn scope<F: Future>(&self, value: T, future: F) -> impl Future<Output = F::Output> + use<T, F> {
        let binding = Binding::new(self.key(), value);
        async move {
            let mut scoped = Scoped { binding, future: pin!(Some(future)) };
            poll_fn(|cx| scoped.poll(cx)).await
        }
    }

    /// Binds `value` for a call.
    ///
    /// ```
    /// # use miniloop::{LoopHandle, TaskLocal};
    /// static REQUEST: TaskLocal<u64> = TaskLocal::new();
    /// # miniloop::run(async {
    /// REQUEST.scope_sync(7, || {
    ///     LoopHandle::current().call_soon(|| assert_eq!(REQUEST.get(), Some(7)));
    /// });
    /// # miniloop::yield_now().await;
    /// # }).unwrap();
    /// ```
    pub fn scope_sync<R>(&self, value: T, call: impl FnOnce() -> R) -> R {
        let mut binding = Binding::new(self.key(), value);
        let _in = binding.enter();
        call()
    }

    /// Looks at the value; `None` where none is bound.
    pub fn with<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        let locals = locals::current();
        // Whoever looks may end the scope, so the list is held meanwhile.
        locals::find(&locals, self.key())?.downcast_ref().map(look)
    }

    /// The value; `None` where none is bound.
    pub fn get(&self) -> Option<T>
    where
        T: Clone,
    {
        self.with(T::clone)
    }

    fn key(&self) -> u64 {
        static KEYS: AtomicU64 = AtomicU64::new(1);
        // Relaxed: nothing but the number itself depends on it.
        match self.key.load(Ordering::Relaxed) {
            0 => {
                let fresh = KEYS.fetch_add(1, Ordering::Relaxed);
                self.key.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed).map_or_else(|taken| taken, |_| fresh)
            }
            key => key,
        }
    }
}

impl<T> fmt::Debug for TaskLocal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskLocal").finish_non_exhaustive()
    }
}

/// A value, and the list that has it on top of what was around it last.
struct Binding {
    key: u64,
    value: Rc<dyn Any>,
    outer: Locals,
    inner: Locals,
}

impl Binding {
    fn new<T: 'static>(key: u64, value: T) -> Binding {
        Binding { key, value: Rc::new(value), outer: None, inner: None }
    }

    fn enter(&mut self) -> InLocals {
        let around = locals::current();
        // A future may be polled by another task than last time.
        if self.inner.is_none() || !locals::is_same(&around, &self.outer) {
            self.inner = locals::bind(&around, self.key, self.value.clone());
            self.outer = around;
        }
        locals::enter(self.inner.clone())
    }
}

struct Scoped<'a, F> {
    binding: Binding,
    future: Pin<&'a mut Option<F>>,
}

impl<F: Future> Scoped<'_, F> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<F::Output> {
        let _in = self.binding.enter();
        self.future.as_mut().as_pin_mut().expect("only the destructor takes the future").poll(cx)
    }
}

impl<F> Drop for Scoped<'_, F> {
    fn drop(&mut self) {
        let _in = self.binding.enter();
        self.future.set(None);
    }
}
