//! Opening models by their ids.

use mcptest_agent::Model;
use mcptest_agent::builtin::{LEXICAL, Lexical, SCRIPTED, Scripted, ScriptedCall, ScriptedTurn};
use mcptest_suite::Suite;
use mcptest_suite::suite::ScriptTurn;
use mcptest_trace::verdict::RunError;

use crate::providers::{Note, Providers};

/// The models of a suite, with the connections and limits of their providers.
pub(crate) struct Models {
    providers: Providers,
}

impl Models {
    /// Opens none yet. `note` receives messages of providers.
    pub fn new(note: Note) -> Self {
        Self {
            providers: Providers::new(note),
        }
    }

    /// Opens a model. `script` is for `builtin/scripted`, and `seed` spreads retries. An unknown id
    /// is an error; no other model is used instead.
    pub fn open(
        &self,
        suite: &Suite,
        id: &str,
        script: &[Vec<ScriptTurn>],
        run: u32,
        seed: u64,
    ) -> Result<Box<dyn Model>, RunError> {
        match id {
            SCRIPTED => Ok(Box::new(Scripted::for_run(&played(script), run))),
            LEXICAL => Ok(Box::new(Lexical)),
            _ => {
                let (provider, model) = self.providers.of(suite, id)?;
                Ok(Box::new(provider.model(model, seed)))
            }
        }
    }
}

fn played(script: &[Vec<ScriptTurn>]) -> Vec<Vec<ScriptedTurn>> {
    script
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
