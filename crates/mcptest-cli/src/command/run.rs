//! `mcptest run`.

mod only_mocks;
mod progress;
mod recorder;
mod resume;
mod select;
mod watch;

use std::cell::{Cell, OnceCell};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use mcptest_events::{Begun, Ended, Event, VERSION};
use mcptest_files::AtomicFile;
use mcptest_json::visible::visible;
use mcptest_live::LiveServer;
use mcptest_report::{ExitCode, Redactor, Report};
use mcptest_runner::{Budget, Filter, Resume, RunSettings, SnapshotMode, plan};
use mcptest_suite::{Loaded, Purpose, Suite};
use mcptest_trace::verdict::Verdict;
use mcptest_yaml::Diagnostics;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use self::progress::Progress;
use self::recorder::{Follower, OpenRecorder, Recorder};
use self::resume::Earlier;
use self::select::{Planned, Selected};
use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::gates::Gates;
use crate::output::{self, Output, Reporter};
use crate::suites;
use crate::{authorization, history, panics, secrets, signals};

/// The time to write the report after the second signal.
const TIME_TO_REPORT: Duration = Duration::from_secs(5);

pub fn run(args: &RunArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    if let Some(id) = &args.history.resume {
        let earlier = resume::open(Some(id.as_str()).filter(|id| !id.is_empty()))?;
        let args = earlier.args(args)?;
        let job = Job::new(&args, gates, output)?;
        return Ok(job.pass(&mut Vec::new(), Some(earlier))?);
    }
    let job = Job::new(args, gates, output)?;
    Ok(if args.many.watch {
        watch::watch(&job)?
    } else {
        job.pass(&mut Vec::new(), None)?
    })
}

/// The state of one invocation, however often it runs the suites.
struct Job<'a> {
    args: &'a RunArgs,
    gates: Gates,
    output: &'a Output,
    reporters: Vec<Reporter>,
    snapshots: SnapshotMode,
    this_program: PathBuf,
    runtime: Runtime,
    /// Cancelled by the first signal: no further test starts, and the report is written.
    cancel: CancellationToken,
    /// Cancelled by the second signal: nothing is waited for, and the report is written.
    abort: CancellationToken,
    listens: OnceCell<()>,
    /// True while logs are written to the history.
    keeps_history: Cell<bool>,
    /// The recorder of the current run.
    recorder: OpenRecorder,
}

impl<'a> Job<'a> {
    fn new(args: &'a RunArgs, gates: Gates, output: &'a Output) -> Result<Self, String> {
        let recorder = OpenRecorder::default();
        let open = recorder.clone();
        Ok(Self {
            recorder,
            args,
            gates,
            output,
            reporters: output::reporters(&args.report)?,
            snapshots: snapshot_mode(args)?,
            this_program: std::env::current_exe()
                .map_err(|error| format!("cannot find the path of this program: {error}"))?,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .on_thread_park(move || open.flush())
                .build()
                .map_err(|error| format!("cannot start: {error}"))?,
            cancel: CancellationToken::new(),
            abort: CancellationToken::new(),
            listens: OnceCell::new(),
            keeps_history: Cell::new(!args.history.no_history),
        })
    }

    /// Listens for signals from now on; once, however often it is called. Must be called inside the
    /// runtime.
    fn listen(&self) -> Result<(), String> {
        if self.listens.set(()).is_ok() {
            listen_for_signals(&self.cancel, &self.abort, *self.output)?;
        }
        Ok(())
    }

    /// The suite files of the command line.
    fn suite_files(&self) -> Result<Vec<PathBuf>, String> {
        let named: Vec<_> = self
            .args
            .suites
            .iter()
            .chain(&self.args.config)
            .cloned()
            .collect();
        suites::find(&named)
    }

