//! Buffered readers and writers, on streams that give and take what a script says, and on the kernel's.

mod reading;
mod scripted;
mod transfers;
mod writing;
