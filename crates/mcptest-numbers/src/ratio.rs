//! Exact fractions behind figures that are reported as doubles.
//!
//! The mean of three times 0.7 is 0.6999999999999998 in doubles, and a gate at 0.7 would fail. So
//! means and variances are computed exactly, and rounded once, at the end.

use std::cmp::Ordering;

use num_bigint::BigUint;

/// A non-negative fraction.
#[derive(Debug, Clone)]
pub struct Ratio {
    numerator: BigUint,
    denominator: BigUint,
}

impl Ratio {
    /// `numerator / denominator`; a denominator of 0 counts as 1.
    pub fn new(numerator: impl Into<BigUint>, denominator: impl Into<BigUint>) -> Self {
        let denominator = denominator.into();
        Self {
            numerator: numerator.into(),
            denominator: denominator.max(BigUint::from(1_u8)),
        }
    }

    /// The ratio 1.
    pub fn one() -> Self {
        Self::new(1_u8, 1_u8)
    }

    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        quotient(&self.numerator, &self.denominator)
    }
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ratio {}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.numerator * &other.denominator).cmp(&(&other.numerator * &self.denominator))
    }
}

/// The mean; `None` for no values.
pub fn mean(values: &[Ratio]) -> Option<f64> {
    mean_of_sums(values, values.len() as u128)
}

/// The mean of `count` values, given as partial sums; `None` for no values.
pub fn mean_of_sums(sums: &[Ratio], count: u128) -> Option<f64> {
    let (numerators, denominator) = common(sums);
    let sum: BigUint = numerators.iter().sum();
    (count > 0).then(|| quotient(&sum, &(denominator * BigUint::from(count))))
}

/// The population variance; `None` for no values.
pub fn variance(values: &[Ratio]) -> Option<f64> {
    // With x = a/d: (n Σa² - (Σa)²) / (n d)².
    let (numerators, denominator) = common(values);
    let count = BigUint::from(values.len());
    let squares: BigUint = numerators.iter().map(|a| a * a).sum();
    let sum: BigUint = numerators.iter().sum();
    let below = &count * denominator;
    (!values.is_empty()).then(|| quotient(&(count * squares - &sum * &sum), &(&below * &below)))
}

/// The number of binary digits after the point that [`mean_and_variance`] works with.
const FIXED_BITS: u32 = 256;

/// The mean and the population variance of many values, each rounded once; `None` for no
/// values.
///
/// Exact sums of many fractions have denominators of thousands of digits. So the values are first
/// taken with 256 binary digits, which gives a lower and an upper bound of each result. Only if the
/// bounds round to different doubles are the exact sums taken. Therefore the values may be asked for
/// twice.
pub fn mean_and_variance<I>(values: impl Fn() -> I) -> Option<(f64, f64)>
where
    I: Iterator<Item = Ratio>,
{
    let mut count = 0_u64;
    let mut first: Option<Ratio> = None;
    let mut all_equal = true;
    // The digits that are cut off are between 0 and 1 unit in the last place of each value.
    let mut inexact = 0_u64;
    let (mut sum, mut squares) = (BigUint::ZERO, BigUint::ZERO);
    for value in values() {
        count += 1;
        let shifted = &value.numerator << FIXED_BITS;
        let digits = &shifted / &value.denominator;
        inexact += u64::from(&digits * &value.denominator != shifted);
        squares += &digits * &digits;
        sum += digits;
        match &first {
            Some(first) => all_equal = all_equal && *first == value,
            None => first = Some(value),
        }
    }
    first.as_ref()?;
    let n = BigUint::from(count);
    let highest = &sum + inexact;
    let mean_of = |sum: &BigUint| quotient(sum, &(&n << FIXED_BITS));
    let exact_values = || values().collect::<Vec<Ratio>>();
    let mean = match (mean_of(&sum), mean_of(&highest)) {
        (low, high) if low == high => low,
        _ => mean(&exact_values())?,
    };
    if all_equal {
        return Some((mean, 0.0));
    }
    // n Σx² - (Σx)², over n².
    let highest_squares = &squares + (&sum << 1_u8) + inexact;
    let low = &n * &squares;
    let subtracted = &highest * &highest;
    let low = if low > subtracted {
        low - subtracted
    } else {
        BigUint::ZERO
    };
    let high = &n * highest_squares - &sum * &sum;
    let below = (&n * &n) << (2 * FIXED_BITS);
    let variance = match (quotient(&low, &below), quotient(&high, &below)) {
        (low, high) if low == high => low,
        _ => variance(&exact_values())?,
    };
    Some((mean, variance))
}

/// The numerators over one denominator.
fn common(values: &[Ratio]) -> (Vec<BigUint>, BigUint) {
    let mut denominators: Vec<&BigUint> = values.iter().map(|value| &value.denominator).collect();
    denominators.sort_unstable();
    denominators.dedup();
    let mut all = BigUint::from(1_u8);
    for denominator in denominators {
        all = &all / gcd(all.clone(), denominator.clone()) * denominator;
    }
    let numerators = values
        .iter()
        .map(|value| &value.numerator * (&all / &value.denominator))
        .collect();
    (numerators, all)
}

