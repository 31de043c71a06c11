//! Where reports end: with the error handler, or in the log.
//!
//! A handler that fails itself must not hide what it was told, so both failures are logged then. Nothing in here can fail further.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::engine::core::Core;
use crate::engine::locals;
use crate::outcome::Failure;
use crate::panic_payload::PanicPayload;
use crate::report::{Report, ReportKind, log_error};

/// Gives the oldest waiting report to the error handler. False when none was waiting.
pub(crate) fn deliver_next(core: &Core) -> bool {
    let report = core.reports.borrow_mut().pop_front();
    let Some((report, locals)) = report else { return false };
    let place = report.place();
    // Caught once more: the destructors of a handler that replaced itself and of what was panicked with run in there.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| {
        let _locals = locals::enter(locals.clone());
        deliver(core, report);
    })) {
        core.report(Report::new(ReportKind::DropPanic, "error handler".to_owned(), place, PanicPayload::into_message(payload)));
    }
    core.drop_safely(locals, "task-local value", place);
    true
}

fn deliver(core: &Core, report: Report) {
    let handler = core.on_error.borrow().clone();
    let Some(handler) = handler else {
        report.log();
        return;
    };
    let handled = catch_unwind(AssertUnwindSafe(|| (handler.borrow_mut())(&report)));
    match handled.unwrap_or_else(|payload| Err(Failure::Panic(payload))) {
        Ok(ControlFlow::Continue(())) => {}
        Ok(ControlFlow::Break(())) => {
            // The first report for which the loop is to stop is the one that it stops with.
            let unheard = core.failure.borrow_mut().replace(Box::new(report));
            if let Some(first) = unheard {
                let second = core.failure.borrow_mut().replace(first);
                second.iter().for_each(|report| report.log());
            }
        }
        Err(failure) => {
            let message = match failure {
                Failure::Error(message) => message,
                Failure::Panic(payload) => PanicPayload::into_message(payload),
            };
            log_error(&format!("the error handler failed: {message}; it was told that {report}"));
        }
    }
}