    /// Loads, runs and reports once, or continues an earlier run. Adds the files that it read to
    /// `inputs`, even if it fails.
    fn pass(
        &self,
        inputs: &mut Vec<PathBuf>,
        earlier: Option<Earlier>,
    ) -> Result<ExitCode, String> {
        let (args, output) = (self.args, self.output);
        let files = self.suite_files()?;
        inputs.extend(files.iter().cloned());
        let Some(suites) = load_all(&files, args, self.gates, inputs, output) else {
            return Ok(ExitCode::CouldNotRun);
        };
        if args.only_mocks {
            suites
                .iter()
                .try_for_each(|suite| only_mocks::check(suite))?;
        }
        if args.recording.record {
            one_folder_each(&suites, args)?;
        }
        let digests = resume::digests(inputs)?;
        if let Some(earlier) = &earlier {
            earlier.check_inputs(&digests)?;
        }
        let declared = suites
            .iter()
            .flat_map(|suite| suite.secrets.iter().cloned());
        let redactor = secrets::redactor(declared);
        let filter = Filter::from(&args.filter);
        let mut planned: Vec<Planned> = suites
            .into_iter()
            .map(|suite| Planned {
                cases: plan(&suite, &filter),
                suite,
            })
            .collect();
        if planned.iter().all(|planned| planned.cases.is_empty()) {
            let all = |planned: &Planned| plan(&planned.suite, &Filter::default()).len();
            return Err(match planned.iter().map(all).sum::<usize>() {
                0 => no_tests(&planned),
                1 => "no tests to run: the filters exclude the only test".to_owned(),
                tests => format!("no tests to run: the filters exclude all {tests} tests"),
            });
        }
        let selected = match &earlier {
            Some(earlier) if earlier.planned.is_some() => {
                let positions = earlier.select(&mut planned, &redactor)?;
                Selected::of(planned, positions, earlier.shard)
            }
            _ => select::select(planned, args, &redactor, output)?,
        };
        let follower = args.events.as_deref().map(Follower::open).transpose()?;
        let run = self.start(earlier, digests, &redactor, follower);
        self.recorder.set(&run.recorder);
        // A log without its first event cannot be read.
        run.recorder.flush();
        let ui = self.serve(&run)?;
        let recorder = Arc::clone(&run.recorder);
        let report = self.execute(&selected, run, &redactor)?;
        for line in report.tests.iter().flat_map(|test| &test.status_lines) {
            output.status(line);
        }
        output.report(&self.reporters, &report)?;
        if let Some(file) = &args.traces {
            write_traces(file, &report)?;
        }
        if let Some(ui) = ui {
            ui.finish();
            output.status("the run has ended; `mcptest report --serve` shows its page again");
        }
        let Some(failure) = recorder.failure() else {
            return Ok(report.exit_code);
        };
        output.error(&failure);
        Ok(ExitCode::first_of([
            report.exit_code,
            ExitCode::CouldNotRun,
        ]))
    }

    /// Serves the page of a run from its log, if that is asked for.
    fn serve(&self, run: &Started) -> Result<Option<LiveServer>, String> {
        let Some(port) = self.args.ui else {
            return Ok(None);
        };
        let id = run.id.as_deref().ok_or(
            "`--ui` follows the log of the run in `.mcptest/history`, which cannot be written",
        )?;
        let log = history::find(Some(id))?;
        let server = LiveServer::of_log(&log.path, port, self.output.file_style());
        let server = server.map_err(|error| format!("cannot serve the page: {error}"))?;
        self.output
            .status(&format!("follow the run at {}", server.url()));
        Ok(Some(server))
    }

    /// Opens the log of a new run, or continues that of an earlier one, with its first event.
    fn start(
        &self,
        earlier: Option<Earlier>,
        inputs: Vec<mcptest_events::InputFile>,
        redactor: &Redactor,
        follower: Option<Follower>,
    ) -> Started {
        let started_ms = resume::milliseconds(SystemTime::now());
        let output = *self.output;
        if let Some(earlier) = earlier {
            let id = earlier.log.id().to_owned();
            let recorder = Recorder::resumed(
                earlier.log,
                earlier.length,
                earlier.fold,
                redactor.clone(),
                output,
            );
            if let Some(follower) = follower {
                recorder.follow(follower);
            }
            recorder.record(&Event::Resumed { started_ms });
            return Started {
                id: Some(id),
                recorder: Arc::new(recorder),
                resume: Arc::new(earlier.resume),
                finished_runs: earlier.finished_runs,
                is_planned: earlier.planned.is_some(),
                duration_ms: earlier.duration_ms,
            };
        }
        let log = if self.keeps_history.get() {
            recorder::start_log(&history::here(), output)
        } else {
            None
        };
        // One warning is enough, however often `--watch` runs the suites.
        self.keeps_history.set(log.is_some());
        let id = log.as_ref().map(|log| log.id().to_owned());
        let recorder = Recorder::new(log, redactor.clone(), output);
        if let Some(follower) = follower {
            recorder.follow(follower);
        }
        recorder.record(&Event::Begun(Begun {
            version: VERSION,
            id: id.clone().unwrap_or_default(),
            mcptest: env!("CARGO_PKG_VERSION").to_owned(),
            started_ms,
            command_line: std::env::args_os()
                .skip(1)
                .map(|argument| argument.to_string_lossy().into_owned())
                .collect(),
            inputs,
        }));
        Started {
            id,
            recorder: Arc::new(recorder),
            resume: Arc::default(),
            finished_runs: 0,
            is_planned: false,
            duration_ms: 0,
        }
    }

