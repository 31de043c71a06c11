//! An open file.

use std::fmt;
use std::fs::{self, Metadata};
use std::future::poll_fn;
use std::io::{self, SeekFrom};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_io::{AsyncRead, AsyncSeek, AsyncWrite};

use super::file_jobs::{Buffer, Cursor, Operation, log_unread};
use super::job::off_the_loop;
use crate::config::FILE_BUFFER_LEN;
use crate::engine::context;

/// An open file. The traits of `futures-io` read, write and seek at its cursor; [`read_at`](File::read_at) and
/// [`write_all_at`](File::write_all_at) leave that alone.
///
/// ```
/// use futures_util::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};
/// use miniloop::fs::{File, OpenOptions};
/// use std::io::SeekFrom;
///
/// miniloop::run(async {
///     # let path = std::env::temp_dir().join(format!("miniloop-file-{}", std::process::id()));
///     let mut file = OpenOptions::new().read(true).write(true).create(true).open(&path).await?;
///     file.write_all(b"hello").await?;
///     file.sync_data().await?; // what was written survives a power cut from here on
///
///     file.seek(SeekFrom::Start(1)).await?;
///     let mut text = String::new();
///     file.read_to_string(&mut text).await?;
///     assert_eq!(text, "ello");
///     # miniloop::fs::remove_file(&path).await?;
///     Ok::<(), std::io::Error>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Writing
/// A write is done when its bytes have been copied, at most 256 KiB of them; they are written meanwhile. What goes wrong then is the error
/// of the next write, or of `flush`, `close`, or any method that waits for them: do not drop a file without one of these. If you do, its
/// bytes are still written, and an error is logged.
///
/// # Cancellation
/// A read that is dropped leaves what it brings to the next one. A seek that is dropped may have moved the cursor.
pub struct File {
    file: Arc<fs::File>,
    cursor: Cursor,
    /// Of a write that was done already for its caller.
    failure: Option<io::Error>,
}

impl File {
    /// Opens a file for reading. For anything else there is [`OpenOptions`](super::OpenOptions).
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Cancellation
    /// A file that is opened too late is closed again.
    pub async fn open(path: impl AsRef<Path>) -> io::Result<File> {
        let path = path.as_ref().to_owned();
        off_the_loop(move || fs::File::open(path)).await.map(File::from_std)
    }

    /// Opens a file for writing, made new or emptied.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Cancellation
    /// As [`open`](File::open). The file may have been emptied.
    pub async fn create(path: impl AsRef<Path>) -> io::Result<File> {
        let path = path.as_ref().to_owned();
        off_the_loop(move || fs::File::create(path)).await.map(File::from_std)
    }

    /// Takes over a file of the standard library.
    pub fn from_std(file: fs::File) -> File {
        File { file: Arc::new(file), cursor: Cursor::Idle(Buffer::default()), failure: None }
    }

    /// Waits for what was written, and hands the file to the standard library, its cursor where reading and writing have come to.
    ///
    /// # Errors
    /// That of a write, or of moving the cursor. The file is closed.
    ///
    /// # Cancellation
    /// The file is closed. What was written is still written.
    pub async fn into_std(mut self) -> io::Result<fs::File> {
        self.settle().await?;
        let file = self.file.clone();
        drop(self);
        // A call whose future was dropped may still have it.
        Arc::try_unwrap(file).or_else(|shared| shared.try_clone())
    }

    /// Waits until everything that was written, and what the system knows of the file, is on the disk.
    ///
    /// # Errors
    /// That of a write, and what the system says. Afterwards nobody knows what is on the disk: a second try that succeeds proves nothing.
    ///
    /// # Cancellation
    /// Nobody knows what is on the disk. What was written is still written.
    #[doc(alias = "fsync")]
    pub async fn sync_all(&mut self) -> io::Result<()> {
        self.after_writes(fs::File::sync_all).await
    }

    /// Waits until everything that was written is on the disk, without the times of the file. This is what a log needs.
    ///
    /// # Errors
    /// As [`sync_all`](File::sync_all).
    ///
    /// # Cancellation
    /// As [`sync_all`](File::sync_all).
    #[doc(alias = "fdatasync")]
    pub async fn sync_data(&mut self) -> io::Result<()> {
        self.after_writes(fs::File::sync_data).await
    }

    /// Cuts the file off at a length, or fills it up with zeros.
    ///
    /// # Errors
    /// That of a write, and what the system says.
    ///
    /// # Cancellation
    /// If it has begun it happens, perhaps only after what you do next.
    #[doc(alias = "truncate")]
    pub async fn set_len(&mut self, len: u64) -> io::Result<()> {
        // What was read ahead may be cut off.
        self.settle().await?;
        self.after_writes(move |file| file.set_len(len)).await
    }

    /// What the system knows of the file, after what was written.
    ///
    /// # Errors
    /// That of a write, and what the system says.
    ///
    /// # Cancellation
    /// Nothing is lost.
    #[doc(alias = "fstat")]
    pub async fn metadata(&mut self) -> io::Result<Metadata> {
        self.after_writes(fs::File::metadata).await
    }

