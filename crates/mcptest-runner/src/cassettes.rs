//! Cassettes in a run: which tests are recorded, which are replayed, and which cannot be because
//! something has changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcptest_agent::builtin;
use mcptest_cassette::{
    Cassette, Catalog, Change, LoadError, Player, REMEDY, Recording, RecordingOutcome,
    RecordingSpec, RunRecorder, RunReplay, Subject, cassette_path, catalog_changes, changes,
    digest, load, partial_path,
};
use mcptest_redact::redact::Redactor;
use mcptest_redact::volatile::Rules;
use mcptest_suite::Suite;
use mcptest_suite::suite::{AgentTest, Replay, ScriptTurn, Server, Test};
use mcptest_trace::fault::{Fault, FaultKind};
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::{ErrorKind, RunError};
use serde_json::{Map, Value, json};

use crate::event::Event;
use crate::plan::Case;
use crate::providers;

/// Whether cassettes are read or written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CassetteMode {
    /// A cassette that is there is replayed; a test without one runs live.
    #[default]
    Auto,
    /// Everything runs live and is recorded.
    Record,
    /// Cassettes are ignored.
    Live,
    /// A test without a cassette that fits is an error.
    ReplayOnly,
}

/// What a server lists, if that is known.
pub type Listing = Arc<dyn Fn(&Server) -> Option<Vec<Value>> + Send + Sync>;

/// What an invocation says about cassettes.
#[derive(Clone)]
pub struct CassetteSettings {
    /// Whether they are read or written.
    pub mode: CassetteMode,
    /// Where they are, before whatever the suite says.
    pub folder: Option<PathBuf>,
    /// Which side is replayed, before whatever the suite says.
    pub replay: Option<Replay>,
    /// What takes secrets out of everything that is written.
    pub redactor: Arc<Redactor>,
    /// What a server lists, where that can be known without starting it.
    pub listing: Listing,
}

/// The folder of a suite's cassettes: in `cassettes` beside the suite (or where the suite or the
/// invocation says), called like the suite's file.
#[must_use]
pub fn cassette_folder(suite: &Suite, wished: Option<&Path>) -> PathBuf {
    let beside = suite.file.parent().unwrap_or(Path::new(""));
    let folder = wished.or(suite.options.cassettes.as_deref());
    let folder = folder.map_or_else(|| beside.join("cassettes"), Path::to_owned);
    folder.join(suite.file.file_name().unwrap_or_default())
}

/// The cassette of a test and model, or where it would be. One that was recorded when the test had
/// another number of models is found too.
#[must_use]
pub fn cassette_place(folder: &Path, test: &AgentTest, model: &str) -> PathBuf {
    let (with_model, without) = (
        cassette_path(folder, &test.name, Some(model)),
        cassette_path(folder, &test.name, None),
    );
    let several = test.models.len() > 1;
    let of_this_model = |path: &Path| load(path).is_ok_and(|found| found.subject.model == model);
    if several {
        if !with_model.exists() && of_this_model(&without) {
            return without;
        }
        with_model
    } else if with_model.exists() && !of_this_model(&without) {
        with_model
    } else {
        without
    }
}

/// Where a recording of a test and model goes.
fn recording_place(folder: &Path, test: &AgentTest, model: &str) -> PathBuf {
    let several = test.models.len() > 1;
    cassette_path(folder, &test.name, several.then_some(model))
}

