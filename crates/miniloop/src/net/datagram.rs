//! What datagram sockets of UDP and of Unix share: each call moves one whole message, or none.
//!
//! A buffer that is too small loses the rest of the message, so what was read says nothing of what is left: only a call that finds nothing
//! is proof.
//!
//! Next: `udp_socket.rs`, `unix_datagram.rs`.

use std::io;
use std::os::fd::AsFd;

use super::system_calls;
use crate::driver::Kind;
use crate::registration::Registration;

/// A datagram socket of the standard library, which does not block.
pub(super) trait DatagramSocket: AsFd {
    type Address;

    /// Takes a message, or looks at it, and says whose it is.
    fn receive_from(&self, buffer: &mut [u8], is_peek: bool) -> io::Result<(usize, Self::Address)>;
}

/// A socket of the system. The registration stands first: it is dropped before the descriptor is closed.
pub(super) struct OsDatagram<S> {
    pub(super) registration: Registration,
    pub(super) socket: S,
}

impl<S: DatagramSocket> OsDatagram<S> {
    #[track_caller]
    pub(super) fn new(socket: S) -> io::Result<Self> {
        let registration = Registration::new(socket.as_fd(), Kind::Other, true)?.reading(&"a datagram");
        Ok(Self { registration, socket })
    }

    /// Ends the watching.
    pub(super) fn into_socket(self) -> S {
        drop(self.registration);
        self.socket
    }

    pub(super) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        system_calls::send(&self.socket, bytes)
    }

    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        system_calls::receive(&self.socket, buffer)
    }

    pub(super) fn peek(&self, buffer: &mut [u8]) -> io::Result<usize> {
        system_calls::peek(&self.socket, buffer)
    }
}

