//! `explain`: lint rules, gates, and the topics of the help.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Effects, Tool};
use crate::call::{Call, ToolError};
use crate::result_size;

/// The topic that teaches how to write and repair suites.
const SUITES: &str = "suites";

/// The list of lint rules.
const RULES: &str = "rules";

pub(super) struct Explain;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    /// `suites` (how to write and repair suites), `rules`, `gates`, `matchers`, `targets`,
    /// `exit-codes`, `models`, `traces`, `agents`, `reporters`, or the name of a gate, of a lint
    /// rule or of a command.
    #[serde(default)]
    #[schemars(
        with = "String",
        length(min = 1, max = 100),
        regex(pattern = r"^[A-Za-z0-9_][A-Za-z0-9_: -]*$"),
        example = &"suites",
        example = &"DESC-009",
        example = &"tool_selection"
    )]
    topic: Option<String>,
}

/// A page of the help.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// The topic.
    topic: String,
    /// Its page, for reading.
    text: String,
    /// True if the page is cut.
    cut: bool,
}

impl Tool for Explain {
    const NAME: &'static str = "explain";
    const TITLE: &'static str = "Explain mcptest";
    const DESCRIPTION: &'static str = "Explain a part of mcptest: how to write and repair suites, a \
        gate with its targets and keys, matchers, targets of assertions, exit codes, or a lint rule \
        with a good and a bad example. Read the topic `suites` before writing a suite. Returns the \
        page as text; without a topic, the list of commands and topics.";
    type Args = Args;
    type Output = Output;

    fn effects(_: bool) -> Effects {
        Effects::Reads
    }

    async fn call(args: Args, call: &Call<'_>) -> Result<Output, ToolError> {
        let topic = args.topic.unwrap_or_default();
        let topic = topic.trim();
        let argv: Vec<String> = match topic {
            SUITES => vec!["agents-md".to_owned()],
            RULES => vec!["explain".to_owned()],
            _ if is_rule(topic) => vec!["explain".to_owned(), topic.to_uppercase()],
            _ => {
                let words = topic.split_whitespace().map(str::to_owned);
                std::iter::once("help".to_owned()).chain(words).collect()
            }
        };
        let finished = call.mcptest(argv).await?;
        if finished.code != Some(0) {
            let ToolError(why) = call.failure(&finished);
            return Err(ToolError(format!(
                "{why} (topics are also `{SUITES}` and `{RULES}`)"
            )));
        }
        let (text, cut) = result_size::text(&finished.stdout);
        Ok(Output {
            topic: match topic {
                "" => "help".to_owned(),
                _ => topic.to_owned(),
            },
            text,
            cut,
        })
    }
}

/// Returns true for the form of a lint rule, such as `DESC-009`.
fn is_rule(topic: &str) -> bool {
    topic.split_once('-').is_some_and(|(family, number)| {
        family.bytes().all(|byte| byte.is_ascii_alphabetic())
            && !number.is_empty()
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}
