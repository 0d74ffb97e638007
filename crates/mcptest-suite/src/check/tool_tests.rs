//! `tools:` and `tool_quality:`: tests without an agent.

use std::time::Duration;

use mcptest_core::expect::Expectation;
use mcptest_core::matcher::Matcher;
use mcptest_core::quality;
use serde_json::Value;

use super::words::unknown_name;
use super::{Checker, TOOL_ROOTS};
use crate::file::{ToolQualityFile, ToolTestFile};
use crate::import::Part;
use crate::load::Purpose;
use crate::suite::{Test, ToolQualityTest, ToolTest};

impl Checker<'_> {
    pub(super) fn quality_test(&mut self, part: &Part, at: &str, file: &ToolQualityFile) {
        self.name(part, at, &file.name);
        self.named_server(part, at, &file.server);
        match quality::expectations(&file.expect, &format!("{at}/expect")) {
            Ok(expect) => self.suite.tests.push(Test::ToolQuality(ToolQualityTest {
                name: file.name.clone(),
                server: file.server.clone(),
                expect,
                tags: file.tags.clone(),
            })),
            Err(found) => self.add(part, "", &found),
        }
    }

    /// A test that is not an agent's names one server.
    fn named_server(&mut self, part: &Part, at: &str, server: &str) {
        if self.options.purpose == Purpose::Run && !self.is_declared(server) {
            let known = self.declared();
            let place = format!("{at}/server");
            self.problems
                .push(unknown_name(part, &place, "server", server, &known, "servers"));
        }
    }

    pub(super) fn tool_test(&mut self, part: &Part, at: &str, file: &ToolTestFile) {
        self.name(part, at, &file.name);
        self.named_server(part, at, &file.server);
        let place = format!("{at}/expect{}", file.expect.assertions_at);
        let mut expect = self.expectations(part, &place, &file.expect.assertions, &TOOL_ROOTS);
        self.refuse_judges(part, &place, &file.expect.assertions);
        if file.expect.assertions.is_empty() {
            expect = vec![
                Expectation::default_of("error", Matcher::exact(Value::Null)),
                Expectation::default_of("result.is_error", Matcher::exact(Value::Bool(false))),
            ];
        }
        let timeout = self.duration(part, &format!("{at}/timeout"), file.timeout.as_ref());
        self.suite.tests.push(Test::Tool(ToolTest {
            name: file.name.clone(),
            server: file.server.clone(),
            tool: file.tool.clone(),
            args: file.args.clone().unwrap_or_default(),
            expect,
            max_duration: file.expect.max_duration_ms.map(Duration::from_millis),
            timeout,
            tags: file.tags.clone(),
        }));
    }
}
