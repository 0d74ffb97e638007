//! The wait that the headers of a refusal request.
//!
//! | header | as in |
//! |---|---|
//! | `retry-after-ms` | `1500` |
//! | `retry-after` | `2`, `0.5`, `Wed, 21 Oct 2015 07:28:00 GMT` |
//! | `x-ratelimit-reset-requests`, `-tokens` | `1s`, `6m0s`, `120ms` |
//! | `anthropic-ratelimit-*-reset` | `2026-01-31T09:30:00Z` |
//!
//! The first two are explicit and take precedence. The others give the reset of a quota: the wait
//! is that of the latest exhausted quota (`remaining` is 0), or else of the earliest quota.

use std::time::{Duration, SystemTime};

use hyper::header::HeaderMap;

/// The limit of a wait, so that it can be added to a time without overflow.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(365 * 24 * 3600);

/// The quotas: the headers of remainder and reset, and the format of the reset.
const QUOTAS: [(&str, &str, ResetFormat); 6] = [
    (
        "x-ratelimit-remaining-requests",
        "x-ratelimit-reset-requests",
        ResetFormat::Duration,
    ),
    (
        "x-ratelimit-remaining-tokens",
        "x-ratelimit-reset-tokens",
        ResetFormat::Duration,
    ),
    (
        "anthropic-ratelimit-requests-remaining",
        "anthropic-ratelimit-requests-reset",
        ResetFormat::Timestamp,
    ),
    (
        "anthropic-ratelimit-tokens-remaining",
        "anthropic-ratelimit-tokens-reset",
        ResetFormat::Timestamp,
    ),
    (
        "anthropic-ratelimit-input-tokens-remaining",
        "anthropic-ratelimit-input-tokens-reset",
        ResetFormat::Timestamp,
    ),
    (
        "anthropic-ratelimit-output-tokens-remaining",
        "anthropic-ratelimit-output-tokens-reset",
        ResetFormat::Timestamp,
    ),
];

#[derive(Clone, Copy)]
enum ResetFormat {
    Duration,
    Timestamp,
}

/// Returns the wait that the headers request. `now` is the local time; the response's `Date`
/// overrides it, so that a wrong local clock has no effect.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let now = text("date")
        .and_then(|date| httpdate::parse_http_date(date).ok())
        .unwrap_or(now);
    let until = |time: SystemTime| time.duration_since(now).unwrap_or_default();
    let explicit = text("retry-after-ms")
        .and_then(|millis| seconds(millis).map(|millis| millis / 1000))
        .or_else(|| {
            let value = text("retry-after")?;
            seconds(value).or_else(|| httpdate::parse_http_date(value).ok().map(until))
        });
    let wait = explicit.or_else(|| {
        let mut exhausted = None;
        let mut earliest: Option<Duration> = None;
        for (remaining, reset, form) in QUOTAS {
            let Some(written) = text(reset) else { continue };
            let wait = match form {
                ResetFormat::Duration => duration(written),
                ResetFormat::Timestamp => timestamp(written).map(until),
            };
            let Some(wait) = wait else { continue };
            if text(remaining) == Some("0") {
                exhausted = exhausted.max(Some(wait));
            }
            earliest = Some(earliest.map_or(wait, |least| least.min(wait)));
        }
        exhausted.or(earliest)
    });
    wait.map(|wait| wait.min(MAX_RETRY_AFTER))
}

/// Parses a plain number of seconds, with or without a fraction.
fn seconds(text: &str) -> Option<Duration> {
    let plain = !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number = plain.then(|| text.parse::<f64>().ok())??;
    Some(
        Duration::try_from_secs_f64(number)
            .unwrap_or(MAX_RETRY_AFTER)
            .min(MAX_RETRY_AFTER),
    )
}

/// Parses `6m0s`, `1.5s`, `120ms`, `1h2m3s`, or a plain number of seconds.
fn duration(text: &str) -> Option<Duration> {
    if let Some(plain) = seconds(text) {
        return Some(plain);
    }
    let mut sum = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let number = seconds(&rest[..unit_at])?;
        let unit = &rest[unit_at..];
        let unit_end = unit
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(unit.len());
        let part = match &unit[..unit_end] {
            "ms" => number / 1000,
            "s" => number,
            "m" => number.saturating_mul(60),
            "h" => number.saturating_mul(3600),
            "d" => number.saturating_mul(24 * 3600),
            _ => return None,
        };
        sum = sum.saturating_add(part).min(MAX_RETRY_AFTER);
        rest = &unit[unit_end..];
    }
    (!text.is_empty()).then_some(sum)
}

/// Parses an RFC 3339 timestamp: `2026-01-31T09:30:00Z`, `2026-01-31T09:30:00.25+01:00`.
fn timestamp(text: &str) -> Option<SystemTime> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        digits
            .bytes()
            .all(|byte| byte.is_ascii_digit())
            .then(|| digits.parse().ok())?
    };
    let mark = |at: usize, marks: &[u8]| bytes.get(at).is_some_and(|byte| marks.contains(byte));
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let has_separators =
        mark(4, b"-") && mark(7, b"-") && mark(10, b"Tt ") && mark(13, b":") && mark(16, b":");
    let in_range = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !has_separators || !in_range {
        return None;
    }
    let mut at = 19;
    let mut fraction = Duration::ZERO;
    if mark(at, b".") {
        let end = (at + 1..bytes.len())
            .find(|index| !bytes[*index].is_ascii_digit())
            .unwrap_or(bytes.len());
        fraction = seconds(&format!("0{}", text.get(at..end)?))?;
        at = end;
    }
    let zone = match text.get(at..)? {
        "Z" | "z" => 0,
        offset if offset.len() == 6 && mark(at, b"+-") && mark(at + 3, b":") => {
            let minutes = number(at + 1, at + 3)? * 60 + number(at + 4, at + 6)?;
            if mark(at, b"-") { -minutes } else { minutes }
        }
        _ => return None,
    };
    let seconds =
        days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - zone * 60;
    // Times before 1970 are not usable.
    let since = Duration::from_secs(u64::try_from(seconds).ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since + fraction)
}

