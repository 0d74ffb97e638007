//! `run`: runs suites. Without permission, only with mocks and recorded or built-in models.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Effects, Tool};
use crate::call::{Call, ToolError};
use crate::judged::{Detail, Judged};

/// The default of `max_seconds`.
const DEFAULT_SECONDS: u32 = 600;

/// The time for the report and the end of servers, in addition to the limit of the run.
const GRACE: Duration = Duration::from_secs(60);

pub(super) struct Run;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Suite file or folder of suites, below the root folder. Default: mcptest.yaml or mcptest.yml.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 1024), example = &"mcptest.yml")]
    suite: Option<String>,
    /// Run only tests whose name contains this text.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 500), example = &"weather")]
    filter: Option<String>,
    /// Run only tests with this tag.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 200), example = &"smoke")]
    tag: Option<String>,
    /// Stop after this many seconds; what is finished is reported.
    #[serde(default)]
    #[schemars(with = "u32", range(min = 1, max = 3600), example = 120)]
    max_seconds: Option<u32>,
    /// Stop before models cost more than this many US dollars.
    #[serde(default)]
    #[schemars(with = "f64", range(min = 0.0, max = 1000.0), example = 0.5)]
    max_usd: Option<f64>,
    /// `summary`: verdict, lines of failures; `failures`: also what did not hold; `all`: all tests.
    #[serde(default)]
    #[schemars(example = &"failures")]
    detail: Detail,
}

impl Tool for Run {
    const NAME: &'static str = "run";
    const TITLE: &'static str = "Run test suites";
    const DESCRIPTION: &'static str = "Run mcptest suites and judge the results. Returns the verdict \
        (pass, fail, no_evidence or error), the exit code, and a line per failed test with the \
        command that reproduces it. A failed test is a result, not an error. A read-only server runs \
        only suites whose servers are mocks, with built-in or recorded models, and keeps no history. \
        Reports progress; can be cancelled.";
    type Args = Args;
    type Output = Judged;

    fn effects(allow_run: bool) -> Effects {
        match allow_run {
            true => Effects::Acts,
            false => Effects::Reads,
        }
    }

    async fn call(args: Args, call: &Call<'_>) -> Result<Judged, ToolError> {
        let seconds = args.max_seconds.unwrap_or(DEFAULT_SECONDS);
        let mut argv = vec![
            "run".to_owned(),
            "--events".to_owned(),
            "/dev/stdout".to_owned(),
            "--max-duration".to_owned(),
            format!("{seconds}s"),
        ];
        argv.extend(call.reporters());
        if !call.options.allow_run {
            argv.extend(["--only-mocks", "--replay-only", "--no-history"].map(String::from));
        }
        for (flag, value) in [("--filter", &args.filter), ("--tag", &args.tag)] {
            if let Some(value) = value {
                argv.push(format!("{flag}={value}"));
            }
        }
        if let Some(usd) = args.max_usd {
            argv.push(format!("--max-usd={usd}"));
        }
        if let Some(suite) = &args.suite {
            argv.push(call.root.find(suite)?);
        }
        let timeout = Duration::from_secs(seconds.into()) + GRACE;
        let (finished, id) = call.run(argv, timeout).await?;
        let judged = call.judged(&finished, args.detail);
        match judged {
            Ok(judged) => Ok(Judged {
                run_id: id,
                ..judged
            }),
            // The flag is ours, so the caller cannot change it.
            Err(ToolError(why)) if why.contains("`--only-mocks`") => Err(ToolError(format!(
                "{}; this server is read-only and starts only mocks. Ask the user to start it \
                     with `mcptest mcp --allow-run`, or give the suite a mock server",
                why.replace("`--only-mocks` does not allow", "not allowed is")
            ))),
            Err(error) => Err(error),
        }
    }
}
