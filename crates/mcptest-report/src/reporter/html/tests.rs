use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::DeflateDecoder;
use mcptest_trace::verdict::Verdict;
use serde_json::{Value, json};

use super::*;
use crate::samples;

fn written(report: &Report) -> String {
    let mut out = Vec::new();
    render(report, Style::default(), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The text of the element with this id.
fn element<'a>(page: &'a str, id: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("id=\"{id}\">")).unwrap();
    rest.split_once("</script>").unwrap().0
}

fn block(page: &str, number: usize) -> Value {
    let packed = STANDARD
        .decode(element(page, &format!("block-{number}")))
        .unwrap();
    let mut text = String::new();
    DeflateDecoder::new(packed.as_slice())
        .read_to_string(&mut text)
        .unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_page_has_every_test_and_every_record() {
    let report = samples::report(4);
    let page = written(&Report::from(&report));
    let head: Value = serde_json::from_str(element(&page, "head")).unwrap();
    assert_eq!(head["verdict"], "fail");
    assert_eq!(head["duration_ms"], 99);
    assert_eq!(head["comparison"], Value::Null);
    let tests = head["tests"].as_array().unwrap();
    assert_eq!(tests.len(), 4);
    for (at, test) in tests.iter().enumerate() {
        assert_eq!(test["label"], report.tests[at].label);
        assert_eq!(test["file"], "sample.yml");
        let block = block(&page, test["block"].as_u64().unwrap() as usize);
        let runs = serde_json::to_value(&report.tests[at].runs).unwrap();
        assert_eq!(block["runs"], runs);
        assert_eq!(block["gates"][0]["block"], "tool_selection");
    }
    assert_eq!(tests[2]["runs"]["verdicts"], "F");
    assert_eq!(page, written(&Report::from(&report)), "the same bytes");
}

#[test]
fn the_policy_of_the_page_allows_nothing_but_itself() {
    let policy = PAGE
        .split_once("http-equiv=\"Content-Security-Policy\"")
        .unwrap()
        .1;
    let policy = policy.split_once("content=\"").unwrap().1;
    let policy = policy.split_once('"').unwrap().0;
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    assert!(policy.contains("script-src 'sha256-"), "{policy}");
    assert!(policy.contains("style-src 'sha256-"), "{policy}");
    assert!(policy.contains(NO_CONNECTIONS), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    let live = live_page("/data?token=<x>");
    assert!(live.contains("connect-src 'self'") && !live.contains("token=<x>"));
}

#[test]
fn strings_of_servers_stay_in_their_element() {
    let hostile = "</script><script>alert(1)</script><!-- ]]> & \u{2028}\u{202e}";
    let mut test = samples::test(hostile, Some(hostile), Verdict::Fail);
    test.suite = hostile.to_owned();
    test.tags = vec![hostile.to_owned()];
    test.runs[0].assertions = vec![samples::assertion(
        hostile,
        json!({ hostile: hostile }),
        json!(hostile),
        false,
    )];
    let mut gate = samples::floor(Verdict::Fail, 50);
    gate.summary = hostile.to_owned();
    test.gates.push(gate);
    let plain = samples::test("a", Some("m"), Verdict::Fail);
    let count = |page: &str| {
        (
            page.matches("<script").count(),
            page.matches("</script").count(),
        )
    };
    let page = written(&samples::concluded(vec![test]));
    let harmless = written(&samples::concluded(vec![plain]));
    assert_eq!(count(&page), count(&harmless));
    assert!(!page.contains("alert(1)</"));
    let head: Value = serde_json::from_str(element(&page, "head")).unwrap();
    assert_eq!(head["tests"][0]["name"], hostile);
    assert_eq!(head["verdict"], "fail");
}

#[test]
fn a_page_that_follows_a_run_gets_single_records() {
    let report = Report::from(&samples::report(2));
    let id = report.tests[1].id.clone();
    let part = |id: &CaseId, run| {
        let mut out = Vec::new();
        let found = write_part(&report, id, run, &mut out).unwrap();
        found.then(|| serde_json::from_slice::<Value>(&out).unwrap())
    };
    assert_eq!(part(&id, Some(1)).unwrap()["index"], 1);
    assert_eq!(part(&id, None).unwrap()[0]["block"], "tool_selection");
    assert_eq!(part(&id, Some(2)), None);
    let mut other = id;
    other.name.push('x');
    assert_eq!(part(&other, None), None);
    let state = LiveState {
        version: 3,
        ended: false,
        planned_runs: 9,
        finished_runs: 2,
    };
    let mut out = Vec::new();
    write_live(&report, state, Style::default(), &mut out).unwrap();
    let live: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(live["state"]["finished_runs"], 2);
    assert!(live["report"]["tests"][0].get("block").is_none());
}
