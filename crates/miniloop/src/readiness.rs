//! Any descriptor on the loop: the tool for those that this crate has no type for.
//!
//! A [`Readiness`] waits and does nothing else; what is read and written, and how, is its user's. Inside, the descriptor is watched
//! edge-triggered, and that must not show. The kernel says once that something has come; a user who reads a part of it, or lets a C library
//! read it, does not tell us what is left. So `readable` does not trust what it remembers: it asks `poll(2)`, and waits if that says no.
//! `read_with` saves this question, because a closure that finds nothing says so.
//!
//! It must not know what the descriptor is. Cost: one system call for `readable` and `writable`, none for `read_with` and `write_with`
//! beyond that of the closure. Next: `byte_stream.rs`, for those that hold bytes.

use std::fmt;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::FusedFuture;
use futures_io::{AsyncRead, AsyncWrite};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::driver::{Direction, Kind};
use crate::os;
use crate::registration::{Place, Registration};

/// Something with a descriptor, watched by the loop: named pipes, terminals, inotify, netlink, tun devices, sockets of other libraries.
///
/// It belongs to the loop under which it was made, which watches the descriptor until this is dropped or [taken
/// apart](Self::into_inner). Regular files cannot be watched, by anybody: they are always ready.
///
/// There are two ways to use it. With [`readable`](Self::readable) and [`writable`](Self::writable) one waits, and then does what one
/// likes with the thing; they ask the kernel each time. With [`read_with`](Self::read_with) and [`write_with`](Self::write_with) one hands
/// over the system call. Then the descriptor **must not block**, which is the caller's to arrange, since the flag is shared by all
/// processes that have the same open file: a call that blocks stops the loop.
///
/// If reading is a method of `&T` ([`Read`] for `&T`, as for `File`), this is an `AsyncRead`, and so for writing.
///
/// A named pipe:
///
/// ```
/// use std::fs::OpenOptions;
/// use std::os::unix::fs::OpenOptionsExt;
///
/// use futures_util::{AsyncReadExt, AsyncWriteExt};
/// use miniloop::Readiness;
///
/// # let path = std::env::temp_dir().join(format!("miniloop-fifo-{}", std::process::id()));
/// # std::process::Command::new("mkfifo").arg(&path).status()?;
/// miniloop::run(async {
///     let nonblocking = 0o4000; // O_NONBLOCK
///     let mut reader = Readiness::new(OpenOptions::new().read(true).custom_flags(nonblocking).open(&path)?)?;
///     let mut writer = Readiness::new(OpenOptions::new().write(true).custom_flags(nonblocking).open(&path)?)?;
///     writer.write_all(b"hello").await?;
///     drop(writer);
///     let mut text = String::new();
///     reader.read_to_string(&mut text).await?;
///     assert_eq!(text, "hello");
///     Ok::<(), std::io::Error>(())
/// })??;
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "AsyncFd")]
#[doc(alias = "add_reader")]
#[doc(alias = "wait_readable")]
#[doc(alias = "connect_read_pipe")]
pub struct Readiness<T: AsFd> {
    // Before the descriptor: the driver forgets the number before it is closed.
    registration: Registration,
    inner: T,
}

