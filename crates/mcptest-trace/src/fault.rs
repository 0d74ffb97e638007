//! Injected faults: a tool that does not answer, without a server that really hangs.
//!
//! A suite declares faults and a test injects them by name:
//!
//! ```yaml
//! faults:
//!   - name: hung-search
//!     target: { tool: search }      # a tool, a server, or both
//!     kind: hang                    # hang | wedged | slow (+ delay_ms) | recover_after (+ failures)
//! agents:
//!   - name: routes around a dead search
//!     inject: [hung-search]
//!     recovery: { max_detection_ms: 3000 }
//! ```
//!
//! Before it dispatches a call, the executor asks the run's [`FaultState`]. A fault is
//! synthesized immediately and in virtual time: no clock runs, nothing sleeps, and the same calls
//! always meet the same faults.
//!
//! | kind | effect on the agent |
//! |---|---|
//! | `hang`, `wedged` | every matching call times out; the two names only distinguish a stalled network from a deadlocked backend |
//! | `slow` | the call is answered after `delay_ms` of virtual time, or times out if that is longer than the detection budget |
//! | `recover_after` | the first `failures` matching calls of the run time out, then the tool is healthy |
//!
//! A target without a tool means every tool of the server; one without a server, that tool on any
//! server. Where several injected faults match a call, the first that applies is the one that
//! happens, in the order of `inject:`.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::matcher::Problem;

/// An entry of a suite's `faults:` as written.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WrittenFault {
    /// The name for `inject:` and in reports.
    #[schemars(length(min = 1))]
    pub name: String,
    /// The calls that it applies to.
    pub target: FaultTarget,
    /// The effect on them.
    pub kind: WrittenKind,
    /// For `slow`: the delay of the answer, in milliseconds.
    #[serde(default)]
    pub delay_ms: Option<u64>,
    /// For `recover_after`: the number of calls that fail before the tool is healthy.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub failures: Option<u64>,
}

/// The calls that a fault applies to: those of a tool, of a server, or of one tool on one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultTarget {
    /// The tool's name. Without it, every tool of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub tool: Option<String>,
    /// The server's name. Without it, any server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub server: Option<String>,
}

/// The kinds of faults by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WrittenKind {
    /// The call never comes back.
    Hang,
    /// As `hang`, for a backend that is deadlocked.
    Wedged,
    /// The call is answered late.
    Slow,
    /// The first calls never come back, later ones do.
    RecoverAfter,
}

impl WrittenKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Hang => "hang",
            Self::Wedged => "wedged",
            Self::Slow => "slow",
            Self::RecoverAfter => "recover_after",
        }
    }
}

/// A fault that can be injected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its name.
    pub name: String,
    /// The calls that it applies to.
    pub target: FaultTarget,
    /// The effect on them.
    pub kind: FaultKind,
}

/// The effect of a fault on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// It never comes back.
    Hang,
    /// It never comes back.
    Wedged,
    /// It comes back late.
    Slow {
        /// The delay, in milliseconds.
        delay_ms: u64,
    },
    /// The first matching calls of a run never come back.
    RecoverAfter {
        /// The number of calls that fail.
        failures: u64,
    },
}

impl WrittenFault {
    /// Compiles the fault. Pointers of problems start at the entry.
    ///
    /// # Errors
    /// Every key that its kind needs and lacks, or does not take.
    pub fn compile(&self) -> Result<Fault, Vec<Problem>> {
        let mut problems = Vec::new();
        if self.target.tool.is_none() && self.target.server.is_none() {
            problems.push(
                Problem::new("/target", "a fault needs a target")
                    .help("name a `tool:`, a `server:`, or both"),
            );
        }
        let takes = match self.kind {
            WrittenKind::Hang | WrittenKind::Wedged => None,
            WrittenKind::Slow => Some("delay_ms"),
            WrittenKind::RecoverAfter => Some("failures"),
        };
        for (key, value) in [("delay_ms", self.delay_ms), ("failures", self.failures)] {
            let kind = self.kind.as_str();
            if takes == Some(key) && value.is_none() {
                problems.push(Problem::new("", format!("kind `{kind}` needs `{key}`")));
            }
            if takes != Some(key) && value.is_some() {
                problems.push(Problem::new(
                    format!("/{key}"),
                    format!("kind `{kind}` does not take `{key}`"),
                ));
            }
        }
        if takes == Some("failures") && self.failures == Some(0) {
            problems.push(Problem::new(
                "/failures",
                "with 0 failures the fault never happens",
            ));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Fault {
            name: self.name.clone(),
            target: self.target.clone(),
            kind: match self.kind {
                WrittenKind::Hang => FaultKind::Hang,
                WrittenKind::Wedged => FaultKind::Wedged,
                WrittenKind::Slow => FaultKind::Slow {
                    delay_ms: self.delay_ms.unwrap_or(0),
                },
                WrittenKind::RecoverAfter => FaultKind::RecoverAfter {
                    failures: self.failures.unwrap_or(0),
                },
            },
        })
    }
}

