//! Channels, broadcasts and watched values.

use std::cell::Cell;
use std::rc::Rc;
use std::task::Poll;

use futures_util::StreamExt;
use futures_util::stream::FusedStream;
use miniloop::sync::broadcast::{self, broadcast};
use miniloop::sync::watch::WatchClosed;
use miniloop::sync::{SendError, TryRecvError, TrySendError, channel, watch};
use miniloop::{spawn, yield_now};

use crate::by_hand::{Bells, Hand, now};
use crate::support::{manual, panic_of};

#[test]
fn a_channel_keeps_the_order_and_its_bound() {
    let (sender, mut receiver) = channel(2);
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
    now(sender.send(1)).unwrap();
    sender.try_send(2).unwrap();
    assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
    let mut waiting = [3, 4].map(|number| Hand::waiting(sender.send(number)));
    assert_eq!(now(receiver.recv()), Some(1));
    assert!(waiting[0].is_woken() && !waiting[1].is_woken());
    assert_eq!(sender.try_send(5), Err(TrySendError::Full(5)), "the room is the waiting sender's");
    waiting[0].ready().unwrap();
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(2), Ok(3)));
    waiting[1].ready().unwrap();
    let statistics = receiver.statistics();
    assert_eq!((statistics.len, statistics.capacity, statistics.senders, statistics.senders_waiting), (1, 2, 1, 0));
    assert_eq!(sender.statistics(), statistics);
    let (sender, _receiver) = channel(0);
    assert_eq!((sender.try_send(1), sender.try_send(2)), (Ok(()), Err(TrySendError::Full(2))));
}

#[test]
fn a_receiver_is_woken_by_a_value_and_by_the_last_sender_that_goes() {
    let (sender, mut receiver) = channel(1);
    let other = sender.clone();
    let mut waiting = Hand::waiting(receiver.recv());
    assert!(sender.statistics().is_receiver_waiting);
    other.try_send('a').unwrap();
    assert!(waiting.is_woken());
    assert_eq!(waiting.ready(), Some('a'));
    drop(waiting);
    let mut waiting = Hand::waiting(receiver.recv());
    drop(sender);
    assert!(!waiting.is_woken());
    drop(other);
    assert!(waiting.is_woken());
    assert_eq!(waiting.ready(), None);
}

#[test]
fn what_was_sent_before_the_senders_went_is_still_received() {
    let (sender, mut receiver) = channel(2);
    sender.try_send(1).unwrap();
    sender.try_send(2).unwrap();
    drop(sender);
    assert_eq!((now(receiver.recv()), receiver.try_recv(), now(receiver.recv())), (Some(1), Ok(2), None));
    assert_eq!(receiver.try_recv(), Err(TryRecvError::Closed));
}

#[test]
fn senders_get_their_values_back_when_the_receiver_goes() {
    let value = Rc::new(());
    let (sender, receiver) = channel(1);
    sender.try_send(value.clone()).unwrap();
    let mut waiting = Hand::waiting(sender.send(value.clone()));
    drop(receiver);
    assert!(waiting.is_woken());
    assert_eq!(waiting.ready(), Err(SendError(value.clone())));
    assert!(sender.is_closed() && now(sender.send(value.clone())).is_err());
    assert_eq!(sender.try_send(value.clone()), Err(TrySendError::Closed(value.clone())));
    drop(waiting);
    assert_eq!(Rc::strong_count(&value), 1, "the receiver has dropped what was in the channel");
}

#[test]
fn a_closed_channel_is_drained() {
    let (sender, mut receiver) = channel(1);
    sender.try_send(1).unwrap();
    let mut waiting = Hand::waiting(sender.send(2));
    let mut given = Hand::waiting(sender.send(3));
    receiver.close();
    assert_eq!((waiting.ready(), given.ready()), (Err(SendError(2)), Err(SendError(3))));
    assert_eq!((now(receiver.recv()), now(receiver.recv())), (Some(1), None));
    // A sender that had been given room when it was closed sends nothing either.
    let (sender, mut receiver) = channel(1);
    sender.try_send(1).unwrap();
    let mut given = Hand::waiting(sender.send(2));
    assert_eq!(receiver.try_recv(), Ok(1));
    receiver.close();
    assert_eq!((given.ready(), now(receiver.recv())), (Err(SendError(2)), None));
}

#[test]
fn a_send_that_is_cancelled_was_not_sent_and_its_room_goes_to_the_next() {
    let (sender, mut receiver) = channel(1);
    sender.try_send(1).unwrap();
    let first = Hand::waiting(sender.send(2));
    let mut second = Hand::waiting(sender.send(3));
    assert_eq!(receiver.try_recv(), Ok(1));
    drop(first);
    assert!(second.is_woken());
    second.ready().unwrap();
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Ok(3), Err(TryRecvError::Empty)));
}

