//! What a writer queues, when it sends, and for whom it waits.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_util::{AsyncWrite, AsyncWriteExt};
use miniloop::io::{BufWriter, Chunk};
use miniloop::{spawn, yield_now};
use proptest::prelude::*;

use crate::scripted::{Scripted, Step, impatiently, is_pending, now, steps};

#[derive(Clone, Debug)]
enum Write {
    Now(usize),
    All(usize),
    Trait(usize),
    Drain,
    Flush,
}

fn writes() -> impl Strategy<Value = Vec<Write>> {
    let write = prop_oneof![
        (0..30_usize).prop_map(Write::Now),
        (0..30_usize).prop_map(Write::All),
        (0..30_usize).prop_map(Write::Trait),
        Just(Write::Drain),
        Just(Write::Flush),
    ];
    prop::collection::vec(write, 0..20)
}

proptest! {
    #[test]
    fn a_writer_sends_what_it_was_given_whatever_the_pieces_and_wherever_futures_are_dropped_c154_c155(
        steps in steps(),
        high_water in 0..30_usize,
        writes in writes(),
        patience in 1..6_usize,
    ) {
        let limit = 40;
        let mut writer = BufWriter::with_limits(high_water, limit, Scripted::new(b"", steps));
        let mut given = Vec::new();
        for write in writes {
            let sent_len = writer.get_ref().bytes.len();
            let queued_len = writer.queued_len();
            let piece = |len: usize| (given.len()..given.len() + len).map(|index| index as u8).collect::<Vec<_>>();
            match write {
                Write::Now(len) => match writer.write(piece(len)) {
                    Ok(()) => {
                        given.extend(piece(len));
                        prop_assert_eq!(writer.get_ref().bytes.len(), sent_len, "it only queues");
                    }
                    Err(error) => {
                        prop_assert_eq!(error.kind(), ErrorKind::WouldBlock);
                        prop_assert!(queued_len > 0 && queued_len + len > limit);
                    }
                },
                Write::All(len) => {
                    impatiently!(patience, writer.write_all(piece(len))).unwrap();
                    given.extend(piece(len));
                    prop_assert!(writer.queued_len() <= limit);
                }
                Write::Trait(len) => {
                    let bytes = piece(len);
                    impatiently!(patience, AsyncWriteExt::write_all(&mut writer, &bytes)).unwrap();
                    given.extend(bytes);
                }
                Write::Drain => {
                    impatiently!(patience, writer.drain()).unwrap();
                    prop_assert!(writer.queued_len() <= high_water);
                }
                Write::Flush => {
                    impatiently!(patience, writer.flush()).unwrap();
                    prop_assert_eq!(writer.queued_len(), 0);
                    prop_assert_eq!(writer.get_ref().bytes.len(), given.len());
                }
            }
            prop_assert_eq!(writer.get_ref().bytes.len() + writer.queued_len(), given.len());
        }
        impatiently!(patience, writer.close()).unwrap();
        prop_assert!(writer.get_ref().calls.ends_with("flush close "));
        prop_assert_eq!(bytes_of(writer), given);
    }
}

/// Lets a task write for ever to a stream that takes everything at once, and takes turns with it.
#[track_caller]
fn check_gives_way(write: impl AsyncFn(&mut BufWriter<Vec<u8>>) + 'static) {
    miniloop::run(async {
        let writing = spawn(async move {
            let mut writer = BufWriter::with_limits(8, 64, Vec::new());
            loop {
                write(&mut writer).await;
            }
        });
        for _ in 0..4 {
            yield_now().await;
        }
        assert!(!writing.is_finished(), "it failed");
    })
    .unwrap();
}

#[test]
fn who_writes_without_end_to_a_stream_that_never_waits_gives_way_o10() {
    check_gives_way(async |writer| writer.write_all("more than the mark").await.unwrap());
    check_gives_way(async |writer| AsyncWriteExt::write_all(writer, b"more than the mark").await.unwrap());
    check_gives_way(async |writer| {
        writer.write_all("a").await.unwrap();
        writer.flush().await.unwrap();
    });
    check_gives_way(async |writer| {
        writer.write("a").unwrap();
        writer.drain().await.unwrap();
    });
}

