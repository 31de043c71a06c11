//! The command line: what can be said, and what it means when nothing is said.
//!
//! Knows nothing of what the commands do. Next: `progress_bar.rs`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use relay_bench::limits::{MILLISECONDS_MAX, TEXT_BYTES};
use relay_core::limits::LINE_LEN_MAX_BYTES;

use crate::limits::DISK_BUDGET_MIN_BYTES;
use crate::{byte_size, duration};

/// A chat server that shows nobody a message that could still be lost.
///
/// Without a command it serves: `relay` is short for `relay serve`, and takes its options.
#[derive(Debug, Parser)]
#[command(name = "relay", version, max_term_width = 100, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeOptions,
}

/// How long `relay bench` sends at most.
const SECONDS_MAX: u64 = MILLISECONDS_MAX / 1_000;

/// Where a server keeps its data unless it is told otherwise.
const DEFAULT_DATA: &str = "./relay-data";

/// What relay is asked to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve chat rooms. People join them with `nc`: `JOIN <name> <room>`, then `MSG <text>`, `HISTORY`, `QUIT`.
    Serve(ServeOptions),
    /// Print everything that was ever said in a room, oldest first, also while a server runs.
    History(RoomOptions),
    /// Print a room's messages as JSON, one object a line with id, time, name and text, oldest first, also while a server runs.
    Export(RoomOptions),
    /// Check everything that is stored, to the last byte, also while a server runs. Nothing is changed. Ends with 1 on damage.
    Verify(VerifyOptions),
    /// Say what is damaged and what a repair would lose. With `--write`, save what is intact; the damaged folder is kept beside it.
    Repair(RepairOptions),
    /// Copy everything that is stored into a new folder, also while a server runs, and check the copy. `relay --data COPY` serves it.
    Backup(BackupOptions),
    /// Load a running server with chat, check what every member sees, and say how fast that went. What is said is stored like everything
    /// else, hundreds of megabytes of it: give the server a data folder of its own.
    Bench(BenchOptions),
}

impl Cli {
    /// The command that was given, or the default one.
    pub fn into_command(self) -> Command {
        self.command.unwrap_or(Command::Serve(self.serve))
    }
}

/// The options of `relay serve`.
#[derive(Debug, Args)]
pub struct ServeOptions {
    /// Where to listen for the line protocol. Port 0 lets the system choose one.
    #[arg(long, env = "RELAY_LISTEN", value_name = "ADDRESS", default_value = "127.0.0.1:8000", value_parser = parse_address)]
    pub listen: SocketAddr,

    /// Where to listen for web clients, or `off`. Not served yet: it is accepted and says so.
    #[arg(long, env = "RELAY_HTTP", value_name = "ADDRESS|off", default_value = "127.0.0.1:8080")]
    pub http: HttpAddress,

    /// The folder that holds everything that was said. It is made if it is missing, readable for its owner only.
    #[arg(long, env = "RELAY_DATA", value_name = "FOLDER", default_value = DEFAULT_DATA)]
    pub data: PathBuf,

    /// Let everybody in who can reach the address. Without it, relay listens on this machine only, because there is no authentication.
    #[arg(long, env = "RELAY_OPEN", value_parser = clap::builder::BoolishValueParser::new())]
    pub open: bool,

    /// Send `PING` this long after a client has joined or answered, such as `10s` or `500ms`; `0` turns heartbeats off.
    #[arg(long, env = "RELAY_HEARTBEAT_INTERVAL", value_name = "TIME", default_value = "10s", value_parser = duration::parse)]
    pub heartbeat_interval: Duration,

    /// Close a client that has not answered a `PING` for this long; `0` never does.
    #[arg(long, env = "RELAY_HEARTBEAT_TIMEOUT", value_name = "TIME", default_value = "5s", value_parser = duration::parse)]
    pub heartbeat_timeout: Duration,

    /// Allow so many connections from one address (one /64 of IPv6). By default 64, and any number from this machine.
    #[arg(long, env = "RELAY_CONNECTIONS_PER_ADDRESS", value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub connections_per_address: Option<u32>,

    /// Read so many messages a second from one client, and five times as many after a silence. By default 20, and as many as they can send
    /// from clients on this machine.
    #[arg(long, env = "RELAY_MESSAGES_PER_SECOND", value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1_000_000_000))]
    pub messages_per_second: Option<u32>,

    /// Forget messages that are older than this, such as `30d`; looked at every hundredth of that time, between a minute and a day. By
    /// default nothing is ever forgotten.
    #[arg(long, env = "RELAY_KEEP_FOR", value_name = "TIME", value_parser = parse_keep_for)]
    pub keep_for: Option<Duration>,

