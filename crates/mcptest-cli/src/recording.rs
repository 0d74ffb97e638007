//! The settings of the runner for cassettes, from the flags.

use std::path::Path;
use std::sync::Arc;

use mcptest_report::Redactor;
use mcptest_runner::{CassetteMode, CassetteSettings};
use mcptest_suite::suite::{Replay, Server};
use serde_json::Value;
use tracing::subscriber::{NoSubscriber, with_default};

use crate::catalogs;
use crate::cli::{RecordingArgs, WhatToReplay};

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
                WhatToReplay::Model => Replay::Model,
                WhatToReplay::Tools => Replay::Tools,
                WhatToReplay::Both => Replay::Both,
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
        listing: Arc::new(listing),
    }
}

/// The tools of our own mock server are in its manifest: it need not be started to know them.
fn listing(server: &Server) -> Option<Vec<Value>> {
    let [program, command, flags @ ..] = server.argv.as_slice() else {
        return None;
    };
    if program != "mcptest" || command != "mock" {
        return None;
    }
    let file = flags.iter().enumerate().find_map(|(index, flag)| {
        let file = flag.strip_prefix("--tools-from=");
        file.or_else(|| {
            (flag == "--tools-from")
                .then(|| flags.get(index + 1))?
                .map(String::as_str)
        })
    })?;
    let file = server.cwd.join(file);
    // The log shows the messages of servers, and none is started here.
    let catalog = with_default(NoSubscriber::default(), || catalogs::of_file(&file)).ok()?;
    let tools = catalog.tools.iter();
    Some(
        tools
            .map(|tool| Value::Object(tool.raw().clone()))
            .collect(),
    )
}
