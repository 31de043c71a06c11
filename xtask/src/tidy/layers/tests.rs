//! Small crates, each with what the check says about it.

use super::super::finding::tests::expect;
use super::*;

/// `files` are paths below the crate; those that are not given are empty.
#[track_caller]
fn check(layers: &str, files: &[(&str, &str)], expected: &[(&str, &str)]) {
    let mut all = vec![("crate/Cargo.toml".to_owned(), String::new()), ("crate/layers.txt".to_owned(), layers.to_owned())];
    all.extend(files.iter().map(|(path, text)| (format!("crate/src/{path}"), (*text).to_owned())));
    let borrowed: Vec<(&str, &str)> = all.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    expect(&super::check(&Tree::of(&borrowed)), expected);
}

const LAYERS: &str = "a.rs\nb.rs\nlib.rs\n";
const LIB: (&str, &str) = ("lib.rs", "mod a;\nmod b;\n");

#[track_caller]
fn check_a(a: &str, expected: &[(&str, &str)]) {
    check(LAYERS, &[LIB, ("a.rs", a), ("b.rs", "pub struct B;")], expected);
}

#[test]
fn a_file_uses_what_stands_above_it() {
    check(LAYERS, &[LIB, ("a.rs", ""), ("b.rs", "use crate::a::A; fn f() { super::a::g(); }")], &[]);
    check_a("use std::fmt; use serde::b; fn f(b: u8) { self::f(b); }", &[]);
}

#[test]
fn a_file_does_not_use_what_stands_below_it() {
    let refused = [("crate/src/a.rs:2", "of b.rs, which stands below")];
    check_a("\nuse crate::b::B;", &refused);
    check_a("\nuse crate::{a::c, b::{self}};", &refused);
    check_a("\nuse super::b;", &refused);
    check_a("\nfn f() -> crate::b::B { todo() }", &refused);
    check_a("\nfn f() { let x = vec![super::b::B]; }", &refused);
    check_a("\nmod inner { use super::super::b::B; }", &refused);
    check_a("\n#[cfg(any(test, loom))] use crate::b::B;", &refused);
    check_a("\nmacro_rules! m { () => { $crate::b::B } }", &refused);
}

#[test]
fn test_code_and_comments_may_look_anywhere() {
    check_a("//! [`crate::b::B`]\n/// See crate::b::B.\n// crate::b::B\nconst S: &str = \"crate::b::B\";", &[]);
    check_a("#[cfg(test)] mod tests { use crate::b::B; }", &[]);
    check_a("#[cfg(all(test, not(loom)))] fn f(x: u8) -> crate::b::B { x }\n#[test] fn g() { crate::b::h() }", &[]);
    check_a("#[cfg(test)] use crate::b::B; struct S { #[cfg(test)] b: crate::b::B, c: u8 }", &[]);
    check(LAYERS, &[LIB, ("a.rs", "#[cfg(test)] mod tests;"), ("a/tests.rs", "use crate::b::B;"), ("b.rs", "")], &[]);
    check_a("#[cfg(test)] fn f() {}\nuse crate::b::B;", &[("crate/src/a.rs:2", "below")]);
}

#[test]
fn a_re_export_hides_no_direction() {
    let lib = ("lib.rs", "mod a;\nmod b;\npub use b::B;\npub use a::*;");
    check(LAYERS, &[lib, ("a.rs", "use crate::B;"), ("b.rs", "use crate::a::A;")], &[("crate/src/a.rs:1", "of b.rs")]);
    check(LAYERS, &[lib, ("a.rs", ""), ("b.rs", "use crate::A;")], &[("crate/src/b.rs:1", "name the module")]);
    check(LAYERS, &[lib, ("a.rs", ""), ("b.rs", "fn f() { crate::exported_macro!(); }")], &[]);
}

#[test]
fn a_module_publishes_its_parts_without_using_them() {
    let layers = "a/mod.rs\na/part.rs\nb.rs\nlib.rs\n";
    let files = |a: &'static str, part: &'static str| [LIB, ("a/mod.rs", a), ("a/part.rs", part), ("b.rs", "use crate::a::Part;")];
    check(layers, &files("mod part; pub(crate) use part::Part;", "use super::Contract;"), &[]);
    check(layers, &files("mod part; pub(crate) use part::*;", ""), &[("crate/src/a/mod.rs:1", "below")]);
    check(layers, &files("mod part; use part::Part;", ""), &[("crate/src/a/mod.rs:1", "below")]);
    check(layers, &files("mod part; fn f() { part::g() }", ""), &[("crate/src/a/mod.rs:1", "below")]);
    check(layers, &files("mod part; fn f() { part::m!() }", ""), &[("crate/src/a/mod.rs:1", "below")]);
    check(layers, &files("mod part; pub use crate::b::B;", ""), &[("crate/src/a/mod.rs:1", "below")]);
}

