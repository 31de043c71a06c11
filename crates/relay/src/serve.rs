//! `relay serve`: opens the data, starts the server, says what to do next, and stops in order.
//!
//! Next: `main.rs`.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use miniloop::net::TcpListener;
use miniloop::signal::{Signal, Signals};
use relay_core::{Hub, PeerLimits, Rate, Section, Settings};
use tracing::{error, info, warn};

use crate::cli::{HttpAddress, ServeOptions};
use crate::descriptors;
use crate::error::Failed;
use crate::limits::BURST_SECONDS;
use crate::output;
use crate::server::{self, Parts, Stop, Stopper};
use crate::storage::{Archive, ArchiveError, Loaded, Log, Next, Preparer, Worked};

/// Serves until a signal stops it.
///
/// # Errors
/// What kept it from starting, or what made it stop.
pub fn serve(options: &ServeOptions) -> Result<(), Failed> {
    refuse_strangers_unless_open(options)?;
    let settings = settings(options, descriptors::for_connections()?);
    let connections_max = settings.connections_max;
    let mut hub = Hub::new(settings);
    let (log, base_sequence) = open_log(&options.data, &mut hub)?;
    let stopped = miniloop::run(async {
        miniloop::LoopHandle::current().on_error(|report| error!("{report}"));
        let listener = TcpListener::bind(options.listen).map_err(|error| cannot_listen(options.listen, &error))?;
        let archive = NoHistory(log.preparer());
        let parts = Parts { hub, listener, storage: log, archive, base_sequence, unfolded_bytes_max: u64::MAX };
        let running = server::start(parts).map_err(|error| cannot_start(&error))?;
        // Before the greeting, which tells whoever waits for it that the server can be stopped.
        let signals = Signals::new([Signal::TERMINATE, Signal::INTERRUPT, Signal::HANGUP]).map_err(|error| cannot_start(&error))?;
        let signals = miniloop::spawn(stop_on_signals(signals, running.stopper()));
        greet(options, running.address(), connections_max);
        let stop = running.serve().await;
        signals.cancel();
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

fn open_log(folder: &Path, hub: &mut Hub) -> Result<(Log, u64), Failed> {
    let mut load = |record: &crate::storage::Record<'_>| {
        for section in record.sections() {
            let section = Section { room: section.room.to_owned(), message_count: section.message_count, lines: section.lines.to_vec() };
            hub.load_history(section);
        }
    };
    let (log, recovered) = Log::open(folder, &mut load).map_err(|error| Failed::new(error.to_string()))?;
    info!(messages = recovered.message_count, rooms = hub.room_count(), "read the log in {}", folder.display());
    if recovered.dropped_unfinished {
        warn!(
            "parts of the last commit are missing, as after a crash: it is dropped; nobody was shown its messages, unless the disk lost \
             the parts later"
        );
    }
    Ok((log, recovered.record_count))
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

/// Makes log files ahead of time, until there is an archive: all rooms of the log are in memory.
struct NoHistory(Preparer);

impl Archive for NoHistory {
    fn work(&mut self, _committed: u64) -> Result<Worked, ArchiveError> {
        if let Err(error) = self.0.prepare() {
            warn!("the next log file cannot be made ahead of time: {error}");
        }
        Ok(Worked { folded: 0, log_bytes: 0, next: Next::WhenCommitted })
    }

    fn load(&mut self, _room: &str, _up_to: u64) -> Result<Loaded, ArchiveError> {
        Ok(Loaded::default())
    }
}
