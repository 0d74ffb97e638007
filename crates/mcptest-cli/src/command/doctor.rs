//! `mcptest doctor`.

use std::path::Path;

use mcptest_catalog::doctor::{DoctorReport, ServerReport};
use mcptest_catalog::lint::lines::Selection;
use mcptest_catalog::lint::waivers::{self, Waiver, WaiverFile};
use mcptest_catalog::lint::{self, fix};
use mcptest_catalog::prices::Prices;
use mcptest_report::ExitCode;
use mcptest_report::doctor::{self, Format};
use mcptest_report::line_diff::unified_diff;
use mcptest_yaml::{Diagnostics, suggest};

use crate::catalogs;
use crate::cli::{Deny, DoctorArgs, DoctorFormat};
use crate::failure::Failure;
use crate::files;
use crate::gates::Gates;
use crate::output::{self, Output};

/// Looked for where no waivers are named.
const DEFAULT_WAIVERS: &str = "mcptest-lint.yml";

pub fn doctor(args: &DoctorArgs, gates: Gates, output: &Output) -> Result<ExitCode, Failure> {
    let format = match args.format {
        DoctorFormat::Pretty => Format::Pretty,
        DoctorFormat::Json => Format::Json,
        DoctorFormat::Sarif => Format::Sarif,
        DoctorFormat::Github => Format::Github,
        DoctorFormat::Markdown => Format::Markdown,
    };
    // To ask for findings is to ask for the lint.
    let lint = args.lint_descriptions || args.all || !args.rule.is_empty() || format.is_lint_only();
    check_rules(&args.rule)?;
    check_models(&args.model)?;
    let waivers = if lint {
        read_waivers(args.waivers.as_deref())?
    } else {
        Vec::new()
    };
    let servers = catalogs::gather(&args.catalog, gates, output)?;
    if let Some(file) = &args.fix {
        return Ok(write_fixes(&servers, file, output)?);
    }
    let mut report = DoctorReport::new(servers, args.context_window, lint);
    if !args.model.is_empty() {
        report.dollars.shown.clone_from(&args.model);
    }
    if let Some(lint) = &mut report.lint {
        for unused in waivers::apply(&waivers, &mut lint.findings) {
            let tool = unused.tool.as_deref().unwrap_or("every tool");
            output.status(&format!(
                "note: the waiver of {} for {tool} covers nothing",
                unused.rule
            ));
        }
        lint.selection = Selection {
            all: args.all,
            rules: args.rule.clone(),
        };
        lint.recount();
    }
    let mut text = Vec::new();
    // Writing to memory cannot fail.
    let _ = doctor::render(format, &report, output.result_style(), &mut text);
    output.result(&String::from_utf8_lossy(&text));
    // In the formats that only have findings, a server that does not start would go unseen.
    for server in report.servers.iter().filter(|_| format.is_lint_only()) {
        if let Some(error) = &server.error {
            output.error(&error.message);
        }
    }
    Ok(doctor::exit_code(&report, args.deny == Some(Deny::Warning)))
}

/// Rejects rules that do not exist.
fn check_rules(rules: &[String]) -> Result<(), String> {
    for rule in rules {
        if lint::find(rule).is_none() {
            let hint = match suggest(rule, lint::RULES.iter().map(|rule| rule.id)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`mcptest explain` lists the rules".to_owned(),
            };
            return Err(format!("unknown rule `{rule}`; {hint}"));
        }
    }
    Ok(())
}

/// Rejects models without a price.
fn check_models(models: &[String]) -> Result<(), String> {
    for model in models {
        if Prices::builtin().find(model).is_none() {
            let hint = match suggest(model, Prices::models()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => {
                    let known: Vec<&str> = Prices::models().collect();
                    format!("the table has {}", known.join(", "))
                }
            };
            return Err(format!("the price table has no model `{model}`; {hint}"));
        }
    }
    Ok(())
}

fn read_waivers(named: Option<&Path>) -> Result<Vec<Waiver>, String> {
    let path = match named {
        Some(path) => path,
        None if Path::new(DEFAULT_WAIVERS).is_file() => Path::new(DEFAULT_WAIVERS),
        None => return Ok(Vec::new()),
    };
    let name = path.display().to_string();
    let bytes = files::read(path)?;
    let refuse = |problems: Diagnostics| {
        format!(
            "the waivers cannot be used\n{}",
            problems.render(false).trim_end()
        )
    };
    let (file, document) = mcptest_yaml::from_bytes::<WaiverFile>(&name, &bytes).map_err(refuse)?;
    let mut problems = Vec::new();
    for (index, waiver) in file.waivers.iter().enumerate() {
        if lint::find(&waiver.rule).is_none() {
            let place = format!("/waivers/{index}/rule");
            let diagnostic =
                document.diagnostic_at(&place, format!("unknown rule `{}`", waiver.rule));
            problems.push(
                match suggest(&waiver.rule, lint::RULES.iter().map(|rule| rule.id)) {
                    Some(near) => diagnostic.label(format!("did you mean `{near}`?")),
                    None => diagnostic.help("`mcptest explain` lists the rules"),
                },
            );
        }
        if waiver.reason.trim().is_empty() {
            let place = format!("/waivers/{index}/reason");
            problems.push(document.diagnostic_at(&place, "a waiver needs a reason"));
        }
    }
    if problems.is_empty() {
        Ok(file.waivers)
    } else {
        Err(refuse(Diagnostics(problems)))
    }
}

/// The patched catalog goes to the file, the difference to standard output. Both sides of the
/// difference are indented alike, whatever the original's layout.
fn write_fixes(servers: &[ServerReport], file: &Path, output: &Output) -> Result<ExitCode, String> {
    let [server] = servers else {
        return Err(format!(
            "`--fix` takes one catalog, and {} are named",
            servers.len()
        ));
    };
    if let Some(error) = &server.error {
        return Err(error.message.clone());
    }
    let (fixed, changes) = fix::fix(&server.listed);
    let (old, new) = (
        doctor::catalog_json(&server.listed),
        doctor::catalog_json(&fixed),
    );
    let target = file.display().to_string();
    output::write_file(&target, &new)?;
    let name = server.file.as_deref().unwrap_or(&server.name);
    let names = [name, &target].map(mcptest_json::text::one_line);
    output.result(&unified_diff(&names[0], &names[1], &old, &new));
    let changed = match changes.len() {
        0 => "nothing to fix".to_owned(),
        1 => "1 fix".to_owned(),
        several => format!("{several} fixes"),
    };
    output.status(&format!("{changed}, written to {}", names[1]));
    Ok(ExitCode::Passed)
}
