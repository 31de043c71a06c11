//! Rows of history.db as they stand on its pages, found without its trees: what is left when a page is damaged through which others are
//! found.
//!
//! Pure: pages in, rows out, and whatever bytes the pages hold, an answer. A page's seal is not asked for: every row that is returned has
//! the shape of one of ours and a checksum over what it says, so a damaged page costs the rows that are damaged and not its others, and one
//! that another program wrote costs nothing. Pages that SQLite has freed may hold rows as they once were; who sorts that out is
//! `scattered.rs`, the next one. Holds one row.
//!
//! The format is <https://sqlite.org/fileformat2.html>, with pages of 4096 bytes of which the last 8 are ours:
//!
//! ```text
//! page      header (behind the file's header on page 1), places of its cells, .., cells
//! cell      length of the record, row id, the record, or its start and the number of the page where it goes on
//! overflow  number of the next page, more of the record
//! record    length of this header, a type for each column, .., the columns
//! ```

use crate::storage::{
    history::{PAGE_BYTES, Segment, Stored, position_checksum, segment_columns},
    limits::ROW_BYTES_MAX,
    position::LogPosition,
};

/// A page by its number, counted from 1; `None` when there is none.
pub(crate) type Pages<'a> = dyn FnMut(u32) -> Option<Vec<u8>> + 'a;

/// A row of one of our tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found {
    Segment(Stored),
    Folded(LogPosition),
}

/// How many cells a page has; 0 when it is no leaf of a table.
pub(crate) fn cell_count(page: &[u8], number: u32) -> u16 {
    let header = header_bytes(number);
    match page.get(header..header + LEAF_HEADER_BYTES) {
        Some([LEAF_OF_TABLE, _, _, high, low, ..]) => u16::from_be_bytes([*high, *low]).min(CELLS_MAX),
        _ => 0,
    }
}

/// The row in a cell of this page. `None` if it is none of ours, or damaged.
pub(crate) fn row(page: &[u8], number: u32, cell: u16, pages: &mut Pages<'_>) -> Option<Found> {
    let pointer = header_bytes(number) + LEAF_HEADER_BYTES + 2 * usize::from(cell);
    let start = usize::from(u16::from_be_bytes(*page.get(pointer..)?.first_chunk()?));
    let mut rest = page.get(start..USABLE_BYTES)?;
    let record_bytes = usize::try_from(varint(&mut rest)?).ok().filter(|bytes| *bytes <= ROW_BYTES_MAX)?;
    let id = varint(&mut rest)?.cast_signed();
    let local_bytes = local_bytes(record_bytes);
    let local = rest.get(..local_bytes)?;
    // Before its pages are read: the header of ours is short, and always on the first one.
    let (columns, header_bytes) = columns(local, record_bytes)?;
    let mut record = local.to_vec();
    if local_bytes < record_bytes {
        let mut next = u32::from_be_bytes(*rest.get(local_bytes..)?.first_chunk()?);
        while record.len() < record_bytes {
            let page = pages(next)?;
            let content = page.get(4..USABLE_BYTES)?;
            record.extend_from_slice(&content[..content.len().min(record_bytes - record.len())]);
            next = u32::from_be_bytes(*page.first_chunk()?);
        }
    }
    found(id, &columns, record.get(header_bytes..)?)
}

/// A column's type, as the record's header says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    /// The row id, which stands before the record.
    Null,
    Zero,
    One,
    /// Of so many bytes.
    Integer(usize),
    Blob(usize),
    Text(usize),
}

impl Column {
    fn of(serial_type: u64) -> Option<Column> {
        Some(match serial_type {
            0 => Column::Null,
            1..=4 => Column::Integer(serial_type as usize),
            5 => Column::Integer(6),
            6 => Column::Integer(8),
            8 => Column::Zero,
            9 => Column::One,
            12.. => {
                let bytes = usize::try_from((serial_type - 12) / 2).ok()?;
                if serial_type.is_multiple_of(2) { Column::Blob(bytes) } else { Column::Text(bytes) }
            }
            _ => return None,
        })
    }

    fn bytes(self) -> usize {
        match self {
            Column::Null | Column::Zero | Column::One => 0,
            Column::Integer(bytes) | Column::Blob(bytes) | Column::Text(bytes) => bytes,
        }
    }

    fn is_integer(self) -> bool {
        matches!(self, Column::Zero | Column::One | Column::Integer(_))
    }
}

