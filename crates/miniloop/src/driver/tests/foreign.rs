//! Descriptors of the user's: `add_reader` and `add_writer`, one event for a `sock_*` call, and whose a number is.

use super::*;

#[test]
fn a_callback_is_woken_for_as_long_as_something_is_unread() {
    let (mut ours, mut theirs) = pair();
    let mut bench = Bench::new();
    bench.callback(&ours, R, "r");
    assert_eq!(bench.poll(), "");
    theirs.write_all(b"xy").unwrap();
    assert_eq!(bench.poll(), "r");
    ours.read_exact(&mut [0]).unwrap();
    assert_eq!(bench.poll(), "r");
    ours.read_exact(&mut [0]).unwrap();
    assert_eq!(bench.poll(), "");
}

#[test]
fn a_second_reader_replaces_the_first_and_the_writer_is_independent() {
    let (ours, mut theirs) = pair();
    let mut bench = Bench::new();
    assert!(bench.callback(&ours, R, "1").is_none());
    assert!(bench.callback(&ours, W, "w").is_none());
    bench.callback(&ours, R, "2").expect("the first reader is handed back").wake();
    assert_eq!(bench.log.take(), "1");
    theirs.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "2w");
    assert!(bench.driver.clear_callback(ours.as_raw_fd(), R).is_some());
    assert_eq!(bench.poll(), "w");
    assert!(bench.driver.clear_callback(ours.as_raw_fd(), W).is_some());
    assert_eq!((bench.watched(), bench.is_quiet()), (0, true), "with the last interest the descriptor goes");
}

#[test]
fn removing_an_unknown_callback_is_not_an_error() {
    let (ours, _theirs) = pair();
    let mut bench = Bench::new();
    assert!(bench.driver.clear_callback(ours.as_raw_fd(), R).is_none());
    bench.callback(&ours, R, "r");
    assert!(bench.driver.clear_callback(ours.as_raw_fd(), W).is_none());
    assert!(bench.driver.clear_callback(ours.as_raw_fd(), R).is_some());
    assert!(bench.driver.clear_callback(ours.as_raw_fd(), R).is_none());
    assert!(bench.driver.clear_callback(-1, R).is_none());
}

/// B28: uvloop #61, libuv PR 1468.
#[test]
fn after_removal_and_close_a_duplicate_does_not_keep_the_loop_busy() {
    let (ours, mut theirs) = pair();
    let _duplicate = ours.try_clone().unwrap();
    let mut bench = Bench::new();
    bench.callback(&ours, R, "r");
    assert!(bench.driver.clear_callback(ours.as_raw_fd(), R).is_some());
    drop(ours);
    theirs.write_all(b"x").unwrap();
    assert!(bench.is_quiet());
}

/// B29: every one of asyncio, uvloop and rloop misses it.
#[test]
fn a_number_that_is_reused_after_a_careless_close_works() {
    let (old, _old_peer) = pair();
    let mut bench = Bench::new();
    bench.callback(&old, R, "old");
    let (new, mut new_peer) = pair();
    let new = close_and_reopen_as(old, new);
    assert!(bench.callback(&new, R, "new").is_none());
    bench.discarded.callbacks().for_each(Waker::wake_by_ref);
    assert_eq!(bench.log.take(), "old", "the careless callback is handed back");
    new_peer.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "new");
}

#[test]
fn a_number_that_is_reused_brings_no_callback_of_the_old_file_along() {
    #[track_caller]
    fn check(old_directions: &[Direction], use_again: fn(&mut Bench, &UnixStream), woken: &str) {
        let (old, _old_peer) = pair();
        let mut bench = Bench::new();
        for direction in old_directions {
            bench.callback(&old, *direction, "old");
        }
        let (new, mut new_peer) = pair();
        let new = close_and_reopen_as(old, new);
        use_again(&mut bench, &new);
        assert_eq!(bench.discarded.callbacks().count(), old_directions.len());
        new_peer.write_all(b"x").unwrap();
        assert_eq!(bench.poll(), woken);
    }
    let read = |bench: &mut Bench, new: &UnixStream| drop(bench.callback(new, R, "r"));
    let receive = |bench: &mut Bench, new: &UnixStream| {
        let mut waker = bench.log.waker("s");
        bench.driver.wait_foreign(new.as_fd(), R, &mut None, &mut waker, &mut bench.discarded).unwrap();
    };
    check(&[], read, "r");
    check(&[R], read, "r");
    check(&[W], read, "r");
    check(&[R, W], read, "r");
    check(&[R, W], receive, "s");
}

