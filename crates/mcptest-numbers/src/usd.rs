//! Money, counted exactly.

use std::fmt;
use std::iter::Sum;

use num_bigint::BigUint;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::percent::decimal;
use crate::ratio::quotient;

/// The largest amount in dollars that can be written. Below it no sum overflows.
pub const MAX_DOLLARS: u32 = 1_000_000;

/// The largest number of decimals that can be written.
pub const MAX_DECIMALS: usize = 12;

/// The number of units in a dollar.
const UNIT: u128 = 1_000_000_000_000_000_000;

/// An amount of US dollars in whole units of 10^-18.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Usd(u128);

impl Usd {
    /// No money.
    pub const ZERO: Self = Self(0);

    /// An amount in units of 10^-18 dollars.
    #[must_use]
    pub fn from_units(units: u128) -> Self {
        Self(units)
    }

    /// The amount in units of 10^-18 dollars.
    #[must_use]
    pub fn units(self) -> u128 {
        self.0
    }

    /// An amount of dollars as written: from 0 to a million, with at most twelve decimals. `None`
    /// for anything else.
    ///
    /// ```
    /// # use mcptest_numbers::usd::Usd;
    /// let cap = Usd::from_number(&serde_json::from_str("0.5").unwrap()).unwrap();
    /// assert_eq!(cap.to_string(), "$0.5");
    /// ```
    #[must_use]
    pub fn from_number(number: &Number) -> Option<Self> {
        units(number).map(|units| Self(units * 1_000_000))
    }

    /// The decimal that a double represents, the inverse of [`Usd::to_f64`]. `None` for a number
    /// that is not an amount.
    #[must_use]
    pub fn from_f64(value: f64) -> Option<Self> {
        // The shortest string that reads back as the double; anything below a unit is lost.
        let text = format!("{value}");
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let fraction: String = fraction
            .chars()
            .chain(std::iter::repeat('0'))
            .take(18)
            .collect();
        format!("{whole}{fraction}").parse().ok().map(Self)
    }

    /// The sum of two amounts.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self(self.0.saturating_add(more.0))
    }

    /// The difference of two amounts, at least zero.
    #[must_use]
    pub fn minus(self, less: Self) -> Self {
        Self(self.0.saturating_sub(less.0))
    }

    /// The nearest double.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        // Through a string, because parsing a decimal rounds once and correctly; a cast and a
        // division would round twice.
        format!("{}.{:018}", self.0 / UNIT, self.0 % UNIT)
            .parse()
            .unwrap_or(f64::MAX)
    }

    /// The nearest double to the amount divided by a count; `None` for a count of zero.
    ///
    /// The exact amount is divided and the result is rounded once: dividing [`Usd::to_f64`] would
    /// round twice, and a bound that is exactly met could fail.
    ///
    /// ```
    /// # use mcptest_numbers::usd::Usd;
    /// let cost = Usd::from_f64(0.3).unwrap();
    /// assert_eq!(cost.per(3), Some(0.1));
    /// assert_eq!(cost.to_f64() / 3.0, 0.09999999999999999);
    /// ```
    #[must_use]
    pub fn per(self, count: u64) -> Option<f64> {
        let denominator = BigUint::from(UNIT) * count;
        (count > 0).then(|| quotient(&BigUint::from(self.0), &denominator))
    }
}

impl fmt::Display for Usd {
    /// Prints all significant decimals and no others: `$0.0045`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:018}", self.0 % UNIT);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "${}{point}{fraction}", self.0 / UNIT)
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        Self(amounts.fold(0, |sum, amount| sum.saturating_add(amount.0)))
    }
}

/// The decimal digits of a written amount, shifted by [`MAX_DECIMALS`]. `None` for a number that is
/// not an amount.
#[must_use]
pub fn units(number: &Number) -> Option<u128> {
    let (digits, shift) = decimal(number)?;
    let shift = shift.checked_add(i32::try_from(MAX_DECIMALS).ok()?)?;
    let power = 10_u128.checked_pow(shift.unsigned_abs())?;
    let units = if shift >= 0 {
        digits.checked_mul(power)?
    } else {
        // `3.0` written with many zeros is exact; significant digits must not be lost.
        (digits % power == 0).then_some(digits / power)?
    };
    (units <= u128::from(MAX_DOLLARS) * 10_u128.pow(MAX_DECIMALS as u32)).then_some(units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints_amounts() {
        let usd = |text: &str| Usd::from_number(&serde_json::from_str(text).unwrap());
        for (text, shown) in [
            ("5", "$5"),
            ("0.10", "$0.1"),
            ("1e-3", "$0.001"),
            ("0", "$0"),
            ("1000000", "$1000000"),
        ] {
            assert_eq!(usd(text).unwrap().to_string(), shown);
        }
        for text in ["-1", "1000001", "1e-13"] {
            assert_eq!(usd(text), None, "{text}");
        }
        for value in [0.0045, 0.0, 12.0, 1e-12, 0.1 + 0.2] {
            assert_eq!(Usd::from_f64(value).unwrap().to_f64(), value);
        }
        assert_eq!(Usd::from_f64(f64::NAN), None);
        assert_eq!(Usd::from_f64(-1.0), None);
        assert_eq!(usd("1").unwrap().minus(usd("2").unwrap()), Usd::ZERO);
        assert_eq!(
            usd("0.1").unwrap().plus(usd("0.2").unwrap()),
            usd("0.3").unwrap()
        );
        assert_eq!(usd("0.00135").unwrap().per(3), Some(0.00045));
        assert_eq!(usd("1").unwrap().per(0), None);
        assert_eq!(Usd::ZERO.per(7), Some(0.0));
        assert_eq!(
            Usd::from_units(1).per(u64::MAX),
            Some(1e-18 / u64::MAX as f64)
        );
    }
}
