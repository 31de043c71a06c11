//! Check 4: what the documents point at is there: relative links, their `#anchors`, and the paths in the README's tables of files.
//!
//! It reads the small part of Markdown that the documents use: inline links, reference definitions, `#` headings, fenced code.
//! Addresses with a scheme are not looked at: the answer must not depend on the network.

use std::collections::BTreeMap;

use super::finding::Finding;
use crate::tree::Tree;

const README: &str = "README.md";

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in tree.ending(".md") {
        for (line, text) in prose(text) {
            for target in link_targets(text) {
                found.extend(check_target(tree, path, line, target));
            }
        }
    }
    for (line, path) in tree.text(README).map(file_columns).unwrap_or_default() {
        if !tree.exists(path) {
            let remedy = "name the file or folder as it is, or remove the row";
            found.push(Finding::new(README, line, format!("`{path}` of the table does not exist"), remedy));
        }
    }
    found
}

fn check_target(tree: &Tree, document: &str, line: usize, target: &str) -> Option<Finding> {
    let has_scheme =
        target.split_once(':').is_some_and(|(scheme, _)| !scheme.is_empty() && scheme.bytes().all(|b| b.is_ascii_alphanumeric()));
    if has_scheme {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let Some(path) = (if file.is_empty() { Some(document.to_owned()) } else { join(document, file) }) else {
        return Some(Finding::new(document, line, format!("link `{target}` leads out of the repository"), "point at a file inside it"));
    };
    if !tree.exists(&path) {
        return Some(Finding::new(document, line, format!("link to {path}, which does not exist"), "correct the path"));
    }
    let anchor = anchor.filter(|_| path.ends_with(".md"))?;
    let anchors = anchors(tree.text(&path).unwrap_or_default());
    if anchors.iter().any(|known| known == anchor) {
        return None;
    }
    Some(Finding::new(document, line, format!("{path} has no heading `#{anchor}`"), format!("take one of: {}", anchors.join(", "))))
}

/// `link` as seen from the folder of `document`; none when it leaves the repository.
fn join(document: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The lines outside of fenced code, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut fence: Option<&str> = None;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(_)) => fence = mark,
            (Some(open), Some(close)) if open == close => fence = None,
            (Some(_), _) => {}
            (None, None) => lines.push((index + 1, line)),
        }
    }
    lines
}

/// The targets of `[text](target)` and `[name]: target`, code spans left out.
fn link_targets(line: &str) -> Vec<&str> {
    let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target);
    let inline = line.match_indices("](").filter(|(at, _)| !is_in_code(line, *at)).map(|(at, _)| &line[at + 2..]);
    inline.chain(definition).map(until_its_end).filter(|target| !target.is_empty()).collect()
}

/// `<target>`, `target "title"` and `target)` without what is not the target.
fn until_its_end(target: &str) -> &str {
    let target = target.trim_start_matches('<');
    &target[..target.find([')', '>', ' ']).unwrap_or(target.len())]
}

fn is_in_code(line: &str, at: usize) -> bool {
    line[..at].matches('`').count() % 2 == 1
}

/// What the headings of a document are called in links, by GitHub's rule: lower case, hyphens for spaces, no punctuation, repeats numbered.
fn anchors(text: &str) -> Vec<String> {
    let mut uses: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).into_iter().filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len()).then(|| title.strip_prefix(' ')).flatten()
    });
    headings
        .map(|title| {
            let kept = without_link_targets(title).into_iter().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            let slug: String = kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect();
            let repeat = uses.entry(slug.clone()).or_default();
            *repeat += 1;
            if *repeat == 1 { slug } else { format!("{slug}-{}", *repeat - 1) }
        })
        .collect()
}

/// A link in a heading counts by its text alone.
fn without_link_targets(title: &str) -> Vec<char> {
    let mut parts = title.trim().split("](");
    let first = parts.next().unwrap_or_default();
    let after_links = parts.filter_map(|part| part.split_once(')')).map(|(_, after)| after);
    [first].into_iter().chain(after_links).flat_map(str::chars).collect()
}

/// The code spans in columns headed `File` of all tables.
fn file_columns(text: &str) -> Vec<(usize, &str)> {
    let mut column = None;
    let mut paths = Vec::new();
    for (line, text) in prose(text) {
        let Some(row) = text.trim().strip_prefix('|') else {
            column = None;
            continue;
        };
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        match column {
            None => column = Some(cells.iter().position(|cell| cell.eq_ignore_ascii_case("file"))),
            Some(Some(column)) => paths.extend(cells.get(column).unwrap_or(&"").split('`').skip(1).step_by(2).map(|path| (line, path))),
            Some(None) => {}
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::super::finding::tests::expect;
    use super::*;

    #[track_caller]
    fn check(readme: &str, expected: &[(&str, &str)]) {
        let guide = "# The Guide, part `one`\n## Same\n```\n# no heading\n[x](nowhere.md)\n```\n## Same\n## See [it](../README.md) now\n";
        expect(&super::check(&Tree::of(&[("README.md", readme), ("docs/guide.md", guide), ("src/a.rs", "")])), expected);
    }

    #[test]
    fn relative_links_lead_to_a_file_or_folder() {
        check("[a](src/a.rs) and [b](./docs/guide.md \"title\") and [c](docs/)\n[d]: <src>\n[web](https://a.b/c) [m](mailto:x@y.z)", &[]);
        check("ok\n[a](src/b.rs)", &[("README.md:2", "src/b.rs, which does not exist")]);
        check("[a]: docs/none.md", &[("README.md:1", "docs/none.md")]);
        check("[a](../other/x.md)", &[("README.md:1", "out of the repository")]);
        check("[a](src/a.rs) [b](<gone.md>)", &[("README.md:1", "gone.md")]);
    }

    #[test]
    fn code_is_not_prose() {
        check("`[a](b)` and `c`\n```\n[a](b)\n```\n", &[]);
        check("`code` [a](b)", &[("README.md:1", "link to b")]);
    }

    #[test]
    fn anchors_name_a_heading() {
        for anchor in ["the-guide-part-one", "same", "same-1", "see-it-now"] {
            check(&format!("[a](docs/guide.md#{anchor})"), &[]);
        }
        check("# Top\n[a](#top) [b](src/a.rs#L7)", &[]);
        check("# Top\n[a](#bottom)", &[("README.md:2", "take one of: top")]);
        check("[a](docs/guide.md#no-heading)", &[("README.md:1", "no heading `#no-heading`")]);
    }

    #[test]
    fn paths_in_a_file_column_exist() {
        check("| Pattern | File |\n|---|---|\n| a `thing` | `src/a.rs`, `docs` |\n\n| command | does |\n|---|---|\n| `run` | `x` |", &[]);
        check("| file | why |\n|---|---|\n| `src/a.rs` | |\n| `src/b.rs` | |", &[("README.md:4", "`src/b.rs` of the table")]);
    }
}
