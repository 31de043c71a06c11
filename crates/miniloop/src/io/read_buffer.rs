//! The bytes that a reader has and its user has not.

/// A queue of bytes in one piece of memory: filled behind, taken in front.
///
/// Bytes are moved to the front only when at least as many have been taken since, so that a byte is moved once on average, whatever the
/// pieces. Memory is at most twice what was unread at a time, and what was asked for.
#[derive(Default)]
pub(super) struct ReadBuffer {
    /// All of it can be written to: it has been zeroed once, when it was allocated.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl ReadBuffer {
    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Place for `len` more bytes. How many of them came is told to [`ReadBuffer::filled`].
    pub(super) fn room(&mut self, len: usize) -> &mut [u8] {
        if self.bytes.len() - self.end < len {
            let unread_len = self.len();
            if self.start >= unread_len {
                self.bytes.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, unread_len);
            }
            if self.bytes.len() - self.end < len {
                self.bytes.resize(self.end + len, 0);
            }
        }
        &mut self.bytes[self.end..self.end + len]
    }

    pub(super) fn filled(&mut self, len: usize) {
        self.end += len;
        debug_assert!(self.end <= self.bytes.len());
    }

    /// Takes `len` bytes out, or all if there are fewer.
    pub(super) fn consume(&mut self, len: usize) {
        self.start += len.min(self.len());
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
        }
    }

    /// The same, and returns them.
    pub(super) fn take(&mut self, len: usize) -> Vec<u8> {
        let taken = self.unread()[..len.min(self.len())].to_vec();
        self.consume(len);
        taken
    }

    /// Gives memory beyond `len` back, if nothing is in it.
    pub(super) fn shrink_to(&mut self, len: usize) {
        if self.is_empty() && self.bytes.capacity() > len {
            self.bytes = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_buffer_gives_back_what_it_needed_for_once() {
        let mut buffer = ReadBuffer::default();
        buffer.room(100);
        buffer.filled(1);
        buffer.shrink_to(50);
        assert_eq!(buffer.take(9), [0], "not while something is in it");
        buffer.shrink_to(50);
        assert_eq!(buffer.bytes.capacity(), 0);
        buffer.room(50);
        buffer.shrink_to(50);
        assert_eq!(buffer.bytes.capacity(), 50, "what it needs again and again stays");
    }

    proptest! {
        #[test]
        fn bytes_come_out_as_they_went_in(steps in prop::collection::vec((0..50_usize, 0..50_usize, 0..60_usize), 0..200)) {
            let (mut buffer, mut model, mut next, mut peak_len) = (ReadBuffer::default(), Vec::new(), 0_u8, 0);
            for (asked, came, taken) in steps {
                let came = came.min(asked);
                for place in &mut buffer.room(asked)[..came] {
                    *place = next;
                    model.push(next);
                    next = next.wrapping_add(1);
                }
                buffer.filled(came);
                prop_assert_eq!(buffer.unread(), &model[..]);
                peak_len = peak_len.max(model.len());
                prop_assert!(buffer.bytes.len() <= 2 * peak_len + 50, "{} bytes for {peak_len}", buffer.bytes.len());
                let taken = taken.min(model.len());
                prop_assert_eq!(buffer.take(taken), model.drain(..taken).collect::<Vec<_>>());
            }
        }
    }
}
