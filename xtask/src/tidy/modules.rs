//! How the files of one crate hang together: which file a module path means.
//!
//! It follows `mod` lines from the roots (`lib.rs`, `main.rs`, `bin/*.rs`) and named re-exports, as the compiler does, but knows no items:
//! a path means the file of the deepest module on it. A re-exported name means the file that defines it, so that a short path through
//! `lib.rs` hides no direction. Names behind a glob re-export stay with the file that holds the glob.
//! Read next: `layers.rs`, what the directions must be.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{ReferenceKind, Source};

type ModulePath = Vec<String>;

/// The modules of one crate root, tests included.
pub(crate) struct Modules {
    /// Several files when a `cfg` chooses between them.
    files: BTreeMap<ModulePath, Vec<String>>,
    /// What a module calls something else: the path as written there.
    names: BTreeMap<(ModulePath, String), Vec<String>>,
    /// Files that exist in test builds only.
    pub(crate) test_files: BTreeSet<String>,
}

/// A chain of re-exports longer than this is a cycle.
const REEXPORT_CHAIN_MAX: usize = 16;

impl Modules {
    /// `root` and the keys of `sources` are paths below `src/`.
    pub(crate) fn of(root: &str, sources: &BTreeMap<String, Source>) -> Self {
        let mut modules = Self { files: BTreeMap::new(), names: BTreeMap::new(), test_files: BTreeSet::new() };
        modules.add(root, &[], folder_of(root), false, sources);
        modules
    }

    /// `folder` is where the files of this file's own modules are.
    fn add(&mut self, file: &str, module: &[String], folder: &str, test: bool, sources: &BTreeMap<String, Source>) {
        let Some(source) = sources.get(file) else { return };
        self.files.entry(module.to_vec()).or_default().push(file.to_owned());
        if test {
            self.test_files.insert(file.to_owned());
        }
        for reference in &source.references {
            if let ReferenceKind::Use { name, .. } = &reference.kind {
                let inside = [module, &reference.within].concat();
                self.names.insert((inside, name.clone()), reference.segments.clone());
            }
        }
        for inner in &source.modules {
            let path = [module, &inner.within, std::slice::from_ref(&inner.name)].concat();
            let test = test || inner.test;
            if inner.inline {
                self.files.entry(path).or_default().push(file.to_owned());
                continue;
            }
            let below = inner.within.iter().fold(folder.to_owned(), |folder, name| format!("{folder}{name}/"));
            let candidates = match &inner.path {
                Some(path) => vec![format!("{}{path}", folder_of(file))],
                None => vec![format!("{below}{}.rs", inner.name), format!("{below}{}/mod.rs", inner.name)],
            };
            for candidate in candidates {
                let folder = match &inner.path {
                    Some(_) => folder_of(&candidate).to_owned(),
                    None => format!("{below}{}/", inner.name),
                };
                self.add(&candidate, &path, &folder, test, sources);
            }
        }
    }

    /// The modules of which `file` is the whole text, rather than the place of an inline one.
    pub(crate) fn module_of(&self, file: &str) -> Option<&[String]> {
        let mut modules: Vec<&ModulePath> =
            self.files.iter().filter(|(_, files)| files.iter().any(|f| f == file)).map(|(path, _)| path).collect();
        modules.sort_by_key(|path| path.len());
        modules.first().map(|path| path.as_slice())
    }

    /// The files that a path means when it stands in module `from`; none when it leads out of the crate or to something local.
    pub(crate) fn resolve(&self, from: &[String], segments: &[String]) -> &[String] {
        self.resolve_module(from, segments, REEXPORT_CHAIN_MAX).map_or(&[], |module| &self.files[&module])
    }

    fn resolve_module(&self, from: &[String], segments: &[String], chain_max: usize) -> Option<ModulePath> {
        let (first, mut rest) = segments.split_first()?;
        let mut module = match first.as_str() {
            "crate" => Vec::new(),
            "self" => from.to_vec(),
            "super" => {
                let supers = segments.iter().take_while(|segment| *segment == "super").count();
                rest = &segments[supers..];
                from[..from.len().checked_sub(supers)?].to_vec()
            }
            _ => self.step(from, first, chain_max)?,
        };
        for segment in rest {
            match self.step(&module, segment, chain_max) {
                Some(next) => module = next,
                None => break,
            }
        }
        self.files.contains_key(&module).then_some(module)
    }

