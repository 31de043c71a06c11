//! The last messages of a room, for `HISTORY`.
//!
//! Committed buffers are shared with the members' outboxes, not copied, as long as all of their messages are wanted; of a larger commit the
//! last messages are copied out, so that a quiet room never keeps megabytes alive. A commit costs a room a few nanoseconds here. Next:
//! `room.rs`.

use alloc::{collections::VecDeque, format, rc::Rc, vec::Vec};

use crate::limits::HISTORY_LEN_MAX_MESSAGES;

/// A room's last [`HISTORY_LEN_MAX_MESSAGES`] messages, and some older ones that share a buffer with them.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    chunks: VecDeque<Chunk>,
    /// The messages of all chunks.
    len_messages: usize,
    /// The answer to `HISTORY`, once somebody has asked: many ask the same between two commits.
    answer: Option<Rc<Vec<u8>>>,
}

#[derive(Debug)]
struct Chunk {
    lines: Rc<Vec<u8>>,
    len_messages: usize,
}

impl Tail {
    /// Adds the lines of `len_messages` committed messages.
    pub(crate) fn push(&mut self, lines: &Rc<Vec<u8>>, len_messages: usize) {
        if len_messages == 0 {
            return;
        }
        self.answer = None;
        let chunk = if len_messages > HISTORY_LEN_MAX_MESSAGES {
            let lines = Rc::new(last_lines(lines, HISTORY_LEN_MAX_MESSAGES).to_vec());
            Chunk { lines, len_messages: HISTORY_LEN_MAX_MESSAGES }
        } else {
            Chunk { lines: Rc::clone(lines), len_messages }
        };
        self.len_messages += chunk.len_messages;
        self.chunks.push_back(chunk);
        while let Some(first) = self.chunks.front()
            && self.len_messages - first.len_messages >= HISTORY_LEN_MAX_MESSAGES
        {
            self.len_messages -= first.len_messages;
            self.chunks.pop_front();
        }
    }

    /// Adds what was committed before everything that is here, as far as it is wanted still.
    pub(crate) fn push_before(&mut self, mut lines: Vec<u8>, len_messages: usize) {
        let wanted = len_messages.min(HISTORY_LEN_MAX_MESSAGES.saturating_sub(self.len_messages));
        if wanted == 0 {
            return;
        }
        self.answer = None;
        if wanted < len_messages {
            lines = last_lines(&lines, wanted).to_vec();
        }
        lines.shrink_to_fit();
        self.len_messages += wanted;
        self.chunks.push_front(Chunk { lines: Rc::new(lines), len_messages: wanted });
    }

    /// Whether nothing that was committed before is wanted any more.
    pub(crate) fn is_full(&self) -> bool {
        self.len_messages >= HISTORY_LEN_MAX_MESSAGES
    }

    /// The whole answer to `HISTORY`.
    pub(crate) fn answer(&mut self) -> Rc<Vec<u8>> {
        let answer = self.answer.take().unwrap_or_else(|| Rc::new(self.answer_after(&[], 0)));
        Rc::clone(self.answer.insert(answer))
    }

    /// The answer as it will be once the `len_messages` in `lines` are committed as well.
    pub(crate) fn answer_after(&self, lines: &[u8], len_messages: usize) -> Vec<u8> {
        let total = self.len_messages + len_messages;
        let wanted = total.min(HISTORY_LEN_MAX_MESSAGES);
        let mut surplus = total - wanted;
        let mut answer = format!("HISTORY_BEGIN {wanted}\n").into_bytes();
        let chunks = self.chunks.iter().map(|chunk| (chunk.lines.as_slice(), chunk.len_messages));
        for (lines, len_messages) in chunks.chain([(lines, len_messages)]) {
            let dropped = surplus.min(len_messages);
            surplus -= dropped;
            answer.extend_from_slice(last_lines(lines, len_messages - dropped));
        }
        answer.extend_from_slice(b"HISTORY_END\n");
        answer
    }
}

