//! What one Rust file says, as far as the checks ask: its modules, what it refers to, where it says `unsafe`.
//!
//! It works on tokens, not on a syntax tree, so that paths inside macros are seen like any other and a newer syntax needs no newer
//! parser. Comments are no tokens and doc comments are attributes: both are out of the way. It knows nothing of other files.
//! Read next: `modules.rs`, how the files of a crate hang together.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The part of a file that the checks need.
#[derive(Default)]
pub(crate) struct Source {
    pub(crate) modules: Vec<Module>,
    /// Outside of test code.
    pub(crate) references: Vec<Reference>,
    /// In all code, tests included.
    pub(crate) unsafe_lines: Vec<usize>,
    /// First lines of top-level items that are neither `mod x;`, nor a re-export, nor `extern crate`, nor a procedural macro, which the
    /// language wants in the root.
    pub(crate) item_lines: Vec<usize>,
}

/// A `mod` line or an inline module.
#[derive(Debug, PartialEq)]
pub(crate) struct Module {
    pub(crate) line: usize,
    /// The inline modules around it.
    pub(crate) within: Vec<String>,
    pub(crate) name: String,
    pub(crate) inline: bool,
    /// The value of a `#[path = ".."]` attribute.
    pub(crate) path: Option<String>,
    pub(crate) test: bool,
}

/// A path with at least two segments, or one leaf of a `use`.
#[derive(Debug, PartialEq)]
pub(crate) struct Reference {
    pub(crate) line: usize,
    pub(crate) within: Vec<String>,
    pub(crate) segments: Vec<String>,
    pub(crate) kind: ReferenceKind,
}

#[derive(Debug, PartialEq)]
pub(crate) enum ReferenceKind {
    /// `name` is what the file calls it, `*` for all that is in there.
    Use {
        name: String,
        public: bool,
    },
    Path,
    /// `crate::name!`: exported macros live in the root of their crate whatever file defines them.
    Macro,
}

impl Source {
    /// The error is the line at which the text stops being Rust.
    pub(crate) fn parse(text: &str) -> Result<Self, usize> {
        let stream: TokenStream = text.parse().map_err(|error: proc_macro2::LexError| error.span().start().line)?;
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut source = Self { item_lines: item_lines(&tokens), ..Self::default() };
        source.walk(&tokens, &[], false);
        Ok(source)
    }

