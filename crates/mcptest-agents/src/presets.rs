//! The presets: agents as data files, embedded in the program.

use mcptest_yaml::Diagnostics;

use crate::file::AgentFile;

/// A preset.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Preset {
    /// The name in `preset:`.
    pub name: &'static str,
    /// Its file, which a user can copy into a suite.
    pub source: &'static str,
}

macro_rules! presets {
    ($($name:literal),* $(,)?) => {
        &[$(Preset {
            name: $name,
            source: include_str!(concat!("../presets/", $name, ".yml")),
        }),*]
    };
}

static PRESETS: &[Preset] = presets![
    "claude-code",
    "codex",
    "copilot",
    "gemini-cli",
    "opencode",
    "claude-code-acp",
    "codex-acp",
    "copilot-acp",
    "gemini-acp",
    "opencode-acp",
];

/// All presets: the command-line agents, then the ACP agents, by name.
#[must_use]
pub fn presets() -> &'static [Preset] {
    PRESETS
}

/// Finds a preset.
#[must_use]
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

impl Preset {
    /// The description for readers.
    #[must_use]
    pub fn about(&self) -> String {
        self.file()
            .ok()
            .and_then(|file| file.about)
            .unwrap_or_default()
    }

    /// The preset as written.
    ///
    /// # Errors
    /// Never: a test reads all presets.
    pub fn file(&self) -> Result<AgentFile, Diagnostics> {
        let name = format!("{}.yml", self.name);
        mcptest_yaml::from_bytes(&name, self.source.as_bytes()).map(|(file, _)| file)
    }
}
