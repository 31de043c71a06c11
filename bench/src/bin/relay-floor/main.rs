//! `relay-floor`, the yardstick of the measurements: the least that a server must do which shows nobody a message before it is on disk.
//!
//! It speaks relay's protocol as far as `JOIN`, `MSG` and `QUIT`, writes relay's records, and is raw epoll on one thread beside one that
//! commits. What relay has and this lacks is what relay's overhead buys: a runtime, limits on everything, cutting those who do not read,
//! heartbeats, names that are taken, a history, and a log that can be read back. It is as fast as it can be while it stays readable, and
//! must not be tuned to one workload. It is no server for anybody: who does not read fills its memory.
//!
//! The files stand in the order of a message's way, its last step first.

mod batch;
mod log;
mod commit;
mod connection;
mod rooms;
mod server;

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use commit::Committer;
use log::Log;
use server::Server;

/// Serves chat rooms with as little as it takes.
#[derive(Debug, Parser)]
#[command(name = "relay-floor")]
struct Options {
    /// Where to listen.
    #[arg(long, default_value = "127.0.0.1:8000")]
    listen: SocketAddr,
    /// The folder of the log: on the disk that is meant, and not in memory.
    #[arg(long)]
    data: PathBuf,
}

fn main() -> ExitCode {
    let Err(error) = serve(&Options::parse());
    eprintln!("relay-floor: {error}");
    ExitCode::FAILURE
}

fn serve(options: &Options) -> io::Result<Infallible> {
    bench::descriptors::raise_limit();
    let log = Log::create(&options.data)?;
    let committer = Committer::start(log)?;
    let listener = TcpListener::bind(options.listen)?;
    println!("listening on {}", listener.local_addr()?);
    Server::new(listener, committer)?.run()
}
