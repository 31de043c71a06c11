//! The bytes that a writer has taken and its stream has not.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::rc::Rc;

use crate::config::{SLICES_PER_WRITE, WRITE_BLOCK_LEN, WRITE_COPIED_LEN_MAX};

/// Bytes to be written, in one piece: what [`BufWriter::write`](super::BufWriter::write) takes. Made by `From` of everything that is one.
///
/// Pieces of more than 1 KiB are kept as they are until they have been written: a `Vec` or a `String` is not copied, an `Rc` is only
/// counted, so what goes to a thousand writers is in memory once. Borrowed bytes are copied, and small pieces are gathered.
#[derive(Debug)]
pub struct Chunk<'a>(Kind<'a>);

#[derive(Debug)]
enum Kind<'a> {
    Borrowed(&'a [u8]),
    Owned(Vec<u8>),
    Shared(Rc<[u8]>),
}

impl Chunk<'_> {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match &self.0 {
            Kind::Borrowed(bytes) => bytes,
            Kind::Owned(bytes) => bytes,
            Kind::Shared(bytes) => bytes,
        }
    }
}

impl<'a> From<&'a [u8]> for Chunk<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Chunk(Kind::Borrowed(bytes))
    }
}

impl<'a, const N: usize> From<&'a [u8; N]> for Chunk<'a> {
    fn from(bytes: &'a [u8; N]) -> Self {
        Chunk(Kind::Borrowed(bytes))
    }
}

impl<'a> From<&'a str> for Chunk<'a> {
    fn from(text: &'a str) -> Self {
        Chunk(Kind::Borrowed(text.as_bytes()))
    }
}

impl<'a> From<&'a String> for Chunk<'a> {
    fn from(text: &'a String) -> Self {
        Chunk(Kind::Borrowed(text.as_bytes()))
    }
}

impl<'a> From<&'a Vec<u8>> for Chunk<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Chunk(Kind::Borrowed(bytes))
    }
}

impl From<Vec<u8>> for Chunk<'_> {
    fn from(bytes: Vec<u8>) -> Self {
        Chunk(Kind::Owned(bytes))
    }
}

impl From<String> for Chunk<'_> {
    fn from(text: String) -> Self {
        Chunk(Kind::Owned(text.into_bytes()))
    }
}

impl From<Rc<[u8]>> for Chunk<'_> {
    fn from(bytes: Rc<[u8]>) -> Self {
        Chunk(Kind::Shared(bytes))
    }
}

impl From<Rc<str>> for Chunk<'_> {
    fn from(text: Rc<str>) -> Self {
        Chunk(Kind::Shared(text.into()))
    }
}

/// Pieces in a line. Small ones are gathered in blocks, large ones stay what they are.
#[derive(Default)]
pub(super) struct WriteQueue {
    pieces: VecDeque<Piece>,
    /// So many bytes of the first piece have been written.
    written_len: usize,
    len: usize,
    /// A block that has been written, for the next one.
    spare: Vec<u8>,
}

enum Piece {
    /// Small chunks are appended to it while it is the last piece.
    Owned(Vec<u8>),
    Shared(Rc<[u8]>),
}

impl Piece {
    fn as_slice(&self) -> &[u8] {
        match self {
            Piece::Owned(bytes) => bytes,
            Piece::Shared(bytes) => bytes,
        }
    }
}

