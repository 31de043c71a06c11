//! Descriptors that the library has no type for, standard streams, and signals that interrupt system calls.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::task::{Context, Poll, Waker};

use futures_util::{AsyncReadExt, AsyncWriteExt, FutureExt, future};
use miniloop::signal::{Signal, Signals};
use miniloop::{Readiness, yield_now};
use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Pid, Signal as Named, kill_process};

use super::{after_a_wait, builder, event_loop, on_a_loop, test_name, watched};

/// Polls once, outside any task.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    future.poll_unpin(&mut Context::from_waker(Waker::noop()))
}

fn nonblocking_pair() -> (UnixStream, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    (ours, theirs)
}

#[test]
fn readable_is_right_whoever_reads_and_however_much() {
    on_a_loop(async |_| {
        let (ours, mut theirs) = UnixStream::pair().unwrap(); // it blocks: nobody may read in vain
        let ours = Readiness::new(ours).unwrap();
        assert!(poll_once(&mut ours.readable()).is_pending());
        let mut waiting = ours.readable();
        assert!(poll_once(&mut waiting).is_pending());
        theirs.write_all(b"four").unwrap();
        waiting.await.unwrap();
        for _ in 0..4 {
            ours.readable().await.unwrap();
            ours.get_ref().read_exact(&mut [0]).unwrap();
        }
        assert!(poll_once(&mut ours.readable()).is_pending(), "all of it has been read");
        theirs.write_all(b"x").unwrap();
        ours.readable().await.unwrap();
        ours.get_ref().read_exact(&mut [0]).unwrap();
        drop(theirs);
        ours.readable().await.unwrap();
        assert_eq!(ours.get_ref().read(&mut [0]).unwrap(), 0);
    });
}

