//! Random operations on the real thing and on a model that is a few lists: both must answer alike, and agree on who waits, after each.
//!
//! The models know nothing of lines and keys. A waiter stands in a list until it is given something, and what may be given is counted anew
//! each time. Read next: `model_permits.rs`, `model_queues.rs`.

use std::task::Poll;

use miniloop::sync::{Barrier, Event, broadcast, watch};
use proptest::prelude::*;

use crate::by_hand::Hand;

pub(crate) const SLOTS: usize = 5;

/// What to do, with whom and with how many.
pub(crate) type Op = (u8, usize, usize);

pub(crate) fn ops(kinds: u8) -> impl Strategy<Value = Vec<Op>> {
    proptest::collection::vec((0..kinds, 0..SLOTS, 0_usize..4), 1..60)
}

fn compare_barriers(parties: usize, ops: &[Op]) {
    let barrier = Barrier::new(parties);
    let mut waiters: [Option<Hand<'_, _>>; SLOTS] = Default::default();
    let (mut line, mut given, mut is_broken) = (Vec::new(), [None; SLOTS], false);
    for &(kind, slot, _) in ops {
        match kind {
            0..=3 => {
                let is_new = waiters[slot].is_none();
                let polled = waiters[slot].get_or_insert_with(|| Hand::new(barrier.wait())).poll();
                let expected = match given[slot].take() {
                    Some(outcome) => Some(outcome),
                    None if !is_new => None,
                    None if is_broken => Some(None),
                    None => {
                        line.push(slot);
                        let is_complete = line.len() == parties;
                        if is_complete {
                            line.drain(..).enumerate().for_each(|(index, slot)| given[slot] = Some(Some(index)));
                        }
                        given[slot].take()
                    }
                };
                let got = match polled {
                    Poll::Ready(result) => {
                        waiters[slot] = None;
                        Some(result.ok().map(|result| {
                            assert_eq!(result.is_leader(), result.index() + 1 == parties);
                            result.index()
                        }))
                    }
                    Poll::Pending => None,
                };
                assert_eq!(got, expected);
            }
            4 => {
                waiters[slot] = None;
                line.retain(|waiter| *waiter != slot);
                given[slot] = None;
            }
            _ => {
                is_broken = kind == 6;
                if is_broken {
                    barrier.abort()
                } else {
                    barrier.reset()
                }
                line.drain(..).for_each(|slot| given[slot] = Some(None));
            }
        }
        assert_eq!((barrier.statistics().waiting, barrier.is_broken()), (line.len(), is_broken));
    }
}

fn compare_events(ops: &[Op]) {
    let event = Event::new();
    let mut waiters: [Option<Hand<'_, ()>>; SLOTS] = Default::default();
    let (mut is_set, mut given) = (false, [false; SLOTS]);
    for &(kind, slot, _) in ops {
        match kind {
            0..=3 => {
                let is_new = waiters[slot].is_none();
                let is_ready = waiters[slot].get_or_insert_with(|| Hand::new(event.wait())).poll().is_ready();
                assert_eq!(is_ready, given[slot] || is_new && is_set);
                if is_ready {
                    (waiters[slot], given[slot]) = (None, false);
                }
            }
            4 => (waiters[slot], given[slot]) = (None, false),
            5 => {
                event.set();
                is_set = true;
                given = waiters.each_ref().map(Option::is_some);
            }
            _ => {
                event.clear();
                is_set = false;
            }
        }
        let waiting = waiters.iter().flatten().count() - given.iter().filter(|given| **given).count();
        assert_eq!((event.statistics().waiting, event.is_set()), (waiting, is_set));
    }
}

fn compare_broadcasts(capacity: usize, ops: &[Op]) {
    let (sender, first) = broadcast(capacity);
    let mut receivers = vec![(first, 0)];
    let mut sent = Vec::new();
    for &(kind, slot, number) in ops {
        match kind {
            0..=2 => {
                let expected = if receivers.is_empty() { Err(miniloop::sync::SendError(number)) } else { Ok(receivers.len()) };
                assert_eq!(sender.send(number), expected);
                if expected.is_ok() {
                    sent.push(number);
                }
            }
            3 => receivers.push((sender.subscribe(), sent.len())),
            4 if slot < receivers.len() => drop(receivers.remove(slot)),
            _ if slot < receivers.len() => {
                let (receiver, position) = &mut receivers[slot];
                assert_eq!(receiver.len(), sent.len() - *position);
                let oldest = sent.len().saturating_sub(capacity);
                let expected = if *position < oldest {
                    let lost = oldest - *position;
                    *position = oldest;
                    Err(broadcast::TryRecvError::Lagged(lost as u64))
                } else if let Some(value) = sent.get(*position) {
                    *position += 1;
                    Ok(*value)
                } else {
                    Err(broadcast::TryRecvError::Empty)
                };
                assert_eq!(receiver.try_recv(), expected);
            }
            _ => {}
        }
        let slowest = receivers.iter().map(|receiver| receiver.1).min().unwrap_or(sent.len());
        assert_eq!(sender.statistics().len, (sent.len() - slowest).min(capacity));
        assert_eq!(sender.statistics().receivers, receivers.len());
    }
}

fn compare_watches(ops: &[Op]) {
    let (sender, first) = watch(0);
    let mut receivers = vec![(first, true)];
    let mut value = 0;
    let mut held = None;
    for &(kind, slot, number) in ops {
        match kind {
            0 | 1 => {
                let is_changed = kind == 0 || number > 1;
                if kind == 0 {
                    sender.send_modify(|value| *value += 1);
                } else {
                    sender.send_if_modified(|value| {
                        *value += usize::from(is_changed);
                        is_changed
                    });
                }
                value += usize::from(is_changed);
                receivers.iter_mut().for_each(|receiver| receiver.1 &= !is_changed);
            }
            2 => receivers.push((sender.subscribe(), true)),
            3 if slot < receivers.len() => drop(receivers.remove(slot)),
            4 => held = Some((sender.borrow(), value)),
            _ if slot < receivers.len() => {
                let (receiver, has_seen) = &mut receivers[slot];
                assert_eq!(receiver.has_changed(), !*has_seen);
                assert_eq!(Hand::new(receiver.changed()).poll().is_ready(), !*has_seen);
                *has_seen = true;
                assert_eq!(*receiver.borrow(), value);
            }
            _ => {}
        }
        assert!(held.as_ref().is_none_or(|(held, value)| **held == *value), "what is held stays as it was");
        assert_eq!((sender.statistics().receivers, sender.statistics().waiting), (receivers.len(), 0));
    }
}

proptest! {
    #[test]
    fn a_barrier_is_a_list_that_is_emptied_when_it_is_full_c138(parties in 1_usize..5, ops in ops(7)) {
        compare_barriers(parties, &ops);
    }

    #[test]
    fn an_event_is_a_flag_and_a_set_of_waiters_c134(ops in ops(7)) {
        compare_events(&ops);
    }

    #[test]
    fn a_broadcast_is_what_was_sent_and_a_position_in_it_for_each(capacity in 1_usize..4, ops in ops(8)) {
        compare_broadcasts(capacity, &ops);
    }

    #[test]
    fn a_watch_is_a_value_and_who_has_seen_it(ops in ops(8)) {
        compare_watches(&ops);
    }
}
