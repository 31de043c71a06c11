//! The record format: what is encoded is decoded, and nothing else is.

use super::*;
use proptest::prelude::*;
use relay_core::Section;

const LINK: Link = Link { file_number: 3, sequence: 7, previous_checksum: 0xdead_beef };

fn encoded(batch: &Batch) -> Vec<u8> {
    let mut bytes = vec![1; 10];
    encode(&mut bytes, &LINK, 1_700_000_000_123, batch);
    assert_eq!(bytes[..10], [1; 10], "a record is appended");
    bytes.split_off(10)
}

fn batch(sections: &[(&str, u32, &str)]) -> Batch {
    let section = |(room, message_count, lines): &(&str, u32, &str)| Section {
        room: (*room).into(),
        message_count: *message_count,
        lines: lines.as_bytes().to_vec(),
    };
    Batch { sections: sections.iter().map(section).collect() }
}

fn decode(bytes: &[u8]) -> Result<Record<'_>, Invalid> {
    Header::read(bytes)?.check(bytes)
}

#[track_caller]
fn check_invalid(bytes: &[u8], expected: Invalid) {
    assert_eq!(decode(bytes).map(|record| record.sequence()), Err(expected));
}

/// Makes the checksums right again after a change: what a wrong writer, not a wrong disk, would leave.
fn seal(bytes: &mut [u8]) {
    let length = (HEADER_BYTES + u32_at(bytes, 36) as usize).min(bytes.len());
    let body = crc32c::crc32c(&bytes[HEADER_BYTES..length]);
    bytes[44..48].copy_from_slice(&body.to_le_bytes());
    seal_header(bytes);
}

