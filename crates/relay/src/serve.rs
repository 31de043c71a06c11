//! `relay serve`: opens the data, starts the server, says what to do next, and stops in order.
//!
//! Next: `main.rs`.

use std::io::{self, Write};
use std::net::SocketAddr;

use miniloop::net::TcpListener;
use miniloop::signal::{Signal, Signals};
use relay_core::{Hub, PeerLimits, Rate, Settings};
use tracing::{error, info, warn};

use crate::cli::{HttpAddress, ServeOptions};
use crate::descriptors;
use crate::error::Failed;
use crate::limits::{BURST_SECONDS, TOLD_LOG_MIN_BYTES, UNFOLDED_BYTES_MAX};
use crate::output;
use crate::server::{self, Measured, Parts, Stop, Stopper};
use crate::storage::{self, Opened, Retention};

/// Serves until a signal stops it.
///
/// # Errors
/// What kept it from starting, or what made it stop.
pub fn serve(options: &ServeOptions) -> Result<(), Failed> {
    refuse_strangers_unless_open(options)?;
    let settings = settings(options, descriptors::for_connections()?);
    let connections_max = settings.connections_max;
    let Opened { log, archive, sequence, .. } = open_data(options)?;
    let stopped = miniloop::run(async {
        miniloop::LoopHandle::current().on_error(|report| error!("{report}"));
        let listener = TcpListener::bind(options.listen).map_err(|error| cannot_listen(options.listen, &error))?;
        let parts = Parts {
            hub: Hub::new(settings),
            listener,
            storage: log,
            archive,
            base_sequence: sequence,
            unfolded_bytes_max: unfolded_bytes_max(options),
        };
        let running = server::start(parts).map_err(|error| cannot_start(&error))?;
        // Before the greeting, which tells whoever waits for it that the server can be stopped.
        let signals = Signals::new([Signal::TERMINATE, Signal::INTERRUPT, Signal::HANGUP]).map_err(|error| cannot_start(&error))?;
        let questions = Signals::new([Signal::USER1]).map_err(|error| cannot_start(&error))?;
        let signals = miniloop::spawn(stop_on_signals(signals, running.stopper()));
        let questions = miniloop::spawn(answer_signals(questions, running.measured()));
        greet(options, running.address(), connections_max);
        let stop = running.serve().await;
        signals.cancel();
        questions.cancel();
        Ok(stop)
    });
    match stopped.map_err(|error| Failed::new(error.to_string()))?? {
        Stop::Requested => {
            info!("stopped; everything that was shown is stored");
            Ok(())
        }
        Stop::Storage(error) => Err(Failed::new(error.to_string())),
        Stop::Archive(error) => Err(Failed::new(error.to_string())),
        Stop::Defect(part) => {
            Err(Failed::new(format!("a defect has ended `{part}`; what was shown is stored; please report the lines above")))
        }
    }
}

/// The first signal stops the server in order, the second one at once.
async fn stop_on_signals(mut signals: Signals, stopper: Stopper) {
    if signals.recv().await.is_err() {
        return;
    }
    stopper.stop();
    info!("stopping: what was accepted is committed and sent first; a second signal stops at once");
    if signals.recv().await.is_ok() {
        warn!("stopped at once");
        std::process::exit(1);
    }
}

/// `kill -USR1`: says what was counted and measured.
async fn answer_signals(mut signals: Signals, measured: Measured) {
    while signals.recv().await.is_ok() {
        for line in measured.text().split_inclusive('\n') {
            // It takes every line, and counts those that nobody reads.
            let _ = output::Log.write_all(line.as_bytes());
        }
    }
}

/// A disk budget is for all files: a quarter of it may be log that is not folded.
fn unfolded_bytes_max(options: &ServeOptions) -> u64 {
    options.disk_budget.map_or(UNFOLDED_BYTES_MAX, |budget_bytes| UNFOLDED_BYTES_MAX.min(budget_bytes / 4))
}

fn refuse_strangers_unless_open(options: &ServeOptions) -> Result<(), Failed> {
    let address = options.listen;
    if address.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    if options.open {
        warn!("everybody who can reach {address} may read and write in every room: there is no authentication");
        return Ok(());
    }
    Err(Failed::new(format!(
        "{address} can be reached by others, and there is no authentication: add `--open` to let everybody in, or listen on 127.0.0.1"
    )))
}

fn settings(options: &ServeOptions, connections_possible: usize) -> Settings {
    let defaults = Settings::default();
    let rate = options.messages_per_second.map(|per_second| Rate { per_second, burst: per_second.saturating_mul(BURST_SECONDS) });
    let limits = |limits: PeerLimits| PeerLimits {
        connections_per_address_max: options.connections_per_address.or(limits.connections_per_address_max),
        rate: rate.or(limits.rate),
    };
    Settings {
        heartbeat_interval: Some(options.heartbeat_interval),
        heartbeat_timeout: Some(options.heartbeat_timeout),
        connections_max: defaults.connections_max.min(connections_possible),
        loopback: limits(defaults.loopback),
        remote: limits(defaults.remote),
    }
}