fn gcd(mut a: BigUint, mut b: BigUint) -> BigUint {
    while b != BigUint::ZERO {
        let rest = a % &b;
        a = b;
        b = rest;
    }
    a
}

/// `numerator / denominator`, rounded once to the nearest double (ties to even); 0 for a zero
/// denominator.
pub fn quotient(numerator: &BigUint, denominator: &BigUint) -> f64 {
    if *numerator == BigUint::ZERO || *denominator == BigUint::ZERO {
        return 0.0;
    }
    // 66 or 67 bits of the quotient, and a bit for the remainder: more than a double holds, so the
    // cast rounds once.
    let shift = i128::from(denominator.bits()) - i128::from(numerator.bits()) + 66;
    let (above, below) = if shift >= 0 {
        (numerator << shift as u128, denominator.clone())
    } else {
        (numerator.clone(), denominator << shift.unsigned_abs())
    };
    let whole = &above / &below;
    let rest = above - &whole * &below;
    let bits = u128::try_from(whole).unwrap_or(u128::MAX) | u128::from(rest != BigUint::ZERO);
    // Beyond the exponents of doubles there is only zero (or infinity, which no figure reaches).
    libm::ldexp(bits as f64, i32::try_from(-shift).unwrap_or(-5000))
}

/// The number of ways to choose `k` of `n`.
pub fn choose(n: u64, k: u64) -> BigUint {
    if k > n {
        return BigUint::ZERO;
    }
    let k = k.min(n - k);
    let mut ways = BigUint::from(1_u8);
    for step in 1..=k {
        // After each step the value is a binomial coefficient, so the division is exact.
        ways = ways * (n - k + step) / step;
    }
    ways
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn means_are_rounded_once() {
        let seven_tenths = Ratio::new(7_u8, 10_u8);
        assert_eq!(mean(&vec![seven_tenths; 3]), Some(0.7));
        assert_eq!(mean(&[Ratio::new(1_u8, 2_u8), Ratio::one()]), Some(0.75));
        assert_eq!(
            variance(&[Ratio::new(1_u8, 2_u8), Ratio::one()]),
            Some(0.0625)
        );
        assert_eq!(variance(&vec![Ratio::new(1_u8, 3_u8); 7]), Some(0.0));
        assert_eq!((mean(&[]), variance(&[])), (None, None));
        assert_eq!(mean_and_variance(std::iter::empty), None);
        let thirds = || vec![Ratio::new(1_u8, 3_u8); 7].into_iter();
        assert_eq!(mean_and_variance(thirds), Some((1.0 / 3.0, 0.0)));
    }

    #[test]
    fn binomial_coefficients() {
        assert_eq!(choose(4, 2), BigUint::from(6_u8));
        assert_eq!(choose(4, 5), BigUint::ZERO);
        assert_eq!(choose(0, 0), BigUint::from(1_u8));
        assert_eq!(choose(60, 30), BigUint::from(118_264_581_564_861_424_u64));
    }

    #[test]
    fn quotients_of_any_size() {
        let huge = BigUint::from(1_u8) << 5000_u32;
        assert_eq!(quotient(&BigUint::from(1_u8), &huge), 0.0);
        assert_eq!(quotient(&huge, &(&huge * 3_u8)), 1.0 / 3.0);
        assert_eq!(quotient(&BigUint::from(5_u8), &BigUint::ZERO), 0.0);
        assert_eq!(
            quotient(&BigUint::from(1_u8), &(BigUint::from(1_u8) << 1074_u32)),
            f64::from_bits(1)
        );
    }

    proptest! {
        // Division of two integers that doubles hold exactly is rounded once by the processor too.
        #[test]
        fn quotients_are_correctly_rounded(a in 0_u64..1 << 53, b in 1_u64..1 << 53) {
            prop_assert_eq!(quotient(&a.into(), &b.into()), a as f64 / b as f64);
        }

        #[test]
        fn bounds_give_the_exact_mean_and_variance(
            values in prop::collection::vec((0_u64..=1 << 40, 1_u64..=1 << 40), 1..12),
            same in any::<bool>(),
        ) {
            let values: Vec<Ratio> = values
                .iter()
                .map(|(a, b)| if same { Ratio::new(a % 5, 4_u8) } else { Ratio::new(*a, *b) })
                .collect();
            let exact = (mean(&values).unwrap(), variance(&values).unwrap());
            prop_assert_eq!(mean_and_variance(|| values.iter().cloned()), Some(exact));
        }

        #[test]
        fn order_is_that_of_the_values(a in 0_u32..50, b in 1_u32..50, c in 0_u32..50, d in 1_u32..50) {
            prop_assert_eq!(Ratio::new(a, b).cmp(&Ratio::new(c, d)), (a * d).cmp(&(c * b)));
        }
    }
}
