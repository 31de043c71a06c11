//! Who takes part: how each server is started, and configured as its documentation recommends for this use. Next: `server.rs`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::executables::{Executables, version};
use crate::failure::Outcome;

/// A server in one configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contender {
    /// Everything is on disk before anybody is shown it.
    Relay,
    /// The same, and nothing else.
    Floor,
    /// Keeps nothing.
    Nats,
    /// Everything is on disk before it is acknowledged.
    JetStream,
    /// Keeps nothing.
    Redis,
    /// Everything is on disk before it is acknowledged.
    RedisAlways,
}

/// Those who pass messages on. The last two keep nothing on disk.
pub(crate) const WHO_PASS_ON: [Contender; 4] = [Contender::Relay, Contender::Floor, Contender::Nats, Contender::Redis];

/// Those who acknowledge what is on disk.
pub(crate) const WHO_STORE: [Contender; 4] = [Contender::Relay, Contender::Floor, Contender::JetStream, Contender::RedisAlways];

impl Contender {
    /// As results and charts call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Contender::Relay => "relay",
            Contender::Floor => "durable floor",
            Contender::Nats => "NATS",
            Contender::JetStream => "NATS JetStream",
            Contender::Redis => "Redis",
            Contender::RedisAlways => "Redis appendfsync always",
        }
    }

    /// What starts it, so that it listens on this port of this machine and keeps its data in this folder.
    pub(crate) fn command(self, executables: &Executables, port: u16, folder: &Path) -> io::Result<Command> {
        let address = format!("127.0.0.1:{port}");
        let mut command = match self {
            Contender::Relay => {
                let mut command = Command::new(&executables.relay);
                command.args(["serve", "--http", "off", "--listen", &address, "--data"]).arg(folder.join("relay-data"));
                command
            }
            Contender::Floor => {
                let mut command = Command::new(&executables.floor);
                command.args(["--listen", &address, "--data"]).arg(folder.join("floor-data"));
                command
            }
            Contender::Nats => {
                let mut command = Command::new(&executables.nats);
                command.args(["--addr", "127.0.0.1", "--port", &port.to_string()]);
                command
            }
            Contender::JetStream => {
                let configuration = folder.join("nats.conf");
                let store = folder.join("jetstream");
                let text = format!("listen: \"{address}\"\njetstream {{ store_dir: {store:?}, sync_interval: always }}\n");
                fs::write(&configuration, text)?;
                let mut command = Command::new(&executables.nats);
                command.arg("--config").arg(configuration);
                command
            }
            Contender::Redis => redis(executables, port, folder, &["--appendonly", "no"]),
            Contender::RedisAlways => redis(executables, port, folder, REDIS_DURABLE),
        };
        command.current_dir(folder).env("LC_ALL", "C");
        Ok(command)
    }
}

/// The version of each contender, and what of its configuration is not its default.
pub(crate) fn versions(executables: &Executables) -> Outcome<BTreeMap<String, String>> {
    let (nats, redis) = (version(&executables.nats)?, version(&executables.redis)?);
    let redis = redis.split(" sha=").next().unwrap_or_default();
    let versions = [
        (Contender::Relay, format!("{}, --http off", version(&executables.relay)?)),
        (Contender::Floor, env!("CARGO_PKG_VERSION").to_owned()),
        (Contender::Nats, nats.clone()),
        (Contender::JetStream, format!("{nats}, sync_interval: always, a stream for each room")),
        (Contender::Redis, format!("{redis}, save \"\", appendonly no, maxclients {REDIS_CLIENTS_MAX}, RESP3")),
        (
            Contender::RedisAlways,
            format!("{redis}, save \"\", {}, maxclients {REDIS_CLIENTS_MAX}", REDIS_DURABLE.join(" ").replace("--", "")),
        ),
    ];
    Ok(versions.map(|(contender, version)| (contender.name().to_owned(), version)).into())
}

fn redis(executables: &Executables, port: u16, folder: &Path, durability: &[&str]) -> Command {
    let mut command = Command::new(&executables.redis);
    command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", "", "--maxclients", REDIS_CLIENTS_MAX]);
    command.arg("--dir").arg(folder).args(durability);
    command
}

/// The file of commands is not rewritten while we measure: that would cost Redis a fork and a second writer.
const REDIS_DURABLE: &[&str] = &["--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0"];

/// By default it refuses the ten thousandth.
const REDIS_CLIENTS_MAX: &str = "18000";
