//! miniloop as a guest: a program that has a loop of its own, built on epoll, turns ours.
//!
//! The contract (see `EventLoop`): watch the loop's descriptor; before each sleep ask `next_timeout` and sleep at most that long; then call
//! `run_ready`. A host that cannot choose how long it sleeps makes the guest with `timer_fd(true)`: then the descriptor tells of timers,
//! too. This program does it both ways.
//!
//! `cargo run -p miniloop --example inside_epoll`; next: `frame_loop.rs`

use std::io::{PipeWriter, Read, Write, pipe};
use std::time::Duration;

use miniloop::{EventLoop, sleep};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

const GUEST: u64 = 0;
const PIPE: u64 = 1;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("host: sleeps as long as its guest says");
    host(EventLoop::new()?, EventLoop::next_timeout)?;
    println!("host: watches descriptors and nothing else");
    host(EventLoop::builder().timer_fd(true).build()?, |_| None)
}

fn host(mut guest: EventLoop, timeout: fn(&EventLoop) -> Option<Duration>) -> Result<(), Box<dyn std::error::Error>> {
    // The host has an event source of its own: a pipe.
    let (mut reader, writer) = pipe()?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &guest, epoll::EventData::new_u64(GUEST), epoll::EventFlags::IN)?;
    epoll::add(&epoll, &reader, epoll::EventData::new_u64(PIPE), epoll::EventFlags::IN)?;

    // Work for the guest can be prepared between its turns.
    let task = guest.handle().spawn(knock(writer));
    let mut events = Vec::with_capacity(8);
    loop {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), timeout(&guest).map(timespec).as_ref())?;
        for event in &events {
            if event.data.u64() == PIPE {
                let mut byte = [0];
                if reader.read(&mut byte)? == 0 {
                    println!("host: the pipe has ended, the task has finished: {}", task.is_finished());
                    return Ok(());
                }
                println!("host: heard {}", byte[0]);
            }
        }
        // Whether it was our descriptor, a timer or nothing: this never waits.
        guest.run_ready()?;
    }
}

/// A task that waits for time and then makes the host's own source ready.
async fn knock(mut writer: PipeWriter) -> std::io::Result<()> {
    for number in 1..=3 {
        sleep(Duration::from_millis(2)).await;
        println!("guest: knock {number}");
        writer.write_all(&[number])?;
    }
    Ok(())
}

fn timespec(timeout: Duration) -> Timespec {
    Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() }
}
