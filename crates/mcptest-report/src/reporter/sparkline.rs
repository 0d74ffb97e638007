//! Small charts of one line: a column per value.

/// The columns, from the lowest to the highest.
const COLUMNS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// The mark of a value that is not known.
const UNKNOWN: char = '·';

/// A column for each value, with the full height at `most`. Values that are not known are dots.
pub(crate) fn sparkline(values: &[Option<f64>], most: f64) -> String {
    let column = |value: &Option<f64>| match value.filter(|value| value.is_finite()) {
        None => UNKNOWN,
        Some(value) => {
            let share = if most > 0.0 { value / most } else { 0.0 };
            let top = COLUMNS.len() - 1;
            let at = COLUMNS.iter().enumerate().rev();
            // The first column whose height the value reaches, to the nearest eighth.
            at.map(|(at, column)| (at, *column))
                .find(|(at, _)| share * top as f64 + 0.5 >= *at as f64)
                .map_or(COLUMNS[0], |(_, column)| column)
        }
    };
    values.iter().map(column).collect()
}

/// The greatest of the known values; 0 without any.
pub(crate) fn greatest(values: &[Option<f64>]) -> f64 {
    let known = values.iter().flatten().copied();
    known.filter(|it| it.is_finite()).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn heights_are_shares_of_the_greatest() {
        let values = [Some(0.0), Some(50.0), None, Some(100.0), Some(120.0)];
        assert_eq!(sparkline(&values, 100.0), "▁▅·██");
        assert_eq!(sparkline(&[Some(0.0), Some(f64::NAN)], 0.0), "▁·");
        assert_eq!(greatest(&[Some(2.0), None, Some(7.5)]), 7.5);
        assert_eq!(greatest(&[None]), 0.0);
    }

    proptest! {
        #[test]
        fn a_greater_value_is_never_lower(a in 0.0..1e9_f64, b in 0.0..1e9_f64, most in 0.0..1e9_f64) {
            let height = |value: f64| {
                let drawn = sparkline(&[Some(value)], most);
                COLUMNS.iter().position(|it| drawn.starts_with(*it)).unwrap()
            };
            prop_assert!((a <= b) == (height(a) <= height(b)) || height(a) == height(b));
        }
    }
}
