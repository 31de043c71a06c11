//! The storage on the machine's own file system: folder, lock, permissions, and what only a real folder can hold.
//!
//! What a disk can do to the content is tested on a disk in memory, beside the code.

use relay::storage::{self, Archive, HistoryError, OpenError, Opened, Recovered, Retention, Storage, print_history};
use relay_core::{Batch, Section};
use std::{
    fs::{self, Permissions},
    os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

fn open(data_dir: &Path) -> Result<Opened, OpenError> {
    storage::open(data_dir, Retention::default(), &mut |_, _| {})
}

#[track_caller]
fn check_refused(data_dir: &Path, expected: &str) {
    match open(data_dir) {
        Ok(_) => panic!("the folder opened"),
        Err(error) => assert!(error.to_string().contains(expected), "{error}"),
    }
}

/// A data folder that does not exist yet, in one that goes away at the end.
fn new_data_dir() -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir().expect("the temporary folder is writable");
    let data_dir = parent.path().join("relay-data");
    (parent, data_dir)
}

fn batch(room: &str, text: &str) -> Batch {
    let lines = format!("MESSAGE ada {text}\n").into_bytes();
    Batch { sections: vec![Section { room: room.into(), message_count: 1, lines }] }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it exists").mode() & 0o7777
}

#[test]
fn messages_outlive_the_server_and_are_printed_beside_it() {
    let (_parent, data_dir) = new_data_dir();
    let Opened { mut log, archive, recovered, sequence } = open(&data_dir).expect("a new folder opens");
    assert_eq!((recovered, sequence), (Recovered::default(), 0));
    log.commit(&batch("lounge", "one")).expect("the disk works");
    log.commit(&batch("kitchen", "two")).expect("the disk works");
    log.commit(&batch("lounge", "three")).expect("the disk works");
    check_printed(&data_dir, "lounge", "MESSAGE ada one\nMESSAGE ada three\n");

    drop((log, archive));
    let Opened { recovered, sequence, mut archive, .. } = open(&data_dir).expect("the folder opens again");
    let expected = Recovered { record_count: 3, message_count: 3, record_bytes: 3 * 4096, dropped_unfinished: false };
    assert_eq!((recovered, sequence), (expected, 3));
    assert_eq!(archive.load("lounge", 3).expect("the disk works").lines, b"MESSAGE ada one\nMESSAGE ada three\n");
    check_printed(&data_dir, "lounge", "MESSAGE ada one\nMESSAGE ada three\n");

    // What is in the history does not have to be read again.
    drop(archive);
    let Opened { recovered, sequence, .. } = open(&data_dir).expect("the folder opens again");
    assert_eq!((recovered, sequence), (Recovered::default(), 3));
    check_printed(&data_dir, "kitchen", "MESSAGE ada two\n");
}

#[track_caller]
fn check_printed(data_dir: &Path, room: &str, expected: &str) {
    let mut printed = Vec::new();
    let count = print_history(data_dir, room, &mut printed).expect("the room is there");
    assert_eq!((String::from_utf8_lossy(&printed).as_ref(), count), (expected, expected.lines().count() as u64));
}

#[test]
fn a_new_folder_and_its_files_are_private() {
    let (_parent, data_dir) = new_data_dir();
    let Opened { log, .. } = open(&data_dir).expect("a new folder opens");
    log.preparer().prepare().expect("the disk works");
    assert_eq!(mode(&data_dir), 0o700);
    assert_eq!(mode(&data_dir.join("log")), 0o700);
    assert_eq!(mode(&data_dir.join("lock")), 0o600);
    assert_eq!(mode(&data_dir.join("log/00000001.log")), 0o600);
    assert_eq!(fs::metadata(data_dir.join("log/00000001.log")).expect("it exists").len(), 64 << 20);
}

#[test]
fn a_folder_that_others_may_open_is_refused_with_the_chmod_to_run() {
    #[track_caller]
    fn check(exposed: impl FnOnce(&Path) -> PathBuf, bits: u32) {
        let (_parent, data_dir) = new_data_dir();
        drop(open(&data_dir).expect("a new folder opens"));
        let exposed = exposed(&data_dir);
        fs::set_permissions(&exposed, Permissions::from_mode(bits)).expect("it is ours");
        check_refused(&data_dir, &format!("run `chmod 700 {}", exposed.display()));
    }
    for bits in [0o755, 0o750, 0o701, 0o720, 0o777] {
        check(Path::to_owned, bits);
        check(|data_dir| data_dir.join("log"), bits);
    }
}

#[test]
fn a_second_server_is_refused_until_the_first_is_gone() {
    let (_parent, data_dir) = new_data_dir();
    let first = open(&data_dir).expect("a new folder opens");
    check_refused(&data_dir, &format!("another relay (process {}) is using {}", std::process::id(), data_dir.display()));
    drop(first);
    open(&data_dir).expect("the lock is free");
}

#[test]
fn a_lock_file_that_names_nobody_is_no_reason_to_panic() {
    let (_parent, data_dir) = new_data_dir();
    let _first = open(&data_dir).expect("a new folder opens");
    for content in [&b""[..], b"\xff\xff", b"99999999999999999999", b"-1"] {
        fs::write(data_dir.join("lock"), content).expect("it is ours");
        check_refused(&data_dir, "another process is using");
    }
}

