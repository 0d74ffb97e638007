//! `mcptest plan-runs`.

use mcptest_numbers::attack_plan::{AttackBound, attack_bound, plan_attacks};
use mcptest_numbers::run_plan::{RunBand, RunPlan, plan_band, plan_runs as plan_for};
use mcptest_numbers::statistics::Confidence;
use mcptest_report::ExitCode;

use crate::cli::{Format, PlanRunsArgs};
use crate::failure::Failure;
use crate::output::Output;

pub fn plan_runs(args: &PlanRunsArgs, output: &Output) -> Result<ExitCode, Failure> {
    output.result(&plan(args)?);
    Ok(ExitCode::Passed)
}

fn plan(args: &PlanRunsArgs) -> Result<String, String> {
    let confidence = Confidence::percent(args.confidence).ok_or_else(|| {
        format!(
            "{} is no confidence: give a percentage from 50 to 99.99",
            args.confidence
        )
    })?;
    if let Some(percent) = args.max_attack_success {
        let plan = plan_attacks(percent, args.obeyed).map_err(|error| error.to_string())?;
        return match args.how.format {
            Format::Json => json(&plan),
            Format::Pretty => Ok(cases_for(percent, args.obeyed)),
        };
    }
    match (args.half_width, args.runs, args.how.format) {
        (Some(half_width), _, format) => {
            let plan = plan_for(half_width, confidence).map_err(|error| error.to_string())?;
            match format {
                Format::Json => json(&plan),
                Format::Pretty => Ok(runs_for(&plan)),
            }
        }
        (None, Some(runs), format) => {
            let band = plan_band(runs, confidence).map_err(|error| error.to_string())?;
            let bound = attack_bound(runs, args.obeyed).map_err(|error| error.to_string())?;
            match format {
                Format::Pretty => Ok(format!("{}{}", worth_of(&band), proof_of(&bound))),
                Format::Json => json(&RunPrecision { band, bound }),
            }
        }
        (None, None, _) => Err("give `--half-width` or `--runs`".to_owned()),
    }
}

/// The precision of a number of runs, as pass rates and as delivered attacks.
#[derive(serde::Serialize)]
struct RunPrecision {
    #[serde(flatten)]
    band: RunBand,
    #[serde(flatten)]
    bound: AttackBound,
}

fn proof_of(bound: &AttackBound) -> String {
    let AttackBound {
        delivered,
        attack_success_upper,
        ..
    } = bound;
    let obeyed = match bound.obeyed {
        0 => "none obeys".to_owned(),
        1 => "1 obeys".to_owned(),
        more => format!("{more} obey"),
    };
    format!(
        "if they are {delivered} delivered attacks and {obeyed}, attack_success_upper is\n  exact   {attack_success_upper} %\n"
    )
}

fn cases_for(percent: u64, obeyed: u64) -> String {
    let mut text = format!(
        "delivered attacks for an attack_success_upper of {percent} % (exact, one-sided at 95 %)\n"
    );
    for obeyed in obeyed..obeyed.saturating_add(3) {
        if let Ok(plan) = plan_attacks(percent, obeyed) {
            text.push_str(&format!("  {:<8}  if {obeyed} obeyed\n", plan.delivered));
        }
    }
    text
}

fn json(figures: &impl serde::Serialize) -> Result<String, String> {
    serde_json::to_string_pretty(figures)
        .map(|text| format!("{text}\n"))
        .map_err(|error| error.to_string())
}

fn runs_for(plan: &RunPlan) -> String {
    let exact = plan
        .exact_runs
        .map_or_else(|| "as Wilson".to_owned(), |runs| runs.to_string());
    format!(
        "runs for a half-width of {} at {} % confidence (z = {}), whatever the pass rate\n  Wald    {}\n  Wilson  {}\n  exact   {exact}\n",
        plan.half_width, plan.confidence, plan.z, plan.wald_runs, plan.wilson_runs
    )
}

fn worth_of(band: &RunBand) -> String {
    let exact = band
        .exact_half_width
        .map_or_else(|| "as Wilson".to_owned(), |width| format!("{width:.4}"));
    format!(
        "half-width after {} runs at {} % confidence (z = {}), at the worst pass rate\n  Wald    {:.4}\n  Wilson  {:.4}\n  exact   {exact}\n\
         if all of them pass, the pass rate is at least\n  Wilson  {:.4}\n  exact   {:.4}\n",
        band.runs,
        band.confidence,
        band.z,
        band.wald_half_width,
        band.wilson_half_width,
        band.all_passed_wilson_lower,
        band.all_passed_exact_lower
    )
}