    fn walk(&mut self, tokens: &[TokenTree], within: &[String], all_is_test: bool) {
        let mut at = 0;
        let mut test_end = if all_is_test { tokens.len() } else { 0 };
        let mut attributes = Attributes::default();
        let mut public = false;
        while at < tokens.len() {
            let rest = &tokens[at..];
            if let Some(len) = attributes.take(rest) {
                // `#[unsafe(no_mangle)]` is as unsafe as a block.
                if group(rest.get(len - 1), Delimiter::Bracket).and_then(|body| ident(body.first())).as_deref() == Some("unsafe") {
                    self.unsafe_lines.push(line(&rest[0]));
                }
                at += len;
                continue;
            }
            if attributes.file_is_test {
                test_end = tokens.len();
            } else if std::mem::take(&mut attributes.item_is_test) {
                test_end = test_end.max(at + item_len(rest));
            }
            let test = at < test_end;
            let line = line(&rest[0]);
            let was_public = std::mem::take(&mut public);
            at += match &rest[0] {
                TokenTree::Ident(word) if word == "pub" => {
                    public = true;
                    visibility_len(rest)
                }
                TokenTree::Ident(word) if word == "mod" && ident(rest.get(1)).is_some() => {
                    let name = ident(rest.get(1)).expect("the guard saw it");
                    let body = group(rest.get(2), Delimiter::Brace);
                    let path = attributes.path.take();
                    self.modules.push(Module { line, within: within.to_vec(), name: name.clone(), inline: body.is_some(), path, test });
                    if let Some(body) = body {
                        self.walk(&body, &[within, &[name]].concat(), test);
                    }
                    3
                }
                TokenTree::Ident(word) if word == "use" => {
                    let len = 1 + rest[1..].iter().take_while(|token| !is_punct(token, ';')).count();
                    if !test {
                        self.use_tree(&rest[1..len], &[], within, was_public);
                    }
                    len
                }
                TokenTree::Ident(word) => {
                    if word == "unsafe" {
                        self.unsafe_lines.push(line);
                    }
                    let (segments, len) = path(rest);
                    // After `::` it is the tail of `<T>::`, `Vec::<T>::` or of a path from outside (`::std`).
                    if segments.len() > 1 && !follows_colons(&tokens[..at]) && !test {
                        let kind =
                            if rest.get(len).is_some_and(|next| is_punct(next, '!')) { ReferenceKind::Macro } else { ReferenceKind::Path };
                        self.references.push(Reference { line, within: within.to_vec(), segments, kind });
                    }
                    len
                }
                TokenTree::Group(inner) => {
                    let inner: Vec<TokenTree> = inner.stream().into_iter().collect();
                    self.walk(&inner, within, test);
                    1
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => 1,
            };
        }
    }

    /// Adds one reference for each leaf: `a::{b, c as d}` names `a::b` and `a::c`.
    fn use_tree(&mut self, tokens: &[TokenTree], prefix: &[String], within: &[String], public: bool) {
        for tree in tokens.split(|token| is_punct(token, ',')) {
            let Some(first) = tree.iter().position(|token| !is_punct(token, ':')) else { continue };
            let (mut segments, len) = path(&tree[first..]);
            segments.splice(0..0, prefix.iter().cloned());
            let end = tree.get(first + len..).unwrap_or_default().iter().find(|token| !is_punct(token, ':'));
            if let Some(inner) = group(end, Delimiter::Brace) {
                self.use_tree(&inner, &segments, within, public);
                continue;
            }
            if segments.last().is_some_and(|last| last == "self") && segments.len() > 1 {
                segments.pop();
            }
            let name = match end {
                Some(token) if is_punct(token, '*') => "*".to_owned(),
                Some(_) => ident(tree.last()).unwrap_or_default(),
                None => segments.last().cloned().unwrap_or_default(),
            };
            let kind = ReferenceKind::Use { name, public };
            self.references.push(Reference { line: line(&tree[first]), within: within.to_vec(), segments, kind });
        }
    }
}

/// What the attributes before an item, or at the top of a file, say about it.
#[derive(Default)]
struct Attributes {
    item_is_test: bool,
    file_is_test: bool,
    path: Option<String>,
    item_is_macro: bool,
}

impl Attributes {
    /// Takes the attribute at the start of `tokens`, if there is one, and tells how many tokens that were.
    fn take(&mut self, tokens: &[TokenTree]) -> Option<usize> {
        if !is_punct(tokens.first()?, '#') {
            return None;
        }
        let inner = is_punct(tokens.get(1)?, '!');
        let len = if inner { 3 } else { 2 };
        let body = group(tokens.get(len - 1), Delimiter::Bracket)?;
        match ident(body.first()).as_deref() {
            Some("cfg") if group(body.get(1), Delimiter::Parenthesis).is_some_and(|condition| implies_test(&condition)) => {
                *(if inner { &mut self.file_is_test } else { &mut self.item_is_test }) = true;
            }
            Some("test") => self.item_is_test = true,
            Some("proc_macro" | "proc_macro_attribute" | "proc_macro_derive") => self.item_is_macro = true,
            Some("path") => self.path = body.get(2).map(|value| value.to_string().trim_matches('"').to_owned()),
            _ => {}
        }
        Some(len)
    }
}

/// Whether code under this `cfg` condition exists in test builds only. `any(test, x)` may exist elsewhere.
fn implies_test(condition: &[TokenTree]) -> bool {
    let arguments = group(condition.get(1), Delimiter::Parenthesis).unwrap_or_default();
    let mut arguments = arguments.split(|token| is_punct(token, ',')).filter(|argument| !argument.is_empty());
    match ident(condition.first()).as_deref() {
        Some("test") => true,
        Some("all") => arguments.any(implies_test),
        Some("any") => arguments.all(implies_test),
        _ => false,
    }
}

/// How many tokens the item at the start of `tokens` takes, attributes before it not counted.
fn item_len(tokens: &[TokenTree]) -> usize {
    let start = visibility_len(tokens);
    let word = ident(tokens.get(start)).unwrap_or_default();
    let next = ident(tokens.get(start + 1)).unwrap_or_default();
    let is_const_fn = word == "const" && ["fn", "unsafe", "async", "extern"].contains(&next.as_str());
    let ends_at_semicolon_only = ["use", "type", "static", "let", "const"].contains(&word.as_str()) && !is_const_fn;
    let is_item = ["mod", "fn", "struct", "enum", "union", "trait", "impl", "async", "unsafe", "extern", "macro_rules"];
    // What is left are fields, variants, match arms and statements.
    let ends_at_comma = !ends_at_semicolon_only && !is_const_fn && !is_item.contains(&word.as_str());
    let end = tokens[start..].iter().position(|token| {
        is_punct(token, ';')
            || (ends_at_comma && is_punct(token, ','))
            || (!ends_at_semicolon_only && group(Some(token), Delimiter::Brace).is_some())
    });
    end.map_or(tokens.len(), |end| start + end + 1)
}

fn item_lines(tokens: &[TokenTree]) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut at = 0;
    let mut attributes = Attributes::default();
    while at < tokens.len() {
        let rest = &tokens[at..];
        if let Some(len) = attributes.take(rest) {
            at += len;
            continue;
        }
        let is_macro = std::mem::take(&mut attributes).item_is_macro;
        let visibility = visibility_len(rest);
        let is_module_line =
            ident(rest.get(visibility)).as_deref() == Some("mod") && rest.get(visibility + 2).is_some_and(|t| is_punct(t, ';'));
        let is_reexport = visibility > 0 && ident(rest.get(visibility)).as_deref() == Some("use");
        let is_extern_crate = ident(rest.first()).as_deref() == Some("extern") && ident(rest.get(1)).as_deref() == Some("crate");
        if !(is_module_line || is_reexport || is_extern_crate || is_macro) {
            lines.push(line(&rest[0]));
        }
        at += item_len(rest);
    }
    lines
}

