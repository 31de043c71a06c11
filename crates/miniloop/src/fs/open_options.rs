//! How a file is opened.

use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::file::File;
use super::job::off_the_loop;

/// How a file is opened: [`std::fs::OpenOptions`] whose `open` does not block the loop. Nothing is allowed at first.
///
/// ```
/// use miniloop::fs::OpenOptions;
///
/// miniloop::run(async {
///     # let path = std::env::temp_dir().join(format!("miniloop-options-{}", std::process::id()));
///     let mut log = OpenOptions::new().append(true).create(true).open(&path).await?;
///     miniloop::io::write_all(&mut log, b"one more line\n").await?;
///     log.sync_data().await?;
///     # miniloop::fs::remove_file(&path).await?;
///     Ok::<(), std::io::Error>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions(fs::OpenOptions);

impl OpenOptions {
    /// Nothing is allowed yet.
    #[expect(clippy::new_without_default, reason = "a default that allows nothing would only mislead")]
    pub fn new() -> OpenOptions {
        OpenOptions(fs::OpenOptions::new())
    }

    /// Reading.
    pub fn read(mut self, is_allowed: bool) -> OpenOptions {
        self.0.read(is_allowed);
        self
    }

    /// Writing, over what is there.
    pub fn write(mut self, is_allowed: bool) -> OpenOptions {
        self.0.write(is_allowed);
        self
    }

    /// Writing, each time at the end.
    pub fn append(mut self, is_wanted: bool) -> OpenOptions {
        self.0.append(is_wanted);
        self
    }

    /// What was there is thrown away.
    pub fn truncate(mut self, is_wanted: bool) -> OpenOptions {
        self.0.truncate(is_wanted);
        self
    }

    /// A file that is not there is made.
    pub fn create(mut self, is_wanted: bool) -> OpenOptions {
        self.0.create(is_wanted);
        self
    }

    /// The file is made, and it is an error if it is there.
    pub fn create_new(mut self, is_wanted: bool) -> OpenOptions {
        self.0.create_new(is_wanted);
        self
    }

    /// The permissions of a file that is made, before the process's mask.
    pub fn mode(mut self, mode: u32) -> OpenOptions {
        self.0.mode(mode);
        self
    }

    /// Further flags for `open(2)`, `O_NOFOLLOW` for instance.
    pub fn custom_flags(mut self, flags: i32) -> OpenOptions {
        self.0.custom_flags(flags);
        self
    }

    /// Opens the file.
    ///
    /// # Errors
    /// What the system says.
    ///
    /// # Cancellation
    /// A file that is opened too late is closed again.
    pub async fn open(&self, path: impl AsRef<Path>) -> io::Result<File> {
        let (options, path) = (self.0.clone(), path.as_ref().to_owned());
        off_the_loop(move || options.open(path)).await.map(File::from_std)
    }
}

impl From<fs::OpenOptions> for OpenOptions {
    fn from(options: fs::OpenOptions) -> OpenOptions {
        OpenOptions(options)
    }
}
