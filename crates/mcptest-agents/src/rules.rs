//! Rules over the events of an agent's output, checked: conditions and paths.

use mcptest_trace::matcher::Problem;
use mcptest_trace::target::Target;
use serde_json::{Map, Value};

use crate::file::{
    CallFile, CallResultFile, CallsFile, PathOrRuleFile, RuleFile, ServerStatesFile, TokensFile,
};
use crate::template::Template;

/// Paths and the values that they may have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Condition(Vec<(Target, Vec<Value>)>);

impl Condition {
    /// Returns true if every path has one of its values.
    pub(crate) fn holds(&self, event: &Value) -> bool {
        self.0.iter().all(|(path, values)| {
            path.select(event)
                .is_some_and(|found| values.contains(&found))
        })
    }

    /// Returns true if there is nothing to check.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A rule for one value.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rule {
    pub(crate) condition: Condition,
    pub(crate) unless: Condition,
    pub(crate) after: Condition,
    pub(crate) take: Option<Target>,
    pub(crate) status: Option<Target>,
    pub(crate) sum: bool,
    pub(crate) join: bool,
    pub(crate) cumulative: bool,
}

/// The rule for tokens.
#[derive(Debug, Clone, Default)]
pub(crate) struct TokenRule {
    pub(crate) condition: Condition,
    pub(crate) input: Option<Target>,
    pub(crate) output: Option<Target>,
    pub(crate) cached: Option<Target>,
    pub(crate) cache_write: Option<Target>,
    pub(crate) total: Option<Target>,
    pub(crate) sum: bool,
    pub(crate) input_includes_cached: bool,
    pub(crate) cumulative: bool,
}

/// The rule for the states of servers.
#[derive(Debug, Clone)]
pub(crate) struct ServerStateRule {
    pub(crate) condition: Condition,
    pub(crate) take: Target,
    pub(crate) name: Target,
    pub(crate) status: Target,
    pub(crate) ok: Vec<String>,
}

/// The rules for calls of an agent's own tools.
#[derive(Debug, Clone)]
pub(crate) struct CallRules {
    pub(crate) call: Option<CallRule>,
    pub(crate) result: Option<ResultRule>,
    pub(crate) mcp_prefix: Option<Template>,
}

/// The items of an event that a rule applies to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Items {
    pub(crate) condition: Condition,
    pub(crate) each: Option<Target>,
    pub(crate) item: Condition,
}

impl Items {
    /// The items of an event that match.
    pub(crate) fn of(&self, event: &Value) -> Vec<Value> {
        if !self.condition.holds(event) {
            return Vec::new();
        }
        let items = match &self.each {
            None => vec![event.clone()],
            Some(each) => match each.select(event) {
                Some(Value::Array(items)) => items,
                _ => Vec::new(),
            },
        };
        items
            .into_iter()
            .filter(|item| self.item.holds(item))
            .collect()
    }
}

/// The rule for a call.
#[derive(Debug, Clone)]
pub(crate) struct CallRule {
    pub(crate) items: Items,
    pub(crate) id: Option<Target>,
    pub(crate) name: Target,
    pub(crate) args: Option<Target>,
    pub(crate) server: Option<Target>,
    pub(crate) result: Option<Target>,
    pub(crate) failed: Condition,
}

/// The rule for a call's result.
#[derive(Debug, Clone)]
pub(crate) struct ResultRule {
    pub(crate) items: Items,
    pub(crate) id: Target,
    pub(crate) result: Option<Target>,
    pub(crate) failed: Condition,
}

/// Compiles rules and collects their problems.
#[derive(Debug, Default)]
pub(crate) struct RuleCompiler {
    pub(crate) problems: Vec<Problem>,
}

