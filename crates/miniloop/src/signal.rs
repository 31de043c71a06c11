//! Signals of the operating system, as futures and streams.
//!
//! A signal handler interrupts some thread between two instructions, perhaps inside the allocator or under a lock, so it may use neither.
//! Ours does two things: it sets a bit in an atomic word, and rings a doorbell. Everything else happens on the loop, which watches that
//! descriptor like any other. A child between `fork` and `exec` shares the descriptor but not the word: a signal to the child wakes the
//! parent for nothing.
//!
//! Handlers belong to the process, not to a loop: any number of streams of any loops hear the same signal. Each stream costs one
//! descriptor. This file is listed for `unsafe`: installing a handler is.

use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use futures_core::stream::FusedStream;
use futures_core::{FusedFuture, Stream};
use rustix::process::Signal as Named;
use signal_hook_registry::SigId;

use crate::doorbell::Doorbell;
use crate::driver::{Direction, Kind};
use crate::registration::{Place, Registration};

/// Waits for Ctrl-C in the terminal: the next [`Signal::INTERRUPT`] after the first poll.
///
/// ```no_run
/// # miniloop::run(async {
/// miniloop::signal::ctrl_c().await?;
/// println!("good bye");
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap().unwrap();
/// ```
///
/// # Errors
/// As [`Signals::new`].
///
/// # Panics
/// When polled outside a loop.
///
/// # Cancellation
/// Dropping the future stops listening. Ctrl-C does not end the program again from then on: see [`Signals`].
pub async fn ctrl_c() -> io::Result<()> {
    Signals::new([Signal::INTERRUPT])?.recv().await.map(drop)
}

/// Waits for the request to end that a service manager, `kill` or a terminal sends: the next [`Signal::TERMINATE`] or [`Signal::INTERRUPT`]
/// after the first poll. Which one it was.
///
/// ```no_run
/// # miniloop::run(async {
/// let signal = miniloop::signal::termination().await?;
/// println!("{signal:?}: bye");
/// # Ok::<(), std::io::Error>(())
/// # }).unwrap().unwrap();
/// ```
///
/// # Errors
/// As [`Signals::new`].
///
/// # Panics
/// When polled outside a loop.
///
/// # Cancellation
/// As [`ctrl_c`]. A program that wants to hear of a second request keeps a [`Signals`] instead.
pub async fn termination() -> io::Result<Signal> {
    Signals::new([Signal::TERMINATE, Signal::INTERRUPT])?.recv().await
}

/// The signals of certain kinds that the process gets, from the creation of the stream on.
///
/// A signal that comes again before it has been read is one, as in the kernel. Several that wait are given lowest number first. Every
/// stream that listens gets every signal. The stream ends when its loop is closed.
///
/// # After the last listener has gone
/// The first listener of a kind replaces what the system would do, ending the program for most, **for the life of the process**. When
/// nobody listens any more the signal is caught and ignored: the default does not come back. (A handler that was there before is called
/// first, and goes on being called.)
#[doc(alias = "add_signal_handler")]
pub struct Signals {
    registration: Registration,
    pending: Arc<Pending>,
    handlers: Vec<SigId>,
}

impl Signals {
    /// Listens from now on.
    ///
    /// ```
    /// use miniloop::signal::{Signal, Signals};
    ///
    /// # miniloop::run(async {
    /// let mut signals = Signals::new([Signal::USER1, Signal::HANGUP])?;
    /// rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::HUP)?;
    /// assert_eq!(signals.recv().await?, Signal::HANGUP);
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// The system has no descriptor left, or refuses a handler: glibc keeps 32 and 33 for itself.
    ///
    /// # Panics
    /// Outside a loop.
    #[track_caller]
    pub fn new(signals: impl IntoIterator<Item = Signal>) -> io::Result<Signals> {
        let pending = Arc::new(Pending { bits: AtomicU64::new(0), doorbell: Doorbell::new()? });
        let registration = Registration::new(pending.doorbell.as_fd(), Kind::Other, false)?.reading(&"a signal");
        let mut listening = Signals { registration, pending, handlers: Vec::new() };
        for signal in signals {
            listening.handlers.push(install(signal, listening.pending.clone())?);
        }
        Ok(listening)
    }

    /// The next signal.
    ///
    /// ```
    /// use futures_util::select;
    /// use miniloop::signal::{Signal, Signals};
    ///
    /// # miniloop::run(async {
    /// let mut signals = Signals::new([Signal::TERMINATE, Signal::HANGUP])?;
    /// let mut ticks = 0;
    /// # let mut next_tick = || miniloop::sleep(std::time::Duration::from_micros(10));
    /// loop {
    ///     select! {
    ///         signal = signals.recv() => break println!("{:?} after {ticks} ticks", signal?),
    ///         () = next_tick() => ticks += 1,
    ///     }
    ///     # rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::HUP)?;
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// The loop has been closed.
    ///
    /// # Cancellation
    /// No signal is lost.
    pub fn recv(&mut self) -> impl FusedFuture<Output = io::Result<Signal>> + Unpin + use<'_> {
        self.registration.io(Direction::Read, || self.pending.take())
    }
}

