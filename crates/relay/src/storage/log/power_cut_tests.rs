//! Whatever moment the power goes, the process is killed or the disk fails at: what was acknowledged is there, once, in order, byte for
//! byte; the one batch without an answer is there whole or not at all; and the log goes on. Meanwhile the archive folds what is
//! committed, and files are used again.

use super::*;
use crate::storage::memory_disk::{Fault, MemoryDisk, Random};
use relay_core::Section;

const FILE_BYTES: u64 = 32 << 10;
const SEEDS: u64 = 12;
const LIVES: usize = 5;

type Content = Vec<(String, u32, Vec<u8>)>;

/// What the log must hold.
#[derive(Default)]
struct Model {
    acknowledged: Vec<Content>,
    unanswered: Option<Content>,
}

/// The life of one log over several processes, of which the fault ends one.
struct Run {
    disk: MemoryDisk,
    random: Random,
    model: Model,
    /// How far the history has come, which is another file's business and durable at once.
    folded: LogPosition,
    batch_count: u32,
    recycled_count: u64,
}

impl Run {
    fn new(seed: u64) -> Run {
        Run {
            disk: MemoryDisk::default(),
            random: Random(seed),
            model: Model::default(),
            folded: LogPosition::START,
            batch_count: 0,
            recycled_count: 0,
        }
    }

    /// One process: opens the log, checks it, commits some batches, folds some, and stops in the middle of the commit that fails.
    fn live(&mut self) -> Result<(), Box<dyn std::error::Error>> {
        let (mut log, _) = self.disk.open_log(FILE_BYTES, self.folded)?;
        let (mut found, mut reader) = (Vec::new(), log.reader(self.folded));
        while let Some(record) = reader.next_record_up_to(log.committed())? {
            found.push(content_of(&record));
        }
        let unanswered = self.model.unanswered.take();
        if found.len() == self.unfolded().len() + 1 {
            self.model.acknowledged.extend(unanswered);
        }
        assert_eq!(found, self.unfolded());

        let preparer = log.preparer();
        for _ in 0..1 + self.random.below(6) {
            let batch = self.batch();
            self.model.unanswered = Some(content(&batch));
            match log.commit(&batch) {
                Ok(_) => self.model.acknowledged.extend(self.model.unanswered.take()),
                Err(StorageError::Full { .. }) => self.model.unanswered = None,
                Err(error) => return Err(error.into()),
            }
            if self.random.below(2) == 0 {
                // The commit that needs the file meets the same error.
                let _ = preparer.prepare();
            }
            if self.random.below(2) == 0 {
                self.fold(&log)?;
            }
        }
        self.recycled_count += preparer.recycled_count();
        Ok(())
    }

    /// Some of the committed records get into the history.
    fn fold(&mut self, log: &Log) -> Result<(), OpenError> {
        let mut reader = log.reader(self.folded);
        let count = self.random.below(self.unfolded().len() as u64 + 1) as usize;
        for expected in &self.unfolded()[..count] {
            let record = reader.next_record_up_to(log.committed())?.expect("it is committed");
            assert_eq!(content_of(&record), *expected);
        }
        self.folded = reader.position();
        log.preparer().free_below(self.folded.file_number);
        Ok(())
    }

    fn unfolded(&self) -> &[Content] {
        &self.model.acknowledged[self.folded.sequence as usize..]
    }

    /// Several processes, each ended by a kill or by a power cut.
    fn live_on(&mut self) {
        for _ in 0..LIVES {
            let ended = self.live();
            if ended.is_err() || self.random.below(2) == 0 {
                self.disk.power_cut(&mut self.random);
            }
        }
    }

    /// Nothing goes wrong any more.
    fn live_in_peace(&mut self) {
        self.disk.power_cut(&mut self.random);
        for _ in 0..2 {
            self.live().expect("the disk works");
        }
    }

    fn batch(&mut self) -> Batch {
        self.batch_count += 1;
        let mut sections = Vec::new();
        for room in 0..1 + self.random.below(3) {
            let line_count = 1 + self.random.below(4) as u32;
            let mut lines = Vec::new();
            for line in 0..line_count {
                let length = [0, 20, 600, 3000][self.random.below(4) as usize];
                lines.extend_from_slice(format!("MESSAGE ada {}.{line} {}\n", self.batch_count, "x".repeat(length)).as_bytes());
            }
            sections.push(Section { room: format!("room{room}"), message_count: line_count, lines });
        }
        Batch { sections }
    }
}

fn content(batch: &Batch) -> Content {
    batch.sections.iter().map(|section| (section.room.clone(), section.message_count, section.lines.clone())).collect()
}