/// What decides what the model of a test sees, but for the tools.
#[must_use]
pub fn cassette_subject(suite: &Suite, test: &AgentTest, model: &str) -> Subject {
    let mut settings = Map::new();
    if let Some((api, body)) = providers::manner(suite, model) {
        settings.insert("api".to_owned(), api.into());
        if !body.is_empty() {
            settings.insert("body".to_owned(), body.into());
        }
    }
    if let Some(most) = test.max_tokens {
        settings.insert("max_tokens".to_owned(), most.into());
    }
    if let Some(block) = &test.distractors {
        let schedule = block.schedule(&test.name, test.runs);
        let planned = schedule
            .iter()
            .map(|run| json!({"count": run.count, "seed": run.seed}));
        settings.insert("distractors".to_owned(), planned.collect());
    }
    if !test.faults.is_empty() {
        settings.insert("faults".to_owned(), test.faults.iter().map(fault).collect());
        if let Some(budget) = test.detection_budget_ms {
            settings.insert("max_detection_ms".to_owned(), budget.into());
        }
    }
    if model == builtin::SCRIPTED {
        let script: Value = test
            .script
            .iter()
            .map(|run| run.iter().map(turn).collect::<Value>())
            .collect();
        settings.insert("script".to_owned(), digest(&script.to_string()).into());
    }
    Subject {
        test: test.name.clone(),
        model: model.to_owned(),
        system: test.system.clone(),
        prompt: test.prompt.clone(),
        servers: test.servers.clone(),
        settings,
    }
}

fn fault(fault: &Fault) -> Value {
    let (kind, number) = match fault.kind {
        FaultKind::Hang => ("hang", None),
        FaultKind::Wedged => ("wedged", None),
        FaultKind::Slow { delay_ms } => ("slow", Some(delay_ms)),
        FaultKind::RecoverAfter { failures } => ("recover_after", Some(failures)),
    };
    json!({"name": fault.name, "target": fault.target, "kind": kind, "number": number})
}

fn turn(turn: &ScriptTurn) -> Value {
    let calls: Value = turn
        .calls
        .iter()
        .map(|call| json!([call.tool, call.args, call.caller]))
        .collect();
    json!([
        turn.say,
        calls,
        turn.usage.map(|usage| [usage.input, usage.output])
    ])
}

/// What is no longer as a cassette says. The tools are compared where they can be known without
/// starting a server.
#[must_use]
pub fn cassette_changes(
    cassette: &Cassette,
    suite: &Suite,
    test: &AgentTest,
    model: &str,
    settings: &CassetteSettings,
) -> Vec<Change> {
    let redact = |value: Value| {
        let mut value = value;
        settings.redactor.value(&mut value);
        value
    };
    // The recorded subject has no secrets in it, so neither may this one.
    let mut subject = cassette_subject(suite, test, model);
    subject.prompt = settings.redactor.text(&subject.prompt);
    subject.system = subject.system.map(|system| settings.redactor.text(&system));
    subject.test = settings.redactor.text(&subject.test);
    subject.model = settings.redactor.text(&subject.model);
    if let Value::Object(clean) = redact(Value::Object(std::mem::take(&mut subject.settings))) {
        subject.settings = clean;
    }
    // Fewer runs than recorded are the first ones, and so are their distractors.
    let recorded = cassette.subject.settings.get("distractors");
    if let (Some(Value::Array(was)), Some(Value::Array(now))) =
        (recorded, subject.settings.get_mut("distractors"))
        && was.starts_with(now)
    {
        now.clone_from(was);
    }
    // A test that stops when it is decided may have stopped when it was recorded; if it needs more
    // runs now, the first of those says so.
    let needed = if test.stops_when_decided {
        Suite::runs_of(test).min(cassette.planned)
    } else {
        Suite::runs_of(test)
    };
    let mut found = changes(cassette, &subject, needed);
    let known = test.servers.iter().filter_map(|name| {
        let tools = (settings.listing)(suite.servers.get(name)?)?;
        Some(Catalog {
            server: name.clone(),
            tools: tools.into_iter().map(redact).collect(),
        })
    });
    let known: Vec<Catalog> = known.map(essence).collect();
    let recorded: Vec<Catalog> = cassette.catalogs.iter().cloned().map(essence).collect();
    found.extend(catalog_changes(&recorded, &known));
    found
}

/// What a tool has in every revision of the protocol.
fn essence(mut catalog: Catalog) -> Catalog {
    for tool in catalog.tools.iter_mut().filter_map(Value::as_object_mut) {
        tool.retain(|key, _| ["name", "description", "inputSchema"].contains(&key.as_str()));
    }
    catalog
}

