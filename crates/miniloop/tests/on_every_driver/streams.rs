//! What holds for every stream of bytes: TCP over IPv4 and IPv6, Unix sockets, pipes. Nothing sleeps: each step waits for what it needs.

use std::future::poll_fn;
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use futures_util::{AsyncReadExt, AsyncWriteExt, FutureExt, future};
use miniloop::io::{PipeReader, PipeWriter, pipe};
use miniloop::net::{TcpListener, TcpStream, UnixStream};
use miniloop::{spawn, yield_now};
use rustix::io::fcntl_getfd;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::pipe::{PipeFlags, pipe_with};

use super::{after_a_wait, event_loop, in_a_process_of_its_own, on_a_loop, watched};

async fn tcp_pair(address: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(address.parse().unwrap()).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (server, peer) = listener.accept().await.unwrap();
    assert_eq!(peer, client.local_addr().unwrap());
    (client, server)
}

/// Polls once, outside any task.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    future.poll_unpin(&mut Context::from_waker(Waker::noop()))
}

/// Waits until the loop has been told of an event that it was not told of before.
async fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        yield_now().await;
    }
}

/// A message longer than any buffer of the kernel's.
fn long_message() -> Vec<u8> {
    (0..6_000_000u32).map(|n| (n % 251) as u8).collect()
}

