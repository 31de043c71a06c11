//! What is seen of one file: references, modules, `unsafe`, and what stays out of sight.

use super::*;

/// References as `path`, uses as `use path = name`, macros as `path!`.
#[track_caller]
fn check(text: &str, expected: &[&str]) {
    let source = Source::parse(text).unwrap();
    let seen = |reference: &Reference| match &reference.kind {
        ReferenceKind::Use { name, .. } => format!("use {} = {name}", reference.segments.join("::")),
        ReferenceKind::Path => reference.segments.join("::"),
        ReferenceKind::Macro => format!("{}!", reference.segments.join("::")),
    };
    assert_eq!(source.references.iter().map(seen).collect::<Vec<_>>(), expected);
}

#[test]
fn each_leaf_of_a_use_is_a_reference() {
    check("use a;", &["use a = a"]);
    check("use a::{b, c as d, e::*, self};", &["use a::b = b", "use a::c = d", "use a::e = *", "use a = a"]);
    check("pub(in crate::x) use {a::b, ::c::{d}};", &["use a::b = b", "use c::d = d"]);
    check("use a::{b::{c, d}, e,};", &["use a::b::c = c", "use a::b::d = d", "use a::e = e"]);
}

#[test]
fn paths_are_seen_wherever_they_stand() {
    check("fn f(x: a::B) -> impl c::D<e::F> { g::h!(i::j); }", &["a::B", "c::D", "e::F", "g::h!", "i::j"]);
    check("fn f() { Vec::<a::b>::c::d(); <e::F as g::H>::i(); r#type::x; }", &["a::b", "e::F", "g::H", "type::x"]);
    check("fn f<'a, 'b: 'a>(c: &'a u8) { 'd: loop { ::std::mem::drop(c) } }", &[]);
}

#[test]
fn references_know_their_line_and_their_inline_module() {
    let source = Source::parse("mod a {\n  mod b {\n    use c::d;\n  }\n}").unwrap();
    let [reference] = source.references.as_slice() else { panic!("{:?}", source.references) };
    assert_eq!((reference.line, reference.within.as_slice()), (3, ["a".to_owned(), "b".to_owned()].as_slice()));
}

#[test]
fn test_code_ends_where_its_item_ends() {
    check("#[cfg(test)] fn f<A, B>(a: x::A) {} fn g() { y::b() }", &["y::b"]);
    check("#[cfg(test)] const X: x::A = x::A { b: 1 }; type Y = y::Y;", &["y::Y"]);
    check("#[cfg(test)] const fn f() { x::a() } type Y = y::Y;", &["y::Y"]);
    check("struct S { #[cfg(test)] a: x::A, b: y::B }", &["y::B"]);
    check("fn f() { #[cfg(test)] x::a(); y::b(); }", &["y::b"]);
    check("#[cfg(test)] #[path = \"x.rs\"] mod tests; use y::b;", &["use y::b = b"]);
    check("#![cfg(test)] use x::a; fn f() { x::b() }", &[]);
    check("#[test] fn f() { x::a() } fn g() { y::b() }", &["y::b"]);
    check("#[cfg(not(test))] use y::b; #[cfg(any(test, loom))] use y::c;", &["use y::b = b", "use y::c = c"]);
}

#[test]
fn modules_carry_their_path_and_their_cfg() {
    let source =
        Source::parse("pub(crate) mod a;\n#[path = \"b_loom.rs\"] #[cfg(loom)] mod b;\n#[cfg(test)] mod tests { mod inner {} }").unwrap();
    let seen: Vec<_> = source.modules.iter().map(|m| (m.line, m.name.as_str(), m.inline, m.path.as_deref(), m.test)).collect();
    let expected = [
        (1, "a", false, None, false),
        (2, "b", false, Some("b_loom.rs"), false),
        (3, "tests", true, None, true),
        (3, "inner", true, None, true),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn unsafe_is_seen_in_code_and_nowhere_else() {
    let unsafe_lines = |text: &str| Source::parse(text).unwrap().unsafe_lines;
    assert_eq!(
        unsafe_lines(
            "// unsafe\n/// unsafe\nfn f() { \"unsafe\"; 'unsafe' }\n#![deny(unsafe_code)]".replace("'unsafe'", "b\"unsafe\"").as_str()
        ),
        []
    );
    assert_eq!(unsafe_lines("unsafe fn f() {}\nmod a { m! {\n unsafe { g() } } }\n#[cfg(test)] unsafe impl S for T {}"), [1, 3, 4]);
    assert_eq!(unsafe_lines("\n#[unsafe(no_mangle)] fn f() {}"), [2]);
}

#[test]
fn what_is_not_rust_is_refused_with_its_line() {
    assert_eq!(Source::parse("fn f() {\n\"open").err(), Some(2));
}
