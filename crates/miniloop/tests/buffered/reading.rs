//! What a reader gives, and when.

use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_util::{AsyncBufReadExt, AsyncRead, AsyncReadExt, StreamExt, TryStreamExt};
use miniloop::io::{BufReader, ReadError};
use miniloop::{spawn, yield_now};
use proptest::prelude::*;

use crate::scripted::{Scripted, Step, impatiently, is_pending, now, steps};

#[derive(Clone, Debug)]
enum Read {
    Some(usize),
    Line,
    Until(Vec<String>),
    Exact(usize),
    ToEnd(usize),
}

fn reads() -> impl Strategy<Value = Vec<Read>> {
    let read = prop_oneof![
        (0..12_usize).prop_map(Read::Some),
        Just(Read::Line),
        prop::collection::vec("[ab\n]{1,3}", 1..4).prop_map(Read::Until),
        (0..25_usize).prop_map(Read::Exact),
        (0..40_usize).prop_map(Read::ToEnd),
    ];
    prop::collection::vec(read, 0..20)
}

/// The trivial reader: everything has come already.
struct Model {
    rest: Vec<u8>,
    limit: usize,
    is_inside_refused_line: bool,
}

impl Model {
    fn take(&mut self, len: usize) -> Vec<u8> {
        self.rest.drain(..len).collect()
    }

    fn line(&mut self) -> String {
        let find = |rest: &[u8]| rest.iter().position(|byte| *byte == b'\n');
        if std::mem::take(&mut self.is_inside_refused_line) {
            let len = find(&self.rest).map_or(self.rest.len(), |index| index + 1);
            self.take(len);
        }
        let index = find(&self.rest);
        let mut line = self.rest[..index.unwrap_or(self.rest.len())].to_vec();
        if index.is_some() {
            line = line.strip_suffix(b"\r").unwrap_or(&line).to_vec();
        }
        if line.len() > self.limit {
            self.is_inside_refused_line = true;
            return "too long".to_owned();
        }
        self.take(index.map_or(self.rest.len(), |index| index + 1));
        if index.is_none() && line.is_empty() { "end".to_owned() } else { format!("{:?}", String::from_utf8(line).unwrap()) }
    }

    fn until(&mut self, separators: &[String]) -> String {
        let start = |end: usize| {
            let ends = separators.iter().filter(|separator| self.rest[..end].ends_with(separator.as_bytes()));
            ends.map(|separator| end - separator.len()).min()
        };
        let longest_len = separators.iter().map(String::len).max().unwrap();
        match (1..=self.rest.len()).find_map(|end| Some((start(end)?, end))) {
            Some((start, _)) if start > self.limit => "too long".to_owned(),
            Some((_, end)) => format!("{:?}", self.take(end)),
            None if (self.rest.len() + 1).saturating_sub(longest_len) > self.limit => "too long".to_owned(),
            None => format!("only {:?}", self.take(self.rest.len())),
        }
    }

    fn exact(&mut self, len: usize) -> String {
        if len <= self.rest.len() { format!("{:?}", self.take(len)) } else { format!("only {:?}", self.take(self.rest.len())) }
    }

    fn until_end(&mut self, limit: usize) -> String {
        if self.rest.len() > limit { "too long".to_owned() } else { format!("{:?}", self.take(self.rest.len())) }
    }
}

fn shown(result: Result<Vec<u8>, ReadError>) -> String {
    match result {
        Ok(bytes) => format!("{bytes:?}"),
        Err(ReadError::Incomplete { partial, .. }) => format!("only {partial:?}"),
        Err(ReadError::TooLong { .. }) => "too long".to_owned(),
        Err(error) => panic!("{error}"),
    }
}

