//! Who sends: keeps so many of its own messages unseen, and the time at which each of them left.

use crate::wire::{NUMBER_AT, Wire, increment};

/// A member that sends messages, at most `window` of them at a time.
pub(crate) struct Sender {
    /// The command that sends the next message.
    next: Vec<u8>,
    /// How many it may still send.
    left: u64,
    unseen: usize,
    /// When the unseen messages were sent, in nanoseconds of the loop's clock, in a ring.
    sent_at_ns: Box<[u64]>,
    /// The place in the ring of the oldest unseen message.
    oldest: usize,
}

impl Sender {
    pub(crate) fn new(wire: &Wire, window: usize, messages: u64) -> Sender {
        Sender { next: wire.first_command(), left: messages, unseen: 0, sent_at_ns: vec![0; window].into(), oldest: 0 }
    }

    /// Appends to `out` what the window has room for, and says how many messages that is.
    #[inline]
    pub(crate) fn fill(&mut self, out: &mut Vec<u8>, now_ns: u64) -> u64 {
        let window = self.sent_at_ns.len();
        let count = ((window - self.unseen) as u64).min(self.left);
        for _ in 0..count {
            let place = self.oldest + self.unseen;
            self.sent_at_ns[if place < window { place } else { place - window }] = now_ns;
            self.unseen += 1;
            out.extend_from_slice(&self.next);
            increment(&mut self.next[NUMBER_AT]);
        }
        self.left -= count;
        count
    }

    /// Its oldest unseen message has come back: how long that took, in nanoseconds. `None` if there is none.
    #[inline]
    pub(crate) fn echo(&mut self, now_ns: u64) -> Option<u64> {
        self.unseen = self.unseen.checked_sub(1)?;
        let sent_at_ns = self.sent_at_ns[self.oldest];
        self.oldest += 1;
        if self.oldest == self.sent_at_ns.len() {
            self.oldest = 0;
        }
        Some(now_ns.saturating_sub(sent_at_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_never_has_more_than_its_window_unseen() {
        let mut sender = Sender::new(&Wire::new(10, 0), 3, 5);
        let mut out = Vec::new();
        assert_eq!(sender.fill(&mut out, 100), 3);
        assert_eq!(sender.fill(&mut out, 101), 0);
        assert_eq!(sender.echo(110), Some(10));
        assert_eq!(sender.fill(&mut out, 120), 1);
        assert_eq!([sender.echo(130), sender.echo(130), sender.echo(131)], [Some(30), Some(30), Some(11)]);
        assert_eq!(sender.echo(140), None);
        assert_eq!(sender.fill(&mut out, 150), 1, "the fifth of five");
        assert_eq!(sender.fill(&mut out, 150), 0);
        let expected: String = (0..5).map(|number| format!("MSG {number:010}\n")).collect();
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
