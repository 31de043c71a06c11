//! Check 5: a file that a comment or a document mentions is there, at the end of some path: `tidy/mod.rs`, say, wherever that is.
//!
//! A mention is a code span that looks like the name of a source or a document. Links and tables of files are `links.rs`'s.

use super::finding::Finding;
use crate::tree::Tree;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let comments = tree.ending(".rs").flat_map(|(path, text)| {
        let lines = text.lines().enumerate().filter(|(_, line)| line.trim_start().starts_with("//"));
        lines.map(move |(index, line)| (path, index + 1, line))
    });
    let documents = tree.ending(".md").flat_map(|(path, text)| text.lines().enumerate().map(move |(index, line)| (path, index + 1, line)));
    let mentions = comments.chain(documents).flat_map(|(path, line, text)| mentions(text).map(move |mention| (path, line, mention)));
    let stale = mentions.filter(|(_, _, mention)| tree.ending(mention).all(|(path, _)| !ends_with(path, mention)));
    let remedy = "name the file as it is called now";
    stale.map(|(path, line, mention)| Finding::new(path, line, format!("`{mention}` is the name of no file"), remedy)).collect()
}

/// The code spans of a line that look like the name of a file.
fn mentions(line: &str) -> impl Iterator<Item = &str> {
    let spans = line.split('`').skip(1).step_by(2).map(|span| span.trim_start_matches("../"));
    spans.filter(|span| {
        let is_path = span.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte));
        is_path && [".rs", ".md", ".txt", ".py"].iter().any(|ending| span.len() > ending.len() && span.ends_with(ending))
    })
}

fn ends_with(path: &str, mention: &str) -> bool {
    path.strip_suffix(mention).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::super::finding::tests::expect;
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: &[(&str, &str)]) {
        expect(&super::check(&Tree::of(&[("docs/guide.md", "see `links.rs`"), ("src/tidy/links.rs", source)])), expected);
    }

    #[test]
    fn a_mention_is_the_end_of_a_path() {
        check("//! Next: `links.rs`, `tidy/links.rs`, `../tidy/links.rs`; `docs/guide.md`\n    // `.rs` and `NAME` are none", &[]);
        check("code\n/// As in `inks.rs`.", &[("src/tidy/links.rs:2", "`inks.rs` is the name of no file")]);
        check("// `src/links.rs` and `guide.md`", &[("src/tidy/links.rs:1", "`src/links.rs`")]);
    }

    #[test]
    fn only_comments_mention() {
        check("let path = \"`none.rs`\";", &[]);
    }
}
