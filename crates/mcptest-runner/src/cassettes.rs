//! Cassettes of tests: their place, their subject, and the changes since they were recorded.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcptest_agent::builtin;
use mcptest_cassette::{
    Cassette, CassetteChange, RecordedCatalog, Subject, cassette_path, catalog_changes, changes,
    digest, load,
};
use mcptest_redact::redact::Redactor;
use mcptest_suite::Suite;
use mcptest_suite::state::{StateAction, StateCall};
use mcptest_suite::suite::{AgentTest, KnownEntries, Replay, ScriptTurn, Server};
use mcptest_trace::fault::{Fault, FaultKind};
use mcptest_trace::user_turn::UserTurn;
use serde_json::{Map, Value, json};

use crate::providers;

/// The use of cassettes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CassetteMode {
    /// An existing cassette is replayed; a test without one runs live.
    #[default]
    Auto,
    /// Everything runs live and is recorded.
    Record,
    /// Cassettes are ignored.
    Live,
    /// A test without a matching cassette is an error.
    ReplayOnly,
}

/// The tools that a server lists, if they are known without starting it.
pub type Listing = Arc<dyn Fn(&Server) -> Option<Vec<Value>> + Send + Sync>;

/// The resources and prompts of a server, if they are known without starting it.
pub type Entries = Arc<dyn Fn(&Server) -> Option<KnownEntries> + Send + Sync>;

/// The cassette settings of an invocation.
#[derive(Clone)]
pub struct CassetteSettings {
    /// The use of cassettes.
    pub mode: CassetteMode,
    /// The folder of the cassettes; overrides the suite.
    pub folder: Option<PathBuf>,
    /// The side that is replayed; overrides the suite.
    pub replay: Option<Replay>,
    /// Masks secrets in everything that is written.
    pub redactor: Arc<Redactor>,
    /// The tools of a server, where they are known without starting it.
    pub listing: Listing,
    /// The same tools, of which only the names are needed. Reading these is quicker.
    pub names: Listing,
    /// The resources and prompts of a server that is known without starting it.
    pub entries: Entries,
}

/// The folder of a suite's cassettes: it has the name of the suite's file, in `cassettes` next to
/// the suite or in the folder that the suite or the invocation sets.
#[must_use]
pub fn cassette_folder(suite: &Suite, folder: Option<&Path>) -> PathBuf {
    let next_to_suite = suite.file.parent().unwrap_or(Path::new(""));
    let folder = folder.or(suite.options.cassettes.as_deref());
    let folder = folder.map_or_else(|| next_to_suite.join("cassettes"), Path::to_owned);
    folder.join(suite.file.file_name().unwrap_or_default())
}

/// The path of the cassette of a test and model. A cassette that was recorded when the test had
/// another number of models is found too.
#[must_use]
pub fn cassette_place(folder: &Path, test: &AgentTest, model: &str) -> PathBuf {
    let (with_model, without) = (
        cassette_path(folder, &test.name, Some(model)),
        cassette_path(folder, &test.name, None),
    );
    let several = test.models.len() > 1;
    let of_this_model = |path: &Path| load(path).is_ok_and(|found| found.subject.model == model);
    if several {
        if !with_model.exists() && of_this_model(&without) {
            return without;
        }
        with_model
    } else if with_model.exists() && !of_this_model(&without) {
        with_model
    } else {
        without
    }
}

/// The path of a new recording of a test and model.
pub(crate) fn recording_place(folder: &Path, test: &AgentTest, model: &str) -> PathBuf {
    let several = test.models.len() > 1;
    cassette_path(folder, &test.name, several.then_some(model))
}

/// Everything that decides what the model of a test sees, except the tools.
#[must_use]
pub fn cassette_subject(suite: &Suite, test: &AgentTest, model: &str) -> Subject {
    let mut settings = Map::new();
    if let Some((api, body)) = providers::request_style(suite, model) {
        settings.insert("api".to_owned(), api.into());
        if !body.is_empty() {
            settings.insert("body".to_owned(), body.into());
        }
    }
    if let Some(max) = test.max_tokens {
        settings.insert("max_tokens".to_owned(), max.into());
    }
    if let Some(block) = &test.distractors {
        let schedule = block.schedule(&test.name, test.runs);
        let planned = schedule
            .iter()
            .map(|run| json!({"count": run.count, "seed": run.seed}));
        settings.insert("distractors".to_owned(), planned.collect());
    }
    if !test.faults.is_empty() {
        settings.insert("faults".to_owned(), test.faults.iter().map(fault).collect());
        if let Some(budget) = test.detection_budget_ms {
            settings.insert("max_detection_ms".to_owned(), budget.into());
        }
    }
    if !test.attacks.is_empty() {
        let attacks = test.attacks.iter().map(|attack| {
            let definition = attack.definition().to_string();
            json!({"name": attack.name(), "digest": digest(&definition)})
        });
        settings.insert("attacks".to_owned(), attacks.collect());
        if test.attack_plan.together {
            settings.insert("attacks_together".to_owned(), true.into());
        }
    }
    if !test.turns.is_empty() {
        let turns = test.turns.iter().map(UserTurn::to_value);
        settings.insert("turns".to_owned(), turns.collect());
    }
    if let Some(client) = &test.client {
        settings.insert("client".to_owned(), client.written.clone().into());
    }
    for (key, calls) in [("setup", &test.state.setup), ("after", &test.state.after)] {
        if !calls.is_empty() {
            settings.insert(key.to_owned(), calls.iter().map(state_call).collect());
        }
    }
    if model == builtin::SCRIPTED {
        let script: Value = test
            .script
            .iter()
            .map(|run| run.iter().map(turn).collect::<Value>())
            .collect();
        settings.insert("script".to_owned(), digest(&script.to_string()).into());
    }
    Subject {
        test: test.name.clone(),
        model: model.to_owned(),
        system: test.system.clone(),
        prompt: test.prompt.clone(),
        servers: test.servers.clone(),
        settings,
    }
}

