//! `setup:`, `after:` and `teardown:` of agent tests.

use mcptest_trace::expect::Expectation;
use mcptest_trace::matcher::Matcher;
use serde_json::Value;

use super::diagnostics::{key_error, place, unknown_name};
use super::{Checker, TOOL_ROOTS};
use crate::file::AgentFields;
use crate::import::Part;
use crate::options::Purpose;
use crate::state::{StateAction, StateCall, StateCalls};
use crate::state_file::StateCallFile;

/// The root of the answer to a query.
const QUERY_ROOTS: [&str; 1] = ["rows"];

impl Checker<'_> {
    /// The calls around the runs of a test. `setup` and `teardown` may be those of its agent;
    /// `after` is its own, like `expect`.
    pub(super) fn state(
        &mut self,
        part: &Part,
        at: &str,
        own: &AgentFields,
        servers: &[String],
    ) -> StateCalls {
        let mut saved = Vec::new();
        let setup = self.inherited_state(part, at, own, servers, "setup", &mut saved);
        let after = self.state_list(
            part,
            &format!("{at}/after"),
            own.after.as_deref(),
            servers,
            &mut saved,
        );
        let teardown = self.inherited_state(part, at, own, servers, "teardown", &mut saved);
        StateCalls {
            setup,
            after,
            teardown,
        }
    }

    /// A list of the test itself, else of its agent, whose problems are reported once.
    fn inherited_state(
        &mut self,
        part: &Part,
        at: &str,
        own: &AgentFields,
        servers: &[String],
        key: &str,
        saved: &mut Vec<String>,
    ) -> Vec<StateCall> {
        let list = |fields: &AgentFields| match key {
            "setup" => fields.setup.clone(),
            _ => fields.teardown.clone(),
        };
        if let Some(own) = list(own) {
            return self.state_list(part, &format!("{at}/{key}"), Some(&own), servers, saved);
        }
        let Some((part, at, agent)) = self.agent_of(own) else {
            return Vec::new();
        };
        let list = list(agent);
        let at = format!("{at}/{key}");
        self.once(|checker| checker.state_list(part, &at, list.as_deref(), servers, saved))
    }

    fn state_list(
        &mut self,
        part: &Part,
        at: &str,
        calls: Option<&[StateCallFile]>,
        servers: &[String],
        saved: &mut Vec<String>,
    ) -> Vec<StateCall> {
        let mut checked = Vec::new();
        for (index, call) in calls.into_iter().flatten().enumerate() {
            checked.extend(self.state_call(part, &format!("{at}/{index}"), call, servers, saved));
        }
        checked
    }

    fn state_call(
        &mut self,
        part: &Part,
        at: &str,
        call: &StateCallFile,
        servers: &[String],
        saved: &mut Vec<String>,
    ) -> Option<StateCall> {
        let action = match (&call.tool, &call.sql) {
            (Some(tool), None) => StateAction::Tool(tool.clone()),
            (None, Some(sql)) => StateAction::Query(sql.clone()),
            _ => {
                let message = "a call needs either `tool` or `sql`".to_owned();
                self.problems.push(part.document.diagnostic_at(at, message));
                return None;
            }
        };
        let server = self.state_server(part, at, call, servers)?;
        if let StateAction::Query(_) = &action {
            self.queried_server(part, at, &server);
        }
        let roots: &[&str] = match action {
            StateAction::Tool(_) => &TOOL_ROOTS,
            StateAction::Query(_) => &QUERY_ROOTS,
        };
        let mut expect = self.expectations(part, &format!("{at}/expect"), &call.expect, roots);
        for (index, (one, written)) in expect.iter().zip(&call.expect).enumerate() {
            let owner = "the state after a run";
            let problem = one.refuse_judge(written, &format!("{at}/expect/{index}"), owner);
            let problem = problem.map(|problem| place(&part.document, "", &problem));
            self.problems.extend(problem);
        }
        if call.expect.is_empty() {
            match &action {
                StateAction::Tool(_) => expect = no_error(),
                StateAction::Query(_) if call.save.is_empty() => {
                    let message = "a query needs `expect` or `save`".to_owned();
                    let help = "for example `expect: [{ rows[0].status: open }]`";
                    self.problems
                        .push(key_error(part, &format!("{at}/sql"), message).help(help));
                }
                StateAction::Query(_) => {}
            }
        }
        let args = self.args(part, &|| format!("{at}/args"), call.args.clone(), saved);
        let place = || format!("{at}/save");
        let save = self.save(part, &place, &call.save, saved, roots);
        Some(StateCall {
            server,
            action,
            args,
            expect,
            save,
            timeout: self.duration(part, &format!("{at}/timeout"), call.timeout.as_ref()),
        })
    }

    /// The server of a call: a declared one, or the only one of the test.
    fn state_server(
        &mut self,
        part: &Part,
        at: &str,
        call: &StateCallFile,
        servers: &[String],
    ) -> Option<String> {
        match (&call.server, servers) {
            (Some(server), _) => {
                if self.options.purpose == Purpose::Run && !self.is_declared(server) {
                    let known = self.declared();
                    let place = format!("{at}/server");
                    self.problems.push(unknown_name(
                        part, &place, "server", server, &known, "servers",
                    ));
                }
                Some(server.clone())
            }
            (None, [only]) => Some(only.clone()),
            (None, _) if self.options.purpose == Purpose::Score => Some(String::new()),
            (None, _) => {
                let message = "this call needs `server`".to_owned();
                let help = format!("the test has {} servers", servers.len());
                self.problems
                    .push(part.document.diagnostic_at(at, message).help(help));
                None
            }
        }
    }

    /// Checks that queries go to a server that this program starts: only such a mock answers them.
    fn queried_server(&mut self, part: &Part, at: &str, server: &str) {
        let has_url = |part: &Part| {
            let server = part.file.servers.get(server);
            server.is_some_and(|server| server.url.is_some())
        };
        if self.parts.iter().any(has_url) {
            let message =
                format!("`sql` needs a mock that the suite starts; `{server}` has a `url`");
            self.problems
                .push(key_error(part, &format!("{at}/sql"), message));
        }
    }
}

/// The default assertions on the answer of a tool.
fn no_error() -> Vec<Expectation> {
    vec![
        Expectation::default_of("error", Matcher::exact(Value::Null)),
        Expectation::default_of("result.is_error", Matcher::exact(Value::Bool(false))),
    ]
}
