//! One contract, and every driver that this system has put to it.

mod epoll;
mod poll;
