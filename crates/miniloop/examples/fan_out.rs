//! Many requests, at most so many at a time, results in order: a group that borrows, and a semaphore.
//!
//! `cargo run -p miniloop --example fan_out`. Next: `recurring_jobs.rs`

use std::cell::Cell;
use std::time::Duration;

use miniloop::sync::Semaphore;
use miniloop::{LoopError, join_all, sleep};

const AT_A_TIME: usize = 3;

fn main() -> Result<(), LoopError> {
    miniloop::run(async {
        let permits = Semaphore::new(AT_A_TIME);
        let (running, most) = (Cell::new(0), Cell::new(0));
        // The branches of a join are a part of this task, so they borrow.
        let lengths = join_all(["ada", "grace", "barbara", "edsger", "donald", "frances"].map(async |name| {
            let _permit = permits.acquire().await;
            running.set(running.get() + 1);
            most.set(most.get().max(running.get()));
            sleep(Duration::from_millis(1)).await; // stands for a request
            running.set(running.get() - 1);
            format!("{name}: {}", name.len())
        }))
        .await;
        println!("{}", lengths.join(", "));
        println!("at most {} at a time", most.get());
    })
}