    /// Reads `len` bytes at a place, or as many as there are before the end. Any number of these may run at a time. Bytes that were written
    /// to the cursor are there after a `flush`.
    ///
    /// ```
    /// # miniloop::run(async {
    /// let file = miniloop::fs::File::open(std::env::current_exe()?).await?;
    /// assert_eq!(file.read_at(3, 1).await?, b"ELF");
    /// # Ok::<(), std::io::Error>(())
    /// # })??;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Cancellation
    /// Nothing is lost.
    #[doc(alias = "pread")]
    pub async fn read_at(&self, len: usize, offset: u64) -> io::Result<Vec<u8>> {
        let file = self.file.clone();
        off_the_loop(move || {
            let mut bytes = Vec::new();
            while bytes.len() < len {
                // More than usual only for a file that has given as much already: what is not there gets no memory.
                let read_len = bytes.len();
                let asked_len = (len - read_len).min(read_len.max(FILE_BUFFER_LEN));
                bytes.try_reserve_exact(asked_len)?;
                bytes.resize(read_len + asked_len, 0);
                let result = file.read_at(&mut bytes[read_len..], offset.saturating_add(read_len as u64));
                bytes.truncate(read_len + result.as_ref().map_or(0, |more_len| *more_len));
                match result {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(bytes)
        })
        .await
    }

    /// Writes all of the bytes at a place.
    ///
    /// ```
    /// # miniloop::run(async {
    /// # let path = std::env::temp_dir().join(format!("miniloop-write-at-{}", std::process::id()));
    /// let file = miniloop::fs::File::create(&path).await?;
    /// file.write_all_at("world", 6).await?;
    /// file.write_all_at("hello ", 0).await?;
    /// assert_eq!(miniloop::fs::read(&path).await?, b"hello world");
    /// # miniloop::fs::remove_file(&path).await?;
    /// # Ok::<(), std::io::Error>(())
    /// # })??;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// What the system says. A part may have been written.
    ///
    /// # Cancellation
    /// If it has begun it happens, perhaps only after what you do next.
    #[doc(alias = "pwrite")]
    pub async fn write_all_at(&self, bytes: impl Into<Vec<u8>>, offset: u64) -> io::Result<()> {
        let (file, bytes) = (self.file.clone(), bytes.into());
        off_the_loop(move || file.write_all_at(&bytes, offset)).await
    }

    async fn after_writes<R: Send + 'static>(&mut self, call: impl FnOnce(&fs::File) -> io::Result<R> + Send + 'static) -> io::Result<R> {
        poll_fn(|cx| Pin::new(&mut *self).poll_flush(cx)).await?;
        let file = self.file.clone();
        off_the_loop(move || call(&file)).await
    }

    /// Waits for what was written, and gives back what was read ahead.
    async fn settle(&mut self) -> io::Result<()> {
        poll_fn(|cx| Pin::new(&mut *self).poll_flush(cx)).await?;
        if self.cursor.buffer().unread_len() > 0 {
            poll_fn(|cx| Pin::new(&mut *self).poll_seek(cx, SeekFrom::Current(0))).await?;
        }
        Ok(())
    }

    /// Waits for the job that is under way. The error of a write is kept for whoever writes or flushes next.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Option<(Operation, io::Result<u64>)>> {
        match ready!(self.cursor.poll_idle(cx)) {
            Some((Operation::Write { .. }, Err(error))) => {
                self.failure.get_or_insert(error);
                Poll::Ready(None)
            }
            finished => Poll::Ready(finished),
        }
    }
}

impl AsyncRead for File {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        if buffer.is_empty() {
            return context::poll_at_once(cx).map(|()| Ok(0));
        }
        ready!(context::poll_budget(cx));
        loop {
            match ready!(self.poll_idle(cx)) {
                Some((Operation::Read { .. }, Err(error))) => return Poll::Ready(Err(error)),
                Some((Operation::Read { .. }, Ok(0))) => return Poll::Ready(Ok(0)),
                _ => {}
            }
            let len = self.cursor.buffer().give(buffer);
            if len > 0 {
                context::spend_operation();
                return Poll::Ready(Ok(len));
            }
            let this = &mut *self;
            this.cursor.begin(&this.file, Operation::Read { len: buffer.len().min(FILE_BUFFER_LEN) });
        }
    }
}

impl AsyncWrite for File {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(context::poll_budget(cx));
        ready!(self.poll_idle(cx));
        if let Some(error) = self.failure.take() {
            return Poll::Ready(Err(error));
        }
        let bytes = &bytes[..bytes.len().min(FILE_BUFFER_LEN)];
        if !bytes.is_empty() {
            let this = &mut *self;
            let buffer = this.cursor.buffer();
            let unread_len = buffer.unread_len();
            buffer.hold(bytes);
            this.cursor.begin(&this.file, Operation::Write { unread_len });
        }
        context::spend_operation();
        Poll::Ready(Ok(bytes.len()))
    }

    /// Waits until the system has what was written. A crash of the system may still lose it: see [`sync_data`](File::sync_data).
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_idle(cx));
        ready!(context::poll_at_once(cx));
        Poll::Ready(self.failure.take().map_or(Ok(()), Err))
    }

    /// As `flush`. The descriptor is closed when the file is dropped.
    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl AsyncSeek for File {
    fn poll_seek(mut self: Pin<&mut Self>, cx: &mut Context<'_>, asked: SeekFrom) -> Poll<io::Result<u64>> {
        loop {
            match ready!(self.poll_idle(cx)) {
                Some((Operation::Seek { asked: finished, .. }, result)) if finished == asked => return Poll::Ready(result),
                _ => {}
            }
            let this = &mut *self;
            // The reader is behind the system's cursor by what was read ahead.
            let unread_len = i64::try_from(this.cursor.buffer().unread_len()).unwrap_or(i64::MAX);
            let target = match asked {
                SeekFrom::Current(offset) => offset.checked_sub(unread_len).map(SeekFrom::Current),
                _ => Some(asked),
            };
            let Some(target) = target else {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidInput, "the place to seek is before the start of the file")));
            };
            this.cursor.begin(&this.file, Operation::Seek { asked, target });
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.cursor.leave();
        if let Some(error) = self.failure.take() {
            log_unread(&error);
        }
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl AsRawFd for File {
    fn as_raw_fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }
}

impl From<fs::File> for File {
    fn from(file: fs::File) -> File {
        File::from_std(file)
    }
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}
