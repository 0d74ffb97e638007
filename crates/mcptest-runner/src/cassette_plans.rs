//! Cassettes in a run: the tests that are recorded, those that are replayed, and those that cannot
//! be replayed because something has changed.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use mcptest_cassette::{
    CassetteChange, FileStamp, LoadError, Player, REMEDY, RecordedCatalog, Recording,
    RecordingOutcome, RecordingSpec, RunRecorder, RunReplay, catalog_changes, load, load_stamped,
    partial_path,
};
use mcptest_events::Event;
use mcptest_redact::redact::Redactor;
use mcptest_redact::volatile::Rules;
use mcptest_suite::Suite;
use mcptest_suite::suite::{AgentTest, Replay, Test};
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError};

use crate::cassettes::{
    CassetteMode, CassetteSettings, KnownCatalogs, cassette_folder, cassette_place,
    cassette_subject, changes_since, recording_place,
};
use crate::plan::Case;
use crate::providers;

/// The use of a cassette in one case.
enum CassettePlan {
    /// It runs live and leaves no cassette.
    Off,
    /// It is recorded.
    Record(RecordedCase),
    /// It is replayed.
    Replay(ReplayedCase),
    /// It cannot be replayed, and must not run live by mistake.
    Refused(RunError),
}

/// A case that is recorded.
struct RecordedCase {
    recording: Arc<Recording>,
    /// The result of writing the cassette, once the case is complete.
    written: Mutex<Option<io::Result<RecordingOutcome>>>,
}

/// The size of the cassettes of a suite, in bytes, that stay in memory until they are replayed. A
/// cassette takes several times its size there, so further ones are read again for their case.
const MAX_WAITING_BYTES: u64 = 2 * 1024 * 1024;

/// A case that is replayed.
struct ReplayedCase {
    path: PathBuf,
    /// The content that was compared with the suite.
    stamp: FileStamp,
    side: Replay,
    redactor: Arc<Redactor>,
    /// The cassette, while it is in memory: until the case ends.
    player: Mutex<Option<Arc<Player>>>,
}

impl ReplayedCase {
    /// The cassette. It is read again if it is not in memory.
    fn player(&self) -> Result<Arc<Player>, RunError> {
        let mut player = self.player.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(player) = &*player {
            return Ok(Arc::clone(player));
        }
        let changed = |reason: String| RunError {
            kind: ErrorKind::StaleCassette,
            message: format!("{reason}; run it again"),
        };
        let (cassette, stamp) =
            load_stamped(&self.path).map_err(|error| changed(error.to_string()))?;
        if stamp != self.stamp {
            return Err(changed(format!(
                "the cassette {} was changed after this run had started",
                self.path.display()
            )));
        }
        let loaded = Player::new(cassette, Arc::clone(&self.redactor))
            .map_err(|error| changed(error.to_string()))?;
        Ok(Arc::clone(player.insert(loaded)))
    }

