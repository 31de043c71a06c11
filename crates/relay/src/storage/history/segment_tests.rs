//! Segments: what is cut, joined, encoded or trimmed holds the same messages, and what is not a segment is told.

use super::*;
use proptest::prelude::*;

/// Runs of `(sequence, texts)`, with times that follow from the sequence.
fn segment(first_number: u64, records: &[(u64, &[&str])]) -> Segment {
    let mut segment = Segment::new("lounge", first_number);
    for (sequence, texts) in records {
        let lines: Vec<u8> = texts.iter().flat_map(|text| format!("MESSAGE ada {text}\n").into_bytes()).collect();
        segment.runs.push(Run {
            id: MessageId { sequence: *sequence, ordinal: 0 },
            unix_ms: 1000 * sequence,
            message_count: texts.len() as u32,
            line_bytes: lines.len() as u32,
        });
        segment.lines.extend_from_slice(&lines);
    }
    segment
}

fn id(sequence: u64, ordinal: u32) -> MessageId {
    MessageId { sequence, ordinal }
}

/// Its messages as "sequence-ordinal text".
fn shown(segment: &Segment) -> Vec<String> {
    let text = |message: Message<'_>| {
        let line = String::from_utf8_lossy(message.line).into_owned();
        assert_eq!(message.unix_ms, 1000 * message.id.sequence);
        format!("{}-{} {}", message.id.sequence, message.id.ordinal, line.trim_end().rsplit(' ').next().unwrap_or_default())
    };
    segment.messages().map(text).collect()
}

fn example() -> Segment {
    segment(5, &[(7, &["a", "b", "c"]), (9, &["d"]), (12, &["e", "f"])])
}

#[track_caller]
fn check_rest(rest: Option<Segment>, first_number: u64, expected: &[&str]) {
    let rest = rest.expect("something is left");
    assert_eq!((rest.first_number, shown(&rest)), (first_number, expected.iter().map(|text| (*text).to_owned()).collect()));
    assert_eq!(rest.check(), Ok(()));
}

#[test]
fn messages_have_their_ids_and_times() {
    assert_eq!(shown(&example()), ["7-0 a", "7-1 b", "7-2 c", "9-0 d", "12-0 e", "12-1 f"]);
    assert_eq!((example().first_id(), example().last_id()), (id(7, 0), id(12, 1)));
    assert_eq!((example().first_ms(), example().last_ms()), (7000, 12_000));
    assert_eq!((example().message_count(), example().end_number()), (6, 11));
}

#[test]
fn trimming_keeps_numbers_and_ids_right() {
    check_rest(example().without_first(2), 7, &["7-2 c", "9-0 d", "12-0 e", "12-1 f"]);
    check_rest(example().without_first(3), 8, &["9-0 d", "12-0 e", "12-1 f"]);
    check_rest(example().without_first(2).and_then(|rest| rest.without_first(3)), 10, &["12-1 f"]);
    assert_eq!(example().without_first(6), None);
    assert_eq!(example().without_first(u32::MAX), None);

    check_rest(example().after(id(0, 0)), 5, &["7-0 a", "7-1 b", "7-2 c", "9-0 d", "12-0 e", "12-1 f"]);
    check_rest(example().after(id(7, 1)), 7, &["7-2 c", "9-0 d", "12-0 e", "12-1 f"]);
    check_rest(example().after(id(8, 77)), 8, &["9-0 d", "12-0 e", "12-1 f"]);
    check_rest(example().after(id(12, 0)), 10, &["12-1 f"]);
    assert_eq!(example().after(id(12, 1)), None);
    assert_eq!(example().after(id(u64::MAX, u32::MAX)), None);

    check_rest(example().up_to(9), 5, &["7-0 a", "7-1 b", "7-2 c", "9-0 d"]);
    check_rest(example().up_to(u64::MAX), 5, &["7-0 a", "7-1 b", "7-2 c", "9-0 d", "12-0 e", "12-1 f"]);
    assert_eq!(example().up_to(6), None);
}

