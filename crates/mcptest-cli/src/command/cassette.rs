//! `mcptest cassette`.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use mcptest_cassette::{
    Cassette, CassetteFinding, find, is_partial, load, parse, partial_path, show, verify, write,
};
use mcptest_report::{ExitCode, Redactor};
use mcptest_runner::{cassette_changes, cassette_folder, cassette_place};
use mcptest_suite::suite::AgentTest;
use mcptest_suite::{Purpose, Suite};
use serde_json::{Value, json};

use crate::cli::{
    CassetteArgs, CassetteCommand, CassetteDiffArgs, CassetteMergeArgs, Format, PruneArgs,
    ShowArgs, VerifyArgs,
};
use crate::failure::Failure;
use crate::gates::Gates;
use crate::output::Output;
use crate::recording::settings;
use crate::secrets;
use crate::suites;

pub fn cassette(args: &CassetteArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    match &args.command {
        CassetteCommand::Show(args) => show_one(args, output),
        CassetteCommand::Verify(args) => verify_all(args, gates, output),
        CassetteCommand::Prune(args) => prune(args, gates, output),
        CassetteCommand::Merge(args) => merge(args),
        CassetteCommand::Diff(args) => diff(args, output),
    }
}

fn read(path: &Path) -> Result<Cassette, String> {
    load(path).map_err(|error| error.to_string())
}

fn load_suite(path: &Path, gates: Gates, output: &Output) -> Result<Suite, Failure> {
    let loaded = suites::load_one(path, Purpose::Run, gates)?;
    output.problems(&loaded.warnings);
    Ok(loaded.suite)
}

fn show_one(args: &ShowArgs, output: &Output) -> Result<ExitCode, Failure> {
    let cassette = read(&args.file)?;
    if let Some(number) = args.run.filter(|number| cassette.run(*number).is_none()) {
        let has = cassette.runs.len();
        let file = args.file.display();
        return Err(format!("there is no run {number} in `{file}`, which has {has}").into());
    }
    output.result(&show(&cassette, args.run));
    Ok(ExitCode::Passed)
}

/// The findings about a file.
struct Checked {
    path: PathBuf,
    findings: Vec<CassetteFinding>,
}

fn verify_all(args: &VerifyArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    let suite = match &args.suite {
        Some(suite) => Some(load_suite(suite, gates, output)?),
        None => None,
    };
    let declared = suite.iter().flat_map(|suite| suite.secrets.iter().cloned());
    let redactor = secrets::redactor(declared);
    let mut tests = HashMap::new();
    for test in suite.iter().flat_map(Suite::agent_tests) {
        tests.entry(redactor.text(&test.name)).or_insert(test);
    }
    let folder = suite
        .as_ref()
        .map(|suite| cassette_folder(suite, args.cassettes.as_deref()));
    let mut paths = Vec::new();
    // A suite none of whose tests was recorded yet has no folder.
    let of_suite = suite.is_some() && args.paths.is_empty();
    let named = if args.paths.is_empty() {
        vec![folder.unwrap_or_else(|| PathBuf::from("cassettes"))]
    } else {
        args.paths.clone()
    };
    for path in named {
        if path.is_dir() {
            let inside = find(&path)
                .map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
            paths.extend(inside.into_iter().filter(|path| !is_something_else(path)));
        } else if path.exists() || !args.paths.is_empty() {
            paths.push(path);
        } else if !of_suite {
            return Err(format!("there are no cassettes in `{}`", path.display()).into());
        }
    }
    if paths.is_empty() && !of_suite {
        return Err("there are no cassettes".to_owned().into());
    }
    let mut all: Vec<Checked> = Vec::new();
    for path in paths {
        let findings = check(&path, suite.as_ref(), &tests, args, &redactor);
        all.push(Checked { path, findings });
    }
    if let Some(suite) = suite.as_ref().filter(|_| args.paths.is_empty()) {
        all.extend(missing(suite, args));
    }
    output.result(&match args.how.format {
        Format::Pretty => told(&all),
        Format::Json => machine(&all),
    });
    let unfit = all
        .iter()
        .flat_map(|one| &one.findings)
        .any(|finding| finding.error);
    Ok(if unfit {
        ExitCode::Failed
    } else {
        ExitCode::Passed
    })
}

/// Good JSON that does not even claim to be a cassette.
fn is_something_else(path: &Path) -> bool {
    let json = std::fs::read(path)
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    json.is_some_and(|json| json.get("format").is_none())
}