macro_rules! on_every_stream {
    ($($kind:ident: $type:ty = $pair:expr;)+) => {$(
        mod $kind {
            use super::*;

            /// Runs `body` on a loop of its own with the two ends of a connection.
            fn connected(body: impl AsyncFnOnce($type, $type)) {
                on_a_loop(async |_| {
                    let (ours, theirs) = $pair;
                    body(ours, theirs).await
                });
            }

            #[test]
            fn long_messages_pass_each_other_whole_through_partial_writes_c154() {
                connected(async |ours, theirs| {
                    let message = long_message();
                    let (mut here, mut there) = (vec![0; message.len()], vec![0; message.len()]);
                    let (mut ours_out, mut ours_in, mut theirs_out, mut theirs_in) = (&ours, &ours, &theirs, &theirs);
                    let results = future::join4(
                        ours_out.write_all(&message),
                        ours_in.read_exact(&mut here),
                        theirs_out.write_all(&message),
                        theirs_in.read_exact(&mut there),
                    );
                    let (a, b, c, d) = results.await;
                    a.and(b).and(c).and(d).unwrap();
                    assert!(here == message && there == message);
                });
            }

            #[test]
            fn one_direction_can_end_while_the_other_goes_on_c158() {
                connected(async |ours, theirs| {
                    (&ours).close().await.unwrap();
                    let mut buffer = [0; 8];
                    for _ in 0..3 {
                        assert_eq!(theirs.read(&mut buffer).await.unwrap(), 0, "the end can be read again and again");
                    }
                    assert_eq!(theirs.write(b"still").await.unwrap(), 5);
                    assert_eq!(ours.read(&mut buffer).await.unwrap(), 5);
                    assert_eq!(ours.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
                });
            }

            #[test]
            fn the_end_is_read_behind_the_last_bytes() {
                connected(async |ours, theirs| {
                    let mut buffer = [0; 8];
                    // A reader that waits is told of bytes and end at once: its short read must not make it forget the end.
                    let mut read = theirs.read(&mut buffer);
                    assert!(poll_once(&mut read).is_pending());
                    ours.write(b"last").await.unwrap();
                    drop(ours);
                    assert_eq!(read.await.unwrap(), 4);
                    assert_eq!(theirs.read(&mut buffer).await.unwrap(), 0);
                });
            }

            #[test]
            fn a_peer_that_goes_with_bytes_unread_is_an_error() {
                connected(async |ours, theirs| {
                    ours.write(b"unread").await.unwrap();
                    theirs.readable().await.unwrap();
                    drop(theirs);
                    assert_eq!(ours.read(&mut [0]).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
                    assert_eq!(ours.write(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
                    assert!((&ours).close().await.is_ok(), "closing what has gone is no error");
                });
            }

            #[test]
            fn many_places_are_written_and_read_in_one_call() {
                connected(async |ours, theirs| {
                    let (mut first, mut second) = ([0; 2], [0; 8]);
                    let slices = [IoSlice::new(b"ve"), IoSlice::new(b""), IoSlice::new(b"ctored")];
                    assert_eq!(ours.write_vectored(&slices).await.unwrap(), 8);
                    let mut places = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
                    assert_eq!(theirs.read_vectored(&mut places).await.unwrap(), 8);
                    assert_eq!((&first, &second[..6]), (b"ve", b"ctored".as_slice()));

                    assert_eq!(theirs.try_write_vectored(&slices).unwrap(), 8);
                    ours.readable().await.unwrap();
                    let mut places = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
                    assert_eq!(ours.try_read_vectored(&mut places).unwrap(), 8);
                    assert_eq!(ours.try_read_vectored(&mut places).unwrap_err().kind(), ErrorKind::WouldBlock);

                    // More than the kernel takes at a time, of which it takes a part.
                    let (mut bytes, many) = ([[0; 1]; 2_000], [IoSlice::new(b"x"); 2_000]);
                    assert_eq!(ours.try_write_vectored(&many).unwrap(), 1_024);
                    let mut many: Vec<_> = bytes.iter_mut().map(|byte| IoSliceMut::new(byte)).collect();
                    assert_eq!(theirs.read_vectored(&mut many).await.unwrap(), 1_024);
                });
            }

            #[test]
            fn a_full_stream_becomes_writable_when_the_peer_reads() {
                connected(async |ours, theirs| {
                    let sent = fill(&ours);
                    let mut writable = ours.writable();
                    assert!(poll_once(&mut writable).is_pending());
                    let (room, ()) = future::join(writable, drain(&theirs, sent)).await;
                    room.unwrap();
                    assert!(ours.try_write(b"x").is_ok());
                });
            }

            #[test]
            fn a_write_that_is_given_up_has_written_nothing_c12() {
                connected(async |ours, theirs| {
                    let sent = fill(&ours);
                    let mut given_up = ours.write(&[1; 1_000]);
                    assert!(poll_once(&mut given_up).is_pending());
                    drain(&theirs, sent).await;
                    drop(given_up);
                    drop(ours);
                    assert_eq!(theirs.read(&mut [0; 16]).await.unwrap(), 0);
                });
            }

            #[test]
            fn a_reader_that_was_woken_and_is_dropped_leaves_the_bytes_to_the_next_c12_c148() {
                connected(async |ours, theirs| {
                    let woken = Rc::new(crate::support::Trace::default());
                    let note = woken.clone();
                    let theirs = Rc::new(theirs);
                    let reader = theirs.clone();
                    let waiting = spawn(async move {
                        let mut buffer = [0; 4];
                        let mut read = reader.read(&mut buffer);
                        // Its first poll waits, its second one is the wake-up, and then it is dropped.
                        let mut polls = 0;
                        poll_fn(|cx| {
                            polls += 1;
                            if polls == 2 { Poll::Ready(()) } else { read.poll_unpin(cx).map(drop) }
                        })
                        .await;
                        note.note("woken");
                    });
                    yield_now().await;
                    ours.write(b"data").await.unwrap();
                    waiting.await.unwrap();
                    assert_eq!(woken.take(), ["woken"]);
                    let mut buffer = [0; 4];
                    assert_eq!(theirs.read(&mut buffer).await.unwrap(), 4);
                    assert_eq!(&buffer, b"data");
                });
            }

            #[test]
            fn a_task_is_interrupted_after_64_reads_o10() {
                connected(async |ours, theirs| {
                    ours.write(&[0; 200]).await.unwrap();
                    theirs.readable().await.unwrap();
                    let count = Rc::new(std::cell::Cell::new(0));
                    let counting = count.clone();
                    let reading = spawn(async move {
                        for _ in 0..200 {
                            theirs.read(&mut [0]).await.unwrap();
                            counting.set(counting.get() + 1);
                        }
                    });
                    yield_now().await;
                    assert_eq!(count.get(), 64);
                    reading.await.unwrap();
                });
            }

            #[test]
            fn halves_go_two_ways_and_come_together_again() {
                connected(async |mut ours, theirs| {
                    let mut buffer = [0; 4];
                    {
                        let (mut reader, mut writer) = <$type>::split(&mut ours);
                        writer.write_all(b"lent").await.unwrap();
                        assert_eq!(theirs.read(&mut buffer).await.unwrap(), 4);
                        theirs.write(b"back").await.unwrap();
                        reader.read_exact(&mut buffer).await.unwrap();
                    }
                    let (reader, writer) = ours.into_split();
                    let (stranger, other) = theirs.into_split();
                    let error = reader.reunite(other).unwrap_err();
                    assert!(error.to_string().contains("different"), "{error}");
                    let (ours, theirs) = (error.0.reunite(writer).unwrap(), stranger.reunite(error.1).unwrap());
                    ours.write(b"more").await.unwrap();
                    assert_eq!(theirs.read(&mut buffer).await.unwrap(), 4, "no direction has ended");

                    let (mut reader, writer) = ours.into_split();
                    drop(writer);
                    assert_eq!(theirs.read(&mut buffer).await.unwrap(), 0, "the writing half ends its direction");
                    theirs.write(b"last").await.unwrap();
                    reader.read_exact(&mut buffer).await.unwrap();
                });
            }

            #[test]
            fn bytes_are_looked_at_before_they_are_read() {
                connected(async |ours, theirs| {
                    let mut buffer = [0; 8];
                    assert_eq!(ours.try_peek(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
                    let mut peek = ours.peek(&mut buffer);
                    assert!(poll_once(&mut peek).is_pending());
                    theirs.write(b"what").await.unwrap();
                    assert_eq!(peek.await.unwrap(), 4);
                    assert_eq!(ours.try_peek(&mut buffer[4..]).unwrap(), 4);
                    assert_eq!(&buffer, b"whatwhat");
                    assert_eq!(ours.try_read(&mut buffer).unwrap(), 4);
                    assert_eq!(ours.try_peek(&mut buffer).unwrap_err().kind(), ErrorKind::WouldBlock);
                    theirs.shutdown(std::net::Shutdown::Both).unwrap();
                    assert_eq!(ours.peek(&mut buffer).await.unwrap(), 0);
                    assert_eq!(ours.try_peek(&mut buffer).unwrap(), 0);
                });
            }

            #[test]
            fn a_stream_can_go_to_the_standard_library_and_back() {
                let mut event_loop = event_loop();
                let watched = watched(&event_loop);
                event_loop
                    .run_until_complete(async {
                        let (ours, theirs) = $pair;
                        let before = watched();
                        let mut std = ours.into_std();
                        assert_eq!(watched(), before - 1);
                        std.write_all(b"std").unwrap();
                        let ours = <$type>::try_from(std).unwrap();
                        assert!(format!("{ours:?}").contains(&ours.as_raw_fd().to_string()), "{ours:?}");
                        assert_eq!(theirs.read(&mut [0; 8]).await.unwrap(), 3);
                        ours.write(b"ours").await.unwrap();
                        assert_eq!(theirs.read(&mut [0; 8]).await.unwrap(), 4);
                        assert!(fcntl_getfd(&ours).unwrap().contains(rustix::io::FdFlags::CLOEXEC));
                    })
                    .unwrap();
            }

            #[test]
            fn a_new_stream_of_an_old_number_hears_nothing_of_the_old_one_b29() {
                in_a_process_of_its_own(module_path!(), "a_new_stream_of_an_old_number_hears_nothing_of_the_old_one_b29", || {
                    connected(async |ours, theirs| {
                        // What the driver has to tell of the old one stands in its queue when that goes; a duplicate keeps the file alive.
                        let mut buffer = [0; 4];
                        let mut read = ours.read(&mut buffer);
                        assert!(poll_once(&mut read).is_pending());
                        drop(read);
                        theirs.write(b"old").await.unwrap();
                        let (number, _duplicate) = (ours.as_raw_fd(), ours.as_fd().try_clone_to_owned().unwrap());
                        drop(ours);
                        let (new, new_peer) = UnixStream::pair().unwrap();
                        assert_eq!(new.as_raw_fd(), number);
                        let mut read = new.read(&mut buffer);
                        assert!(poll_once(&mut read).is_pending());
                        after_a_wait().await;
                        assert!(poll_once(&mut read).is_pending());
                        new_peer.write(b"new!").await.unwrap();
                        assert_eq!(read.await.unwrap(), 4);
                        assert_eq!(&buffer, b"new!");
                    });
                });
            }

            #[test]
            fn a_stream_that_outlives_its_loop_fails_instead_of_hanging() {
                let mut event_loop = event_loop();
                let (ours, theirs) = event_loop.run_until_complete(async { $pair }).unwrap();
                drop(event_loop);
                let mut buffer = [0];
                let Poll::Ready(Err(error)) = poll_once(&mut ours.read(&mut buffer)) else { panic!("it waits for a closed loop") };
                assert!(error.to_string().contains("closed"), "{error}");
                drop((ours, theirs));
            }

            fn fill(stream: &$type) -> usize {
                let block = vec![7; 1 << 16];
                let mut sent = 0;
                loop {
                    match stream.try_write(&block) {
                        Ok(len) => sent += len,
                        Err(error) if error.kind() == ErrorKind::WouldBlock => return sent,
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }
    )+};
}

on_every_stream! {
    tcp_over_ipv4: TcpStream = tcp_pair("127.0.0.1:0").await;
    tcp_over_ipv6: TcpStream = tcp_pair("[::1]:0").await;
    unix: UnixStream = UnixStream::pair().unwrap();
}

async fn drain<S>(stream: &S, len: usize)
where
    for<'a> &'a S: futures_util::io::AsyncRead + Unpin,
{
    let (mut stream, mut left, mut buffer) = (stream, len, vec![0; 1 << 16]);
    while left > 0 {
        left -= stream.read(&mut buffer[..left.min(1 << 16)]).await.unwrap();
    }
}

// What a short read does not say.

#[test]
fn a_read_that_stops_behind_descriptors_does_not_hide_what_follows() {
    on_a_loop(async |_| {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut buffer = [0; 16];
        let mut read = ours.read(&mut buffer);
        assert!(poll_once(&mut read).is_pending());
        let descriptors = [theirs.as_fd()];
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
        sendmsg(&theirs, &[IoSlice::new(b"with one")], &mut control, SendFlags::empty()).unwrap();
        theirs.write(b"plain").await.unwrap();
        assert_eq!(read.await.unwrap(), 8);
        assert_eq!(ours.read(&mut buffer).now_or_never().expect("it is there").unwrap(), 5);
    });
}

#[test]
fn a_read_that_stops_at_a_packet_of_a_pipe_does_not_hide_what_follows() {
    on_a_loop(async |_| {
        let (reader, writer) = pipe_with(PipeFlags::DIRECT | PipeFlags::CLOEXEC).unwrap();
        let (reader, writer) = (PipeReader::try_from(reader).unwrap(), PipeWriter::try_from(writer).unwrap());
        let mut buffer = [0; 16];
        let mut read = reader.read(&mut buffer);
        assert!(poll_once(&mut read).is_pending());
        for packet in [b"1".as_slice(), b"22", b"333"] {
            writer.write(packet).await.unwrap();
        }
        assert_eq!(read.await.unwrap(), 1);
        assert_eq!(reader.try_read(&mut buffer).unwrap(), 2);
        assert_eq!(reader.read(&mut buffer).now_or_never().expect("it is there").unwrap(), 3);
    });
}

// Pipes.

#[test]
fn a_long_message_goes_through_a_pipe_and_ends_with_it() {
    on_a_loop(async |_| {
        let (mut reader, mut writer) = pipe().unwrap();
        let message = long_message();
        let mut received = Vec::new();
        let sending = async {
            writer.write_all(&message).await.unwrap();
            writer.close().await.unwrap();
            assert_eq!(writer.write_all(b"x").await.unwrap_err().kind(), ErrorKind::BrokenPipe, "it is closed");
            assert_eq!(writer.try_write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
            writer.close().await.unwrap();
        };
        future::join(sending, reader.read_to_end(&mut received)).await.1.unwrap();
        assert!(received == message);
    });
}

#[test]
fn a_pipe_that_nobody_reads_any_more_wakes_its_writer_with_an_error() {
    on_a_loop(async |_| {
        let (reader, writer) = pipe().unwrap();
        while writer.try_write(&[0; 4_096]).is_ok() {}
        let mut write = writer.write(b"x");
        assert!(poll_once(&mut write).is_pending());
        drop(reader);
        assert_eq!(write.await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    });
}

#[test]
fn an_operation_of_a_pipe_that_is_given_up_takes_nothing_with_it_c12() {
    on_a_loop(async |_| {
        let (reader, writer) = pipe().unwrap();
        let mut buffer = [0; 8];
        let mut given_up = reader.read(&mut buffer);
        assert!(poll_once(&mut given_up).is_pending());
        writer.write(b"kept").await.unwrap();
        reader.readable().await.unwrap(); // both are woken by the same event
        drop(given_up);
        assert_eq!(reader.read(&mut buffer).await.unwrap(), 4);
        while writer.try_write(&[0; 4_096]).is_ok() {}
        let mut given_up = writer.write(b"never");
        assert!(poll_once(&mut given_up).is_pending());
        drop(given_up);
        let mut received = 0;
        drop(writer);
        loop {
            match reader.read(&mut [0; 4_096]).await.unwrap() {
                0 => break,
                len => received += len,
            }
        }
        assert_eq!(received % 4_096, 0);
    });
}

#[test]
fn a_child_is_talked_to_through_its_pipes() {
    on_a_loop(async |_| {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = PipeWriter::try_from(child.stdin.take().unwrap()).unwrap();
        let mut output = PipeReader::try_from(child.stdout.take().unwrap()).unwrap();
        let message = long_message();
        let mut echoed = Vec::new();
        let sending = async {
            input.write_all(&message).await.unwrap();
            drop(input);
        };
        future::join(sending, output.read_to_end(&mut echoed)).await.1.unwrap();
        assert!(echoed == message);
        child.wait().unwrap();
    });
}

#[test]
fn ends_of_pipes_come_from_the_standard_library_and_go_back() {
    let mut event_loop = event_loop();
    let watched = watched(&event_loop);
    event_loop
        .run_until_complete(async {
            let before = watched();
            let (reader, writer) = std::io::pipe().unwrap();
            let (reader, writer) = (PipeReader::try_from(reader).unwrap(), PipeWriter::try_from(writer).unwrap());
            writer.write(b"hello").await.unwrap();
            assert_eq!(reader.read(&mut [0; 2]).await.unwrap(), 2);
            let (mut reader, writer) = (std::io::PipeReader::from(OwnedFd::from(reader)), OwnedFd::from(writer));
            assert_eq!(watched(), before);
            drop(writer);
            let mut rest = String::new();
            reader.read_to_string(&mut rest).unwrap();
            assert_eq!(rest, "llo");
            let refused = PipeReader::try_from(OwnedFd::from(std::fs::File::open("/proc/self/exe").unwrap()));
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::PermissionDenied, "a regular file cannot be watched");
            until(|| watched() == before).await;
        })
        .unwrap();
}
