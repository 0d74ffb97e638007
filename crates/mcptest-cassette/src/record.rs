//! Recording: wrappers around a model and tools that write down what passes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mcptest_agent::{AssistantTurn, Future, Message, Model, Offer, Request, ToolReply, Tools};
use mcptest_redact::redact::Redactor;
use mcptest_trace::verdict::RunError;
use serde_json::Value;

use crate::file;
use crate::format::{
    Answer, Asked, CallAnswer, CallExchange, Cassette, Catalog, Distractor, Distractors, Fed,
    Marker, ModelExchange, RecordedRun, Subject, Version, VolatileOfRun,
};
use crate::role::Role;
use crate::scrub::Scrub;
use crate::told;
use mcptest_redact::volatile::{Normaliser, Rules};

/// Saving may take this part of the time (one in so many): with very many runs, not every one is
/// saved at once.
const SHARE: u32 = 5;

/// What a recording begins with.
#[derive(Debug)]
pub struct RecordingSpec {
    /// The suite's name.
    pub suite: String,
    /// What is asked of whom.
    pub subject: Subject,
    /// How many runs there will be.
    pub planned: u32,
    /// Where the cassette belongs.
    pub path: PathBuf,
    /// How volatile values are found.
    pub rules: Arc<Rules>,
    /// What takes secrets out.
    pub redactor: Arc<Redactor>,
}

/// A cassette that is being recorded. Nothing gets into it but through the redactor.
#[derive(Debug)]
pub struct Recording {
    spec: RecordingSpec,
    began: Instant,
    state: Mutex<State>,
    /// Held while a file is written.
    writing: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Finished runs with what their servers listed.
    runs: Vec<(RecordedRun, Option<Vec<Catalog>>, VolatileOfRun)>,
    /// How long saving has taken so far.
    saving: Duration,
    /// How many runs it took, if fewer than planned were enough.
    decided_by: Option<u32>,
}

/// What became of a recording.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The cassette is in its place.
    Written,
    /// Runs are missing: what there is lies beside the cassette's place.
    Partial {
        /// Where.
        path: PathBuf,
        /// How many runs it has.
        finished: usize,
    },
    /// More runs broke than in the cassette that is there already, so that one stays.
    Worse {
        /// Where the new recording lies.
        path: PathBuf,
        /// How many of its runs broke.
        broken: usize,
    },
    /// No run was finished: nothing was written.
    Nothing,
}

impl Recording {
    /// Begins a recording. Nothing is written before the first run is finished.
    #[must_use]
    pub fn new(mut spec: RecordingSpec) -> Arc<Self> {
        file::sweep(&spec.path);
        spec.subject = redacted(&spec.redactor, spec.subject);
        Arc::new(Self {
            spec,
            began: Instant::now(),
            state: Mutex::default(),
            writing: Mutex::default(),
        })
    }

    /// Where the cassette belongs.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.spec.path
    }

    /// What takes secrets out.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        &self.spec.redactor
    }

    /// Begins to record a run.
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

    /// The test was decided by its first runs: the recording is whole with them.
    pub fn decided_by(&self, runs: u32) {
        self.state().decided_by = Some(runs);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere does not make finished runs wrong.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cassette so far.
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
            format: Marker,
            version: Version::default(),
            suite: self.spec.redactor.text(&self.spec.suite),
            fingerprint: self.spec.subject.fingerprint(),
            subject: self.spec.subject.clone(),
            planned: state.decided_by.unwrap_or(self.spec.planned),
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

    /// Saves the finished runs beside the cassette's place. With very many runs, some of the calls
    /// do nothing: the last does.
    ///
    /// # Errors
    /// What went wrong with the file.
    pub fn save(&self) -> io::Result<()> {
        // One write at a time, so that an older state never replaces a newer one. Runs that finish
        // meanwhile do not wait for the disk.
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now();
        let cassette = {
            let mut state = self.state();
            if state.runs.is_empty() || state.saving * SHARE > self.began.elapsed() {
                return Ok(());
            }
            self.cassette(&mut state)
        };
        let written = file::write(&file::partial_place(&self.spec.path), &cassette.to_text());
        self.state().saving += began.elapsed();
        written
    }

    /// Ends the recording. A whole one takes its place, unless the cassette that is there has fewer
    /// broken runs.
    ///
    /// # Errors
    /// What went wrong with the files.
    pub fn finish(&self) -> io::Result<Outcome> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.state();
        if state.runs.is_empty() {
            return Ok(Outcome::Nothing);
        }
        let cassette = self.cassette(&mut state);
        let partial = file::partial_place(&self.spec.path);
        file::write(&partial, &cassette.to_text())?;
        if !cassette.is_complete() {
            return Ok(Outcome::Partial {
                path: partial,
                finished: cassette.runs.len(),
            });
        }
        let broken = cassette.broken_runs();
        let old = file::load(&self.spec.path)
            .ok()
            .filter(Cassette::is_complete);
        if old.is_some_and(|old| old.broken_runs() < broken) {
            return Ok(Outcome::Worse {
                path: partial,
                broken,
            });
        }
        mcptest_files::rename(&partial, &self.spec.path)?;
        Ok(Outcome::Written)
    }
}

/// One run that is being recorded.
#[derive(Debug)]
pub struct RunRecorder {
    recording: Arc<Recording>,
    began: Instant,
    state: Mutex<RunState>,
}

