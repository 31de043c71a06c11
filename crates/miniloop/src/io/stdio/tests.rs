//! Every kind of descriptor that a standard stream can be, and that the open file of the others stays as it was.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use rustix::fs::fcntl_getfl;
use rustix::pipe::fcntl_getpipe_size;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::*;
use crate::{EventLoop, spawn, yield_now};

/// A standard stream of this descriptor, used in this way.
#[track_caller]
fn check_way(fd: impl AsFd, direction: Direction, expected: Way) -> Stdin {
    let way = stream(fd.as_fd(), direction).unwrap();
    assert_eq!(way.bytes.way, expected);
    assert!(!fcntl_getfl(&fd).unwrap().contains(OFlags::NONBLOCK), "what others share has been changed");
    // Tests read and write it through the same type.
    Stdin { inner: Inner::Os(way) }
}

fn run(body: impl AsyncFnOnce()) {
    EventLoop::new().unwrap().run_until_complete(body()).unwrap();
}

/// Polls once, outside any task.
fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// A terminal: the side of its window, and that of its programs.
fn terminal() -> (File, File) {
    let window = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&window).unwrap();
    unlockpt(&window).unwrap();
    let name = ptsname(&window, Vec::new()).unwrap();
    let programs = open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    (window.into(), programs.into())
}

/// Reads what comes later, and waits for it without blocking.
async fn check_reads(input: &Stdin, write: impl FnOnce()) {
    let mut buffer = [0; 16];
    assert!(poll_once(input.read(&mut buffer)).is_pending());
    let reading = async {
        let len = input.read(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..len], b"hello\n");
    };
    let mut reading = pin!(reading);
    assert!(poll_once(reading.as_mut()).is_pending());
    write();
    reading.await;
}

#[test]
fn a_pipe_is_opened_again_and_the_shared_open_file_stays_as_it_was() {
    run(async || {
        let (reader, mut writer) = io::pipe().unwrap();
        let input = check_way(&reader, Direction::Read, Way::Own);
        check_reads(&input, || writer.write_all(b"hello\n").unwrap()).await;
        drop(writer);
        assert_eq!(input.read(&mut [0; 16]).await.unwrap(), 0);
        assert_eq!(input.read(&mut [0; 16]).await.unwrap(), 0);
    });
}

#[test]
fn a_terminal_is_opened_again_and_the_shared_open_file_stays_as_it_was() {
    run(async || {
        let (mut window, programs) = terminal();
        let input = check_way(&programs, Direction::Read, Way::Own);
        check_reads(&input, || window.write_all(b"hello\n").unwrap()).await;
        let output = stream(programs.as_fd(), Direction::Write).unwrap();
        assert_eq!((output.bytes.way, output.write(b"answer").unwrap()), (Way::Own, 6));
        let mut text = [0; 32];
        let len = window.read(&mut text).unwrap();
        assert!(text[..len].ends_with(b"answer") || window.read(&mut text).is_ok());
    });
}

#[test]
fn a_socket_is_used_with_calls_that_do_not_block() {
    run(async || {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let input = check_way(&ours, Direction::Read, Way::Socket);
        check_reads(&input, || theirs.write_all(b"hello\n").unwrap()).await;
        assert!(poll_once(input.read_vectored(&mut [IoSliceMut::new(&mut [0; 4])])).is_pending());
        let output = stream(ours.as_fd(), Direction::Write).unwrap();
        let block = vec![0; 1 << 16];
        while output.registration.try_io(Direction::Write, || output.write(&block)).is_ok() {}
        theirs.read_exact(&mut vec![0; 1 << 16]).unwrap();
    });
}

#[test]
fn what_cannot_be_opened_again_is_asked_before_each_call() {
    run(async || {
        let (reader, mut writer) = io::pipe().unwrap();
        let shared = Standard { fd: reader.try_clone().unwrap().into(), way: Way::Shared };
        let input = Stdin { inner: Inner::Os(ByteStream::new(shared, Kind::Other, true).unwrap()) };
        check_reads(&input, || writer.write_all(b"hello\n").unwrap()).await;

        // The pipe is full in the end, and no write blocked.
        let output = Standard { fd: writer.try_clone().unwrap().into(), way: Way::Shared };
        let output = ByteStream::new(output, Kind::Other, true).unwrap();
        let block = vec![0; 10_000];
        let (mut sent, size) = (0, fcntl_getpipe_size(&writer).unwrap());
        let slices = [IoSlice::new(&[]), IoSlice::new(&block)];
        while let Ok(len) = output.registration.try_io(Direction::Write, || output.write_vectored(&slices)) {
            assert_eq!(len, PIPE_BUF);
            sent += len;
        }
        assert_eq!(sent, size);
        let mut room = output.registration.io(Direction::Write, || output.write(&block));
        assert!(poll_once(&mut room).is_pending());
        drop(writer);
        let mut left = sent;
        while left > 0 {
            left -= input.read(&mut [0; 8_192]).await.unwrap();
        }
        assert_eq!(room.await.unwrap(), PIPE_BUF);
    });
}

