//! A disk that somebody fills to the last block while people chat: messages are refused, histories are shown, and when there is room again
//! everything goes on, without a restart. Also when it happens in the middle of a fold.
//!
//! The disk is a file system in memory of its own. Mounting it takes the rights of root, which a user has in a namespace of his own: there
//! the test starts itself again.

mod support;

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::process::Signal;
use support::client::Client;
use support::folding::{Stopped, stopped};
use support::server::{Server, relay, stored};
use support::{Data, is_missing, wait_until};

const DISK: &str = "size=400m,mode=0700";
const TEST: &str = "a_disk_that_is_full_for_a_while_costs_nothing_but_the_messages_that_were_refused";
const ARCHIVE_FULL: &str = "relay_archive_errors_total{reason=\"full\"}";
/// Set where the test has started itself.
const IN_NAMESPACE: &str = "RELAY_TEST_IN_NAMESPACE";

/// More messages of 4 KiB than are ever stored on a full disk: free space is asked for once per MiB.
const UNTIL_REFUSED_MAX: usize = 300;
/// More of them than it takes until the log is folded: that begins at 32 MiB, and first gathers up to as much again.
const UNTIL_FOLDED_MAX: usize = 30_000;

#[test]
fn a_disk_that_is_full_for_a_while_costs_nothing_but_the_messages_that_were_refused() {
    if !can_mount() {
        return;
    }
    let disk = Disk::mount();
    let data = Data::at(disk.folder.join("relay-data"));
    // A room that nobody is in, and that is only on the disk.
    let server = Server::start(&data, &[]);
    let mut old = server.join("old", "attic");
    old.say("MSG long ago");
    old.hears("MESSAGE old long ago");
    server.stop();

    let server = Server::start(&data, &["--heartbeat-interval", "0"]);
    let pid = server.pid();
    let mut chat = Chat::new(&server);
    (0..10).for_each(|_| assert!(chat.say()));
    for _ in 0..2 {
        disk.fill();
        chat.say_until_refused();
        chat.check_history();
        assert_eq!(server.join("eve", "attic").history(), ["MESSAGE old long ago"]);
        disk.free();
        (0..10).for_each(|_| assert!(chat.say(), "there is room"));
    }

    // Now in the middle of a fold. It may be over before the disk is full: that is up to the machine.
    let mut attempts = 0;
    loop {
        attempts += 1;
        assert!(attempts <= 3, "no fold has met a full disk");
        let (before_bytes, full_before) = (history_bytes(&data), server.number(ARCHIVE_FULL));
        // Some transactions of it are done.
        chat.say_until(|| history_bytes(&data) > before_bytes + (4 << 20));
        // Filling a disk takes longer than a fold.
        server.signal(Signal::STOP);
        disk.fill();
        server.signal(Signal::CONT);
        chat.say_until_refused();
        wait_until("the fold has met the full disk, or is over", || {
            server.number(ARCHIVE_FULL) > full_before || server.number("relay_unfolded_bytes") < 8 << 20
        });
        let is_half_folded = stopped(&data) == Stopped::BetweenTransactions;
        chat.check_history();
        assert_eq!(server.join("eve", "attic").history(), ["MESSAGE old long ago"]);
        assert!(stored(&data, "lounge") == chat.stored, "on the full disk, something is lost");
        disk.free();
        (0..10).for_each(|_| assert!(chat.say(), "there is room"));
        wait_until("all of it is folded", || server.number("relay_unfolded_bytes") < 8 << 20);
        if is_half_folded {
            break;
        }
    }
    server.wait_for_log("messages are moved from the log to the history again");
    (0..10).for_each(|_| assert!(chat.say(), "there is room"));
    chat.check_history();
    assert_eq!(server.pid(), pid);
    assert!(stored(&data, "lounge") == chat.stored, "beside the server, something is lost");
    println!("{} messages stored, {} refused, {attempts} folds until one met a full disk", chat.stored.len(), chat.refused);
    server.stop();

    let ended = relay(&data, &["verify", "--data", data.path().to_str().expect("the path is text")]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let server = Server::start(&data, &[]);
    assert_eq!(server.join("eve", "lounge").history(), chat.stored[chat.stored.len() - 50..]);
    server.stop();
    assert!(stored(&data, "lounge") == chat.stored, "after a restart, something is lost");
}

fn history_bytes(data: &Data) -> u64 {
    fs::metadata(data.path().join("history.db")).expect("there is a history").len()
}

/// Two people in a room, one of whom talks.
struct Chat {
    ada: Client,
    bob: Client,
    /// What both have seen.
    stored: Vec<String>,
    refused: usize,
}

impl Chat {
    fn new(server: &Server) -> Chat {
        Chat { ada: server.join("ada", "lounge"), bob: server.join("bob", "lounge"), stored: Vec::new(), refused: 0 }
    }

    /// Says something of nearly 4 KiB. Returns whether it was stored.
    #[track_caller]
    fn say(&mut self) -> bool {
        let text = format!("{} {}", self.stored.len() + self.refused, "x".repeat(4_000));
        self.ada.say(&format!("MSG {text}"));
        let line = self.ada.line().expect("an answer");
        if line == "ERR storage full" {
            self.refused += 1;
            return false;
        }
        assert_eq!(line, format!("MESSAGE ada {text}"));
        self.bob.hears(&line);
        self.stored.push(line);
        true
    }

    #[track_caller]
    fn say_until_refused(&mut self) {
        let mut count = 0;
        while self.say() {
            count += 1;
            assert!(count < UNTIL_REFUSED_MAX, "the disk is full, and messages are stored");
        }
        // It stays so.
        (0..5).for_each(|_| assert!(!self.say(), "the disk is full"));
    }

    #[track_caller]
    fn say_until(&mut self, is_so: impl Fn() -> bool) {
        let mut count = 0;
        while !is_so() {
            assert!(self.say(), "there is room");
            count += 1;
            assert!(count < UNTIL_FOLDED_MAX, "nothing is folded");
        }
    }

    #[track_caller]
    fn check_history(&mut self) {
        assert_eq!(self.bob.history(), self.stored[self.stored.len().saturating_sub(50)..]);
    }
}

/// Whether a file system can be mounted by this process. If not, the test has been run where it can, or is skipped.
fn can_mount() -> bool {
    if is_missing("mount") {
        return false;
    }
    if let Ok(_disk) = Disk::try_mount() {
        return true;
    }
    if std::env::var_os(IN_NAMESPACE).is_some() || is_missing("unshare") {
        println!("SKIPPED: no file system can be mounted");
        return false;
    }
    let works = Command::new("unshare").args(["-rm", "true"]).output().is_ok_and(|ended| ended.status.success());
    if !works {
        println!("SKIPPED: no file system can be mounted, also not in a namespace of its own");
        return false;
    }
    let test = std::env::current_exe().expect("it runs");
    let ended = Command::new("unshare").arg("-rm").arg(test).args(["--exact", TEST, "--nocapture"]).env(IN_NAMESPACE, "1").output();
    let ended = ended.expect("it was there");
    print!("{}", String::from_utf8_lossy(&ended.stdout));
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    false
}

/// A small disk. It goes away when this is dropped.
struct Disk {
    folder: PathBuf,
    _parent: tempfile::TempDir,
}

impl Disk {
    fn mount() -> Disk {
        Disk::try_mount().unwrap_or_else(|error| panic!("it was possible before: {error}"))
    }

    fn try_mount() -> Result<Disk, String> {
        let parent = tempfile::tempdir().expect("the temporary folder is writable");
        let folder = parent.path().join("disk");
        fs::create_dir(&folder).and_then(|()| fs::set_permissions(&folder, Permissions::from_mode(0o700))).expect("it is ours");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", DISK, "tmpfs"]).arg(&folder).output();
        let mounted = mounted.map_err(|error| error.to_string())?;
        match mounted.status.success() {
            true => Ok(Disk { folder, _parent: parent }),
            false => Err(String::from_utf8_lossy(&mounted.stderr).into_owned()),
        }
    }

    fn filler(&self) -> PathBuf {
        self.folder.join("filler")
    }

    /// Takes every block that is free.
    fn fill(&self) {
        let file = File::create(self.filler()).expect("a file without content takes no block");
        let mut len = 0;
        for piece in [16 << 20, 1 << 20, 64 << 10, 4096] {
            while fallocate(&file, FallocateFlags::empty(), len, piece).is_ok() {
                len += piece;
            }
        }
        assert_eq!(free_blocks(&self.folder), 0);
    }

    fn free(&self) {
        fs::remove_file(self.filler()).expect("it is ours");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // What still has files open there is on its way out.
        let _ = Command::new("umount").arg("--lazy").arg(&self.folder).status();
    }
}

fn free_blocks(folder: &Path) -> u64 {
    rustix::fs::statvfs(folder).expect("it is mounted").f_bavail
}
