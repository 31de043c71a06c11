//! Lengths of time as people write them: `10s`, `500ms`, `2m`, `12h`, `30d`, `4w`, and `0` for off.
//!
//! Next: `byte_size.rs`.

use std::time::Duration;

/// Reads a length of time.
///
/// # Errors
/// What is expected instead, in words.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let help = || {
        format!(
            "`{text}` is not a length of time: write a whole number with its unit, such as `10s`, `500ms`, `2m` or `30d`, or `0` for off"
        )
    };
    let digits_len = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_len);
    let number: u64 = number.parse().map_err(|_| help())?;
    let millis_per_unit = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "w" => 7 * 86_400_000,
        "" if number == 0 => 0,
        _ => return Err(help()),
    };
    number.checked_mul(millis_per_unit).map(Duration::from_millis).ok_or_else(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<Duration>) {
        assert_eq!(parse(text).ok(), expected, "{text}");
    }

    #[test]
    fn lengths_of_time_have_a_unit() {
        check("10s", Some(Duration::from_secs(10)));
        check("500ms", Some(Duration::from_millis(500)));
        check("2m", Some(Duration::from_secs(120)));
        check("12h", Some(Duration::from_secs(12 * 3600)));
        check("30d", Some(Duration::from_secs(30 * 24 * 3600)));
        check("4w", Some(Duration::from_secs(28 * 24 * 3600)));
        check("0", Some(Duration::ZERO));
        check("0s", Some(Duration::ZERO));
        for wrong in ["", "10", "s", "-1s", "1.5s", "1 s", "1h2m", "10S", "99999999999999999999s", "18446744073709551615m"] {
            check(wrong, None);
        }
    }

    #[test]
    fn the_error_names_what_was_written_and_what_is_expected() {
        let error = parse("10").unwrap_err();
        assert!(error.contains("`10`") && error.contains("`10s`"), "{error}");
    }
}