#[test]
fn a_pipe_that_nobody_reads_is_an_error_at_the_first_write() {
    run(async || {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let output = stream(writer.as_fd(), Direction::Write).unwrap();
        let write = output.registration.io(Direction::Write, || output.write(b"x"));
        assert_eq!(write.await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    });
}

#[test]
fn the_window_of_a_terminal_is_not_opened_again() {
    run(async || {
        let (window, mut programs) = terminal();
        let input = check_way(&window, Direction::Read, Way::SharedTerminal);
        let mut byte = [0];
        assert!(poll_once(input.read(&mut byte)).is_pending());
        programs.write_all(b"x").unwrap();
        assert_eq!(input.read(&mut byte).await.unwrap(), 1);
        assert_eq!(byte, *b"x");
    });
}

#[test]
fn a_terminal_that_cannot_be_opened_again_and_is_full_makes_its_writer_wait_and_not_the_loop() {
    run(async || {
        for text in ["x", "\n", "x\n"] {
            let (mut window, programs) = terminal();
            let shared = Standard { fd: programs.into(), way: Way::SharedTerminal };
            let output = ByteStream::new(shared, Kind::Other, true).unwrap();
            let block = text.repeat(5_000);
            while output.registration.try_io(Direction::Write, || output.write(block.as_bytes())).is_ok() {}
            let mut room = output.registration.io(Direction::Write, || output.write(block.as_bytes()));
            assert!(poll_once(&mut room).is_pending());
            while look(window.as_fd(), Direction::Read).is_ok() {
                assert!(window.read(&mut [0; 4_096]).unwrap() > 0);
            }
            assert_eq!(room.await.unwrap(), terminal_len(block.as_bytes()));
        }
    });
}

#[test]
fn a_file_is_read_where_the_others_of_its_open_file_stand() {
    run(async || {
        let path = std::env::temp_dir().join(format!("miniloop-stdio-{}", std::process::id()));
        std::fs::write(&path, b"first second").unwrap();
        let mut file = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let input = check_way(&file, Direction::Read, Way::File);
        let mut buffer = [0; 6];
        let Poll::Ready(Ok(6)) = poll_once(input.read(&mut buffer)) else { panic!("a file makes nobody wait") };
        assert_eq!(file.stream_position().unwrap(), 6);
        assert_eq!(input.read(&mut buffer).await.unwrap(), 6);
        assert_eq!(input.read(&mut buffer).await.unwrap(), 0);
        assert!(input.readable().await.is_ok());

        check_way(File::open("/dev/null").unwrap(), Direction::Read, Way::File);
    });
}

#[test]
fn a_file_without_an_end_does_not_hold_up_the_loop_o10() {
    run(async || {
        let endless = check_way(File::open("/dev/zero").unwrap(), Direction::Read, Way::File);
        let reading = spawn(async move {
            for _ in 0..65 {
                assert_eq!(endless.read(&mut [0; 8]).await.unwrap(), 8);
            }
        });
        yield_now().await;
        assert!(!reading.is_finished(), "the 65th read is for the next round");
        reading.await.unwrap();
    });
}

#[test]
fn what_does_not_wait_ends_with_its_loop_too() {
    let mut event_loop = EventLoop::new().unwrap();
    let input =
        event_loop.run_until_complete(async { stream(File::open("/dev/zero").unwrap().as_fd(), Direction::Read).unwrap() }).unwrap();
    drop(event_loop);
    let mut byte = [0];
    let Poll::Ready(Err(error)) = poll_once(input.registration.io(Direction::Read, || input.read(&mut byte))) else { panic!("it reads") };
    assert!(error.to_string().contains("closed"), "{error}");
}
