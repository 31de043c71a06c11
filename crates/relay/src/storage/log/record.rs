//! The record: one commit as it stands in a log file. Encodes a batch, and decides whether bytes are a record.
//!
//! Pure: bytes in, bytes or a verdict out; it knows no file. Encoding copies each byte once and checksums it once. All numbers are
//! little-endian. `docs/decisions/0001-log-format.md` says why the format is as it is. Next: `file_names.rs`.
//!
//! ```text
//! header   0  magic               4 bytes, the first of which no UTF-8 text holds: no message can look like a header
//!          4  version             u16; magic, version and the header's checksum stand where they stand in every version
//!          6  beneath             u16, what the record was written over; a constant, which says zeros
//!          8  file number         u64
//!         16  sequence            u64, 1 for the first record of a log
//!         24  time                u64, unix milliseconds
//!         32  message count       u32, the sum over the sections
//!         36  body length         u32
//!         40  previous checksum   u32, the header's checksum of the record before this one, 0 for the first
//!         44  body's checksum     u32, CRC-32C
//!         48  header's checksum   u32, CRC-32C over the 48 bytes above, so over the body's as well
//! body    52  sections, back to back, one for each room of the commit:
//!             room length u32, message count u32, length of the lines u32, room, lines
//! padding     zeros up to the next multiple of 4,096
//! ```

use crate::storage::limits::{RECORD_ALIGNMENT_BYTES, RECORD_BYTES_MAX, SECTOR_BYTES};
use relay_core::Batch;
use relay_core::limits::{BATCH_LEN_MAX_ROOMS, BATCH_MAX_BYTES, ROOM_NAME_LEN_MAX_CHARS};
use std::fmt;

/// A commit read back from the log, checked.
#[derive(Debug)]
pub struct Record<'a> {
    header: Header,
    body: &'a [u8],
}

/// The messages of one room in one [`Record`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredSection<'a> {
    /// The room's name.
    pub room: &'a str,
    /// How many messages `lines` holds.
    pub message_count: u32,
    /// The bytes that were broadcast: `MESSAGE <name> <text>\n` lines, oldest first.
    pub lines: &'a [u8],
}

impl<'a> Record<'a> {
    /// The place of this commit in the log: 1, 2, 3, .. without gaps.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.header.sequence
    }

    /// When the commit was made, in milliseconds since 1970. The machine's wall clock, so it may jump: order is the sequence.
    #[must_use]
    pub fn unix_ms(&self) -> u64 {
        self.header.unix_ms
    }

    /// How many messages the sections hold together.
    #[must_use]
    pub fn message_count(&self) -> u32 {
        self.header.message_count
    }

    /// What the record takes in its file.
    pub(crate) fn padded_bytes(&self) -> u64 {
        self.header.padded_bytes()
    }

    /// The rooms of the commit, in the order in which they were first written to.
    pub fn sections(&self) -> impl Iterator<Item = StoredSection<'a>> + use<'a> {
        let mut rest = self.body;
        std::iter::from_fn(move || {
            let (section, after) = split_section(rest)?;
            rest = after;
            Some(section)
        })
    }
}

/// What the next record of a chain must say about itself. Bytes from an earlier life of the file say something else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    pub(crate) file_number: u64,
    pub(crate) sequence: u64,
    pub(crate) previous_checksum: u32,
}

/// The header of a record, right in itself but not yet checked against the body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    pub(crate) file_number: u64,
    pub(crate) sequence: u64,
    unix_ms: u64,
    message_count: u32,
    body_bytes: u32,
    previous_checksum: u32,
    body_checksum: u32,
    /// The header's own, which the next record names.
    pub(crate) checksum: u32,
}

/// Why bytes are not the record that was looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Invalid {
    /// Zeros, or the end of the file.
    NoRecord,
    Header,
    Version(u16),
    OutOfPlace,
    Length,
    Body,
    Sections,
}

