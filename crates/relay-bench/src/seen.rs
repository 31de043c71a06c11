//! What one member has seen: each message exactly once, those of a sender in their order, and in which order those of all.
//!
//! Costs ten bytes of comparison and a multiplication for each message, and remembers none. Next: `schedule.rs`.

use crate::error::Violation;
use crate::text::{Number, Said};

/// The messages that a member has received.
pub(crate) struct Seen {
    /// The number that must come next, for each sender of the room.
    next: Box<[Number]>,
    order: Order,
}

/// An order of senders, as a number: members who have seen the same messages in the same order have the same one.
///
/// Where each sender's messages are in order, the sequence of senders says all. This is a polynomial over it, modulo 2^64, so what two
/// members have seen is compared in one step at the end, and nothing has to be remembered until the slowest has seen it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) len: u64,
    fingerprint: u64,
}

impl Seen {
    pub(crate) fn new(senders: usize) -> Seen {
        Seen { next: vec![Number::ZERO; senders].into(), order: Order::default() }
    }

    /// Takes note of a message.
    #[inline]
    pub(crate) fn message(&mut self, message: &Said<'_>) -> Result<(), Violation> {
        let Some(next) = self.next.get_mut(message.sender) else {
            return Err(Violation::new(format!("a message of member {}, who sends none", message.sender)));
        };
        if message.number != next.as_bytes() {
            return Err(out_of_order(message, next));
        }
        next.increment();
        self.order.add(message.sender);
        Ok(())
    }

    pub(crate) fn order(&self) -> Order {
        self.order
    }
}

impl Order {
    #[inline]
    fn add(&mut self, sender: usize) {
        self.len += 1;
        self.fingerprint = self.fingerprint.wrapping_mul(MULTIPLIER).wrapping_add(sender as u64 + 1);
    }
}

#[cold]
fn out_of_order(message: &Said<'_>, next: &Number) -> Violation {
    let what = if message.number < next.as_bytes() { "came twice or late" } else { "came early, or those before it are lost" };
    let number = message.number.escape_ascii();
    Violation::new(format!("message {number} of member {} {what}: expected was {next}", message.sender))
}

/// Odd, so that no step loses a bit: 2^64 divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages as `sender/number`.
    #[track_caller]
    fn seen(messages: &[(usize, u64)]) -> Result<Order, Violation> {
        let mut seen = Seen::new(2);
        for (sender, number) in messages {
            let number: [u8; 10] = format!("{number:010}").into_bytes().try_into().unwrap();
            seen.message(&Said { sender: *sender, number: &number })?;
        }
        Ok(seen.order())
    }

    #[track_caller]
    fn check_refused(messages: &[(usize, u64)], expected: &str) {
        let violation = seen(messages).unwrap_err().to_string();
        assert!(violation.contains(expected), "{violation}");
    }

    #[test]
    fn messages_that_are_missing_doubled_or_out_of_order_are_named() {
        assert_eq!(seen(&[(0, 0), (1, 0), (0, 1), (0, 2), (1, 1)]).unwrap().len, 5);
        check_refused(&[(0, 0), (0, 0)], "0000000000 of member 0 came twice");
        check_refused(&[(0, 0), (0, 2)], "0000000002 of member 0 came early");
        check_refused(&[(1, 1)], "0000000001 of member 1 came early");
        check_refused(&[(0, 0), (0, 1), (0, 0)], "came twice or late: expected was 0000000002");
        check_refused(&[(2, 0)], "member 2, who sends none");
    }

    #[test]
    fn two_orders_of_the_same_messages_differ() {
        let one = seen(&[(0, 0), (1, 0), (1, 1)]).unwrap();
        assert_eq!(one, seen(&[(0, 0), (1, 0), (1, 1)]).unwrap());
        assert_ne!(one, seen(&[(1, 0), (0, 0), (1, 1)]).unwrap());
        assert_ne!(one, seen(&[(1, 0), (1, 1), (0, 0)]).unwrap());
    }
}
