//! Files, off the loop. What a thread does meanwhile is decided by a gate: a job that holds the only thread until the test opens it.

mod support;

use std::future::Future;
use std::io::{ErrorKind, SeekFrom};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::mpsc::{self, Sender};

use futures_util::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt, TryStreamExt, poll};
use miniloop::fs::{self, File, OpenOptions};
use miniloop::{EventLoop, spawn_blocking};

use crate::support::{in_a_process_of_its_own, on_drop};

/// A folder of the test's own, removed at its end.
fn folder(test: &str) -> (PathBuf, support::OnDrop) {
    let path = std::env::temp_dir().join(format!("miniloop-{test}-{}", std::process::id()));
    std::fs::create_dir(&path).unwrap();
    let remove = path.clone();
    (path, on_drop(move || std::fs::remove_dir_all(remove).unwrap()))
}

fn run<T>(future: impl Future<Output = T>) -> T {
    with_one_thread().run_until_complete(future).unwrap()
}

fn with_one_thread() -> EventLoop {
    EventLoop::builder().blocking_threads(1).build().unwrap()
}

/// Occupies the only thread until it is opened, or dropped.
fn gate() -> Sender<()> {
    let (open, opened) = mpsc::channel();
    let (begins, begun) = mpsc::channel();
    let job = spawn_blocking(move || {
        begins.send(()).unwrap();
        // An error opens it, too.
        let _ = opened.recv();
    });
    begun.recv().unwrap();
    drop(job);
    open
}

/// A file with this text, open for everything.
async fn file_of(folder: &std::path::Path, text: &str) -> File {
    let path = folder.join("file");
    fs::write(&path, text).await.unwrap();
    OpenOptions::new().read(true).write(true).open(path).await.unwrap()
}

