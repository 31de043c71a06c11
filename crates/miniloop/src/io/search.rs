//! Finding separators in bytes.

use std::ops::Range;

/// Where `byte` stands first.
pub(super) fn find_byte(byte: u8, bytes: &[u8]) -> Option<usize> {
    // A whole block is compared without a branch, which compilers turn into vector instructions; only one that has it is looked at closely.
    let blocks = bytes.chunks(BLOCK_LEN);
    let (index, block) = blocks.enumerate().find(|(_, block)| block.iter().fold(false, |found, each| found | (*each == byte)))?;
    Some(index * BLOCK_LEN + block.iter().position(|each| *each == byte)?)
}

/// The separator that ends first, among those that begin at `from` or later. So it does not depend on the pieces in which bytes came.
pub(super) fn find_first<S: AsRef<[u8]>>(separators: &[S], bytes: &[u8], from: usize) -> Option<Range<usize>> {
    let found = separators.iter().filter_map(|separator| find(separator.as_ref(), bytes, from));
    found.min_by_key(|range| (range.end, range.start))
}

fn find(separator: &[u8], bytes: &[u8], mut from: usize) -> Option<Range<usize>> {
    let (first, rest) = separator.split_first()?;
    loop {
        let start = from + find_byte(*first, bytes.get(from..)?)?;
        if bytes[start + 1..].starts_with(rest) {
            return Some(start..start + separator.len());
        }
        from = start + 1;
    }
}

const BLOCK_LEN: usize = 32;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_separator_that_ends_first_is_found(
            separators in prop::collection::vec("[abc]{1,3}", 1..4),
            bytes in "[abcd]{0,80}",
            from in 0..90_usize,
        ) {
            let ends = |end: &usize| separators.iter().any(|separator| {
                bytes[..*end].ends_with(separator) && end - separator.len() >= from
            });
            let expected = (0..=bytes.len()).find(ends);
            prop_assert_eq!(find_first(&separators, bytes.as_bytes(), from).map(|range| range.end), expected);
        }

        #[test]
        fn a_byte_is_found_where_it_stands_first(bytes in prop::collection::vec(0..5_u8, 0..200)) {
            prop_assert_eq!(find_byte(4, &bytes), bytes.iter().position(|byte| *byte == 4));
        }
    }
}
