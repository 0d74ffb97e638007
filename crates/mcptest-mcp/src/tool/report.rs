//! `report`: shows, lists and compares earlier runs.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Effects, Tool};
use crate::call::{Call, ToolError};
use crate::judged::{Detail, Judged};

pub(super) struct Report;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Id of a run in the history, or a JSON report below the root folder. Default: the last run.
    #[serde(default)]
    #[schemars(
        with = "String",
        length(min = 1, max = 1024),
        example = &"20261117T183012Z-3fa9"
    )]
    run: Option<String>,
    /// Compare with this earlier run: an id, or a JSON report.
    #[serde(default)]
    #[schemars(
        with = "String",
        length(min = 1, max = 1024),
        example = &"baseline.json"
    )]
    compare_with: Option<String>,
    /// List the runs of the history instead.
    #[serde(default)]
    #[schemars(example = false)]
    list: bool,
    /// `summary`: verdict, lines of failures; `failures`: also what did not hold; `all`: all tests.
    #[serde(default)]
    #[schemars(example = &"failures")]
    detail: Detail,
}

impl Tool for Report {
    const NAME: &'static str = "report";
    const TITLE: &'static str = "Show earlier runs";
    const DESCRIPTION: &'static str = "Show the report of an earlier mcptest run, list the runs of \
        the history, or compare two runs. Use it to see why a run of the user or of CI failed, \
        without running it again. Returns the verdict, the exit code and a line per failed test; a \
        list or a comparison is returned as text. Nothing is started or written.";
    type Args = Args;
    type Output = Judged;

    fn effects(_: bool) -> Effects {
        Effects::Reads
    }

    async fn call(args: Args, call: &Call<'_>) -> Result<Judged, ToolError> {
        let mut argv = vec!["report".to_owned()];
        if args.list {
            if args.run.is_some() || args.compare_with.is_some() {
                return Err(ToolError(
                    "`list` shows all runs; leave out `run` and `compare_with`".to_owned(),
                ));
            }
            argv.push("--list".to_owned());
            let (text, _) = printed(argv, call).await?;
            return Ok(Judged::text(&text));
        }
        if let Some(run) = &args.run {
            argv.push(source(run, call)?);
        }
        if let Some(baseline) = &args.compare_with {
            argv.push(format!("--compare={}", source(baseline, call)?));
            argv.extend(["--reporter", "markdown"].map(String::from));
            let (text, code) = printed(argv, call).await?;
            return Ok(Judged {
                exit_code: Some(code),
                meaning: Some(compared(code).to_owned()),
                ..Judged::text(&text)
            });
        }
        argv.extend(call.reporters());
        let finished = call.mcptest(argv).await?;
        call.judged(&finished, args.detail)
    }
}

/// The output of the command, and its exit code.
async fn printed(argv: Vec<String>, call: &Call<'_>) -> Result<(String, i32), ToolError> {
    let finished = call.mcptest(argv).await?;
    match finished.code {
        Some(code) if !finished.stdout.trim().is_empty() => Ok((finished.stdout, code)),
        _ => Err(call.failure(&finished)),
    }
}

/// The meaning of the exit code of a comparison.
fn compared(code: i32) -> &'static str {
    match code {
        0 => "nothing regressed",
        1 => "a test regressed",
        3 => "a result was lost: it passed, and could not be judged now",
        _ => "could not compare as asked",
    }
}

/// An id of the history as it is, or the path of a file.
fn source(written: &str, call: &Call<'_>) -> Result<String, ToolError> {
    match call.root.find(written) {
        Ok(path) => Ok(path),
        Err(_) if is_id(written) => Ok(written.to_owned()),
        Err(why) => Err(ToolError(why)),
    }
}

/// Returns true for the form of an id, such as `20261117T183012Z-3fa9`.
fn is_id(written: &str) -> bool {
    let form = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    written.len() <= 64
        && written.starts_with(|first: char| first.is_ascii_digit())
        && written.bytes().all(form)
}