#[test]
fn who_waits_for_a_number_that_becomes_another_file_is_woken_by_that() {
    let (old, _old_peer) = pair();
    let mut bench = Bench::new();
    let mut wait = None;
    bench.driver.wait_foreign(old.as_fd(), R, &mut wait, &mut bench.log.waker("s"), &mut bench.discarded).unwrap();
    let (new, mut new_peer) = pair();
    let new = close_and_reopen_as(old, new);
    bench.callback(&new, R, "r");
    new_peer.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "rs");
}

#[test]
fn a_number_that_comes_back_as_a_file_that_cannot_be_watched_gives_its_callbacks_back() {
    let (old, _old_peer) = pair();
    let mut bench = Bench::new();
    bench.callback(&old, R, "old");
    let file = close_and_reopen_as(old, fs::File::open("/proc/self/exe").unwrap());
    assert!(bench.driver.set_callback(file.as_fd(), W, Waker::noop().clone(), &mut bench.discarded).is_err());
    assert_eq!((bench.discarded.callbacks().count(), bench.driver.sources.len(), bench.driver.numbers.len()), (1, 0, 0));
}

#[test]
fn a_number_that_is_reused_without_a_word_calls_nobody_and_can_be_watched_again() {
    let (old, _old_peer) = pair();
    let mut bench = Bench::new();
    bench.callback(&old, R, "old");
    let (new, mut new_peer) = pair();
    let new = close_and_reopen_as(old, new);
    new_peer.write_all(b"x").unwrap();
    assert_eq!((bench.poll().as_str(), bench.watched(), bench.is_quiet()), ("", 0, true));
    bench.callback(&new, R, "new");
    assert_eq!((bench.discarded.callbacks().count(), bench.poll().as_str()), (1, "new"));
}

#[test]
fn closing_a_watched_number_is_harmless_and_its_callback_can_still_be_removed() {
    let (ours, _theirs) = pair();
    let number = ours.as_raw_fd();
    let mut bench = Bench::new();
    bench.callback(&ours, R, "r");
    bench.callback(&ours, W, "w");
    drop(ours);
    assert!(bench.is_quiet());
    assert!(bench.driver.clear_callback(number, R).is_some());
    assert!(bench.driver.clear_callback(number, W).is_some());
}

#[test]
fn a_lost_entry_that_a_duplicate_brings_back_is_taken_over() {
    let (ours, mut theirs) = pair();
    let duplicate = ours.try_clone().unwrap();
    let number = ours.as_raw_fd();
    let mut bench = Bench::new();
    bench.callback(&ours, R, "old");
    let (other, _other_peer) = pair();
    let other = close_and_reopen_as(ours, other); // the kernel's entry is for (old file, number), and now out of reach
    bench.driver.clear_callback(number, R);
    let ours = close_and_reopen_as(other, duplicate); // and now within reach again
    bench.callback(&ours, R, "new");
    theirs.write_all(b"x").unwrap();
    assert_eq!((bench.poll().as_str(), bench.watched()), ("new", 1));
}

#[test]
fn what_is_refused_leaves_no_trace() {
    let file = fs::File::open("/proc/self/exe").unwrap();
    let mut bench = Bench::new();
    for _ in 0..2 {
        let error = bench.driver.set_callback(file.as_fd(), R, Waker::noop().clone(), &mut bench.discarded).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    }
    assert!(bench.driver.numbers.is_empty() && bench.driver.sources.len() == 0);
}

// Whose a number is.

