//! Outcomes: the ten tasks of `examples/world`, and 100 runs with injected mistakes, whose verdicts
//! a second evaluation of the final tables must confirm.

use std::collections::BTreeMap;

use mcptest_numbers::random::SplitMix64;
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, ToSql};
use serde_json::{Value, json};

use crate::support::{folder, root, run};

/// All tables.
const TABLES: [&str; 6] = [
    "customers",
    "products",
    "orders",
    "tickets",
    "events",
    "journal",
];

fn yaml(path: &str) -> Value {
    let bytes = std::fs::read(root().join(path)).unwrap();
    let limits = mcptest_yaml::DocumentLimits::default();
    let document = mcptest_yaml::Document::parse(path, &bytes, &limits).unwrap();
    document.root().to_json()
}

/// A call as `(tool, arguments)`.
type Call = (String, Value);

/// A second implementation of the world: its own connection, written without the mock's code.
struct World {
    connection: Connection,
    tools: BTreeMap<String, Value>,
}

impl World {
    fn new(manifest: &Value) -> Self {
        let server = &manifest["mock_server"];
        let connection = Connection::open_in_memory().unwrap();
        let database = &server["database"];
        connection
            .execute_batch(database["schema"].as_str().unwrap())
            .unwrap();
        let triggers = |enabled| {
            let config = rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER;
            connection.set_db_config(config, enabled).unwrap();
        };
        triggers(false);
        for (table, rows) in database["rows"].as_object().unwrap() {
            for row in rows.as_array().unwrap() {
                let row = row.as_object().unwrap();
                let columns: Vec<&str> = row.keys().map(String::as_str).collect();
                let places = vec!["?"; columns.len()].join(",");
                let columns = columns.join(",");
                let values: Vec<SqlValue> = row.values().map(sql_value).collect();
                connection
                    .execute(
                        &format!("INSERT INTO {table} ({columns}) VALUES ({places})"),
                        rusqlite::params_from_iter(values),
                    )
                    .unwrap();
            }
        }
        triggers(true);
        connection
            .pragma_update(None, "foreign_keys", true)
            .unwrap();
        let tools = server["tools"].as_array().unwrap().iter();
        let tools = tools.map(|tool| (tool["name"].as_str().unwrap().to_owned(), tool.clone()));
        Self {
            connection,
            tools: tools.collect(),
        }
    }

    /// Executes a call, or nothing of it.
    fn call(&self, (tool, arguments): &Call) {
        let Some(tool) = self.tools.get(tool) else {
            return;
        };
        let list = |value: &Value| match value {
            Value::Array(items) => items.clone(),
            other => vec![other.clone()],
        };
        let (statements, expected) = (list(&tool["sql"]), list(&tool["expect_rows"]));
        self.connection.execute_batch("SAVEPOINT call").unwrap();
        let mut good = true;
        for (index, sql) in statements.iter().enumerate() {
            let count = self.execute(sql.as_str().unwrap(), arguments);
            let wanted = expected.get(index).and_then(Value::as_u64);
            good &= count.is_some_and(|count| wanted.is_none_or(|wanted| wanted == count));
            if !good {
                self.connection.execute_batch("ROLLBACK TO call").unwrap();
                break;
            }
        }
        self.connection.execute_batch("RELEASE call").unwrap();
    }

    /// The number of rows that a statement returned or changed; `None` if it was rejected.
    fn execute(&self, sql: &str, arguments: &Value) -> Option<u64> {
        let mut statement = self.connection.prepare(sql).unwrap();
        let names: Vec<String> = (1..=statement.parameter_count())
            .map(|index| statement.parameter_name(index).unwrap().to_owned())
            .collect();
        let values: Vec<SqlValue> = names
            .iter()
            .map(|name| sql_value(&arguments[&name[1..]]))
            .collect();
        let bound: Vec<(&str, &dyn ToSql)> = names
            .iter()
            .zip(&values)
            .map(|(name, value)| (name.as_str(), value as &dyn ToSql))
            .collect();
        if statement.column_count() == 0 {
            return statement.execute(&bound[..]).ok().map(|count| count as u64);
        }
        let mut rows = statement.query(&bound[..]).ok()?;
        let mut count = 0;
        while rows.next().ok()?.is_some() {
            count += 1;
        }
        Some(count)
    }

