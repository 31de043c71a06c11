//! Check 3: no Rust file is too long to be about one thing, no line too long to be seen beside another file.
//!
//! Read next: `links.rs`.

use super::finding::Finding;
use crate::tree::Tree;

const FILE_LEN_MAX_LINES: usize = 600;
const LINE_LEN_MAX_COLUMNS: usize = 140;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in tree.ending(".rs") {
        let lines = text.lines().count();
        if lines > FILE_LEN_MAX_LINES {
            let what = format!("{lines} lines, more than {FILE_LEN_MAX_LINES}");
            let remedy = "split it by subject; unit tests of more than 100 lines go into a sibling file";
            found.push(Finding::new(path, FILE_LEN_MAX_LINES + 1, what, remedy));
        }
        for (index, line) in text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > LINE_LEN_MAX_COLUMNS {
                found.push(Finding::new(path, index + 1, format!("{columns} columns, more than {LINE_LEN_MAX_COLUMNS}"), "break the line"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::finding::tests::expect;
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        expect(&super::check(&Tree::of(&[("a.rs", text), ("long.md", &"x".repeat(1_000))])), expected);
    }

    #[test]
    fn the_last_line_and_the_last_column_that_fit_are_accepted() {
        check(&"x\n".repeat(FILE_LEN_MAX_LINES), &[]);
        check(&"x\n".repeat(FILE_LEN_MAX_LINES + 1), &[("a.rs:601", "split it")]);
        check(&"ü".repeat(LINE_LEN_MAX_COLUMNS), &[]);
        check(&format!("\n{}\n", "ü".repeat(LINE_LEN_MAX_COLUMNS + 1)), &[("a.rs:2", "141 columns")]);
    }
}
