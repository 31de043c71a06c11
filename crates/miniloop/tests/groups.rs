//! Task groups: the rules G1 to G8, one behaviour after the other.

mod support;

use std::cell::Cell;
use std::future::pending;

use miniloop::{task_group, yield_now};
use support::manual;

#[test]
fn a_group_ends_when_its_body_and_all_members_have_ended_c115() {
    let (mut event_loop, _, trace) = manual();
    let total = Cell::new(0);
    event_loop
        .run_until_complete(async {
            task_group(async |g| {
                g.spawn(async {
                    total.set(total.get() + 1);
                    yield_now().await;
                    g.spawn(async {
                        yield_now().await;
                        trace.note("member of a member");
                    });
                });
                trace.note("body");
            })
            .await;
        })
        .unwrap();
    assert_eq!((total.get(), trace.take()), (1, vec!["body".to_owned(), "member of a member".to_owned()]));
}

#[test]
fn the_first_error_drops_the_others_c116() {
    let (mut event_loop, _, trace) = manual();
    let failed = event_loop
        .run_until_complete(task_group(async |g| {
            g.spawn(async {
                let _noisy = trace.on_drop("member");
                pending::<()>().await;
            });
            g.spawn(async {
                yield_now().await;
                Err::<(), _>("boom")
            });
            let _noisy = trace.on_drop("body");
            pending::<()>().await;
            Ok(())
        }))
        .unwrap();
    assert_eq!(failed.unwrap_err().into_first(), Some("boom"));
    assert_eq!(trace.take(), ["body", "member"]);
}
