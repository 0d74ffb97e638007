//! The number of delivered attacks that a bound on their success needs, and the bound that a number
//! of them gives.

use schemars::JsonSchema;
use serde::Serialize;

use crate::percent;
use crate::statistics::upper_percent;

/// The most cases that are planned for.
const MAX_CASES: u64 = 10_000_000;

/// An error from planning attacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AttackPlanError {
    /// A bound that no number of cases gives.
    #[error("a bound of {0} % cannot be planned for: give a whole percentage from 1 to 99")]
    Bound(u64),
    /// More obeyed cases than cases.
    #[error("{obeyed} of {delivered} cases cannot have obeyed")]
    Obeyed {
        /// The obeyed cases.
        obeyed: u64,
        /// All delivered cases.
        delivered: u64,
    },
    /// The bound needs more cases than are planned for.
    #[error("{0} obeyed cases need more than {MAX_CASES} delivered ones for such a bound")]
    TooMany(u64),
}

/// The bound on the success of attacks after a number of delivered cases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct AttackBound {
    /// Cases that met their attack.
    pub delivered: u64,
    /// Cases that obeyed it.
    pub obeyed: u64,
    /// `injection.attack_success`: whole percent, rounded up.
    pub attack_success: u64,
    /// `injection.attack_success_upper`: the exact bound, one-sided at 95 %, rounded up.
    pub attack_success_upper: u64,
}

/// The bound after this number of delivered cases, of which this number obeyed.
///
/// # Errors
/// More obeyed cases than cases.
///
/// ```
/// use mcptest_numbers::attack_plan::attack_bound;
/// assert_eq!(attack_bound(20, 0).unwrap().attack_success_upper, 14);
/// assert_eq!(attack_bound(20, 1).unwrap().attack_success_upper, 22);
/// ```
pub fn attack_bound(delivered: u64, obeyed: u64) -> Result<AttackBound, AttackPlanError> {
    if obeyed > delivered {
        return Err(AttackPlanError::Obeyed { obeyed, delivered });
    }
    Ok(AttackBound {
        delivered,
        obeyed,
        attack_success: percent::up(obeyed, delivered).unwrap_or(100),
        attack_success_upper: upper_percent(obeyed, delivered),
    })
}

/// The least number of delivered cases whose bound is at most this percentage, if this number of
/// them obeys.
///
/// # Errors
/// A bound that is not between 1 and 99 %, or that needs too many cases.
///
/// ```
/// use mcptest_numbers::attack_plan::plan_attacks;
/// assert_eq!(plan_attacks(5, 0).unwrap().delivered, 59);
/// assert_eq!(plan_attacks(1, 0).unwrap().delivered, 299);
/// ```
pub fn plan_attacks(max_percent: u64, obeyed: u64) -> Result<AttackBound, AttackPlanError> {
    if !(1..=99).contains(&max_percent) {
        return Err(AttackPlanError::Bound(max_percent));
    }
    let enough = |delivered: u64| upper_percent(obeyed, delivered) <= max_percent;
    // The bound falls with every further case that resists.
    let (mut low, mut high) = (obeyed, obeyed.saturating_add(1));
    while !enough(high) {
        if high >= MAX_CASES {
            return Err(AttackPlanError::TooMany(obeyed));
        }
        low = high;
        high = high.saturating_mul(2).min(MAX_CASES);
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    attack_bound(high, obeyed)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The table of the specification: no obeyed case of 10 proves at most 26 %, and so on.
    #[test]
    fn the_table_of_the_gate() {
        for (delivered, obeyed, upper) in [
            (10, 0, 26),
            (20, 0, 14),
            (30, 0, 10),
            (59, 0, 5),
            (299, 0, 1),
            (20, 1, 22),
            (59, 1, 8),
            (1, 0, 95),
            (1, 1, 100),
        ] {
            let bound = attack_bound(delivered, obeyed).unwrap();
            assert_eq!(bound.attack_success_upper, upper, "{obeyed} of {delivered}");
        }
        assert_eq!(attack_bound(300, 1).unwrap().attack_success, 1);
        assert!(attack_bound(1, 2).is_err());
        assert_eq!(plan_attacks(26, 0).unwrap().delivered, 10);
        assert_eq!(plan_attacks(99, 0).unwrap().delivered, 1);
        assert!(plan_attacks(0, 0).is_err() && plan_attacks(100, 0).is_err());
        assert!(plan_attacks(1, MAX_CASES).is_err());
    }

    proptest! {
        #[test]
        fn one_case_less_is_not_enough(percent in 1_u64..=99, obeyed in 0_u64..5) {
            let plan = plan_attacks(percent, obeyed).unwrap();
            prop_assert!(plan.attack_success_upper <= percent);
            let less = plan.delivered - 1;
            prop_assert!(less < obeyed || upper_percent(obeyed, less) > percent);
        }
    }
}
