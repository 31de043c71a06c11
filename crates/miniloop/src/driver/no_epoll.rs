//! In place of `epoll.rs` where the system has no epoll: nobody can make one, so nothing of it ever runs.

use std::io;
use std::os::fd::{BorrowedFd, RawFd};

use rustix::event::Timespec;

use super::source::{Interest, Readiness};

pub(super) const IS_AVAILABLE: bool = false;

pub(super) enum Epoll {}

impl Epoll {
    pub(super) fn new() -> io::Result<Self> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no epoll: use `DriverKind::Poll`"))
    }

    pub(super) fn add_edge(&self, _fd: BorrowedFd<'_>, _token: u64) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn add_doorbell(&self, _fd: BorrowedFd<'_>, _token: u64) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn add_level(&self, _fd: BorrowedFd<'_>, _token: u64, _interest: Interest) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn modify_level(&self, _fd: BorrowedFd<'_>, _token: u64, _interest: Interest) -> io::Result<bool> {
        match *self {}
    }

    pub(super) fn narrow(&self, _number: RawFd, _token: u64, _interest: Interest) {
        match *self {}
    }

    pub(super) fn wait(&mut self, _timeout: Option<&Timespec>) -> io::Result<()> {
        match *self {}
    }

    pub(super) fn is_full(&self) -> bool {
        match *self {}
    }

    pub(super) fn event_count(&self) -> usize {
        match *self {}
    }

    pub(super) fn event(&self, _index: usize) -> (u64, Readiness) {
        match *self {}
    }

    pub(super) fn pollable(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}