impl<T: AsFd> Readiness<T> {
    /// Has the loop watch the descriptor of `inner`, both directions.
    ///
    /// # Errors
    /// [`PermissionDenied`](io::ErrorKind::PermissionDenied) for what cannot be watched: regular files, directories, `/dev/null`.
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) when the loop watches this descriptor already.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub fn new(inner: T) -> io::Result<Self> {
        let registration = Registration::new(inner.as_fd(), Kind::Other, true)?;
        Ok(Self { registration, inner })
    }

    /// Waits until there is something to read, the end, or an error; does not read it. It asks the kernel, so it may be used with code that
    /// reads by itself, a part of what is there or all.
    ///
    /// ```
    /// use std::io::Read;
    /// use std::os::unix::net::UnixStream;
    ///
    /// use miniloop::Readiness;
    ///
    /// # let mut event_loop = miniloop::EventLoop::new()?;
    /// # event_loop.run_until_complete(async {
    /// let (ours, theirs) = UnixStream::pair()?;
    /// let ours = Readiness::new(ours)?;
    /// miniloop::LoopHandle::current().call_soon(move || drop(theirs));
    /// ours.readable().await?;
    /// assert_eq!(ours.get_ref().read(&mut [0; 8])?, 0, "the end");
    /// # Ok::<(), std::io::Error>(())
    /// # })??;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The loop has been closed.
    ///
    /// # Cancellation
    /// Nothing is lost: nothing has been read.
    pub fn readable(&self) -> impl FusedFuture<Output = io::Result<()>> + Unpin + '_ {
        self.registration.io(Direction::Read, || look(self.inner.as_fd(), Direction::Read))
    }

    /// Waits until there is room to write, or an error.
    ///
    /// ```
    /// # use std::os::unix::net::UnixStream;
    /// # miniloop::run(async {
    /// # let (ours, theirs) = UnixStream::pair()?;
    /// let ours = miniloop::Readiness::new(ours)?;
    /// ours.writable().await?;
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// The loop has been closed.
    ///
    /// # Cancellation
    /// Nothing is lost: nothing has been written.
    pub fn writable(&self) -> impl FusedFuture<Output = io::Result<()>> + Unpin + '_ {
        self.registration.io(Direction::Write, || look(self.inner.as_fd(), Direction::Write))
    }

    /// Calls `call` until it finds something: at once, and after each event for as long as it returns
    /// [`WouldBlock`](io::ErrorKind::WouldBlock). It must not block, and must find nothing only if there is nothing.
    ///
    /// ```
    /// use std::io::{Read, Write};
    /// use std::os::unix::net::UnixStream;
    ///
    /// use miniloop::Readiness;
    ///
    /// # miniloop::run(async {
    /// let (ours, mut theirs) = UnixStream::pair()?;
    /// ours.set_nonblocking(true)?;
    /// let ours = Readiness::new(ours)?;
    /// theirs.write_all(b"hello")?;
    /// let mut buffer = [0; 16];
    /// let len = ours.read_with(|mut socket| socket.read(&mut buffer)).await?;
    /// assert_eq!(&buffer[..len], b"hello");
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// What `call` returns. `Interrupted` is no error: the call is repeated.
    ///
    /// # Cancellation
    /// `call` has not succeeded if the future is dropped before it is done.
    pub fn read_with<'a, R: 'a>(
        &'a self,
        mut call: impl FnMut(&T) -> io::Result<R> + 'a,
    ) -> impl FusedFuture<Output = io::Result<R>> + Unpin + 'a {
        self.registration.io(Direction::Read, move || call(&self.inner))
    }

    /// [`read_with`](Self::read_with) for what writes.
    ///
    /// ```
    /// # use std::io::{Read, Write};
    /// # use std::os::unix::net::UnixStream;
    /// # miniloop::run(async {
    /// # let (ours, mut theirs) = UnixStream::pair()?;
    /// # ours.set_nonblocking(true)?;
    /// # let ours = miniloop::Readiness::new(ours)?;
    /// let len = ours.write_with(|mut socket| socket.write(b"hello")).await?;
    /// # theirs.read_exact(&mut [0; 5][..len])?;
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// What `call` returns. `Interrupted` is no error: the call is repeated.
    ///
    /// # Cancellation
    /// As [`read_with`](Self::read_with).
    pub fn write_with<'a, R: 'a>(
        &'a self,
        mut call: impl FnMut(&T) -> io::Result<R> + 'a,
    ) -> impl FusedFuture<Output = io::Result<R>> + Unpin + 'a {
        self.registration.io(Direction::Write, move || call(&self.inner))
    }

    /// Calls `call` now, once; that it would block is remembered, so that the next [`read_with`](Self::read_with) waits at once.
    ///
    /// # Errors
    /// What `call` returns. `Interrupted` is no error: the call is repeated.
    #[doc(alias = "try_io")]
    pub fn try_read_with<R>(&self, mut call: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        self.registration.try_io(Direction::Read, || call(&self.inner))
    }

    /// [`try_read_with`](Self::try_read_with) for what writes.
    ///
    /// # Errors
    /// What `call` returns. `Interrupted` is no error: the call is repeated.
    #[doc(alias = "try_io")]
    pub fn try_write_with<R>(&self, mut call: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        self.registration.try_io(Direction::Write, || call(&self.inner))
    }

    /// [`read_with`](Self::read_with) for hand-written futures. The last caller is woken, and `AsyncRead` counts as one.
    pub fn poll_read_with<R>(&self, cx: &mut Context<'_>, mut call: impl FnMut(&T) -> io::Result<R>) -> Poll<io::Result<R>> {
        self.registration.poll_io(Direction::Read, Place::Alone, cx, || call(&self.inner))
    }

    /// [`write_with`](Self::write_with) for hand-written futures. The last caller is woken, and `AsyncWrite` counts as one.
    pub fn poll_write_with<R>(&self, cx: &mut Context<'_>, mut call: impl FnMut(&T) -> io::Result<R>) -> Poll<io::Result<R>> {
        self.registration.poll_io(Direction::Write, Place::Alone, cx, || call(&self.inner))
    }

    /// What is watched.
    pub fn get_ref(&self) -> &T {
        &self.inner
    }

    /// What is watched. Exchanging it for another does not make the other one watched.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    /// Ends the watching.
    pub fn into_inner(self) -> T {
        drop(self.registration);
        self.inner
    }
}

/// Asks the kernel. Nobody has been told of an event that `poll(2)` does not know of.
///
/// # Errors
/// `WouldBlock` if it is not ready.
pub(crate) fn look(fd: BorrowedFd<'_>, direction: Direction) -> io::Result<()> {
    let flags = match direction {
        Direction::Read => os::POLL_READ,
        Direction::Write => PollFlags::OUT,
    };
    // Hang-up and errors are said unasked, and concern both directions.
    match poll(&mut [PollFd::from_borrowed_fd(fd, flags)], Some(&AT_ONCE))? {
        0 => Err(io::ErrorKind::WouldBlock.into()),
        _ => Ok(()),
    }
}

const AT_ONCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

impl<T: AsFd> AsyncRead for Readiness<T>
where
    for<'a> &'a T: Read,
{
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.poll_read_with(cx, |mut inner| inner.read(buffer))
    }

    fn poll_read_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, buffers: &mut [IoSliceMut<'_>]) -> Poll<io::Result<usize>> {
        self.poll_read_with(cx, |mut inner| inner.read_vectored(buffers))
    }
}

impl<T: AsFd> AsyncWrite for Readiness<T>
where
    for<'a> &'a T: Write,
{
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |mut inner| inner.write(bytes))
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |mut inner| inner.write_vectored(slices))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_write_with(cx, |mut inner| inner.flush())
    }

    /// Flushes. The end of the thing is its owner's to make, by dropping it.
    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

/// Nothing is pinned to its place: the thing is only lent.
impl<T: AsFd> Unpin for Readiness<T> {}

impl<T: AsFd> AsFd for Readiness<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

impl<T: AsFd> AsRawFd for Readiness<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.inner.as_fd().as_raw_fd()
    }
}

impl<T: AsFd + fmt::Debug> fmt::Debug for Readiness<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Readiness").field(&self.inner).finish()
    }
}
