//! Jobs that run again and again: on a beat, with a pause, at once when asked. On a virtual clock, so that an hour takes no time.
//!
//! `cargo run -p miniloop --example recurring_jobs`. Next: `graceful_shutdown.rs`

use std::time::Duration;

use miniloop::schedule::Scheduler;
use miniloop::{EventLoop, LoopError, VirtualClock, now, sleep};

fn main() -> Result<(), LoopError> {
    let mut event_loop = EventLoop::builder().clock(VirtualClock::jumping()).build()?;
    event_loop.handle().on_error(|report| println!("{} {}", minutes(), report.subject()));
    event_loop.run_until_complete(async {
        let scheduler = Scheduler::new();
        // Every 20 minutes, whatever a run takes; never two runs at a time.
        scheduler.every("backup", minutes_of(20), async || {
            println!("{} backup begins", minutes());
            sleep(minutes_of(5)).await;
        });
        // 15 minutes after the end of the last run. The second one fails: that is reported, and the job goes on.
        let mut count = 0;
        let sweep = scheduler.after_each("sweep", minutes_of(15), move || {
            count += 1;
            async move {
                if count == 2 {
                    return Err("the broom is gone");
                }
                println!("{} sweep", minutes());
                Ok(())
            }
        });
        sleep(minutes_of(50)).await;
        sweep.run_now();
        sleep(minutes_of(13)).await; // a backup is under way
        scheduler.stop().await;
        println!("{} stopped after {} sweeps", minutes(), sweep.statistics().runs);
    })
}

fn minutes_of(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}

fn minutes() -> String {
    format!("{:2} min:", now().as_nanos() / 60_000_000_000)
}