/// What a case does with cassettes.
pub(crate) enum Deck {
    /// It runs live and leaves nothing.
    Off,
    /// It is recorded.
    Record(Arc<Recording>),
    /// It is replayed.
    Replay { player: Arc<Player>, what: Replay },
    /// It cannot be replayed, and must not run live by mistake.
    Refused(RunError),
}

/// The decks of all cases, by test and model.
#[derive(Default)]
pub(crate) struct Decks(BTreeMap<(usize, Option<String>), Deck>);

impl Decks {
    /// Looks at the cassettes of all agent tests. A case that cannot be replayed has one run, which
    /// tells why.
    pub fn open(suite: &Suite, cases: &mut [Case], settings: &CassetteSettings) -> Self {
        let mut decks = BTreeMap::new();
        if settings.mode == CassetteMode::Live {
            return Self(decks);
        }
        let folder = cassette_folder(suite, settings.folder.as_deref());
        // Most suites have no cassettes, and need not know how volatile values are found.
        let rules = (settings.mode == CassetteMode::Record)
            .then(|| Rules::new(&suite.options.normalise).map(Arc::new));
        for case in cases {
            let (Test::Agent(test), Some(model)) = (&suite.tests[case.test], case.model.as_deref())
            else {
                continue;
            };
            let deck = match &rules {
                // Each file's rules were checked when it was loaded; together they may still clash.
                Some(Err(error)) => Deck::Refused(RunError {
                    kind: ErrorKind::Protocol,
                    message: format!(
                        "the rules in `run_options.normalise` do not go together: {error}"
                    ),
                }),
                Some(Ok(rules)) => Deck::Record(Recording::new(RecordingSpec {
                    suite: suite.name.clone(),
                    subject: cassette_subject(suite, test, model),
                    planned: case.runs,
                    path: recording_place(&folder, test, model),
                    rules: Arc::clone(rules),
                    redactor: Arc::clone(&settings.redactor),
                })),
                None => replay(
                    suite,
                    test,
                    model,
                    &cassette_place(&folder, test, model),
                    settings,
                ),
            };
            if let Deck::Refused(_) = deck {
                case.runs = 1;
            }
            decks.insert((case.test, case.model.clone()), deck);
        }
        Self(decks)
    }

    /// How many cases are replayed.
    pub fn replayed(&self) -> usize {
        let replayed = |deck: &&Deck| matches!(deck, Deck::Replay { .. });
        self.0.values().filter(replayed).count()
    }

    /// Begins a run of a case.
    pub fn tape(&self, case: &Case, run: u32) -> Result<Tape, RunError> {
        match self.0.get(&(case.test, case.model.clone())) {
            None | Some(Deck::Off) => Ok(Tape::Off),
            Some(Deck::Record(recording)) => {
                Ok(Tape::Record(recording.run(run), Arc::clone(recording)))
            }
            Some(Deck::Replay { player, what }) => Ok(Tape::Replay(player.run(run)?, *what)),
            Some(Deck::Refused(error)) => Err(error.clone()),
        }
    }

    /// A case was decided by its first runs: the recording is whole with them.
    pub fn decided(&self, case: &Case, runs: u32) {
        if let Some(Deck::Record(recording)) = self.0.get(&(case.test, case.model.clone())) {
            recording.complete_after(runs);
        }
    }

    /// Puts finished recordings in their places, and says what became of each.
    pub fn finish(&self) -> Vec<Event> {
        let recordings = self.0.values().filter_map(|deck| match deck {
            Deck::Record(recording) => Some(recording),
            _ => None,
        });
        let mut events = Vec::new();
        for recording in recordings {
            let place = recording.path().display();
            events.push(match recording.finish() {
                Ok(RecordingOutcome::Nothing) => continue,
                Ok(RecordingOutcome::Written) => Event::Note {
                    text: format!("recorded {place}"),
                },
                Ok(RecordingOutcome::Partial { path, finished }) => Event::Warning {
                    text: format!(
                        "only {finished} runs were finished: they are in {}, which is not replayed; {place} is as it was",
                        path.display()
                    ),
                },
                Ok(RecordingOutcome::KeptExisting { path, failed }) => Event::Warning {
                    text: format!(
                        "{failed} of the new runs failed, more than in {place}, which stays as it was; the new recording is in {}",
                        path.display()
                    ),
                },
                Err(error) => Event::Warning {
                    text: format!("cannot write {place}: {error}"),
                },
            });
        }
        events
    }
}