    /// All rows of all tables.
    fn dump(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for table in TABLES {
            let sql = format!("SELECT * FROM {table} ORDER BY 1");
            let mut statement = self.connection.prepare(&sql).unwrap();
            let columns = statement.column_count();
            let mut rows = statement.query([]).unwrap();
            while let Some(row) = rows.next().unwrap() {
                let values = (0..columns).map(|index| row.get::<_, SqlValue>(index).unwrap());
                lines.push(format!("{table} {:?}", values.collect::<Vec<_>>()));
            }
        }
        lines
    }
}

fn sql_value(value: &Value) -> SqlValue {
    match value {
        Value::Null => SqlValue::Null,
        Value::Number(number) => SqlValue::Integer(number.as_i64().unwrap()),
        Value::String(text) => SqlValue::Text(text.clone()),
        other => panic!("{other}"),
    }
}

/// A task: its test in the suite, the calls of its setup, and the calls that do it right.
struct Task {
    test: Value,
    setup: Vec<Call>,
    right: Vec<Call>,
}

fn tasks() -> Vec<Task> {
    let suite = yaml("examples/world/mcptest.yml");
    let report = run(
        &root(),
        &["run", "examples/world/mcptest.yml", "--reporter", "json"],
    );
    assert_eq!(report.code, 0, "{}", report.stderr);
    let report = report.json();
    let tests = suite["agents"].as_array().unwrap();
    tests
        .iter()
        .zip(report["tests"].as_array().unwrap())
        .map(|(test, judged)| {
            assert_eq!(judged["name"], test["name"]);
            let calls = judged["runs"][0]["trace"]["tool_calls"].as_array().unwrap();
            let call = |call: &Value, name: &str| {
                (
                    call[name].as_str().unwrap().to_owned(),
                    call["args"].clone(),
                )
            };
            let setup = test["setup"].as_array().into_iter().flatten();
            Task {
                test: test.clone(),
                setup: setup.map(|one| call(one, "tool")).collect(),
                right: calls.iter().map(|one| call(one, "name")).collect(),
            }
        })
        .collect()
}

/// Changes that no task asks for.
fn extra_calls() -> Vec<Call> {
    [
        ("restock_product", json!({"sku": "chair", "quantity": 1})),
        ("set_priority", json!({"id": 21, "priority": "low"})),
        ("remove_event", json!({"id": 31})),
        ("cancel_order", json!({"id": 13})),
        (
            "open_ticket",
            json!({"customer": "C2", "subject": "Nobody asked"}),
        ),
        // Refused: it changes nothing.
        ("close_ticket", json!({"id": 99})),
    ]
    .map(|(tool, args)| (tool.to_owned(), args))
    .to_vec()
}

/// Makes one mistake, and returns its kind.
fn make_mistake(calls: &mut Vec<Call>, random: &mut SplitMix64) -> &'static str {
    let pick = |count: usize, random: &mut SplitMix64| {
        usize::try_from(random.below(count as u64)).unwrap()
    };
    let place = pick(calls.len(), random);
    match pick(5, random) {
        0 => "none",
        1 => {
            let wrong = [json!(11), json!(13), json!(22), json!(31), json!(99)];
            let with_id: Vec<usize> = (0..calls.len())
                .filter(|index| calls[*index].1.get("id").is_some())
                .collect();
            match with_id.as_slice() {
                [] => {
                    let args = calls[place].1.as_object_mut().unwrap();
                    let others = [("sku", "sofa"), ("customer", "C9"), ("day", "2026-03-09")];
                    for (key, value) in others {
                        if let Some(given) = args.get_mut(key) {
                            *given = value.into();
                        }
                    }
                }
                found => {
                    let index = found[pick(found.len(), random)];
                    calls[index].1["id"] = wrong[pick(wrong.len(), random)].clone();
                }
            }
            "wrong id"
        }
        2 => {
            calls.remove(place);
            "missing call"
        }
        3 => {
            let again = calls[place].clone();
            calls.insert(place + 1, again);
            "call made twice"
        }
        _ => {
            let extra = extra_calls();
            calls.insert(place, extra[pick(extra.len(), random)].clone());
            "extra change"
        }
    }
}

