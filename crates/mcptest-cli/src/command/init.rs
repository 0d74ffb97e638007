//! `mcptest init`.

mod capture;
mod files;
mod project;
mod questions;
mod source;

use std::fmt::Write as _;
use std::path::Path;

use mcptest_init::names::{server_name, slug};
use mcptest_init::server_draft::{CallPolicy, Outcome, ServerDraft};
use mcptest_init::workflow::Ci;
use mcptest_json::text::{lines, one_line};
use mcptest_report::ExitCode;
use mcptest_runner::InspectSettings;
use mcptest_suite::suite::Server;
use mcptest_trace::verdict::{ErrorKind, RunError};

use capture::{Captured, Trial, capture, counted};
use files::{Draft, Plan, SUITE};
use project::Project;
use questions::Questions;
use source::{Chosen, choose, unique_names, without};

use crate::authorization;
use crate::cli::{CallArg, CiArg, InitArgs};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::live_servers::with_servers;
use crate::output::Output;

/// Names of servers that say nothing.
const GENERIC: [&str; 11] = [
    "server", "mcp", "fastmcp", "example", "test", "my", "main", "index", "app", "cli", "src",
];

pub fn init(args: &InitArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    let args = match args.settled() {
        Ok(args) => args,
        Err(usage) => return Ok(super::print_usage(&usage)),
    };
    let args = with_file_as_source(args);
    let questions = Questions::new(args.yes);
    let project = Project::new(args.dir.as_deref())?;
    let replace = may_replace(&args, &project, questions)?;
    let chosen = choose(&args, &project, questions, output)?;
    let settings = ask_settings(&args, &project, questions)?;
    let trial = Trial {
        policy: settings.policy,
        twice: args.snapshots,
    };
    let captured = capture_all(&chosen, trial, &args, questions, output)?;
    let servers = name_servers(&args, &chosen, captured);
    let name = args.name.clone().unwrap_or_else(|| {
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        names.join(", ")
    });
    let plan = Plan::new(&Draft {
        project: &project,
        name: &name,
        servers: &servers,
        snapshots: args.snapshots,
        attacks: settings.attacks,
        ci: settings.ci,
        gates,
    })?;
    let conflicts = plan.conflicts();
    if !conflicts.is_empty() && !replace {
        return Err(Failure::Message(format!(
            "these files exist, and nothing was written: {}; `--force` replaces them",
            conflicts.join(", ")
        )));
    }
    let kept = plan.write(replace)?;
    let kept: Vec<&str> = kept.iter().map(|file| file.shown.as_str()).collect();
    output.result(&summary(&plan, &kept, &servers, &project));
    Ok(ExitCode::Passed)
}

/// A file or an address in the place of the folder is what is tested.
fn with_file_as_source(mut args: InitArgs) -> InitArgs {
    let none_given = args.command.is_empty()
        && args.last.is_empty()
        && args.url.is_none()
        && args.from.is_none();
    let Some(dir) = args.dir.clone().filter(|_| none_given) else {
        return args;
    };
    if dir.is_file() {
        args.from = args.dir.take();
    } else if let Some(url) = dir.to_str().filter(|text| crate::sources::is_address(text)) {
        args.url = Some(url.to_owned());
        args.dir = None;
    }
    args
}

/// Returns true if files may be replaced. A suite that exists is asked about before a server is
/// started for nothing.
fn may_replace(args: &InitArgs, project: &Project, questions: Questions) -> Result<bool, Failure> {
    // `run` would take this one first.
    if project.folder.join("mcptest.yaml").exists() {
        return Err(Failure::Message(format!(
            "`{}` exists, and `mcptest run` would take it before {SUITE}: rename it, or choose \
             another folder",
            project.shown.join("mcptest.yaml").display()
        )));
    }
    if args.force || !project.folder.join(SUITE).exists() {
        return Ok(args.force);
    }
    let shown = project.shown.join(SUITE);
    let shown = shown.strip_prefix(".").unwrap_or(&shown).display();
    if !questions.interactive() {
        return Err(Failure::Message(format!(
            "`{shown}` exists; `--force` replaces it, or name another folder"
        )));
    }
    if questions.confirm(&format!("{shown} exists. Replace it?"), false)? {
        Ok(true)
    } else {
        Err(Failure::Message("nothing was written".to_owned()))
    }
}