#[derive(Debug)]
struct RunState {
    run: RecordedRun,
    catalogs: Option<Vec<Catalog>>,
    normaliser: Normaliser,
    /// The replies to the run's calls as the model got them, to know them again in its requests.
    replies: Vec<Option<ToolReply>>,
    /// How many of them have been fed back.
    fed: usize,
}

impl RunRecorder {
    fn state(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What takes secrets out.
    #[must_use]
    pub fn redactor(&self) -> &Redactor {
        self.recording.redactor()
    }

    /// What the servers listed, entry by entry as sent.
    pub fn listed(&self, catalogs: Vec<Catalog>) {
        let catalogs = catalogs
            .into_iter()
            .map(|one| redacted(self.redactor(), one));
        self.state().catalogs = Some(catalogs.collect());
    }

    /// The offer, where it has tools that no server has.
    pub fn offered(&self, offer: &Offer) {
        let fakes = offer.tools().iter().filter_map(|tool| {
            Some(Distractor {
                tool: tool.tool.clone(),
                refusal: tool.refusal.clone()?,
            })
        });
        let distractors = Distractors {
            tools: fakes.collect(),
            order: offer
                .tools()
                .iter()
                .map(|tool| tool.wire_name.clone())
                .collect(),
        };
        self.state().run.distractors = Some(redacted(self.redactor(), distractors));
    }

    /// What kept the run from beginning.
    pub fn failed(&self, error: &RunError) {
        let mut state = self.state();
        let error = clean(self.redactor(), &mut state.normaliser, error.clone());
        state.run.error = Some(error);
    }

    /// A model whose turns are written down.
    #[must_use]
    pub fn model(self: &Arc<Self>, role: Role, model: Box<dyn Model>) -> Box<dyn Model> {
        Box::new(RecordingModel {
            recorder: Arc::clone(self),
            role,
            model,
        })
    }

    /// Tools whose answers are written down.
    #[must_use]
    pub fn tools<'a>(&'a self, tools: &'a dyn Tools) -> RecordingTools<'a> {
        RecordingTools {
            recorder: self,
            tools,
        }
    }

    /// The run is over: it becomes a part of the recording.
    pub fn finish(&self) {
        let mut state = self.state();
        let volatile = VolatileOfRun {
            run: state.run.run,
            duration_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            values: state.normaliser.take_values(),
        };
        let (run, catalogs) = (std::mem::take(&mut state.run), state.catalogs.take());
        drop(state);
        self.recording.state().runs.push((run, catalogs, volatile));
    }

    fn asked(&self, role: Role, request: &Request<'_>, answer: &Result<AssistantTurn, RunError>) {
        let redactor = self.redactor();
        let mut state = self.state();
        let state = &mut *state;
        let prompt = redactor.text(told::prompt(request).unwrap_or_default());
        let system = request.system.map(|system| redactor.text(system));
        let tools = told::digest_of(&redacted(redactor, told::tools(request.tools)));
        let conversation = clean(
            redactor,
            &mut state.normaliser,
            told::conversation(request.messages),
        );
        let of_agent = role == Role::Agent;
        let mut results = Vec::new();
        if let Some(Message::Results(replies)) = request.messages.last() {
            for (_, reply) in replies {
                if of_agent
                    && state
                        .replies
                        .get(state.fed)
                        .is_some_and(|known| known.as_ref() == Some(reply))
                {
                    results.push(Fed::Call(state.fed));
                    state.fed += 1;
                } else {
                    results.push(Fed::Reply(Box::new(clean(
                        redactor,
                        &mut state.normaliser,
                        reply.clone(),
                    ))));
                }
            }
        }
        let first = request.messages.len() <= 1;
        let request = Asked {
            digest: told::request_digest(
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
            Ok(turn) => Answer::Turn(clean(redactor, &mut state.normaliser, turn.clone())),
            Err(error) => Answer::Error(clean(redactor, &mut state.normaliser, error.clone())),
        };
        let exchanges = state.run.models.entry(role.to_string()).or_default();
        exchanges.push(ModelExchange { request, answer });
    }

    fn called(&self, server: &str, tool: &str, args: &Value, answer: &Result<ToolReply, RunError>) {
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

/// The way into the file: secrets go.
pub(crate) fn redacted<T: Scrub>(redactor: &Redactor, thing: T) -> T {
    thing.scrubbed(&mut |value| redactor.value(value))
}

/// The way into a run: secrets go, and volatile values become placeholders.
fn clean<T: Scrub>(redactor: &Redactor, normaliser: &mut Normaliser, thing: T) -> T {
    thing.scrubbed(&mut |value| {
        redactor.value(value);
        normaliser.value(value);
    })
}

struct RecordingModel {
    recorder: Arc<RunRecorder>,
    role: Role,
    model: Box<dyn Model>,
}

impl Model for RecordingModel {
    fn next<'a>(&'a self, request: Request<'a>) -> Future<'a, Result<AssistantTurn, RunError>> {
        Box::pin(async move {
            let answer = self.model.next(request).await;
            self.recorder.asked(self.role, &request, &answer);
            answer
        })
    }
}

/// Tools whose answers are written down.
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
            self.recorder.called(server, tool, args, &answer);
            answer
        })
    }
}
