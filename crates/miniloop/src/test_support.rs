//! What the unit tests share: wakers that say who was woken, in which order.

use std::mem;
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

/// The names of the wakers woken so far.
#[derive(Clone, Default)]
pub(crate) struct WakeLog(Arc<Mutex<String>>);

impl WakeLog {
    /// A waker that writes its name into the log.
    pub(crate) fn waker(&self, name: &'static str) -> Waker {
        Waker::from(Arc::new(Named { name, log: self.clone() }))
    }

    /// The names written since the last call.
    pub(crate) fn take(&self) -> String {
        mem::take(&mut self.0.lock().unwrap())
    }
}

struct Named {
    name: &'static str,
    log: WakeLog,
}

impl Wake for Named {
    fn wake(self: Arc<Self>) {
        self.log.0.lock().unwrap().push_str(self.name);
    }
}