impl Header {
    /// Reads a header from the start of `bytes`.
    pub(crate) fn read(bytes: &[u8]) -> Result<Header, Invalid> {
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else { return Err(Invalid::NoRecord) };
        if *bytes == [0; HEADER_BYTES] {
            return Err(Invalid::NoRecord);
        }
        let checksum = u32_at(bytes, HEADER_CHECKSUM_AT);
        if bytes[..4] != MAGIC || crc32c::crc32c(&bytes[..HEADER_CHECKSUM_AT]) != checksum {
            return Err(Invalid::Header);
        }
        let version = u16::from_le_bytes([bytes[4], bytes[5]]);
        if version != VERSION {
            return Err(Invalid::Version(version));
        }
        if u16::from_le_bytes([bytes[6], bytes[7]]) != BENEATH_ZEROS {
            return Err(Invalid::Header);
        }
        let header = Header {
            file_number: u64_at(bytes, 8),
            sequence: u64_at(bytes, 16),
            unix_ms: u64_at(bytes, 24),
            message_count: u32_at(bytes, 32),
            body_bytes: u32_at(bytes, 36),
            previous_checksum: u32_at(bytes, 40),
            body_checksum: u32_at(bytes, 44),
            checksum,
        };
        if header.padded_bytes() > RECORD_BYTES_MAX { Err(Invalid::Length) } else { Ok(header) }
    }

    pub(crate) fn fits(&self, link: &Link) -> bool {
        (self.file_number, self.sequence, self.previous_checksum) == (link.file_number, link.sequence, link.previous_checksum)
    }

    /// Header and body, without the padding.
    pub(crate) fn record_bytes(&self) -> usize {
        HEADER_BYTES + self.body_bytes as usize
    }

    /// What the record takes in its file.
    pub(crate) fn padded_bytes(&self) -> u64 {
        (HEADER_BYTES as u64 + u64::from(self.body_bytes)).next_multiple_of(RECORD_ALIGNMENT_BYTES)
    }

    /// The record that this is the header of, in bytes that [`check`](Header::check) found right.
    pub(crate) fn trusted(self, bytes: &[u8]) -> Record<'_> {
        Record { header: self, body: bytes.get(HEADER_BYTES..self.record_bytes()).unwrap_or_default() }
    }

    /// Judges the record that this is the header of. `bytes` start with the header and may end early.
    pub(crate) fn check(self, bytes: &[u8]) -> Result<Record<'_>, Invalid> {
        let Some(body) = bytes.get(HEADER_BYTES..self.record_bytes()) else { return Err(Invalid::Length) };
        if crc32c::crc32c(body) != self.body_checksum {
            return Err(Invalid::Body);
        }
        // The writer may be wrong too: a record is not trusted to be well-formed only because its bytes arrived.
        let (mut rest, mut messages) = (body, 0u64);
        while !rest.is_empty() {
            let Some((section, after)) = split_section(rest) else { return Err(Invalid::Sections) };
            messages += u64::from(section.message_count);
            rest = after;
        }
        if messages != u64::from(self.message_count) {
            return Err(Invalid::Sections);
        }
        Ok(Record { header: self, body })
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Invalid::NoRecord => f.write_str("there is no record"),
            Invalid::Header => f.write_str("what stands there is not the header of a record"),
            Invalid::Version(version) => write!(f, "the record has format version {version}"),
            Invalid::OutOfPlace => f.write_str("the record does not follow the one before it"),
            Invalid::Length => f.write_str("the record's length is impossible"),
            Invalid::Body => f.write_str("the record's checksum does not match"),
            Invalid::Sections => f.write_str("the record's sections do not add up"),
        }
    }
}

/// How many bytes the batch's record takes in a file, padding included; `None` when it is more than a record can hold.
pub(crate) fn padded_bytes(batch: &Batch) -> Option<u64> {
    batch.sections.iter().try_fold(0u32, |count, section| count.checked_add(section.message_count))?;
    let sections = batch.sections.iter().map(|section| (SECTION_HEADER_BYTES + section.room.len() + section.lines.len()) as u64);
    let bytes = (HEADER_BYTES as u64 + sections.sum::<u64>()).next_multiple_of(RECORD_ALIGNMENT_BYTES);
    (bytes <= RECORD_BYTES_MAX).then_some(bytes)
}

