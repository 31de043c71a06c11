//! What went wrong in a task group, in the order in which it did.

use std::error::Error;
use std::fmt::{self, Debug, Display};
use std::panic::Location;

/// Why a [task group](crate::task_group) has no value: the errors of its body and its members, the first one first.
///
/// It holds none when somebody called [`Group::cancel`](crate::Group::cancel) before the body had its value.
///
/// ```
/// miniloop::run(async {
///     let failed = miniloop::task_group(async |g| {
///         g.spawn(async { "7".parse::<i32>() });
///         g.spawn(async { "seven".parse::<i32>() }).named("speller");
///         Ok(())
///     })
///     .await
///     .unwrap_err();
///     assert_eq!(failed.to_string(), "member `speller` failed: invalid digit found in string");
///     assert_eq!(failed.into_first(), Some("seven".parse::<i32>().unwrap_err()));
/// })?;
/// # Ok::<(), miniloop::LoopError>(())
/// ```
#[doc(alias = "ExceptionGroup")]
#[derive(Debug)]
pub struct GroupError<E> {
    pub(super) failures: Vec<MemberFailure<E>>,
}

impl<E> GroupError<E> {
    /// The error that ended the group.
    pub fn first(&self) -> Option<&E> {
        self.failures.first().map(MemberFailure::error)
    }

    /// The same, to keep. The others are dropped.
    pub fn into_first(self) -> Option<E> {
        self.failures.into_iter().next().map(MemberFailure::into_error)
    }

    /// All failures, in the order in which they happened.
    pub fn iter(&self) -> std::slice::Iter<'_, MemberFailure<E>> {
        self.failures.iter()
    }

    /// Nobody failed: the group was cancelled before its body had a value.
    pub fn is_cancelled(&self) -> bool {
        self.failures.is_empty()
    }
}

impl<E> IntoIterator for GroupError<E> {
    type Item = MemberFailure<E>;
    type IntoIter = std::vec::IntoIter<MemberFailure<E>>;

    fn into_iter(self) -> Self::IntoIter {
        self.failures.into_iter()
    }
}

impl<'a, E> IntoIterator for &'a GroupError<E> {
    type Item = &'a MemberFailure<E>;
    type IntoIter = std::slice::Iter<'a, MemberFailure<E>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<E: Display> Display for GroupError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.failures[..] {
            [] => f.write_str("the task group was cancelled"),
            [failure] => write!(f, "{failure}"),
            [failure, others @ ..] => write!(f, "{failure} (and {} more)", others.len()),
        }
    }
}

// Without a `source`, so that errors that are no `Error` themselves, `Box<dyn Error>` and `String`, may be those of a group.
impl<E: Debug + Display> Error for GroupError<E> {}

/// One error of a [`GroupError`], with who returned it.
#[derive(Debug)]
pub struct MemberFailure<E> {
    pub(super) error: E,
    pub(super) subject: String,
    pub(super) place: &'static Location<'static>,
    pub(super) was_cancelling: bool,
}

impl<E> MemberFailure<E> {
    /// The error.
    pub fn error(&self) -> &E {
        &self.error
    }

    /// The error, to keep.
    pub fn into_error(self) -> E {
        self.error
    }

    /// Whether the group was ending already: the error of a member that was being cancelled, probably no cause of anything.
    pub fn was_cancelling(&self) -> bool {
        self.was_cancelling
    }

    /// Who failed: ``member `reader` ``, ``member `member-3` `` or `body of a task group`.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The line that spawned the member.
    pub fn place(&self) -> &'static Location<'static> {
        self.place
    }
}

impl<E: Display> Display for MemberFailure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.subject, self.error)
    }
}
