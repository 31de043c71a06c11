//! An archive that waits, fails or is full: what goes on beside it, when it is asked to work, and how commits wait for it.
//!
//! The server is inside the test; its archive answers what the test says, and time passes when the test says so. Every question to the
//! archive is seen, in order: one that should not have been asked fails the next expectation. What a test owns goes with it when it fails,
//! so that nobody waits for the workers.

mod support;

use std::path::PathBuf;
use std::time::Duration;

use relay::server::Stop;
use relay::storage::{ArchiveError, Committed, Loaded, Next, Storage, StorageError, Worked};
use relay_core::{Batch, Settings};
use support::world::{Asking, BASE_SEQUENCE, COMMIT_BYTES, Peer, Told, World, in_virtual_time_with};

/// So much that no test comes near it.
const UNBOUNDED: u64 = 1 << 30;

/// No heartbeats: nothing happens that a test does not do.
fn quiet() -> Settings {
    Settings { heartbeat_interval: None, ..Settings::default() }
}

/// So many commits of a test's storage are folded, all up to the one with this number of the test.
fn folded(up_to: u64, commits: u64, next: Next) -> Result<Worked, ArchiveError> {
    Ok(Worked { folded: BASE_SEQUENCE + up_to, log_bytes: commits * COMMIT_BYTES, next })
}

fn full() -> ArchiveError {
    ArchiveError::Full { folder: PathBuf::from("relay-data") }
}

/// Has a message stored, in a commit of its own.
async fn commit(peer: &mut Peer, name: &str, text: &str) {
    peer.say(&format!("MSG {text}")).await;
    peer.hears(&format!("MESSAGE {name} {text}")).await;
}

/// Lets everything happen that needs neither time nor another thread.
async fn settle() {
    for _ in 0..20 {
        miniloop::sleep_until(miniloop::now()).await;
    }
}