#[test]
fn the_format_on_disk_never_changes_silently() {
    let bytes = encoded(&batch(&[("r", 1, "MESSAGE a b\n")]));
    assert_eq!(bytes.len(), 4096);
    let expected: &[&[u8]] = &[
        b"\xffRLG\x01\x00\x5a\x5a",
        &[3, 0, 0, 0, 0, 0, 0, 0],
        &[7, 0, 0, 0, 0, 0, 0, 0],
        &1_700_000_000_123u64.to_le_bytes(),
        &[1, 0, 0, 0],
        &[25, 0, 0, 0],
        &[0xef, 0xbe, 0xad, 0xde],
        &crc32c::crc32c(&bytes[52..77]).to_le_bytes(),
        &crc32c::crc32c(&bytes[..48]).to_le_bytes(),
        &[1, 0, 0, 0, 1, 0, 0, 0, 12, 0, 0, 0],
        b"rMESSAGE a b\n",
    ];
    assert_eq!(bytes[..77], expected.concat());
    assert!(bytes[77..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_record_says_what_it_was_given() {
    let bytes = encoded(&batch(&[("blue", 2, "MESSAGE a 1\nMESSAGE b 2\n"), ("größe", 1, "MESSAGE c 3\n")]));
    let record = decode(&bytes).expect("it is what was encoded");
    assert_eq!((record.sequence(), record.unix_ms(), record.message_count()), (7, 1_700_000_000_123, 3));
    let sections: Vec<_> = record.sections().collect();
    assert_eq!(
        sections,
        [
            StoredSection { room: "blue", message_count: 2, lines: b"MESSAGE a 1\nMESSAGE b 2\n" },
            StoredSection { room: "größe", message_count: 1, lines: b"MESSAGE c 3\n" },
        ]
    );
}

#[test]
fn the_length_is_known_before_and_bounded() {
    #[track_caller]
    fn check(lines_bytes: u64, expected: Option<u64>) {
        let section = Section { room: String::new(), message_count: 1, lines: vec![b'x'; lines_bytes as usize] };
        let batch = Batch { sections: vec![section] };
        assert_eq!(padded_bytes(&batch), expected);
        if let Some(expected) = expected {
            assert_eq!(encoded(&batch).len() as u64, expected);
        }
    }
    let overhead = (HEADER_BYTES + SECTION_HEADER_BYTES) as u64;
    check(0, Some(4096));
    check(4096 - overhead, Some(4096));
    check(4097 - overhead, Some(8192));
    check(RECORD_BYTES_MAX - overhead, Some(RECORD_BYTES_MAX));
    check(RECORD_BYTES_MAX - overhead + 1, None);
}

#[test]
fn more_messages_than_a_record_can_count_are_refused() {
    assert_eq!(padded_bytes(&batch(&[("a", u32::MAX, "x\n"), ("b", 1, "y\n")])), None);
}

#[test]
fn a_wrong_record_is_refused_for_what_is_wrong() {
    let right = encoded(&batch(&[("r", 1, "MESSAGE a b\n")]));
    #[track_caller]
    fn check(right: &[u8], change: impl FnOnce(&mut Vec<u8>), expected: Invalid) {
        let mut bytes = right.to_vec();
        change(&mut bytes);
        check_invalid(&bytes, expected);
    }
    check(&right, |bytes| bytes.clear(), Invalid::NoRecord);
    check(&right, |bytes| bytes.truncate(51), Invalid::NoRecord);
    check(&right, |bytes| bytes[..52].fill(0), Invalid::NoRecord);
    check(&right, |bytes| bytes.truncate(76), Invalid::Length);
    check(&right, |bytes| bytes[52] = 0, Invalid::Body);
    check(&right, |bytes| bytes[76] = b'!', Invalid::Body);
    // Sealed again: the checksums are right, the content is not.
    let sealed = |at: usize, byte: u8| {
        move |bytes: &mut Vec<u8>| {
            bytes[at] = byte;
            seal(bytes);
        }
    };
    check(&right, sealed(0, 0), Invalid::Header);
    check(&right, sealed(4, 2), Invalid::Version(2));
    check(&right, sealed(6, 0xa5), Invalid::Header);
    check(&right, sealed(39, 0xff), Invalid::Length);
    check(&right, sealed(32, 2), Invalid::Sections);
    check(&right, sealed(52, 200), Invalid::Sections);
    check(&right, sealed(60, 11), Invalid::Sections);
    check(&right, sealed(64, 0xff), Invalid::Sections);
}

#[test]
fn a_flipped_bit_of_the_header_is_seen_without_the_body() {
    let right = encoded(&batch(&[("r", 1, "MESSAGE a b\n")]));
    for bit in 0..8 * HEADER_BYTES {
        let mut bytes = right.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Header::read(&bytes).err(), Some(Invalid::Header), "bit {bit}");
    }
}

proptest! {
    #[test]
    fn every_batch_comes_back(
        sections in prop::collection::vec((".{0,12}", 0u32..1000, prop::collection::vec(any::<u8>(), 0..3000)), 0..20)
    ) {
        let sections: Vec<_> =
            sections.into_iter().map(|(room, message_count, lines)| Section { room, message_count, lines }).collect();
        let batch = Batch { sections };
        let bytes = encoded(&batch);
        prop_assert_eq!(Some(bytes.len() as u64), padded_bytes(&batch));
        let record = decode(&bytes).expect("it is what was encoded");
        let back: Vec<_> = record.sections().collect();
        let given: Vec<_> = batch
            .sections
            .iter()
            .map(|section| StoredSection { room: &section.room, message_count: section.message_count, lines: &section.lines })
            .collect();
        prop_assert_eq!(back, given);
    }

    #[test]
    fn random_bytes_are_no_record_and_no_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..300), body_bytes in 0u8..200) {
        prop_assert!(decode(&bytes).is_err());
        // Random bodies under a header that is right, checksum and all.
        if bytes.len() > HEADER_BYTES + usize::from(body_bytes) {
            let right = encoded(&Batch::default());
            bytes[..HEADER_BYTES].copy_from_slice(&right[..HEADER_BYTES]);
            bytes[36] = body_bytes;
            seal(&mut bytes);
            if let Ok(record) = decode(&bytes) {
                prop_assert_eq!(record.sections().map(|section| section.message_count).sum::<u32>(), 0);
            }
        }
    }

    #[test]
    fn no_flipped_byte_goes_unseen(at in 0usize..77, flip in 1u8..) {
        let mut bytes = encoded(&batch(&[("r", 1, "MESSAGE a b\n")]));
        bytes[at] ^= flip;
        prop_assert!(decode(&bytes).is_err());
    }
}
