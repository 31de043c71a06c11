//! The commands that a refusal prints, followed to the letter: the next start succeeds, with all that stands before the damage.

use super::tests::{FILE_BYTES, PAGE, batch, check_opens, disk_with_six_records, open, put, with_change};
use crate::storage::{
    OpenError, Storage,
    disk::Disk,
    memory_disk::{MemoryDisk, Random},
    tools::print_room,
};
use std::{collections::BTreeSet, sync::Arc};

/// Does what the error says between "run `" and the next "`".
fn follow(disk: &MemoryDisk, error: &str) {
    let (_, commands) = error.split_once("run `").expect("there are commands");
    let (commands, _) = commands.split_once('`').expect("the commands end");
    for command in commands.split(" && ") {
        let words: Vec<_> = command.split(' ').map(|word| word.strip_prefix("memory/log/").unwrap_or(word)).collect();
        match words[..] {
            ["truncate", "-s", bytes, name] => {
                let mut content = disk.content(name);
                content.resize(bytes.parse().expect("it is a number"), 0);
                disk.put(name, content);
            }
            ["rm", name] => disk.take_away(name),
            _ => panic!("nobody can follow {command:?}"),
        }
    }
}

/// The log is refused for this place; the history prints what stands before it, and so does the next start when the advice was followed.
#[track_caller]
fn check(disk: &MemoryDisk, place: &str, left: &str) {
    let error = open(disk).expect_err("the log is refused").to_string();
    assert!(error.starts_with(&format!("memory/log/{place}: ")), "{error}");
    let mut printed = Vec::new();
    // Behind the last intact record it sees no damage: a server might be writing there.
    let _ = print_room(Arc::new(disk.clone()), FILE_BYTES, "lounge", &mut printed);
    assert_eq!(printed.iter().filter(|byte| **byte == b'\n').count(), left.len());
    follow(disk, &error);
    check_opens(disk, left);
}

fn zeroed(name: &str, start: usize, end: usize) -> MemoryDisk {
    with_change(name, |content| content[start..end].fill(0))
}

#[test]
fn after_a_decayed_record() {
    check(&with_change("00000001.log", |content| content[PAGE + 100] ^= 1), "00000001.log is damaged at offset 4096", "a");
    check(&with_change("00000001.log", |content| content[3 * PAGE] ^= 1), "00000001.log is damaged at offset 12288", "abc");
    check(&with_change("00000002.log", |content| content[20] ^= 1), "00000002.log is damaged at offset 0", "abcd");
    check(&with_change("00000002.log", |content| content[PAGE + 100] ^= 1), "00000002.log is damaged at offset 4096", "abcde");
}

#[test]
fn after_a_record_of_zeros() {
    check(&zeroed("00000001.log", 0, 4 * PAGE), "00000001.log is damaged at offset 0", "");
    check(&zeroed("00000001.log", PAGE, 2 * PAGE), "00000001.log is damaged at offset 4096", "a");
    check(&zeroed("00000001.log", 3 * PAGE, 4 * PAGE), "00000001.log is damaged at offset 12288", "abc");
    check(&zeroed("00000001.log", PAGE, 4 * PAGE), "00000001.log is damaged at offset 4096", "a");
    check(&zeroed("00000002.log", 0, PAGE), "00000002.log is damaged at offset 0", "abcd");

    // The next file has no record yet.
    let disk = MemoryDisk::default();
    let (mut log, _) = disk.open_log(FILE_BYTES, &mut |_| {}).expect("an empty folder opens");
    for text in ["a", "b", "c"] {
        log.commit(&batch(text)).expect("the disk works");
    }
    log.preparer().prepare().expect("the disk works");
    let mut content = disk.content("00000001.log");
    content[PAGE..2 * PAGE].fill(0);
    disk.put("00000001.log", content);
    check(&disk, "00000001.log is damaged at offset 4096", "a");
}

#[test]
fn after_bytes_where_nothing_was_written() {
    check(&with_change("00000002.log", |content| content[2 * PAGE] = 1), "00000002.log is damaged at offset 8192", "abcdef");
    check(&with_change("00000002.log", |content| content[2 * PAGE + 100] = 1), "00000002.log is damaged at offset 8192", "abcdef");
    check(&with_change("00000003.log", |content| content[100] = 1), "00000003.log is damaged at offset 0", "abcdef");
}

#[test]
fn after_a_lost_file() {
    for (name, left) in [("00000001.log", ""), ("00000002.log", "abcd")] {
        let disk = disk_with_six_records();
        disk.take_away(name);
        check(&disk, &format!("{name} is damaged at offset 0"), left);
    }
}

#[test]
fn after_a_change_of_length() {
    #[track_caller]
    fn check_length(name: &str, bytes: usize, left: &str) {
        let place = format!("{name} is damaged at offset {}", bytes.min(FILE_BYTES as usize));
        check(&with_change(name, |content| content.resize(bytes, 0)), &place, left);
    }
    check_length("00000001.log", 0, "");
    check_length("00000001.log", PAGE + 1000, "a");
    check_length("00000001.log", 20_000, "abcdef");
    check_length("00000002.log", 0, "abcd");
    check_length("00000002.log", PAGE + 1000, "abcde");
    check_length("00000002.log", 2 * PAGE + 1000, "abcdef");
    check_length("00000002.log", 20_000, "abcdef");
    check_length("00000003.log", 0, "abcdef");
}

#[test]
fn after_a_file_of_another_log() {
    let other = MemoryDisk::default();
    let (mut log, _) = other.open_log(FILE_BYTES, &mut |_| {}).expect("an empty folder opens");
    for _ in 0..6 {
        log.commit(&batch("other")).expect("the disk works");
    }
    let disk = with_change("00000002.log", |content| *content = other.content("00000002.log"));
    check(&disk, "00000002.log is damaged at offset 0", "abcd");
}

#[test]
fn after_any_damage_once_is_enough() {
    let mut random = Random(1);
    let mut reasons = BTreeSet::new();
    for _ in 0..2000 {
        let disk = disk_with_six_records();
        for _ in 0..=random.below(2) {
            damage(&disk, &mut random);
        }
        let letters = match open(&disk) {
            Ok(letters) => letters,
            Err(error) => {
                let OpenError::Damaged { reason, .. } = &error else { panic!("{error}") };
                reasons.insert(reason.split([',', '0']).next().unwrap_or_default().to_owned());
                follow(&disk, &error.to_string());
                open(&disk).unwrap_or_else(|again| panic!("{again}\nafter {error}"))
            }
        };
        assert!("abcdef".starts_with(&letters), "{letters}");
    }
    assert!(reasons.len() >= 6, "{reasons:?}");
}

fn damage(disk: &MemoryDisk, random: &mut Random) {
    let names = disk.names().expect("the disk is on");
    if names.is_empty() {
        return;
    }
    let name = &names[random.below(names.len() as u64) as usize];
    let mut content = disk.content(name);
    let page = random.below(4) as usize * PAGE;
    match random.below(7) {
        _ if content.len() < 4 * PAGE => {}
        0 => content[page..page + PAGE].fill(0),
        1 => content[page..page + 512].fill(0),
        2 => content[page..page + PAGE].fill(0xff),
        3 => content[page + random.below(2100) as usize] ^= 1 << random.below(8),
        4 => content.resize(random.below(20_000) as usize, 0),
        5 => {
            let moved = content[page..page + PAGE].to_vec();
            put(&mut content, random.below(4) as usize * PAGE, &moved);
        }
        _ => return disk.take_away(name),
    }
    disk.put(name, content);
}
