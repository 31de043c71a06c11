//! One flipped byte anywhere in a data folder: it is refused, or noticed when it is read, or harmless. No answer is ever wrong.
//!
//! The folder is a real server's after `kill -9` in the middle of a fold: a history, a journal that asks for a rollback, a log that is not
//! in the history yet, and one that is. Each case is a copy of it, whose holes stay holes.

mod support;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use relay::storage::{Archive, Opened, Retention, open, print_history, verify_folder};
use support::folding::{Stopped, TransactionCounter, stopped};
use support::server::{Server, Starting};
use support::{Data, Random};

const SEED: u64 = 11;
const ROOMS: usize = 12;
const BLOCK_BYTES: usize = 4096;

/// How many places of each kind.
const IN_RECORDS: usize = 36;
const BEHIND_RECORDS: usize = 9;
const IN_HISTORY: usize = 11;
/// On the pages of tables and indexes that are not just the rest of a row: what stands there decides which rows are found.
const IN_TREES: usize = 20;
const IN_JOURNAL: usize = 14;
const IN_JOURNAL_HEADER: usize = 10;

const LOG: &str = "log/00000001.log";
const HISTORY: &str = "history.db";
const JOURNAL: &str = "history.db-journal";

#[test]
fn a_byte_flipped_in_any_of_a_hundred_places_is_never_a_wrong_history() {
    let (data, seen) = killed_in_a_fold();
    let template = Template::of(&data.path());
    let mut random = Random(SEED);

    let untouched = Data::new();
    template.copy_to(&untouched.path());
    let right = histories(&untouched.path()).expect("nothing is flipped");
    for (room, seen) in &seen {
        assert!(right[room].all.starts_with(seen), "{room}: something that was seen is not stored");
    }
    drop(untouched);

    let (mut refused, mut partly, mut harmless, mut verified) = (0, 0, 0, 0);
    let places = template.places(&mut random);
    assert_eq!(places.len(), 100);
    for (file, offset) in places {
        let flip = 1 + random.below(255) as u8;
        let place = format!("{file}, offset {offset}, ^ {flip:#04x}, seed {SEED}");
        let copy = Data::new();
        template.copy_to(&copy.path());
        flip_byte(&copy.path().join(file), offset, flip);

        let report = verify_folder(&copy.path(), &mut |_| {}).unwrap_or_else(|error| panic!("{place}: verify fails: {error}"));
        for finding in &report.findings {
            assert!(!finding.path.is_empty() && finding.command.contains("relay"), "{place}: {finding:?}");
        }
        verified += usize::from(!report.is_right());
        match histories(&copy.path()) {
            Err(error) => {
                check_names_place_and_way_out(&error, file, &copy, &place);
                assert!(!report.is_right(), "{place}: refused, and verify finds nothing: {error}");
                refused += 1;
            }
            Ok(found) => {
                let mut all_right = true;
                for (room, right) in &right {
                    let found = &found[room];
                    all_right &= is_right_or_error(&found.last, &right.last, file, &copy, &place);
                    all_right &= match &found.all_error {
                        None => {
                            assert!(found.all == right.all, "{place}: the history of {room} is wrong");
                            true
                        }
                        // What stands before the damage.
                        Some(error) => {
                            check_names_place_and_way_out(error, file, &copy, &place);
                            assert!(right.all.starts_with(&found.all), "{place}: the part of the history of {room} is wrong");
                            false
                        }
                    };
                }
                assert!(all_right || !report.is_right(), "{place}: something cannot be read, and verify finds nothing");
                if all_right { harmless += 1 } else { partly += 1 }
            }
        }
    }
    println!("seed {SEED}: {refused} starts refused, {partly} partly readable, {harmless} harmless; verify found {verified} of 100");
    assert!(refused >= 20 && partly >= 5 && verified >= 50, "few flipped bytes were noticed");
}

/// What a folder says of a room.
struct Stored {
    /// What a server answers `HISTORY` with, or why it cannot.
    last: Result<String, String>,
    /// What `relay history` prints, to the end or up to an error.
    all: String,
    all_error: Option<String>,
}

/// Starts from the folder, and asks for everything.
fn histories(data_dir: &Path) -> Result<BTreeMap<String, Stored>, String> {
    let opened = open(data_dir, Retention::default(), &mut |_, _| {}).map_err(|error| error.to_string())?;
    let Opened { log: _log, mut archive, sequence, .. } = opened;
    let of_room = |room: String| {
        let last = archive.load(&room, sequence).map_err(|error| error.to_string());
        let last = last.map(|last| String::from_utf8(last.lines).expect("the history is valid text"));
        let mut all = Vec::new();
        let all_error = print_history(data_dir, &room, &mut all).err().map(|error| error.to_string());
        (room, Stored { last, all: String::from_utf8(all).expect("the history is valid text"), all_error })
    };
    Ok((0..ROOMS).map(room).map(of_room).collect())
}

#[track_caller]
fn is_right_or_error(found: &Result<String, String>, right: &Result<String, String>, file: &str, copy: &Data, place: &str) -> bool {
    match found {
        Ok(_) => assert_eq!(found, right, "{place}"),
        Err(error) => check_names_place_and_way_out(error, file, copy, place),
    }
    found.is_ok()
}

/// An operator knows from it what is damaged, and what to type.
#[track_caller]
fn check_names_place_and_way_out(error: &str, file: &str, copy: &Data, place: &str) {
    let names_file = [file, HISTORY].iter().any(|file| error.contains(copy.path().join(file).to_str().expect("the path is text")));
    assert!(names_file, "{place}: no file in `{error}`");
    assert!(["verify", "repair"].iter().any(|command| error.contains(&format!("relay {command}"))), "{place}: no command in `{error}`");
}