    /// Forget all but so many messages of each room, the latest ones, and up to 32 KiB more. By default nothing is ever forgotten.
    #[arg(long, env = "RELAY_KEEP_MESSAGES", value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub keep_messages: Option<u64>,

    /// Forget the oldest messages of all when the data folder would grow beyond this, such as `20GiB`; what one
    /// fold brings (32 MiB) comes on top. What is forgotten is free for new messages, but history.db does not become smaller. By default it
    /// may grow until the disk is full.
    #[arg(long, env = "RELAY_DISK_BUDGET", value_name = "SIZE", value_parser = parse_disk_budget)]
    pub disk_budget: Option<u64>,

    /// How much to say on standard error.
    #[arg(long, env = "RELAY_LOG", value_name = "LEVEL", default_value = "info")]
    pub log: LogLevel,
}

/// The options of `relay history` and `relay export`.
#[derive(Debug, Args)]
pub struct RoomOptions {
    /// The room's name.
    pub room: String,

    /// Where the data is.
    #[command(flatten)]
    pub data: DataOption,
}

/// The options of `relay verify`.
#[derive(Debug, Args)]
pub struct VerifyOptions {
    /// Where the data is.
    #[command(flatten)]
    pub data: DataOption,

    /// Say it as one JSON object, for programs.
    #[arg(long)]
    pub json: bool,
}

/// The options of `relay repair`.
#[derive(Debug, Args)]
pub struct RepairOptions {
    /// Where the data is.
    #[command(flatten)]
    pub data: DataOption,

    /// Do it: put a folder with everything that is intact in the place of the damaged one, which is kept beside it under another name.
    /// Where history.db is damaged, messages may come back that were deleted to keep to `--keep-for` and the like.
    #[arg(long)]
    pub write: bool,
}

/// The options of `relay backup`.
#[derive(Debug, Args)]
pub struct BackupOptions {
    /// The folder to copy to: one that does not exist yet.
    #[arg(value_name = "TARGET")]
    pub target: PathBuf,

    /// Where the data is.
    #[command(flatten)]
    pub data: DataOption,
}

/// The options of `relay bench`.
#[derive(Debug, Args)]
pub struct BenchOptions {
    /// Where the server listens.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8000", value_parser = parse_address)]
    pub address: SocketAddr,

    /// How many rooms.
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    pub rooms: usize,

    /// How many members each room has.
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    pub members: usize,

    /// How many of them send.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub senders: usize,

    /// How many of its own messages a sender has under way: it sends the next when one comes back. 1 is a person who waits, 256 a program
    /// that does not. Says what the server can do.
    #[arg(long, value_name = "NUMBER", default_value_t = 16, conflicts_with = "rate")]
    pub window: usize,

    /// Send so many messages a second, of all senders together, each at its time whatever comes back. Latency counts from that time. Says
    /// how the server feels at that rate, its pauses included.
    #[arg(long, value_name = "NUMBER")]
    pub rate: Option<u64>,

    /// For how many seconds they send.
    #[arg(long, value_name = "NUMBER", default_value_t = 5, conflicts_with = "messages")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=SECONDS_MAX))]
    pub seconds: u64,

    /// How many messages each of them sends.
    #[arg(long, value_name = "NUMBER")]
    pub messages: Option<u64>,

    /// How many bytes the text of a message has.
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = parse_text_bytes)]
    pub size: usize,

    /// How many more members there are who say nothing, ten in each of more rooms.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub idle: usize,

    /// How many more members the rooms have who read nothing. The server is expected to cut those for whom too much is queued; the report
    /// says how many.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub slow: usize,

    /// Chooses the rooms, `bench-SEED-..`, and the letters of the texts. Two runs at once need two.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub seed: u64,

    /// Take an address of another machine. It is not taken otherwise, because to whoever runs that server a load looks like an attack.
    #[arg(long)]
    pub any_host: bool,

    /// Say it as one JSON object, for programs.
    #[arg(long)]
    pub json: bool,
}

/// Which data folder a command is about.
#[derive(Debug, Args)]
pub struct DataOption {
    /// The folder that a server keeps its data in.
    #[arg(long = "data", env = "RELAY_DATA", value_name = "FOLDER", default_value = DEFAULT_DATA)]
    pub folder: PathBuf,
}

/// Where web clients connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpAddress {
    /// Nowhere.
    Off,
    /// Here.
    At(SocketAddr),
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write an address and a port, such as `127.0.0.1:8000`; names are not looked up".to_owned())
}

