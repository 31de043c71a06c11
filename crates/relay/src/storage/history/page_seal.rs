//! The seal on each page of history.db: a checksum over its number and content, in bytes that SQLite leaves to us.
//!
//! SQLite keeps the last 8 bytes of every page free when the file says so; its own check of a page is whether it can be understood. The
//! seal turns a flipped byte, a page in another's place and a page that was never written into an error of the read. Pure, and about a
//! quarter of a microsecond for each page. Next: `file_lock.rs`.
//!
//! ```text
//! 0 .. 4088   content
//!    .. 4092  CRC-32C over the page's number (little-endian) and the content, little-endian
//!    .. 4096  "rls1"
//! ```

/// A page of history.db.
pub(crate) const PAGE_BYTES: usize = 4096;

/// What SQLite leaves free at the end of each, as the file's first page says.
pub(crate) const SEAL_BYTES: usize = 8;

pub(crate) type Page = [u8; PAGE_BYTES];

/// Why a page is not what was once written in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsealed {
    /// It is all zeros: never written, or lost.
    Empty,
    /// No seal was ever there, so another program wrote it.
    Foreign,
    /// The checksum is another.
    Wrong,
}

/// Seals the page that is the file's `number`th, counted from 1.
pub(crate) fn seal(page: &mut Page, number: u32) {
    let checksum = checksum(page, number);
    page[CONTENT_BYTES..][..4].copy_from_slice(&checksum.to_le_bytes());
    page[CONTENT_BYTES + 4..].copy_from_slice(&TAG);
}

/// Whether the page is as it was when it was sealed with this number.
pub(crate) fn check(page: &Page, number: u32) -> Result<(), Unsealed> {
    let (content, seal) = page.split_at(CONTENT_BYTES);
    if seal[..4] == checksum(page, number).to_le_bytes() && seal[4..] == TAG {
        Ok(())
    } else if seal[4..] == TAG {
        Err(Unsealed::Wrong)
    } else if content.iter().chain(seal).all(|byte| *byte == 0) {
        Err(Unsealed::Empty)
    } else {
        Err(Unsealed::Foreign)
    }
}

/// The same for whoever looks at all pages of a file, not at those that SQLite asks for. A page of zeros is in order there: SQLite took it
/// and gave it back in one transaction, or it is the one that the locks are on. Where a page is needed, its reader finds the zeros.
pub(crate) fn check_unasked(page: &Page, number: u32) -> Result<(), Unsealed> {
    check(page, number).or_else(|unsealed| if unsealed == Unsealed::Empty { Ok(()) } else { Err(unsealed) })
}

impl Unsealed {
    /// As the end of a sentence about the page.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Unsealed::Empty => "it is all zeros",
            Unsealed::Foreign => "it lacks the seal of relay's pages: another program wrote it, or it is damaged at its end",
            Unsealed::Wrong => "its checksum does not match",
        }
    }
}

fn checksum(page: &Page, number: u32) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), &page[..CONTENT_BYTES])
}

const CONTENT_BYTES: usize = PAGE_BYTES - SEAL_BYTES;

/// Makes a page of zeros differ from one that was sealed, whatever its checksum.
const TAG: [u8; 4] = *b"rls1";

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(number: u32) -> Page {
        let mut page = std::array::from_fn(|index| (index * 7 % 251) as u8);
        seal(&mut page, number);
        page
    }

    #[test]
    fn a_page_is_right_in_its_own_place_only() {
        assert_eq!(check(&sealed(7), 7), Ok(()));
        assert_eq!(check(&sealed(7), 8), Err(Unsealed::Wrong));
    }

    #[test]
    fn every_changed_byte_breaks_the_seal() {
        for index in 0..PAGE_BYTES {
            for flipped in [1, 0x80, 0xff] {
                let mut page = sealed(7);
                page[index] ^= flipped;
                assert_ne!(check(&page, 7), Ok(()), "byte {index} is changed by {flipped:#x}");
            }
        }
    }

    #[test]
    fn a_page_that_was_never_sealed_says_so() {
        assert_eq!(check(&[0; PAGE_BYTES], 7), Err(Unsealed::Empty));
        assert_eq!(check_unasked(&[0; PAGE_BYTES], 7), Ok(()));
        assert_eq!(check_unasked(&[1; PAGE_BYTES], 7), Err(Unsealed::Foreign));
        assert_eq!(check(&[1; PAGE_BYTES], 7), Err(Unsealed::Foreign));
    }

    #[test]
    fn sealing_again_after_a_change_is_as_good_as_the_first_time() {
        let mut page = sealed(7);
        page[9] = 77;
        seal(&mut page, 9);
        assert_eq!(check(&page, 9), Ok(()));
    }
}
