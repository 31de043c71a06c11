//! What members and bodies of task groups may end with, and who owns a failure (G3).
//!
//! The traits are sealed and exist for inference: they let `()` and `Result` stand side by side, and let the compiler find the error type
//! of a group in whichever of its members names it.

use std::convert::Infallible;

use crate::group::error::GroupError;
use crate::outcome::Never;

/// The end of a member of a [task group](crate::task_group) whose errors are `E`: `()`, `Result<T, E>`, or never.
///
/// The trait is sealed.
#[diagnostic::on_unimplemented(
    message = "a member of this task group cannot end with `{Self}`",
    label = "this group's members end with `()` or with a `Result<_, {E}>`",
    note = "the error of the members is that of the body: let both be the same type"
)]
pub trait ChildOutput<E>: sealed::Sealed {
    /// What the [`Child`](crate::Child) is awaited for.
    type Value;

    #[doc(hidden)]
    fn into_result(self) -> Result<Self::Value, E>;
}

impl<E> ChildOutput<E> for () {
    type Value = ();

    fn into_result(self) -> Result<(), E> {
        Ok(())
    }
}

impl<E> ChildOutput<E> for Never {
    type Value = Never;

    fn into_result(self) -> Result<Never, E> {
        self
    }
}

impl<T, E> ChildOutput<E> for Result<T, E> {
    type Value = T;

    fn into_result(self) -> Result<T, E> {
        self
    }
}

/// The end of the body of a [task group](crate::task_group) whose errors are `E`: `Result<T, E>`, or, when nobody in the group can fail,
/// `()` or never.
///
/// The trait is sealed.
#[diagnostic::on_unimplemented(
    message = "the body of a task group whose members fail with `{E}` cannot end with `{Self}`",
    note = "where a member can fail the body ends with a `Result` of the same error, if only with `Ok(())`",
    note = "where nobody can it ends with `()`, or with `Ok::<_, Infallible>(value)` to give back a value"
)]
pub trait BodyOutput<E>: sealed::Sealed {
    /// What the body makes.
    type Value;
    /// What the group ends with: `()`, or `Result<T, GroupError<E>>`.
    type Joined;

    #[doc(hidden)]
    fn into_result(self) -> Result<Self::Value, E>;

    #[doc(hidden)]
    fn join(result: Result<Self::Value, GroupError<E>>) -> Self::Joined;
}

impl BodyOutput<Infallible> for () {
    type Value = ();
    type Joined = ();

    fn into_result(self) -> Result<(), Infallible> {
        Ok(())
    }

    /// An error says at most that the group was cancelled, and then it has ended as it was to.
    fn join(_: Result<(), GroupError<Infallible>>) {}
}

impl BodyOutput<Infallible> for Never {
    type Value = Never;
    type Joined = ();

    fn into_result(self) -> Result<Never, Infallible> {
        self
    }

    fn join(_: Result<Never, GroupError<Infallible>>) {}
}

impl<T, E> BodyOutput<E> for Result<T, E> {
    type Value = T;
    type Joined = Result<T, GroupError<E>>;

    fn into_result(self) -> Result<T, E> {
        self
    }

    fn join(result: Result<T, GroupError<E>>) -> Result<T, GroupError<E>> {
        result
    }
}

mod sealed {
    use crate::outcome::Never;

    pub trait Sealed {}
    impl Sealed for () {}
    impl Sealed for Never {}
    impl<T, E> Sealed for Result<T, E> {}
}

/// How a member has ended, when it did not panic.
pub(super) enum Ended<V, E> {
    Value(V),
    Failed(E),
    Cancelled,
}

/// Takes the output of a member's future apart: into what its child gets, and what its group gets.
pub(super) trait Owner<O, E> {
    /// What the child is awaited for.
    type Value;
    /// Whether a failure is the child's while there is one.
    const IS_CHILD: bool;

    fn split(output: O) -> Ended<Self::Value, E>;

    /// The failure in a value that nobody will read.
    fn unread(value: Self::Value) -> Option<E>;
}

/// `spawn`: the group owns the failure.
pub(super) struct GroupOwns;

impl<E, O: ChildOutput<E>> Owner<O, E> for GroupOwns {
    type Value = O::Value;
    const IS_CHILD: bool = false;

    fn split(output: O) -> Ended<O::Value, E> {
        match output.into_result() {
            Ok(value) => Ended::Value(value),
            Err(error) => Ended::Failed(error),
        }
    }

    fn unread(value: O::Value) -> Option<E> {
        drop(value);
        None
    }
}

/// `spawn_caught`: the child owns the failure.
pub(super) struct ChildOwns;

impl<E, O: ChildOutput<E>> Owner<O, E> for ChildOwns {
    type Value = O;
    const IS_CHILD: bool = true;

    fn split(output: O) -> Ended<O, E> {
        Ended::Value(output)
    }

    fn unread(value: O) -> Option<E> {
        value.into_result().err()
    }
}

/// `spawn_task`: as `spawn`, and a task can also be cancelled by others than its group.
pub(super) struct TaskOwns;

impl<E, O: ChildOutput<E>> Owner<Option<O>, E> for TaskOwns {
    type Value = O::Value;
    const IS_CHILD: bool = false;

    fn split(output: Option<O>) -> Ended<O::Value, E> {
        output.map_or(Ended::Cancelled, GroupOwns::split)
    }

    fn unread(value: O::Value) -> Option<E> {
        drop(value);
        None
    }
}