fn parse_text_bytes(text: &str) -> Result<usize, String> {
    // What a line has room for behind `MSG `.
    let range = *TEXT_BYTES.start()..=LINE_LEN_MAX_BYTES - 4;
    let help = || format!("it goes from {} to {} bytes", range.start(), range.end());
    text.parse().ok().filter(|bytes| range.contains(bytes)).ok_or_else(help)
}

fn parse_keep_for(text: &str) -> Result<Duration, String> {
    match duration::parse(text)? {
        Duration::ZERO => Err("nothing would be kept: leave the option out to keep everything".to_owned()),
        keep_for => Ok(keep_for),
    }
}

fn parse_disk_budget(text: &str) -> Result<u64, String> {
    match byte_size::parse(text)? {
        budget_bytes if budget_bytes < DISK_BUDGET_MIN_BYTES => {
            Err(format!("at least {}MiB are needed: the log alone takes a part of it", DISK_BUDGET_MIN_BYTES >> 20))
        }
        budget_bytes => Ok(budget_bytes),
    }
}

impl FromStr for HttpAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<HttpAddress, String> {
        match text {
            "off" => Ok(HttpAddress::Off),
            address => address.parse().map(HttpAddress::At).map_err(|_| "write an address such as `127.0.0.1:8080`, or `off`".to_owned()),
        }
    }
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// Only what needs somebody's attention.
    Error,
    /// Also what may come to need it.
    Warn,
    /// Also starts, stops and closed connections.
    Info,
    /// Also what every connection does.
    Debug,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_command_serves_with_the_defaults() {
        let Command::Serve(options) = Cli::parse_from(["relay"]).into_command() else { panic!("`relay` serves") };
        assert_eq!(options.listen, "127.0.0.1:8000".parse().unwrap());
        assert_eq!(options.http, HttpAddress::At("127.0.0.1:8080".parse().unwrap()));
        assert_eq!(options.data, PathBuf::from("./relay-data"));
        let defaults = relay_core::Settings::default();
        let heartbeat = [options.heartbeat_interval, options.heartbeat_timeout].map(Some);
        assert_eq!(heartbeat, [defaults.heartbeat_interval, defaults.heartbeat_timeout], "written twice: here as words, there as numbers");
    }

    #[test]
    fn the_options_of_serve_need_no_command() {
        let Command::Serve(options) = Cli::parse_from(["relay", "--listen", "127.0.0.1:9"]).into_command() else {
            panic!("`relay` serves")
        };
        assert_eq!(options.listen, "127.0.0.1:9".parse().unwrap());
    }

    #[test]
    fn everything_is_kept_unless_it_is_said_how_much() {
        let parse = |arguments: &[&str]| match Cli::parse_from(arguments).into_command() {
            Command::Serve(options) => (options.keep_for, options.keep_messages, options.disk_budget),
            _ => panic!("`relay` serves"),
        };
        assert_eq!(parse(&["relay"]), (None, None, None));
        let options = ["relay", "--keep-for", "30d", "--keep-messages", "1000", "--disk-budget", "512MiB"];
        assert_eq!(parse(&options), (Some(Duration::from_secs(30 * 24 * 3600)), Some(1000), Some(512 << 20)));
    }

    #[track_caller]
    fn check_refused(arguments: &[&str], expected: &str) {
        let error = Cli::try_parse_from([&["relay"], arguments].concat()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn a_wrong_word_is_named_with_the_nearest_right_one() {
        check_refused(&["serve", "--lisen", "127.0.0.1:1"], "--listen");
        check_refused(&["serv"], "serve");
        check_refused(&["serve", "--heartbeat-interval", "10"], "`10s`");
        check_refused(&["serve", "--http", "on"], "`off`");
        check_refused(&["serve", "--listen", "localhost"], "such as `127.0.0.1:8000`");
        check_refused(&["serve", "--messages-per-second", "0"], "0");
        check_refused(&["history"], "<ROOM>");
        check_refused(&["export"], "<ROOM>");
        check_refused(&["backup"], "<TARGET>");
        check_refused(&["serve", "--keep-for", "0"], "leave the option out");
        check_refused(&["serve", "--keep-for", "30"], "`30d`");
        check_refused(&["serve", "--keep-messages", "0"], "0");
        check_refused(&["serve", "--disk-budget", "20GB"], "`20GiB`");
        check_refused(&["serve", "--disk-budget", "511MiB"], "at least 512MiB");
        check_refused(&["bench", "--size", "16"], "from 17 to 4092");
        check_refused(&["bench", "--size", "4093"], "from 17 to 4092");
        check_refused(&["bench", "--seconds", "3601"], "3600");
        check_refused(&["bench", "--rate", "1", "--window", "1"], "cannot be used with");
        check_refused(&["bench", "--seconds", "1", "--messages", "1"], "cannot be used with");
    }
}
