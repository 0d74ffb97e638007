//! Recorded runs of agents under test: the trace and the raw output of each run.
//!
//! An agent is a separate program, so its conversation with its model cannot be played back to
//! it. A replay judges the recorded evidence; neither the agent nor a server is started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use mcptest_cassette::{REMEDY, Subject, partial_path};
use mcptest_events::Event;
use mcptest_redact::redact::Redactor;
use mcptest_suite::Suite;
use mcptest_suite::suite::Test;
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cassette_plans::redacted;
use crate::cassettes::{
    CassetteMode, CassetteSettings, cassette_folder, cassette_subject, recording_place,
};
use crate::plan::Case;

/// The version of the file.
const FORMAT: u32 = 1;

/// A recording of all runs of a case.
#[derive(Debug, Serialize, Deserialize)]
struct AgentRecording {
    /// The version of the file.
    agent_recording: u32,
    /// The suite's name.
    suite: String,
    /// Everything that decides what the agent sees.
    subject: Subject,
    /// The number of runs.
    planned: u32,
    /// The runs, by number.
    runs: BTreeMap<u32, RecordedRun>,
}

/// A recorded run.
#[derive(Debug, Serialize, Deserialize)]
struct RecordedRun {
    /// Its evidence.
    trace: Value,
    /// The agent's output, without secrets.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    stream: String,
}

/// The use of a recording in one case.
enum RecordingPlan {
    Record {
        path: PathBuf,
        recording: Mutex<AgentRecording>,
        redactor: Arc<Redactor>,
    },
    Replay(AgentRecording),
    Refused(RunError),
}

/// The recordings of all cases of agents under test, by test and label.
#[derive(Default)]
pub(crate) struct AgentRecordings(BTreeMap<(usize, String), RecordingPlan>);

impl AgentRecordings {
    /// Opens the recordings. A case that cannot be replayed has one run, which reports the reason.
    pub fn open(suite: &Suite, cases: &mut [Case], settings: &CassetteSettings) -> Self {
        let mut plans = BTreeMap::new();
        if settings.mode == CassetteMode::Live {
            return Self(plans);
        }
        let folder = cassette_folder(suite, settings.folder.as_deref());
        for case in cases {
            let (Test::Agent(test), Some(label)) = (&suite.tests[case.test], &case.model) else {
                continue;
            };
            let Some(under_test) = test.agent(label) else {
                continue;
            };
            let mut subject = cassette_subject(suite, test, label);
            let mut definition = under_test.definition.clone();
            settings.redactor.value(&mut definition);
            subject.settings.insert("agent".to_owned(), definition);
            let path = recording_place(&folder, test, label).with_extension("agent.json");
            let plan = match settings.mode {
                CassetteMode::Record => Some(RecordingPlan::Record {
                    path,
                    recording: Mutex::new(AgentRecording {
                        agent_recording: FORMAT,
                        suite: suite.name.clone(),
                        subject,
                        planned: case.runs,
                        runs: BTreeMap::new(),
                    }),
                    redactor: Arc::clone(&settings.redactor),
                }),
                mode => match load(&path, &subject, case.runs) {
                    Ok(Some(recording)) => Some(RecordingPlan::Replay(recording)),
                    Ok(None) if mode == CassetteMode::ReplayOnly => {
                        Some(RecordingPlan::Refused(RunError {
                            kind: ErrorKind::Protocol,
                            message: format!(
                                "there is no recording {}; record one with `mcptest run --record`",
                                path.display()
                            ),
                        }))
                    }
                    Ok(None) => None,
                    Err(error) => Some(RecordingPlan::Refused(error)),
                },
            };
            if let Some(RecordingPlan::Refused(_)) = plan {
                case.runs = 1;
            }
            plans.extend(plan.map(|plan| ((case.test, label.clone()), plan)));
        }
        Self(plans)
    }

    /// The recorded evidence of a run; `None` if the run must be made.
    pub fn recorded(&self, test: usize, label: &str, run: u32) -> Option<Result<Trace, RunError>> {
        let stale = |message: String| RunError {
            kind: ErrorKind::StaleCassette,
            message,
        };
        match self.0.get(&(test, label.to_owned()))? {
            RecordingPlan::Record { .. } => None,
            RecordingPlan::Refused(error) => Some(Err(error.clone())),
            RecordingPlan::Replay(recording) => Some(match recording.runs.get(&run) {
                Some(recorded) => serde_json::from_value(recorded.trace.clone())
                    .map_err(|error| stale(format!("the recorded trace is invalid: {error}"))),
                None => Err(stale(format!(
                    "run {run} is not in the recording; {REMEDY}"
                ))),
            }),
        }
    }