/// The answers to questions that are not about servers.
struct Settings {
    ci: Option<Ci>,
    attacks: bool,
    policy: CallPolicy,
}

fn ask_settings(
    args: &InitArgs,
    project: &Project,
    questions: Questions,
) -> Result<Settings, Failure> {
    let policy = match args.call {
        Some(CallArg::All) => CallPolicy::All,
        Some(CallArg::None) => CallPolicy::None,
        Some(CallArg::ReadOnly) => CallPolicy::ReadOnly,
        None => {
            let question = "Call the tools that only read, to see what they answer?";
            if questions.confirm(question, true)? {
                CallPolicy::ReadOnly
            } else {
                CallPolicy::None
            }
        }
    };
    let ci = match args.ci {
        Some(CiArg::Github) => Some(Ci::Github),
        Some(CiArg::Gitlab) => Some(Ci::Gitlab),
        Some(CiArg::None) => None,
        None => {
            let default = match project.ci() {
                Ci::Github => "github",
                Ci::Gitlab => "gitlab",
            };
            match questions.choice("CI file", &["github", "gitlab", "none"], default)? {
                "github" => Some(Ci::Github),
                "gitlab" => Some(Ci::Gitlab),
                _ => None,
            }
        }
    };
    let attacks =
        args.attacks || questions.confirm("Add attacks: hostile text in tool results?", false)?;
    Ok(Settings {
        ci,
        attacks,
        policy,
    })
}

/// Captures all servers. One that does not start is an error, unless the others are enough for the
/// person who is asked.
fn capture_all(
    chosen: &Chosen,
    trial: Trial,
    args: &InitArgs,
    questions: Questions,
    output: &Output,
) -> Result<Vec<(usize, Captured)>, Failure> {
    let (captured, failed) = with_servers(args.patience.timeout, async |settings| {
        let mut captured = Vec::new();
        let mut failed = Vec::new();
        for (index, server) in chosen.servers.iter().enumerate() {
            let label = server.name.as_deref().unwrap_or(&server.suggested);
            output.status(&format!(
                "starting {}",
                one_line(&shown_target(&server.server))
            ));
            let http = server.server.http.as_ref();
            let http = http.filter(|http| !authorization::has_token(http));
            let source = match http {
                Some(http) => Some(authorization::of_url(&http.url, &args.auth, false)?),
                None => None,
            };
            let settings = InspectSettings {
                credentials: authorization::only(source.as_ref()),
                ..settings.clone()
            };
            match capture(label, &server.server, trial, &settings, output).await {
                Ok(mut found) => {
                    if let Some(source) = source
                        && source.summary().await.is_some()
                    {
                        found.auth = Some(authorization::as_suite(&args.auth));
                    }
                    captured.push((index, found));
                }
                Err(error) => failed.push((label, error)),
            }
        }
        Ok((captured, failed))
    })?;
    if failed.is_empty() {
        return Ok(captured);
    }
    let message = reasons(&failed);
    let others: Vec<&str> = captured
        .iter()
        .filter_map(|(index, _)| chosen.servers[*index].name.as_deref())
        .collect();
    if others.is_empty() {
        return Err(Failure::Message(format!("{message}\nnothing was written")));
    }
    if !questions.interactive() {
        return Err(Failure::Message(format!(
            "{message}\nnothing was written; {}",
            without(&others)
        )));
    }
    output.error(&message);
    if questions.confirm("Continue with the others?", true)? {
        Ok(captured)
    } else {
        Err(Failure::Message("nothing was written".to_owned()))
    }
}

/// A server as it is shown while it starts: without the part of an address that may have keys.
fn shown_target(server: &Server) -> String {
    match &server.http {
        Some(http) => crate::sources::shown(&http.url),
        None => server.argv.join(" "),
    }
}

/// Why servers could not be captured, in their own words.
fn reasons(failed: &[(&str, RunError)]) -> String {
    let mut parts = Vec::new();
    for (_, error) in failed {
        let mut part = lines(&error.message);
        let hint = match error.kind {
            ErrorKind::Timeout => {
                Some("note: `--timeout 3m` gives a server that is only slow more time")
            }
            ErrorKind::Auth => Some(
                "note: the server wants credentials: `mcptest auth login URL` before, \
                 `--auth client_credentials`, `--header 'Authorization: Bearer …'`, or the \
                 variables that it reads; see `mcptest help authorization`",
            ),
            ErrorKind::ServerCrash => Some(
                "note: a server that needs a key or a database has to have it now: it is started \
                 with the environment of this shell",
            ),
            _ => None,
        };
        if let Some(hint) = hint {
            let _ = write!(part, "\n{hint}");
        }
        parts.push(part);
    }
    parts.join("\n")
}