#[test]
fn a_history_waits_for_its_load_while_everything_else_goes_on() {
    let (archive, questions) = Asking::new();
    in_virtual_time_with(quiet(), Told::nothing(), archive, UNBOUNDED, async move |world: World| {
        questions.work(BASE_SEQUENCE).await.send(folded(0, 0, Next::WhenCommitted)).expect("it waits");
        let mut bob = Peer::join(&world, "bob", "kitchen").await;
        questions.load(("kitchen", BASE_SEQUENCE)).await.send(Ok(Loaded::default())).expect("it waits");
        commit(&mut bob, "bob", "first").await;
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        let load = questions.load(("lounge", BASE_SEQUENCE + 1)).await;
        ada.say("HISTORY").await;
        world.until(r#"relay_pauses_total{reason="history"}"#, |count| count == 1.0).await;
        ada.say("MSG three").await;

        commit(&mut bob, "bob", "second").await;
        bob.say("HISTORY").await;
        for line in ["HISTORY_BEGIN 2", "MESSAGE bob first", "MESSAGE bob second", "HISTORY_END"] {
            bob.hears(line).await;
        }
        let mut eve = Peer::join(&world, "eve", "lounge").await;
        commit(&mut eve, "eve", "two").await;
        ada.hears("MESSAGE eve two").await;

        load.send(Ok(Loaded { lines: b"MESSAGE zoe one\n".to_vec(), message_count: 1 })).expect("it waits");
        for line in ["HISTORY_BEGIN 2", "MESSAGE zoe one", "MESSAGE eve two", "HISTORY_END", "MESSAGE ada three"] {
            ada.hears(line).await;
        }
        assert_eq!(world.number("relay_rooms_loaded_total"), 2.0);
    });
}

#[test]
fn a_history_that_cannot_be_loaded_is_told_and_asked_for_again() {
    let (archive, questions) = Asking::new();
    in_virtual_time_with(quiet(), Told::nothing(), archive, UNBOUNDED, async move |world: World| {
        questions.work(BASE_SEQUENCE).await.send(folded(0, 0, Next::WhenCommitted)).expect("it waits");
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        ada.say("HISTORY").await;
        let failed = ArchiveError::Failed("history.db is damaged".to_owned());
        questions.load(("lounge", BASE_SEQUENCE)).await.send(Err(failed)).expect("it waits");
        ada.hears("ERR history unavailable").await;
        commit(&mut ada, "ada", "two").await;
        assert_eq!(world.number(r#"relay_archive_errors_total{reason="load"}"#), 1.0);

        ada.say("HISTORY").await;
        let one = Loaded { lines: b"MESSAGE ada one\n".to_vec(), message_count: 1 };
        questions.load(("lounge", BASE_SEQUENCE)).await.send(Ok(one)).expect("it waits");
        for line in ["HISTORY_BEGIN 2", "MESSAGE ada one", "MESSAGE ada two", "HISTORY_END"] {
            ada.hears(line).await;
        }
        assert!(!world.serving.is_finished());
    });
}

#[test]
fn a_load_waits_for_one_piece_of_work_at_most() {
    let (archive, questions) = Asking::new();
    in_virtual_time_with(quiet(), Told::nothing(), archive, UNBOUNDED, async move |world: World| {
        let work = questions.work(BASE_SEQUENCE).await;
        let _ada = Peer::join(&world, "ada", "lounge").await;
        let _bob = Peer::join(&world, "bob", "kitchen").await;
        work.send(folded(0, 0, Next::Now)).expect("it waits");
        for room in ["lounge", "kitchen"] {
            questions.load((room, BASE_SEQUENCE)).await.send(Ok(Loaded::default())).expect("it waits");
        }
        questions.work(BASE_SEQUENCE).await.send(folded(0, 0, Next::WhenCommitted)).expect("it waits");
    });
}

#[test]
fn the_archive_works_when_enough_is_unfolded_or_a_commit_is_old_and_not_when_nothing_happens() {
    let (archive, questions) = Asking::new();
    // A quarter of it, four commits, is enough.
    in_virtual_time_with(quiet(), Told::nothing(), archive, 16 * COMMIT_BYTES, async move |world: World| {
        questions.work(BASE_SEQUENCE).await.send(folded(0, 0, Next::WhenCommitted)).expect("it waits");
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        questions.load(("lounge", BASE_SEQUENCE)).await.send(Ok(Loaded::default())).expect("it waits");
        commit(&mut ada, "ada", "one").await;
        world.clock.advance(Duration::from_secs(59));
        settle().await;
        commit(&mut ada, "ada", "two").await;
        world.clock.advance(Duration::from_secs(1));
        // The first of them is a minute old.
        questions.work(BASE_SEQUENCE + 2).await.send(folded(2, 2, Next::WhenCommitted)).expect("it waits");
        world.until("relay_unfolded_bytes", |bytes| bytes == 0.0).await;

        for _ in 0..10 {
            world.clock.advance(Duration::from_secs(3_600));
            settle().await;
        }
        for text in ["three", "four", "five", "six"] {
            commit(&mut ada, "ada", text).await;
        }
        let work = questions.work(BASE_SEQUENCE + 6).await;
        commit(&mut ada, "ada", "seven").await;
        work.send(folded(2, 3, Next::Now)).expect("it waits");
        questions.work(BASE_SEQUENCE + 7).await.send(folded(6, 1, Next::In(Duration::from_secs(10)))).expect("it waits");
        world.until("relay_unfolded_bytes", |bytes| bytes == COMMIT_BYTES as f64).await;
        world.clock.advance(Duration::from_secs(9));
        settle().await;
        commit(&mut ada, "ada", "eight").await;
        world.clock.advance(Duration::from_secs(1));
        questions.work(BASE_SEQUENCE + 8).await.send(folded(8, 2, Next::WhenCommitted)).expect("it waits");
        world.until("relay_archive_work_seconds_count", |count| count == 5.0).await;
        assert_eq!(world.number("relay_folded_bytes_total"), 8.0 * COMMIT_BYTES as f64);
    });
}

#[test]
fn what_waits_behind_an_archive_that_does_not_fold_it_is_offered_once_a_minute() {
    let (archive, questions) = Asking::new();
    in_virtual_time_with(quiet(), Told::nothing(), archive, UNBOUNDED, async move |world: World| {
        questions.work(BASE_SEQUENCE).await.send(folded(0, 0, Next::WhenCommitted)).expect("it waits");
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        questions.load(("lounge", BASE_SEQUENCE)).await.send(Ok(Loaded::default())).expect("it waits");
        commit(&mut ada, "ada", "one").await;
        for works in 1..4 {
            world.clock.advance(Duration::from_secs(59));
            settle().await;
            assert_eq!(world.number("relay_archive_work_seconds_count"), f64::from(works));
            world.clock.advance(Duration::from_secs(1));
            questions.work(BASE_SEQUENCE + 1).await.send(folded(0, 0, Next::WhenCommitted)).expect("it waits");
            world.until("relay_archive_work_seconds_count", |count| count == f64::from(works + 1)).await;
        }
    });
}

/// Every commit takes a new file.
struct OneCommitPerFile(u64);

impl Storage for OneCommitPerFile {
    fn commit(&mut self, _: &Batch) -> Result<Committed, StorageError> {
        self.0 += 1;
        Ok(Committed { sequence: self.0, log_bytes: COMMIT_BYTES, file_taken: true })
    }
}

#[test]
fn the_archive_works_at_once_after_a_commit_that_took_a_file() {
    let (archive, questions) = Asking::new();
    in_virtual_time_with(quiet(), OneCommitPerFile(BASE_SEQUENCE), archive, UNBOUNDED, async move |world: World| {
        questions.work(BASE_SEQUENCE).await.send(folded(0, 0, Next::WhenCommitted)).expect("it waits");
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        questions.load(("lounge", BASE_SEQUENCE)).await.send(Ok(Loaded::default())).expect("it waits");
        for (number, text) in [(1, "one"), (2, "two")] {
            commit(&mut ada, "ada", text).await;
            questions.work(BASE_SEQUENCE + number).await.send(folded(0, 0, Next::WhenCommitted)).expect("it waits");
        }
    });
}

#[test]
fn a_room_that_is_archived_and_that_nobody_is_in_is_forgotten_and_loaded_again() {
    let (archive, questions) = Asking::new();
    in_virtual_time_with(quiet(), Told::nothing(), archive, UNBOUNDED, async move |world: World| {
        questions.work(BASE_SEQUENCE).await.send(folded(0, 0, Next::WhenCommitted)).expect("it waits");
        for (number, room) in [(0, "lounge"), (1, "kitchen")] {
            let mut ada = Peer::join(&world, "ada", room).await;
            questions.load((room, BASE_SEQUENCE + number)).await.send(Ok(Loaded::default())).expect("it waits");
            commit(&mut ada, "ada", "one").await;
            ada.say("QUIT").await;
            ada.hears("OK QUIT").await;
            ada.hears_the_end().await;
        }
        assert_eq!(world.number("relay_rooms_in_memory"), 2.0);
        world.clock.advance(Duration::from_secs(60));
        questions.work(BASE_SEQUENCE + 2).await.send(folded(1, 1, Next::WhenCommitted)).expect("it waits");
        world.until("relay_rooms_forgotten_total", |count| count > 0.0).await;
        assert_eq!(world.number("relay_rooms_in_memory"), 1.0, "the kitchen's message is not archived");

        let mut bob = Peer::join(&world, "bob", "lounge").await;
        let one = Loaded { lines: b"MESSAGE ada one\n".to_vec(), message_count: 1 };
        questions.load(("lounge", BASE_SEQUENCE + 2)).await.send(Ok(one)).expect("it waits");
        bob.say("HISTORY").await;
        for line in ["HISTORY_BEGIN 1", "MESSAGE ada one", "HISTORY_END"] {
            bob.hears(line).await;
        }
    });
}

#[test]
fn an_archive_that_folds_nothing_though_much_is_unfolded_is_called_again_after_the_next_commit() {
    let (archive, questions) = Asking::new();
    // A quarter of it, one commit, is enough.
    in_virtual_time_with(quiet(), Told::nothing(), archive, 4 * COMMIT_BYTES, async move |world: World| {
        questions.work(BASE_SEQUENCE).await.send(folded(0, 0, Next::WhenCommitted)).expect("it waits");
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        questions.load(("lounge", BASE_SEQUENCE)).await.send(Ok(Loaded::default())).expect("it waits");
        for (number, text) in [(1, "one"), (2, "two"), (3, "three")] {
            commit(&mut ada, "ada", text).await;
            questions.work(BASE_SEQUENCE + number).await.send(folded(0, 0, Next::WhenCommitted)).expect("it waits");
            world.until("relay_archive_work_seconds_count", |count| count == number as f64 + 1.0).await;
            settle().await;
        }
    });
}

#[test]
fn messages_are_refused_while_the_log_is_at_its_bound_and_the_disk_too_full_to_fold_it() {
    let (archive, questions) = Asking::new();
    in_virtual_time_with(quiet(), Told::nothing(), archive, 8 * COMMIT_BYTES, async move |world: World| {
        questions.work(BASE_SEQUENCE).await.send(folded(0, 0, Next::WhenCommitted)).expect("it waits");
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        questions.load(("lounge", BASE_SEQUENCE)).await.send(Ok(Loaded::default())).expect("it waits");
        for text in ["one", "two"] {
            commit(&mut ada, "ada", text).await;
        }
        questions.work(BASE_SEQUENCE + 2).await.send(Err(full())).expect("it waits");
        for text in ["three", "four", "five", "six", "seven", "eight"] {
            commit(&mut ada, "ada", text).await;
        }
        for _ in 0..2 {
            ada.say("MSG nine").await;
            ada.hears("ERR storage full").await;
            ada.say("HISTORY").await;
            ada.hears("HISTORY_BEGIN 8").await;
            for text in ["one", "two", "three", "four", "five", "six", "seven", "eight"] {
                ada.hears(&format!("MESSAGE ada {text}")).await;
            }
            ada.hears("HISTORY_END").await;
        }
        assert_eq!(world.number("relay_messages_refused_total"), 2.0);
        assert_eq!(world.number("relay_commits_refused_total"), 2.0);

        // It is tried again by itself.
        for _ in 0..2 {
            world.clock.advance(Duration::from_secs(5));
            questions.work(BASE_SEQUENCE + 8).await.send(Err(full())).expect("it waits");
            let tries = world.number(r#"relay_archive_errors_total{reason="full"}"#) + 1.0;
            world.until(r#"relay_archive_errors_total{reason="full"}"#, |count| count == tries).await;
            ada.say("MSG nine").await;
            ada.hears("ERR storage full").await;
        }
        world.clock.advance(Duration::from_secs(5));
        questions.work(BASE_SEQUENCE + 8).await.send(folded(8, 8, Next::WhenCommitted)).expect("it waits");
        world.until("relay_unfolded_bytes", |bytes| bytes == 0.0).await;
        commit(&mut ada, "ada", "nine").await;
        assert!(!world.serving.is_finished());
    });
}

#[test]
fn an_archive_that_found_the_disk_full_tries_again_when_messages_are_stored_again() {
    let (verdicts, storage) = Told::new();
    let (archive, questions) = Asking::new();
    in_virtual_time_with(quiet(), storage, archive, UNBOUNDED, async move |world: World| {
        questions.work(BASE_SEQUENCE).await.send(Err(full())).expect("it waits");
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        questions.load(("lounge", BASE_SEQUENCE)).await.send(Ok(Loaded::default())).expect("it waits");
        ada.say("MSG one").await;
        verdicts.send(Err(StorageError::Full { folder: PathBuf::from("relay-data") })).expect("it waits");
        ada.hears("ERR storage full").await;
        ada.say("MSG two").await;
        verdicts.send(Ok(())).expect("it waits");
        ada.hears("MESSAGE ada two").await;
        // No time has passed.
        questions.work(BASE_SEQUENCE + 1).await.send(folded(1, 1, Next::WhenCommitted)).expect("it waits");
    });
}

#[test]
fn an_archive_that_fails_ends_the_server_after_what_was_accepted_is_stored() {
    let (archive, questions) = Asking::new();
    in_virtual_time_with(quiet(), Told::nothing(), archive, 2 * COMMIT_BYTES, async move |world: World| {
        questions.work(BASE_SEQUENCE).await.send(folded(0, 0, Next::WhenCommitted)).expect("it waits");
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        questions.load(("lounge", BASE_SEQUENCE)).await.send(Ok(Loaded::default())).expect("it waits");
        commit(&mut ada, "ada", "one").await;
        let work = questions.work(BASE_SEQUENCE + 1).await;
        commit(&mut ada, "ada", "two").await;
        // At the bound it would wait for the archive.
        ada.say("MSG three").await;
        world.until("relay_uncommitted_bytes", |bytes| bytes > 0.0).await;
        settle().await;
        assert_eq!(world.number("relay_commits_total"), 2.0);
        work.send(Err(ArchiveError::Failed("history.db: the disk fails".to_owned()))).expect("it waits");
        ada.hears("MESSAGE ada three").await;
        ada.hears_the_end().await;
        drop(ada);
        let stop = world.serving.await;
        assert!(matches!(&stop, Ok(Stop::Archive(ArchiveError::Failed(text))) if text.contains("the disk fails")), "{stop:?}");
    });
}

#[test]
fn commits_are_slowed_to_the_pace_of_the_archive_and_wait_for_it_at_the_bound() {
    let (archive, questions) = Asking::new();
    in_virtual_time_with(quiet(), Told::nothing(), archive, 8 * COMMIT_BYTES, async move |world: World| {
        questions.work(BASE_SEQUENCE).await.send(folded(0, 0, Next::WhenCommitted)).expect("it waits");
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        questions.load(("lounge", BASE_SEQUENCE)).await.send(Ok(Loaded::default())).expect("it waits");
        for text in ["one", "two"] {
            commit(&mut ada, "ada", text).await;
        }
        // It folds one commit a second.
        let work = questions.work(BASE_SEQUENCE + 2).await;
        world.clock.advance(Duration::from_secs(1));
        work.send(folded(1, 1, Next::Now)).expect("it waits");
        let work = questions.work(BASE_SEQUENCE + 2).await;
        assert_eq!(world.number("relay_fold_pace_bytes_per_second"), COMMIT_BYTES as f64);

        // To half of the bound and one further nobody waits.
        for text in ["three", "four", "five", "six"] {
            commit(&mut ada, "ada", text).await;
        }
        assert_eq!(world.number("relay_commit_delay_seconds_count"), 0.0);
        // Then in steps of a quarter, to twice the time that the archive needs.
        for (text, wait_ms) in [("seven", 500), ("eight", 1_000), ("nine", 1_500)] {
            ada.say(&format!("MSG {text}")).await;
            world.until("relay_uncommitted_bytes", |bytes| bytes > 0.0).await;
            settle().await;
            world.clock.advance(Duration::from_millis(wait_ms - 1));
            settle().await;
            assert!(world.number("relay_uncommitted_bytes") > 0.0, "{text} came early");
            world.clock.advance(Duration::from_millis(1));
            ada.hears(&format!("MESSAGE ada {text}")).await;
        }
        assert_eq!(world.number("relay_commit_delay_seconds_count"), 3.0);
        assert_eq!(world.number("relay_commit_delay_seconds_max"), 1.5);
        assert_eq!(world.number("relay_commits_delayed_at_bound_total"), 0.0);

        ada.say("MSG ten").await;
        world.until("relay_uncommitted_bytes", |bytes| bytes > 0.0).await;
        world.clock.advance(Duration::from_secs(100));
        settle().await;
        assert_eq!(world.number("relay_commits_total"), 9.0);
        assert_eq!(world.number("relay_unfolded_bytes"), 8.0 * COMMIT_BYTES as f64);
        work.send(folded(9, 8, Next::WhenCommitted)).expect("it waits");
        ada.hears("MESSAGE ada ten").await;
        assert_eq!(world.number("relay_commits_delayed_at_bound_total"), 1.0);
        assert_eq!(world.number("relay_commits_slowed_episodes_total"), 1.0);
        assert_eq!(world.number("relay_unfolded_peak_bytes"), 8.0 * COMMIT_BYTES as f64);
    });
}

#[test]
fn the_numbers_say_what_happened() {
    let (verdicts, storage) = Told::new();
    let (archive, questions) = Asking::new();
    in_virtual_time_with(quiet(), storage, archive, UNBOUNDED, async move |world: World| {
        let work = questions.work(BASE_SEQUENCE).await;
        world.clock.advance(Duration::from_millis(20));
        work.send(folded(0, 0, Next::WhenCommitted)).expect("it waits");
        // The archive answers from a thread of its own.
        world.until("relay_archive_work_seconds_count", |count| count == 1.0).await;
        let mut ada = Peer::join(&world, "ada", "lounge").await;
        let load = questions.load(("lounge", BASE_SEQUENCE)).await;
        world.clock.advance(Duration::from_millis(2));
        load.send(Ok(Loaded::default())).expect("it waits");
        world.until("relay_rooms_loaded_total", |count| count == 1.0).await;
        let mut bob = Peer::join(&world, "bob", "lounge").await;
        ada.send(b"MSG one\nMSG two\nMSG three\n").await;
        world.until("relay_messages_accepted_total", |count| count == 3.0).await;
        settle().await;
        world.clock.advance(Duration::from_millis(250));
        verdicts.send(Ok(())).expect("it waits");
        for text in ["one", "two", "three"] {
            ada.hears(&format!("MESSAGE ada {text}")).await;
            bob.hears(&format!("MESSAGE ada {text}")).await;
        }
        bob.say("QUIT").await;
        bob.hears("OK QUIT").await;
        bob.hears_the_end().await;
        let expected = [
            ("relay_connections_open", 1.0),
            ("relay_connections_total", 2.0),
            (r#"relay_connections_closed_total{reason="quit"}"#, 1.0),
            ("relay_rooms_in_memory", 1.0),
            ("relay_messages_committed_total", 3.0),
            ("relay_deliveries_total", 6.0),
            ("relay_commits_total", 1.0),
            ("relay_commit_seconds_count", 1.0),
            ("relay_commit_seconds_max", 0.25),
            (r#"relay_commit_seconds{quantile="0.999"}"#, 0.25),
            ("relay_commit_messages_max", 3.0),
            ("relay_commit_log_bytes_sum", COMMIT_BYTES as f64),
            ("relay_unfolded_bytes", COMMIT_BYTES as f64),
            ("relay_archive_work_seconds_max", 0.02),
            ("relay_history_load_seconds_max", 0.002),
            ("relay_history_load_seconds_count", 1.0),
        ];
        for (name, value) in expected {
            assert_eq!(world.number(name), value, "{name}");
        }
        let text = world.measured.text();
        let columns: Vec<_> = text.lines().map(|line| line.rfind(' ')).collect();
        assert!(columns.windows(2).all(|pair| pair[0] == pair[1]), "not aligned:\n{text}");
    });
}
