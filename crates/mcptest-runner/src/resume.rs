//! The state of an invocation that was interrupted or killed, read from its log.
//!
//! A run that has finished is not repeated: its trace goes into the gates again, with the judgement
//! that it had, and its spending counts against the budgets.

use std::collections::BTreeMap;
use std::io::BufRead;

use mcptest_events::log::{LogError, LogReader};
use mcptest_events::{Event, RawRecord, RunFacts, RunSpend, Spend};
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::Verdict;

/// A run that finished before the invocation was resumed.
#[derive(Debug, Clone)]
pub struct FinishedRun {
    /// The judgement on it.
    pub facts: RunFacts,
    /// The cost of its models.
    pub spend: Option<RunSpend>,
    /// The evidence. A case that was judged completely no longer needs it.
    pub trace: Option<Trace>,
}

/// The finished part of an invocation: a fold over the events of its log.
#[derive(Debug, Clone, Default)]
pub struct Resume {
    cases: BTreeMap<usize, CaseProgress>,
}

#[derive(Debug, Clone, Default)]
struct CaseProgress {
    runs: BTreeMap<u32, FinishedRun>,
    /// The verdict and the spend, if no further run of the case was needed.
    judged: Option<(Verdict, Option<Spend>)>,
}

impl Resume {
    /// Reads a whole log.
    ///
    /// # Errors
    /// A log that cannot be read.
    pub fn read(log: impl BufRead) -> Result<Self, LogError> {
        let mut log = LogReader::new(log);
        let mut resume = Self::default();
        while let Some(line) = log.next_event()? {
            let number = line.number;
            resume.add(&line.event).map_err(|error| LogError::Line {
                number,
                problem: error.to_string(),
            })?;
        }
        Ok(resume)
    }

    /// Adds the next event of a log.
    ///
    /// # Errors
    /// A record that is not one.
    pub fn add(&mut self, event: &Event<RawRecord<'_>>) -> Result<(), serde_json::Error> {
        match event {
            Event::RunStarted { case, .. } => {
                self.cases.entry(*case).or_default();
            }
            Event::RunFinished(finished) => {
                let run = FinishedRun {
                    facts: finished.facts,
                    spend: finished.spend,
                    trace: finished.record.map(RawRecord::trace).transpose()?,
                };
                self.add_run(finished.case, finished.run, run);
            }
            Event::CaseJudged(judged) => {
                let case = self.cases.entry(judged.case).or_default();
                case.judged = judged.complete.then_some((judged.verdict, judged.spend));
                if judged.complete {
                    case.runs.values_mut().for_each(|run| run.trace = None);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds a finished run of a case.
    pub fn add_run(&mut self, case: usize, run: u32, finished: FinishedRun) {
        let case = self.cases.entry(case).or_default();
        case.runs.insert(run, finished);
    }

    /// Forgets the runs of cases that are not complete: their cassettes are not written yet, so all
    /// of their runs are recorded again.
    pub(crate) fn only_complete(&self) -> Self {
        let complete = self.cases.iter().filter(|(_, case)| case.judged.is_some());
        Self {
            cases: complete
                .map(|(index, case)| (*index, case.clone()))
                .collect(),
        }
    }

    /// The cases that had started.
    pub(crate) fn started(&self) -> impl Iterator<Item = usize> + '_ {
        self.cases.keys().copied()
    }

    /// The verdict on a case that needs no further run, and its spend.
    pub(crate) fn judgement(&self, case: usize) -> Option<(Verdict, Option<Spend>)> {
        self.cases.get(&case)?.judged
    }

    /// The finished runs of a case.
    pub(crate) fn runs(&self, case: usize) -> impl Iterator<Item = &FinishedRun> + '_ {
        self.cases
            .get(&case)
            .into_iter()
            .flat_map(|case| case.runs.values())
    }

    /// A finished run with its trace.
    pub(crate) fn run(&self, case: usize, run: u32) -> Option<(&FinishedRun, &Trace)> {
        let run = self.cases.get(&case)?.runs.get(&run)?;
        Some((run, run.trace.as_ref()?))
    }
}
