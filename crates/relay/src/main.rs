//! `relay`, the program: reads the command line and runs what it says.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use relay::Log;
use relay::cli::{Cli, Command, LogLevel};
use relay::commands;
use tracing_subscriber::filter::LevelFilter;

fn main() -> ExitCode {
    let done = match Cli::parse().into_command() {
        Command::Serve(options) => {
            log_to_standard_error(options.log);
            relay::serve(&options).map(|()| ExitCode::SUCCESS)
        }
        Command::History(options) => commands::history(&options),
        Command::Export(options) => commands::export(&options),
        Command::Verify(options) => commands::verify(&options),
        Command::Repair(options) => commands::repair(&options),
        Command::Backup(options) => commands::backup(&options),
        Command::Bench(options) => relay::bench(&options),
    };
    match done {
        Ok(status) => status,
        Err(message) => {
            // Nobody can be told that standard error is closed.
            let _ = writeln!(io::stderr(), "relay: {message}");
            ExitCode::FAILURE
        }
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
