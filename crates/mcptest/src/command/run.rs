//! `mcptest run`.

mod collect;
mod last_run;
mod select;
mod watch;

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mcptest_events::Event;
use mcptest_report::model::Report;
use mcptest_report::{ExitCode, Redactor};
use mcptest_runner::{Budget, Filter, Resume, RunSettings, SnapshotMode, plan};
use mcptest_suite::{Loaded, Purpose, Suite};
use mcptest_trace::verdict::Verdict;
use mcptest_yaml::Diagnostics;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use self::collect::Collected;
use self::select::Planned;
use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::output::{self, Output, Reporter};
use crate::{panics, secrets, suites};

pub fn run(args: &RunArgs, output: &Output) -> Result<ExitCode, Failure> {
    let job = Job::new(args, output)?;
    Ok(if args.many.watch {
        watch::watch(&job)?
    } else {
        job.pass(&mut Vec::new())?
    })
}

/// What one invocation has, however often it runs the suites.
struct Job<'a> {
    args: &'a RunArgs,
    output: &'a Output,
    reporters: Vec<Reporter>,
    snapshots: SnapshotMode,
    this_program: PathBuf,
    runtime: Runtime,
    cancel: CancellationToken,
    listens: OnceCell<()>,
}

impl<'a> Job<'a> {
    fn new(args: &'a RunArgs, output: &'a Output) -> Result<Self, String> {
        Ok(Self {
            args,
            output,
            reporters: output::reporters(&args.report)?,
            snapshots: snapshot_mode(args)?,
            this_program: std::env::current_exe()
                .map_err(|error| format!("cannot tell where this program is: {error}"))?,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(|error| format!("cannot start: {error}"))?,
            cancel: CancellationToken::new(),
            listens: OnceCell::new(),
        })
    }

    /// Listens for signals from now on; once, however often it is asked. Needs to be called inside
    /// of the runtime.
    fn listen(&self) -> Result<(), String> {
        if self.listens.set(()).is_ok() {
            listen_for_signals(&self.cancel)?;
        }
        Ok(())
    }

    /// The suite files that are meant.
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

    /// Loads, runs and reports once. Tells the files that went into it, even if it goes no further.
    fn pass(&self, inputs: &mut Vec<PathBuf>) -> Result<ExitCode, String> {
        let (args, output) = (self.args, self.output);
        let files = self.suite_files()?;
        inputs.extend(files.iter().cloned());
        let Some(suites) = load_all(&files, &args.model, inputs, output) else {
            return Ok(ExitCode::CouldNotRun);
        };
        if args.recording.record {
            one_folder_each(&suites, args)?;
        }
        let declared = suites
            .iter()
            .flat_map(|suite| suite.secrets.iter().cloned());
        let redactor = Redactor::new(declared.chain(secrets::of_environment()));
        let filter = Filter::from(&args.filter);
        let planned: Vec<Planned> = suites
            .into_iter()
            .map(|suite| Planned {
                cases: plan(&suite, &filter),
                suite,
            })
            .collect();
        if planned.iter().all(|planned| planned.cases.is_empty()) {
            return Err(
                "nothing was selected: the suites have no test, or the filters leave none"
                    .to_owned(),
            );
        }
        let selected = select::select(planned, args, &redactor, output)?;
        let mut report = self.runtime.block_on(async {
            self.listen()?;
            let progress = Progress::new(*output);
            let collected = Arc::new(Collected::default());
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
                cancel: self.cancel.clone(),
                cassettes: args.recording.settings(&redactor),
                resume: Arc::new(Resume::default()),
                emit: panics::provoked(listener(&collected, progress.listener())),
            };
            let report = run_all(&selected.planned, &settings, &collected).await;
            progress.clear();
            Ok::<_, String>(report)
        })?;
        report.shard = selected.shard_of(&report);
        if panics::happened() {
            // Nobody interrupted it.
            report.exit_code = ExitCode::CouldNotRun;
        }
        if args.report.no_timing {
            report.timing = None;
        }
        show_gate_lines(&report, &redactor, output);
        let shown = report.redacted(&redactor);
        output.report(&self.reporters, &shown)?;
        if let Some(file) = &args.traces {
            write_traces(&file.display().to_string(), &report, &redactor)?;
        }
        last_run::remember(&shown, &redactor, args.many.rerun_failed.is_some(), output);
        let exit_code = report.exit_code;
        if !args.many.watch {
            // The process is about to end, and takes everything with it at once.
            std::mem::forget((report, selected));
        }
        Ok(exit_code)
    }
}

/// What is done with snapshots. In CI nobody looks at what is written, so writing has to be asked
/// for twice.
fn snapshot_mode(args: &RunArgs) -> Result<SnapshotMode, String> {
    if !args.update_snapshots {
        return Ok(SnapshotMode::Compare);
    }
    let ci = std::env::var("CI").unwrap_or_default();
    if !matches!(ci.as_str(), "" | "0" | "false") && !args.allow_ci_updates {
        return Err(format!(
            "`--update-snapshots` is refused in CI (the environment variable CI is `{}`): whatever the server answers would pass; \
             update where you can look at the difference, or add `--allow-ci-updates`",
            mcptest_json::text::one_line(&ci)
        ));
    }
    Ok(SnapshotMode::Update)
}

