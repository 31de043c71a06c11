//! What is queued for one client: slices of buffers that it shares with others, first in, first out.
//!
//! A message costs a member one entry per commit, however many messages that commit holds, and as many refusals in a row cost one, too.
//! Three sums are kept: everything that is queued; the part that counts toward the client's limit, which is at most the last
//! [`RELEASE_BYTES`] of each buffer (see there); and the repeated part, which keeps no memory. Knows nothing of the limits that the sums
//! are for, nor of the kernel. Next: `tail.rs`.

use alloc::{collections::VecDeque, rc::Rc, vec::Vec};
use core::iter;

use crate::limits::{IDLE_QUEUE_CAPACITY_MAX, RELEASE_BYTES};

/// A queue of bytes on their way to one client.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    shares: VecDeque<Share>,
    /// All bytes of `shares`.
    len_bytes: usize,
    /// Those that count toward the client's limit.
    counted_bytes: usize,
    /// Those of [`Buffer::Repeated`].
    repeated_bytes: usize,
}

/// A slice of a buffer that others may share.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    buffer: Buffer,
    /// Buffers are a commit long, and what is repeated for each message of one a few times that.
    start: u32,
    end: u32,
}

#[derive(Clone, Debug)]
enum Buffer {
    Fixed(&'static str),
    /// Without an end: behind its last byte comes its first.
    Repeated(&'static [u8]),
    /// `Rc<Vec>`, not `Rc<[u8]>`: the buffer that messages were collected in is shared as it is, without a copy.
    Shared(Rc<Vec<u8>>),
}

impl Outbox {
    #[inline]
    pub(crate) fn push(&mut self, share: Share) {
        if share.len() == 0 {
            return;
        }
        self.len_bytes += share.len();
        self.counted_bytes += share.counted();
        self.repeated_bytes += share.repeated_len();
        self.shares.push_back(share);
    }

    /// What the next write should hold: at most [`RELEASE_BYTES`].
    pub(crate) fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let mut left_bytes = RELEASE_BYTES;
        self.shares.iter().flat_map(Share::slices).map_while(move |bytes| {
            let bytes = &bytes[..bytes.len().min(left_bytes)];
            left_bytes -= bytes.len();
            (!bytes.is_empty()).then_some(bytes)
        })
    }

    /// Drops the first `len_bytes`, which the kernel took.
    pub(crate) fn consume(&mut self, len_bytes: usize) {
        let mut left_bytes = len_bytes.min(self.len_bytes);
        self.len_bytes -= left_bytes;
        while left_bytes > 0 {
            let Some(first) = self.shares.front_mut() else { break };
            self.counted_bytes -= first.counted();
            self.repeated_bytes -= first.repeated_len();
            if left_bytes < first.len() {
                first.start += left_bytes as u32;
                self.counted_bytes += first.counted();
                self.repeated_bytes += first.repeated_len();
                return;
            }
            left_bytes -= first.len();
            self.shares.pop_front();
        }
        if self.shares.is_empty() && self.shares.capacity() > IDLE_QUEUE_CAPACITY_MAX {
            self.shares = VecDeque::new();
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Outbox::default();
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.shares.is_empty()
    }

    #[inline]
    pub(crate) fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    #[inline]
    pub(crate) fn counted_bytes(&self) -> usize {
        self.counted_bytes
    }

    #[inline]
    pub(crate) fn repeated_bytes(&self) -> usize {
        self.repeated_bytes
    }
}

impl Share {
    /// A part of a buffer, or less where the buffer is shorter.
    #[inline]
    pub(crate) fn new(buffer: &Rc<Vec<u8>>, range: core::ops::Range<u32>) -> Share {
        let end = range.end.min(buffer.len() as u32);
        Share { buffer: Buffer::Shared(Rc::clone(buffer)), start: range.start.min(end), end }
    }

    #[inline]
    pub(crate) fn whole(buffer: &Rc<Vec<u8>>) -> Share {
        Share::new(buffer, 0..buffer.len() as u32)
    }

    /// The beginning of `block` repeated without end.
    pub(crate) fn repeated(block: &'static [u8], len_bytes: usize) -> Share {
        Share { buffer: Buffer::Repeated(block), start: 0, end: len_bytes as u32 }
    }

    /// One slice, or one for each time that a repeated buffer begins again.
    fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let buffer = self.buffer.bytes();
        let (mut start, end) = (self.start as usize, self.end as usize);
        iter::from_fn(move || {
            let left_bytes = end - start;
            if left_bytes == 0 {
                return None;
            }
            let from = start % buffer.len();
            let slice = &buffer[from..buffer.len().min(from + left_bytes)];
            start += slice.len();
            Some(slice)
        })
    }

    #[inline]
    fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// The bytes that count toward the limit: those within the last [`RELEASE_BYTES`] of the buffer. Defined by the buffer, not by the
    /// share, so that the pieces of a buffer that was cut up together count no more than the whole.
    #[inline]
    fn counted(&self) -> usize {
        if let Buffer::Repeated(_) = self.buffer {
            return 0;
        }
        let counted_from = self.buffer.bytes().len().saturating_sub(RELEASE_BYTES);
        (self.end as usize).saturating_sub(counted_from.max(self.start as usize))
    }

    #[inline]
    fn repeated_len(&self) -> usize {
        if let Buffer::Repeated(_) = self.buffer { self.len() } else { 0 }
    }
}

impl From<&'static str> for Share {
    fn from(line: &'static str) -> Share {
        Share { buffer: Buffer::Fixed(line), start: 0, end: line.len() as u32 }
    }
}

