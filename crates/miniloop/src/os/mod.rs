//! What the systems have in different forms: descriptors that do not block and that no child inherits, and what only one of them knows.
//!
//! One file for Linux, one for every other Unix, with the same names; what uses them need not ask. The driver and the doorbell have such
//! pairs of their own. Next: `../net/system_calls.rs`, the largest user.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other_unix;

#[cfg(target_os = "linux")]
pub(crate) use self::linux::*;
#[cfg(not(target_os = "linux"))]
pub(crate) use self::other_unix::*;
