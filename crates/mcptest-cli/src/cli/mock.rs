//! The command line of `mock`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::AttackArgs;

#[derive(Debug, Args)]
#[command(after_help = "\
Faults: `none`, `hang`, `wedged`, `slow:<ms>`, `recover-after:<n>`, `reply-after-cancel:<ms>`. The flag
overrides the manifest. The address of --http is printed on standard error; its path is /mcp.

Presets: `tidy`, a help desk with clear and strict tools; `smelly`, the same with vague descriptions
and loose schemas; `overloaded`, several hundred tools; `hostile`, terminal escapes, markup and
instructions in all strings.

Examples:
  mcptest mock --tools-from servers/weather.yml     a manifest with responses
  mcptest mock --tools-from captured-tools.json     a captured tools/list response; calls are echoed
  mcptest mock --preset tidy --fault recover-after:2
  mcptest mock --preset hostile --record sent.jsonl
  mcptest mock --tools-from servers/weather.yml --http 0")]
pub struct MockArgs {
    /// A manifest (`mock_server:`), or a captured `tools/list` response as JSON.
    #[arg(long, value_name = "FILE")]
    pub tools_from: Option<PathBuf>,
    /// A bundled catalog instead of a file: `tidy`, `smelly`, …; see below.
    #[arg(
        long,
        value_name = "NAME",
        hide_possible_values = true,
        conflicts_with = "tools_from"
    )]
    pub preset: Option<MockPreset>,
    /// Fault of every call: `none`, `hang`, `slow:<ms>`, …; see below.
    #[arg(long, value_name = "KIND")]
    pub fault: Option<mcptest_mock::MockFault>,
    #[command(flatten)]
    pub attacks: AttackArgs,
    /// The test that the canaries of attacks belong to.
    #[arg(long, value_name = "NAME")]
    pub test: Option<String>,
    /// The number of the run for canaries and wordings, from 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub run: Option<u32>,
    /// Serve streamable HTTP on this port of 127.0.0.1; 0 chooses a free one.
    #[arg(long, value_name = "PORT", value_parser = super::port)]
    pub http: Option<u16>,
    /// Write every message of clients to this file, as JSON Lines.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

/// The bundled catalogs of `mock`.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum MockPreset {
    /// A help desk with clear, strict, well documented tools.
    Tidy,
    /// The same with vague descriptions, similar names and schemas that allow anything.
    Smelly,
    /// Several hundred tools.
    Overloaded,
    /// Terminal escapes, markup and instructions in all strings.
    Hostile,
}

impl From<MockPreset> for mcptest_mock::Preset {
    fn from(preset: MockPreset) -> Self {
        match preset {
            MockPreset::Tidy => Self::Tidy,
            MockPreset::Smelly => Self::Smelly,
            MockPreset::Overloaded => Self::Overloaded,
            MockPreset::Hostile => Self::Hostile,
        }
    }
}
