//! The repository as the tasks see it: paths with `/`, relative to the root, and the text of those that are text.
//!
//! They get a `Tree` instead of opening files, so their tests are a few lines of text. Reading costs the size of the sources once.
//! Read next: `tidy/mod.rs`, the first to look at it.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// All files of the repository, in the order of their paths.
#[derive(Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads everything under `root` but version control and what the build makes.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.read_folder(root, "")?;
        Ok(tree)
    }

    fn read_folder(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let path = format!("{prefix}{name}");
            // Not followed: a link out of the repository would make the answer depend on the machine.
            if entry.file_type()?.is_dir() {
                if !is_ignored(&name) {
                    self.read_folder(&entry.path(), &format!("{path}/"))?;
                }
            } else {
                let text = if is_text(&name) { fs::read_to_string(entry.path())? } else { String::new() };
                self.files.insert(path, text);
            }
        }
        Ok(())
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// `(path, text)` of every file whose path ends with `suffix`.
    pub(crate) fn ending<'a>(&'a self, suffix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files.iter().filter(move |(path, _)| path.ends_with(suffix)).map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Whether `path` is a file or a folder that holds one.
    pub(crate) fn exists(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        path.is_empty() || self.files.contains_key(path) || {
            let inside = format!("{path}/");
            self.files.range(inside.clone()..).next().is_some_and(|(first, _)| first.starts_with(&inside))
        }
    }
}

/// Folders that are not part of the sources: the same ones as in `.gitignore`.
fn is_ignored(folder: &str) -> bool {
    folder == ".git" || folder == "relay-data" || folder == "target" || folder.starts_with("target-")
}

fn is_text(file: &str) -> bool {
    [".rs", ".md", ".toml", ".txt"].iter().any(|suffix| file.ends_with(suffix))
}

#[cfg(test)]
impl Tree {
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self { files: files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_exist_through_their_files() {
        let tree = Tree::of(&[("a/b.rs", ""), ("a-c/d.rs", "")]);
        for there in ["a", "a/", "a/b.rs", "a-c", ""] {
            assert!(tree.exists(there), "{there}");
        }
        for absent in ["b.rs", "a/b", "a/b.rs/x", "c"] {
            assert!(!tree.exists(absent), "{absent}");
        }
    }

    #[test]
    fn what_the_build_makes_is_not_read() {
        let root = std::env::temp_dir().join(format!("xtask-tree-{}", std::process::id()));
        for (path, bytes) in [("src/a.rs", b"text".as_slice()), ("target/b.rs", b""), ("relay-data/c.rs", b""), ("d.png", b"\xff")] {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let tree = Tree::read(&root);
        fs::remove_dir_all(&root).unwrap();
        let files: Vec<_> = tree.unwrap().files.into_iter().collect();
        assert_eq!(files, [("d.png".to_owned(), String::new()), ("src/a.rs".to_owned(), "text".to_owned())]);
    }
}