impl Buffer {
    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Buffer::Fixed(line) => line.as_bytes(),
            Buffer::Repeated(block) => block,
            Buffer::Shared(buffer) => buffer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(len_bytes: usize) -> Rc<Vec<u8>> {
        Rc::new((0..len_bytes).map(|at| at as u8).collect())
    }

    #[track_caller]
    fn check(outbox: &Outbox, len_bytes: usize, counted_bytes: usize) {
        assert_eq!((outbox.len_bytes(), outbox.counted_bytes()), (len_bytes, counted_bytes));
        assert_eq!(outbox.is_empty(), len_bytes == 0);
    }

    #[test]
    fn bytes_leave_in_order_whatever_the_kernel_takes_at_a_time() {
        for step in [1, 2, 3, 7, 100] {
            let mut outbox = Outbox::default();
            let shared = buffer(10);
            outbox.push("abc".into());
            outbox.push(Share::new(&shared, 2..5));
            outbox.push(Share::new(&shared, 5..5));
            outbox.push(Share::new(&shared, 5..10));
            let mut taken = Vec::new();
            while !outbox.is_empty() {
                let next: Vec<u8> = outbox.slices().flatten().copied().take(step).collect();
                outbox.consume(next.len());
                taken.extend(next);
            }
            assert_eq!(taken, b"abc\x02\x03\x04\x05\x06\x07\x08\x09", "in steps of {step}");
            check(&outbox, 0, 0);
        }
    }

    #[test]
    fn a_large_buffer_is_released_in_pieces_and_only_its_last_piece_counts() {
        let mut outbox = Outbox::default();
        let len = 3 * RELEASE_BYTES + 5;
        outbox.push("PING\n".into());
        outbox.push(Share::whole(&buffer(len)));
        check(&outbox, len + 5, RELEASE_BYTES + 5);
        let sizes: Vec<usize> = outbox.slices().map(<[u8]>::len).collect();
        assert_eq!(sizes, [5, RELEASE_BYTES - 5]);
        outbox.consume(RELEASE_BYTES);
        check(&outbox, len + 5 - RELEASE_BYTES, RELEASE_BYTES);
        outbox.consume(2 * RELEASE_BYTES);
        check(&outbox, 10, 10);
    }

    #[test]
    fn the_pieces_of_a_buffer_count_as_the_whole_does() {
        let mut outbox = Outbox::default();
        let len = 3 * RELEASE_BYTES as u32;
        let shared = buffer(len as usize);
        for start in (0..len).step_by(1000) {
            outbox.push(Share::new(&shared, start..start + 1000));
        }
        check(&outbox, len as usize, RELEASE_BYTES);
    }

    #[test]
    fn what_is_repeated_goes_round_keeps_its_place_and_does_not_count() {
        for step in [1, 2, 3, 7, 100] {
            let mut outbox = Outbox::default();
            outbox.push("ab".into());
            outbox.push(Share::repeated(b"12345", 0));
            outbox.push(Share::repeated(b"12345", 13));
            outbox.push(Share::repeated(b"678", 2));
            let mut taken = Vec::new();
            while !outbox.is_empty() {
                let next: Vec<u8> = outbox.slices().flatten().copied().take(step).collect();
                outbox.consume(next.len());
                taken.extend(next);
                check(&outbox, 17 - taken.len(), 2_usize.saturating_sub(taken.len()));
                assert_eq!(outbox.repeated_bytes(), outbox.len_bytes() - outbox.counted_bytes());
            }
            assert_eq!(taken, b"ab123451234512367", "in steps of {step}");
        }
    }

    #[test]
    fn an_outbox_that_was_large_gives_its_memory_back() {
        let mut outbox = Outbox::default();
        for _ in 0..100 {
            outbox.push("PING\n".into());
        }
        outbox.consume(usize::MAX);
        assert_eq!(outbox.shares.capacity(), 0);
    }
}