fn check(
    path: &Path,
    suite: Option<&Suite>,
    tests: &HashMap<String, &AgentTest>,
    args: &VerifyArgs,
    redactor: &Redactor,
) -> Vec<CassetteFinding> {
    let bad = |words: String| CassetteFinding::error(words);
    let cassette = match load(path) {
        Ok(cassette) => cassette,
        Err(error) => return vec![bad(error.to_string())],
    };
    let mut findings = Vec::new();
    if is_partial(path) {
        findings.push(bad(
            "this recording was not finished, and is not replayed".to_owned()
        ));
    }
    findings.extend(verify(&cassette, redactor));
    let Some(suite) = suite else { return findings };
    let folder = cassette_folder(suite, args.cassettes.as_deref());
    let subject = &cassette.subject;
    let Some(test) = tests.get(subject.test.as_str()) else {
        findings.push(bad(format!(
            "the suite has no agent test `{}`",
            subject.test
        )));
        return findings;
    };
    let own = test
        .models
        .iter()
        .find(|model| redactor.text(model) == subject.model)
        .or(test.models.first());
    let model = own.map_or("", String::as_str);
    let changes = cassette_changes(&cassette, suite, test, model, &settings(None, redactor));
    findings.extend(changes.iter().map(|change| bad(format!("stale: {change}"))));
    let place = cassette_place(&folder, test, model);
    if changes.is_empty() && !is_partial(path) && args.paths.is_empty() && place != path {
        findings.push(bad(format!(
            "the suite looks for it at {}",
            place.display()
        )));
    }
    findings
}

/// Tests that need a cassette and have none. Those of built-in models need none.
fn missing(suite: &Suite, args: &VerifyArgs) -> Vec<Checked> {
    let folder = cassette_folder(suite, args.cassettes.as_deref());
    let mut missing = Vec::new();
    for test in suite.agent_tests() {
        let models = test
            .models
            .iter()
            .filter(|model| !model.starts_with("builtin/"));
        for model in models {
            let path = cassette_place(&folder, test, model);
            if !path.exists() {
                let words = format!("there is no cassette of test `{}` with {model}", test.name);
                let findings = vec![CassetteFinding::error(words)];
                missing.push(Checked { path, findings });
            }
        }
    }
    missing
}

fn told(all: &[Checked]) -> String {
    let mut text = String::new();
    for one in all {
        let unfit = one.findings.iter().any(|finding| finding.error);
        let word = if unfit { "BAD" } else { "ok" };
        text.push_str(&format!("{word:<4} {}\n", one.path.display()));
        for finding in &one.findings {
            let mark = if finding.error { "" } else { "note: " };
            text.push_str(&format!(
                "     {mark}{}\n",
                mcptest_json::text::one_line(&finding.message)
            ));
        }
    }
    text
}

fn machine(all: &[Checked]) -> String {
    let cassettes = all.iter().map(|one| {
        let fit = !one.findings.iter().any(|finding| finding.error);
        json!({"path": one.path.display().to_string(), "fit": fit, "findings": one.findings})
    });
    let value = json!({"schema_version": 1, "cassettes": cassettes.collect::<Vec<_>>()});
    format!("{value:#}\n")
}

fn prune(args: &PruneArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    let suite = load_suite(&args.suite, gates, output)?;
    let folder = cassette_folder(&suite, args.cassettes.as_deref());
    if !folder.is_dir() {
        output.result(&format!("there are no cassettes in {}\n", folder.display()));
        return Ok(ExitCode::Passed);
    }
    let mut used: HashSet<PathBuf> = HashSet::new();
    for test in suite.agent_tests() {
        for model in &test.models {
            let place = cassette_place(&folder, test, model);
            used.extend([partial_path(&place), place]);
        }
    }
    let found =
        find(&folder).map_err(|error| format!("cannot read `{}`: {error}", folder.display()))?;
    let mut text = String::new();
    let mut removed = 0;
    for path in found.into_iter().filter(|path| !used.contains(path)) {
        // Other files are not ours to remove.
        let ours = std::fs::read(&path).is_ok_and(|bytes| parse("", &bytes).is_ok());
        if !ours {
            text.push_str(&format!("kept     {} (not a cassette)\n", path.display()));
            continue;
        }
        removed += 1;
        if args.dry_run {
            text.push_str(&format!("unused   {}\n", path.display()));
        } else {
            std::fs::remove_file(&path)
                .map_err(|error| format!("cannot remove `{}`: {error}", path.display()))?;
            text.push_str(&format!("removed  {}\n", path.display()));
        }
    }
    if removed == 0 {
        text.push_str("every cassette is used\n");
    }
    output.result(&text);
    Ok(ExitCode::Passed)
}

fn merge(args: &CassetteMergeArgs) -> Result<ExitCode, Failure> {
    let (first, second) = (read(&args.first)?, read(&args.second)?);
    let merged = mcptest_cassette::merge(&first, &second).map_err(|error| error.to_string())?;
    write(&args.output, &merged.to_text())
        .map_err(|error| format!("cannot write `{}`: {error}", args.output.display()))?;
    Ok(ExitCode::Passed)
}

fn diff(args: &CassetteDiffArgs, output: &Output) -> Result<ExitCode, Failure> {
    let (first, second) = (read(&args.first)?, read(&args.second)?);
    let found = mcptest_cassette::diff(&first, &second);
    output.result(&match args.how.format {
        Format::Pretty => found.text(),
        Format::Json => {
            let mut value = serde_json::to_value(&found).unwrap_or_default();
            value["schema_version"] = 1.into();
            format!("{value:#}\n")
        }
    });
    Ok(if found.is_empty() {
        ExitCode::Passed
    } else {
        ExitCode::Failed
    })
}
