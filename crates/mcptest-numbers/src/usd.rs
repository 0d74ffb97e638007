//! Exact amounts of US dollars.

use std::fmt;
use std::iter::Sum;

use serde_json::Number;

use crate::percent;

/// The largest amount that is read, and the largest price per million tokens. Below it no sum of
/// costs overflows.
pub const MAX_DOLLARS: u32 = 1_000_000;

/// The number of decimals that a written amount may have.
pub const DECIMALS: usize = 12;

/// The units in a dollar.
const UNITS_PER_DOLLAR: u128 = 1_000_000_000_000_000_000;

/// Dollars to the exact 10^-18.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd(u128);

impl Usd {
    /// No money at all.
    pub const ZERO: Self = Self(0);

    /// An amount in units of 10^-18 dollars.
    #[must_use]
    pub const fn from_units(units: u128) -> Self {
        Self(units)
    }

    /// The amount in units of 10^-18 dollars.
    #[must_use]
    pub const fn units(self) -> u128 {
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
        let (digits, shift) = percent::decimal(number)?;
        let shift = shift.checked_add(i32::try_from(DECIMALS).ok()?)?;
        let power = 10_u128.checked_pow(shift.unsigned_abs())?;
        let units = if shift >= 0 {
            digits.checked_mul(power)?
        } else {
            // `3.0` written with many zeros is fine; digits that would be lost are not.
            (digits % power == 0).then_some(digits / power)?
        };
        let max = u128::from(MAX_DOLLARS) * 10_u128.pow(DECIMALS as u32);
        (units <= max).then(|| Self(units * (UNITS_PER_DOLLAR / 10_u128.pow(DECIMALS as u32))))
    }

    /// The decimal that a double represents, as [`Usd::to_f64`] gives it. `None` for a double that
    /// is not an amount.
    #[must_use]
    pub fn from_f64(value: f64) -> Option<Self> {
        // The shortest string that reads back as the double; digits below a unit are dropped.
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
        // Through a string, because reading a decimal rounds once and correctly; a cast and a
        // division would round twice.
        let (whole, fraction) = (self.0 / UNITS_PER_DOLLAR, self.0 % UNITS_PER_DOLLAR);
        format!("{whole}.{fraction:018}")
            .parse()
            .unwrap_or(f64::MAX)
    }
}

impl fmt::Display for Usd {
    /// Writes all decimals that it has, and no more: `$0.0045`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:018}", self.0 % UNITS_PER_DOLLAR);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "${}{point}{fraction}", self.0 / UNITS_PER_DOLLAR)
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Self::plus)
    }
}
