//! Which names members and rooms may have.
//!
//! Names are compared byte for byte: nothing is normalised or folded, so what one member types is what the others see. Characters are
//! judged by their Unicode general category (`unicode-properties`, because `core` cannot tell a combining mark): L is a letter, Nd a digit,
//! M a mark. Costs a table look-up per character that is not ASCII, once per `JOIN`. Next: `line.rs`.

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

use crate::limits::{NAME_LEN_MAX_CHARS, ROOM_NAME_LEN_MAX_CHARS};

/// Whether a member may be called this.
pub(crate) fn is_member_name(name: &str) -> bool {
    is_name(name, NAME_LEN_MAX_CHARS)
}

/// Whether a room may be called this.
pub(crate) fn is_room_name(name: &str) -> bool {
    is_name(name, ROOM_NAME_LEN_MAX_CHARS)
}

fn is_name(name: &str, len_max_chars: usize) -> bool {
    let mut after_letter = false;
    let mut len_chars = 0;
    for char in name.chars() {
        len_chars += 1;
        match kind(char) {
            Kind::Letter => after_letter = true,
            Kind::Punctuation => after_letter = false,
            // A mark joins the character before it: after punctuation it would disguise it.
            Kind::Mark if after_letter => {}
            Kind::Mark | Kind::Other => return false,
        }
    }
    (1..=len_max_chars).contains(&len_chars)
}

enum Kind {
    /// Or a digit.
    Letter,
    Mark,
    Punctuation,
    Other,
}

fn kind(char: char) -> Kind {
    match char {
        'a'..='z' | 'A'..='Z' | '0'..='9' => Kind::Letter,
        '_' | '.' | '-' => Kind::Punctuation,
        _ if char.is_ascii() => Kind::Other,
        _ => match char.general_category_group() {
            GeneralCategoryGroup::Letter => Kind::Letter,
            GeneralCategoryGroup::Number if char.general_category() == GeneralCategory::DecimalNumber => Kind::Letter,
            GeneralCategoryGroup::Mark => Kind::Mark,
            _ => Kind::Other,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_digits_of_any_script_marks_after_them_and_three_signs() {
        let good =
            ["a", "Z9", "_", ".", "-", "a_b.c-d", "Zoë", "Zoe\u{308}", "нина", "田中", "हिन्दी", "ไทยสู้", "٣", "ʼn", "a\u{308}\u{301}"];
        let bad = [
            "",
            " ",
            "a b",
            "a\tb",
            "a/b",
            "a\u{301}\u{200d}b",
            "\u{308}a",
            "_\u{308}",
            "😀",
            "½",
            "Ⅷ",
            "a\u{a0}b",
            "a\u{202e}b",
            "\u{fffd}",
            "a:b",
            "@",
        ];
        for name in good {
            assert!(is_member_name(name), "{name:?} is a name");
        }
        for name in bad {
            assert!(!is_member_name(name), "{name:?} is not a name");
        }
    }

    #[test]
    fn the_length_is_counted_in_characters() {
        for char in ['a', 'é', '田'] {
            let name = |len| core::iter::repeat_n(char, len).collect::<alloc::string::String>();
            assert!(is_member_name(&name(NAME_LEN_MAX_CHARS)));
            assert!(!is_member_name(&name(NAME_LEN_MAX_CHARS + 1)));
            assert!(is_room_name(&name(ROOM_NAME_LEN_MAX_CHARS)));
            assert!(!is_room_name(&name(ROOM_NAME_LEN_MAX_CHARS + 1)));
        }
    }
}