#[test]
fn a_receive_that_is_cancelled_loses_nothing_and_leaves_no_trace() {
    let (sender, mut receiver) = channel(1);
    drop(Hand::waiting(receiver.recv()));
    assert!(!sender.statistics().is_receiver_waiting);
    let woken = Hand::waiting(receiver.recv());
    sender.try_send(1).unwrap();
    assert!(woken.is_woken());
    drop(woken);
    assert_eq!(receiver.try_recv(), Ok(1));
}

#[test]
fn a_receiver_is_a_stream_that_ends() {
    let (sender, receiver) = channel(1);
    let (mut event_loop, ..) = manual();
    let received = event_loop.run_until_complete(async move {
        let producer = spawn(async move {
            for number in 0..5 {
                sender.send(number).await.unwrap();
            }
        });
        let mut receiver = receiver;
        let received: Vec<i32> = receiver.by_ref().collect().await;
        assert!(receiver.is_terminated());
        producer.await.unwrap();
        received
    });
    assert_eq!(received.unwrap(), [0, 1, 2, 3, 4]);
}

#[test]
fn every_receiver_of_a_broadcast_gets_every_value_sent_since_it_came() {
    let (sender, mut first) = broadcast(4);
    assert_eq!(sender.send('a'), Ok(1));
    let mut second = sender.subscribe();
    assert_eq!(sender.clone().send('b'), Ok(2));
    let third = second.resubscribe();
    assert_eq!((first.try_recv(), first.try_recv()), (Ok('a'), Ok('b')));
    assert_eq!((second.len(), third.len(), sender.statistics().receivers), (1, 0, 3));
    assert_eq!(second.try_recv(), Ok('b'));
    assert_eq!(second.try_recv(), Err(broadcast::TryRecvError::Empty));
    assert!(second.is_empty() && sender.statistics().len == 0, "what all have read is not kept");
}

#[test]
fn who_is_too_slow_is_told_how_much_was_lost_and_goes_on_with_the_oldest() {
    let (sender, mut slow) = broadcast(2);
    let mut fast = sender.subscribe();
    for number in 0..5 {
        sender.send(number).unwrap();
        assert_eq!(fast.try_recv(), Ok(number));
    }
    assert_eq!(slow.len(), 5);
    assert_eq!(now(slow.recv()), Err(broadcast::RecvError::Lagged(3)));
    assert_eq!((now(slow.recv()), now(slow.recv())), (Ok(3), Ok(4)));
    sender.send(5).unwrap();
    assert_eq!(slow.try_recv(), Ok(5));
    for number in 6..10 {
        sender.send(number).unwrap();
    }
    drop(sender);
    assert_eq!(slow.try_recv(), Err(broadcast::TryRecvError::Lagged(2)));
    assert_eq!((now(slow.recv()), now(slow.recv())), (Ok(8), Ok(9)));
    assert_eq!((now(slow.recv()), slow.try_recv()), (Err(broadcast::RecvError::Closed), Err(broadcast::TryRecvError::Closed)));
    let (sender, mut receiver) = broadcast(0);
    for number in 0..2 {
        sender.send(number).unwrap();
    }
    assert_eq!((receiver.try_recv(), receiver.try_recv()), (Err(broadcast::TryRecvError::Lagged(1)), Ok(1)));
}

#[test]
fn receivers_of_a_broadcast_are_woken_in_the_order_in_which_they_came_o8() {
    let (sender, mut first) = broadcast(1);
    let mut second = sender.subscribe();
    let bells = Bells::default();
    let mut waiting = [("b", &mut second), ("a", &mut first)].map(|(name, receiver)| {
        let mut waiting = Hand::named(name, &bells, receiver.recv());
        assert!(waiting.poll().is_pending());
        waiting
    });
    assert!(waiting[0].poll().is_pending());
    sender.send(1).unwrap();
    assert_eq!(bells.take(), ["b", "a"]);
    assert!(waiting.iter_mut().all(|waiting| waiting.ready() == Ok(1)));
    drop(waiting);
    let mut waiting = Hand::waiting(first.recv());
    drop(sender);
    assert!(waiting.is_woken() && waiting.ready() == Err(broadcast::RecvError::Closed));
}

#[test]
fn a_value_of_a_broadcast_is_dropped_when_nobody_will_read_it() {
    #[derive(Debug)]
    struct Counted(Rc<Cell<usize>>);
    impl Clone for Counted {
        fn clone(&self) -> Self {
            self.0.set(self.0.get() + 1);
            Counted(self.0.clone())
        }
    }
    let clones = Rc::new(Cell::new(0));
    let value = || Counted(clones.clone());
    let (sender, mut first) = broadcast(2);
    let mut second = sender.subscribe();
    sender.send(value()).unwrap();
    drop(first.try_recv());
    assert_eq!(clones.get(), 1);
    drop(second.try_recv());
    assert_eq!(clones.get(), 1, "the last gets the value itself");
    sender.send(value()).unwrap();
    assert!(second.try_recv().is_ok());
    drop(first);
    assert_eq!(Rc::strong_count(&clones), 1);
    sender.send(value()).unwrap();
    drop(second);
    assert_eq!(Rc::strong_count(&clones), 1);
    let refused = sender.send(value()).unwrap_err();
    assert_eq!(Rc::strong_count(&clones), 2, "without receivers it comes back");
    drop(refused);
}

