//! Connecting to a host that has several addresses: happy eyeballs (RFC 8305).
//!
//! ```text
//! ::1        |---- no answer ---------------------------- ..      closed when another one has won
//! 127.0.0.1        |-- refused                                    the next one begins at once
//! ::2                          |--- connected: the winner
//!            0     250 ms
//! ```
//!
//! A broken IPv6 route answers nothing for minutes, so nobody is waited for alone: the families take turns, a next attempt begins 250 ms
//! after the last one or as soon as one has failed, and the first connection wins. If all fail, the error tells of each.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::Poll;

use super::resolve::{Destination, Place, resolve};
use super::tcp_stream::TcpStream;
use crate::config::{CONNECT_ATTEMPT_DELAY, CONNECT_ATTEMPTS};
use crate::engine::context;
use crate::time::sleep;

impl TcpStream {
    /// Connects to an address, or to the one of several that answers first: those of a name, which are looked up by
    /// [`resolve`](super::resolve()), or those of a list.
    ///
    /// ```
    /// use miniloop::net::{TcpListener, TcpStream};
    ///
    /// miniloop::run(async {
    ///     let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap())?;
    ///     let port = listener.local_addr()?.port();
    ///     let stream = TcpStream::connect(("localhost", port)).await?;
    ///     assert_eq!(stream.peer_addr()?, listener.local_addr()?);
    ///     Ok::<(), std::io::Error>(())
    /// })??;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Addresses are tried in their order, IPv6 and IPv4 in turns, a next one 250 ms after the last or as soon as one has failed, at most 8
    /// at a time.
    ///
    /// # Errors
    /// Of one address: what the peer or the network says, `ConnectionRefused` for instance. Of several: one error that tells what became
    /// of each, with the kind that all of them have, or else [`Other`](io::ErrorKind::Other). `InvalidInput` when the text is no place.
    /// Those of [`resolve`](super::resolve()).
    ///
    /// # Cancellation
    /// Dropping the future closes the half-open connections.
    ///
    /// # Panics
    /// Outside a loop.
    #[doc(alias = "open_connection")]
    #[doc(alias = "create_connection")]
    #[doc(alias = "happy eyeballs")]
    pub async fn connect<D: Destination>(destination: D) -> io::Result<TcpStream> {
        let result = TcpStream::connect_any(&destination.into_place()).await;
        if result.is_err() {
            context::after_failure().await;
        }
        result
    }

    async fn connect_any(place: &Place) -> io::Result<TcpStream> {
        let addresses = match place {
            Place::One(address) => return TcpStream::connect_to(*address).await,
            Place::Several(addresses) => addresses.clone(),
            Place::Name { host, port } => resolve(host, *port).await?,
            Place::Nowhere(what) => return Err(io::Error::new(io::ErrorKind::InvalidInput, what.clone())),
        };
        race(addresses, TcpStream::connect_to).await.map_err(|failures| joined(place, &failures))
    }
}

/// The first connection, or why there is none, in the order in which the attempts failed.
async fn race<S, F: Future<Output = io::Result<S>>>(
    addresses: Vec<SocketAddr>,
    connect: impl Fn(SocketAddr) -> F,
) -> Result<S, Vec<(SocketAddr, io::Error)>> {
    let mut waiting = VecDeque::from(in_turns(addresses));
    let (mut running, mut failed) = (Vec::new(), Vec::new());
    let mut patience = sleep(CONNECT_ATTEMPT_DELAY);
    poll_fn(move |cx| {
        loop {
            let mut has_room = running.is_empty();
            // The attempt that began first is asked first: it wins if two are done.
            let mut index = 0;
            while index < running.len() {
                let (address, attempt): &mut (SocketAddr, Pin<Box<F>>) = &mut running[index];
                match attempt.as_mut().poll(cx) {
                    Poll::Ready(Ok(stream)) => return Poll::Ready(Ok(stream)),
                    Poll::Ready(Err(error)) => {
                        failed.push((*address, error));
                        drop(running.remove(index));
                        has_room = true;
                    }
                    Poll::Pending => index += 1,
                }
            }
            if waiting.is_empty() && running.is_empty() {
                return Poll::Ready(Err(std::mem::take(&mut failed)));
            }
            let is_full = running.len() >= CONNECT_ATTEMPTS;
            if waiting.is_empty() || is_full || !(has_room || Pin::new(&mut patience).poll(cx).is_ready()) {
                context::waits_for(&"a connection to be made");
                return Poll::Pending;
            }
            if let Some(address) = waiting.pop_front() {
                running.push((address, Box::pin(connect(address))));
                patience = sleep(CONNECT_ATTEMPT_DELAY);
            }
        }
    })
    .await
}

/// The same addresses with the families taking turns, that of the first one first. Each family keeps its order.
fn in_turns(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let Some(first) = addresses.first() else { return addresses };
    let (first, second): (Vec<SocketAddr>, Vec<SocketAddr>) = addresses.iter().partition(|address| address.is_ipv4() == first.is_ipv4());
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut turns = Vec::with_capacity(addresses.len());
    while turns.len() < addresses.len() {
        turns.extend(first.next().into_iter().chain(second.next()));
    }
    turns
}

fn joined(place: &Place, failures: &[(SocketAddr, io::Error)]) -> io::Error {
    let Some((_, first)) = failures.first() else {
        return io::Error::new(io::ErrorKind::InvalidInput, "there is no address to connect to: the list is empty");
    };
    let is_common = failures.iter().all(|(_, error)| error.kind() == first.kind());
    let kind = if is_common { first.kind() } else { io::ErrorKind::Other };
    let each: Vec<_> = failures.iter().map(|(address, error)| format!("{address}: {error}")).collect();
    io::Error::new(kind, format!("cannot connect to {place}: {}", each.join("; ")))
}

#[cfg(test)]
#[path = "connect_tests.rs"]
mod tests;
