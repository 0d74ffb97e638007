//! Recording: wrappers around a model and tools that record every exchange.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcptest_agent::{AssistantTurn, Future, Message, Model, Offer, Request, ToolReply, Tools};
use mcptest_redact::redact::Redactor;
use mcptest_trace::verdict::RunError;
use serde_json::Value;

use crate::canonical;
use crate::file;
use crate::format::{
    CallAnswer, CallExchange, Cassette, FedResult, FormatMarker, FormatVersion, ModelAnswer,
    ModelExchange, RecordedCatalog, RecordedDistractor, RecordedDistractors, RecordedRequest,
    RecordedRun, Subject, VolatileValues,
};
use crate::map_strings::{MapStrings, redacted};
use crate::role::ModelRole;
use mcptest_redact::volatile::{Normaliser, Rules};

/// The divisor of the elapsed time that gives the time limit for saving partial recordings. With
/// very many runs, not every run is saved as soon as it is finished.
const SAVE_TIME_DIVISOR: u32 = 5;

/// The input of a recording.
#[derive(Debug)]
pub struct RecordingSpec {
    /// The suite's name.
    pub suite: String,
    /// The test, model, prompts and settings.
    pub subject: Subject,
    /// The planned number of runs.
    pub planned: u32,
    /// The path of the cassette.
    pub path: PathBuf,
    /// The rules for volatile values.
    pub rules: Arc<Rules>,
    /// Removes secrets.
    pub redactor: Arc<Redactor>,
}

/// The cassette of one case while it is being recorded. Everything in it is redacted.
#[derive(Debug)]
pub struct Recording {
    spec: RecordingSpec,
    began: Instant,
    state: Mutex<State>,
    /// Locked while a file is written.
    writing: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Finished runs with the tools that their servers listed.
    runs: Vec<(RecordedRun, Option<Vec<RecordedCatalog>>, VolatileValues)>,
    /// The time spent on saving.
    saving: Duration,
    /// The number of runs that decided the test, if fewer than planned.
    complete_after: Option<u32>,
    /// The outcome, once the recording is finished.
    outcome: Option<RecordingOutcome>,
}

/// The outcome of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordingOutcome {
    /// The cassette was written.
    Written,
    /// Runs are missing. The finished ones are in a partial recording beside the cassette.
    Partial {
        /// The path of the partial recording.
        path: PathBuf,
        /// The number of finished runs.
        finished: usize,
    },
    /// More runs failed than in the existing cassette, which was kept.
    KeptExisting {
        /// The path of the new recording.
        path: PathBuf,
        /// The number of its runs that failed.
        failed: usize,
    },
    /// No run was finished, and no file was written.
    Nothing,
}

impl Recording {
    /// Starts a recording. No file is written before the first run is finished.
    #[must_use]
    pub fn new(mut spec: RecordingSpec) -> Arc<Self> {
        file::remove_leftovers(&spec.path);
        spec.subject = redacted(&spec.redactor, spec.subject);
        Arc::new(Self {
            spec,
            began: Instant::now(),
            state: Mutex::default(),
            writing: Mutex::default(),
        })
    }