#[test]
fn every_write_can_be_dropped_at_every_poll() {
    for piece_len in 1..20 {
        for patience in 1..20 {
            let steps = (0..40).flat_map(|_| [Step::Pend, Step::Move(piece_len)]);
            let mut writer = BufWriter::with_limits(8, 8, Scripted::new(b"", steps));
            for text in ["one ", "two and ", "three, then four"] {
                impatiently!(patience, writer.write_all(text)).unwrap();
                impatiently!(patience, writer.drain()).unwrap();
            }
            impatiently!(patience, writer.close()).unwrap();
            assert_eq!(bytes_of(writer), b"one two and three, then four");
        }
    }
}

#[test]
fn drain_sends_what_the_stream_takes_now_and_returns_unless_too_much_is_queued_c154_c167() {
    let mut writer = BufWriter::with_limits(8, 100, Scripted::new(b"", [Step::Move(3), Step::Pend, Step::Pend]));
    writer.write("12345678").unwrap();
    now(writer.drain()).unwrap();
    assert_eq!((writer.queued_len(), writer.get_ref().bytes.len()), (5, 3));
    writer.write("9abc").unwrap(); // above the mark
    assert!(is_pending(&mut writer.drain()));
    now(writer.drain()).unwrap();
    assert_eq!(writer.queued_len(), 0);
}

#[test]
fn above_the_high_water_mark_one_waits_down_to_the_low_one_c155_c167() {
    let mut writer = BufWriter::with_limits(8, 100, Scripted::new(b"", (0..20).flat_map(|_| [Step::Move(1), Step::Pend])));
    writer.write("123456789").unwrap();
    let mut left_at_each_poll = Vec::new();
    while is_pending(&mut writer.drain()) {
        left_at_each_poll.push(writer.queued_len());
    }
    assert_eq!(left_at_each_poll, [8, 7, 6, 5, 4, 3], "being asked again, it still waits, also below the high mark");
    assert_eq!(writer.queued_len(), 2);

    // So does `write_all`, before it queues.
    let mut writer = BufWriter::with_limits(8, 100, Scripted::new(b"", (0..20).flat_map(|_| [Step::Move(1), Step::Pend])));
    writer.write("123456789").unwrap();
    impatiently!(3, writer.write_all("x")).unwrap();
    assert_eq!((writer.queued_len(), writer.get_ref().bytes.len()), (3, 7));

    // By default 64 KiB, and several pieces count together.
    let mut writer = BufWriter::new(Scripted::new(b"", [Step::Pend, Step::Pend]));
    let piece = vec![0; 32 * 1_024];
    writer.write(&piece).unwrap();
    writer.write(&piece).unwrap();
    now(writer.drain()).unwrap();
    writer.write("x").unwrap();
    assert!(is_pending(&mut writer.drain()));
}

#[test]
fn a_queue_that_nobody_drains_refuses_more_at_its_limit() {
    let mut writer = BufWriter::new(Scripted::default());
    let piece = vec![0; 64 * 1_024];
    for _ in 0..16 {
        writer.write(&piece).unwrap();
    }
    let error = writer.write("x").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert_eq!(error.to_string(), "1048576 bytes wait to be written, 1048576 are allowed: await `drain` between writes");
    assert_eq!(writer.queued_len(), 1024 * 1024, "and took nothing");
    now(writer.write_all("x")).unwrap();
    now(writer.flush()).unwrap();
    writer.write(vec![0; 2 * 1024 * 1024]).expect("a piece that is longer than the limit goes alone");
}

#[test]
fn a_drain_after_a_refused_write_waits_also_below_the_high_water_mark() {
    // The limit is no higher than the mark; a piece that is longer than what lies between the two; one that has to go alone.
    for (high_water, limit, piece) in [(8, 8, "1234"), (8, 10, "123456"), (8, 10, "longer than all")] {
        let steps = (0..20).flat_map(|_| [Step::Pend, Step::Pend, Step::Move(1)]);
        let mut writer = BufWriter::with_limits(high_water, limit, Scripted::new(b"", steps));
        writer.write("queued").unwrap();
        now(writer.drain()).unwrap();
        let mut refused_count = 0;
        while let Err(error) = writer.write(piece) {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            assert!(is_pending(&mut writer.drain()), "there is something to wait for");
            impatiently!(1, writer.drain()).unwrap();
            refused_count += 1;
        }
        assert!((1..=3).contains(&refused_count), "it waits far enough: {refused_count}");
        impatiently!(1, writer.close()).unwrap();
        assert_eq!(bytes_of(writer), format!("queued{piece}").as_bytes());
    }
}