impl WriteQueue {
    /// How many bytes have still to be written.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, chunk: Chunk<'_>) {
        let len = chunk.as_slice().len();
        self.len += len;
        match chunk.0 {
            _ if len <= WRITE_COPIED_LEN_MAX => self.gather(chunk.as_slice()),
            Kind::Borrowed(bytes) => self.pieces.push_back(Piece::Owned(bytes.to_vec())),
            Kind::Owned(bytes) => self.pieces.push_back(Piece::Owned(bytes)),
            Kind::Shared(bytes) => self.pieces.push_back(Piece::Shared(bytes)),
        }
    }

    fn gather(&mut self, bytes: &[u8]) {
        match self.pieces.back_mut() {
            Some(Piece::Owned(block)) if block.len() + bytes.len() <= WRITE_BLOCK_LEN => block.extend_from_slice(bytes),
            _ if bytes.is_empty() => {}
            _ => {
                let mut block = std::mem::take(&mut self.spare);
                block.extend_from_slice(bytes);
                self.pieces.push_back(Piece::Owned(block));
            }
        }
    }

    /// The beginning of what has to be written, as much as goes into one call.
    pub(super) fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>; SLICES_PER_WRITE]) -> usize {
        let mut skipped_len = self.written_len;
        for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
            *slice = IoSlice::new(&piece.as_slice()[skipped_len..]);
            skipped_len = 0;
        }
        self.pieces.len().min(SLICES_PER_WRITE)
    }

    /// `len` bytes have been written.
    pub(super) fn advance(&mut self, len: usize) {
        // A stream that says that it has written more than there was is not believed.
        let len = len.min(self.len);
        self.len -= len;
        self.written_len += len;
        while let Some(first) = self.pieces.front()
            && first.as_slice().len() <= self.written_len
        {
            self.written_len -= first.as_slice().len();
            if let Some(Piece::Owned(mut block)) = self.pieces.pop_front()
                && block.capacity() <= WRITE_BLOCK_LEN
            {
                block.clear();
                self.spare = block;
            }
        }
    }

    /// Everything that has not been written, in one piece.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        let all = self.pieces.iter().map(Piece::as_slice).collect::<Vec<_>>().concat();
        all[self.written_len..].to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slices_of(queue: &WriteQueue) -> Vec<Vec<u8>> {
        let mut slices = [IoSlice::new(&[]); SLICES_PER_WRITE];
        let count = queue.slices(&mut slices);
        slices[..count].iter().map(|slice| slice.to_vec()).collect()
    }

    #[test]
    fn small_chunks_are_gathered_up_to_a_block_and_large_ones_are_not_copied() {
        let mut queue = WriteQueue::default();
        let small = vec![1; WRITE_COPIED_LEN_MAX];
        for _ in 0..WRITE_BLOCK_LEN / small.len() {
            queue.push(Chunk::from(small.clone()));
        }
        assert_eq!(slices_of(&queue).len(), 1);
        queue.push(Chunk::from("next block"));
        let shared: Rc<[u8]> = Rc::from(vec![2; WRITE_COPIED_LEN_MAX + 1]);
        queue.push(Chunk::from(shared.clone()));
        let owned = vec![3; WRITE_COPIED_LEN_MAX + 1];
        let address = owned.as_ptr();
        queue.push(Chunk::from(owned));
        queue.push(Chunk::from(""));
        assert_eq!(slices_of(&queue).len(), 4);
        assert_eq!(Rc::strong_count(&shared), 2);
        assert!(queue.pieces.iter().any(|piece| piece.as_slice().as_ptr() == address));
        assert_eq!(queue.len(), WRITE_BLOCK_LEN + 10 + 2 * (WRITE_COPIED_LEN_MAX + 1));
        assert_eq!(queue.into_bytes().len(), WRITE_BLOCK_LEN + 10 + 2 * (WRITE_COPIED_LEN_MAX + 1));
    }

    #[test]
    fn a_call_gets_so_many_pieces_and_goes_on_in_the_middle_of_one() {
        let mut queue = WriteQueue::default();
        let piece = vec![7; WRITE_COPIED_LEN_MAX + 1];
        for _ in 0..=SLICES_PER_WRITE {
            queue.push(Chunk::from(&piece));
        }
        queue.advance(piece.len() + 1);
        let slices = slices_of(&queue);
        assert_eq!(slices.len(), SLICES_PER_WRITE);
        assert_eq!(slices[0].len(), piece.len() - 1);
        assert_eq!(slices.concat().len(), queue.len());
        queue.advance(usize::MAX);
        assert_eq!((queue.len(), slices_of(&queue).len(), queue.written_len), (0, 0, 0));
    }
}
