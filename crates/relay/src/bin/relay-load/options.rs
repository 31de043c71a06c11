//! What a run is to be.

use std::net::SocketAddr;

use clap::{ArgGroup, Parser};

use crate::violation::Violation;
use crate::wire::{MEMBERS_MAX, MESSAGES_MAX, TEXT_BYTES};

/// Loads a relay with chat, and checks that every member of every room sees each message once and in the same order.
///
/// Prints one line of JSON to standard output and the same for people to standard error. Fails at the first thing that is wrong, and names
/// it.
#[derive(Clone, Debug, Parser)]
#[command(name = "relay-load", max_term_width = 100, group = ArgGroup::new("length").required(true))]
pub(crate) struct Options {
    /// Where the relay listens. Only addresses of this machine: others' servers are not ours to load.
    #[arg(long, default_value = "127.0.0.1:8000")]
    pub(crate) address: SocketAddr,

    /// How many rooms.
    #[arg(long, default_value_t = 10)]
    pub(crate) rooms: usize,

    /// How many members each room has.
    #[arg(long, default_value_t = 1)]
    pub(crate) members: usize,

    /// How many of them send.
    #[arg(long, default_value_t = 1)]
    pub(crate) senders: usize,

    /// How many of its own messages a sender has not seen yet: it sends the next when one comes back.
    #[arg(long, default_value_t = 256)]
    pub(crate) window: usize,

    /// How many bytes the text of a message has.
    #[arg(long, default_value_t = 64)]
    pub(crate) size: usize,

    /// How many messages each sender sends.
    #[arg(long, group = "length")]
    pub(crate) messages: Option<u64>,

    /// How long the senders send.
    #[arg(long, group = "length", value_parser = clap::value_parser!(u64).range(..=3_600))]
    pub(crate) seconds: Option<u64>,

    /// Chooses the names of the rooms and the letters of the texts.
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

impl Options {
    /// What cannot be done is refused before anything is connected.
    pub(crate) fn check(&self) -> Result<(), Violation> {
        let bounds = [
            ("--rooms", self.rooms, 1..=MEMBERS_MAX),
            ("--members", self.members, 1..=MEMBERS_MAX),
            ("--senders", self.senders, 1..=self.members),
            ("--window", self.window, 1..=WINDOW_MAX),
            ("--size", self.size, TEXT_BYTES),
        ];
        if let Some((option, value, range)) = bounds.into_iter().find(|(_, value, range)| !range.contains(value)) {
            return Err(Violation::new(format!("{option} is {value}: it goes from {} to {}", range.start(), range.end())));
        }
        if self.messages.is_some_and(|messages| messages > MESSAGES_MAX) {
            return Err(Violation::new(format!("--messages goes up to {MESSAGES_MAX}")));
        }
        if !self.address.ip().to_canonical().is_loopback() {
            return Err(Violation::new(format!("{} is not an address of this machine alone, such as 127.0.0.1", self.address)));
        }
        Ok(())
    }

    pub(crate) fn connections(&self) -> usize {
        self.rooms * self.members
    }
}

/// A window is memory; the server stops reading at 16 MiB long before this.
const WINDOW_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(arguments: &str, expected: Result<(), &str>) {
        let arguments = ["relay-load"].into_iter().chain(arguments.split(' '));
        let checked = Options::try_parse_from(arguments).map_err(|error| error.to_string());
        let checked = checked.and_then(|options| options.check().map_err(|violation| violation.to_string()));
        match expected {
            Ok(()) => assert_eq!(checked, Ok(())),
            Err(text) => assert!(checked.as_ref().is_err_and(|error| error.contains(text)), "{checked:?}"),
        }
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_what_can() {
        check("--messages 1", Ok(()));
        check("--seconds 1 --members 2 --senders 2", Ok(()));
        check("--rooms 1", Err("--messages"));
        check("--messages 1 --seconds 1", Err("cannot be used with"));
        check("--seconds 3601", Err("3600"));
        check("--messages 1 --members 2 --senders 3", Err("--senders is 3: it goes from 1 to 2"));
        check("--messages 1 --rooms 0", Err("--rooms"));
        check("--messages 1 --window 0", Err("--window"));
        check("--messages 1 --size 9", Err("from 10 to 4092"));
        check("--messages 10000000001", Err("up to 10000000000"));
        check("--messages 1 --address 10.0.0.1:8000", Err("not an address of this machine"));
        check("--messages 1 --address [::1]:8000", Ok(()));
    }
}
