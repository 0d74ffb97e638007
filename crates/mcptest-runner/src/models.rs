//! From a model id to a model that takes turns.

use mcptest_agent::Model;
use mcptest_agent::builtin::{LEXICAL, Lexical, SCRIPTED, Scripted, ScriptedCall, ScriptedTurn};
use mcptest_core::random::seed_of;
use mcptest_core::verdict::RunError;
use mcptest_suite::Suite;
use mcptest_suite::suite::AgentTest;

use crate::providers::Providers;

/// The models of a suite. What their providers share (connections, limits) lives as long as this.
#[derive(Debug, Default)]
pub(crate) struct Models {
    providers: Providers,
}

impl Models {
    /// Opens a model for one run. An unknown id is an error; nothing stands in for it silently.
    pub fn open(&self, suite: &Suite, id: &str, test: &AgentTest, run: u32) -> Result<Box<dyn Model>, RunError> {
        match id {
            SCRIPTED => Ok(Box::new(Scripted::of_run(&script(test), run))),
            LEXICAL => Ok(Box::new(Lexical)),
            _ => {
                let (provider, model) = self.providers.of(suite, id)?;
                Ok(Box::new(provider.model(model, seed_of(&test.name, u64::from(run)))))
            }
        }
    }
}

fn script(test: &AgentTest) -> Vec<Vec<ScriptedTurn>> {
    test.script
        .iter()
        .map(|run| {
            run.iter()
                .map(|turn| ScriptedTurn {
                    say: turn.say.clone(),
                    calls: turn
                        .calls
                        .iter()
                        .map(|call| ScriptedCall {
                            tool: call.tool.clone(),
                            args: call.args.clone(),
                            caller: call.caller.clone(),
                        })
                        .collect(),
                    usage: turn.usage.map(|usage| mcptest_agent::Usage {
                        input: usage.input,
                        output: usage.output,
                        ..mcptest_agent::Usage::default()
                    }),
                })
                .collect()
        })
        .collect()
}
