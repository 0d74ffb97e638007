use serde_json::{Value, json};

use super::super::lint;
use super::*;

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}, "annotations": {}})
}

fn shown(findings: &[Finding], selection: &Selection) -> Vec<(String, usize, usize)> {
    lines(findings, selection)
        .into_iter()
        .map(|line| (line.rule, line.tools.len(), line.count))
        .collect()
}

fn all() -> Selection {
    Selection {
        all: true,
        ..Selection::default()
    }
}

#[test]
fn one_line_per_tool_and_rule_with_the_worst_place() {
    let mut long = tool("a", "Get the weather of a city. Returns text.");
    long["inputSchema"] = json!({"type": "object", "required": ["x", "y"], "additionalProperties": false, "properties": {
        "x": {"type": "integer", "default": 1}, "y": {"type": "integer"}, "z": {}, "w": {}}});
    let findings = lint(None, &[long]);
    let wanted = [("SCH-003", 2), ("DESC-006", 2)];
    let found = lines(&findings, &Selection::default());
    for ((rule, count), line) in wanted.iter().zip(&found) {
        assert_eq!((line.rule.as_str(), line.count), (*rule, *count));
        assert!(line.fix.is_some());
    }
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].path.as_deref(), Some("/inputSchema/properties/z"));
}

#[test]
fn the_worst_description_represents_a_habit() {
    let long = |name: &str, length: usize| {
        tool(
            name,
            &format!("Get it. Returns text. {}", "word ".repeat(length)),
        )
    };
    let mut listed: Vec<Value> = (0..3).map(|at| long(&format!("t{at}"), 250 + at)).collect();
    // Three of three are too few for one line; the longest is first.
    let findings = lint(None, &listed);
    let found = lines(&findings, &Selection::default());
    assert_eq!(found.len(), 3);
    assert_eq!(found[0].tools, ["t2"]);
    listed.push(long("t3", 400));
    let findings = lint(None, &listed);
    let found = lines(&findings, &Selection::default());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].tools, ["t3", "t2", "t1", "t0"]);
    assert_eq!((found[0].count, found[0].of_tools), (4, 4));
    assert!(
        found[0].message.contains("2021 characters"),
        "{}",
        found[0].message
    );
    // With --all, each tool has its line.
    assert_eq!(shown(&findings, &all()).len(), 4);
}

#[test]
fn strictness_is_summed_up_unless_it_is_named() {
    let mut open = tool("a", "Get the weather of a city. Returns text.");
    open["inputSchema"] = json!({"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string", "default": ""}}});
    let findings = lint(None, &[open, tool("b", "Get it all. Returns text.")]);
    assert!(lines(&findings, &Selection::default()).is_empty());
    let sums: Vec<_> = strictness(&findings, None)
        .into_iter()
        .map(|sum| (sum.rule, sum.count, sum.tools))
        .collect();
    let sum = |rule: &str, count| (rule.to_owned(), count, 1);
    assert_eq!(
        sums,
        [sum("SCH-001", 1), sum("SCH-002", 1), sum("SCH-004", 2)]
    );
    let named = Selection {
        rules: vec!["sch-004".to_owned()],
        ..Selection::default()
    };
    assert_eq!(shown(&findings, &named), [("SCH-004".to_owned(), 1, 2)]);
    assert_eq!(shown(&findings, &all()).len(), 3);
}

#[test]
fn critical_lines_are_first_and_minor_ones_are_counted() {
    let mut listed = vec![
        tool("a", "Get the weather of a city now."),
        tool("weather_of_a_city", "Weather of a city"),
    ];
    listed[0]["inputSchema"] = json!({"type": "object", "required": [], "additionalProperties": false, "properties": {
        "state": {"enum": ["open", "closed"], "description": "Which"}}});
    let findings = lint(None, &listed);
    let found = lines(&findings, &Selection::default());
    let rules: Vec<&str> = found.iter().map(|line| line.rule.as_str()).collect();
    assert_eq!(rules, ["DESC-001", "DESC-003", "DESC-004", "DESC-010"]);
    // DESC-007, DESC-009, and DESC-010 where DESC-001 fires too.
    assert_eq!(left_out(&findings, &found), (3, 3));
    assert_eq!(left_out(&findings, &lines(&findings, &all())), (0, 0));
}

#[test]
fn waived_findings_are_last_in_one_line_per_rule() {
    let mut findings = lint(None, &[tool("a", "Weather."), tool("b", "Weather.")]);
    for finding in &mut findings {
        if finding.rule.as_deref() == Some("DESC-001") {
            finding.waived = Some("old".to_owned());
        }
    }
    let wanted = |rule: &str, tools: usize| (rule.to_owned(), tools, tools);
    assert_eq!(
        shown(&findings, &Selection::default()),
        [
            wanted("DESC-004", 1),
            wanted("DESC-004", 1),
            wanted("DESC-001", 2)
        ]
    );
    assert_eq!(shown(&findings, &all()).len(), 6);
}

#[test]
fn servers_keep_their_order_and_their_own_lines() {
    let listed: Vec<Value> = (0..4)
        .map(|at| tool(&format!("t{at}"), "Get the weather here"))
        .collect();
    let mut findings = lint(Some("b"), &listed);
    findings.extend(lint(Some("a"), &listed[..2]));
    let found = lines(&findings, &Selection::default());
    let servers: Vec<_> = found
        .iter()
        .map(|line| (line.server.as_deref(), line.tools.len()))
        .collect();
    assert_eq!(servers, [(Some("b"), 4), (Some("a"), 2)]);
}
