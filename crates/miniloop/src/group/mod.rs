//! Task groups: several futures that borrow from the function around them and never outlive it.
//!
//! The ideas are Trio's nurseries and asyncio's `TaskGroup`; that members may borrow is `std::thread::scope`'s. The rules G1 to G8 stand in
//! `ARCHITECTURE.md`. Files in reading order: what members may end with, who is in a group, one member, its handle, the handle of the
//! group, and the future that runs it all.
//!
//! A member costs a slot of the loop and one allocation, of about 200 bytes beside its future: to spawn it, poll it twice and let it end
//! takes as long as it does for a task.

pub(crate) mod error;
pub(crate) mod output;
pub(crate) mod roster;
pub(crate) mod member;
pub(crate) mod child;
pub(crate) mod spawn;
pub(crate) mod run;

pub use child::Child;
pub use error::{GroupError, MemberFailure};
pub use output::{BodyOutput, ChildOutput};
pub use run::task_group;
pub use spawn::Group;
