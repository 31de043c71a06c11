//! `relay bench`: loads a running server and says what it can do, for a person at a terminal.
//!
//! The engine is the crate `relay-bench`; here is what one sees of it. Next: `descriptors.rs`.

use std::future::pending;
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, UdpSocket};
use std::pin::Pin;
use std::process::ExitCode;

use miniloop::{race, signal, sleep};
use relay_bench::{Bench, BenchError, Length, Pace, RelayCodec, Report, Workload};

use crate::bench_report::InWords;
use crate::cli::BenchOptions;
use crate::commands::printed_all;
use crate::error::Failed;
use crate::limits::PROGRESS_EVERY;
use crate::progress_bar::Bar;
use crate::storage::Progress;

/// Loads a server and prints what that came to. Ends with 130 after Ctrl-C, with what was measured until then.
///
/// # Errors
/// Nobody listens, the server is not ours to load, or it did something wrong.
pub fn bench(options: &BenchOptions) -> Result<ExitCode, Failed> {
    refuse_others(options)?;
    let bench = Bench::new(RelayCodec, workload(options)).map_err(|error| failed(&error))?;
    let report = miniloop::run(run(&bench)).map_err(|error| Failed::new(error.to_string()))??;
    let mut out = io::stdout().lock();
    let printed = match options.json {
        true => serde_json::to_writer(&mut out, &report).map_err(io::Error::from).and_then(|()| writeln!(out)),
        false => write!(out, "{}", InWords(&report)),
    };
    printed_all(printed, "report")?;
    Ok(if report.is_interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// What may end a run.
type Branch<'a> = Pin<Box<dyn Future<Output = Result<Report, BenchError>> + 'a>>;

/// To the end, or to Ctrl-C, with a bar meanwhile.
async fn run(bench: &Bench<RelayCodec>) -> Result<Report, Failed> {
    let interrupted = async {
        match signal::ctrl_c().await {
            Ok(()) => Ok(bench.report()),
            // Then Ctrl-C does what it does to any program.
            Err(_) => pending().await,
        }
    };
    let bar = async {
        let mut bar = Bar::new();
        loop {
            let relay_bench::Progress { what, done, total } = bench.progress();
            bar.report(Progress { what, done, total });
            sleep(PROGRESS_EVERY).await;
        }
    };
    let branches: [Branch<'_>; 3] = [Box::pin(bench.run()), Box::pin(interrupted), Box::pin(bar)];
    let report = race(branches).await.value.map_err(|error| failed(&error))?;
    if report.publishes == 0 {
        return Err(Failed::new("interrupted before anything was measured"));
    }
    Ok(report)
}

fn workload(options: &BenchOptions) -> Workload {
    Workload {
        address: options.address,
        rooms: options.rooms,
        members: options.members,
        senders: options.senders,
        pace: options.rate.map_or(Pace::Window(options.window), Pace::Rate),
        length: options.messages.map_or(Length::Milliseconds(options.seconds * 1_000), Length::Messages),
        text_bytes: options.size,
        idle: options.idle,
        slow: options.slow,
        seed: options.seed,
    }
}

fn refuse_others(options: &BenchOptions) -> Result<(), Failed> {
    if options.any_host || is_of_this_machine(options.address.ip()) {
        return Ok(());
    }
    Err(Failed::new(format!(
        "{} is not an address of this machine, and to others a load looks like an attack: add `--any-host` if that server is yours to load",
        options.address
    )))
}

/// Only a machine's own addresses can be bound there. No packet is sent.
fn is_of_this_machine(address: IpAddr) -> bool {
    address.to_canonical().is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

fn failed(error: &BenchError) -> Failed {
    let text = match error {
        BenchError::Connect { address, error } if error.kind() == ErrorKind::ConnectionRefused => format!(
            "nobody listens on {address}: start a server in another terminal, `relay --data ./bench-data`, or say with `--address` where \
             one is"
        ),
        BenchError::Server(text) if text.contains("ERR name in use") => {
            format!("{text}: another `relay bench` loads this server; give this one another `--seed`")
        }
        error => error.to_string(),
    };
    Failed::new(text)
}

/// What a shell says of a program that Ctrl-C has ended.
const INTERRUPTED: u8 = 130;

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn options(arguments: &[&str]) -> BenchOptions {
        match Cli::parse_from([&["relay", "bench"], arguments].concat()).into_command() {
            Command::Bench(options) => options,
            _ => panic!("`relay bench` benches"),
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_engine() {
        assert_eq!(workload(&options(&[])), Workload::default(), "written twice: here as numbers, there as words");
    }

    #[test]
    fn a_rate_and_a_number_of_messages_take_the_place_of_window_and_time() {
        let Workload { pace, length, .. } = workload(&options(&["--rate", "7", "--messages", "3"]));
        assert_eq!((pace, length), (Pace::Rate(7), Length::Messages(3)));
    }

    #[test]
    fn other_machines_are_refused_unless_they_are_said_to_be_ours() {
        for address in ["127.0.0.1:8000", "[::1]:8000"] {
            assert!(refuse_others(&options(&["--address", address])).is_ok(), "{address}");
        }
        // Set aside for documentation: no machine has it.
        let refused = refuse_others(&options(&["--address", "192.0.2.1:8000"])).unwrap_err().to_string();
        assert!(refused.contains("192.0.2.1:8000") && refused.contains("--any-host"), "{refused}");
        assert!(refuse_others(&options(&["--address", "192.0.2.1:8000", "--any-host"])).is_ok());
    }
}