#[test]
fn a_piece_that_many_writers_send_is_in_memory_once() {
    let line: Rc<[u8]> = vec![b'x'; 10_000].into();
    let mut writers = [(); 5].map(|()| BufWriter::new(Scripted::default()));
    for writer in &mut writers {
        writer.write(line.clone()).unwrap();
        writer.write("!").unwrap();
    }
    assert_eq!(Rc::strong_count(&line), 6);
    for mut writer in writers {
        now(writer.flush()).unwrap();
        assert_eq!(bytes_of(writer).len(), 10_001);
    }
    assert_eq!(Rc::strong_count(&line), 1);
    assert_eq!(Chunk::from(line).as_slice().len(), 10_000);
}

#[test]
fn closing_sends_all_then_ends_the_stream_and_refuses_what_comes_later_c156_c157() {
    let mut writer = BufWriter::new(Scripted::new(b"", [Step::Move(2), Step::Pend]));
    writer.write("hello").unwrap();
    assert!(is_pending(&mut writer.close()));
    assert_eq!(writer.write("x").unwrap_err().kind(), ErrorKind::NotConnected, "it is closing already");
    now(writer.close()).unwrap();
    assert_eq!(writer.get_ref().calls, "flush close ");
    assert_eq!(writer.get_ref().bytes, b"hello");
    now(writer.close()).unwrap();
    assert_eq!(writer.get_ref().calls, "flush close ", "once");
    assert_eq!(now(writer.write_all("x")).unwrap_err().kind(), ErrorKind::NotConnected);
    assert_eq!(now(writer.flush()).unwrap_err().kind(), ErrorKind::NotConnected);
}

#[test]
fn the_error_of_the_stream_is_told_to_everyone_from_then_on_c167_c168() {
    for steps in [vec![Step::Move(2), Step::Fail(ErrorKind::ConnectionReset)], vec![Step::Move(2), Step::Move(0)]] {
        let mut writer = BufWriter::new(Scripted::new(b"", steps));
        writer.write("hello").unwrap();
        let kind = now(writer.flush()).unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::ConnectionReset | ErrorKind::WriteZero));
        assert_eq!(writer.queued_len(), 0, "what has nowhere to go is not kept");
        assert_eq!(writer.write("x").unwrap_err().kind(), kind);
        assert_eq!(now(writer.write_all("x")).unwrap_err().kind(), kind);
        assert_eq!(now(writer.flush()).unwrap_err().kind(), kind);
        assert_eq!(now(writer.close()).unwrap_err().kind(), kind);
        let mut drain = writer.drain();
        assert!(is_pending(&mut drain), "it gives way once, ..");
        assert_eq!(now(drain).unwrap_err().kind(), kind, ".. then tells");
    }
}

#[test]
fn errors_of_the_system_keep_their_number() {
    struct Broken;
    impl AsyncWrite for Broken {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Err(io::Error::from_raw_os_error(32)))
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            unreachable!()
        }
        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            unreachable!()
        }
    }
    let mut writer = BufWriter::new(Broken);
    writer.write("x").unwrap();
    for _ in 0..2 {
        assert_eq!(now(writer.flush()).unwrap_err().raw_os_error(), Some(32));
    }
}

#[test]
fn what_was_not_sent_can_be_taken_back() {
    let mut writer = BufWriter::new(Scripted::new(b"", [Step::Move(3), Step::Pend]));
    writer.write("hello").unwrap();
    assert!(is_pending(&mut writer.flush()));
    let (stream, left) = writer.into_parts();
    assert_eq!(stream.bytes, b"hel");
    assert_eq!(left, b"lo");
}

fn bytes_of(writer: BufWriter<Scripted>) -> Vec<u8> {
    writer.into_parts().0.bytes.into()
}