/// `pub`, `pub(crate)`, `pub(in crate::x)`: none of these refers to anything.
fn visibility_len(tokens: &[TokenTree]) -> usize {
    match ident(tokens.first()).as_deref() {
        Some("pub") if group(tokens.get(1), Delimiter::Parenthesis).is_some() => 2,
        Some("pub") => 1,
        _ => 0,
    }
}

/// The longest `a::b::c` at the start of `tokens` and the number of tokens that it takes.
fn path(tokens: &[TokenTree]) -> (Vec<String>, usize) {
    let Some(first) = ident(tokens.first()) else { return (Vec::new(), 0) };
    let mut segments = vec![first];
    let mut len = 1;
    while let [TokenTree::Punct(one), TokenTree::Punct(two), TokenTree::Ident(_), ..] = &tokens[len..]
        && one.as_char() == ':'
        && two.as_char() == ':'
    {
        segments.extend(ident(tokens.get(len + 2)));
        len += 3;
    }
    (segments, len)
}

fn follows_colons(before: &[TokenTree]) -> bool {
    matches!(before, [.., one, two] if is_punct(one, ':') && is_punct(two, ':'))
}

fn ident(token: Option<&TokenTree>) -> Option<String> {
    match token? {
        TokenTree::Ident(ident) => Some(ident.to_string().trim_start_matches("r#").to_owned()),
        _ => None,
    }
}

fn group(token: Option<&TokenTree>, delimiter: Delimiter) -> Option<Vec<TokenTree>> {
    match token? {
        TokenTree::Group(group) if group.delimiter() == delimiter => Some(group.stream().into_iter().collect()),
        _ => None,
    }
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

fn line(token: &TokenTree) -> usize {
    token.span().start().line
}

#[cfg(test)]
mod tests;
