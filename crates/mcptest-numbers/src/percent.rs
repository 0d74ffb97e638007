//! Whole percents and exact rates, without binary floating point: 29 of 100 is 29, and 7 of 10
//! meets 0.7.
//!
//! Rounding by family of figures: selection, distractors, axes and reliability round down;
//! orchestration (except discovery) rounds to the nearest, ties up.

use serde_json::Number;

/// `part / whole` in percent, rounded down; `None` for a whole of 0.
#[must_use]
pub fn down(part: u64, whole: u64) -> Option<u64> {
    (whole > 0).then(|| u64_of(u128::from(part) * 100 / u128::from(whole)))
}

/// A share in whole percent, rounded up: one of 300 is 1, never 0. Nothing of nothing is undefined.
#[must_use]
pub fn up(part: u64, whole: u64) -> Option<u64> {
    let hundredfold = u128::from(part) * 100;
    let whole = (whole > 0).then_some(u128::from(whole))?;
    u64::try_from(hundredfold.div_ceil(whole)).ok()
}

/// `part / whole` in percent, rounded to the nearest, ties up; `None` for a whole of 0.
#[must_use]
pub fn nearest(part: u64, whole: u64) -> Option<u64> {
    let (part, whole) = (u128::from(part), u128::from(whole));
    (whole > 0).then(|| u64_of((part * 200 + whole) / (whole * 2)))
}

fn u64_of(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// A number between 0 and 1 as written, stored as a fraction over a power of ten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    numerator: u128,
    denominator: u128,
}

/// A number as written: decimal digits and the exponent of ten. `None` for a negative number, and
/// for too many digits.
pub fn decimal(number: &Number) -> Option<(u128, i32)> {
    // The shortest decimal of the double is what the author wrote (0.7, not 0.69999…).
    let text = number.to_string();
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text.as_str(), 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}").parse().ok()?;
    Some((
        digits,
        exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?,
    ))
}

impl Rate {
    /// Reads the decimal digits of a JSON number. `None` outside 0..=1, and for too many digits.
    #[must_use]
    pub fn from_number(number: &Number) -> Option<Self> {
        let (digits, shift) = decimal(number)?;
        let power = 10_u128.checked_pow(shift.unsigned_abs())?;
        let rate = if shift < 0 {
            Self {
                numerator: digits,
                denominator: power,
            }
        } else {
            Self {
                numerator: digits.checked_mul(power)?,
                denominator: 1,
            }
        };
        (rate.numerator <= rate.denominator).then_some(rate)
    }

    /// The shortest decimal that parses to a double.
    #[must_use]
    pub fn from_f64(value: f64) -> Option<Self> {
        Self::from_number(&Number::from_f64(value)?)
    }

    /// Numerator and denominator.
    #[must_use]
    pub fn parts(self) -> (u128, u128) {
        (self.numerator, self.denominator)
    }

    /// Returns true if `part / whole` is at least this rate; false for a whole of 0.
    #[must_use]
    pub fn met_by(self, part: u64, whole: u64) -> bool {
        whole > 0
            && match (
                u128::from(part).checked_mul(self.denominator),
                u128::from(whole).checked_mul(self.numerator),
            ) {
                (Some(left), Some(right)) => left >= right,
                // Only extreme precision overflows; doubles are exact enough for the comparison.
                _ => part as f64 / whole as f64 >= self.numerator as f64 / self.denominator as f64,
            }
    }

    /// The rate in percent, with as many decimals as it needs: `80`, `75.5`.
    #[must_use]
    pub fn percent_text(self) -> String {
        let scaled = self.numerator.saturating_mul(100);
        let whole = scaled / self.denominator;
        let rest = scaled % self.denominator;
        if rest == 0 {
            return whole.to_string();
        }
        let width = self.denominator.ilog10() as usize;
        let fraction = format!("{rest:0width$}");
        format!("{whole}.{}", fraction.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rate(text: &str) -> Option<Rate> {
        Rate::from_number(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn float_traps() {
        assert_eq!(down(29, 100), Some(29));
        assert_eq!(down(2, 3), Some(66));
        assert_eq!(down(0, 0), None);
        assert_eq!(down(u64::MAX, u64::MAX), Some(100));
        assert!(rate("0.7").unwrap().met_by(7, 10));
        assert!(!rate("0.7").unwrap().met_by(69, 100));
        assert!(rate("0.1").unwrap().met_by(3, 30));
        assert!(rate("1").unwrap().met_by(5, 5));
        assert!(rate("1.0").unwrap().met_by(5, 5));
        assert!(rate("0").unwrap().met_by(0, 5));
        assert!(!rate("0").unwrap().met_by(0, 0));
        assert!(!rate("1e-3").unwrap().met_by(0, 5));
    }

    #[test]
    fn nearest_rounds_ties_up() {
        assert_eq!(nearest(2, 3), Some(67));
        assert_eq!(nearest(1, 3), Some(33));
        // 0.5 and 99.5 are ties; 99.49… is not.
        assert_eq!(nearest(1, 200), Some(1));
        assert_eq!(nearest(1, 201), Some(0));
        assert_eq!(nearest(199, 200), Some(100));
        assert_eq!(nearest(1, 8), Some(13));
        assert_eq!(nearest(29, 200), Some(15));
        assert_eq!(nearest(0, 5), Some(0));
        assert_eq!(nearest(0, 0), None);
        assert_eq!(nearest(u64::MAX, u64::MAX), Some(100));
    }

    #[test]
    fn only_fractions_are_rates() {
        assert!(rate("1.01").is_none());
        assert!(rate("80").is_none());
        assert!(rate("-0.1").is_none());
        assert_eq!(Rate::from_f64(0.092).unwrap().parts(), (92, 1000));
        assert_eq!(Rate::from_f64(1e-6).unwrap().parts(), (1, 1_000_000));
        assert!(Rate::from_f64(f64::NAN).is_none());
    }

    #[test]
    fn the_percent_text_keeps_all_decimals() {
        for (text, expected) in [
            ("0.8", "80"),
            ("1", "100"),
            ("0.755", "75.5"),
            ("0.05", "5"),
            ("0.001", "0.1"),
            ("0", "0"),
        ] {
            assert_eq!(rate(text).unwrap().percent_text(), expected);
        }
    }

    proptest! {
        #[test]
        fn a_percent_is_bounded_and_monotone(part in 0_u64..1000, more in 0_u64..1000) {
            let whole = part + more;
            prop_assume!(whole > 0);
            let percent = down(part, whole).unwrap();
            prop_assert!(percent <= 100);
            prop_assert!(percent <= down(part + 1, whole + 1).unwrap());
            prop_assert_eq!(percent == 100, more == 0);
        }

        #[test]
        fn nearest_is_off_by_half_a_percent_at_most(part in 0_u64..100_000, more in 0_u64..100_000) {
            let whole = part + more;
            prop_assume!(whole > 0);
            let (low, near) = (down(part, whole).unwrap(), nearest(part, whole).unwrap());
            let up = (part * 100 % whole) * 2 >= whole;
            prop_assert_eq!(near, low + u64::from(up));
        }

        #[test]
        fn every_fraction_of_hundred_meets_itself(part in 0_u64..=100) {
            let text = format!("{}", part as f64 / 100.0);
            prop_assert!(rate(&text).unwrap().met_by(part, 100));
            prop_assert!(part == 0 || !rate(&text).unwrap().met_by(part - 1, 100));
        }
    }
}