impl RuleCompiler {
    pub(crate) fn rule(&mut self, at: &str, file: &RuleFile) -> Rule {
        Rule {
            condition: self.condition(&format!("{at}/where"), &file.r#where),
            unless: self.condition(&format!("{at}/unless"), &file.unless),
            after: self.condition(&format!("{at}/after"), &file.after),
            take: self.optional(&format!("{at}/take"), file.take.as_deref()),
            status: self.optional(&format!("{at}/status"), file.status.as_deref()),
            sum: file.sum,
            join: file.join,
            cumulative: file.cumulative,
        }
    }

    /// A rule that must have a path.
    pub(crate) fn value(&mut self, at: &str, file: Option<&PathOrRuleFile>) -> Option<Rule> {
        let PathOrRuleFile(file) = file?;
        if file.take.is_none() {
            self.problems.push(
                Problem::new(at, "`take` is missing")
                    .help("`take` is the path of the value, for example `take: message.text`"),
            );
            return None;
        }
        Some(self.rule(at, file))
    }

    pub(crate) fn tokens(&mut self, at: &str, file: Option<&TokensFile>) -> Option<TokenRule> {
        let file = file?;
        Some(TokenRule {
            condition: self.condition(&format!("{at}/where"), &file.r#where),
            input: self.optional(&format!("{at}/input"), file.input.as_deref()),
            output: self.optional(&format!("{at}/output"), file.output.as_deref()),
            cached: self.optional(&format!("{at}/cached"), file.cached.as_deref()),
            cache_write: self.optional(&format!("{at}/cache_write"), file.cache_write.as_deref()),
            total: self.optional(&format!("{at}/total"), file.total.as_deref()),
            sum: file.sum,
            input_includes_cached: file.input_includes_cached,
            cumulative: file.cumulative,
        })
    }

    pub(crate) fn servers(
        &mut self,
        at: &str,
        file: Option<&ServerStatesFile>,
    ) -> Option<ServerStateRule> {
        let file = file?;
        Some(ServerStateRule {
            condition: self.condition(&format!("{at}/where"), &file.r#where),
            take: self.path(&format!("{at}/take"), &file.take)?,
            name: self.path(&format!("{at}/name"), &file.name)?,
            status: self.path(&format!("{at}/status"), &file.status)?,
            ok: file.ok.clone(),
        })
    }

    pub(crate) fn calls(&mut self, at: &str, file: Option<&CallsFile>) -> Option<CallRules> {
        let file = file?;
        let mcp_prefix = file.mcp_prefix.as_deref().and_then(|text| {
            Template::parse(text)
                .map_err(|error| {
                    let at = format!("{at}/mcp_prefix");
                    self.problems.push(Problem::new(at, error.to_string()));
                })
                .ok()
        });
        let result = match &file.result {
            Some(result) => Some(self.result(&format!("{at}/result"), result)?),
            None => None,
        };
        let call = match &file.call {
            Some(call) => Some(self.call(&format!("{at}/call"), call)?),
            None => None,
        };
        Some(CallRules {
            call,
            result,
            mcp_prefix,
        })
    }

    fn call(&mut self, at: &str, file: &CallFile) -> Option<CallRule> {
        Some(CallRule {
            items: self.items(at, &file.r#where, file.each.as_deref(), &file.item),
            id: self.optional(&format!("{at}/id"), file.id.as_deref()),
            name: self.path(&format!("{at}/name"), &file.name)?,
            args: self.optional(&format!("{at}/args"), file.args.as_deref()),
            server: self.optional(&format!("{at}/server"), file.server.as_deref()),
            result: self.optional(&format!("{at}/result"), file.result.as_deref()),
            failed: self.condition(&format!("{at}/failed"), &file.failed),
        })
    }

    fn result(&mut self, at: &str, file: &CallResultFile) -> Option<ResultRule> {
        Some(ResultRule {
            items: self.items(at, &file.r#where, file.each.as_deref(), &file.item),
            id: self.path(&format!("{at}/id"), &file.id)?,
            result: self.optional(&format!("{at}/result"), file.result.as_deref()),
            failed: self.condition(&format!("{at}/failed"), &file.failed),
        })
    }

    fn items(
        &mut self,
        at: &str,
        condition: &Map<String, Value>,
        each: Option<&str>,
        item: &Map<String, Value>,
    ) -> Items {
        Items {
            condition: self.condition(&format!("{at}/where"), condition),
            each: self.optional(&format!("{at}/each"), each),
            item: self.condition(&format!("{at}/item"), item),
        }
    }

    fn condition(&mut self, at: &str, written: &Map<String, Value>) -> Condition {
        let mut paths = Vec::new();
        for (path, value) in written {
            let at = format!("{at}/{}", escape(path));
            let values = match value {
                Value::Array(values) => values.clone(),
                Value::Object(_) => {
                    self.problems.push(
                        Problem::new(at, "not a value to compare with")
                            .help("write a string, a number, true, false, or a list of these"),
                    );
                    continue;
                }
                value => vec![value.clone()],
            };
            if let Some(path) = self.path(&at, path) {
                paths.push((path, values));
            }
        }
        Condition(paths)
    }

    fn optional(&mut self, at: &str, written: Option<&str>) -> Option<Target> {
        written.and_then(|path| self.path(at, path))
    }

    fn path(&mut self, at: &str, written: &str) -> Option<Target> {
        match Target::parse(written) {
            Ok(path) => Some(path),
            Err(error) => {
                let message = format!("`{written}` is not a path: {error}");
                self.problems.push(Problem::new(at, message));
                None
            }
        }
    }
}

/// A key in a JSON pointer.
pub(crate) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
