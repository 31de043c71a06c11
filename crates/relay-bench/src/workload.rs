//! What a run is to be. It can be written as JSON, so that one process can tell another. Next: `text.rs`.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::error::BenchError;
use crate::limits::{CONNECTIONS_MAX, MEMBERS_MAX, MESSAGES_MAX, MILLISECONDS_MAX, RATE_MAX, TEXT_BYTES, WINDOW_MAX};

/// Who is there, and how much they say.
///
/// ```
/// use relay_bench::{Pace, Workload};
///
/// let workload = Workload { rooms: 100, senders: 10, pace: Pace::Rate(50_000), ..Workload::default() };
/// let json = serde_json::to_string(&workload)?;
/// assert_eq!(serde_json::from_str::<Workload>(&json)?, workload);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Where the server listens.
    pub address: SocketAddr,
    /// How many rooms.
    pub rooms: usize,
    /// How many members each room has.
    pub members: usize,
    /// How many of them send.
    pub senders: usize,
    /// What makes them send.
    pub pace: Pace,
    /// How much they send.
    pub length: Length,
    /// How long the text of a message is, sender and number included.
    pub text_bytes: usize,
    /// How many more members there are who say nothing and are told nothing, ten to a room of their own.
    pub idle: usize,
    /// How many more members the rooms have, in turn, who read nothing while the others talk.
    pub slow: usize,
    /// Chooses the names of the rooms and the letters of the texts. Two runs at once need two.
    pub seed: u64,
}

/// What makes the senders send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// A sender keeps so many of its own messages unseen, and sends the next when one comes back: as fast as the server goes. Latency
    /// counts from the moment of sending.
    Window(usize),
    /// So many messages a second are due, of all senders in turn, whatever comes back. Latency counts from the moment at which a message
    /// was due, so whoever stops the server for a second is seen in all the messages that were due meanwhile.
    Rate(u64),
}

/// How much is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Length {
    /// So many messages from each sender.
    Messages(u64),
    /// For so long, once all have joined.
    Milliseconds(u64),
}

impl Default for Workload {
    /// A hundred people in ten rooms, in each of which one talks as fast as it goes, for five seconds.
    fn default() -> Workload {
        Workload {
            address: ([127, 0, 0, 1], 8000).into(),
            rooms: 10,
            members: 10,
            senders: 1,
            pace: Pace::Window(16),
            length: Length::Milliseconds(5_000),
            text_bytes: 64,
            idle: 0,
            slow: 0,
            seed: 0,
        }
    }
}

impl Workload {
    /// Refuses what cannot be done, before anything is connected.
    ///
    /// # Errors
    /// [`BenchError::Workload`].
    pub fn check(&self) -> Result<(), BenchError> {
        check("rooms", self.rooms, 1, MEMBERS_MAX)?;
        check("members", self.members, 1, MEMBERS_MAX)?;
        check("senders", self.senders, 1, self.members)?;
        check("text_bytes", self.text_bytes, *TEXT_BYTES.start(), *TEXT_BYTES.end())?;
        check("idle", self.idle, 0, MEMBERS_MAX)?;
        check("slow", self.slow, 0, MEMBERS_MAX)?;
        check("rooms times members, idle and slow", self.everybody(), 1, CONNECTIONS_MAX)?;
        match self.pace {
            Pace::Window(window) => check("window", window, 1, WINDOW_MAX)?,
            Pace::Rate(rate) => check("rate", rate, 1, RATE_MAX)?,
        }
        match self.length {
            Length::Messages(messages) => check("messages", messages, 1, MESSAGES_MAX),
            Length::Milliseconds(milliseconds) => check("milliseconds", milliseconds, 1, MILLISECONDS_MAX),
        }
    }

    /// The members whose messages are measured.
    pub(crate) fn busy(&self) -> usize {
        self.rooms * self.members
    }

    /// All members.
    pub(crate) fn everybody(&self) -> usize {
        self.busy() + self.idle + self.slow
    }

    /// All senders.
    pub(crate) fn senders_in_all(&self) -> usize {
        self.rooms * self.senders
    }
}

fn check<T: PartialOrd + std::fmt::Display>(name: &str, value: T, min: T, max: T) -> Result<(), BenchError> {
    if (&min..=&max).contains(&&value) {
        return Ok(());
    }
    Err(BenchError::Workload(format!("{name} is {value}: it goes from {min} to {max}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(workload: Workload, expected: &str) {
        let checked = workload.check().map_err(|error| error.to_string());
        assert_eq!(checked.err().unwrap_or_default(), expected);
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_what_can() {
        let usual = Workload::default;
        check(usual(), "");
        check(Workload { rooms: 0, ..usual() }, "rooms is 0: it goes from 1 to 100000");
        check(Workload { members: 100_001, ..usual() }, "members is 100001: it goes from 1 to 100000");
        let many = Workload { rooms: 1_000, members: 1_000, idle: 1, ..usual() };
        check(many, "rooms times members, idle and slow is 1000001: it goes from 1 to 1000000");
        check(Workload { members: 2, senders: 3, ..usual() }, "senders is 3: it goes from 1 to 2");
        check(Workload { pace: Pace::Window(0), ..usual() }, "window is 0: it goes from 1 to 1048576");
        check(Workload { pace: Pace::Rate(100_000_001), ..usual() }, "rate is 100000001: it goes from 1 to 100000000");
        check(Workload { length: Length::Messages(10_000_000_001), ..usual() }, "messages is 10000000001: it goes from 1 to 10000000000");
        check(Workload { length: Length::Milliseconds(3_600_001), ..usual() }, "milliseconds is 3600001: it goes from 1 to 3600000");
        check(Workload { text_bytes: 16, ..usual() }, "text_bytes is 16: it goes from 17 to 65536");
        check(Workload { text_bytes: 65_537, ..usual() }, "text_bytes is 65537: it goes from 17 to 65536");
    }
}