    /// Returns the path of the cassette.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.spec.path
    }

    /// Returns the redactor.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.spec.redactor
    }

    /// Starts recording a run.
    #[must_use]
    pub fn run(self: &Arc<Self>, number: u32) -> Arc<RunRecorder> {
        Arc::new(RunRecorder {
            recording: Arc::clone(self),
            began: Instant::now(),
            state: Mutex::new(RunState {
                run: RecordedRun {
                    run: number,
                    ..RecordedRun::default()
                },
                catalogs: None,
                normaliser: Normaliser::new(Arc::clone(&self.spec.rules)),
                replies: Vec::new(),
                fed: 0,
            }),
        })
    }

    /// Sets the number of runs after which the recording is complete, for a test that was decided
    /// early.
    pub fn complete_after(&self, runs: u32) {
        self.state().complete_after = Some(runs);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in another task does not invalidate finished runs.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the cassette with the runs finished so far.
    fn cassette(&self, state: &mut State) -> Cassette {
        state.runs.sort_by_key(|(run, ..)| run.run);
        let listed = state
            .runs
            .iter()
            .find_map(|(_, catalogs, _)| catalogs.clone());
        let catalogs = listed.unwrap_or_default();
        let runs = state.runs.iter().map(|(run, listed, _)| RecordedRun {
            catalogs: listed.clone().filter(|listed| *listed != catalogs),
            ..run.clone()
        });
        Cassette {
            format: FormatMarker,
            version: FormatVersion::default(),
            suite: self.spec.redactor.text(&self.spec.suite),
            fingerprint: self.spec.subject.fingerprint(),
            subject: self.spec.subject.clone(),
            planned: state.complete_after.unwrap_or(self.spec.planned),
            rules: self.spec.rules.written(),
            runs: runs.collect(),
            catalogs,
            volatile: state
                .runs
                .iter()
                .map(|(.., volatile)| volatile.clone())
                .collect(),
        }
    }

    /// Saves the finished runs in a partial recording beside the cassette. With very many runs,
    /// some calls skip the write; [`Recording::finish`] always writes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self) -> io::Result<()> {
        // One write at a time, so that an older state never replaces a newer one. The state itself
        // is unlocked, so that runs can finish meanwhile.
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now();
        let cassette = {
            let mut state = self.state();
            if state.runs.is_empty() || state.saving * SAVE_TIME_DIVISOR > self.began.elapsed() {
                return Ok(());
            }
            self.cassette(&mut state)
        };
        let written = file::write(&file::partial_path(&self.spec.path), &cassette.to_text());
        self.state().saving += began.elapsed();
        written
    }

    /// Ends the recording and writes its files. A complete recording replaces the cassette, unless
    /// the existing one has fewer failed runs.
    ///
    /// Call it as soon as the case is complete: a finished cassette does not depend on other cases,
    /// and survives if the process is killed afterwards. Later calls return the same outcome and
    /// write nothing.
    ///
    /// # Errors
    /// The files cannot be written. The recording is then not finished, and may be tried again.
    pub fn finish(&self) -> io::Result<RecordingOutcome> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let cassette = {
            let mut state = self.state();
            if let Some(outcome) = &state.outcome {
                return Ok(outcome.clone());
            }
            if state.runs.is_empty() {
                return Ok(RecordingOutcome::Nothing);
            }
            self.cassette(&mut state)
        };
        let outcome = self.write(&cassette)?;
        self.state().outcome = Some(outcome.clone());
        Ok(outcome)
    }

    /// Returns true if [`Recording::finish`] has written the files.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.state().outcome.is_some()
    }

    fn write(&self, cassette: &Cassette) -> io::Result<RecordingOutcome> {
        let partial = file::partial_path(&self.spec.path);
        file::write(&partial, &cassette.to_text())?;
        if !cassette.is_complete() {
            return Ok(RecordingOutcome::Partial {
                path: partial,
                finished: cassette.runs.len(),
            });
        }
        let failed = cassette.failed_runs();
        let old = file::load(&self.spec.path)
            .ok()
            .filter(Cassette::is_complete);
        if old.is_some_and(|old| old.failed_runs() < failed) {
            return Ok(RecordingOutcome::KeptExisting {
                path: partial,
                failed,
            });
        }
        mcptest_files::rename(&partial, &self.spec.path)?;
        Ok(RecordingOutcome::Written)
    }
}

/// A run while it is being recorded.
#[derive(Debug)]
pub struct RunRecorder {
    recording: Arc<Recording>,
    began: Instant,
    state: Mutex<RunState>,
}

#[derive(Debug)]
struct RunState {
    run: RecordedRun,
    catalogs: Option<Vec<RecordedCatalog>>,
    normaliser: Normaliser,
    /// The replies to the run's calls as the model received them, to recognise them in its
    /// requests.
    replies: Vec<Option<ToolReply>>,
    /// The number of replies that have been fed back.
    fed: usize,
}

impl RunRecorder {
    fn state(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the redactor.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        self.recording.redactor()
    }

    /// Records the tools that the servers listed.
    pub fn record_catalogs(&self, catalogs: Vec<RecordedCatalog>) {
        let catalogs = catalogs
            .into_iter()
            .map(|one| redacted(self.redactor(), one));
        self.state().catalogs = Some(catalogs.collect());
    }

    /// Records an offer with distractors.
    pub fn record_offer(&self, offer: &Offer) {
        let distractors = offer.tools().iter().filter_map(|tool| {
            Some(RecordedDistractor {
                tool: tool.tool.clone(),
                refusal: tool.refusal.clone()?,
            })
        });
        let recorded = RecordedDistractors {
            tools: distractors.collect(),
            order: offer
                .tools()
                .iter()
                .map(|tool| tool.wire_name.clone())
                .collect(),
        };
        self.state().run.distractors = Some(redacted(self.redactor(), recorded));
    }

    /// Records the error that prevented the run from starting.
    pub fn record_failure(&self, error: &RunError) {
        let mut state = self.state();
        let error = clean(self.redactor(), &mut state.normaliser, error.clone());
        state.run.error = Some(error);
    }

    /// Records the messages that servers sent by themselves.
    pub fn record_messages(&self, messages: &[Value]) {
        let mut state = self.state();
        let messages = clean(self.redactor(), &mut state.normaliser, messages.to_vec());
        state.run.messages = messages;
    }

    /// Records the answers to the calls after the run.
    pub fn record_after(&self, answers: &[Value]) {
        let mut state = self.state();
        let answers = clean(self.redactor(), &mut state.normaliser, answers.to_vec());
        state.run.after = answers;
    }

