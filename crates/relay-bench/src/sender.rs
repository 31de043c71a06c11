//! Who sends: the bytes of its next message, how many are under way, and since when each of them is.
//!
//! Costs a copy of a message's bytes, counting up in them, and 8 bytes for each message of a window. Next: `connection.rs`.

use std::ops::Range;

use memchr::memmem;

use crate::error::Violation;
use crate::limits::WRITE_BYTES;
use crate::schedule::Schedule;
use crate::text::{NUMBER_AT, NUMBER_LEN, increment};

/// A member that sends messages, and gets them confirmed in the order in which it has sent them.
pub(crate) struct Sender {
    /// What publishes the next message.
    next: Vec<u8>,
    /// Where its number stands.
    number_at: Range<usize>,
    pub(crate) sent: u64,
    pub(crate) confirmed: u64,
    since: Since,
}

/// From when on the latency of a message counts.
pub(crate) enum Since {
    /// From when it was sent, in nanoseconds of the loop's clock: a ring as large as the window, and the place of the oldest one.
    Sent(Box<[u64]>, usize),
    /// From when it was due: of this schedule, as this sender's, which has begun at this time.
    Due(Schedule, u64, u64),
}

impl Sender {
    /// `publish`: the bytes that publish `text`, the sender's message 0.
    pub(crate) fn new(publish: Vec<u8>, text: &[u8], since: Since) -> Result<Sender, Violation> {
        let Some(at) = memmem::find(&publish, text) else {
            return Err(Violation::new("a defect of the codec: the text does not stand in what publishes it"));
        };
        let number_at = at + NUMBER_AT..at + NUMBER_AT + NUMBER_LEN;
        Ok(Sender { next: publish, number_at, sent: 0, confirmed: 0, since })
    }

    /// The run has begun.
    pub(crate) fn start(&mut self, now_ns: u64) {
        if let Since::Due(_, _, start_ns) = &mut self.since {
            *start_ns = now_ns;
        }
    }

    /// Appends what may be sent to `out`, up to the bound on what is formatted at a time, and says how many messages that is. `allowed`:
    /// how many it may have sent by now.
    #[inline]
    pub(crate) fn fill(&mut self, out: &mut Vec<u8>, now_ns: u64, allowed: u64) -> u64 {
        let before = self.sent;
        while out.len() < WRITE_BYTES && self.may_send(allowed) {
            if let Since::Sent(ring, oldest) = &mut self.since {
                let place = *oldest + (self.sent - self.confirmed) as usize;
                let place = if place < ring.len() { place } else { place - ring.len() };
                ring[place] = now_ns;
            }
            self.sent += 1;
            out.extend_from_slice(&self.next);
            increment(&mut self.next[self.number_at.clone()]);
        }
        self.sent - before
    }

    /// Whether there is something to send.
    #[inline]
    pub(crate) fn may_send(&self, allowed: u64) -> bool {
        let has_room = match &self.since {
            Since::Sent(ring, _) => self.sent - self.confirmed < ring.len() as u64,
            Since::Due(..) => true,
        };
        self.sent < allowed && has_room
    }

    /// Its oldest message under way is confirmed: its latency, in nanoseconds. `None` if there is none.
    #[inline]
    pub(crate) fn confirm(&mut self, now_ns: u64) -> Option<u64> {
        if self.confirmed == self.sent {
            return None;
        }
        let since_ns = match &mut self.since {
            Since::Sent(ring, oldest) => {
                let sent_at_ns = ring[*oldest];
                *oldest += 1;
                if *oldest == ring.len() {
                    *oldest = 0;
                }
                sent_at_ns
            }
            Since::Due(schedule, sender, start_ns) => *start_ns + schedule.senders_due_at_ns(*sender, self.confirmed),
        };
        self.confirmed += 1;
        Some(now_ns.saturating_sub(since_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Texts;

    fn sender(since: Since) -> Sender {
        let text = Texts::new(17, 0).first(3);
        Sender::new([b"MSG ", &text[..], b"\n"].concat(), &text, since).unwrap()
    }

    fn lines(numbers: std::ops::Range<u64>) -> String {
        numbers.map(|number| format!("MSG m00003 {number:010}\n")).collect()
    }

    #[test]
    fn a_sender_never_has_more_than_its_window_under_way() {
        let mut sender = sender(Since::Sent(vec![0; 3].into(), 0));
        let mut out = Vec::new();
        assert_eq!(sender.fill(&mut out, 100, 5), 3);
        assert_eq!(sender.fill(&mut out, 101, 5), 0);
        assert_eq!(sender.confirm(110), Some(10));
        assert_eq!(sender.fill(&mut out, 120, 5), 1);
        assert_eq!([sender.confirm(130), sender.confirm(130), sender.confirm(131)], [Some(30), Some(30), Some(11)]);
        assert_eq!(sender.confirm(140), None);
        assert_eq!(sender.fill(&mut out, 150, 5), 1, "the fifth of five");
        assert_eq!(sender.fill(&mut out, 150, 5), 0);
        assert_eq!(String::from_utf8(out).unwrap(), lines(0..5));
    }

    #[test]
    fn latency_counts_from_when_a_message_was_due_however_late_it_was_sent() {
        let schedule = Schedule { rate: 1_000_000, senders: 2, total: 100 };
        let mut sender = sender(Since::Due(schedule, 1, 0));
        let mut out = Vec::new();
        sender.start(500_000);
        assert_eq!(sender.fill(&mut out, 500_000, 0), 0);
        assert_eq!(sender.fill(&mut out, 900_000, 3), 3, "due 1, 3 and 5 us after the start");
        assert_eq!([sender.confirm(501_500), sender.confirm(503_000), sender.confirm(905_000)], [Some(500), Some(0), Some(400_000)]);
        assert_eq!(sender.confirm(905_000), None);
        assert_eq!(String::from_utf8(out).unwrap(), lines(0..3));
    }

    #[test]
    fn what_is_formatted_at_a_time_has_a_bound() {
        let mut sender = sender(Since::Due(Schedule { rate: 1, senders: 1, total: 1 << 20 }, 0, 0));
        let mut out = Vec::new();
        let count = sender.fill(&mut out, 0, 1 << 20);
        assert!((WRITE_BYTES..WRITE_BYTES + 100).contains(&out.len()) && sender.may_send(1 << 20), "{count} messages");
        out.clear();
        sender.fill(&mut out, 0, 1 << 20);
        assert!(out.starts_with(lines(count..count + 1).as_bytes()), "it goes on where it was");
    }
}