/// Returns the days since 1970-01-01 in the Gregorian calendar (Howard Hinnant's algorithm).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2015-10-21T07:27:50Z, ten seconds before the date of most examples below.
    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_445_412_470)
    }

    fn wait(headers: &[(&'static str, &str)]) -> Option<f64> {
        let map = headers
            .iter()
            .map(|(name, value)| {
                (
                    hyper::header::HeaderName::from_static(name),
                    value.parse().unwrap(),
                )
            })
            .collect();
        retry_after(&map, now()).map(|wait| wait.as_secs_f64())
    }

    #[test]
    fn explicit_waits() {
        assert_eq!(wait(&[]), None);
        assert_eq!(wait(&[("retry-after", "2")]), Some(2.0));
        assert_eq!(wait(&[("retry-after", "0.5")]), Some(0.5));
        assert_eq!(
            wait(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]),
            Some(10.0)
        );
        // A time in the past means no wait.
        assert_eq!(
            wait(&[("retry-after", "Tue, 21 Oct 2014 07:28:00 GMT")]),
            Some(0.0)
        );
        assert_eq!(
            wait(&[("retry-after-ms", "1500"), ("retry-after", "9")]),
            Some(1.5)
        );
        for nonsense in ["soon", "-1", "", "1e9", "NaN", "inf"] {
            assert_eq!(wait(&[("retry-after", nonsense)]), None, "{nonsense}");
        }
        assert!(wait(&[("retry-after", &"9".repeat(400))]).is_some_and(|wait| wait > 1e6));
    }

    #[test]
    fn the_date_header_overrides_the_local_clock() {
        let date = ("date", "Wed, 21 Oct 2015 07:27:55 GMT");
        assert_eq!(
            wait(&[date, ("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]),
            Some(5.0)
        );
    }

    #[test]
    fn quotas() {
        let requests = ("x-ratelimit-reset-requests", "1s");
        let tokens = ("x-ratelimit-reset-tokens", "6m0s");
        assert_eq!(wait(&[requests, tokens]), Some(1.0));
        assert_eq!(
            wait(&[requests, tokens, ("x-ratelimit-remaining-tokens", "0")]),
            Some(360.0)
        );
        assert_eq!(
            wait(&[requests, tokens, ("x-ratelimit-remaining-requests", "0")]),
            Some(1.0)
        );
        assert_eq!(wait(&[("x-ratelimit-reset-tokens", "120ms")]), Some(0.12));
        assert_eq!(
            wait(&[("x-ratelimit-reset-tokens", "1h2m3.5s")]),
            Some(3723.5)
        );
        assert_eq!(wait(&[("x-ratelimit-reset-tokens", "1x")]), None);
        assert_eq!(
            wait(&[("anthropic-ratelimit-tokens-reset", "2015-10-21T07:28:20Z")]),
            Some(30.0)
        );
        // An explicit wait overrides the quotas.
        assert_eq!(wait(&[requests, ("retry-after", "3")]), Some(3.0));
    }

    #[test]
    fn timestamps() {
        let unix = |text: &str| {
            timestamp(text).map(|time| {
                time.duration_since(SystemTime::UNIX_EPOCH)
                    .unwrap()
                    .as_secs_f64()
            })
        };
        assert_eq!(unix("1970-01-01T00:00:00Z"), Some(0.0));
        assert_eq!(unix("2000-02-29T12:00:00Z"), Some(951_825_600.0));
        assert_eq!(unix("2026-01-31T09:30:00.25+01:00"), Some(1_769_848_200.25));
        assert_eq!(unix("2026-01-31T09:30:00-00:30"), Some(1_769_853_600.0));
        for nonsense in [
            "",
            "2026-01-31",
            "2026-13-01T00:00:00Z",
            "2026-01-31T09:30:00",
            "1969-12-31T00:00:00Z",
            "äöüä-01-31T09:30:00Z",
        ] {
            assert_eq!(unix(nonsense), None, "{nonsense}");
        }
    }

    proptest! {
        #[test]
        fn every_header_is_tolerated(value in "[ -~]{0,30}|[0-9TZ:.+smh-]{0,30}") {
            for name in [
                "retry-after",
                "retry-after-ms",
                "x-ratelimit-reset-tokens",
                "anthropic-ratelimit-tokens-reset",
                "date",
            ] {
                let Ok(header) = value.parse() else { return Ok(()) };
                let map = HeaderMap::from_iter([(
                    hyper::header::HeaderName::from_static(name),
                    header,
                )]);
                prop_assert!(retry_after(&map, now()).is_none_or(|wait| wait <= MAX_RETRY_AFTER));
            }
        }

        #[test]
        fn timestamps_equal_http_dates(seconds in 0_u64..253_402_300_799) {
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            // `Sun, 06 Nov 1994 08:49:37 GMT`, rewritten as RFC 3339.
            let http = httpdate::fmt_http_date(at);
            let month = 1 + [
                "Jan",
                "Feb",
                "Mar",
                "Apr",
                "May",
                "Jun",
                "Jul",
                "Aug",
                "Sep",
                "Oct",
                "Nov",
                "Dec",
            ]
                .iter().position(|name| *name == &http[8..11]).unwrap();
            let written = format!(
                "{}-{month:02}-{}T{}Z",
                &http[12..16],
                &http[5..7],
                &http[17..25],
            );
            prop_assert_eq!(timestamp(&written), Some(at));
        }
    }
}
