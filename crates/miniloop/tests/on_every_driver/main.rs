//! I/O as programs see it, over the real kernel: one set of bodies, built once for each driver that this system has.
//!
//! A test is a plain function in one of the files that `bodies.rs` lists; it makes its loops with [`bodies::event_loop`] or
//! [`bodies::manual`]. `cargo test -p miniloop --test on_every_driver on_poll` runs those of one driver.

#[path = "../support/mod.rs"]
mod support;

#[cfg(target_os = "linux")]
mod on_epoll;
mod on_poll;
