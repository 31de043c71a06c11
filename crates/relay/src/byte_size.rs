//! Amounts of disk as people write them: `512MiB`, `20GiB`, `1TiB`.
//!
//! Units are powers of two, because what they bound is counted in pages. Next: `storage/mod.rs`, then its files.

/// Reads an amount of bytes.
///
/// # Errors
/// What is expected instead, in words.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let help = || format!("`{text}` is not an amount of disk: write a whole number with its unit, such as `512MiB`, `20GiB` or `1TiB`");
    let digits_len = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_len);
    let number: u64 = number.parse().map_err(|_| help())?;
    let bytes_per_unit = match unit {
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return Err(help()),
    };
    number.checked_mul(bytes_per_unit).ok_or_else(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<u64>) {
        assert_eq!(parse(text).ok(), expected, "{text}");
    }

    #[test]
    fn amounts_of_disk_have_a_unit_of_two_to_the_power() {
        check("512MiB", Some(512 << 20));
        check("20GiB", Some(20 << 30));
        check("1TiB", Some(1 << 40));
        check("0GiB", Some(0));
        for wrong in ["", "20", "GiB", "20GB", "20gib", "20 GiB", "-1GiB", "1.5GiB", "99999999999TiB", "99999999999999999999MiB"] {
            check(wrong, None);
        }
    }

    #[test]
    fn the_error_names_what_was_written_and_what_is_expected() {
        let error = parse("20GB").unwrap_err();
        assert!(error.contains("`20GB`") && error.contains("`20GiB`"), "{error}");
    }
}
