//! The settings of the runner for cassettes, from the flags.

use std::path::Path;
use std::sync::Arc;

use mcptest_report::Redactor;
use mcptest_runner::{CassetteMode, CassetteSettings};
use mcptest_suite::suite::Replay;

use crate::catalogs::manifest;
use crate::cli::{RecordingArgs, ReplayedPart};

impl RecordingArgs {
    /// The settings of the runner.
    pub fn settings(&self, redactor: &Redactor) -> CassetteSettings {
        let mode = if self.record {
            CassetteMode::Record
        } else if self.live {
            CassetteMode::Live
        } else if self.replay_only {
            CassetteMode::ReplayOnly
        } else {
            CassetteMode::Auto
        };
        CassetteSettings {
            mode,
            folder: self.cassettes.clone(),
            replay: self.replay.map(|what| match what {
                ReplayedPart::Model => Replay::Model,
                ReplayedPart::Tools => Replay::Tools,
                ReplayedPart::Both => Replay::Both,
            }),
            ..settings(self.cassettes.as_deref(), redactor)
        }
    }
}

/// Settings without recording.
pub fn settings(folder: Option<&Path>, redactor: &Redactor) -> CassetteSettings {
    CassetteSettings {
        mode: CassetteMode::Auto,
        folder: folder.map(Path::to_owned),
        replay: None,
        redactor: Arc::new(redactor.clone()),
        listing: Arc::new(manifest::listing),
        names: Arc::new(manifest::names),
        entries: Arc::new(manifest::entries),
    }
}
