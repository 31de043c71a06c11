//! An echo over loopback TCP, and a timer beside it. The server runs in a process of its own, this is the side of the load.
//!
//! Next: `programs/memory.rs`.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use bench::processor;

use crate::contenders::Contender;
use crate::effort::{Effort, Figures};
use crate::programs::load::{Load, Traffic};
use crate::programs::server::{Duties, Server};

/// Of each connection of the server: one buffer length for all cases.
const BUFFER_LEN: usize = 16 << 10;
/// Only a defect takes so long.
const LIMIT: Duration = Duration::from_secs(60);

/// The figures are those of the server, per message; `ns` is what passes on the clock.
pub(crate) fn measure(contender: Contender, effort: Effort, connections: usize, traffic: Traffic) -> io::Result<Figures> {
    processor::pin(processor::LOAD_CORE)?;
    let server = Server::start(contender, Duties { buffer_len: BUFFER_LEN, ticks: 0 })?;
    let mut load = Load::start(server.address, connections, traffic)?;
    exchange(&mut load, connections, effort.conversation() / 4, true)?;
    let (used_before, user_before) = server.used()?;
    let start = Instant::now();
    let messages = exchange(&mut load, connections, effort.conversation(), effort.checks_everything())?;
    let wall = start.elapsed();
    let (used, user) = server.used()?;
    let per_message = |name: &str, time: Duration| (name.to_owned(), time.as_nanos() as f64 / messages);
    Ok(vec![
        per_message("ns", wall),
        per_message("cpu ns", used - used_before),
        per_message("user cpu ns", user.saturating_sub(user_before)),
    ])
}

/// Goes on for that long, and again until each connection has had one message on average. Returns how many there were.
fn exchange(load: &mut Load, connections: usize, stretch: Duration, checks: bool) -> io::Result<f64> {
    let limit = Instant::now() + LIMIT;
    let mut messages = 0.0;
    while messages < connections as f64 {
        if Instant::now() > limit {
            return Err(io::Error::other("the server sends nothing back"));
        }
        messages += load.run_until(Instant::now() + stretch, checks)?;
    }
    Ok(messages)
}

/// How late a timer of 1 ms is, while a peer sends as fast as it can and takes all that comes back.
pub(crate) fn timer_under_flood(contender: Contender, effort: Effort) -> io::Result<Figures> {
    processor::pin(processor::LOAD_CORE)?;
    let ticks = effort.crowd(1_000);
    let mut server = Server::start(contender, Duties { buffer_len: BUFFER_LEN, ticks })?;
    let address = server.address;
    // The load goes on until the server ends.
    let flood = thread::spawn(move || {
        let mut load = Load::start(address, 1, Traffic::FLOOD)?;
        load.run_until(Instant::now() + LIMIT, false)
    });
    let mut late_ns = server.late_ns()?;
    drop(server);
    if flood.join().expect("the load returns its errors").is_ok() {
        return Err(io::Error::other("the server has not done its ticks in a minute"));
    }
    late_ns.sort_unstable();
    if late_ns.len() != ticks {
        return Err(io::Error::other("the server has not counted its ticks"));
    }
    let at = |share: f64| late_ns[((ticks - 1) as f64 * share) as usize] as f64 / 1_000.0;
    Ok(vec![("p50 us".to_owned(), at(0.5)), ("p99 us".to_owned(), at(0.99)), ("max us".to_owned(), at(1.0))])
}