#[test]
fn outcome_verdicts_equal_a_second_evaluation_over_100_runs_with_mistakes() {
    let manifest = yaml("examples/world/world.yml");
    let tasks = tasks();
    assert_eq!(tasks.len(), 10);
    let mut random = SplitMix64::new(12);
    let (mut tests, mut expected) = (Vec::new(), Vec::new());
    for number in 0..100 {
        let task = &tasks[number % tasks.len()];
        let mut calls = task.right.clone();
        let mistake = make_mistake(&mut calls, &mut random);
        let world = |calls: &[Call]| {
            let world = World::new(&manifest);
            task.setup
                .iter()
                .chain(calls)
                .for_each(|call| world.call(call));
            world.dump()
        };
        let is_right = world(&calls) == world(&task.right);
        let name = format!(
            "{number}: {}, {mistake}",
            task.test["name"].as_str().unwrap()
        );
        let script: Vec<Value> = calls
            .iter()
            .map(|(tool, args)| json!({"calls": [{"tool": tool, "args": args}]}))
            .chain([json!({"say": "Done."})])
            .collect();
        let mut test = json!({
            "name": name,
            "model": "builtin/scripted",
            "servers": ["world"],
            "prompt": task.test["prompt"],
            "script": [script],
            "after": task.test["after"],
            "max_turns": 20,
        });
        if let Some(setup) = task.test.get("setup") {
            test["setup"] = setup.clone();
        }
        tests.push(test);
        expected.push((name, is_right));
    }
    let server = json!({"command": ["mcptest", "mock", "--tools-from", "world.yml"]});
    let suite = json!({"servers": {"world": server}, "agents": tests}).to_string();
    let world = std::fs::read_to_string(root().join("examples/world/world.yml")).unwrap();
    let dir = folder(&[("s.yml", &suite), ("world.yml", &world)]);
    let ran = run(
        dir.path(),
        &["run", "s.yml", "--reporter", "json", "--record"],
    );
    let report = ran.json();
    let verdicts = |report: &Value| -> Vec<(String, bool)> {
        let tests = report["tests"].as_array().unwrap().iter();
        tests
            .map(|test| {
                let verdict = test["verdict"].as_str().unwrap();
                assert!(["pass", "fail"].contains(&verdict), "{test}");
                (test["name"].as_str().unwrap().to_owned(), verdict == "pass")
            })
            .collect()
    };
    assert_eq!(verdicts(&report), expected);
    let right = expected.iter().filter(|(_, right)| *right).count();
    assert!((15..=85).contains(&right), "{right} of 100 runs are right");
    for kind in [
        "none",
        "wrong id",
        "missing call",
        "call made twice",
        "extra change",
    ] {
        let count = expected
            .iter()
            .filter(|(name, _)| name.ends_with(kind))
            .count();
        assert!(count >= 8, "{kind}: {count}");
    }
    // A replay of the recordings judges the same, without a server.
    let broken = suite.replace("\"mock\"", "\"no-such-command\"");
    std::fs::write(dir.path().join("s.yml"), broken).unwrap();
    let replayed = run(
        dir.path(),
        &["run", "s.yml", "--reporter", "json", "--replay-only"],
    );
    assert_eq!(verdicts(&replayed.json()), expected, "{}", replayed.stderr);
}