#[test]
fn what_cannot_be_a_data_folder_is_named() {
    let (parent, data_dir) = new_data_dir();
    check_refused(&data_dir.join("below"), "below failed: No such file or directory");
    fs::write(parent.path().join("file"), "").expect("it is ours");
    check_refused(&parent.path().join("file"), "file is not a folder: choose another one with `--data DIR`");
    check_refused(Path::new("/dev/null"), "/dev/null is not a folder");
    drop(open(&data_dir).expect("a new folder opens"));
    fs::remove_dir(data_dir.join("log")).expect("it is empty");
    fs::write(data_dir.join("log"), "").expect("it is ours");
    check_refused(&data_dir, "log is not a folder");
}

#[test]
fn a_folder_that_is_for_something_else_is_left_alone() {
    #[track_caller]
    fn check(folder: &Path) {
        let before = fs::read_dir(folder).expect("it is a folder").count();
        let error = open(folder).err().expect("the folder is refused").to_string();
        assert!(error.starts_with(&format!("{} holds \"", folder.display())), "{error}");
        assert!(error.contains("choose with `--data DIR` one that is empty") && !error.contains("chmod"), "{error}");
        assert_eq!(fs::read_dir(folder).expect("it is a folder").count(), before);
    }
    check(Path::new("/"));
    check(Path::new("/etc"));
    for bits in [0o700, 0o755] {
        let (_parent, data_dir) = new_data_dir();
        drop(open(&data_dir).expect("a new folder opens"));
        fs::write(data_dir.join("notes"), "").expect("it is ours");
        fs::set_permissions(&data_dir, Permissions::from_mode(bits)).expect("it is ours");
        check(&data_dir);
        fs::remove_file(data_dir.join("notes")).expect("it is ours");
    }
}

#[test]
fn printed_commands_work_on_paths_that_a_shell_would_take_apart() {
    let parent = tempfile::tempdir().expect("the temporary folder is writable");
    for name in ["relay data", "it's $HOME; `x`"] {
        let data_dir = parent.path().join(name);
        let Opened { mut log, .. } = open(&data_dir).expect("a new folder opens");
        for text in ["one", "two", "three"] {
            log.commit(&batch("lounge", text)).expect("the disk works");
        }
        drop(log);
        fs::set_permissions(&data_dir, Permissions::from_mode(0o755)).expect("it is ours");
        run_advice(&data_dir);
        assert_eq!(mode(&data_dir), 0o700);

        // A shell that reads the other commands finds the folder in them.
        let file = fs::File::options().write(true).open(data_dir.join("log/00000001.log")).expect("it is ours");
        file.write_at(&[0; 4096], 4096).expect("it is ours");
        let error = open(&data_dir).err().expect("the log is refused").to_string();
        for command in ["verify", "repair"] {
            let (_, folder) = error.split_once(&format!("`relay {command} --data ")).expect("there is a command");
            let (folder, _) = folder.split_once("` s").expect("the command ends");
            let echoed = Command::new("sh").args(["-c", &format!("printf %s {folder}")]).output().expect("there is a shell");
            assert_eq!(String::from_utf8_lossy(&echoed.stdout), data_dir.display().to_string());
        }
    }
}

/// Has a shell run what the refusal says between "run `" and the last "`".
#[track_caller]
fn run_advice(data_dir: &Path) {
    let error = open(data_dir).err().expect("the folder is refused").to_string();
    let (_, command) = error.split_once("run `").expect("there is a command");
    let (command, _) = command.rsplit_once('`').expect("the command ends");
    let status = Command::new("sh").args(["-c", command]).status().expect("there is a shell");
    assert!(status.success(), "{command}");
}

#[test]
fn only_regular_files_are_log_files() {
    #[track_caller]
    fn check(make: impl FnOnce(&Path), expected: &str) {
        let (_parent, data_dir) = new_data_dir();
        drop(open(&data_dir).expect("a new folder opens"));
        make(&data_dir.join("log/00000001.log"));
        check_refused(&data_dir, expected);
        let error = print_history(&data_dir, "lounge", &mut Vec::new()).expect_err("it is no log file");
        assert!(error.to_string().contains(expected), "{error}");
    }
    check(|path| fs::create_dir(path).expect("it is ours"), "00000001.log failed: not a regular file");
    check(|path| symlink("/dev/zero", path).expect("it is ours"), "Too many levels of symbolic links");
    let pipe = |path: &Path| rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RUSR).expect("it is ours");
    check(pipe, "00000001.log failed: not a regular file");
    check(|path| fs::write(path, "").expect("it is ours"), "the file is 0 bytes long instead of 67108864");
}

#[test]
fn history_needs_a_log() {
    let (_parent, data_dir) = new_data_dir();
    let error = print_history(&data_dir, "lounge", &mut Vec::new()).expect_err("there is nothing");
    assert!(matches!(error, HistoryError::Stored(OpenError::NoData { .. })), "{error}");
    assert!(!data_dir.exists(), "looking makes nothing");
    drop(open(&data_dir).expect("a new folder opens"));
    let error = print_history(&data_dir, "lounge", &mut Vec::new()).expect_err("the log is empty");
    assert!(matches!(error, HistoryError::RoomNotFound { .. }), "{error}");
}

#[test]
fn a_server_whose_lock_file_was_removed_is_still_the_only_one() {
    let (_parent, data_dir) = new_data_dir();
    let first = open(&data_dir).expect("a new folder opens");
    fs::remove_file(data_dir.join("lock")).expect("it is ours");
    check_refused(&data_dir, "another process is using");
    drop(first);
    open(&data_dir).expect("the lock is free");
}