    /// The number of cases that are replayed.
    pub fn replayed(&self) -> usize {
        let plans = self.0.values();
        plans
            .filter(|plan| matches!(plan, RecordingPlan::Replay(_)))
            .count()
    }

    /// Records a run, if its case is recorded. The returned trace is the one that is judged, so
    /// that a replay is judged the same.
    pub fn record(&self, test: usize, label: &str, run: u32, trace: Trace, stream: &[u8]) -> Trace {
        let Some(RecordingPlan::Record {
            recording,
            redactor,
            ..
        }) = self.0.get(&(test, label.to_owned()))
        else {
            return trace;
        };
        let trace = redacted(redactor, trace);
        // A mistake in the suite says nothing about the agent.
        let is_suite_error = |error: &RunError| error.kind == ErrorKind::Suite;
        if !trace.error.as_ref().is_some_and(is_suite_error) {
            let recorded = RecordedRun {
                trace: serde_json::to_value(&trace).unwrap_or_default(),
                stream: redactor.text(&String::from_utf8_lossy(stream)),
            };
            locked(recording).runs.insert(run, recorded);
        }
        trace
    }

    /// Notes that the first runs of a case decided it: the recording is complete with them.
    pub fn decided(&self, case: &Case, runs: u32) {
        let key = (case.test, case.model.clone().unwrap_or_default());
        if let Some(RecordingPlan::Record { recording, .. }) = self.0.get(&key) {
            locked(recording).planned = runs;
        }
    }

    /// Writes the recordings, and reports the result of each in the order of the suite.
    pub fn finish(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for plan in self.0.values() {
            let RecordingPlan::Record {
                path, recording, ..
            } = plan
            else {
                continue;
            };
            let recording = locked(recording);
            if recording.runs.is_empty() {
                continue;
            }
            events.push(match write(path, &recording) {
                Ok(place) if place == *path => Event::Note {
                    text: format!("recorded {}", place.display()),
                },
                Ok(place) => Event::Warning {
                    text: format!(
                        "only {} of {} runs were finished: they are in {}, which is not replayed",
                        recording.runs.len(),
                        recording.planned,
                        place.display()
                    ),
                },
                Err(error) => Event::Warning {
                    text: format!("cannot write {}: {error}", path.display()),
                },
            });
        }
        events
    }
}

fn locked(recording: &Mutex<AgentRecording>) -> MutexGuard<'_, AgentRecording> {
    recording.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write(path: &Path, recording: &AgentRecording) -> io::Result<PathBuf> {
    let complete = (1..=recording.planned).all(|run| recording.runs.contains_key(&run));
    let place = if complete {
        path.to_owned()
    } else {
        partial_path(path)
    };
    if let Some(folder) = place.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut text = serde_json::to_vec_pretty(recording).map_err(io::Error::other)?;
    text.push(b'\n');
    mcptest_files::write(&place, &text)?;
    Ok(place)
}

/// Reads a recording; `None` if there is none.
fn load(path: &Path, subject: &Subject, runs: u32) -> Result<Option<AgentRecording>, RunError> {
    let stale = |message: String| RunError {
        kind: ErrorKind::StaleCassette,
        message: format!("the recording {}: {message}; {REMEDY}", path.display()),
    };
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(stale(error.to_string())),
    };
    let recording: AgentRecording =
        serde_json::from_slice(&text).map_err(|error| stale(error.to_string()))?;
    if recording.agent_recording != FORMAT {
        return Err(stale(format!(
            "format version {} is not supported",
            recording.agent_recording
        )));
    }
    let changed = changes(&recording.subject, subject);
    if !changed.is_empty() {
        return Err(stale(format!(
            "changed since it was recorded: {}",
            changed.join(", ")
        )));
    }
    if recording.planned < runs {
        return Err(stale(format!(
            "it has {} runs, and the test has {runs}",
            recording.planned
        )));
    }
    Ok(Some(recording))
}

/// The parts of a subject that differ.
fn changes(recorded: &Subject, now: &Subject) -> Vec<String> {
    let mut changed: Vec<String> = [
        ("prompt", recorded.prompt != now.prompt),
        ("system", recorded.system != now.system),
        ("servers", recorded.servers != now.servers),
        ("agent", recorded.model != now.model),
    ]
    .iter()
    .filter(|(_, changed)| *changed)
    .map(|(name, _)| format!("`{name}`"))
    .collect();
    let keys = recorded.settings.keys().chain(now.settings.keys());
    for key in keys {
        let name = format!("`{key}`");
        if recorded.settings.get(key) != now.settings.get(key) && !changed.contains(&name) {
            changed.push(name);
        }
    }
    changed
}