#[test]
fn a_watcher_sees_the_latest_value_and_is_told_once_for_several_changes() {
    let (sender, mut receiver) = watch(0);
    assert!(!receiver.has_changed() && *receiver.borrow() == 0);
    let mut waiting = Hand::waiting(receiver.changed());
    sender.send(1).unwrap();
    sender.send(2).unwrap();
    assert!(waiting.is_woken());
    waiting.ready().unwrap();
    drop(waiting);
    assert_eq!(*receiver.borrow(), 2);
    assert!(Hand::new(receiver.changed()).poll().is_pending(), "it has been told of both");
    sender.send(3).unwrap();
    assert!(receiver.has_changed() && receiver.clone().has_changed() && !sender.subscribe().has_changed());
    assert_eq!(*receiver.borrow_and_update(), 3);
    assert!(!receiver.has_changed());
}

#[test]
fn a_change_is_not_lost_when_the_wait_for_it_is_cancelled() {
    let (sender, mut receiver) = watch(0);
    let woken = Hand::waiting(receiver.changed());
    sender.send(1).unwrap();
    drop(woken);
    now(receiver.changed()).unwrap();
    drop(Hand::waiting(receiver.changed()));
    assert_eq!(sender.statistics().waiting, 0);
}

#[test]
fn watching_ends_when_all_senders_have_gone_and_the_last_change_is_seen() {
    let (sender, mut receiver) = watch(0);
    let other = sender.clone();
    let mut waiting = Hand::waiting(receiver.changed());
    drop(other);
    assert!(!waiting.is_woken());
    sender.send(1).unwrap();
    drop(sender);
    assert_eq!(waiting.ready(), Ok(()));
    drop(waiting);
    assert_eq!(now(receiver.changed()), Err(WatchClosed));
    assert_eq!(*now(receiver.wait_for(|value| *value == 1)).unwrap(), 1, "the last value stays");
    assert_eq!(now(receiver.wait_for(|value| *value == 2)).unwrap_err(), WatchClosed);
}

#[test]
fn a_value_is_changed_in_place_and_who_holds_it_keeps_what_it_was() {
    let (sender, mut receiver) = watch(vec![1]);
    let held = receiver.borrow();
    sender.send_modify(|value| value.push(2));
    assert_eq!((&*held, &*receiver.borrow_and_update()), (&vec![1], &vec![1, 2]));
    assert!(!sender.send_if_modified(|_| false) && !receiver.has_changed());
    assert!(sender.send_if_modified(|value| value.pop().is_some()) && receiver.has_changed());
    drop(receiver);
    assert_eq!(sender.send(vec![3]), Err(SendError(vec![3])), "nobody watches");
    assert_eq!(*sender.send_replace(vec![4]), [1]);
    assert_eq!((&*sender.borrow(), sender.statistics().changes), (&vec![4], 3));
}

#[test]
fn a_function_that_fails_to_modify_a_watched_value_leaves_it_and_tells_nobody() {
    let (sender, receiver) = watch(1);
    let (message, _) = panic_of(|| {
        sender.send_modify(|value| {
            *value = 2;
            panic!("half way");
        });
    });
    assert_eq!((message.as_str(), *receiver.borrow(), receiver.has_changed()), ("half way", 2, false));
    for (message, _) in
        [panic_of(|| sender.send_modify(|_| drop(sender.borrow()))), panic_of(|| sender.send_modify(|_| sender.send(3).unwrap()))]
    {
        assert!(message.contains("must not use the watch itself"), "{message}");
    }
    assert_eq!(*receiver.borrow(), 2);
}

#[test]
fn tasks_of_a_loop_see_the_changes_that_they_have_time_for() {
    let (mut event_loop, _, trace) = manual();
    event_loop
        .run_until_complete(async {
            let (sender, mut receiver) = watch(0);
            let notes = trace.clone();
            let watcher = spawn(async move {
                while receiver.changed().await.is_ok() {
                    notes.note(*receiver.borrow_and_update());
                }
            });
            yield_now().await;
            for value in [1, 2] {
                sender.send(value).unwrap();
            }
            yield_now().await;
            sender.send(3).unwrap();
            drop(sender);
            watcher.await.unwrap();
        })
        .unwrap();
    assert_eq!(trace.take(), ["2", "3"]);
    let (_sender, receiver) = watch(());
    assert_eq!(Hand::new(async move { { receiver }.changed().await }).poll(), Poll::Pending);
}