async fn read(file: &mut File, len: usize) -> String {
    let mut bytes = vec![0; len];
    file.read_exact(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Begins a read of so many bytes, and gives it up when a thread is about to make it.
async fn abandon_read(file: &mut File, len: usize) {
    let gate = gate();
    let mut bytes = vec![0; len];
    assert!(poll!(&mut pin!(file.read(&mut bytes))).is_pending());
    drop(gate);
}

#[test]
fn whole_files_and_folders_come_and_go() {
    let (folder, _removes) = folder("whole");
    run(async {
        let [a, b, deep] = ["a", "b", "x/y/z"].map(|name| folder.join(name));
        fs::write(&a, "one").await.unwrap();
        assert_eq!(fs::copy(&a, &b).await.unwrap(), 3);
        fs::write(&a, b"two").await.unwrap();
        assert_eq!((fs::read(&a).await.unwrap(), fs::read_to_string(&b).await.unwrap()), (b"two".to_vec(), "one".to_owned()));
        fs::rename(&a, &b).await.unwrap();
        assert_eq!(fs::metadata(&a).await.unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(fs::metadata(&b).await.unwrap().len(), 3);
        fs::create_dir_all(&deep).await.unwrap();
        fs::remove_dir(&deep).await.unwrap();
        fs::remove_dir_all(folder.join("x")).await.unwrap();
        fs::remove_file(&b).await.unwrap();
        assert!(!fs::try_exists(&b).await.unwrap());
        assert!(fs::read_dir(&folder).await.unwrap().next_entry().await.unwrap().is_none());
    });
}

#[test]
fn each_entry_of_a_folder_is_listed_once_however_many_batches_they_are() {
    // As many as one job reads, one more, and twice as many.
    for count in [0, 64, 65, 128] {
        let (folder, _removes) = folder(&format!("list-{count}"));
        let mut names: Vec<_> = (0..count).map(|number| format!("{number:03}")).collect();
        names.iter().for_each(|name| std::fs::write(folder.join(name), "").unwrap());
        run(async {
            let listed = fs::read_dir(&folder).await.unwrap().try_collect::<Vec<_>>().await.unwrap();
            assert!(listed.iter().all(|entry| entry.path() == folder.join(entry.file_name())));
            let mut listed: Vec<_> = listed.iter().map(|entry| entry.file_name().into_string().unwrap()).collect();
            listed.sort();
            names.sort();
            assert_eq!(listed, names);
        });
    }
}

#[test]
fn the_cursor_reads_writes_and_seeks_as_one() {
    let (folder, _removes) = folder("cursor");
    run(async {
        let mut file = file_of(&folder, "0123456789").await;
        assert_eq!(read(&mut file, 3).await, "012");
        file.write_all(b"ab").await.unwrap();
        assert_eq!(read(&mut file, 2).await, "56");
        assert_eq!(file.seek(SeekFrom::Current(-4)).await.unwrap(), 3);
        assert_eq!(read(&mut file, 2).await, "ab");
        assert_eq!(file.seek(SeekFrom::End(-1)).await.unwrap(), 9);
        assert_eq!((read(&mut file, 1).await.as_str(), file.read(&mut [0]).await.unwrap()), ("9", 0));
        assert!(file.seek(SeekFrom::Current(-11)).await.is_err());
        assert_eq!(file.seek(SeekFrom::Current(0)).await.unwrap(), 10, "a seek that failed moves nothing");
        assert_eq!((file.read_at(4, 8).await.unwrap(), file.read_at(1, 99).await.unwrap()), (b"89".to_vec(), Vec::new()));
        file.write_all_at("!", 0).await.unwrap();
        file.set_len(2).await.unwrap();
        assert_eq!((file.metadata().await.unwrap().len(), fs::read(folder.join("file")).await.unwrap()), (2, b"!1".to_vec()));
    });
}

#[test]
fn a_read_that_is_dropped_leaves_what_it_brings_to_whatever_comes_next() {
    let (folder, _removes) = folder("dropped-read");
    run(async {
        let mut file = file_of(&folder, "0123456789").await;
        abandon_read(&mut file, 4).await;
        assert_eq!(read(&mut file, 2).await, "01");
        assert_eq!(file.seek(SeekFrom::Current(0)).await.unwrap(), 2, "a seek counts from where the reader is");
        abandon_read(&mut file, 4).await;
        file.write_all(b"ab").await.unwrap();
        assert_eq!(read(&mut file, 1).await, "4");
        abandon_read(&mut file, 4).await;
        file.set_len(6).await.unwrap();
        assert_eq!((read(&mut file, 1).await.as_str(), file.read(&mut [0]).await.unwrap()), ("5", 0), "what was cut off is not read");
        file.seek(SeekFrom::Start(1)).await.unwrap();
        abandon_read(&mut file, 4).await;
        let mut file = file.into_std().await.unwrap();
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut file, &mut rest).unwrap();
        assert_eq!(rest, "1ab45");
    });
}

#[test]
fn what_a_file_has_accepted_is_written_although_it_is_dropped_and_the_loop_closed() {
    let (folder, _removes) = folder("accepted");
    let path = folder.join("file");
    let mut event_loop = with_one_thread();
    event_loop
        .run_until_complete(async {
            let mut file = File::create(&path).await.unwrap();
            let gate = gate();
            assert_eq!(file.write(b"accepted").await.unwrap(), 8);
            drop((file, gate));
        })
        .unwrap();
    event_loop.close();
    assert_eq!(std::fs::read(path).unwrap(), b"accepted");
}

#[test]
fn a_read_at_a_place_gets_memory_for_what_is_there_and_not_for_what_was_asked() {
    let (folder, _removes) = folder("huge");
    run(async {
        let bytes = Vec::from_iter((0..1_500_000_u32).map(|index| index as u8));
        miniloop::fs::write(folder.join("file"), bytes.clone()).await.unwrap();
        let file = File::open(folder.join("file")).await.unwrap();
        // A terabyte that somebody has written into a header would end the program.
        for len in [bytes.len(), 1 << 40, usize::MAX] {
            assert!(file.read_at(len, 0).await.unwrap() == bytes);
            assert_eq!(file.read_at(len, 1_499_999).await.unwrap(), bytes[1_499_999..]);
        }
        assert!(file.read_at(700_000, 1).await.unwrap() == bytes[1..700_001]);
        assert_eq!(file.read_at(usize::MAX, u64::MAX).await.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    });
}

#[test]
fn one_job_moves_256_kib_at_most() {
    let (folder, _removes) = folder("piece");
    run(async {
        let len = 256 * 1_024;
        let mut file = file_of(&folder, "").await;
        let bytes = vec![7; len + 1];
        assert_eq!(file.write(&bytes).await.unwrap(), len);
        file.write_all(&bytes[len..]).await.unwrap();
        file.seek(SeekFrom::Start(0)).await.unwrap();
        let mut read = vec![0; len + 1];
        assert_eq!(file.read(&mut read).await.unwrap(), len);
        assert_eq!(file.read(&mut read[len..]).await.unwrap(), 1);
        assert_eq!(read, bytes);
    });
}

#[test]
fn the_error_of_a_write_is_that_of_the_next_write_or_flush_and_told_once() {
    run(async {
        let options = OpenOptions::new().write(true);
        let mut file = options.open("/dev/full").await.unwrap();
        file.write_all(b"x").await.unwrap();
        assert_eq!(file.flush().await.unwrap_err().kind(), ErrorKind::StorageFull);
        file.flush().await.unwrap();
        file.write_all(b"x").await.unwrap();
        assert_eq!(file.write(b"y").await.unwrap_err().kind(), ErrorKind::StorageFull);
        file.write_all(b"x").await.unwrap();
        assert_eq!(file.sync_data().await.unwrap_err().kind(), ErrorKind::StorageFull);
        file.write_all(b"x").await.unwrap();
        assert_eq!(file.close().await.unwrap_err().kind(), ErrorKind::StorageFull);
    });
}

#[test]
fn a_failed_write_of_a_dropped_file_is_logged() {
    let told = in_a_process_of_its_own("a_failed_write_of_a_dropped_file_is_logged", || {
        run(async {
            let mut file = OpenOptions::new().write(true).open("/dev/full").await.unwrap();
            let gate = gate();
            file.write_all(b"x").await.unwrap();
            drop((file, gate));
        });
    });
    assert!(told.contains("writing to a file failed after the file had been dropped"), "{told}");
}

#[test]
fn a_call_that_is_dropped_before_a_thread_has_it_is_not_made() {
    let (folder, _removes) = folder("withdrawn");
    run(async {
        let path = folder.join("stays");
        fs::write(&path, "").await.unwrap();
        let gate = gate();
        {
            let mut remove = pin!(fs::remove_file(&path));
            assert!(poll!(&mut remove).is_pending());
        }
        drop(gate);
        assert!(fs::try_exists(&path).await.unwrap());
    });
}

#[test]
fn options_are_those_of_the_system() {
    let (folder, _removes) = folder("options");
    run(async {
        let path = folder.join("file");
        let new = || OpenOptions::new().write(true).create_new(true).mode(0o600);
        new().open(&path).await.unwrap();
        assert_eq!(new().open(&path).await.unwrap_err().kind(), ErrorKind::AlreadyExists);
        for text in ["a", "b"] {
            let mut file = OpenOptions::new().append(true).open(&path).await.unwrap();
            file.write_all(text.as_bytes()).await.unwrap();
            file.close().await.unwrap();
        }
        assert_eq!(fs::read(&path).await.unwrap(), b"ab");
        File::create(&path).await.unwrap();
        assert_eq!(File::open(&path).await.unwrap().read(&mut [0]).await.unwrap(), 0);
        assert_eq!(File::open(folder.join("none")).await.unwrap_err().kind(), ErrorKind::NotFound);
    });
}
