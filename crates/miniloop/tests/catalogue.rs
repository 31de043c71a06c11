//! The tables of `TESTING.md` say the truth: what they promise is tested where they say, no numbered test is missing from them, and no
//! number is without a test or a reason for having none. The same goes for the bounds of each crate.

use std::collections::{BTreeMap, BTreeSet};
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

/// The numbers of every row that says why there is no test.
fn excused(table: &str) -> BTreeSet<String> {
    let (_, table) = table.split_once("These do not apply here:").expect("the table of what does not apply");
    let rows = table.lines().filter_map(|row| row.strip_prefix("| ")?.split(" |").next());
    let numbers = rows.flat_map(|numbers| numbers.split(' ').map(str::to_lowercase));
    numbers.filter(|number| is_number(number)).collect()
}

/// All that there are: rules of order, of cancellation and of groups, behaviours of asyncio, bugs of other loops.
fn catalogue() -> BTreeSet<String> {
    let rules = [("o", 1..=10), ("c", 1..=13), ("g", 1..=8)];
    let rules = rules.into_iter().flat_map(|(kind, numbers)| numbers.map(move |number| format!("{kind}{number}")));
    let behaviours = (1..=188).map(|number| format!("c{number:03}"));
    let bugs = [2, 4, 6, 8, 9, 11, 13, 14, 16, 19, 20, 21, 24, 26, 28, 29, 31, 33].map(|number| format!("b{number:02}"));
    rules.chain(behaviours).chain(bugs).collect()
}

fn is_number(word: &str) -> bool {
    word.len() > 1 && word.starts_with(['c', 'b', 'o', 'g']) && word[1..].bytes().all(|byte| byte.is_ascii_digit())
}

/// The numbers at the ends of the names of a file's tests.
fn numbers(source: &str) -> BTreeSet<String> {
    let mut numbers = BTreeSet::new();
    for (_, test) in source.match_indices("#[test]").map(|(at, mark)| source[at + mark.len()..].split_once("fn ").unwrap()) {
        let name = test.split('(').next().unwrap();
        numbers.extend(name.rsplit('_').take_while(|word| is_number(word)).map(str::to_owned));
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

#[test]
fn every_number_has_a_test_or_a_reason_for_having_none_and_not_both() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = fs::read_to_string(package.join("../../TESTING.md")).unwrap();
    let tested: BTreeSet<_> = promised(&table).into_iter().map(|(number, _)| number).collect();
    let excused = excused(&table);
    let both: Vec<_> = tested.intersection(&excused).collect();
    assert!(both.is_empty(), "tested all the same: {both:?}");
    let known: BTreeSet<_> = tested.union(&excused).cloned().collect();
    let catalogue = catalogue();
    let missing: Vec<_> = catalogue.difference(&known).collect();
    let unknown: Vec<_> = known.difference(&catalogue).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "neither tested nor explained: {missing:?}; not in the catalogue: {unknown:?}");
}

/// What each row of a table of bounds says of its bound: the file and the name of a test, or why there is none.
fn bounds(table: &str) -> BTreeMap<String, (String, String)> {
    let rows = table.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let mut bounds = BTreeMap::new();
    for row in rows.skip(2) {
        let cells: Vec<_> = row.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect();
        let [_, bound, place, test, _] = &cells[..] else { panic!("no row of a table of bounds: {row}") };
        assert!(bounds.insert(bound.clone(), (place.clone(), test.clone())).is_none(), "{bound} has two rows");
    }
    bounds
}

#[test]
fn every_bound_has_a_test_that_reaches_it_or_a_reason_for_having_none() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| fs::read_to_string(workspace.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let tables = read("TESTING.md");
    for (crate_name, file) in [
        ("miniloop", "src/config.rs"),
        ("relay-core", "src/limits.rs"),
        ("relay-bench", "src/limits.rs"),
        ("relay", "src/limits.rs"),
        ("relay", "src/storage/limits.rs"),
    ] {
        let source = format!("crates/{crate_name}/{file}");
        let (_, table) = tables.split_once(&format!("Bounds of `{source}`")).unwrap_or_else(|| panic!("{source} has no table of bounds"));
        let rows = bounds(table);
        let there = read(&source);
        let there =
            there.lines().filter_map(|line| line.trim_start_matches("pub(crate) ").trim_start_matches("pub ").strip_prefix("const "));
        let there: BTreeSet<_> = there.filter_map(|rest| rest.split(':').next()).map(str::to_owned).collect();
        let difference: Vec<_> = rows.keys().cloned().collect::<BTreeSet<_>>().symmetric_difference(&there).cloned().collect();
        assert!(!there.is_empty() && difference.is_empty(), "in {source} or in its table, not in both: {difference:?}");
        for (bound, (place, test)) in rows.iter().filter(|(_, (place, _))| place != "none") {
            let tests = read(&format!("crates/{crate_name}/{place}"));
            assert!(tests.contains(&format!("fn {test}(")), "{bound}: {place} has no test `{test}`");
        }
    }
}