#[test]
fn a_descriptor_of_an_io_object_takes_no_callback_but_its_duplicate_does() {
    let (ours, mut theirs) = pair();
    let mut bench = Bench::new();
    let id = bench.register(&ours);
    let error = bench.driver.set_callback(ours.as_fd(), R, bench.log.waker("r"), &mut bench.discarded).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    assert!(error.to_string().contains("duplicate the descriptor"), "{error}");
    assert!(bench.driver.clear_callback(ours.as_raw_fd(), R).is_none());
    assert!(bench.driver.is_ready(id, R), "the object is as it was");

    let duplicate = ours.try_clone().unwrap();
    bench.callback(&duplicate, R, "r");
    theirs.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "r");
    drop(bench.driver.deregister(id));
    bench.callback(&ours, R, "r");
}

#[test]
fn an_io_object_does_not_take_over_a_number_that_has_a_live_callback() {
    let (ours, mut theirs) = pair();
    let mut bench = Bench::new();
    bench.callback(&ours, R, "r");
    let error = bench.driver.register(ours.as_fd(), Kind::Other, true).map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    theirs.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "r");
}

#[test]
fn an_io_object_displaces_the_callback_of_a_closed_file() {
    let (old, _old_peer) = pair();
    let mut bench = Bench::new();
    bench.callback(&old, R, "old");
    let (new, mut new_peer) = pair();
    let new = close_and_reopen_as(old, new);
    let (_, displaced) = bench.driver.register(new.as_fd(), Kind::Other, true).unwrap();
    assert!(matches!(displaced, Discarded(Some(_))));
    new_peer.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "");
    assert_eq!(bench.driver.sources.len(), 1);
}

// One event for a `sock_*` call.

#[test]
fn a_foreign_waiter_is_woken_once_and_then_nothing_is_watched() {
    let (ours, mut theirs) = pair();
    let mut bench = Bench::new();
    let mut waits = [None; 2];
    for (wait, name) in [(0, "a"), (1, "b"), (0, "A")] {
        bench.driver.wait_foreign(ours.as_fd(), R, &mut waits[wait], &mut bench.log.waker(name), &mut bench.discarded).unwrap();
    }
    assert!(bench.driver.is_waiting(waits[0].unwrap()) && bench.watched() == 1);
    theirs.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "Ab");
    assert!(!bench.driver.is_waiting(waits[0].unwrap()));
    assert_eq!((bench.watched(), bench.is_quiet()), (0, true), "the byte is unread, but nobody asks for it");
}

/// B26, C147, C148.
#[test]
fn a_cancelled_foreign_waiter_is_unregistered_and_the_next_one_is_served() {
    let (ours, mut theirs) = pair();
    let mut bench = Bench::new();
    let (mut first, mut second) = (None, None);
    bench.driver.wait_foreign(ours.as_fd(), R, &mut first, &mut bench.log.waker("1"), &mut bench.discarded).unwrap();
    drop(bench.driver.cancel_foreign(first.unwrap()));
    assert_eq!(bench.watched(), 0);
    bench.driver.wait_foreign(ours.as_fd(), R, &mut second, &mut bench.log.waker("2"), &mut bench.discarded).unwrap();
    drop(bench.driver.cancel_foreign(first.unwrap()));
    assert!(bench.driver.is_waiting(second.unwrap()), "the first one's clean-up is not the second one's");
    theirs.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "2");
}

#[test]
fn callbacks_and_waiters_of_one_descriptor_do_not_disturb_each_other() {
    let (ours, mut theirs) = pair();
    let mut bench = Bench::new();
    let mut wait = None;
    bench.callback(&ours, R, "r");
    bench.driver.wait_foreign(ours.as_fd(), R, &mut wait, &mut bench.log.waker("s"), &mut bench.discarded).unwrap();
    theirs.write_all(b"x").unwrap();
    assert_eq!(bench.poll(), "rs");
    assert_eq!(bench.poll(), "r");
    bench.driver.wait_foreign(ours.as_fd(), W, &mut wait, &mut bench.log.waker("s"), &mut bench.discarded).unwrap();
    assert_eq!(bench.poll(), "rs");
    assert!(bench.driver.clear_callback(ours.as_raw_fd(), R).is_some());
    assert_eq!(bench.watched(), 0);
}