fn load_all(
    files: &[PathBuf],
    models: &[String],
    inputs: &mut Vec<PathBuf>,
    output: &Output,
) -> Option<Vec<Arc<Suite>>> {
    let mut suites = Vec::new();
    let mut problems = Vec::new();
    for file in files {
        match suites::load_with(file, Purpose::Run, models) {
            Ok(Loaded {
                suite,
                warnings,
                files,
            }) => {
                output.problems(&warnings);
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
                "two of the suites would keep their cassettes in `{}`; run them one by one, with a `--cassettes` folder each",
                folder.display()
            ));
        }
    }
    Ok(())
}

/// Runs suites one after the other, the runs of each at once.
async fn run_all(all: &[Planned], settings: &RunSettings, collected: &Collected) -> Report {
    let began = Instant::now();
    let cases = all.iter().flat_map(|planned| {
        let Planned { suite, cases } = planned;
        cases.iter().map(move |case| (suite, case))
    });
    (settings.emit)(Event::Planned {
        cases: cases
            .zip(0..)
            .map(|((suite, case), position)| case.planned(suite, position))
            .collect(),
        shard: None,
    });
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
    let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    collected.into_report(interrupted, duration_ms)
}

/// Passes events to the progress display and to the report.
fn listener(
    collected: &Arc<Collected>,
    progress: Arc<dyn Fn(&Event) + Send + Sync>,
) -> Arc<dyn Fn(Event) + Send + Sync> {
    let collected = Arc::clone(collected);
    Arc::new(move |event| {
        progress(&event);
        collected.add(event);
    })
}

/// The first signal asks for an end with a report, the second for an end.
fn listen_for_signals(cancel: &CancellationToken) -> Result<(), String> {
    for kind in [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ] {
        let mut signals =
            signal(kind).map_err(|error| format!("cannot listen for signals: {error}"))?;
        let cancel = cancel.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                if cancel.is_cancelled() {
                    mcptest_runner::kill_all();
                    #[expect(
                        clippy::exit,
                        reason = "asked twice: nothing is worth waiting for any more"
                    )]
                    std::process::exit(u8::from(ExitCode::Interrupted).into());
                }
                cancel.cancel();
            }
        });
    }
    Ok(())
}

/// The lines that gates have for standard error, whatever the reporter.
pub fn show_gate_lines(report: &Report, redactor: &Redactor, output: &Output) {
    for line in report
        .tests
        .iter()
        .flat_map(|test| &test.gates)
        .flat_map(|gate| &gate.status_lines)
    {
        output.status(&redactor.text(line));
    }
}

fn write_traces(file: &str, report: &Report, redactor: &Redactor) -> Result<(), String> {
    let mut text = String::new();
    for run in report.tests.iter().flat_map(|test| &test.runs) {
        let mut trace = serde_json::to_value(&run.trace)
            .map_err(|error| format!("cannot write `{file}`: {error}"))?;
        redactor.value(&mut trace);
        text.push_str(&trace.to_string());
        text.push('\n');
    }
    output::write_file(file, &text)
}

fn warning(text: &str) -> String {
    format!("warning: {}", mcptest_json::text::one_line(text))
}

/// A bar for a person who watches; nothing otherwise.
struct Progress {
    bar: Option<ProgressBar>,
    output: Output,
}

impl Progress {
    fn new(output: Output) -> Self {
        let bar = output.is_watched().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template("{spinner} {pos}/{len} {wide_msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            bar
        });
        Self { bar, output }
    }

    fn listener(&self) -> Arc<dyn Fn(&Event) + Send + Sync> {
        let Some(bar) = self.bar.clone() else {
            let output = self.output;
            return Arc::new(move |event| match event {
                Event::Warning { text } => output.status(&warning(text)),
                Event::Note { text } => output.status(&mcptest_json::text::one_line(text)),
                _ => {}
            });
        };
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        let labels = Mutex::new(Vec::new());
        Arc::new(move |event| match event {
            Event::Planned { cases, .. } => {
                let runs: u64 = cases.iter().map(|case| u64::from(case.runs)).sum();
                bar.set_length(bar.length().unwrap_or(0) + runs);
                let names = cases.iter().map(|case| (case.label.clone(), case.runs));
                *labels.lock().unwrap_or_else(PoisonError::into_inner) = names.collect();
            }
            Event::RunStarted { case, run } => {
                let labels = labels.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some((label, runs)) = labels.get(*case) {
                    let number = if *runs > 1 {
                        format!(" #{run}")
                    } else {
                        String::new()
                    };
                    bar.set_message(mcptest_json::text::one_line(&format!("{label}{number}")));
                }
            }
            Event::RunFinished(_) => bar.inc(1),
            Event::RunsSaved { runs, .. } => {
                bar.set_length(bar.length().unwrap_or(0).saturating_sub(u64::from(*runs)));
            }
            Event::Warning { text } => bar.println(warning(text)),
            Event::Note { text } => bar.println(mcptest_json::text::one_line(text)),
            _ => {}
        })
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
