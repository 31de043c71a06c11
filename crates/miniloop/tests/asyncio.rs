//! The model is asyncio's: random programs run alike here and on CPython, in virtual time, wherever asyncio promises an order.
//!
//! The reference loop of `random_programs.rs` was written from our rules; this one was written by others, from theirs. It needs `python3`.
//! `MINILOOP_PROGRAMS=20000` plays so many programs instead of the default.

#[path = "asyncio/player.rs"]
mod player;
#[path = "asyncio/program.rs"]
mod program;

use std::cell::RefCell;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use proptest::test_runner::{Config, TestCaseError, TestRunner};

use program::Program;

#[test]
fn random_programs_leave_the_same_trace_on_asyncio() {
    let Some(asyncio) = Asyncio::start() else {
        println!("SKIPPED: python3 is not installed");
        return;
    };
    let asyncio = RefCell::new(asyncio);
    let cases = env::var("MINILOOP_PROGRAMS").ok().and_then(|count| count.parse().ok()).unwrap_or(PROGRAMS);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let notes = RefCell::new(0);
    let result = runner.run(&Program::any(), |program| {
        let (ours, theirs) = (to_json(&player::play(&program)), asyncio.borrow_mut().play(&program));
        *notes.borrow_mut() += theirs.matches('@').count();
        if ours == theirs { Ok(()) } else { Err(TestCaseError::fail(format!("miniloop {ours}\n asyncio {theirs}\n program {program}"))) }
    });
    if let Err(difference) = result {
        panic!("{difference}");
    }
    // Programs in which nothing happens would prove nothing.
    assert!(notes.take() > 4 * cases as usize);
}

/// CPython, playing programs.
struct Asyncio {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Asyncio {
    /// `None` where there is no `python3`.
    fn start() -> Option<Asyncio> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/asyncio/play.py");
        let mut process = Command::new("python3").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let (input, output) = (process.stdin.take()?, BufReader::new(process.stdout.take()?));
        Some(Asyncio { process, input, output })
    }

    fn play(&mut self, program: &Program) -> String {
        writeln!(self.input, "{program}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

impl Drop for Asyncio {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn to_json(trace: &[String]) -> String {
    let items: Vec<_> = trace.iter().map(|item| format!("\"{item}\"")).collect();
    format!("[{}]", items.join(", "))
}

const PROGRAMS: u32 = 2_000;
