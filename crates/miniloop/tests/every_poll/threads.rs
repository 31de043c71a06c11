//! What is done elsewhere: on other threads, in other processes, by the kernel.

use std::cell::RefCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::{AsyncReadExt, AsyncWriteExt};
use miniloop::diag::stats;
use miniloop::fs::{self, File};
use miniloop::net::{TcpListener, TcpStream, resolve};
use miniloop::process::Command;
use miniloop::signal::{Signal, Signals};
use miniloop::thread::Worker;
use miniloop::{LoopHandle, spawn_blocking, yield_now};

use crate::harness::{Facility, check, facility};

/// This file.
fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/every_poll/threads.rs")
}

fn on_threads() -> Vec<Facility> {
    vec![
        facility("Worker: try_new, call, close", async |p| {
            let ended = Arc::new(AtomicU32::new(0));
            let noted = ended.clone();
            p.take_from(async move {
                let worker = Worker::try_new("worker", || Ok::<_, std::io::Error>(0)).await.unwrap();
                for call in 1..=3 {
                    let noted = noted.clone();
                    let sum = worker
                        .call(move |sum| {
                            *sum += 1;
                            noted.fetch_add(1, Ordering::Relaxed);
                            *sum
                        })
                        .await
                        .unwrap();
                    assert_eq!(sum, call);
                }
                worker.close().await.unwrap();
                assert_eq!(noted.load(Ordering::Relaxed), 3);
            })
            .await;
            // Dropping the worker has joined its thread.
            assert_eq!(Arc::strong_count(&ended), 1, "no job is left");
        }),
        facility("spawn_blocking", async |p| {
            let jobs = Arc::new(AtomicU32::new(0));
            let done = RefCell::new(0);
            p.take_from(async {
                for _ in 0..3 {
                    let jobs = jobs.clone();
                    spawn_blocking(move || jobs.fetch_add(1, Ordering::Relaxed)).await.unwrap();
                    *done.borrow_mut() += 1;
                }
            })
            .await;
            spawn_blocking(|| ()).await.unwrap();
            assert!(jobs.load(Ordering::Relaxed) >= done.take());
        }),
        facility("resolve; TcpStream: connect to a name", async |p| {
            let listener = TcpListener::bind(([127, 0, 0, 1], 0).into()).unwrap();
            let port = listener.local_addr().unwrap().port();
            p.take_from(async {
                assert!(!resolve("localhost", port).await.unwrap().is_empty());
                TcpStream::connect(("localhost", port)).await.unwrap();
            })
            .await;
        }),
        facility("fs: read, metadata, read_dir", async |p| {
            let expected = include_bytes!("threads.rs");
            p.take_from(async {
                assert_eq!(fs::read(here()).await.unwrap(), expected);
                assert_eq!(fs::metadata(here()).await.unwrap().len(), expected.len() as u64);
                let mut entries = fs::read_dir(here().parent().unwrap()).await.unwrap();
                let mut names = 0;
                while entries.next_entry().await.unwrap().is_some() {
                    names += 1;
                }
                assert!(names > 5);
            })
            .await;
        }),
        // A file is a stream: the waker stays with it, and what was read ahead is there for the next read.
        facility("File: open, read, write, flush", async |p| {
            let path = std::env::temp_dir().join(format!("miniloop-every-poll-file-{}", std::process::id()));
            let mut file = File::create(&path).await.unwrap();
            let mut read = File::open(here()).await.unwrap();
            let (got, mut buffer) = (RefCell::new(Vec::new()), vec![0; 3_000]);
            let written = RefCell::new(Vec::new());
            p.take_from(async {
                yield_now().await;
                for piece in [b"one", b"two"] {
                    let len = file.write(piece).await.unwrap();
                    written.borrow_mut().extend_from_slice(&piece[..len]);
                    let len = read.read(&mut buffer).await.unwrap();
                    got.borrow_mut().extend_from_slice(&buffer[..len]);
                }
                file.flush().await.unwrap();
            })
            .await;
            while let Ok(len @ 1..) = read.read(&mut buffer).await {
                got.borrow_mut().extend_from_slice(&buffer[..len]);
            }
            file.flush().await.unwrap();
            drop((file, read));
            assert_eq!(got.take(), include_bytes!("threads.rs"));
            assert_eq!(fs::read(&path).await.unwrap(), written.take());
            fs::remove_file(&path).await.unwrap();
        }),
    ]
}

fn outside() -> Vec<Facility> {
    vec![
        facility("Signals", async |p| {
            let mut signals = Signals::new([Signal::USER1, Signal::USER2]).unwrap();
            let (_held, got) = (p.hold(), RefCell::new(Vec::new()));
            raise_soon(rustix::process::Signal::USR1);
            p.take_from(async {
                let signal = signals.recv().await.unwrap();
                got.borrow_mut().push(signal);
                raise_soon(rustix::process::Signal::USR2);
                let signal = signals.recv().await.unwrap();
                got.borrow_mut().push(signal);
            })
            .await;
            if got.borrow().is_empty() {
                raise_soon(rustix::process::Signal::USR2);
            }
            while got.borrow().len() < 2 {
                let signal = signals.recv().await.unwrap();
                got.borrow_mut().push(signal);
            }
            got.borrow_mut().sort_unstable();
            assert_eq!(got.take(), [Signal::USER1, Signal::USER2]);
        }),
        facility("Child: wait", async |p| {
            let mut child = Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
            let stdin = child.stdin.take();
            let held = p.hold();
            LoopHandle::current().call_soon(move || drop(stdin));
            p.take(async {
                yield_now().await;
                assert!(child.wait().await.unwrap().success());
            })
            .await;
            assert!(child.wait().await.unwrap().success(), "the exit is there for whoever asks next");
            drop(held);
        }),
        facility("Command: output_with_input", async |p| {
            let _held = p.hold();
            p.take_from(async {
                let output = Command::new("cat").output_with_input("hello").await.unwrap();
                assert_eq!(output.stdout, b"hello");
            })
            .await;
            // Nobody waits for the command any more but the loop, so that no zombie stays.
            while stats().tasks_alive > 1 {
                yield_now().await;
            }
        }),
    ]
}

fn raise_soon(signal: rustix::process::Signal) {
    LoopHandle::current().call_soon(move || rustix::process::kill_process(rustix::process::getpid(), signal).unwrap());
}

#[test]
fn jobs_of_threads_end_at_every_poll_c175() {
    check(&on_threads());
}

#[test]
fn signals_and_processes_are_not_lost_at_any_poll_c171_c188() {
    check(&outside());
}
