//! `relay`, the program: reads the command line and runs what it says.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use relay::Log;
use relay::cli::{Cli, Command, LogLevel, RoomOptions};
use relay::storage::{HistoryError, print_history};
use tracing_subscriber::filter::LevelFilter;

fn main() -> ExitCode {
    let done = match Cli::parse().into_command() {
        Command::Serve(options) => {
            log_to_standard_error(options.log);
            relay::serve(&options).map_err(|error| error.to_string())
        }
        Command::History(options) => history(&options).map_err(|error| error.to_string()),
        Command::Export(_) | Command::Verify(_) | Command::Repair(_) | Command::Backup(_) => Err("not there yet".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // Nobody can be told that standard error is closed.
            let _ = writeln!(io::stderr(), "relay: {message}");
            ExitCode::FAILURE
        }
    }
}

fn history(options: &RoomOptions) -> Result<(), HistoryError> {
    let mut out = BufWriter::new(io::stdout().lock());
    let printed = print_history(&options.data.folder, &options.room, &mut out);
    match printed.and_then(|_| out.flush().map_err(HistoryError::Output)) {
        // `relay history lobby | head` has seen enough.
        Err(HistoryError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => printed,
    }
}

fn log_to_standard_error(level: LogLevel) {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let is_terminal = io::stderr().is_terminal();
    let log = tracing_subscriber::fmt().with_max_level(level).with_writer(|| Log).with_ansi(is_terminal).with_target(false);
    // What goes wrong with standard error is counted; saying it there again would panic.
    log.log_internal_errors(false).init();
}
