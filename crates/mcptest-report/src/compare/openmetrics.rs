//! A comparison as OpenMetrics text: the number of tests per kind of change, and each rate with the
//! interval of its difference.

use std::io::Write;

use super::{Comparison, RateChange, Style};
use crate::report::Report;
use crate::reporter::RenderError;
use crate::reporter::openmetrics::{number, value, write_head};

pub(super) fn render(
    comparison: &Comparison,
    _: &Report,
    _: Style,
    out: &mut dyn Write,
) -> Result<(), RenderError> {
    let help = "The exit code of the comparison.";
    write_head(out, "mcptest_compared_exit_code", help)?;
    let code = u8::from(comparison.exit_code);
    writeln!(out, "mcptest_compared_exit_code {code}")?;
    let help = "The number of tests per kind of change.";
    write_head(out, "mcptest_compared_tests", help)?;
    let counts = &comparison.counts;
    for (change, count) in [
        ("regressed", counts.regressed),
        ("lost", counts.lost),
        ("fixed", counts.fixed),
        ("regained", counts.regained),
        ("changed", counts.changed),
        ("added", counts.added),
        ("removed", counts.removed),
        ("unchanged", counts.unchanged),
    ] {
        writeln!(out, "mcptest_compared_tests{{change=\"{change}\"}} {count}")?;
    }
    type Figure = fn(&RateChange) -> f64;
    let figures: [(&str, &str, Figure); 4] = [
        (
            "mcptest_compared_rate_difference",
            "The rate now, less the rate before.",
            |rate| rate.statistics.difference,
        ),
        (
            "mcptest_compared_rate_difference_lower",
            "The lower end of the 95 % interval of the difference.",
            |rate| rate.statistics.lower,
        ),
        (
            "mcptest_compared_rate_difference_upper",
            "The upper end of the 95 % interval of the difference.",
            |rate| rate.statistics.upper,
        ),
        (
            "mcptest_compared_rate_p_adjusted",
            "The p-value of the difference, adjusted for the number of rates.",
            |rate| rate.statistics.p_adjusted,
        ),
    ];
    for (metric, help, figure) in figures {
        write_head(out, metric, help)?;
        for (at, rate) in comparison.rates.iter().enumerate() {
            writeln!(
                out,
                "{metric}{{suite=\"{}\",test=\"{}\",model=\"{}\",rate=\"{}\",nth=\"{}\"}} {}",
                value(&rate.id.suite),
                value(&rate.id.name),
                value(rate.id.model.as_deref().unwrap_or_default()),
                value(rate.rate),
                at + 1,
                number(figure(rate))
            )?;
        }
    }
    Ok(writeln!(out, "# EOF")?)
}
