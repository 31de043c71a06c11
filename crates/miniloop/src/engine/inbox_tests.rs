//! What one thread can see of an inbox. What needs two is in `tests/loom.rs`. A file of its own, because that test builds `inbox.rs` again.

use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::panic::Location;
use std::sync::Arc;

use crate::doorbell::Doorbell;
use crate::engine::inbox::{Inbox, Message};
use crate::engine::word::Word;

fn inbox() -> Inbox {
    Inbox::new(Doorbell::new().unwrap())
}

fn wake(number: u64) -> Message {
    Message::Wake(Word::from_u64(number))
}

fn call(job: impl FnOnce() + Send + 'static) -> Message {
    let job = Box::new(move || {
        job();
        Ok(ControlFlow::Continue(()))
    });
    Message::Call { job, place: Location::caller() }
}

fn push(inbox: &Inbox, message: Message) {
    assert!(inbox.push(message).is_ok());
}

/// The numbers of the wakes; 0 for a call.
fn drained(inbox: &Inbox) -> Vec<u64> {
    let mut messages = Vec::new();
    inbox.drain(&mut messages, usize::MAX);
    messages.iter().map(|message| if let Message::Wake(word) = message { word.as_u64() } else { 0 }).collect()
}

/// How often it rang since the last question: an eventfd counts.
fn rings(inbox: &Inbox) -> u64 {
    let mut count = [0; 8];
    match rustix::io::read(inbox.doorbell().as_fd(), &mut count) {
        Ok(_) => u64::from_ne_bytes(count),
        Err(_) => 0,
    }
}

#[test]
fn messages_come_out_in_arrival_order_after_what_was_there() {
    let inbox = inbox();
    let mut messages = vec![wake(9)];
    push(&inbox, wake(3));
    push(&inbox, call(|| ()));
    push(&inbox, wake(2));
    inbox.drain(&mut messages, usize::MAX);
    let shape: Vec<_> = messages.iter().map(|message| matches!(message, Message::Wake(_))).collect();
    assert_eq!(shape, [true, true, false, true]);
    assert_eq!(drained(&inbox), []);
}

#[test]
fn what_a_drain_leaves_is_still_mail_and_keeps_its_order() {
    let inbox = inbox();
    inbox.wake_up();
    (1..=5).for_each(|number| push(&inbox, wake(number)));
    let mut messages = Vec::new();
    inbox.drain(&mut messages, 2);
    assert_eq!((messages.len(), inbox.has_mail(), inbox.fall_asleep()), (2, true, false));
    push(&inbox, wake(6));
    assert_eq!(drained(&inbox), [3, 4, 5, 6]);
    assert_eq!((inbox.has_mail(), inbox.fall_asleep()), (false, true));
}

#[test]
fn a_wake_that_repeats_the_newest_message_is_not_added() {
    let inbox = inbox();
    for number in [1, 1, 2, 1, 1] {
        push(&inbox, wake(number));
    }
    assert_eq!(drained(&inbox), [1, 2, 1]);
    push(&inbox, wake(1));
    assert_eq!(drained(&inbox), [1], "the earlier one has been taken");
}

#[test]
fn the_bell_rings_once_per_sleep_and_never_while_awake() {
    let inbox = inbox();
    for _ in 0..2 {
        push(&inbox, wake(1));
        push(&inbox, wake(2));
        assert_eq!(rings(&inbox), 1);
        inbox.wake_up();
        push(&inbox, wake(3));
        assert_eq!(rings(&inbox), 0);
        assert!(!inbox.fall_asleep(), "there is mail");
        push(&inbox, wake(4));
        assert_eq!((drained(&inbox), rings(&inbox)), (vec![1, 2, 3, 4], 0));
        assert!(inbox.fall_asleep());
    }
}

#[test]
fn has_mail_says_whether_there_is_something_to_drain() {
    let inbox = inbox();
    assert!(!inbox.has_mail());
    push(&inbox, wake(1));
    assert!(inbox.has_mail());
    drained(&inbox);
    assert!(!inbox.has_mail());
}

#[test]
fn a_closed_inbox_gives_everything_back_and_refuses_c177() {
    let inbox = inbox();
    let owned = Arc::new(());
    let owner = || {
        let owned = Arc::clone(&owned);
        call(move || drop(owned))
    };
    push(&inbox, owner());
    let left = inbox.close();
    assert_eq!((left.len(), Arc::strong_count(&owned)), (1, 2));
    drop(left);
    let refused = inbox.push(owner());
    assert_eq!((refused.is_err(), Arc::strong_count(&owned)), (true, 2));
    drop(refused);
    inbox.wake_up();
    assert!(inbox.push(owner()).is_err(), "nothing leads out of closed");
    assert_eq!((inbox.close().len(), inbox.has_mail(), Arc::strong_count(&owned)), (0, false, 1));
}

#[test]
fn a_destructor_of_a_refused_message_may_use_the_inbox() {
    let inbox = Arc::new(inbox());
    drop(inbox.close());
    struct PushesWhenDropped(Arc<Inbox>);
    impl Drop for PushesWhenDropped {
        fn drop(&mut self) {
            assert!(self.0.push(wake(1)).is_err());
        }
    }
    let guard = PushesWhenDropped(Arc::clone(&inbox));
    drop(inbox.push(call(move || drop(guard))));
}
