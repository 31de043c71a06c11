//! The table of `TESTING.md` says the truth: what it promises is tested where it says, and no numbered test is missing from it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// (number, file) of every row that names a file.
fn promised(table: &str) -> BTreeSet<(String, String)> {
    let mut promised = BTreeSet::new();
    for row in table.lines() {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let [_, place, numbers, _] = cells[..] else { continue };
        let Some(file) = place.strip_prefix("`crates/miniloop/").and_then(|place| place.strip_suffix('`')) else { continue };
        promised.extend(numbers.split(' ').map(|number| (number.to_lowercase(), file.to_owned())));
    }
    promised
}

/// The numbers at the ends of the names of a file's tests.
fn numbers(source: &str) -> BTreeSet<String> {
    let mut numbers = BTreeSet::new();
    for (_, test) in source.match_indices("#[test]").map(|(at, mark)| source[at + mark.len()..].split_once("fn ").unwrap()) {
        let name = test.split('(').next().unwrap();
        let is_number =
            |word: &&str| word.len() > 1 && word.starts_with(['c', 'b', 'o', 'g']) && word[1..].bytes().all(|byte| byte.is_ascii_digit());
        numbers.extend(name.rsplit('_').take_while(is_number).map(str::to_owned));
    }
    numbers
}

/// (number, file) of every numbered test below a folder of the package.
fn pinned(package: &Path, folder: &str) -> BTreeSet<(String, String)> {
    let mut pinned = BTreeSet::new();
    for entry in fs::read_dir(package.join(folder)).unwrap().map(Result::unwrap) {
        let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            pinned.append(&mut self::pinned(package, &path));
        } else if path.ends_with(".rs") {
            let source = fs::read_to_string(entry.path()).unwrap();
            pinned.extend(numbers(&source).into_iter().map(|number| (number, path.clone())));
        }
    }
    pinned
}

#[test]
fn every_numbered_test_is_in_the_table_and_the_table_promises_no_other() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = fs::read_to_string(package.join("../../TESTING.md")).unwrap();
    let (promised, mut pinned) = (promised(&table), pinned(package, "tests"));
    pinned.append(&mut self::pinned(package, "src"));
    assert!(!pinned.is_empty());
    let difference: Vec<_> = promised.symmetric_difference(&pinned).collect();
    assert!(difference.is_empty(), "in TESTING.md or in the tests, not in both: {difference:#?}");
}