#[test]
fn writable_is_right_whoever_writes() {
    on_a_loop(async |_| {
        let (ours, mut theirs) = nonblocking_pair();
        let ours = Readiness::new(ours).unwrap();
        ours.writable().await.unwrap();
        let mut sent = 0;
        while let Ok(len) = ours.get_ref().write(&[0; 10_000]) {
            sent += len;
        }
        let mut waiting = ours.writable();
        assert!(poll_once(&mut waiting).is_pending());
        theirs.read_exact(&mut vec![0; sent]).unwrap();
        waiting.await.unwrap();
        drop(theirs);
        ours.writable().await.unwrap();
        assert_eq!(ours.get_ref().write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn a_call_is_made_again_after_each_event_until_it_finds_something() {
    on_a_loop(async |_| {
        let (ours, mut theirs) = nonblocking_pair();
        let ours = Readiness::new(ours).unwrap();
        let (mut calls, mut bytes) = (0, Vec::<u8>::new());
        let mut reading = ours.read_with(|mut socket| {
            calls += 1;
            // It wants two bytes, takes what there is, and says that it would block until it has them.
            let mut buffer = [0; 8];
            let len = socket.read(&mut buffer)?;
            bytes.extend(&buffer[..len]);
            if bytes.len() == 2 { Ok(bytes.clone()) } else { Err(ErrorKind::WouldBlock.into()) }
        });
        assert!(poll_once(&mut reading).is_pending());
        theirs.write_all(b"a").unwrap();
        after_a_wait().await;
        assert!(poll_once(&mut reading).is_pending());
        theirs.write_all(b"b").unwrap();
        assert_eq!(reading.await.unwrap(), b"ab");
        assert_eq!(calls, 3);

        assert_eq!(ours.try_read_with(|mut socket| socket.read(&mut [0])).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(ours.try_write_with(|mut socket| socket.write(b"x")).unwrap(), 1);
        assert_eq!(ours.write_with(|mut socket| socket.write(b"yz")).await.unwrap(), 2);
        theirs.read_exact(&mut [0; 3]).unwrap();
    });
}

#[test]
fn a_call_that_is_interrupted_is_made_again_at_once() {
    on_a_loop(async |_| {
        let (ours, _theirs) = nonblocking_pair();
        let ours = Readiness::new(ours).unwrap();
        let mut calls = 0;
        let mut interrupted_twice = || {
            calls += 1;
            if calls % 3 == 0 { Ok(calls) } else { Err(ErrorKind::Interrupted.into()) }
        };
        assert_eq!(ours.read_with(|_| interrupted_twice()).await.unwrap(), 3);
        assert_eq!(ours.try_write_with(|_| interrupted_twice()).unwrap(), 6);
    });
}

#[test]
fn taking_it_apart_ends_the_watching_and_dropping_it_too() {
    let mut event_loop = event_loop();
    let watched = watched(&event_loop);
    let handle = event_loop.handle();
    event_loop
        .run_until_complete(async {
            let before = watched();
            let (ours, _theirs) = UnixStream::pair().unwrap();
            let mut first = Readiness::new(ours).unwrap();
            assert_eq!(watched(), before + 1);
            assert_eq!(Readiness::new(first.as_fd()).unwrap_err().kind(), ErrorKind::AlreadyExists);
            assert_eq!(handle.add_reader(&first, || ()).unwrap_err().kind(), ErrorKind::AlreadyExists);
            first.get_mut().set_nonblocking(true).unwrap();
            let ours = first.into_inner();
            assert_eq!(watched(), before);
            drop(Readiness::new(ours.as_fd()).unwrap());
            handle.add_reader(&ours, || ()).unwrap();
            assert_eq!(Readiness::new(ours.as_fd()).unwrap_err().kind(), ErrorKind::AlreadyExists);
            assert!(handle.remove_reader(&ours));
            assert_eq!(watched(), before);
        })
        .unwrap();
}

#[test]
fn what_cannot_be_watched_is_refused() {
    on_a_loop(async |_| {
        let refused = Readiness::new(File::open("/proc/self/exe").unwrap()).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
    });
}

#[test]
fn a_kernel_counter_is_waited_for() {
    on_a_loop(async |_| {
        let counter = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap();
        let counter = Readiness::new(counter).unwrap();
        let mut buffer = [0; 8];
        let mut read = counter.read_with(|fd| Ok(rustix::io::read(fd, &mut buffer)?));
        assert!(poll_once(&mut read).is_pending());
        rustix::io::write(&counter, &7u64.to_ne_bytes()).unwrap();
        assert_eq!(read.await.unwrap(), 8);
        assert_eq!(u64::from_ne_bytes(buffer), 7);
    });
}

#[test]
fn a_named_pipe_has_the_traits_of_a_stream() {
    on_a_loop(async |_| {
        let path = std::env::temp_dir().join(format!("miniloop-fifo-{}-{}", std::process::id(), module_path!()));
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        let open = |is_reader: bool| {
            OpenOptions::new().read(is_reader).write(!is_reader).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32).open(&path)
        };
        let mut reader = Readiness::new(open(true).unwrap()).unwrap();
        let mut writer = Readiness::new(open(false).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        let message = vec![9; 1_000_000];
        let mut received = Vec::new();
        let sending = async {
            writer.write_all(&message).await.unwrap();
            writer.close().await.unwrap();
            drop(writer);
        };
        future::join(sending, reader.read_to_end(&mut received)).await.1.unwrap();
        assert!(received == message);
    });
}

#[test]
fn a_wait_that_is_given_up_takes_nothing_with_it_c12() {
    on_a_loop(async |_| {
        let (ours, mut theirs) = nonblocking_pair();
        let ours = Readiness::new(ours).unwrap();
        let mut calls = 0;
        let mut given_up = ours.read_with(|mut socket| {
            calls += 1;
            socket.read(&mut [0; 8])
        });
        assert!(poll_once(&mut given_up).is_pending());
        theirs.write_all(b"kept").unwrap();
        ours.readable().await.unwrap(); // both are woken by the same event
        drop(given_up);
        assert_eq!(calls, 1);
        assert_eq!(ours.read_with(|mut socket| socket.read(&mut [0; 8])).await.unwrap(), 4);
    });
}

#[test]
fn a_callback_that_is_always_ready_does_not_hold_up_the_loop_o10() {
    on_a_loop(async |_| {
        let (ours, _theirs) = nonblocking_pair();
        let ours = Readiness::new(ours).unwrap();
        let endless = async {
            loop {
                ours.writable().await.unwrap();
            }
        };
        // It yields: else this would never end.
        futures_util::pin_mut!(endless);
        let turns = async {
            for _ in 0..3 {
                yield_now().await;
            }
        };
        futures_util::pin_mut!(turns);
        future::select(endless, turns).await;
    });
}

// Standard streams.

#[test]
fn a_program_in_a_pipeline_reads_to_the_end_and_writes_all() {
    const CHILD: &str = "MINILOOP_STDIO_CHILD";
    let test = test_name(module_path!(), "a_program_in_a_pipeline_reads_to_the_end_and_writes_all");
    if std::env::var_os(CHILD).is_some() {
        // Copies its input to its output, behind what the test program has written there.
        on_a_loop(async |_| {
            let (mut input, mut output, mut errors) =
                (miniloop::io::stdin().unwrap(), miniloop::io::stdout().unwrap(), miniloop::io::stderr().unwrap());
            output.write_all(b"BEGIN").await.unwrap();
            let len = miniloop::io::copy(&mut input, &mut output).await.unwrap();
            errors.write_all(format!("{len} bytes").as_bytes()).await.unwrap();
            output.close().await.unwrap();
        });
        std::process::exit(0);
    }
    let (theirs, ours) = UnixStream::pair().unwrap();
    let file = std::env::temp_dir().join(format!("miniloop-stdio-{}-{}", std::process::id(), module_path!()));
    std::fs::write(&file, vec![b'x'; 300_000]).unwrap();
    drop((theirs.shutdown(std::net::Shutdown::Write), theirs));
    for (input, expected_len) in [
        (Stdio::piped(), 300_000),
        (Stdio::from(File::open(&file).unwrap()), 300_000),
        (Stdio::from(OwnedFd::from(ours)), 0),
        (Stdio::null(), 0),
    ] {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args([&test, "--exact", "--nocapture"]).env(CHILD, "1").stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let input = child.stdin.take();
        let writing = std::thread::Builder::new().spawn(move || input.map(|mut input| input.write_all(&[b'x'; 300_000])));
        let output = child.wait_with_output().unwrap();
        drop(writing.unwrap().join().unwrap());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let begin = output.stdout.windows(5).position(|text| text == b"BEGIN").unwrap() + 5;
        assert_eq!(output.stdout.len() - begin, expected_len);
        assert!(String::from_utf8(output.stderr).unwrap().ends_with(&format!("{expected_len} bytes")));
    }
    std::fs::remove_file(&file).unwrap();
}

// Signals.

/// A signal whose handler runs on the loop's thread interrupts its wait; that of another loop is told of it.
#[test]
fn signals_during_a_wait_are_harmless() {
    let mut event_loop = builder().build().unwrap();
    event_loop
        .run_until_complete(async {
            let (ours, mut theirs) = nonblocking_pair();
            let ours = Readiness::new(ours).unwrap();
            let link = std::fs::read_link("/proc/thread-self").unwrap();
            let thread: i32 = link.file_name().unwrap().to_str().unwrap().parse().unwrap();
            let disturber = std::thread::Builder::new().spawn(move || {
                miniloop::run(async move {
                    let mut signals = Signals::new([Signal::WINDOW_CHANGE]).unwrap();
                    for _ in 0..100 {
                        // The kernel prefers the thread that is named, if it takes the signal at all.
                        kill_process(Pid::from_raw(thread).unwrap(), Named::WINCH).unwrap();
                        signals.recv().await.unwrap();
                    }
                    theirs.write_all(b"done").unwrap();
                })
                .unwrap();
            });
            let len = ours.read_with(|mut socket| socket.read(&mut [0; 8])).await.unwrap();
            assert_eq!(len, 4);
            disturber.unwrap().join().unwrap();
        })
        .unwrap();
}
