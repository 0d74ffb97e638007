//! `mcptest run`.

use std::sync::Arc;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use mcptest_report::model::{Report, Timing};
use mcptest_report::{ExitCode, Redactor};
use mcptest_runner::{Event, Filter, RunSettings, SnapshotMode};
use mcptest_suite::{Loaded, Purpose, Suite};
use mcptest_yaml::Diagnostics;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::cli::RunArgs;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::{secrets, suites};

pub fn run(args: &RunArgs, output: &Output) -> Result<ExitCode, Failure> {
    let reporters = output::reporters(&args.report)?;
    let snapshots = snapshot_mode(args)?;
    let named: Vec<_> = args.suites.iter().chain(&args.config).cloned().collect();
    let Some(suites) = load_all(&suites::find(&named)?, &args.model, output) else {
        return Ok(ExitCode::CouldNotRun);
    };
    if args.recording.record {
        one_folder_each(&suites, args)?;
    }
    let declared = suites.iter().flat_map(|suite| suite.secrets.iter().cloned());
    let redactor = Redactor::new(declared.chain(secrets::of_environment()));
    let this_program =
        std::env::current_exe().map_err(|error| format!("cannot tell where this program is: {error}"))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start: {error}"))?;
    let mut report = runtime.block_on(async {
        let cancel = CancellationToken::new();
        listen_for_signals(&cancel)?;
        let progress = Progress::new(output);
        let settings = RunSettings {
            filter: Filter {
                names: args.filter.filter.clone(),
                tags: args.filter.tag.clone(),
            },
            timeout: args.timeout,
            jobs: args.jobs,
            snapshots,
            this_program,
            cancel,
            cassettes: args.recording.settings(&redactor),
            on_event: progress.listener(),
        };
        let report = run_all(suites, &settings).await;
        progress.clear();
        Ok::<_, String>(report)
    })?;
    if report.tests.is_empty() && !report.interrupted {
        let words = "nothing was selected: the suites have no test, or the filters leave none";
        return Err(Failure::Words(words.to_owned()));
    }
    if args.report.no_timing {
        report.timing = None;
    }
    talk_of(&report, &redactor, output);
    output.report(&reporters, &report, &redactor)?;
    if let Some(file) = &args.traces {
        write_traces(&file.display().to_string(), &report, &redactor)?;
    }
    Ok(report.exit_code)
}

/// What is done with snapshots. In CI nobody looks at what is written, so writing has to be asked for twice.
fn snapshot_mode(args: &RunArgs) -> Result<SnapshotMode, String> {
    if !args.update_snapshots {
        return Ok(SnapshotMode::Compare);
    }
    let ci = std::env::var("CI").unwrap_or_default();
    if !matches!(ci.as_str(), "" | "0" | "false") && !args.allow_ci_updates {
        return Err(format!(
            "`--update-snapshots` is refused in CI (the environment variable CI is `{}`): whatever the server answers would pass; \
             update where you can look at the difference, or add `--allow-ci-updates`",
            mcptest_core::text::one_line(&ci)
        ));
    }
    Ok(SnapshotMode::Update)
}

fn load_all(files: &[std::path::PathBuf], models: &[String], output: &Output) -> Option<Vec<Arc<Suite>>> {
    let mut suites = Vec::new();
    let mut problems = Vec::new();
    for file in files {
        match suites::load_with(file, Purpose::Run, models) {
            Ok(Loaded { suite, warnings }) => {
                warn(&warnings, output);
                suites.push(Arc::new(suite));
            }
            Err(found) => problems.extend(found.0),
        }
    }
    if problems.is_empty() {
        return Some(suites);
    }
    output.talk(Diagnostics(problems).render(output.talk_style().colour).trim_end());
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

/// Suites one after the other, the runs of each at once.
async fn run_all(suites: Vec<Arc<Suite>>, settings: &RunSettings) -> Report {
    let mut tests = Vec::new();
    let mut timing = Timing::default();
    let mut interrupted = false;
    for suite in suites {
        if settings.cancel.is_cancelled() {
            interrupted = true;
            break;
        }
        let report = mcptest_runner::run(suite, settings).await;
        interrupted |= report.interrupted;
        if let Some(more) = report.timing {
            timing.duration_ms += more.duration_ms;
            timing.runs.extend(more.runs);
        }
        tests.extend(report.tests);
    }
    let mut report = Report::conclude(tests, interrupted);
    report.timing = Some(timing);
    report
}

/// The first signal asks for an end with a report, the second for an end.
fn listen_for_signals(cancel: &CancellationToken) -> Result<(), String> {
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let mut signals = signal(kind).map_err(|error| format!("cannot listen for signals: {error}"))?;
        let cancel = cancel.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                if cancel.is_cancelled() {
                    mcptest_runner::kill_all();
                    #[expect(clippy::exit, reason = "asked twice: nothing is worth waiting for any more")]
                    std::process::exit(u8::from(ExitCode::Interrupted).into());
                }
                cancel.cancel();
            }
        });
    }
    Ok(())
}

/// Warnings of a suite that works.
pub fn warn(warnings: &Diagnostics, output: &Output) {
    if !warnings.0.is_empty() {
        output.talk(warnings.render(output.talk_style().colour).trim_end());
    }
}

/// The lines that gates have for standard error, whatever the reporter.
pub fn talk_of(report: &Report, redactor: &Redactor, output: &Output) {
    for line in report
        .tests
        .iter()
        .flat_map(|test| &test.gates)
        .flat_map(|gate| &gate.talk)
    {
        output.talk(&redactor.text(line));
    }
}

fn write_traces(file: &str, report: &Report, redactor: &Redactor) -> Result<(), String> {
    let mut text = String::new();
    for run in report.tests.iter().flat_map(|test| &test.runs) {
        let mut trace = serde_json::to_value(&run.trace).map_err(|error| format!("cannot write `{file}`: {error}"))?;
        redactor.value(&mut trace);
        text.push_str(&trace.to_string());
        text.push('\n');
    }
    output::write_file(file, &text)
}

fn warning(text: &str) -> String {
    format!("warning: {}", mcptest_core::text::one_line(text))
}

/// A bar for a person who watches; nothing otherwise.
struct Progress(Option<ProgressBar>);

impl Progress {
    fn new(output: &Output) -> Self {
        Self(output.is_watched().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template("{spinner} {pos}/{len} {wide_msg}")
                    .unwrap_or_else(|_| ProgressStyle::default_bar()),
            );
            bar
        }))
    }

    fn listener(&self) -> Arc<dyn Fn(Event) + Send + Sync> {
        let Some(bar) = self.0.clone() else {
            return Arc::new(|event| match event {
                Event::Warning { text } => output::talk(&warning(&text)),
                Event::Note { text } => output::talk(&mcptest_core::text::one_line(&text)),
                Event::Planned { .. } | Event::Started { .. } | Event::Finished { .. } => {}
            });
        };
        bar.enable_steady_tick(std::time::Duration::from_millis(200));
        Arc::new(move |event| match event {
            Event::Planned { total } => bar.set_length(bar.length().unwrap_or(0) + total as u64),
            Event::Started { name } => bar.set_message(mcptest_core::text::one_line(&name)),
            Event::Finished { .. } => bar.inc(1),
            Event::Warning { text } => bar.println(warning(&text)),
            Event::Note { text } => bar.println(mcptest_core::text::one_line(&text)),
        })
    }

    fn clear(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
