//! Log and history together: whatever moment the power goes, the process is killed or the disk fails at, every room holds what was
//! acknowledged, once, in order; the one commit without an answer is there whole or not at all. The archive is stopped at its steps.

use super::{
    contract::{Archive, ArchiveError, Storage, StorageError},
    history::{Disks, HistoryArchive, Retention},
    memory_disk::{Fault, MemoryDisk, Random},
    open::{Opened, open_on},
    tools::print_room,
};
use relay_core::{Batch, Section, limits::HISTORY_LEN_MAX_MESSAGES};
use std::{collections::BTreeMap, error::Error, sync::Arc};

const FILE_BYTES: u64 = 64 << 10;
const SEEDS: u64 = 1000;
const LIVES: usize = 4;
const ROOMS: [&str; 4] = ["attic", "hall", "kitchen", "lounge"];

/// The messages of each room.
type Said = BTreeMap<&'static str, Vec<String>>;

/// The life of one data folder over several processes.
struct Run {
    disk: MemoryDisk,
    random: Random,
    acknowledged: Said,
    unanswered: Said,
    commit_count: u32,
    /// What the runs have reached, so that the test knows what it tests.
    reached: Reached,
}

#[derive(Default)]
struct Reached {
    windows: u32,
    loads: u32,
    opened_unfolded: u32,
}

impl Run {
    fn new(seed: u64) -> Run {
        Run {
            disk: MemoryDisk::default(),
            random: Random(seed),
            acknowledged: Said::new(),
            unanswered: Said::new(),
            commit_count: 0,
            reached: Reached::default(),
        }
    }

    /// One process: opens the folder, checks every room, commits and folds, and stops in the middle of the call that fails.
    fn live(&mut self) -> Result<(), Box<dyn Error>> {
        let disks = Disks { data: Arc::new(self.disk.clone()), log: Arc::new(self.disk.clone()) };
        let Opened { mut log, mut archive, recovered, mut sequence } =
            open_on(disks, FILE_BYTES, Retention::default(), || 1_700_000_000_000, &mut |_, _| {})?;
        self.reached.opened_unfolded += u32::from(recovered.record_count > 0);
        self.check(&mut archive, sequence)?;
        for _ in 0..1 + self.random.below(8) {
            let batch = self.batch();
            match log.commit(&batch) {
                Ok(committed) => {
                    sequence = committed.sequence;
                    self.acknowledge();
                }
                Err(StorageError::Full { .. }) => self.unanswered.clear(),
                Err(error) => return Err(error.into()),
            }
            self.work(&mut archive, sequence)?;
        }
        Ok(())
    }

    /// Some steps of the archive, which may stand in the middle of a window afterwards.
    fn work(&mut self, archive: &mut HistoryArchive, sequence: u64) -> Result<(), Box<dyn Error>> {
        for _ in 0..self.random.below(6) {
            let before = archive.folded();
            match archive.work(sequence) {
                Ok(worked) if worked.next.goes_on() => {}
                Ok(_) | Err(ArchiveError::Full { .. }) => break,
                Err(error) => return Err(error.into()),
            }
            self.reached.windows += u32::from(archive.folded() > before);
        }
        if archive.folded() == sequence {
            self.check_loads(archive, sequence)?;
        }
        Ok(())
    }

    /// What was committed without an answer may be there, as a whole.
    fn check(&mut self, archive: &mut HistoryArchive, sequence: u64) -> Result<(), Box<dyn Error>> {
        let found = self.printed()?;
        if !self.unanswered.is_empty() && found != self.acknowledged {
            self.acknowledge();
        }
        self.unanswered.clear();
        assert_eq!(found, self.acknowledged);
        self.check_loads(archive, sequence)
    }

    fn check_loads(&mut self, archive: &mut HistoryArchive, sequence: u64) -> Result<(), Box<dyn Error>> {
        for room in ROOMS {
            let expected = self.acknowledged.get(room).map_or(&[][..], |said| &said[said.len().saturating_sub(HISTORY_LEN_MAX_MESSAGES)..]);
            let loaded = archive.load(room, sequence)?;
            assert_eq!((String::from_utf8(loaded.lines)?, loaded.message_count as usize), (expected.concat(), expected.len()));
            self.reached.loads += u32::from(!expected.is_empty());
        }
        Ok(())
    }

    fn printed(&self) -> Result<Said, Box<dyn Error>> {
        let mut found = Said::new();
        for room in ROOMS {
            let mut printed = Vec::new();
            match print_room(Arc::new(self.disk.clone()), FILE_BYTES, room, &mut printed) {
                Ok(_) => {
                    let lines = String::from_utf8(printed)?;
                    found.insert(room, lines.split_inclusive('\n').map(str::to_owned).collect());
                }
                Err(super::HistoryError::RoomNotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(found)
    }

    fn acknowledge(&mut self) {
        for (room, lines) in std::mem::take(&mut self.unanswered) {
            self.acknowledged.entry(room).or_default().extend(lines);
        }
    }

    fn batch(&mut self) -> Batch {
        self.commit_count += 1;
        let mut sections = Vec::new();
        for room in ROOMS {
            if self.random.below(2) == 0 {
                continue;
            }
            let length = [0, 20, 600, 3000][self.random.below(4) as usize];
            let line = |ordinal| format!("MESSAGE ada {}.{ordinal} {}\n", self.commit_count, "x".repeat(length));
            let lines: Vec<String> = (0..1 + self.random.below(4)).map(line).collect();
            sections.push(Section { room: room.to_owned(), message_count: lines.len() as u32, lines: lines.concat().into_bytes() });
            self.unanswered.insert(room, lines);
        }
        Batch { sections }
    }

    /// Several processes, each ended by a kill or by a power cut, then one after a power cut that nothing disturbs.
    fn live_and_check(&mut self) {
        for _ in 0..LIVES {
            let ended = self.live();
            if ended.is_err() || self.random.below(2) == 0 {
                self.disk.power_cut(&mut self.random);
            }
        }
        self.disk.power_cut(&mut self.random);
        for _ in 0..2 {
            self.live().expect("the disk works");
        }
    }
}

#[test]
fn a_thousand_power_cuts_and_failures_lose_nothing_and_show_nothing_twice() {
    let mut undisturbed = Run::new(0);
    undisturbed.live_and_check();
    let call_count = undisturbed.disk.trace().len() as u64;
    let mut reached = Reached::default();
    for seed in 0..SEEDS {
        let mut run = Run::new(seed);
        let fault = [Fault::PowerCut, Fault::PowerCut, Fault::IoError, Fault::Full, Fault::ShortWrite][run.random.below(5) as usize];
        run.disk.fail_at(1 + run.random.below(call_count) as usize, fault);
        eprintln!("seed {seed}: {fault:?}");
        run.live_and_check();
        reached.windows += run.reached.windows;
        reached.loads += run.reached.loads;
        reached.opened_unfolded += run.reached.opened_unfolded;
    }
    let Reached { windows, loads, opened_unfolded } = reached;
    assert!(windows > 1000 && loads > 1000 && opened_unfolded > 1000, "{windows} windows, {loads} loads, {opened_unfolded} starts");
}