/// The last `count` lines of `lines`, which ends with a line's end. Searched from the back: the wanted lines are few, the others may be
/// thousands.
fn last_lines(lines: &[u8], count: usize) -> &[u8] {
    match memchr::memrchr_iter(b'\n', lines).nth(count) {
        Some(end_of_others) => &lines[end_of_others + 1..],
        None => lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    /// Numbered messages, committed in groups of the given sizes, are answered with the last fifty; `pending` of the last are not
    /// committed yet.
    #[track_caller]
    fn check(commits: &[usize], pending: usize) {
        let mut tail = Tail::default();
        let mut next = 0;
        let mut lines = |count: usize| {
            let text: String = (next..next + count).map(|number| format!("MESSAGE a {number}\n")).collect();
            next += count;
            text.into_bytes()
        };
        for &count in commits {
            tail.push(&Rc::new(lines(count)), count);
            assert!(tail.chunks.iter().all(|chunk| chunk.len_messages <= HISTORY_LEN_MAX_MESSAGES));
            assert!(tail.len_messages < 2 * HISTORY_LEN_MAX_MESSAGES, "nothing is kept that is not wanted soon");
        }
        let answer = if pending == 0 { tail.answer().to_vec() } else { tail.answer_after(&lines(pending), pending) };
        let first = next.saturating_sub(HISTORY_LEN_MAX_MESSAGES);
        let expected: String = (first..next).map(|number| format!("MESSAGE a {number}\n")).collect();
        assert_eq!(String::from_utf8_lossy(&answer), format!("HISTORY_BEGIN {}\n{expected}HISTORY_END\n", next - first));
    }

    #[test]
    fn history_is_the_last_fifty_however_they_were_committed() {
        for commits in
            [&[][..], &[0], &[1], &[49], &[50], &[51], &[5000], &[1; 120], &[30, 30, 30], &[49, 1, 1], &[50, 1], &[500, 49], &[7; 31]]
        {
            for pending in [0, 1, 49, 50, 51, 300] {
                check(commits, pending);
            }
        }
    }

    #[test]
    fn a_large_commit_is_not_kept_alive_by_its_last_messages() {
        let lines = Rc::new(b"MESSAGE a b\n".repeat(HISTORY_LEN_MAX_MESSAGES + 1));
        let mut tail = Tail::default();
        tail.push(&lines, HISTORY_LEN_MAX_MESSAGES + 1);
        assert_eq!(Rc::strong_count(&lines), 1);
    }

    #[test]
    fn of_what_was_before_only_the_wanted_is_kept() {
        let line = b"MESSAGE a b\n";
        for (before, after) in [(0, 0), (1, 0), (50, 0), (51, 0), (5000, 0), (50, 1), (5000, 49), (50, 50), (5000, 70)] {
            let mut tail = Tail::default();
            for _ in 0..after {
                tail.push(&Rc::new(line.to_vec()), 1);
            }
            let mut lines = Vec::with_capacity(100_000);
            lines.extend(line.repeat(before));
            let wanted = before.min(HISTORY_LEN_MAX_MESSAGES.saturating_sub(after));
            tail.push_before(lines, before);
            let held_bytes: usize = tail.chunks.iter().map(|chunk| chunk.lines.capacity()).sum();
            let kept_after = after.min(HISTORY_LEN_MAX_MESSAGES);
            assert_eq!((tail.len_messages, held_bytes), (wanted + kept_after, (wanted + kept_after) * line.len()));
        }
    }

    #[test]
    fn the_answer_is_built_once_between_commits() {
        let mut tail = Tail::default();
        let empty = tail.answer();
        assert!(Rc::ptr_eq(&empty, &tail.answer()));
        tail.push(&Rc::new(b"MESSAGE a b\n".to_vec()), 1);
        let one = tail.answer();
        assert!(!Rc::ptr_eq(&empty, &one));
        tail.push_before(b"MESSAGE a b\n".to_vec(), 1);
        assert!(!Rc::ptr_eq(&one, &tail.answer()));
    }
}