/// The columns of a record and the length of its header, if it is as long as they are and they are those of one of our tables.
fn columns(record: &[u8], record_bytes: usize) -> Option<(Vec<Column>, usize)> {
    let mut rest = record;
    let header_bytes = usize::try_from(varint(&mut rest)?).ok()?;
    let mut types = record.get(record.len() - rest.len()..header_bytes)?;
    let mut columns = Vec::with_capacity(SEGMENT_COLUMNS);
    while !types.is_empty() {
        if columns.len() == SEGMENT_COLUMNS {
            return None;
        }
        columns.push(Column::of(varint(&mut types)?)?);
    }
    let all_bytes = columns.iter().try_fold(header_bytes, |sum, column| sum.checked_add(column.bytes()))?;
    let is_ours = match columns[..] {
        [Column::Null, Column::Text(_), ref integers @ .., Column::Blob(_), Column::Text(_)] => {
            columns.len() == SEGMENT_COLUMNS && integers.iter().all(|column| column.is_integer())
        }
        ref integers => integers.len() == FOLDED_COLUMNS && integers.iter().all(|column| column.is_integer()),
    };
    (is_ours && all_bytes == record_bytes).then_some((columns, header_bytes))
}

/// What the columns say, if that is right.
fn found(id: i64, columns: &[Column], mut values: &[u8]) -> Option<Found> {
    let mut parts = Vec::with_capacity(columns.len());
    for column in columns {
        let (value, rest) = values.split_at_checked(column.bytes())?;
        parts.push((*column, value));
        values = rest;
    }
    match parts[..] {
        [_, (_, room), ref integers @ .., (_, runs), (_, lines)] if parts.len() == SEGMENT_COLUMNS => {
            let integers: Vec<i64> = integers.iter().map(|(column, bytes)| integer(*column, bytes)).collect();
            let first_number = u64::try_from(*integers.first()?).ok()?;
            let room = str::from_utf8(room).ok()?.to_owned();
            let segment = Segment { room, first_number, runs: Segment::decode_runs(runs)?, lines: lines.to_vec() };
            let (checksum, repeated) = integers.split_last()?;
            let is_right = i64::from(segment.checksum()) == *checksum && segment.check().is_ok() && segment_columns(&segment) == repeated;
            is_right.then_some(Found::Segment(Stored { row: id, segment }))
        }
        ref integers => {
            let number = |at: usize| integers.get(at).map(|(column, bytes)| integer(*column, bytes));
            let position = LogPosition {
                sequence: number(0)?.try_into().ok()?,
                checksum: number(1)?.try_into().ok()?,
                file_number: number(2)?.try_into().ok()?,
                offset: number(3)?.try_into().ok()?,
            };
            (number(4)? == i64::from(position_checksum(&position))).then_some(Found::Folded(position))
        }
    }
}

fn integer(column: Column, bytes: &[u8]) -> i64 {
    let sign = if bytes.first().is_some_and(|byte| *byte >= 0x80) { -1 } else { 0 };
    match column {
        Column::One => 1,
        _ => bytes.iter().fold(sign, |value: i64, byte| value << 8 | i64::from(*byte)),
    }
}

/// Takes a number of up to nine bytes, of which all but the ninth carry seven bits.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for length in 1..=9 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if length == 9 {
            return Some(value << 8 | u64::from(*byte));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if *byte < 0x80 {
            break;
        }
    }
    Some(value)
}

/// How much of a record stands in its cell.
fn local_bytes(record_bytes: usize) -> usize {
    if record_bytes <= LOCAL_BYTES_MAX {
        return record_bytes;
    }
    // What goes elsewhere fills whole pages, if as much as is left then may stand here.
    let bytes = LOCAL_BYTES_MIN + (record_bytes - LOCAL_BYTES_MIN) % (USABLE_BYTES - 4);
    if bytes <= LOCAL_BYTES_MAX { bytes } else { LOCAL_BYTES_MIN }
}

fn header_bytes(number: u32) -> usize {
    if number == 1 { FILE_HEADER_BYTES } else { 0 }
}

/// What SQLite uses of a page.
const USABLE_BYTES: usize = PAGE_BYTES - 8;

const FILE_HEADER_BYTES: usize = 100;

const LEAF_HEADER_BYTES: usize = 8;

const LEAF_OF_TABLE: u8 = 0x0d;

/// Each takes two bytes for its place at least.
const CELLS_MAX: u16 = (USABLE_BYTES / 2) as u16;

const LOCAL_BYTES_MAX: usize = USABLE_BYTES - 35;

const LOCAL_BYTES_MIN: usize = (USABLE_BYTES - 12) * 32 / 255 - 23;

/// Id, room, nine integers, runs and lines.
const SEGMENT_COLUMNS: usize = 13;

const FOLDED_COLUMNS: usize = 5;

#[cfg(test)]
#[path = "page_scan_tests.rs"]
mod tests;
