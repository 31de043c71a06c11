//! The reference loop's results: what tasks and promises have in common, from the first waiter to the last reader.
//!
//! O8 stands here: those who wait are told in the order in which they began to wait, through the queue. So does "failures never
//! disappear": a failure that nobody can read any more becomes a report.

use super::{Model, Wake};
use crate::model::program::Body;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Task(usize),
    Promise(usize),
}

/// The result of a task or a promise.
pub(super) struct Completion {
    pub(super) value: Option<String>,
    /// The program can still reach the handle.
    pub(super) held: bool,
    /// Awaiting it makes one more reader instead of taking the handle away.
    pub(super) shared: bool,
    /// Handles, awaits and callbacks that could still read the value. When the last one goes, the task or promise is cancelled.
    pub(super) readers: usize,
    read: bool,
    /// `detach`: the loop reads it.
    detached: bool,
    waiters: Vec<Wake>,
}

impl Default for Completion {
    fn default() -> Self {
        Self { value: None, held: true, shared: false, readers: 1, read: false, detached: false, waiters: Vec::new() }
    }
}

impl Model {
    pub(super) fn completion(&mut self, source: Source) -> &mut Completion {
        match source {
            Source::Task(id) => &mut self.tasks[id].completion,
            Source::Promise(id) => &mut self.promises[id],
        }
    }

    // ---- readers

    pub(super) fn add_reader(&mut self, source: Source) {
        let completion = self.completion(source);
        completion.held = completion.shared;
        completion.readers += usize::from(completion.shared);
    }

    pub(super) fn on_done(&mut self, source: Option<Source>, body: &Body) {
        let Some(source) = source else { return };
        let id = self.new_handle(body);
        self.callbacks[id].reads = Some(source);
        self.add_reader(source);
        self.wait_for(source, Wake::Callback(id));
        self.tell_waiters(source);
        if self.closing {
            self.drop_callback(id);
        }
    }

    pub(super) fn share(&mut self, source: Option<Source>) {
        if let Some(source) = source {
            self.completion(source).shared = true;
        }
    }

    pub(super) fn detach(&mut self, task: Source) {
        let completion = self.completion(task);
        if !completion.shared {
            completion.held = false;
            completion.detached = true;
            self.report_unread(task);
        }
    }

    pub(super) fn drop_handle(&mut self, source: Option<Source>) {
        if let Some(source) = source {
            self.completion(source).held = false;
            self.release(source);
        }
    }

    /// A reader takes the value with it.
    pub(super) fn read(&mut self, source: Source) -> String {
        let completion = self.completion(source);
        completion.read = true;
        completion.readers -= 1;
        let value = completion.value.clone().unwrap_or_default();
        match source {
            Source::Task(id) => format!("task {id} is {value}"),
            Source::Promise(id) => format!("promise {id} is {value}"),
        }
    }

    /// A reader goes away without the value.
    pub(super) fn release(&mut self, source: Source) {
        let completion = self.completion(source);
        completion.readers -= 1;
        if completion.readers == 0 {
            self.report_unread(source);
            self.cancel(source);
        }
    }

    pub(super) fn cancel(&mut self, source: Source) {
        if let (Source::Task(id), None) = (source, &self.completion(source).value) {
            self.cancel_task(id);
        }
    }

    // ---- waiters

    /// O8: a waiter that polls again keeps its place.
    pub(super) fn wait_for(&mut self, source: Source, waiter: Wake) {
        let waiters = &mut self.completion(source).waiters;
        if !waiters.contains(&waiter) {
            waiters.push(waiter);
        }
    }

    pub(super) fn forget_waiter(&mut self, source: Source, waiter: Wake) {
        self.completion(source).waiters.retain(|&other| other != waiter);
    }

    pub(super) fn complete(&mut self, source: Source, value: String) {
        let completion = self.completion(source);
        completion.value = Some(value);
        let cancelled_promise = matches!(source, Source::Promise(_)) && completion.readers == 0;
        self.tell_waiters(source);
        if !cancelled_promise {
            self.report_unread(source);
        }
    }

    /// O8: in registration order, through the queue.
    fn tell_waiters(&mut self, source: Source) {
        if self.completion(source).value.is_some() {
            for waiter in std::mem::take(&mut self.completion(source).waiters) {
                self.wake(waiter);
            }
        }
    }

    /// Reports a failure once nobody can read it: a panic, a promise's error, and of a detached task also the error it returned.
    fn report_unread(&mut self, source: Source) {
        let Completion { value: Some(value), read: false, readers, detached, .. } = self.completion(source) else { return };
        let (unread, detached) = (*readers == 0 || *detached, *detached);
        let report = match (source, value.as_str()) {
            (Source::Task(id), "panicked") => format!("report: task {id} panics"),
            (Source::Task(id), "failed") if detached => format!("report: task {id} fails"),
            (Source::Promise(_), error) if error.starts_with("error") => format!("report: {error}"),
            _ => return,
        };
        if unread {
            self.report(report);
        }
    }
}
