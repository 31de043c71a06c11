//! Check 2: `unsafe` stands only in the files that ARCHITECTURE.md lists between two marks, and every file listed there needs it.
//!
//! The list is the one source: a reader finds all code that can break memory safety, tests included, without searching.
//! Read next: `length.rs`.

use std::collections::BTreeMap;

use super::finding::Finding;
use super::source::Source;
use crate::tree::Tree;

const LIST_PATH: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- unsafe files: begin -->";
const END: &str = "<!-- unsafe files: end -->";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let text = tree.text(LIST_PATH).unwrap_or_default();
    let Some(listed) = listed_files(text) else {
        let what = format!("there is no list of files with `unsafe` between `{BEGIN}` and `{END}`");
        return vec![Finding::new(
            LIST_PATH,
            1,
            what,
            "add the two marks, each on a line of its own, and between them one item per file: its path as code, the reason",
        )];
    };

    let mut found = Vec::new();
    let mut unused = listed.clone();
    for (path, text) in tree.ending(".rs") {
        // A file that is not Rust is the business of the compiler, or a compile-fail test.
        let Ok(source) = Source::parse(text) else { continue };
        let Some(line) = source.unsafe_lines.first() else { continue };
        if unused.remove(path).is_none() {
            let remedy = format!("write it safely, or list the file in {LIST_PATH} with the reason");
            found.push(Finding::new(path, *line, "`unsafe` in a file that is not listed for it", remedy));
        }
    }
    for (path, line) in unused {
        let what = if tree.exists(path) { format!("{path} holds no `unsafe`") } else { format!("{path} does not exist") };
        found.push(Finding::new(LIST_PATH, line, what, "remove it from the list"));
    }
    found
}

/// The first code span of each `- ` line between the marks, with its line number.
fn listed_files(text: &str) -> Option<BTreeMap<&str, usize>> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let begin = lines.iter().position(|line| *line == BEGIN)?;
    let end = begin + lines[begin..].iter().position(|line| *line == END)?;
    let items = (begin..end).filter(|index| lines[*index].starts_with("- "));
    Some(items.filter_map(|index| Some((lines[index].split('`').nth(1)?, index + 1))).collect())
}

#[cfg(test)]
mod tests {
    use super::super::finding::tests::expect;
    use super::*;

    /// `listed` stands between the marks, from line 3 on.
    #[track_caller]
    fn check(listed: &str, code: &str, expected: &[(&str, &str)]) {
        let text = format!("# Map\n{BEGIN}\n{listed}\n{END}\n- `other.rs`: after the list\n");
        expect(&super::check(&Tree::of(&[(LIST_PATH, &text), ("src/a.rs", code)])), expected);
    }

    #[test]
    fn unsafe_stands_in_listed_files_only() {
        check("", "fn f() {}", &[]);
        check("- `src/a.rs`: reads a word", "fn f() {\n unsafe { g() }\n}", &[]);
        check("", "fn f() {\n unsafe { g() }\n}", &[("src/a.rs:2", "list the file")]);
        check("", "#[cfg(test)]\nmod tests { unsafe impl Send for X {} }", &[("src/a.rs:2", "list the file")]);
        check("", "// unsafe { g() }\nconst S: &str = \"unsafe\";", &[]);
    }

    #[test]
    fn every_listed_file_needs_it() {
        check("- `src/a.rs`: once", "fn f() {}", &[("ARCHITECTURE.md:3", "holds no `unsafe`")]);
        check("\n- `src/gone.rs`: once", "", &[("ARCHITECTURE.md:4", "does not exist")]);
    }

    #[test]
    fn without_the_list_nothing_passes() {
        expect(&super::check(&Tree::of(&[(LIST_PATH, BEGIN), ("a.rs", "")])), &[("ARCHITECTURE.md:1", "marks")]);
    }
}