impl FaultTarget {
    /// Returns true if the fault applies to this call.
    #[must_use]
    pub fn matches(&self, server: &str, tool: &str) -> bool {
        self.tool.as_deref().is_none_or(|wanted| wanted == tool)
            && self.server.as_deref().is_none_or(|wanted| wanted == server)
    }
}

/// The action of the executor instead of an ordinary dispatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AppliedFault {
    /// Does not dispatch: the call timed out.
    Timeout {
        /// The fault's name.
        fault: String,
    },
    /// Dispatches; the answer counts as this late.
    Late {
        /// The fault's name.
        fault: String,
        /// Milliseconds of virtual time.
        delay_ms: u64,
    },
}

impl AppliedFault {
    /// The other keys of the recorded result. A timeout also has `is_error: true`.
    #[must_use]
    pub fn marks(&self) -> Map<String, Value> {
        match self {
            Self::Timeout { fault } => Map::from_iter([
                ("error_kind".to_owned(), "timeout".into()),
                ("fault".to_owned(), fault.as_str().into()),
            ]),
            Self::Late { fault, delay_ms } => Map::from_iter([
                ("fault".to_owned(), fault.as_str().into()),
                ("delay_ms".to_owned(), (*delay_ms).into()),
            ]),
        }
    }
}

/// The text that the model reads instead of a result that never came. It does not have the fault's
/// name, which would give the test away.
#[must_use]
pub fn timeout_text(tool: &str, budget_ms: Option<u64>) -> String {
    match budget_ms {
        Some(budget) => format!("Timeout: `{tool}` did not answer within {budget} ms."),
        None => format!("Timeout: `{tool}` did not answer."),
    }
}

/// The injected faults of one run, and how often each has applied.
///
/// ```
/// use mcptest_trace::fault::{Fault, FaultKind, FaultState, FaultTarget, AppliedFault};
///
/// let target = FaultTarget { tool: Some("search".into()), server: None };
/// let faults = [Fault { name: "flaky".into(), target, kind: FaultKind::RecoverAfter { failures: 1 } }];
/// let mut run = FaultState::new(faults.as_slice(), Some(3000));
/// assert_eq!(run.apply("web", "fetch"), None);
/// assert_eq!(run.apply("web", "search"), Some(AppliedFault::Timeout { fault: "flaky".into() }));
/// assert_eq!(run.apply("web", "search"), None);
/// ```
#[derive(Debug, Clone)]
pub struct FaultState<'a> {
    faults: Cow<'a, [Fault]>,
    /// The number of calls that each applied to.
    applied: Vec<u64>,
    budget_ms: Option<u64>,
}

impl<'a> FaultState<'a> {
    /// The start of a run. The budget is the test's `recovery.max_detection_ms`; without one, a
    /// slow call is late but never times out.
    #[must_use]
    pub fn new(faults: impl Into<Cow<'a, [Fault]>>, max_detection_ms: Option<u64>) -> Self {
        let faults = faults.into();
        Self {
            applied: vec![0; faults.len()],
            faults,
            budget_ms: max_detection_ms,
        }
    }

