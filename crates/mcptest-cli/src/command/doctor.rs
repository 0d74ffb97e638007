//! `mcptest doctor`.

use std::path::Path;

use mcptest_catalog::doctor::{DoctorReport, ServerReport, listings};
use mcptest_catalog::lint::lines::Selection;
use mcptest_catalog::lint::waivers::{self, Waiver, WaiverFile};
use mcptest_catalog::lint::{self, Finding, fix};
use mcptest_catalog::pin::PinFile;
use mcptest_catalog::prices::Prices;
use mcptest_json::visible::visible;
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
use crate::secrets;

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
    let lint = args.lint_descriptions
        || args.all
        || !args.rule.is_empty()
        || args.pin.is_some()
        || format.is_lint_only();
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
    let changes = match &args.pin {
        Some(file) => compare_pins(&servers, file, args.update_pin, output)?,
        None => Vec::new(),
    };
    let mut report = DoctorReport::new(servers, args.context_window, lint);
    if !args.model.is_empty() {
        report.dollars.shown.clone_from(&args.model);
    }
    if let Some(lint) = &mut report.lint {
        lint.add(changes);
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

/// Compares servers with the file of pins, and writes it if there is none or if changes are
/// accepted. A server that does not start is left out.
fn compare_pins(
    servers: &[ServerReport],
    path: &Path,
    update: bool,
    output: &Output,
) -> Result<Vec<Finding>, String> {
    let all = listings(servers);
    let pinned = || {
        let servers = servers.iter().zip(&all);
        servers
            .filter(|(server, _)| server.error.is_none())
            .map(|(server, listing)| (server.name.as_str(), *listing))
    };
    let name = mcptest_json::text::one_line(&path.display().to_string());
    if !path.exists() {
        let file = PinFile::new(pinned());
        write_pins(&file, path)?;
        output.status(&format!("pinned {} in {name}", counted(file.entries())));
        return Ok(Vec::new());
    }
    let bytes = files::read(path)?;
    let unusable = |reason: &dyn std::fmt::Display| {
        format!("{name} is not a file of pins: {reason}; delete it to pin again")
    };
    let text = String::from_utf8(bytes).map_err(|error| unusable(&error))?;
    let mut file = PinFile::parse(&text).map_err(|error| unusable(&error))?;
    let report = file.compare(pinned());
    if update {
        file.update(pinned());
        write_pins(&file, path)?;
        output.status(&format!("pinned {} in {name}", counted(file.entries())));
        return Ok(Vec::new());
    }
    for entry in &report.removed {
        let entry = mcptest_json::text::one_line(entry);
        output.status(&format!("note: {entry} is pinned and no longer listed"));
    }
    for server in &report.unknown {
        let server = mcptest_json::text::one_line(server);
        output.status(&format!(
            "note: {server} is not pinned; `--update-pin` pins it"
        ));
    }
    Ok(report.findings)
}

fn counted(entries: usize) -> String {
    match entries {
        1 => "1 entry".to_owned(),
        several => format!("{several} entries"),
    }
}

fn write_pins(file: &PinFile, path: &Path) -> Result<(), String> {
    let redactor = secrets::redactor(std::iter::empty());
    let text = redactor.text(&file.to_text());
    output::write_file(&path.display().to_string(), &visible(&text))
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