#[test]
fn the_list_and_the_files_agree() {
    let files = [LIB, ("a.rs", ""), ("b.rs", "")];
    check("# base\n\na.rs # why\nb.rs\nlib.rs\n", &files, &[]);
    check("a.rs\nlib.rs\n", &files, &[("crate/layers.txt:1", "src/b.rs is not listed")]);
    check("a.rs\nlib.rs\nb.rs\n", &[("lib.rs", "mod a;"), ("a.rs", ""), ("b.rs", "")], &[("crate/src/b.rs:1", "no `mod` line")]);
    check("a.rs\nb.rs\nb.rs\nlib.rs\n", &files, &[("crate/layers.txt:3", "line 2 already")]);
    check("a.rs\nb.rs\nsrc/c.rs\nlib.rs\n", &files, &[("crate/layers.txt:3", "below src/")]);
}

#[test]
fn every_package_has_its_list() {
    let without = Tree::of(&[("Cargo.toml", "[workspace]"), ("crate/Cargo.toml", ""), ("crate/src/lib.rs", "")]);
    expect(&super::check(&without), &[("crate/layers.txt:1", "reading order")]);
}

#[test]
fn mod_lines_stand_in_the_order_of_the_list() {
    let main = ("main.rs", "mod a; mod b; #[cfg(test)] mod tests { mod a {} }");
    check("a.rs\nb.rs\nmain.rs\n", &[main, ("a.rs", ""), ("b.rs", "")], &[]);
    let files = [("lib.rs", "mod b;\nmod a;\n"), ("a.rs", ""), ("b/mod.rs", "mod c;"), ("b/c.rs", "")];
    check("b/c.rs\nb/mod.rs\na.rs\nlib.rs\n", &files, &[]);
    check("a.rs\nb/c.rs\nb/mod.rs\nlib.rs\n", &files, &[("crate/src/lib.rs:2", "`mod a` stands below `mod b`")]);
    check(
        "a.rs\nb.rs\nmain.rs\n",
        &[("main.rs", "mod b;\nmod a;\nfn main() { b::f() }"), ("a.rs", ""), ("b.rs", "")],
        &[("crate/src/main.rs:2", "same order")],
    );
    // In folders, in files with parts, and in further programs as well.
    for (parts, owner) in [("a/", "a/mod.rs"), ("a/", "a.rs"), ("bin/a/", "bin/a/main.rs")] {
        let (one, two) = (format!("{parts}one.rs"), format!("{parts}two.rs"));
        let root = if owner.starts_with("bin/") { "" } else { "mod a;" };
        let files = [("lib.rs", root), (owner, "mod two;\nmod one;"), (&one, ""), (&two, "")];
        check(&format!("{one}\n{two}\n{owner}\nlib.rs\n"), &files, &[(&format!("crate/src/{owner}:2"), "same order")]);
    }
}

#[test]
fn a_further_program_may_have_folders() {
    let main = ("bin/p/main.rs", "mod a;\nmod parts;\n");
    let files = |one: &'static str| [main, ("bin/p/a.rs", ""), ("bin/p/parts/mod.rs", "mod one;"), ("bin/p/parts/one.rs", one)];
    let layers = "bin/p/a.rs\nbin/p/parts/one.rs\nbin/p/parts/mod.rs\nbin/p/main.rs\n";
    check(layers, &files("use crate::a::A;"), &[]);
    check(layers, &files("use crate::parts::B;"), &[("crate/src/bin/p/parts/one.rs:1", "below")]);
}

#[test]
fn lib_rs_holds_no_items() {
    let allowed =
        "//! Docs.\n#![no_std]\nextern crate alloc;\nmod a;\npub mod b;\n/// Doc.\npub use a::{A, B as C};\n#[cfg(test)] mod tests;";
    check(LAYERS, &[("lib.rs", allowed), ("a.rs", ""), ("b.rs", "")], &[]);
    for item in [
        "use a::A;",
        "fn f() {}",
        "pub const X: u8 = 1;",
        "macro_rules! m { () => {} }",
        "mod inline { fn f() {} }",
        "pub struct S { x: u8 }",
    ] {
        let text = format!("mod a;\nmod b;\n#[inline]\n{item}\npub use a::A;");
        check(LAYERS, &[("lib.rs", &text), ("a.rs", ""), ("b.rs", "")], &[("crate/src/lib.rs:4", "only docs")]);
    }
}

#[test]
fn a_file_that_is_not_rust_is_a_finding() {
    check(LAYERS, &[LIB, ("a.rs", "fn f() {\n\"open"), ("b.rs", "")], &[("crate/src/a.rs:2", "not Rust")]);
}