/// The public methods that both have. The type has a private method `os`, which lends its [`OsDatagram`]; the hidden lines of the examples
/// make `ours` and `theirs`, connected to each other.
macro_rules! datagram_methods {
    ($type:ty, $address:ty, $ends:literal) => {
        const _: () = {
            use std::io::Result;
            use std::task::{Context, Poll};

            use futures_core::FusedFuture;

            use crate::driver::Direction;
            use crate::net::datagram::DatagramSocket;
            use crate::registration::Place;

            impl $type {
                /// Sends one message to the peer that the socket is connected to.
                ///
                #[doc = concat!("```\n# miniloop::run(async {\n", $ends, "
ours.send(b\"hello\").await?;
let mut buffer = [0; 16];
let len = theirs.recv(&mut buffer).await?;
assert_eq!(&buffer[..len], b\"hello\");
# Ok::<(), std::io::Error>(())
# }).unwrap().unwrap();\n```")]
                ///
                /// # Errors
                /// What `send` says: `NotConnected` or `InvalidInput` without a peer, `ConnectionRefused` when an earlier message found
                /// nobody there, and an error for a message that is too long.
                ///
                /// # Cancellation
                /// Nothing has been sent if the future is dropped before it is done.
                pub fn send<'a>(&'a self, message: &'a [u8]) -> impl FusedFuture<Output = Result<usize>> + Unpin + 'a {
                    let os = self.os();
                    os.registration.io(Direction::Write, || os.send(message))
                }

                /// Receives one message. What does not fit into `buffer` is lost.
                ///
                #[doc = concat!("```\n# miniloop::run(async {\n", $ends, "
ours.send(b\"first\").await?;
ours.send(b\"second\").await?;
let mut buffer = [0; 3];
assert_eq!(theirs.recv(&mut buffer).await?, 3);
assert_eq!(&buffer, b\"fir\");
assert_eq!(theirs.recv(&mut buffer).await?, 3);
assert_eq!(&buffer, b\"sec\");
# Ok::<(), std::io::Error>(())
# }).unwrap().unwrap();\n```")]
                ///
                /// Those who receive at the same time wait in line; each gets a message that the others do not get.
                ///
                /// # Errors
                /// What `recv` says, `ConnectionRefused` for instance, when an earlier message found nobody there.
                ///
                /// # Cancellation
                /// Nothing is lost: a message is taken only in the poll that returns it.
                pub fn recv<'a>(&'a self, buffer: &'a mut [u8]) -> impl FusedFuture<Output = Result<usize>> + Unpin + 'a {
                    let os = self.os();
                    os.registration.io(Direction::Read, || os.receive(buffer))
                }

                /// [`recv`](Self::recv) that says where the message comes from.
                ///
                #[doc = concat!("```\n# miniloop::run(async {\n", $ends, "
ours.send(b\"hello\").await?;
let mut buffer = [0; 16];
let (len, sender) = theirs.recv_from(&mut buffer).await?;
assert_eq!(&buffer[..len], b\"hello\");
assert_eq!(format!(\"{sender:?}\"), format!(\"{:?}\", ours.local_addr()?));
# Ok::<(), std::io::Error>(())
# }).unwrap().unwrap();\n```")]
                ///
                /// # Errors
                /// As [`recv`](Self::recv).
                ///
                /// # Cancellation
                /// As [`recv`](Self::recv).
                pub fn recv_from<'a>(&'a self, buffer: &'a mut [u8]) -> impl FusedFuture<Output = Result<(usize, $address)>> + Unpin + 'a {
                    let os = self.os();
                    os.registration.io(Direction::Read, || os.socket.receive_from(buffer, false))
                }

                /// [`recv`](Self::recv) that leaves the message where it is.
                ///
                #[doc = concat!("```\n# miniloop::run(async {\n", $ends, "
ours.send(b\"hello\").await?;
let mut buffer = [0; 16];
assert_eq!(theirs.peek(&mut buffer).await?, 5);
assert_eq!(theirs.recv(&mut buffer).await?, 5);
# Ok::<(), std::io::Error>(())
# }).unwrap().unwrap();\n```")]
                ///
                /// # Errors
                /// As [`recv`](Self::recv).
                ///
                /// # Cancellation
                /// Nothing is lost.
                pub fn peek<'a>(&'a self, buffer: &'a mut [u8]) -> impl FusedFuture<Output = Result<usize>> + Unpin + 'a {
                    let os = self.os();
                    os.registration.io(Direction::Read, || os.peek(buffer))
                }

                /// [`peek`](Self::peek) that says where the message comes from.
                ///
                /// # Errors
                /// As [`recv`](Self::recv).
                ///
                /// # Cancellation
                /// Nothing is lost.
                pub fn peek_from<'a>(&'a self, buffer: &'a mut [u8]) -> impl FusedFuture<Output = Result<(usize, $address)>> + Unpin + 'a {
                    let os = self.os();
                    os.registration.io(Direction::Read, || os.socket.receive_from(buffer, true))
                }

                /// Waits until [`try_recv`](Self::try_recv) is worth trying. It may be wrong once.
                ///
                /// # Errors
                /// The loop has been closed.
                ///
                /// # Cancellation
                /// Nothing is lost.
                pub fn readable(&self) -> impl FusedFuture<Output = Result<()>> + Unpin + '_ {
                    self.os().registration.io(Direction::Read, || Ok(()))
                }

                /// Waits until [`try_send`](Self::try_send) is worth trying. It may be wrong once.
                ///
                #[doc = concat!("```\n# miniloop::run(async {\n", $ends, "
ours.writable().await?;
ours.try_send(b\"hello\")?;
theirs.readable().await?;
assert_eq!(theirs.try_recv(&mut [0; 16])?, 5);
# Ok::<(), std::io::Error>(())
# }).unwrap().unwrap();\n```")]
                ///
                /// # Errors
                /// The loop has been closed.
                ///
                /// # Cancellation
                /// Nothing is lost.
                pub fn writable(&self) -> impl FusedFuture<Output = Result<()>> + Unpin + '_ {
                    self.os().registration.io(Direction::Write, || Ok(()))
                }

                /// [`readable`](Self::readable) for hand-written futures. The last caller is woken.
                pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
                    self.os().registration.poll_io(Direction::Read, Place::Alone, cx, || Ok(()))
                }

                /// [`writable`](Self::writable) for hand-written futures. The last caller is woken.
                pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<Result<()>> {
                    self.os().registration.poll_io(Direction::Write, Place::Alone, cx, || Ok(()))
                }

                /// Sends one message now, by one system call.
                ///
                /// # Errors
                /// `WouldBlock` if there is no room; else as [`send`](Self::send).
                pub fn try_send(&self, message: &[u8]) -> Result<usize> {
                    let os = self.os();
                    os.registration.try_io(Direction::Write, || os.send(message))
                }

                /// Receives a message that is there, by one system call.
                ///
                /// # Errors
                /// `WouldBlock` if there is none; else as [`recv`](Self::recv).
                pub fn try_recv(&self, buffer: &mut [u8]) -> Result<usize> {
                    let os = self.os();
                    os.registration.try_io(Direction::Read, || os.receive(buffer))
                }

                /// [`try_recv`](Self::try_recv) that leaves the message where it is.
                ///
                /// # Errors
                /// As [`try_recv`](Self::try_recv).
                pub fn try_peek(&self, buffer: &mut [u8]) -> Result<usize> {
                    let os = self.os();
                    os.registration.try_io(Direction::Read, || os.peek(buffer))
                }

                /// [`try_peek`](Self::try_peek) that says where the message comes from.
                ///
                /// # Errors
                /// As [`try_recv`](Self::try_recv).
                pub fn try_peek_from(&self, buffer: &mut [u8]) -> Result<(usize, $address)> {
                    let os = self.os();
                    os.registration.try_io(Direction::Read, || os.socket.receive_from(buffer, true))
                }

                /// [`try_recv`](Self::try_recv) that says where the message comes from.
                ///
                /// # Errors
                /// As [`try_recv`](Self::try_recv).
                pub fn try_recv_from(&self, buffer: &mut [u8]) -> Result<(usize, $address)> {
                    let os = self.os();
                    os.registration.try_io(Direction::Read, || os.socket.receive_from(buffer, false))
                }
            }
        };
        descriptor_traits!($type, |socket| socket.os().socket);
    };
}

pub(super) use datagram_methods;