#[test]
fn a_later_message_with_an_earlier_time_is_not_older() {
    let mut jumped = example();
    jumped.runs[0].unix_ms = 20_000;
    assert_eq!(example().count_older_than(12_000), 4);
    assert_eq!(jumped.count_older_than(12_000), 0);
    assert_eq!(jumped.count_older_than(20_001), 6);
}

#[test]
fn a_message_longer_than_a_segment_is_alone() {
    let long = "x".repeat(SEGMENT_BYTES);
    let whole = segment(1, &[(1, &["a", &long, "b"]), (2, &[&long])]);
    let mut cursor = whole.cursor();
    let mut counts = Vec::new();
    while !cursor.is_empty() {
        let mut part = Segment::new("lounge", 1);
        cursor.fill(&mut part);
        counts.push(part.message_count());
    }
    assert_eq!(counts, [1, 1, 1, 1]);
}

#[test]
fn the_stored_form_never_changes_silently() {
    let small = segment(3, &[(7, &["a", "b"])]);
    let expected: &[&[u8]] = &[&7u64.to_le_bytes(), &[0, 0, 0, 0], &7000u64.to_le_bytes(), &[2, 0, 0, 0], &[28, 0, 0, 0]];
    assert_eq!(small.encode_runs(), expected.concat());
    let bytes: &[&[u8]] = &[
        &6u64.to_le_bytes(),
        &3u64.to_le_bytes(),
        &28u64.to_le_bytes(),
        &28u64.to_le_bytes(),
        b"lounge",
        &expected.concat(),
        b"MESSAGE ada a\nMESSAGE ada b\n",
    ];
    assert_eq!(small.checksum(), crc32c::crc32c(&bytes.concat()));
}

#[test]
fn what_is_not_a_segment_is_told() {
    type Change = fn(&mut Segment);
    let changes: [(&str, Change); 12] = [
        ("first number is 0", |segment| segment.first_number = 0),
        ("runs are none", |segment| segment.runs.clear()),
        ("lines are not UTF-8", |segment| segment.lines[12] = 0xff),
        ("runs are out of order or empty", |segment| segment.runs.swap(0, 1)),
        ("runs are out of order or empty", |segment| segment.runs[1].id = MessageId { sequence: 7, ordinal: 2 }),
        ("runs are out of order or empty", |segment| segment.runs[1].message_count = 0),
        ("runs are out of order or empty", |segment| segment.runs[2].id.ordinal = u32::MAX),
        ("lines are shorter than its runs say", |segment| segment.lines.truncate(20)),
        ("lines are longer than its runs say", |segment| segment.lines.extend_from_slice(b"MESSAGE ada g\n")),
        ("lines are not as many messages as its runs say", |segment| segment.runs[0].message_count = 2),
        ("lines are not messages", |segment| segment.lines[0] = b'X'),
        ("lines are not messages", |segment| segment.lines[8] = b' '),
    ];
    assert_eq!(example().check(), Ok(()));
    for (expected, change) in changes {
        let mut wrong = example();
        change(&mut wrong);
        assert_eq!(wrong.check(), Err(expected));
    }
    let mut moved = example();
    moved.runs[0].line_bytes -= 1;
    moved.runs[1].line_bytes += 1;
    assert_eq!(moved.check(), Err("lines are not as many messages as its runs say"));
    assert_eq!(Segment::decode_runs(&[0; RUN_BYTES + 1]), None);
}

/// Records of a room: how long the texts of each are.
fn records() -> impl Strategy<Value = Segment> {
    let length = prop_oneof![8 => 0..100usize, 2 => 0..5000usize, 1 => Just(SEGMENT_BYTES + 10)];
    let record = (1..3u64, proptest::collection::vec(length, 1..60));
    (1..1000u64, proptest::collection::vec(record, 1..20)).prop_map(|(first_number, records)| {
        let mut sequence = 0;
        let mut whole = Segment::new("lounge", first_number);
        for (step, lengths) in records {
            sequence += step;
            let texts: Vec<String> = lengths.iter().map(|length| "y".repeat(*length)).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let part = segment(1, &[(sequence, &texts)]);
            whole.runs.extend(part.runs);
            whole.lines.extend(part.lines);
        }
        whole
    })
}

