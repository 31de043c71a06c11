//! What a loop does now, for another thread to read while the loop cannot answer.
//!
//! ```text
//!   beat   0        1         2        3
//!          idle ->  job runs  idle ->  job runs       odd: something runs, and its name, place and turn belong to this beat
//! ```
//!
//! The loop writes a few words per job, only while a watchdog is attached, and never waits. The first bytes of the name are among them, as
//! a copy, because the name itself belongs to the loop's thread. A reader that finds the same odd beat before and after it has read the
//! words has read those of one job: the writer makes the beat even before it touches them. Each store is a plain one on x86. This file is
//! listed for `unsafe`: a place travels as the address of a static.

use std::fmt::{self, Display, Write};
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};

use crate::config::WATCHDOG_NAME_WORDS;

#[derive(Default)]
pub(crate) struct Pulse {
    beat: AtomicU64,
    /// Null, or the address of a place: every one that is stored lives as long as the program.
    place: AtomicPtr<Location<'static>>,
    /// Who runs, as reports name it.
    subject: Words,
    turn: AtomicU64,
    /// How many watchdogs read it. The loop stops writing when there are none.
    pub(crate) readers: AtomicUsize,
}

/// One job that runs.
#[derive(Clone)]
pub(crate) struct Beat {
    /// Different for each job.
    pub(crate) beat: u64,
    pub(crate) place: &'static Location<'static>,
    pub(crate) subject: String,
    pub(crate) turn: u64,
}

impl Pulse {
    /// A job begins. Only the loop's thread calls this and [`Pulse::end`].
    pub(crate) fn begin(&self, subject: impl Display, place: &'static Location<'static>, turn: u64) {
        self.end();
        // Whoever sees one of the stores below sees the even beat, too.
        fence(Ordering::Release);
        self.place.store(ptr::from_ref(place).cast_mut(), Ordering::Relaxed);
        self.subject.store(subject);
        self.turn.store(turn, Ordering::Relaxed);
        self.beat.store(self.beat.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    /// Nothing runs.
    pub(crate) fn end(&self) {
        let beat = self.beat.load(Ordering::Relaxed);
        if !beat.is_multiple_of(2) {
            self.beat.store(beat + 1, Ordering::Release);
        }
    }

    /// The job that runs, for any thread; `None` between jobs.
    pub(crate) fn read(&self) -> Option<Beat> {
        let beat = self.beat.load(Ordering::Acquire);
        let place = self.place.load(Ordering::Relaxed);
        let subject = self.subject.load();
        let turn = self.turn.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        if beat.is_multiple_of(2) || self.beat.load(Ordering::Relaxed) != beat {
            return None;
        }
        // SAFETY: only `begin` stores here, addresses of `Location`s that are borrowed for `'static`, which are shared and never written.
        let place = unsafe { place.as_ref() }?;
        Some(Beat { beat, place, subject: subject.into_text(), turn })
    }
}

/// The first bytes of a text, where another thread can read them while they change.
#[derive(Default)]
struct Words {
    len: AtomicUsize,
    words: [AtomicU64; WATCHDOG_NAME_WORDS],
}

impl Words {
    fn store(&self, text: impl Display) {
        let mut written = Written::default();
        // Writing there does not fail. A text that does is cut off where it did.
        let _ = write!(written, "{text}");
        self.len.store(written.len, Ordering::Relaxed);
        for (word, bytes) in self.words.iter().zip(&written.bytes).take(written.len.div_ceil(8)) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
    }

    fn load(&self) -> Written {
        let mut written = Written { len: self.len.load(Ordering::Relaxed), ..Written::default() };
        for (word, bytes) in self.words.iter().zip(&mut written.bytes) {
            *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        written
    }
}

/// The bytes of a text, as many as there is room for.
#[derive(Default)]
struct Written {
    bytes: [[u8; 8]; WATCHDOG_NAME_WORDS],
    /// Of all the text.
    len: usize,
}

impl Write for Written {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.as_flattened_mut();
        let begin = self.len.min(room.len());
        let copied = text.len().min(room.len() - begin);
        room[begin..begin + copied].copy_from_slice(&text.as_bytes()[..copied]);
        self.len += text.len();
        Ok(())
    }
}

impl Written {
    /// What is there of the text, up to its last whole character.
    fn into_text(self) -> String {
        let bytes = self.bytes.as_flattened();
        let is_cut = self.len > bytes.len();
        let text = bytes[..self.len.min(bytes.len())].utf8_chunks().next().map_or("", |chunk| chunk.valid());
        format!("{text}{}", if is_cut { ".." } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_the_job_that_runs_and_nothing_in_between() {
        let pulse = Pulse::default();
        assert!(pulse.read().is_none());
        let here = Location::caller();
        pulse.begin("task `reader`", here, 9);
        let first = pulse.read().unwrap();
        assert_eq!((first.subject.as_str(), first.place, first.turn), ("task `reader`", here, 9));
        // One that never ended, because somebody attached while it ran.
        pulse.begin("callback", here, 9);
        let second = pulse.read().unwrap();
        assert_eq!((second.subject.as_str(), second.beat != first.beat), ("callback", true));
        pulse.end();
        pulse.end();
        assert!(pulse.read().is_none());
    }

    #[test]
    fn a_name_that_is_too_long_is_cut_off_between_two_characters() {
        let pulse = Pulse::default();
        let check = |name: &str, expected: &str| {
            pulse.begin(name, Location::caller(), 0);
            assert_eq!(pulse.read().unwrap().subject, expected);
        };
        let fits = "x".repeat(128);
        check(&fits, &fits);
        check(&format!("{fits}y"), &format!("{fits}.."));
        check(&format!("{}ëë", &fits[..125]), &format!("{}ë..", &fits[..125]));
        check("", "");
    }

    #[test]
    fn what_another_thread_reads_belongs_to_one_job() {
        let pulse = Pulse::default();
        let is_over = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while is_over.load(Ordering::Relaxed) == 0 {
                    if let Some(beat) = pulse.read() {
                        // The turn of one job is the length of its name.
                        assert_eq!(beat.subject, "x".repeat(1 + beat.turn as usize % 100));
                    }
                }
            });
            for number in 0..20_000 {
                pulse.begin("x".repeat(1 + number as usize % 100), Location::caller(), number);
                if number.is_multiple_of(3) {
                    pulse.end();
                }
            }
            is_over.store(1, Ordering::Relaxed);
        });
    }
}