/// The drafts with their names in the suite.
fn name_servers(
    args: &InitArgs,
    chosen: &Chosen,
    captured: Vec<(usize, Captured)>,
) -> Vec<ServerDraft> {
    let single = captured.len() == 1;
    let wanted: Vec<String> = captured
        .iter()
        .map(|(index, found)| {
            let server = &chosen.servers[*index];
            if let Some(name) = args.name.as_deref().filter(|_| single) {
                return named(name);
            }
            if let Some(name) = &server.name {
                return named(name);
            }
            let is_telling = |name: &String| !GENERIC.contains(&name.as_str());
            let own = found.own_name.as_deref().map(server_name);
            let own = own.filter(|own| is_telling(own) && own.len() <= 24);
            let suggested = Some(server.suggested.clone());
            // A package is known by its name; an address or `server.py` is not.
            let suggested_first = suggested
                .clone()
                .filter(|name| is_telling(name) && server.server.http.is_none());
            suggested_first.or(own).or(suggested).unwrap_or_default()
        })
        .collect();
    let names = unique_names(&wanted);
    captured
        .into_iter()
        .zip(names)
        .map(|((index, found), (name, mock))| {
            let mut draft = found.draft;
            draft.launch = chosen.launch(&chosen.servers[index], &name);
            draft.launch.auth = found.auth;
            draft.name = name;
            draft.mock = mock;
            draft
        })
        .collect()
}

/// A given name, as a suite can have it.
fn named(name: &str) -> String {
    match slug(name).as_str() {
        "" => "server".to_owned(),
        plain => plain.to_owned(),
    }
}

/// The files that were written, and the next steps.
fn summary(plan: &Plan, kept: &[&str], servers: &[ServerDraft], project: &Project) -> String {
    let mut out = String::new();
    for server in servers {
        let _ = writeln!(out, "{}: {}", server.name, outcomes(server));
    }
    out.push('\n');
    let rows: Vec<(String, &str)> = plan
        .files
        .iter()
        .map(|file| {
            if kept.contains(&file.shown.as_str()) {
                (file.shown.clone(), "exists, and was kept as it is")
            } else {
                (file.shown.clone(), file.what.as_str())
            }
        })
        .collect();
    out.push_str(&crate::columns::rows(&rows));
    if plan.suite.ambiguous > 0 {
        let _ = writeln!(
            out,
            "\n{} no draft of a prompt leads to: see the comments in {SUITE}",
            counted(plan.suite.ambiguous, "tool")
        );
    }
    let mut variables: Vec<&str> = Vec::new();
    for name in servers.iter().flat_map(|server| &server.launch.variables) {
        if !variables.contains(&name.as_str()) {
            variables.push(name);
        }
    }
    out.push_str("\nNext:\n");
    if project.shown != Path::new(".") {
        let _ = writeln!(out, "  cd {}", project.shown.display());
    }
    for name in variables
        .iter()
        .filter(|name| std::env::var_os(name).is_none())
    {
        let _ = writeln!(out, "  export {name}=…    # the suite has no secrets");
    }
    out.push_str("  mcptest run\n");
    out
}

/// The outcomes of the calls, in words.
fn outcomes(server: &ServerDraft) -> String {
    let count = |matches: fn(&Outcome) -> bool| {
        let tools = server.tools.iter();
        tools.filter(|tool| matches(&tool.outcome)).count()
    };
    let answered = count(|outcome| matches!(outcome, Outcome::Answered { .. }));
    let failed = count(|outcome| matches!(outcome, Outcome::Failed { .. }));
    let unsafe_ones = count(|outcome| matches!(outcome, Outcome::NotCalled(_)));
    let others = server.tools.len() - answered - failed - unsafe_ones;
    let mut parts = vec![format!("{} answered", counted(answered, "tool"))];
    if failed > 0 {
        parts.push(format!("{failed} failed with made-up arguments"));
    }
    if unsafe_ones > 0 {
        parts.push(format!("{unsafe_ones} not called (may change something)"));
    }
    if others > 0 {
        parts.push(format!("{others} not tried"));
    }
    parts.join(", ")
}