    fn release(&self) {
        *self.player.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The plans of all cases, by test and model.
#[derive(Default)]
pub(crate) struct CassettePlans(BTreeMap<(usize, Option<String>), CassettePlan>);

impl CassettePlans {
    /// Loads the cassettes of all agent tests. A case that cannot be replayed has one run, which
    /// reports the reason. A case that `is_complete`, by its index, needs no cassette.
    pub fn open(
        suite: &Suite,
        cases: &mut [Case],
        settings: &CassetteSettings,
        is_complete: &dyn Fn(usize) -> bool,
    ) -> Self {
        let mut plans = BTreeMap::new();
        if settings.mode == CassetteMode::Live {
            return Self(plans);
        }
        let folder = cassette_folder(suite, settings.folder.as_deref());
        // Most suites have no cassettes and do not need the rules for volatile values.
        let rules = (settings.mode == CassetteMode::Record)
            .then(|| Rules::new(&suite.options.normalise).map(Arc::new));
        let mut catalogs = KnownCatalogs::default();
        let mut waiting_bytes = 0;
        for (index, case) in cases.iter_mut().enumerate() {
            let (Test::Agent(test), Some(model)) = (&suite.tests[case.test], case.model.as_deref())
            else {
                continue;
            };
            // An agent under test has a recording of another form.
            if test.agent(model).is_some() {
                continue;
            }
            if rules.is_some() && is_complete(index) {
                continue;
            }
            let plan = match &rules {
                // Each file's rules were checked when it was loaded; together they may conflict.
                Some(Err(error)) => CassettePlan::Refused(RunError {
                    kind: ErrorKind::Protocol,
                    message: format!("the rules in `run_options.normalise` conflict: {error}"),
                }),
                Some(Ok(rules)) => {
                    let recording = Recording::new(RecordingSpec {
                        suite: suite.name.clone(),
                        subject: cassette_subject(suite, test, model),
                        planned: case.runs,
                        path: recording_place(&folder, test, model),
                        rules: Arc::clone(rules),
                        redactor: Arc::clone(&settings.redactor),
                    });
                    CassettePlan::Record(RecordedCase {
                        recording,
                        written: Mutex::default(),
                    })
                }
                None => {
                    let path = cassette_place(&folder, test, model);
                    replay(suite, test, model, &path, settings, &mut catalogs)
                }
            };
            if let CassettePlan::Replay(replayed) = &plan {
                waiting_bytes += replayed.stamp.bytes;
                if waiting_bytes > MAX_WAITING_BYTES {
                    replayed.release();
                }
            }
            if let CassettePlan::Refused(_) = plan {
                case.runs = 1;
            }
            plans.insert((case.test, case.model.clone()), plan);
        }
        Self(plans)
    }

    fn of(&self, case: &Case) -> Option<&CassettePlan> {
        // Most suites have no cassettes: nothing is cloned to find that out.
        if self.0.is_empty() {
            return None;
        }
        self.0.get(&(case.test, case.model.clone()))
    }

    /// The number of cases that are replayed.
    pub fn replayed(&self) -> usize {
        let replayed = |plan: &&CassettePlan| matches!(plan, CassettePlan::Replay(_));
        self.0.values().filter(replayed).count()
    }

    /// Starts a run of a case.
    pub fn run(&self, case: &Case, run: u32) -> Result<RunCassette, RunError> {
        match self.of(case) {
            None | Some(CassettePlan::Off) => Ok(RunCassette::Off),
            Some(CassettePlan::Record(RecordedCase { recording, .. })) => Ok(RunCassette::Record(
                recording.run(run),
                Arc::clone(recording),
            )),
            Some(CassettePlan::Replay(replayed)) => Ok(RunCassette::Replay(
                replayed.player()?.run(run)?,
                replayed.side,
            )),
            Some(CassettePlan::Refused(error)) => Err(error.clone()),
        }
    }

    /// Notes that the first runs of a case decided it: the recording is complete with them.
    pub fn decided(&self, case: &Case, runs: u32) {
        if let Some(CassettePlan::Record(recorded)) = self.of(case) {
            recorded.recording.complete_after(runs);
        }
    }

    /// Notes that a case ended: its cassette is no longer needed.
    pub fn release(&self, case: &Case) {
        if let Some(CassettePlan::Replay(replayed)) = self.of(case) {
            replayed.release();
        }
    }

    /// Writes the cassette of a case that is complete.
    pub async fn write(&self, case: &Case) {
        let Some(CassettePlan::Record(recorded)) = self.of(case) else {
            return;
        };
        let recording = Arc::clone(&recorded.recording);
        // Writing waits for the disk; other cases do not have to.
        let written = tokio::task::spawn_blocking(move || recording.finish()).await;
        let mut place = recorded
            .written
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *place = written.ok();
    }

    /// Writes the remaining recordings, and reports the result of each in the order of the suite.
    pub fn finish(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for plan in self.0.values() {
            let CassettePlan::Record(recorded) = plan else {
                continue;
            };
            let mut written = recorded
                .written
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let written = written
                .take()
                .unwrap_or_else(|| recorded.recording.finish());
            events.extend(written_event(recorded.recording.path(), written));
        }
        events
    }
}

/// The event for a recording.
fn written_event(path: &Path, written: io::Result<RecordingOutcome>) -> Option<Event> {
    let place = path.display();
    Some(match written {
        Ok(RecordingOutcome::Nothing) => return None,
        Ok(RecordingOutcome::Written) => Event::Note {
            text: format!("recorded {place}"),
        },
        Ok(RecordingOutcome::Partial { path, finished }) => Event::Warning {
            text: format!(
                "only {finished} runs were finished: they are in {}, which is not replayed; \
                 {place} is unchanged",
                path.display()
            ),
        },
        Ok(RecordingOutcome::KeptExisting { path, failed }) => Event::Warning {
            text: format!(
                "{failed} of the new runs failed, more than in {place}, which is unchanged; the \
                 new recording is in {}",
                path.display()
            ),
        },
        Err(error) => Event::Warning {
            text: format!("cannot write {place}: {error}"),
        },
    })
}

/// The plan for a case whose cassette is to be replayed if there is one.
fn replay(
    suite: &Suite,
    test: &AgentTest,
    model: &str,
    path: &Path,
    settings: &CassetteSettings,
    catalogs: &mut KnownCatalogs,
) -> CassettePlan {
    let refused = |message: String| {
        CassettePlan::Refused(RunError {
            kind: ErrorKind::Protocol,
            message,
        })
    };
    let (cassette, stamp) = match load_stamped(path) {
        Ok(loaded) => loaded,
        Err(LoadError::Missing { path: place }) => {
            let partial = partial_path(path);
            let must = settings.mode == CassetteMode::ReplayOnly && providers::is_live(model);
            return match (must, load(&partial)) {
                (true, Ok(found)) => refused(format!(
                    "the recording in {} was not finished: it has {} of {} runs; record it with \
                     `mcptest run --record`",
                    partial.display(),
                    found.runs.len(),
                    found.planned
                )),
                (true, Err(_)) => refused(format!(
                    "there is no cassette {place}; record one with `mcptest run --record`"
                )),
                (false, _) => CassettePlan::Off,
            };
        }
        Err(error) => return refused(format!("{error}; {REMEDY}")),
    };
    if !cassette.is_complete() {
        return refused(format!(
            "{}: {} of {} runs are there; {REMEDY}",
            path.display(),
            cassette.runs.len(),
            cassette.planned
        ));
    }
    let found = changes_since(&cassette, suite, test, model, settings, catalogs);
    if !found.is_empty() {
        return CassettePlan::Refused(stale(&path.display().to_string(), &found));
    }
    let side = settings
        .replay
        .or(test.replay)
        .unwrap_or(suite.options.replay);
    match Player::new(cassette, Arc::clone(&settings.redactor)) {
        Ok(player) => CassettePlan::Replay(ReplayedCase {
            path: path.to_owned(),
            stamp,
            side,
            redactor: Arc::clone(&settings.redactor),
            player: Mutex::new(Some(player)),
        }),
        Err(problem) => refused(format!("{}: {problem}; {REMEDY}", path.display())),
    }
}

fn stale(place: &str, changes: &[CassetteChange]) -> RunError {
    let changes: Vec<String> = changes
        .iter()
        .map(|change| format!("\n  {change}"))
        .collect();
    RunError {
        kind: ErrorKind::StaleCassette,
        message: format!(
            "the cassette {place} is stale:{}\n{REMEDY}",
            changes.concat()
        ),
    }
}

/// The use of a cassette in one run.
pub(crate) enum RunCassette {
    /// None.
    Off,
    /// The run is recorded.
    Record(Arc<RunRecorder>, Arc<Recording>),
    /// One side of the run, or both, is replayed.
    Replay(Arc<RunReplay>, Replay),
}

impl RunCassette {
    /// The error that kept the recorded run from starting, if there was one.
    pub fn error(&self) -> Option<RunError> {
        match self {
            Self::Replay(replay, _) => replay.error(),
            _ => None,
        }
    }

    /// The replay of the servers' side.
    pub fn servers(&self) -> Option<&Arc<RunReplay>> {
        match self {
            Self::Replay(replay, Replay::Both | Replay::Tools) => Some(replay),
            _ => None,
        }
    }

    /// The recorder.
    pub fn recorder(&self) -> Option<&Arc<RunRecorder>> {
        match self {
            Self::Record(recorder, _) => Some(recorder),
            _ => None,
        }
    }

    /// Records the tools that live servers list, or compares them with the recording.
    pub fn listed(
        &self,
        catalogs: &[RecordedCatalog],
        redactor: &Redactor,
    ) -> Result<(), RunError> {
        match self {
            Self::Record(recorder, _) => recorder.record_catalogs(catalogs.to_vec()),
            Self::Replay(replay, _) => {
                let mut now = catalogs.to_vec();
                for tool in now.iter_mut().flat_map(|catalog| &mut catalog.tools) {
                    redactor.value(tool);
                }
                let found = catalog_changes(replay.catalogs(), &now);
                if !found.is_empty() {
                    return Err(stale("of this run", &found));
                }
            }
            Self::Off => {}
        }
        Ok(())
    }

    /// Ends the run. The trace that is judged is the one that the recording keeps, so that a replay
    /// is judged the same.
    pub async fn finish(self, mut trace: Trace) -> Trace {
        let Self::Record(recorder, recording) = self else {
            return trace;
        };
        // A mistake in the suite says nothing about the model or the servers: a recording of it
        // would remain after the mistake is corrected.
        let is_suite_error = |error: &RunError| error.kind == ErrorKind::Suite;
        if trace.error.as_ref().is_some_and(is_suite_error) {
            return redacted(recording.redactor(), trace);
        }
        recorder.finish();
        drop(recorder);
        let redactor = Arc::clone(&recording);
        // Writing waits for the disk; other runs do not have to.
        let saved = tokio::task::spawn_blocking(move || recording.save()).await;
        if let Ok(Err(error)) = saved {
            trace.error = Some(RunError {
                kind: ErrorKind::Transport,
                message: format!(
                    "cannot write the cassette {}: {error}",
                    redactor.path().display()
                ),
            });
        }
        redacted(redactor.redactor(), trace)
    }
}

/// The trace without secrets.
pub(crate) fn redacted(redactor: &Redactor, trace: Trace) -> Trace {
    if redactor.is_clean_in(&trace) {
        return trace;
    }
    let clean = serde_json::to_value(&trace).and_then(|mut value| {
        redactor.value(&mut value);
        serde_json::from_value(value)
    });
    // A secret may be a word of the format. Then nothing of the trace can be shown: a gap is better
    // than a leak.
    clean.unwrap_or_else(|_| Trace {
        error: Some(RunError {
            kind: ErrorKind::Protocol,
            message: "the trace is withheld: a secret is also a word of its format".to_owned(),
        }),
        ..Trace::default()
    })
}