    /// The module that `name` means inside `module`: one of its own or one that it imports.
    fn step(&self, module: &[String], name: &str, chain_max: usize) -> Option<ModulePath> {
        let own = [module, &[name.to_owned()]].concat();
        if self.files.contains_key(&own) {
            return Some(own);
        }
        let imported = self.names.get(&(module.to_vec(), name.to_owned()))?;
        self.resolve_module(module, imported, chain_max.checked_sub(1)?)
    }
}

/// With its slash; empty at the top.
fn folder_of(file: &str) -> &str {
    &file[..file.rfind('/').map_or(0, |slash| slash + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [(&str, &str); 7] = [
        ("lib.rs", "mod a; mod b; #[cfg(test)] mod model; mod sys { pub mod page; } pub use b::deep::{Thing, Other as Renamed};"),
        ("a.rs", "mod inline {} use crate::b::deep as far; pub use self::Loop as Loop;"),
        ("b/mod.rs", "pub mod deep; #[path = \"odd_name.rs\"] mod named; pub use deep::Thing;"),
        ("b/deep.rs", ""),
        ("b/odd_name.rs", ""),
        ("model.rs", "mod part;"),
        ("model/part.rs", ""),
    ];

    fn modules(files: &[(&str, &str)]) -> Modules {
        let sources = files.iter().map(|(path, text)| ((*path).to_owned(), Source::parse(text).unwrap())).collect();
        Modules::of("lib.rs", &sources)
    }

    #[test]
    fn a_path_means_the_file_of_its_deepest_module() {
        let modules = modules(&FILES);
        #[track_caller]
        fn check(modules: &Modules, from: &str, path: &str, expected: &[&str]) {
            let split = |path: &str| path.split("::").filter(|s| !s.is_empty()).map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(modules.resolve(&split(from), &split(path)), expected, "{path} in `{from}`");
        }
        check(&modules, "a", "crate::b", &["b/mod.rs"]);
        check(&modules, "a", "crate::b::deep::Thing", &["b/deep.rs"]);
        check(&modules, "a", "super::b::deep", &["b/deep.rs"]);
        check(&modules, "a::inline", "super::super::b::Unknown", &["b/mod.rs"]);
        check(&modules, "b", "deep::Thing", &["b/deep.rs"]);
        check(&modules, "b", "named::x", &["b/odd_name.rs"]);
        check(&modules, "b::deep", "self::x", &["b/deep.rs"]);
        // Through re-exports and imports, renamed or not.
        check(&modules, "a", "crate::Thing", &["b/deep.rs"]);
        check(&modules, "a", "crate::Renamed", &["b/deep.rs"]);
        check(&modules, "a", "crate::b::Thing", &["b/deep.rs"]);
        check(&modules, "a", "far::Thing", &["b/deep.rs"]);
        // What only the root has, what is outside, what is local, what goes round in a circle.
        check(&modules, "a", "crate::Unknown", &["lib.rs"]);
        check(&modules, "a", "std::fmt", &[]);
        check(&modules, "a", "deep::Thing", &[]);
        check(&modules, "a", "Loop::new", &["a.rs"]);
        check(&modules, "", "super::x", &[]);
    }

    #[test]
    fn files_below_a_test_module_are_test_files() {
        let modules = modules(&FILES);
        assert_eq!(modules.test_files.iter().collect::<Vec<_>>(), ["model.rs", "model/part.rs"]);
        assert_eq!(modules.module_of("b/deep.rs"), Some(["b".to_owned(), "deep".to_owned()].as_slice()));
        assert_eq!(modules.module_of("a.rs"), Some(["a".to_owned()].as_slice()));
        assert_eq!(modules.module_of("lost.rs"), None);
    }
}