fn replay(
    suite: &Suite,
    test: &AgentTest,
    model: &str,
    path: &Path,
    settings: &CassetteSettings,
) -> Deck {
    let refused = |message: String| {
        Deck::Refused(RunError {
            kind: ErrorKind::Protocol,
            message,
        })
    };
    let cassette = match load(path) {
        Ok(cassette) => cassette,
        Err(LoadError::Missing { path: place }) => {
            let partial = partial_path(path);
            let must = settings.mode == CassetteMode::ReplayOnly && providers::is_live(model);
            return match (must, load(&partial)) {
                (true, Ok(found)) => refused(format!(
                    "the recording in {} was not finished: it has {} of {} runs; record it with `mcptest run --record`",
                    partial.display(),
                    found.runs.len(),
                    found.planned
                )),
                (true, Err(_)) => refused(format!(
                    "there is no cassette {place}; record one with `mcptest run --record`"
                )),
                (false, _) => Deck::Off,
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
    let found = cassette_changes(&cassette, suite, test, model, settings);
    if !found.is_empty() {
        return refused(stale(&path.display().to_string(), &found));
    }
    let what = settings
        .replay
        .or(test.replay)
        .unwrap_or(suite.options.replay);
    match Player::new(cassette, Arc::clone(&settings.redactor)) {
        Ok(player) => Deck::Replay { player, what },
        Err(words) => refused(format!("{}: {words}; {REMEDY}", path.display())),
    }
}

fn stale(place: &str, changes: &[Change]) -> String {
    let changes: Vec<String> = changes
        .iter()
        .map(|change| format!("\n  {change}"))
        .collect();
    format!(
        "the cassette {place} is stale:{}\n{REMEDY}",
        changes.concat()
    )
}

/// What one run does with its cassette.
pub(crate) enum Tape {
    /// Nothing.
    Off,
    /// It is written down.
    Record(Arc<RunRecorder>, Arc<Recording>),
    /// One side of it, or both, is replayed.
    Replay(Arc<RunReplay>, Replay),
}

impl Tape {
    /// What kept the recorded run from beginning, if something did.
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

    /// What live servers list is written down, or held against the recording.
    pub fn listed(&self, catalogs: &[Catalog], redactor: &Redactor) -> Result<(), RunError> {
        match self {
            Self::Record(recorder, _) => recorder.record_catalogs(catalogs.to_vec()),
            Self::Replay(replay, _) => {
                let mut now = catalogs.to_vec();
                for tool in now.iter_mut().flat_map(|catalog| &mut catalog.tools) {
                    redactor.value(tool);
                }
                let found = catalog_changes(replay.catalogs(), &now);
                if !found.is_empty() {
                    return Err(RunError {
                        kind: ErrorKind::Protocol,
                        message: stale("of this run", &found),
                    });
                }
            }
            Self::Off => {}
        }
        Ok(())
    }

    /// The run is over. What a recording keeps of it is what is judged, so that a replay is judged
    /// the same.
    pub async fn finish(self, mut trace: Trace) -> Trace {
        let Self::Record(recorder, recording) = self else {
            return trace;
        };
        recorder.finish();
        drop(recorder);
        let redactor = Arc::clone(&recording);
        // Writing waits for the disk; other runs need not.
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

fn redacted(redactor: &Redactor, trace: Trace) -> Trace {
    let Ok(mut value) = serde_json::to_value(&trace) else {
        return trace;
    };
    let before = value.clone();
    redactor.value(&mut value);
    if value == before {
        return trace;
    }
    serde_json::from_value(value).unwrap_or(trace)
}