fn content_of(record: &Record<'_>) -> Content {
    record.sections().map(|section| (section.room.to_owned(), section.message_count, section.lines.to_vec())).collect()
}

/// How many calls change the disk in the run of this seed when nothing goes wrong.
fn call_count(seed: u64) -> usize {
    let mut run = Run::new(seed);
    run.live_on();
    run.disk.trace().len()
}

#[test]
fn a_power_cut_at_any_call_loses_nothing_that_was_acknowledged() {
    for seed in 0..SEEDS {
        for call in 1..=call_count(seed) {
            let mut run = Run::new(seed);
            run.disk.fail_at(call, Fault::PowerCut);
            run.live_on();
            run.live_in_peace();
        }
    }
}

#[test]
fn a_failed_call_loses_nothing_that_was_acknowledged_even_if_the_power_goes_later() {
    for seed in 0..SEEDS {
        for call in 1..=call_count(seed) {
            let mut run = Run::new(seed);
            run.disk.fail_at(call, Fault::IoError);
            // No power cut right after the failure: the next process sees pages that never reached the disk.
            for _ in 0..LIVES {
                if run.live().is_err() {
                    break;
                }
            }
            run.live_on();
            run.live_in_peace();
        }
    }
}

#[test]
fn a_disk_that_is_full_at_any_call_loses_nothing_that_was_acknowledged() {
    for seed in 0..SEEDS {
        for call in 1..=call_count(seed) {
            let mut run = Run::new(seed);
            run.disk.fail_at(call, Fault::Full);
            run.live_on();
            run.live_in_peace();
        }
    }
}

#[test]
fn files_are_used_again_in_these_runs() {
    let recycled_count = |seed| {
        let mut run = Run::new(seed);
        run.live_on();
        run.recycled_count
    };
    let recycled_counts: Vec<u64> = (0..SEEDS).map(recycled_count).collect();
    assert!(recycled_counts.iter().sum::<u64>() > SEEDS, "{recycled_counts:?}");
}

#[test]
fn what_a_full_disk_kept_of_a_commit_does_not_mix_with_the_next_one_at_its_place() {
    let batch = |letter: &str| {
        let lines = format!("MESSAGE ada {}\n", letter.repeat(4000)).into_bytes();
        Batch { sections: vec![Section { room: "lounge".into(), message_count: 1, lines }] }
    };
    for seed in 0..4000 {
        let disk = MemoryDisk::default();
        let (mut log, _) = disk.open_log(FILE_BYTES, LogPosition::START).expect("the log opens");
        log.commit(&batch("a")).expect("there is room");
        disk.fail_at(disk.trace().len() + 1, Fault::Full);
        assert!(matches!(log.commit(&batch("b")), Err(StorageError::Full { .. })));
        disk.fail_at(disk.trace().len() + 1, Fault::PowerCut);
        log.commit(&batch("c")).expect_err("the power is gone");
        disk.power_cut(&mut Random(seed));
        let (log, _) = disk.open_log(FILE_BYTES, LogPosition::START).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let (mut letters, mut reader) = (String::new(), log.reader(LogPosition::START));
        while let Some(record) = reader.next_record().expect("nothing is damaged") {
            letters.extend(record.sections().map(|section| char::from(section.lines[12])));
        }
        assert!(letters == "a" || letters == "ac", "seed {seed}: {letters}");
    }
}

#[test]
fn one_flipped_byte_never_shows_wrong_messages() {
    let (mut refused, mut right) = (0, 0);
    for seed in 0..SEEDS {
        let mut run = Run::new(seed);
        for _ in 0..LIVES {
            run.live().expect("the disk works");
        }
        let names = run.disk.names().expect("the disk is on");
        for _ in 0..200 {
            let mut flipped = Run { disk: run.disk.copy(), random: Random(run.random.next()), ..Run::new(seed) };
            (flipped.model.acknowledged, flipped.folded) = (run.model.acknowledged.clone(), run.folded);
            let name = &names[flipped.random.below(names.len() as u64) as usize];
            let mut bytes = flipped.disk.content(name);
            let at = flipped.random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 + flipped.random.below(255) as u8;
            flipped.disk.put(name, bytes);
            // What is shown is compared in `live`, whose error is then the refusal.
            match flipped.live() {
                Ok(()) => right += 1,
                Err(error) => {
                    assert!(error.to_string().contains(name.as_str()), "{error}");
                    assert!(*name >= file_name(run.folded.file_number), "{error}: the file is free");
                    refused += 1;
                }
            }
        }
    }
    // Both answers occur: bytes of messages, and bytes that nobody uses.
    assert!(refused > 100 && right > 100, "{refused} refused, {right} right");
}
