//! Check 1: inside a crate, a file uses only what stands above it in `layers.txt`.
//!
//! Cargo refuses cycles between crates; this refuses them between files, so that a crate can be read from its first file to its last.
//! Test code and doc comments may look anywhere. A module may publish names of its own parts (`pub use part::Name`): that uses nothing,
//! and whoever uses the name is judged by the file that defines it. Every package has its list, and `mod` lines have its order.
//! Read next: `unsafe_code.rs`.

use std::collections::BTreeMap;

use super::finding::Finding;
use super::modules::Modules;
use super::source::{Reference, ReferenceKind, Source};
use crate::tree::Tree;

pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let packages = tree.ending("/Cargo.toml").map(|(manifest, _)| manifest.trim_end_matches("Cargo.toml"));
    packages.filter(|package| has_sources(tree, package)).flat_map(|package| check_package(tree, package)).collect()
}

/// Whether there is Rust below the package's `src`: the book has chapters there.
fn has_sources(tree: &Tree, package: &str) -> bool {
    let src = format!("{package}src/");
    tree.ending(".rs").any(|(path, _)| path.starts_with(&src))
}

/// `package` is the folder of its Cargo.toml, with a `/` at the end.
fn check_package(tree: &Tree, package: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let src = format!("{package}src/");
    let list_path = &format!("{package}layers.txt");
    let Some(list) = tree.text(list_path) else {
        return vec![Finding::new(list_path, 1, "there is no such file", "list the files of src/ in reading order, one per line")];
    };
    let mut sources = BTreeMap::new();
    for (path, text) in tree.ending(".rs").filter(|(path, _)| path.starts_with(&src)) {
        match Source::parse(text) {
            Ok(source) => {
                sources.insert(path[src.len()..].to_owned(), source);
            }
            Err(line) => found.push(Finding::new(path, line, "this is not Rust", "make it compile first")),
        }
    }

    let mut positions = BTreeMap::new();
    for (index, line) in list.lines().enumerate() {
        let file = line.split('#').next().unwrap_or_default().trim();
        if file.is_empty() {
            continue;
        }
        if !tree.exists(&format!("{src}{file}")) {
            let remedy = "remove the line, or write the path as it is below src/";
            found.push(Finding::new(list_path, index + 1, format!("src/{file} does not exist"), remedy));
        } else if let Some(first) = positions.insert(file.to_owned(), index + 1) {
            found.push(Finding::new(list_path, index + 1, format!("{file} stands in line {first} already"), "keep one of the two"));
        }
    }

    let roots: Vec<(&String, Modules)> =
        sources.keys().filter(|file| is_root(file)).map(|root| (root, Modules::of(root, &sources))).collect();
    for (file, source) in &sources {
        let path = format!("{src}{file}");
        let homes = || roots.iter().filter_map(|(root, modules)| Some((*root, modules, modules.module_of(file)?)));
        if homes().next().is_none() {
            found.push(Finding::new(&path, 1, "no `mod` line leads here, so it is not compiled", "add the line, or remove the file"));
            continue;
        }
        if homes().any(|(_, modules, _)| modules.test_files.contains(file)) {
            continue;
        }
        let Some(position) = positions.get(file) else {
            let remedy = format!("add `{file}` below all that it uses and above all that uses it");
            found.push(Finding::new(list_path, 1, format!("src/{file} is not listed"), remedy));
            continue;
        };
        for (root, modules, module) in homes() {
            for reference in &source.references {
                found.extend(check_reference(&path, reference, modules, module, *position, &positions));
            }
            if root == file {
                found.extend(check_root(&path, source));
            }
        }
        found.extend(check_module_order(&path, file, source, &positions));
    }
    found
}

fn check_reference(
    path: &str,
    reference: &Reference,
    modules: &Modules,
    module: &[String],
    position: usize,
    positions: &BTreeMap<String, usize>,
) -> Option<Finding> {
    // Where exported macros are defined is not seen, and what a macro does is judged in the file that defines it.
    if reference.kind == ReferenceKind::Macro && reference.segments.len() == 2 && reference.segments[0] == "crate" {
        return None;
    }
    let from = [module, &reference.within].concat();
    let target = modules.resolve(&from, &reference.segments).iter().find(|target| positions.get(*target).is_some_and(|p| *p > position))?;
    if let ReferenceKind::Use { public: true, name } = &reference.kind
        && name != "*"
        && modules.module_of(target).is_some_and(|part| part.starts_with(module))
    {
        return None;
    }
    let what = format!("uses `{}` of {target}, which stands below it in layers.txt", reference.segments.join("::"));
    let remedy = match target.as_str() {
        "lib.rs" => "name the module that defines it",
        _ => "turn the dependency round, move what both need up, or move the line in layers.txt",
    };
    Some(Finding::new(path, reference.line, what, remedy))
}

/// `lib.rs` is the crate's table of contents: nothing but `mod` lines and re-exports.
fn check_root(path: &str, source: &Source) -> Vec<Finding> {
    let lines = source.item_lines.iter().filter(|_| path.ends_with("/lib.rs"));
    let what = "lib.rs holds only docs, attributes, `mod` lines and re-exports";
    lines.map(|line| Finding::new(path, *line, what, "move this to a file that names it")).collect()
}

/// `mod` lines stand in the order of the layers, so that each file with parts tells how to read them.
fn check_module_order(path: &str, file: &str, source: &Source, positions: &BTreeMap<String, usize>) -> Vec<Finding> {
    let mut found = Vec::new();
    let folder = folder_of_modules(file);
    let mut previous: Option<(usize, &str)> = None;
    for module in source.modules.iter().filter(|module| !module.inline) {
        let (own_file, own_folder) = (format!("{folder}{}.rs", module.name), format!("{folder}{}/", module.name));
        let own = positions.iter().filter(|(listed, _)| **listed == own_file || listed.starts_with(&own_folder));
        let Some(position) = own.map(|(_, position)| *position).min() else { continue };
        if let Some((before, name)) = previous.filter(|(before, _)| *before > position) {
            let what =
                format!("`mod {}` stands below `mod {name}`, but above it in layers.txt (lines {position} and {before})", module.name);
            found.push(Finding::new(path, module.line, what, "give both the same order"));
        }
        previous = Some((position, &module.name));
    }
    found
}

/// Whether cargo compiles a file as a crate: the library, the program, a further program that is a file or a folder with a `main.rs`.
fn is_root(file: &str) -> bool {
    match file.strip_prefix("bin/") {
        Some(program) => !program.trim_end_matches("/main.rs").contains('/'),
        None => file == "lib.rs" || file == "main.rs",
    }
}

/// Where the modules of a file stand: beside a root or a `mod.rs`, below the name of any other file.
fn folder_of_modules(file: &str) -> String {
    let (folder, name) = file.rsplit_once('/').map_or(("", file), |(folder, name)| (&file[..folder.len() + 1], name));
    match name {
        "lib.rs" | "main.rs" | "mod.rs" => folder.to_owned(),
        _ => format!("{}/", file.trim_end_matches(".rs")),
    }
}

#[cfg(test)]
mod tests;
