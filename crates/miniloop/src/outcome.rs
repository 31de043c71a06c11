//! What nobody needs to read: the values that a callback or a detached task may end with.
//!
//! A loop can only be trusted with a value when losing it loses nothing. So a callback returns `()`, "go on or stop", a `Result` whose
//! error can be printed, or nothing at all because it never returns. Anything else does not compile: the value would vanish without a
//! trace.

use std::any::Any;
use std::fmt::Debug;
use std::ops::ControlFlow;

/// The end of a callback or of a detached task: one of `()`, [`ControlFlow<()>`], `Result<impl Outcome, impl Debug>` and `!`.
///
/// An error is reported to [`LoopHandle::on_error`](crate::LoopHandle::on_error). A repeating callback goes away on `Break` and stays on
/// everything else, also after an error.
///
/// The trait is sealed.
#[diagnostic::on_unimplemented(
    message = "nobody would read a value of type `{Self}` here",
    note = "a callback or a detached task ends with `()`, `ControlFlow<()>`, a `Result` of these, or never",
    note = "end it with `;`, or await the task"
)]
pub trait Outcome: sealed::Sealed {
    #[doc(hidden)]
    fn into_flow(self) -> Flow;
}

/// A callback's outcome, taken apart.
pub(crate) type Flow = Result<ControlFlow<()>, Failure>;

/// Why a job failed.
#[doc(hidden)]
#[derive(Debug)]
pub enum Failure {
    /// It returned an error, which prints like this.
    Error(String),
    /// It panicked with this payload.
    Panic(Box<dyn Any + Send>),
}

/// The type of an expression that never ends. Its name `!` is not stable where a type is wanted, but the output of `fn() -> !` is that
/// type.
pub(crate) type Never = <fn() -> ! as sealed::HasOutput>::Output;

impl Outcome for () {
    fn into_flow(self) -> Flow {
        Ok(ControlFlow::Continue(()))
    }
}

impl Outcome for ControlFlow<()> {
    fn into_flow(self) -> Flow {
        Ok(self)
    }
}

impl Outcome for Never {
    fn into_flow(self) -> Flow {
        self
    }
}

impl<T: Outcome, E: Debug> Outcome for Result<T, E> {
    fn into_flow(self) -> Flow {
        match self {
            Ok(outcome) => outcome.into_flow(),
            Err(error) => Err(Failure::Error(format!("{error:?}"))),
        }
    }
}

mod sealed {
    use super::{ControlFlow, Debug, Never};

    pub trait Sealed {}
    impl Sealed for () {}
    impl Sealed for ControlFlow<()> {}
    impl Sealed for Never {}
    impl<T: super::Outcome, E: Debug> Sealed for Result<T, E> {}

    pub trait HasOutput {
        type Output;
    }
    impl<T> HasOutput for fn() -> T {
        type Output = T;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(outcome: impl Outcome, expected: &str) {
        assert_eq!(format!("{:?}", outcome.into_flow()), expected);
    }

    #[test]
    fn an_outcome_says_go_on_stop_or_failed() {
        check((), "Ok(Continue(()))");
        check(ControlFlow::Break(()), "Ok(Break(()))");
        check(Ok::<_, u8>(ControlFlow::Break(())), "Ok(Break(()))");
        check(Ok::<Result<(), u8>, u8>(Err(3)), "Err(Error(\"3\"))");
        check(Err::<(), _>("no such room"), "Err(Error(\"\\\"no such room\\\"\"))");
    }

    #[test]
    fn a_callback_that_never_returns_has_an_outcome() {
        fn accepts<O: Outcome>(_: impl FnOnce() -> O) {}
        accepts(|| panic!("never called"));
    }
}
