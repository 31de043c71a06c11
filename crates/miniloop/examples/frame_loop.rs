//! miniloop inside a game or a GUI: a loop of frames turns ours once a frame, and never sleeps in it.
//!
//! What has become due runs with the next frame; what that makes ready runs with the one after. Here a virtual clock stands in for the
//! screen: each frame moves it by 20 ms. A real program leaves the clock alone, and waits for the screen between two frames. One turn is a
//! step of each task: enough to animate. For a download call `run_ready` again while `next_timeout` is zero,
//! or each frame brings little.
//!
//! `cargo run -p miniloop --example frame_loop`; next: `tcp_proxy.rs`

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use miniloop::{EventLoop, LoopError, VirtualClock, sleep};

const FRAME: Duration = Duration::from_millis(20);

fn main() -> Result<(), LoopError> {
    let screen = VirtualClock::manual();
    let mut event_loop = EventLoop::builder().clock(&screen).build()?;
    let height = Rc::new(Cell::new(0));

    // An animation is a task: the frames that it takes are the steps of a loop.
    let ball = height.clone();
    let animation = event_loop.handle().spawn(async move {
        for metres in [3, 5, 3, 0] {
            sleep(Duration::from_millis(30)).await;
            ball.set(metres);
        }
        "landed"
    });

    let mut number = 0;
    while !animation.is_finished() {
        event_loop.run_ready()?;
        println!("frame {number} at {:3} ms: the ball is {} m up", FRAME.as_millis() * number, height.get());
        screen.advance(FRAME);
        number += 1;
    }
    let end = event_loop.run_until_complete(animation)?;
    println!("{}", end.unwrap_or("lost"));
    Ok(())
}