    /// Runs the selected cases and returns the report.
    fn execute(
        &self,
        selected: &Selected,
        run: Started,
        redactor: &Redactor,
    ) -> Result<Report, String> {
        let args = self.args;
        let began = Instant::now();
        self.runtime.block_on(async {
            self.listen()?;
            let progress = Progress::new(*self.output);
            let sink = sink(&run.recorder, &progress);
            let settings = RunSettings {
                fail_fast: args.many.fail_fast,
                timeout: args.timeout,
                jobs: args.jobs,
                budget: Budget::new(
                    args.budget.max_usd,
                    args.budget.max_tokens,
                    args.budget.max_duration,
                ),
                no_judges: args.no_judges,
                snapshots: self.snapshots,
                this_program: self.this_program.clone(),
                credentials: authorization::of_suites(),
                cancel: self.cancel.clone(),
                cassettes: args.recording.settings(redactor),
                resume: Arc::clone(&run.resume),
                emit: panics::provoked(sink),
            };
            let plan = selected.plan();
            if run.is_planned {
                progress.show(&plan);
                progress.show(&Event::RunsSaved {
                    case: 0,
                    runs: run.finished_runs,
                });
            } else {
                (settings.emit)(plan);
            }
            let interrupted = tokio::select! {
                biased;
                () = self.abort.cancelled() => true,
                interrupted = run_all(&selected.planned, &settings) => interrupted,
            };
            progress.clear();
            let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            run.recorder.record(&Event::Ended(Ended {
                interrupted,
                panicked: panics::happened(),
                duration_ms: run.duration_ms.saturating_add(took),
            }));
            Ok::<_, String>(())
        })?;
        let mut report = run.recorder.finish()?;
        if args.report.no_timing {
            report.timing = None;
        }
        if let Some(id) = &run.id {
            // The logs are removed after the next run, if not now.
            let _ = history::here().remove_old(id);
        }
        Ok(report)
    }
}

/// A run whose log is open.
struct Started {
    /// The id in the history, if it is kept.
    id: Option<String>,
    recorder: Arc<Recorder>,
    /// The finished part, for a run that is continued.
    resume: Arc<Resume>,
    finished_runs: u32,
    /// True if the log has the plan already.
    is_planned: bool,
    /// The time that earlier parts took.
    duration_ms: u64,
}

/// The receiver of events: the log and the report first, then the display.
fn sink(recorder: &Arc<Recorder>, progress: &Arc<Progress>) -> panics::Listener {
    let (recorder, progress) = (Arc::clone(recorder), Arc::clone(progress));
    Arc::new(move |event| {
        recorder.record(&event);
        progress.show(&event);
    })
}

/// The use of snapshots. In CI nobody reviews what is written, so writing needs two flags.
fn snapshot_mode(args: &RunArgs) -> Result<SnapshotMode, String> {
    if !args.update_snapshots {
        return Ok(SnapshotMode::Compare);
    }
    let ci = std::env::var("CI").unwrap_or_default();
    if !matches!(ci.as_str(), "" | "0" | "false") && !args.allow_ci_updates {
        return Err(format!(
            "`--update-snapshots` is refused in CI (the environment variable CI is `{}`): any result \
             would pass; update where you can review the difference, or add `--allow-ci-updates`",
            mcptest_json::text::one_line(&ci)
        ));
    }
    Ok(SnapshotMode::Update)
}