impl Stream for Signals {
    type Item = Signal;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Signal>> {
        let polled = self.registration.poll_io(Direction::Read, Place::Alone, cx, || self.pending.take());
        polled.map(Result::ok)
    }
}

/// It ends with its loop.
impl FusedStream for Signals {
    fn is_terminated(&self) -> bool {
        self.registration.core().driver().is_err()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook_registry::unregister(handler);
        }
    }
}

impl fmt::Debug for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signals").finish_non_exhaustive()
    }
}

/// A kind of signal that a program may handle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signal(u8);

impl Signal {
    /// `SIGINT`: Ctrl-C in the terminal.
    pub const INTERRUPT: Signal = Signal::named(Named::INT);
    /// `SIGTERM`: the polite request to end.
    pub const TERMINATE: Signal = Signal::named(Named::TERM);
    /// `SIGHUP`: the terminal has gone; for services, by custom, the request to read the configuration again.
    pub const HANGUP: Signal = Signal::named(Named::HUP);
    /// `SIGQUIT`: Ctrl-\ in the terminal.
    pub const QUIT: Signal = Signal::named(Named::QUIT);
    /// `SIGUSR1`: means what the program wants it to mean.
    pub const USER1: Signal = Signal::named(Named::USR1);
    /// `SIGUSR2`: the same.
    pub const USER2: Signal = Signal::named(Named::USR2);
    /// `SIGCHLD`: a child process has ended or stopped.
    pub const CHILD: Signal = Signal::named(Named::CHILD);
    /// `SIGWINCH`: the size of the terminal has changed.
    pub const WINDOW_CHANGE: Signal = Signal::named(Named::WINCH);

    /// The signal with this number.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for what is no signal, for `SIGKILL` and `SIGSTOP`, which nobody can catch, and for
    /// `SIGILL`, `SIGFPE`, `SIGSEGV`, `SIGBUS`, `SIGTRAP` and `SIGSYS`: they say that an instruction of this program failed, and a handler
    /// that returns would run it again.
    pub fn from_raw(number: i32) -> io::Result<Signal> {
        const UNCATCHABLE: [Named; 2] = [Named::KILL, Named::STOP];
        const FAULTS: [Named; 6] = [Named::ILL, Named::FPE, Named::SEGV, Named::BUS, Named::TRAP, Named::SYS];
        let is_among = |signals: &[Named]| signals.iter().any(|signal| signal.as_raw() == number);
        let why = if !(1..=NUMBER_MAX).contains(&number) {
            "signals have the numbers 1 to 64"
        } else if is_among(&UNCATCHABLE) {
            "no program can catch it"
        } else if is_among(&FAULTS) {
            "it reports a fault of an instruction of this program, which a handler cannot mend"
        } else {
            return Ok(Signal(number as u8));
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, format!("signal {number} cannot be handled: {why}")))
    }

    /// Its number.
    pub const fn as_raw(self) -> i32 {
        self.0 as i32
    }

    const fn named(signal: Named) -> Signal {
        Signal(signal.as_raw() as u8)
    }
}

impl fmt::Debug for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Named::from_named_raw(self.as_raw()) {
            Some(named) => named.fmt(f),
            None => write!(f, "Signal({})", self.0),
        }
    }
}

/// What the handlers of a stream have seen and the stream has not.
struct Pending {
    /// Bit n - 1 stands for signal n.
    bits: AtomicU64,
    doorbell: Doorbell,
}

impl Pending {
    /// In a signal handler: no lock, no allocation, no panic.
    fn note(&self, signal: Signal) {
        self.bits.fetch_or(1 << (signal.0 - 1), Ordering::Release);
        // After the bit, so that whoever is woken finds it.
        self.doorbell.ring();
    }

    /// The lowest signal that waits. `WouldBlock`: none does, and the bell will ring for the next.
    fn take(&self) -> io::Result<Signal> {
        self.doorbell.drain();
        let bits = self.bits.load(Ordering::Acquire);
        if bits == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let index = bits.trailing_zeros() as u8;
        self.bits.fetch_and(!(1 << index), Ordering::Relaxed);
        Ok(Signal(index + 1))
    }
}

fn install(signal: Signal, pending: Arc<Pending>) -> io::Result<SigId> {
    // SAFETY: the action runs in a signal handler and does only what POSIX allows there: an atomic operation, and `write` on a descriptor
    // that the `Arc` keeps open. It takes no lock, allocates nothing and cannot panic: the shift is by at most 63, because a `Signal` is 1
    // to 64. The `Arc` is released by `unregister`, on a normal thread, which waits until no handler uses the action.
    unsafe { signal_hook_registry::register(signal.as_raw(), move || pending.note(signal)) }
}

const NUMBER_MAX: i32 = u64::BITS as i32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_takes_its_handlers_with_it_c173() {
        crate::run(async {
            let signals = Signals::new([Signal::USER1, Signal::USER2]).unwrap();
            let pending = signals.pending.clone();
            assert_eq!(Arc::strong_count(&pending), 4);
            drop(signals);
            assert_eq!(Arc::strong_count(&pending), 1);
        })
        .unwrap();
    }
}