    /// Wraps a model, so that its turns are recorded.
    #[must_use]
    pub fn model(self: &Arc<Self>, role: ModelRole, model: Box<dyn Model>) -> Box<dyn Model> {
        Box::new(RecordingModel {
            recorder: Arc::clone(self),
            role,
            model,
        })
    }

    /// Wraps tools, so that their replies are recorded.
    #[must_use]
    pub fn tools<'a>(&'a self, tools: &'a dyn Tools) -> RecordingTools<'a> {
        RecordingTools {
            recorder: self,
            tools,
        }
    }

    /// Ends the run and adds it to the recording.
    pub fn finish(&self) {
        let mut state = self.state();
        let volatile = VolatileValues {
            run: state.run.run,
            duration_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            values: state.normaliser.take_values(),
        };
        let (run, catalogs) = (std::mem::take(&mut state.run), state.catalogs.take());
        drop(state);
        self.recording.state().runs.push((run, catalogs, volatile));
    }

    fn record_exchange(
        &self,
        role: &ModelRole,
        request: &Request<'_>,
        answer: &Result<AssistantTurn, RunError>,
    ) {
        let redactor = self.redactor();
        let mut state = self.state();
        let state = &mut *state;
        let prompt = redactor.text(canonical::prompt(request).unwrap_or_default());
        let system = request.system.map(|system| redactor.text(system));
        let tools = canonical::digest_of(&redacted(redactor, canonical::tools(request.tools)));
        let conversation = clean(
            redactor,
            &mut state.normaliser,
            canonical::conversation(request.messages),
        );
        let of_agent = *role == ModelRole::Agent;
        let mut results = Vec::new();
        if let Some(Message::Results(replies)) = request.messages.last() {
            for (_, reply) in replies {
                if of_agent
                    && state
                        .replies
                        .get(state.fed)
                        .is_some_and(|known| known.as_ref() == Some(reply))
                {
                    results.push(FedResult::Call(state.fed));
                    state.fed += 1;
                } else {
                    results.push(FedResult::Reply(Box::new(clean(
                        redactor,
                        &mut state.normaliser,
                        reply.clone(),
                    ))));
                }
            }
        }
        let first = request.messages.len() <= 1;
        let request = RecordedRequest {
            digest: canonical::request_digest(
                request,
                &prompt,
                system.as_deref(),
                &tools,
                &conversation,
            ),
            tools,
            system: system.filter(|_| first && !of_agent),
            prompt: Some(prompt).filter(|_| first && !of_agent),
            results,
        };
        let answer = match answer {
            Ok(turn) => ModelAnswer::Turn(clean(redactor, &mut state.normaliser, turn.clone())),
            Err(error) => ModelAnswer::Error(clean(redactor, &mut state.normaliser, error.clone())),
        };
        let exchanges = state.run.models.entry(role.to_string()).or_default();
        exchanges.push(ModelExchange { request, answer });
    }

    fn record_call(
        &self,
        server: &str,
        tool: &str,
        args: &Value,
        answer: &Result<ToolReply, RunError>,
    ) {
        let redactor = self.redactor();
        let mut state = self.state();
        let state = &mut *state;
        let args = clean(redactor, &mut state.normaliser, args.clone());
        let recorded = match answer {
            Ok(reply) => CallAnswer::Reply(Box::new(clean(
                redactor,
                &mut state.normaliser,
                reply.clone(),
            ))),
            Err(error) => CallAnswer::Error(clean(redactor, &mut state.normaliser, error.clone())),
        };
        state.replies.push(answer.as_ref().ok().cloned());
        state.run.calls.push(CallExchange {
            server: redactor.text(server),
            tool: redactor.text(tool),
            args,
            answer: recorded,
        });
    }
}

/// Returns the value without secrets, and with placeholders for volatile values.
fn clean<T: MapStrings>(redactor: &Redactor, normaliser: &mut Normaliser, value: T) -> T {
    value.with_mapped_strings(&mut |value| {
        redactor.value(value);
        normaliser.value(value);
    })
}

struct RecordingModel {
    recorder: Arc<RunRecorder>,
    role: ModelRole,
    model: Box<dyn Model>,
}

impl Model for RecordingModel {
    fn next<'a>(&'a self, request: Request<'a>) -> Future<'a, Result<AssistantTurn, RunError>> {
        Box::pin(async move {
            let answer = self.model.next(request).await;
            self.recorder.record_exchange(&self.role, &request, &answer);
            answer
        })
    }
}

/// Tools whose replies are recorded.
#[derive(Clone, Copy)]
pub struct RecordingTools<'a> {
    recorder: &'a RunRecorder,
    tools: &'a dyn Tools,
}

impl Tools for RecordingTools<'_> {
    fn call<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        args: &'a Value,
    ) -> Future<'a, Result<ToolReply, RunError>> {
        Box::pin(async move {
            let answer = self.tools.call(server, tool, args).await;
            self.recorder.record_call(server, tool, args, &answer);
            answer
        })
    }
}
