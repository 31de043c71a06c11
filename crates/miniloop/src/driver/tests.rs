//! One contract, and every driver that this system has put to it.

#[cfg(target_os = "linux")]
mod on_epoll;
mod on_poll;