fn check_reads(bytes: &[u8], steps: &[Step], limit: usize, reads: &[Read], patience: usize) {
    let mut reader = BufReader::with_limit(limit, Scripted::new(bytes, steps.to_vec()));
    let mut model = Model { rest: bytes.to_vec(), limit, is_inside_refused_line: false };
    for read in reads {
        // What a refused line leaves to other reads depends on the pieces; the next line does not.
        let read = if model.is_inside_refused_line { &Read::Line } else { read };
        let (real, expected) = match read {
            Read::Some(len) => {
                let mut buffer = vec![0; *len];
                let len = impatiently!(patience, reader.read(&mut buffer)).unwrap();
                assert_eq!(len == 0, buffer.is_empty() || model.rest.is_empty());
                (format!("{:?}", &buffer[..len]), format!("{:?}", model.take(len)))
            }
            Read::Line => {
                let real = match impatiently!(patience, reader.read_line()) {
                    Ok(line) => line.map_or("end".to_owned(), |line| format!("{line:?}")),
                    Err(ReadError::TooLong { .. }) => "too long".to_owned(),
                    Err(error) => panic!("{error}"),
                };
                (real, model.line())
            }
            Read::Until(separators) => (shown(impatiently!(patience, reader.read_until_any(separators))), model.until(separators)),
            Read::Exact(len) => (shown(impatiently!(patience, reader.read_exact(*len))), model.exact(*len)),
            Read::ToEnd(limit) => (shown(impatiently!(patience, reader.read_to_end(*limit))), model.until_end(*limit)),
        };
        assert_eq!(real, expected, "{read:?}");
    }
    if !model.is_inside_refused_line {
        let mut left = reader.buffer().to_vec();
        left.extend(&reader.get_ref().bytes);
        assert_eq!(left, model.rest, "what is left is what nobody has read");
    }
}

proptest! {
    #[test]
    fn a_reader_gives_what_the_stream_has_whatever_the_pieces_and_wherever_futures_are_dropped_c161_c162_c163_c164(
        bytes in "[ab\r\n]{0,60}",
        steps in steps(),
        limit in 0..20_usize,
        reads in reads(),
        patience in 1..6_usize,
    ) {
        check_reads(bytes.as_bytes(), &steps, limit, &reads, patience);
    }
}

#[test]
fn every_read_can_be_dropped_at_every_poll() {
    let bytes = b"one\r\ntwo;three\nfour and the rest";
    let reads = [Read::Line, Read::Until(vec![";".into(), "\n".into()]), Read::Exact(6), Read::Some(9), Read::ToEnd(99), Read::Line];
    for piece_len in 1..bytes.len() {
        for patience in 1..2 * bytes.len() {
            let steps = (0..bytes.len()).flat_map(|_| [Step::Pend, Step::Move(piece_len)]).collect::<Vec<_>>();
            check_reads(bytes, &steps, 20, &reads, patience);
        }
    }
}

#[test]
fn a_read_returns_as_soon_as_there_is_a_byte_and_to_the_end_passes_the_limit_c161() {
    let mut reader = BufReader::with_limit(4, Scripted::new(b"hello, world", [Step::Move(1), Step::Pend]));
    assert_eq!(now(reader.read(&mut [0; 100])).unwrap(), 1);
    assert_eq!(impatiently!(1, reader.read_to_end(11)).unwrap(), b"ello, world");
    assert_eq!(now(reader.read_to_end(0)).unwrap(), b"");

    let mut reader = BufReader::new(&b"four"[..]);
    assert!(matches!(now(reader.read_to_end(3)), Err(ReadError::TooLong { seen: 4, limit: 3 })));
    assert_eq!(now(reader.read_to_end(4)).unwrap(), b"four", "nothing was lost");
}

