//! `relay-load`, a load generator for tests and measurements: many members in many rooms, who check what they see.
//!
//! One thread on one event loop. It must be faster than the server: nothing is allocated for a message, and everything is read and written
//! in large pieces. The files stand in reading order.

mod violation;
mod wire;
mod seen;
mod sender;
mod options;
mod run;
mod member;
mod report;

use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use clap::Parser;
use miniloop::LoopHandle;
use miniloop::net::TcpStream;
use relay::raise_descriptor_limit;

use member::Member;
use options::Options;
use report::Report;
use run::{Run, STALL_MAX};
use violation::Violation;

fn main() -> ExitCode {
    match load(Options::parse()) {
        Ok(run) => {
            let report = Report::of(&run);
            println!("{}", report.json());
            eprintln!("{}", report.text());
            ExitCode::SUCCESS
        }
        Err(violation) => {
            eprintln!("relay-load: {violation}");
            ExitCode::FAILURE
        }
    }
}

fn load(options: Options) -> Result<Rc<Run>, Violation> {
    options.check()?;
    // Where it is too low all the same, connecting says so.
    raise_descriptor_limit();
    miniloop::run(async {
        let (run, end) = Run::new(options);
        let run = Rc::new(run);
        // Dropped, and so ended, with this block.
        let _watch = miniloop::spawn(fail_when_stalled(run.clone()));
        let _members = miniloop::spawn(connect_all(run.clone()));
        end.await?;
        Ok(run)
    })
    .map_err(|error| Violation::new(error.to_string()))?
}

/// Connects one member after the other, so that the listener's queue is never full, and keeps them.
async fn connect_all(run: Rc<Run>) {
    let mut members = Vec::new();
    for (room, member) in (0..run.options.rooms).flat_map(|room| (0..run.options.members).map(move |member| (room, member))) {
        let stream = match TcpStream::connect(run.options.address).await {
            Ok(stream) => stream,
            Err(error) => return run.fail(Violation::new(format!("cannot connect member {member} of room {room}: {error}"))),
        };
        let left = run.clone();
        let member = Member::new(run.clone(), room, member, stream);
        members.push(miniloop::spawn(async move { left.left(member.await) }));
    }
    end_after(&run, run.options.seconds).await;
    std::future::pending().await
}

async fn end_after(run: &Rc<Run>, seconds: Option<u64>) {
    if let Some(seconds) = seconds {
        let _ = run.started().await;
        let run = run.clone();
        LoopHandle::current().call_later(Duration::from_secs(seconds), move || run.end_time());
    }
}

async fn fail_when_stalled(run: Rc<Run>) {
    let mut progress = run.progress();
    loop {
        miniloop::sleep(STALL_MAX).await;
        let before = std::mem::replace(&mut progress, run.progress());
        if before == progress {
            run.fail(run.stall());
        }
    }
}
