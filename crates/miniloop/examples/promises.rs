//! From callbacks to `await` and back.
//!
//! A promise is a pair: the resolver sets a result once, the promise is awaited. Whatever calls back can so become something to await.
//!
//! `cargo run -p miniloop --example promises`; next: `echo_server.rs`

use std::time::Duration;

use miniloop::{Abandoned, LoopHandle, Promise, promise, spawn, timeout};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `run` makes a loop, runs this future to its end, cancels what is left, and closes the loop.
    miniloop::run(async {
        // A function that calls back ..
        look_up("alice", |answer| println!("called back: {answer}"));
        // .. and the same one, awaited.
        println!("awaited: {}", ask("bob").await?);

        // Two tasks at the same time. A task starts in the next round; its handle gives its value.
        let (carol, dave) = (spawn(ask("carol")), spawn(ask("dave")));
        println!("together: {}, {}", carol.await??, dave.await??);

        // One result for many readers, who go on in the order in which they began to wait.
        let shared = ask("erin").shared();
        let readers = ["first", "second"].map(|reader| {
            let shared = shared.clone();
            spawn(async move { println!("{reader} reader: {}", shared.await.as_ref().as_ref().unwrap()) })
        });
        for reader in readers {
            reader.await?;
        }

        // A resolver that is dropped unset answers with an error. Nobody waits for ever.
        let (resolver, forgotten) = promise::<String, Abandoned>();
        drop(resolver);
        println!("forgotten: {}", forgotten.await.unwrap_err());

        // Dropping a promise cancels it, which the side that works for it can see. `timeout` drops what takes too long.
        let (resolver, slow) = promise::<String, Abandoned>();
        let worker = spawn(async move {
            resolver.cancelled().await;
            println!("worker: nobody waits any more");
        });
        println!("slow: {}", timeout(Duration::from_millis(5), slow).await.unwrap_err());
        worker.await?;
        Ok(())
    })?
}

/// In the style of callbacks: answers later.
fn look_up(name: &'static str, answer: impl FnOnce(String) + 'static) {
    LoopHandle::current().call_later(Duration::from_millis(1), move || answer(format!("{name} is in")));
}

/// The same to be awaited: the callback sets the promise.
fn ask(name: &'static str) -> Promise<String, Abandoned> {
    let (resolver, promise) = promise();
    look_up(name, move |answer| resolver.set_result(answer));
    promise
}
