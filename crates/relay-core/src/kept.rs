//! Input of one connection that was not parsed yet: an unfinished line, or, while the connection is paused, whole lines too.
//!
//! It is parsed in steps, and a client can make them tiny: it takes a hundred bytes of its answers, or may send one message more. So what
//! was parsed is only marked, and moved away when it is half of all: each byte is moved about once, not 64 KiB for each step. Knows no
//! lines. Next: `reply.rs`.

use alloc::vec::Vec;

/// Bytes that are put in at the end and taken from the front. Without any it owns no memory.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    buffer: Vec<u8>,
    /// How much of `buffer` was parsed.
    parsed_len: usize,
}

impl Kept {
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.parsed_len..]
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.buffer.len() - self.parsed_len
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Drops the first `len` bytes.
    pub(crate) fn consume(&mut self, len: usize) {
        self.parsed_len += len;
        if self.parsed_len >= self.len() {
            // Into a buffer of its own size: what is left may be the beginning of a line for which an idle client takes its time.
            *self = Kept { buffer: self.bytes().to_vec(), parsed_len: 0 };
        }
    }

    /// The memory that it owns, in bytes.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.buffer.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_order_and_memory_goes_with_them() {
        let bytes: Vec<u8> = (0..=255).collect();
        for step in [1, 2, 100, 127, 128, 129, 256] {
            let mut kept = Kept::default();
            kept.extend(&bytes[..200]);
            kept.extend(&bytes[200..]);
            let mut left = &bytes[..];
            while !left.is_empty() {
                let len = step.min(left.len());
                left = &left[len..];
                kept.consume(len);
                assert_eq!((kept.bytes(), kept.len(), kept.is_empty()), (left, left.len(), left.is_empty()));
                let capacity_max = if left.len() > 128 { 400 } else { 2 * left.len() };
                assert!(kept.capacity() <= capacity_max, "{} bytes for {}", kept.capacity(), left.len());
            }
        }
    }

    #[test]
    fn what_is_left_is_not_moved_at_every_step() {
        let mut kept = Kept::default();
        kept.extend(&[0; 1024]);
        let moves = (0..1024).filter(|_| {
            let place = kept.bytes().as_ptr();
            kept.consume(1);
            !kept.is_empty() && kept.bytes().as_ptr() != place.wrapping_add(1)
        });
        assert!(moves.count() <= 10);
    }
}
