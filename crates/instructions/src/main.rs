//! Does one thing a given number of times, to have its instructions counted: `instructions spawn 1000`.
//!
//! The names are those of the table in `tests/bounds.rs`, which runs this under callgrind, each of them twice with different numbers, so
//! that what a start costs does not count. Read next: `on_the_loop.rs`.

mod on_the_loop;
mod in_the_hub;

use std::env;
use std::process::ExitCode;

/// Does its thing so many times.
type Program = fn(usize);

const PROGRAMS: [(&str, Program); 10] = [
    ("yield", on_the_loop::yield_to_itself),
    ("ping-pong", on_the_loop::ping_pong),
    ("spawn", on_the_loop::spawn_and_await),
    ("group", on_the_loop::spawn_in_group),
    ("timer-cancel", on_the_loop::timer_cancel),
    ("timer-fire", on_the_loop::timer_fire),
    ("read-write", on_the_loop::read_write),
    ("echo", on_the_loop::echo),
    ("parse", in_the_hub::parse),
    ("fan-out", in_the_hub::fan_out),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [name, times] = arguments.as_slice()
        && let Some((_, program)) = PROGRAMS.iter().find(|(known, _)| known == name)
        && let Ok(times) = times.parse()
    {
        program(times);
        return ExitCode::SUCCESS;
    }
    let names = PROGRAMS.map(|(name, _)| name).join(", ");
    eprintln!("usage: instructions PROGRAM TIMES, where PROGRAM is one of {names}, and TIMES a number");
    ExitCode::FAILURE
}