fn load_all(
    files: &[PathBuf],
    args: &RunArgs,
    gates: Gates,
    inputs: &mut Vec<PathBuf>,
    output: &Output,
) -> Option<Vec<Arc<Suite>>> {
    let mut suites = Vec::new();
    let mut problems = Vec::new();
    for file in files {
        match suites::load_with(file, Purpose::Run, gates, &args.model) {
            Ok(mut loaded) => {
                suites::warn_of_unknown_tools(&mut loaded, |redactor| {
                    args.recording.settings(redactor)
                });
                let Loaded {
                    suite,
                    warnings,
                    files,
                } = loaded;
                if let Err(denied) = suites::warn(&warnings, args.deny_warnings, output) {
                    problems.extend(denied.0);
                }
                inputs.extend(files);
                suites.push(Arc::new(suite));
            }
            Err(found) => problems.extend(found.0),
        }
    }
    if problems.is_empty() {
        return Some(suites);
    }
    output.problems(&Diagnostics(problems));
    None
}

/// Two suites with one folder of cassettes would overwrite each other's.
fn one_folder_each(suites: &[Arc<Suite>], args: &RunArgs) -> Result<(), String> {
    let mut taken = std::collections::BTreeSet::new();
    for suite in suites {
        let folder = mcptest_runner::cassette_folder(suite, args.recording.cassettes.as_deref());
        if !taken.insert(folder.clone()) {
            return Err(format!(
                "two of the suites would keep their cassettes in `{}`; run them one by one, with a \
                 `--cassettes` folder each",
                folder.display()
            ));
        }
    }
    Ok(())
}

/// Runs suites one after the other, the runs of each in parallel. Returns true if it was
/// interrupted.
async fn run_all(all: &[Planned], settings: &RunSettings) -> bool {
    let mut interrupted = false;
    let mut stopped = false;
    let mut first_case = 0;
    for Planned { suite, cases } in all {
        interrupted |= settings.cancel.is_cancelled();
        if !interrupted && !stopped {
            let suite = Arc::clone(suite);
            let outcome = mcptest_runner::run(suite, cases, first_case, settings).await;
            interrupted |= outcome.interrupted;
            stopped = settings.fail_fast && outcome.verdict >= Verdict::Fail;
        }
        first_case += cases.len();
    }
    interrupted
}

/// The first signal asks for an end with a report, the second for a faster one. Outputs that block
/// are given up after [`TIME_TO_REPORT`].
fn listen_for_signals(
    cancel: &CancellationToken,
    abort: &CancellationToken,
    output: Output,
) -> Result<(), String> {
    let (cancel, abort) = (cancel.clone(), abort.clone());
    signals::listen(move || {
        if cancel.is_cancelled() && !abort.is_cancelled() {
            mcptest_runner::kill_all();
            std::thread::spawn(move || give_up_later(output));
            abort.cancel();
        }
        cancel.cancel();
    })
}

/// Ends the process if the report takes too long: a pipe may have no reader.
fn give_up_later(output: Output) {
    std::thread::sleep(TIME_TO_REPORT);
    output.error(&format!(
        "interrupted twice, and the report was not written within {} s; `mcptest report` shows \
         what was finished, if the history is kept",
        TIME_TO_REPORT.as_secs()
    ));
    signals::exit();
}

/// Writes the traces of all runs as JSON Lines. They are without secrets already.
fn write_traces(file: &Path, report: &Report) -> Result<(), String> {
    let fail =
        |error: &dyn std::fmt::Display| format!("cannot write `{}`: {error}", file.display());
    let mut out = AtomicFile::create(file).map_err(|error| fail(&error))?;
    for test in &report.tests {
        for run in &test.runs {
            let record = test.record(&run).map_err(|error| fail(&error))?;
            let trace = serde_json::to_value(&record.trace).map_err(|error| fail(&error))?;
            writeln!(out, "{}", visible(&trace.to_string())).map_err(|error| fail(&error))?;
        }
    }
    out.commit().map_err(|error| fail(&error))
}

/// The message about suites without tests.
fn no_tests(planned: &[Planned]) -> String {
    let suites = match planned {
        [only] => format!("`{}` has", only.suite.file.display()),
        several => format!("the {} suites have", several.len()),
    };
    format!(
        "no tests to run: {suites} no tests; write some under `tools:` (calls of a tool) or \
         `tests:` (requests to an agent)"
    )
}