    /// The fault that applies to the next call; `None` if there is none.
    pub fn apply(&mut self, server: &str, tool: &str) -> Option<AppliedFault> {
        for (fault, applied) in self.faults.iter().zip(&mut self.applied) {
            if !fault.target.matches(server, tool) {
                continue;
            }
            let name = || fault.name.clone();
            let effect = match fault.kind {
                FaultKind::Hang | FaultKind::Wedged => AppliedFault::Timeout { fault: name() },
                FaultKind::RecoverAfter { failures } if *applied < failures => {
                    AppliedFault::Timeout { fault: name() }
                }
                FaultKind::RecoverAfter { .. } => continue,
                FaultKind::Slow { delay_ms }
                    if self.budget_ms.is_some_and(|budget| delay_ms > budget) =>
                {
                    AppliedFault::Timeout { fault: name() }
                }
                FaultKind::Slow { delay_ms } => AppliedFault::Late {
                    fault: name(),
                    delay_ms,
                },
            };
            *applied += 1;
            return Some(effect);
        }
        None
    }

    /// Names of the faults that no call has met, in the order in which they were injected.
    #[must_use]
    pub fn never_fired(&self) -> Vec<&str> {
        self.faults
            .iter()
            .zip(&self.applied)
            .filter(|(_, applied)| **applied == 0)
            .map(|(fault, _)| fault.name.as_str())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn target(tool: Option<&str>, server: Option<&str>) -> FaultTarget {
        FaultTarget {
            tool: tool.map(Into::into),
            server: server.map(Into::into),
        }
    }

    fn fault(name: &str, target: FaultTarget, kind: FaultKind) -> Fault {
        Fault {
            name: name.into(),
            target,
            kind,
        }
    }

    fn timeout(name: &str) -> Option<AppliedFault> {
        Some(AppliedFault::Timeout { fault: name.into() })
    }

    fn written(value: Value) -> WrittenFault {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_target_means_a_tool_a_server_or_both() {
        assert!(target(Some("search"), None).matches("any", "search"));
        assert!(!target(Some("search"), None).matches("any", "fetch"));
        assert!(target(None, Some("web")).matches("web", "anything"));
        assert!(!target(None, Some("web")).matches("files", "anything"));
        assert!(target(Some("search"), Some("web")).matches("web", "search"));
        assert!(!target(Some("search"), Some("web")).matches("files", "search"));
    }

    #[test]
    fn hang_and_wedged_apply_every_time() {
        for kind in [FaultKind::Hang, FaultKind::Wedged] {
            let faults = [fault("f", target(Some("search"), None), kind)];
            let mut run = FaultState::new(faults.as_slice(), Some(3000));
            for _ in 0..5 {
                assert_eq!(run.apply("s", "search"), timeout("f"));
                assert_eq!(run.apply("s", "fetch"), None);
            }
        }
    }

    #[test]
    fn slow_is_late_up_to_the_budget_and_a_timeout_beyond() {
        let apply = |delay_ms, budget| {
            let faults = [fault(
                "f",
                target(None, Some("s")),
                FaultKind::Slow { delay_ms },
            )];
            FaultState::new(faults.as_slice(), budget).apply("s", "t")
        };
        let late = |delay_ms| {
            Some(AppliedFault::Late {
                fault: "f".into(),
                delay_ms,
            })
        };
        assert_eq!(apply(3000, Some(3000)), late(3000));
        assert_eq!(apply(3001, Some(3000)), timeout("f"));
        assert_eq!(apply(0, Some(0)), late(0));
        assert_eq!(apply(u64::MAX, None), late(u64::MAX));
    }

    #[test]
    fn recover_after_counts_matching_calls_of_one_run() {
        let faults = [fault(
            "f",
            target(Some("search"), None),
            FaultKind::RecoverAfter { failures: 2 },
        )];
        let mut run = FaultState::new(faults.as_slice(), Some(3000));
        let met: Vec<bool> = ["search", "fetch", "search", "search", "search"]
            .iter()
            .map(|tool| run.apply("s", tool).is_some())
            .collect();
        assert_eq!(met, [true, false, true, false, false]);
        // The next run starts again.
        assert!(
            FaultState::new(faults.as_slice(), Some(3000))
                .apply("s", "search")
                .is_some()
        );
    }

    #[test]
    fn the_first_fault_that_applies_wins() {
        let faults = [
            fault(
                "first",
                target(Some("search"), None),
                FaultKind::RecoverAfter { failures: 1 },
            ),
            fault("second", target(None, Some("s")), FaultKind::Hang),
            fault("third", target(None, Some("other")), FaultKind::Hang),
        ];
        let mut run = FaultState::new(faults.as_slice(), None);
        assert_eq!(run.never_fired(), ["first", "second", "third"]);
        assert_eq!(run.apply("s", "search"), timeout("first"));
        assert_eq!(run.apply("s", "search"), timeout("second"));
        assert_eq!(run.never_fired(), ["third"]);
    }

    #[test]
    fn marks_are_those_of_the_trace_format() {
        assert_eq!(
            Value::Object(timeout("f").unwrap().marks()),
            json!({"error_kind": "timeout", "fault": "f"})
        );
        let late = AppliedFault::Late {
            fault: "f".into(),
            delay_ms: 7,
        };
        assert_eq!(
            Value::Object(late.marks()),
            json!({"fault": "f", "delay_ms": 7})
        );
        assert_eq!(
            timeout_text("search", Some(3000)),
            "Timeout: `search` did not answer within 3000 ms."
        );
        assert_eq!(
            timeout_text("search", None),
            "Timeout: `search` did not answer."
        );
    }

    #[test]
    fn the_documents_fault_compiles() {
        let hung =
            written(json!({"name": "hung-search", "target": {"tool": "search"}, "kind": "hang"}));
        assert_eq!(
            hung.compile().unwrap(),
            fault("hung-search", target(Some("search"), None), FaultKind::Hang)
        );
        let slow = written(
            json!({"name": "s", "target": {"server": "x"}, "kind": "slow", "delay_ms": 10}),
        );
        assert_eq!(
            slow.compile().unwrap().kind,
            FaultKind::Slow { delay_ms: 10 }
        );
        let back = written(
            json!({"name": "s", "target": {"server": "x"}, "kind": "recover_after", "failures": 2}),
        );
        assert_eq!(
            back.compile().unwrap().kind,
            FaultKind::RecoverAfter { failures: 2 }
        );
        let wedged = written(json!({"name": "s", "target": {"server": "x"}, "kind": "wedged"}));
        assert_eq!(wedged.compile().unwrap().kind, FaultKind::Wedged);
    }

    #[test]
    fn each_kind_takes_its_own_figure_and_no_other() {
        let problems = |value| {
            let found = written(value).compile().unwrap_err();
            found
                .into_iter()
                .map(|problem| problem.message)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            problems(json!({"name": "f", "target": {}, "kind": "slow", "failures": 1})),
            [
                "a fault needs a target",
                "kind `slow` needs `delay_ms`",
                "kind `slow` does not take `failures`"
            ]
        );
        assert_eq!(
            problems(json!({"name": "f", "target": {"tool": "t"}, "kind": "hang", "delay_ms": 1})),
            ["kind `hang` does not take `delay_ms`"]
        );
        assert_eq!(
            problems(json!({"name": "f", "target": {"tool": "t"}, "kind": "recover_after"})),
            ["kind `recover_after` needs `failures`"]
        );
        assert_eq!(
            problems(
                json!({"name": "f", "target": {"tool": "t"}, "kind": "recover_after", "failures": 0})
            ),
            ["with 0 failures the fault never happens"]
        );
        for broken in [
            json!({"name": "f", "target": {"tool": "t"}, "kind": "explode"}),
            json!({"name": "f", "target": {"tol": "t"}, "kind": "hang"}),
            json!({"name": "f", "target": {"tool": "t"}, "kind": "hang", "x": 1}),
        ] {
            assert!(serde_json::from_value::<WrittenFault>(broken).is_err());
        }
    }

    proptest! {
        #[test]
        fn recover_after_fails_exactly_so_often(failures in 1_u64..20, calls in 0_u64..40) {
            let faults = [fault("f", target(Some("t"), None), FaultKind::RecoverAfter { failures })];
            let mut run = FaultState::new(faults.as_slice(), Some(1));
            let met = (0..calls).filter(|_| run.apply("s", "t").is_some()).count() as u64;
            prop_assert_eq!(met, failures.min(calls));
        }
    }
}