fn fault(fault: &Fault) -> Value {
    let (kind, number) = match fault.kind {
        FaultKind::Hang => ("hang", None),
        FaultKind::Wedged => ("wedged", None),
        FaultKind::Slow { delay_ms } => ("slow", Some(delay_ms)),
        FaultKind::RecoverAfter { failures } => ("recover_after", Some(failures)),
    };
    json!({"name": fault.name, "target": fault.target, "kind": kind, "number": number})
}

fn state_call(call: &StateCall) -> Value {
    let action = match &call.action {
        StateAction::Tool(tool) => json!({"tool": tool}),
        StateAction::Query(sql) => json!({"sql": sql}),
    };
    json!([call.server, action, call.args.written()])
}

fn turn(turn: &ScriptTurn) -> Value {
    let calls: Value = turn
        .calls
        .iter()
        .map(|call| json!([call.tool, call.args, call.caller]))
        .collect();
    json!([
        turn.say,
        calls,
        turn.usage.map(|usage| [usage.input, usage.output])
    ])
}

/// The tools of the servers of a suite, where they are known without starting them, as they are
/// compared with recordings. Each server is asked for once.
#[derive(Default)]
pub(crate) struct KnownCatalogs(BTreeMap<String, Option<RecordedCatalog>>);

impl KnownCatalogs {
    fn of(
        &mut self,
        name: &str,
        suite: &Suite,
        settings: &CassetteSettings,
    ) -> Option<&RecordedCatalog> {
        if !self.0.contains_key(name) {
            let tools = suite
                .servers
                .get(name)
                .and_then(|server| (settings.listing)(server));
            let catalog = tools.map(|mut tools| {
                for tool in &mut tools {
                    settings.redactor.value(tool);
                }
                stable_keys(RecordedCatalog {
                    server: name.to_owned(),
                    tools,
                })
            });
            self.0.insert(name.to_owned(), catalog);
        }
        self.0.get(name)?.as_ref()
    }
}

/// The changes since a cassette was recorded. Tools are compared where they are known without
/// starting a server.
#[must_use]
pub fn cassette_changes(
    cassette: &Cassette,
    suite: &Suite,
    test: &AgentTest,
    model: &str,
    settings: &CassetteSettings,
) -> Vec<CassetteChange> {
    let mut known = KnownCatalogs::default();
    changes_since(cassette, suite, test, model, settings, &mut known)
}

/// The same, for many cassettes of a suite.
pub(crate) fn changes_since(
    cassette: &Cassette,
    suite: &Suite,
    test: &AgentTest,
    model: &str,
    settings: &CassetteSettings,
    catalogs: &mut KnownCatalogs,
) -> Vec<CassetteChange> {
    let redact = |value: Value| {
        let mut value = value;
        settings.redactor.value(&mut value);
        value
    };
    // The recorded subject is redacted, so this one must be, too.
    let mut subject = cassette_subject(suite, test, model);
    subject.prompt = settings.redactor.text(&subject.prompt);
    subject.system = subject.system.map(|system| settings.redactor.text(&system));
    subject.test = settings.redactor.text(&subject.test);
    subject.model = settings.redactor.text(&subject.model);
    if let Value::Object(clean) = redact(Value::Object(std::mem::take(&mut subject.settings))) {
        subject.settings = clean;
    }
    // Fewer runs than recorded are the first runs, with the first distractors.
    let recorded = cassette.subject.settings.get("distractors");
    if let (Some(Value::Array(was)), Some(Value::Array(now))) =
        (recorded, subject.settings.get_mut("distractors"))
        && was.starts_with(now)
    {
        now.clone_from(was);
    }
    // A test that stops when it is decided may have stopped early when it was recorded. If it
    // needs more runs now, the first of those reports it.
    let needed = if test.stops_when_decided {
        Suite::runs_of(test).min(cassette.planned)
    } else {
        Suite::runs_of(test)
    };
    let mut found = changes(cassette, &subject, needed);
    let mut known = Vec::new();
    for name in &test.servers {
        known.extend(catalogs.of(name, suite, settings).cloned());
    }
    // Nothing to compare with is the usual case, apart from our own mock.
    if !known.is_empty() {
        let recorded: Vec<RecordedCatalog> =
            cassette.catalogs.iter().cloned().map(stable_keys).collect();
        found.extend(catalog_changes(&recorded, &known));
    }
    found
}

/// Keeps the keys that a tool has in every revision of the protocol.
fn stable_keys(mut catalog: RecordedCatalog) -> RecordedCatalog {
    for tool in catalog.tools.iter_mut().filter_map(Value::as_object_mut) {
        tool.retain(|key, _| ["name", "description", "inputSchema"].contains(&key.as_str()));
    }
    catalog
}