/// Appends the batch's record to `out`, padding included, and returns its header's checksum: the next record names it.
///
/// The batch must be one for which [`padded_bytes`] returned a length, which keeps every number below in its range.
pub(crate) fn encode(out: &mut Vec<u8>, link: &Link, unix_ms: u64, batch: &Batch) -> u32 {
    let begin = out.len();
    out.resize(begin + HEADER_BYTES, 0);
    let message_count: u32 = batch.sections.iter().map(|section| section.message_count).sum();
    for section in &batch.sections {
        out.extend_from_slice(&(section.room.len() as u32).to_le_bytes());
        out.extend_from_slice(&section.message_count.to_le_bytes());
        out.extend_from_slice(&(section.lines.len() as u32).to_le_bytes());
        out.extend_from_slice(section.room.as_bytes());
        out.extend_from_slice(&section.lines);
    }
    let (header, body) = out[begin..].split_at_mut(HEADER_BYTES);
    header[..4].copy_from_slice(&MAGIC);
    header[4..6].copy_from_slice(&VERSION.to_le_bytes());
    header[6..8].copy_from_slice(&BENEATH_ZEROS.to_le_bytes());
    header[8..16].copy_from_slice(&link.file_number.to_le_bytes());
    header[16..24].copy_from_slice(&link.sequence.to_le_bytes());
    header[24..32].copy_from_slice(&unix_ms.to_le_bytes());
    header[32..36].copy_from_slice(&message_count.to_le_bytes());
    header[36..40].copy_from_slice(&(body.len() as u32).to_le_bytes());
    header[40..44].copy_from_slice(&link.previous_checksum.to_le_bytes());
    header[44..48].copy_from_slice(&crc32c::crc32c(body).to_le_bytes());
    let checksum = seal_header(header);

    let record_bytes = out.len() - begin;
    out.resize(begin + record_bytes.next_multiple_of(RECORD_ALIGNMENT_BYTES as usize), 0);
    checksum
}

/// Gives the header at the start of `bytes` its checksum, and returns it.
pub(crate) fn seal_header(bytes: &mut [u8]) -> u32 {
    let checksum = crc32c::crc32c(&bytes[..HEADER_CHECKSUM_AT]);
    bytes[HEADER_CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
    checksum
}

/// The section at the start of `body` and what follows it; `None` when its lengths do not fit or its room is not text.
fn split_section(body: &[u8]) -> Option<(StoredSection<'_>, &[u8])> {
    let (header, rest) = body.split_first_chunk::<SECTION_HEADER_BYTES>()?;
    let (room, rest) = rest.split_at_checked(u32_at(header, 0) as usize)?;
    let (lines, rest) = rest.split_at_checked(u32_at(header, 8) as usize)?;
    let section = StoredSection { room: str::from_utf8(room).ok()?, message_count: u32_at(header, 4), lines };
    Some((section, rest))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Header of a record, in bytes.
pub(crate) const HEADER_BYTES: usize = 52;

const HEADER_CHECKSUM_AT: usize = 48;
const SECTION_HEADER_BYTES: usize = 12;
/// A character of UTF-8 takes at most four bytes.
const ROOM_NAME_MAX_BYTES: usize = 4 * ROOM_NAME_LEN_MAX_CHARS;

// A batch that no record can hold would be a failure for good: strangers must not be able to fill one.
const _: () = assert!(
    (HEADER_BYTES + BATCH_MAX_BYTES + BATCH_LEN_MAX_ROOMS * (SECTION_HEADER_BYTES + ROOM_NAME_MAX_BYTES)) as u64
        <= RECORD_BYTES_MAX - RECORD_ALIGNMENT_BYTES
);

// A disk writes a header whole or not at all: one that is not right has decayed.
const _: () = assert!(HEADER_BYTES <= SECTOR_BYTES);

const MAGIC: [u8; 4] = *b"\xffRLG";
const VERSION: u16 = 1;
/// Every record is written over zeros, in a new file and in one that is used again: an unfinished write leaves zeros, so it can be told
/// from a record that decayed.
const BENEATH_ZEROS: u16 = 0x5a5a;

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
