//! The reader of agents' output without a process, for the fuzz targets.

use crate::presets::Preset;
use crate::reader::Reader;
use crate::{Agent, AgentTokens};

/// Reads the output of agents of one preset.
#[derive(Debug)]
pub struct OutputReader(Agent);

/// The facts in an output.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputFacts {
    /// The final answer.
    pub final_response: Option<String>,
    /// The tokens.
    pub tokens: Option<AgentTokens>,
    /// The cost.
    pub cost_usd: Option<f64>,
    /// The reason of the end.
    pub stop: Option<String>,
    /// The session, to continue it.
    pub session: Option<String>,
    /// The error, with its HTTP status.
    pub error: Option<(String, Option<u16>)>,
    /// True if the agent reported its end.
    pub ended: bool,
    /// The names of the built-in tools that were called.
    pub calls: Vec<String>,
    /// Servers that the agent could not use.
    pub failed_servers: Vec<(String, String)>,
    /// The messages.
    pub texts: Vec<String>,
}

impl OutputReader {
    /// A reader for a preset; `None` if it is not valid.
    #[must_use]
    pub fn new(preset: &Preset) -> Option<Self> {
        let file = preset.file().ok()?;
        Agent::resolve(&file).ok().map(Self)
    }

    /// Reads an output that arrives in these chunks.
    #[must_use]
    pub fn read<'c>(&self, chunks: impl IntoIterator<Item = &'c [u8]>) -> OutputFacts {
        let mut reader = Reader::new(&self.0.output, vec!["mcp__".to_owned()]);
        for chunk in chunks {
            reader.push(chunk);
        }
        reader.finish();
        let facts = OutputFacts {
            final_response: reader.final_response(),
            tokens: reader.tokens(),
            cost_usd: reader.cost(),
            stop: reader.stop(),
            session: reader.session(),
            error: reader.error(),
            ended: reader.has_ended(),
            calls: reader
                .found
                .calls
                .iter()
                .map(|it| it.name.clone())
                .collect(),
            failed_servers: reader.found.failed_servers.clone(),
            texts: reader.found.texts.clone(),
        };
        reader.next_turn();
        facts
    }
}