fn open_data(options: &ServeOptions) -> Result<Opened, Failed> {
    let retention = Retention { keep_for: options.keep_for, keep_messages: options.keep_messages, disk_budget_bytes: options.disk_budget };
    let mut told_percent = 0;
    let mut tell = |folded_bytes: u64, log_bytes: u64| {
        let percent = folded_bytes * 100 / log_bytes.max(1);
        // Less is over before anybody wonders.
        if log_bytes > TOLD_LOG_MIN_BYTES && percent >= told_percent + 10 {
            told_percent = percent;
            info!("moving messages from the log to the history: {percent} %");
        }
    };
    let opened = storage::open(&options.data, retention, &mut tell).map_err(|error| Failed::new(error.to_string()))?;
    info!(commits = opened.sequence, messages_in_log = opened.recovered.message_count, "opened {}", options.data.display());
    if retention != Retention::default() {
        let Retention { keep_for, keep_messages, disk_budget_bytes } = retention;
        info!(?keep_for, keep_messages, disk_budget_bytes, "older messages are deleted");
    }
    if opened.recovered.dropped_unfinished {
        warn!(
            "parts of the last commit are missing, as after a crash: it is dropped; nobody was shown its messages, unless the disk lost \
             the parts later"
        );
    }
    Ok(opened)
}

fn cannot_start(error: &io::Error) -> Failed {
    Failed::new(format!("cannot start: {error}; the system has no thread or descriptor left for relay: see `ulimit -u` and `ulimit -n`"))
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> Failed {
    let way_out = match error.kind() {
        io::ErrorKind::AddrInUse => "another server has it: stop that one, or choose another address with `--listen`",
        io::ErrorKind::PermissionDenied => "ports below 1024 are reserved: choose a higher one with `--listen`",
        io::ErrorKind::AddrNotAvailable => "this machine has no such address: choose one of its own with `--listen`",
        _ => "choose another address with `--listen`",
    };
    Failed::new(format!("cannot listen on {address}: {error}; {way_out}"))
}

/// For the person at the terminal: where it listens, and what to type next.
fn greet(options: &ServeOptions, address: SocketAddr, connections_max: usize) {
    let version = env!("CARGO_PKG_VERSION");
    let web = match options.http {
        HttpAddress::At(http) => format!("the web address {http} is not served yet\n"),
        HttpAddress::Off => String::new(),
    };
    let heartbeat = if options.heartbeat_interval.is_zero() || options.heartbeat_timeout.is_zero() {
        String::new()
    } else {
        format!("when it says PING, type PONG within {:?}: that is how it knows that you are there\n", options.heartbeat_timeout)
    };
    let reached_at = if address.ip().is_unspecified() { "ADDRESS-OF-THIS-MACHINE".to_owned() } else { address.ip().to_string() };
    let greeting = format!(
        "relay {version} listens on {address}, for up to {connections_max} clients\n\
         what is said is kept in {}\n\
         {web}\
         next, in two terminals: nc {reached_at} {}\n\
         then type: JOIN yourname lobby   and: MSG hello\n\
         {heartbeat}",
        options.data.display(),
        address.port()
    );
    // Nobody may be there to read it.
    let _ = output::write_at_once(io::stdout(), greeting.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    use crate::cli::{Cli, Command};

    fn options(arguments: &[&str]) -> ServeOptions {
        match Cli::parse_from([&["relay"], arguments].concat()).into_command() {
            Command::Serve(options) => options,
            _ => panic!("`relay` serves"),
        }
    }

    #[test]
    fn a_client_may_send_the_messages_of_five_seconds_at_once() {
        let rate = |arguments: &[&str]| settings(&options(arguments), 9).loopback.rate;
        assert_eq!(rate(&["--messages-per-second", "7"]), Some(Rate { per_second: 7, burst: 35 }));
        assert_eq!(rate(&[]), Settings::default().loopback.rate);
    }

    #[test]
    fn a_gib_of_the_log_may_be_unfolded_or_a_quarter_of_the_budget() {
        for (budget, expected_bytes) in [("512MiB", 128 << 20), ("4GiB", 1 << 30), ("5GiB", 1 << 30)] {
            assert_eq!(unfolded_bytes_max(&options(&["--disk-budget", budget])), expected_bytes, "{budget}");
        }
        assert_eq!(unfolded_bytes_max(&options(&[])), 1 << 30);
    }
}
