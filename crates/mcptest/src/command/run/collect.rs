//! The report of a run, collected from its events.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use mcptest_events::{CaseJudged, Event, PlannedCase, RunFinished};
use mcptest_report::model::{Report, RunTiming, TestReport, Timing};

/// The events of a run that its report is made of.
#[derive(Default)]
pub struct Collected(Mutex<Cases>);

#[derive(Default)]
struct Cases {
    planned: Vec<PlannedCase>,
    runs: BTreeMap<usize, BTreeMap<u32, RunFinished>>,
    judged: BTreeMap<usize, CaseJudged>,
}

impl Collected {
    /// Adds an event.
    pub fn add(&self, event: Event) {
        let mut cases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Planned { cases: planned, .. } => cases.planned = planned,
            Event::RunFinished(run) => {
                cases.runs.entry(run.case).or_default().insert(run.run, run);
            }
            Event::CaseJudged(judged) => {
                cases.judged.insert(judged.case, judged);
            }
            _ => {}
        }
    }

    /// Returns the report.
    pub fn into_report(&self, interrupted: bool, duration_ms: u64) -> Report {
        let mut cases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Cases {
            planned,
            mut runs,
            mut judged,
        } = std::mem::take(&mut *cases);
        let (mut tests, mut not_run) = (Vec::new(), Vec::new());
        let mut timing = Timing {
            duration_ms,
            runs: Vec::new(),
        };
        for (index, case) in planned.into_iter().enumerate() {
            let Some(judged) = judged.remove(&index) else {
                not_run.push(case.id);
                continue;
            };
            let finished = runs.remove(&index).unwrap_or_default();
            timing.runs.extend(finished.values().map(|run| {
                RunTiming {
                    name: run
                        .record
                        .as_ref()
                        .map_or_else(|| case.label.clone(), |record| record.name.clone()),
                    duration_ms: run.duration_ms,
                }
            }));
            let mut gates = judged.gates;
            if let Some(first) = gates.first_mut() {
                first.status_lines = judged.status_lines;
            }
            tests.push(TestReport {
                name: case.id.name,
                kind: case.kind,
                model: case.id.model,
                label: case.label,
                suite: case.id.suite,
                verdict: judged.verdict,
                runs: finished
                    .into_values()
                    .filter_map(|run| run.record)
                    .collect(),
                gates,
                no_evidence: judged.no_evidence,
                saved_runs: judged.saved_runs,
                spend: judged.spend,
            });
        }
        let mut report = Report::conclude(tests, interrupted);
        report.not_run = not_run;
        report.timing = Some(timing);
        report
    }
}
