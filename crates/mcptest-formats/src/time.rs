//! Times as traces write them.

/// The nanoseconds since 1970 of an RFC 3339 time (`2026-01-31T10:20:30.5Z`). A time without a zone
/// is taken as UTC. `None` if it is not one.
pub(crate) fn nanoseconds(text: &str) -> Option<i128> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i128> {
        let digits = text.get(from..to)?;
        let all = digits.bytes().all(|byte| byte.is_ascii_digit());
        all.then(|| digits.parse().ok())?
    };
    let is = |at: usize, byte: u8| bytes.get(at) == Some(&byte);
    let separated = matches!(bytes.get(10), Some(b'T' | b't' | b' '));
    if !(is(4, b'-') && is(7, b'-') && separated && is(13, b':') && is(16, b':')) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let rest = text.get(19..)?;
    let digits = rest.strip_prefix('.').map_or(0, |fraction| {
        fraction.bytes().take_while(u8::is_ascii_digit).count()
    });
    let (fraction, zone) = match digits {
        0 => (0, rest),
        _ => {
            let kept = digits.min(9);
            let value = number(20, 20 + kept)?;
            let scale = 10_i128.pow(9 - u32::try_from(kept).ok()?);
            (value * scale, rest.get(1 + digits..)?)
        }
    };
    let offset = match zone.as_bytes() {
        [] | [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let at = text.len() - 5;
            let minutes = number(at, at + 2)? * 60 + number(at + 3, at + 5)?;
            if *sign == b'-' { -minutes } else { minutes }
        }
        _ => return None,
    };
    // Days since 1970, with years that begin in March.
    let shifted = if month <= 2 { year - 1 } else { year };
    let era = shifted.div_euclid(400);
    let of_era = shifted - era * 400;
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    let seconds = days * 86_400 + hour * 3600 + (minute - offset) * 60 + second;
    Some(seconds * 1_000_000_000 + fraction)
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    #[test]
    fn times_are_read() {
        let second = 1_000_000_000;
        for (text, wanted) in [
            ("1970-01-01T00:00:00Z", Some(0)),
            ("2000-03-01T00:00:00Z", Some(951_868_800 * second)),
            (
                "2024-02-29T12:00:00.25+01:30",
                Some(1_709_202_600 * second + 250_000_000),
            ),
            (
                "2024-02-29 12:00:00.123456789012",
                Some(1_709_208_000 * second + 123_456_789),
            ),
            ("2024-02-29T12:00:00-00:30", Some(1_709_209_800 * second)),
            ("2024-02-29", None),
            ("2024-02-29T12:00:00 CET", None),
            ("2024-02-2äT12:00:00Z", None),
            ("", None),
        ] {
            assert_eq!(nanoseconds(text), wanted, "{text}");
        }
        assert!(nanoseconds("2025-01-01T00:00:00.45Z") < nanoseconds("2025-01-01T00:00:00.5Z"));
        assert!(nanoseconds("2025-01-01T00:00:00Z") < nanoseconds("2025-01-01T00:00:00.5Z"));
    }
}