fn flip_byte(path: &Path, offset: u64, flip: u8) {
    let file = File::options().read(true).write(true).open(path).expect("it is ours");
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).expect("the place is in the file");
    file.write_all_at(&[byte[0] ^ flip], offset).expect("it is ours");
}

fn room(number: usize) -> String {
    format!("room-{number}")
}

/// A server's data after `kill -9` in the middle of a fold, with what was seen of each room.
fn killed_in_a_fold() -> (Data, BTreeMap<String, String>) {
    let data = Data::new();
    let mut seen = BTreeMap::new();
    let server = Server::start(&data, &["--log", "warn"]);
    talk(&server, "first", 250, &mut seen);
    server.kill();
    // This start moves it all into the history.
    let server = Server::start(&data, &["--log", "warn"]);
    talk(&server, "second", 1_200, &mut seen);
    // Nobody waits for these: the kill comes while they are committed.
    let mut hasty = server.join("hasty", &room(0));
    hasty.send("MSG is this stored?\n".repeat(1_000).as_bytes());
    hasty.line().expect("an answer");
    server.kill();
    // And this one is killed in it.
    for attempt in 0.. {
        let starting = Starting::begin(&data, &["--log", "warn"]);
        let mut counter = TransactionCounter::default();
        while counter.count == 0 && !starting.is_over() {
            counter.look(&data);
        }
        let was_over = starting.is_over();
        starting.kill();
        if stopped(&data) == Stopped::InTransaction {
            break;
        }
        assert!(!was_over && attempt < 100, "no kill came in a transaction");
    }
    (data, seen)
}

/// Fills all rooms with so many messages, a few hundred bytes each.
fn talk(server: &Server, name: &str, count: usize, seen: &mut BTreeMap<String, String>) {
    for number in 0..ROOMS {
        let mut member = server.join(name, &room(number));
        let seen = seen.entry(room(number)).or_default();
        for first in (0..count).step_by(50) {
            let texts: Vec<String> = (first..first + 50).map(|number| format!("{number} {}", "text ".repeat(number % 100))).collect();
            member.send(texts.iter().map(|text| format!("MSG {text}\n")).collect::<String>().as_bytes());
            for _ in &texts {
                writeln!(seen, "{}", member.line().expect("a message")).expect("a string takes it");
            }
        }
    }
}

/// The files of a folder, without their zeros.
struct Template {
    files: Vec<(PathBuf, TemplateFile)>,
}

struct TemplateFile {
    len: u64,
    /// Those that are not all zeros.
    blocks: Vec<(u64, Vec<u8>)>,
}

impl Template {
    fn of(folder: &Path) -> Template {
        let mut files = Vec::new();
        for folder_name in ["", "log"] {
            for entry in fs::read_dir(folder.join(folder_name)).expect("it is a folder") {
                let entry = entry.expect("it can be read");
                if entry.file_type().expect("it can be read").is_file() {
                    let content = fs::read(entry.path()).expect("it can be read");
                    let blocks = content.chunks(BLOCK_BYTES).enumerate().filter(|(_, block)| block.iter().any(|byte| *byte != 0));
                    let blocks = blocks.map(|(index, block)| ((index * BLOCK_BYTES) as u64, block.to_vec())).collect();
                    files.push((Path::new(folder_name).join(entry.file_name()), TemplateFile { len: content.len() as u64, blocks }));
                }
            }
        }
        Template { files }
    }

    fn copy_to(&self, folder: &Path) {
        for folder in [folder, &folder.join("log")] {
            fs::create_dir(folder).expect("the temporary folder is writable");
            fs::set_permissions(folder, Permissions::from_mode(0o700)).expect("it is ours");
        }
        for (name, TemplateFile { len, blocks }) in &self.files {
            let file = File::create(folder.join(name)).expect("the folder is writable");
            file.set_len(*len).expect("there is room");
            for (offset, block) in blocks {
                file.write_all_at(block, *offset).expect("there is room");
            }
        }
    }

    fn file(&self, name: &str) -> &TemplateFile {
        self.files.iter().find(|(path, _)| path == Path::new(name)).map(|(_, file)| file).unwrap_or_else(|| panic!("there is no {name}"))
    }

    /// Random places in all files, most where something stands.
    fn places(&self, random: &mut Random) -> Vec<(&'static str, u64)> {
        let end = |file: &TemplateFile| file.blocks.last().map_or(0, |(offset, block)| offset + block.len() as u64);
        let records_end = end(self.file(LOG));
        let mut places = Vec::new();
        for _ in 0..IN_RECORDS {
            places.push((LOG, random.below(records_end)));
        }
        // The next record would stand in the first half of them.
        for index in 0..BEHIND_RECORDS as u64 {
            let bytes = if index % 2 == 0 { 64 << 10 } else { self.file(LOG).len - records_end };
            places.push((LOG, records_end + random.below(bytes)));
        }
        for _ in 0..IN_HISTORY {
            places.push((HISTORY, random.below(self.file(HISTORY).len)));
        }
        let is_tree = |(offset, page): &&(u64, Vec<u8>)| *offset == 0 || [0x02, 0x05, 0x0a, 0x0d].contains(&page[0]);
        let trees: Vec<u64> = self.file(HISTORY).blocks.iter().filter(is_tree).map(|(offset, _)| *offset).collect();
        for _ in 0..IN_TREES {
            places.push((HISTORY, trees[random.below(trees.len() as u64) as usize] + random.below(BLOCK_BYTES as u64)));
        }
        for _ in 0..IN_JOURNAL {
            places.push((JOURNAL, random.below(end(self.file(JOURNAL)))));
        }
        for _ in 0..IN_JOURNAL_HEADER {
            places.push((JOURNAL, random.below(512)));
        }
        places
    }
}