fn messages<'a>(segments: &'a [Segment]) -> Vec<(u64, Message<'a>)> {
    let numbered = |segment: &'a Segment| {
        let first_number = segment.first_number;
        segment.messages().zip(first_number..).map(|(message, number)| (number, message))
    };
    segments.iter().flat_map(numbered).collect()
}

proptest! {
    #[test]
    fn what_is_cut_into_segments_is_what_it_was(whole in records(), before_count in 0..40u32) {
        // A part of it may be there before, as when a last segment is extended.
        let mut parts = Vec::new();
        let mut cursor = whole.cursor();
        let mut first = Segment::new("lounge", whole.first_number);
        for message in whole.messages().take(before_count as usize) {
            first.push(Run { id: message.id, unix_ms: message.unix_ms, message_count: 1, line_bytes: message.line.len() as u32 });
            first.lines.extend_from_slice(message.line);
        }
        if !first.runs.is_empty() && first.lines.len() < SEGMENT_BYTES {
            cursor.skip_messages(before_count);
            cursor.fill(&mut first);
            parts.push(first);
        }
        while !cursor.is_empty() {
            let mut part = Segment::new("lounge", parts.last().map_or(whole.first_number, Segment::end_number));
            cursor.fill(&mut part);
            parts.push(part);
        }
        prop_assert_eq!(messages(&parts), messages(std::slice::from_ref(&whole)));
        for (at, part) in parts.iter().enumerate() {
            prop_assert_eq!(part.check(), Ok(()));
            prop_assert!(part.lines.len() <= SEGMENT_BYTES || part.message_count() == 1, "part {} is too long", at);
            let next_bytes = parts.get(at + 1).and_then(|next| next.messages().next()).map_or(SEGMENT_BYTES, |next| next.line.len());
            prop_assert!(part.lines.len() + next_bytes > SEGMENT_BYTES || at + 1 == parts.len(), "part {} is too short", at);
        }
        // Joined again, no run is in two pieces.
        let mut joined = Segment::new("lounge", whole.first_number);
        parts.iter().for_each(|part| part.cursor().move_all(&mut joined));
        prop_assert_eq!(&joined, &whole);
    }

    #[test]
    fn runs_are_decoded_as_they_were_encoded(whole in records()) {
        prop_assert_eq!(Segment::decode_runs(&whole.encode_runs()), Some(whole.runs));
    }

    #[test]
    fn no_bytes_make_it_panic(
        runs in proptest::collection::vec(any::<(u8, u32, u32, u32)>(), 0..6),
        lines in prop_oneof![proptest::collection::vec(any::<u8>(), 0..100), Just(example().lines)],
        count in any::<u32>(),
        at in any::<(u8, u32)>(),
    ) {
        let run = |(sequence, ordinal, message_count, line_bytes): (u8, u32, u32, u32)| {
            let line_bytes = if message_count.is_multiple_of(2) { line_bytes } else { line_bytes % 40 };
            Run { id: id(u64::from(sequence), ordinal), unix_ms: 0, message_count, line_bytes }
        };
        let wrong = Segment { room: String::new(), first_number: u64::MAX, runs: runs.into_iter().map(run).collect(), lines };
        let _ = (wrong.check(), wrong.checksum(), wrong.end_number(), wrong.without_first(count), wrong.after(id(u64::from(at.0), at.1)));
        wrong.messages().take(200).for_each(drop);
        let mut filled = Segment::new("", 1);
        wrong.cursor().fill(&mut filled);
        let _ = wrong.up_to(u64::from(at.0));
    }
}
