//! From bytes to lines, and when not to: pausing.
//!
//! A read is parsed where it lies, in the shell's buffer. Copied is only what cannot be parsed yet: an unfinished line, or everything
//! behind the line at which the connection had to pause. When the cause of a pause goes away, [`Hub::resume_from`] parses that first, and
//! the shell is told to read on; after a pause that thousands may share, it is told first, and what was kept is parsed when it comes to
//! each of them ([`Pause::Turn`]). The clock of a paused connection starts again when the shell has read it dry (`clock` says why). Next:
//! `requests.rs`.

use core::mem;

use memchr::memchr;

use super::{ConnectionId, Hub};
use crate::connection::{Answer, Pause};
use crate::line::{self, LineError};
use crate::nanos::Nanos;
use crate::reply;
use crate::slots::Key;

impl Hub {
    /// Whether the shell should read from this connection now. If not, and if that will change, the hub remembers that it was asked, and
    /// [`Hub::pop_touched`] says when to read on. A pause may bring a new [`Hub::next_deadline`]. Behind a pause for a history this answers
    /// first what was kept meanwhile.
    pub fn may_read(&mut self, now: Nanos, id: ConnectionId) -> bool {
        if self.connections.get(id.0).is_some_and(|connection| connection.pause == Some(Pause::Turn)) {
            self.parse_kept(now, id.0);
        }
        let commits_are_full = self.uncommitted.is_full();
        let Some(connection) = self.connections.get(id.0) else { return false };
        if self.is_shutting_down || !connection.takes_input() || connection.pause.is_some() {
            return false;
        }
        match connection.pause_cause(commits_are_full, now) {
            Some(cause) => {
                self.pause(now, id.0, cause);
                false
            }
            None => true,
        }
    }

    /// Takes what the shell has read, of any length, and answers what is in it.
    pub fn receive(&mut self, now: Nanos, id: ConnectionId, bytes: &[u8]) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if connection.kept.is_empty() || connection.pause.is_some() {
            return self.parse_or_keep(now, id.0, bytes);
        }
        if let Some(end) = memchr(b'\n', bytes) {
            // Only the line that was begun earlier is put together; the others are parsed where they lie.
            let (rest_of_line, others) = bytes.split_at(end + 1);
            let mut line = mem::take(&mut connection.kept);
            line.extend(rest_of_line);
            self.parse_or_keep(now, id.0, line.bytes());
            self.parse_or_keep(now, id.0, others);
        } else {
            connection.kept.extend(bytes);
            if line::is_too_long(connection.kept.bytes()) {
                let line = mem::take(&mut connection.kept);
                self.parse_or_keep(now, id.0, line.bytes());
            }
        }
    }

    /// The kernel holds nothing more from this connection at the moment: its deadline may be judged again, so there may be a new
    /// [`Hub::next_deadline`].
    pub fn read_dry(&mut self, now: Nanos, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if connection.pause.is_none() && connection.clock.is_stopped() {
            connection.clock.start(now);
            self.rearm(id.0);
        }
    }

    /// The shell leaves a connection for now, although the kernel may hold more of it: others want to be read, too. Until it has been read
    /// dry its deadline is not judged, because the answer may be in what was not read.
    pub fn read_later(&mut self, now: Nanos, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id.0) else { return };
        if connection.takes_input() {
            connection.clock.stop(now);
            self.rearm(id.0);
        }
    }

    /// Handles what can be handled now, and keeps the rest.
    fn parse_or_keep(&mut self, now: Nanos, key: Key, bytes: &[u8]) {
        let is_paused = self.connections.get(key).is_some_and(|connection| connection.pause.is_some());
        let parsed_len = if is_paused { 0 } else { self.parse(now, key, bytes) };
        if let Some(connection) = self.connections.get_mut(key) {
            connection.kept.extend(&bytes[parsed_len..]);
        }
    }

    /// Handles the complete lines and returns their length: what is behind is to be kept.
    fn parse(&mut self, now: Nanos, key: Key, bytes: &[u8]) -> usize {
        let mut parsed_len = 0;
        loop {
            let commits_are_full = self.uncommitted.is_full();
            let Some(connection) = self.connections.get_mut(key) else { return bytes.len() };
            let rest = &bytes[parsed_len..];
            if rest.is_empty() || !connection.takes_input() || self.is_shutting_down {
                return bytes.len();
            }
            if connection.pause.is_some() {
                return parsed_len;
            }
            if let Some(cause) = connection.pause_cause(commits_are_full, now) {
                self.pause(now, key, cause);
                return parsed_len;
            }
            if connection.bucket.is_none()
                && let Some(more_len) = self.more_messages(key, rest)
            {
                parsed_len += more_len;
                continue;
            }
            let Some(connection) = self.connections.get_mut(key) else { return bytes.len() };
            let Some(line_len) = memchr(b'\n', rest) else {
                if !connection.discarding && line::is_too_long(rest) {
                    connection.discarding = true;
                    self.reject_line(now, key, LineError::TooLong, rest.len());
                    return bytes.len();
                }
                return if connection.discarding { bytes.len() } else { parsed_len };
            };
            parsed_len += line_len + 1;
            if connection.discarding {
                connection.discarding = false;
                continue;
            }
            match line::text(&rest[..line_len]) {
                Ok(text) => self.request(now, key, text, line_len + 1),
                Err(error) => self.reject_line(now, key, error, line_len + 1),
            }
        }
    }

    fn reject_line(&mut self, now: Nanos, key: Key, error: LineError, len_bytes: usize) {
        let answer = match error {
            LineError::TooLong => {
                self.counters.lines_too_long += 1;
                reply::LINE_TOO_LONG
            }
            LineError::InvalidText => {
                self.counters.lines_invalid += 1;
                reply::INVALID_TEXT
            }
        };
        self.answer(now, key, Answer::Line(answer));
        self.count_before_join(now, key, len_bytes);
    }

    pub(super) fn pause(&mut self, now: Nanos, key: Key, cause: Pause) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.pause = Some(cause);
        connection.clock.stop(now);
        match cause {
            Pause::Commits => {
                self.paused_for_commits.push(key.index);
                self.counters.pauses_for_commits += 1;
            }
            Pause::Answers => self.counters.pauses_for_answers += 1,
            Pause::Rate => {
                self.counters.pauses_for_rate += 1;
                self.rearm(key);
            }
            Pause::Outbox => {
                self.counters.pauses_for_outbox += 1;
                // What the server took of its time before is not the client's silence.
                connection.clock.give_back(now);
                self.rearm(key);
            }
            Pause::History => self.counters.pauses_for_history += 1,
            Pause::Turn => {}
        }
    }

    /// Ends a pause of this cause, which may be gone; if it is not, or if there is another one, the next pause begins.
    pub(super) fn resume_from(&mut self, now: Nanos, key: Key, cause: Pause) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.pause != Some(cause) {
            return;
        }
        self.parse_kept(now, key);
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.pause.is_none() && connection.takes_input() {
            connection.announce_read = true;
            self.touched.push(key.index);
        }
    }

    /// Ends a pause and handles what was kept, up to the next one.
    fn parse_kept(&mut self, now: Nanos, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.pause = None;
        let mut kept = mem::take(&mut connection.kept);
        let parsed_len = self.parse(now, key, kept.bytes());
        kept.consume(parsed_len);
        if let Some(connection) = self.connections.get_mut(key) {
            connection.kept = kept;
        }
    }
}
