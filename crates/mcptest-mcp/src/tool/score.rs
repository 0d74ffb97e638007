//! `score`: applies a suite's gates to recorded traces.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Effects, Tool};
use crate::call::{Call, ToolError};
use crate::judged::{Detail, Judged};

pub(super) struct Score;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// Suite file whose gates apply, below the root folder.
    #[schemars(length(min = 1, max = 1024), example = &"mcptest.yml")]
    suite: String,
    /// Trace files, or folders of them, below the root folder.
    #[schemars(length(min = 1, max = 100), inner(length(min = 1, max = 1024)), example = ["traces.jsonl"])]
    traces: Vec<String>,
    /// Treat all traces as runs of this test.
    #[serde(default)]
    #[schemars(
        with = "String",
        length(min = 1, max = 500),
        example = &"finds the weather tool"
    )]
    test: Option<String>,
    /// Judge only tests whose name contains this text.
    #[serde(default)]
    #[schemars(with = "String", length(min = 1, max = 500), example = &"weather")]
    filter: Option<String>,
    /// `summary`: verdict, lines of failures; `failures`: also what did not hold; `all`: all tests.
    #[serde(default)]
    #[schemars(example = &"failures")]
    detail: Detail,
}

impl Tool for Score {
    const NAME: &'static str = "score";
    const TITLE: &'static str = "Score recorded traces";
    const DESCRIPTION: &'static str = "Apply the gates and expectations of an mcptest suite to \
        recorded traces of agents, without servers and models; the format of trace files is \
        recognised. Use it to judge an agent that ran elsewhere, or to try other bounds. Returns the \
        verdict, the exit code and a line per failed test. Nothing is started or written.";
    type Args = Args;
    type Output = Judged;

    fn effects(_: bool) -> Effects {
        Effects::Reads
    }

    async fn call(args: Args, call: &Call<'_>) -> Result<Judged, ToolError> {
        let mut argv = vec![
            "score".to_owned(),
            call.root.find(&args.suite)?,
            // A model must not be asked.
            "--no-judges".to_owned(),
        ];
        argv.extend(call.reporters());
        for (flag, value) in [("--test", &args.test), ("--filter", &args.filter)] {
            if let Some(value) = value {
                argv.push(format!("{flag}={value}"));
            }
        }
        for trace in &args.traces {
            let found = call.root.find(trace)?;
            if found.contains(['*', '?', '[']) {
                return Err(ToolError(format!(
                    "`{found}` would be read as a pattern; give the name of a file or folder"
                )));
            }
            argv.push(format!("--trace={found}"));
        }
        let finished = call.mcptest(argv).await?;
        call.judged(&finished, args.detail)
    }
}