#[test]
fn an_exact_read_may_pass_the_limit_and_ends_with_what_there_is_c162() {
    let mut reader = BufReader::with_limit(4, &[7; 100_000][..]);
    assert_eq!(now(reader.read_exact(0)).unwrap(), b"");
    assert_eq!(now(reader.read_exact(70_000)).unwrap().len(), 70_000);
    match now(reader.read_exact(70_000)) {
        Err(error @ ReadError::Incomplete { .. }) => {
            assert_eq!(error.to_string(), "the stream ended after 30000 of 70000 bytes");
            assert_eq!(io::Error::from(error).kind(), ErrorKind::UnexpectedEof);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn separators_are_found_across_pieces_and_the_one_that_ends_first_counts_c163() {
    let pieces = || (0..50).flat_map(|_| [Step::Move(1), Step::Pend]);
    let mut reader = BufReader::new(Scripted::new(b"a\r\r\nb--c---d", pieces()));
    assert_eq!(impatiently!(3, reader.read_until(b"\r\n")).unwrap(), b"a\r\r\n");
    assert_eq!(impatiently!(3, reader.read_until_any(&["---", "--"])).unwrap(), b"b--");
    assert_eq!(impatiently!(3, reader.read_until_any(&["-d", "--"])).unwrap(), b"c--");
    assert!(matches!(impatiently!(3, reader.read_until(b"x")), Err(ReadError::Incomplete { partial, .. }) if partial == b"-d"));
    assert!(matches!(impatiently!(3, reader.read_until(b"x")), Err(ReadError::Incomplete { partial, .. }) if partial.is_empty()));
}

#[test]
fn a_record_that_is_too_long_stays_in_the_reader_c163() {
    // Once the separator is there, once it is not.
    for bytes in [&b"abcdef;"[..], b"abcdefghi"] {
        let mut reader = BufReader::with_limit(5, bytes);
        assert!(matches!(now(reader.read_until(b";")), Err(ReadError::TooLong { limit: 5, .. })));
        assert_eq!(now(reader.read_to_end(99)).unwrap(), bytes);
    }
    let mut reader = BufReader::with_limit(5, &b"abcde;"[..]);
    assert_eq!(now(reader.read_until(b";")).unwrap(), b"abcde;", "the limit itself is allowed");
}

#[test]
fn a_line_that_is_too_long_is_dropped_and_the_next_one_comes_c164() {
    let mut reader = BufReader::with_limit(3, &b"abc\r\nabcdefg\nabcd\r\nx\ny"[..]);
    let mut lines = Vec::new();
    for _ in 0..6 {
        lines.push(now(reader.read_line()).map_err(|error| error.to_string()));
    }
    let refused = || Err("too long: 4 bytes or more, 3 are allowed".to_owned());
    let line = |text: &str| Ok(Some(text.to_owned()));
    // At the end, the rest is a line.
    assert_eq!(lines, [line("abc"), refused(), refused(), line("x"), line("y"), Ok(None)]);
}

#[test]
fn a_line_without_end_is_refused_when_it_passes_the_limit_not_when_it_ends_c164() {
    let steps = (0..9).map(|_| Step::Move(2)).chain([Step::Pend]);
    let mut reader = BufReader::with_limit(5, Scripted::new(b"abcdefgh", steps));
    assert!(matches!(now(reader.read_line()), Err(ReadError::TooLong { seen: 6, limit: 5 })));
    assert_eq!(reader.buffer(), b"", "and is not kept");
    assert_eq!(impatiently!(2, reader.read_line()).unwrap(), None);
}

#[test]
fn who_reads_on_in_a_refused_line_gets_the_rest_of_it() {
    let mut reader = BufReader::with_limit(2, &b"abcdef\ng\n"[..]);
    assert!(matches!(now(reader.read_line()), Err(ReadError::TooLong { .. })));
    assert_eq!(now(reader.read_exact(1)).unwrap(), b"e");
    assert_eq!(now(reader.read_line()).unwrap().unwrap(), "f", "and nothing is thrown away behind their back");
    assert_eq!(now(reader.read_line()).unwrap().unwrap(), "g");
}

#[test]
fn a_line_that_is_not_utf_8_is_handed_over_as_bytes() {
    let mut reader = BufReader::new(&b"\xff\r\nnext"[..]);
    assert!(matches!(now(reader.read_line()), Err(ReadError::NotUtf8 { line }) if line == b"\xff"));
    assert_eq!(now(reader.read_line()).unwrap().unwrap(), "next");
}

#[test]
fn no_more_is_read_ahead_than_the_limit_and_one_read_c165() {
    const LIMIT: usize = 64 * 1_024; // the default
    const READ_LEN: usize = 8 * 1_024;
    let mut reader = BufReader::new(io_repeat());
    assert!(matches!(now(reader.read_until(b"\n")), Err(ReadError::TooLong { limit: LIMIT, .. })));
    assert!((LIMIT..=LIMIT + READ_LEN).contains(&reader.buffer().len()), "{}", reader.buffer().len());
    assert!(matches!(now(reader.read_until(b"\n")), Err(ReadError::TooLong { .. })));
    assert!(reader.buffer().len() <= LIMIT + READ_LEN, "asking again does not add to it");

    let mut reader = BufReader::with_limit(100, io_repeat());
    now(reader.read_exact(1)).unwrap();
    assert!(reader.buffer().len() < 100, "who expects little reads little ahead");
}

fn io_repeat() -> impl futures_util::AsyncRead + Unpin {
    futures_util::io::repeat(b'x')
}

#[test]
fn an_error_of_the_stream_loses_nothing() {
    let steps = || [Step::Move(3), Step::Fail(ErrorKind::TimedOut), Step::Move(3), Step::Fail(ErrorKind::TimedOut)];
    let mut reader = BufReader::new(Scripted::new(b"abcdef\n", steps()));
    assert!(matches!(now(reader.read_line()), Err(ReadError::Io(error)) if error.kind() == ErrorKind::TimedOut));
    assert_eq!(reader.buffer(), b"abc");
    assert!(matches!(now(reader.read_exact(7)), Err(ReadError::Io(_))));
    assert_eq!(now(reader.read_line()).unwrap().unwrap(), "abcdef");

    // As a stream of lines it is the end, so that who skips errors does not run for ever.
    let mut lines = BufReader::new(Scripted::new(b"abc", [Step::Fail(ErrorKind::TimedOut)])).lines();
    assert!(matches!(now(lines.next()), Some(Err(ReadError::Io(_)))));
    assert!(now(lines.next()).is_none());
}

#[test]
fn a_stream_that_says_that_it_filled_more_than_it_was_given_is_not_believed() {
    struct Boaster;
    impl AsyncRead for Boaster {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(buffer.len() + 1))
        }
    }
    // Through the buffer, and past it.
    for len in [10, 10_000] {
        assert_eq!(now(BufReader::new(Boaster).read(&mut vec![0; len])).unwrap(), len);
    }
}

#[test]
fn lines_dropped_in_the_middle_of_a_line_lose_nothing() {
    let mut lines = BufReader::new(Scripted::new(b"one\ntwo\n", [Step::Move(5), Step::Pend])).lines();
    assert_eq!(now(lines.next()).unwrap().unwrap(), "one");
    assert!(is_pending(&mut lines.next()));
    assert_eq!(now(lines.into_reader().lines().try_collect::<Vec<_>>()).unwrap(), ["two"]);
}

#[test]
fn the_traits_of_the_ecosystem_read_from_it_as_well() {
    miniloop::run(async {
        let mut reader = BufReader::new(&b"one two three"[..]);
        assert_eq!(reader.fill_buf().await.unwrap(), b"one two three");
        reader.consume(4);
        let mut word = Vec::new();
        AsyncBufReadExt::read_until(&mut reader, b' ', &mut word).await.unwrap();
        assert_eq!(word, b"two ");
        let mut rest = String::new();
        reader.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "three");
        assert_eq!(BufReader::new(&b"left"[..]).into_parts(), (&b"left"[..], Vec::new()));
    })
    .unwrap();
}

#[test]
fn many_records_that_came_at_once_do_not_hold_the_loop_o10() {
    miniloop::run(async {
        let read_count = Rc::new(Cell::new(0));
        let counter = read_count.clone();
        let task = spawn(async move {
            let bytes = b"\n".repeat(1_000);
            let mut reader = BufReader::new(&bytes[..]);
            while reader.read_line().await.unwrap().is_some() {
                counter.set(counter.get() + 1);
            }
        });
        for _ in 0..5 {
            let before = read_count.get();
            yield_now().await;
            assert!((1..=64).contains(&(read_count.get() - before)), "{}", read_count.get());
        }
        task.await.unwrap();
        assert_eq!(read_count.get(), 1_000);
    })
    .unwrap();
}
