use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use mcptest_events::log::encode;
use mcptest_events::{
    Begun, CaseId, CaseJudged, Ended, Event, Kind, PlannedCase, RunFacts, RunFinished, RunRecord,
    VERSION,
};
use mcptest_redact::redact::Redactor;
use mcptest_report::{ReportFold, RunStore};
use mcptest_trace::trace::Trace;
use mcptest_trace::verdict::Verdict;
use serde_json::Value;

use super::*;

fn line(event: &Event) -> String {
    encode(event, &Redactor::default())
}

fn beginning() -> String {
    let begun = Event::Begun(Begun {
        version: VERSION,
        id: "x".to_owned(),
        mcptest: "0.1.0".to_owned(),
        started_ms: 1,
        command_line: Vec::new(),
        inputs: Vec::new(),
    });
    let planned = Event::Planned {
        cases: vec![PlannedCase {
            id: CaseId {
                suite: "s & t".to_owned(),
                name: "a test".to_owned(),
                model: Some("m/1".to_owned()),
            },
            kind: Kind::Agent,
            label: "a test".to_owned(),
            runs: 2,
            position: 0,
            tags: Vec::new(),
            file: None,
            line: None,
        }],
        shard: None,
    };
    line(&begun) + &line(&planned)
}

fn finished(run: u32) -> String {
    line(&Event::RunFinished(RunFinished {
        case: 0,
        run,
        calls: 0,
        errors: 0,
        tokens: None,
        duration_ms: 5,
        facts: RunFacts {
            verdict: Verdict::Pass,
            counted: Verdict::Pass,
            fails_case: false,
            expectations_held: None,
            error: None,
        },
        spend: None,
        record: Some(RunRecord {
            index: run.into(),
            name: format!("a test #{run}"),
            verdict: Verdict::Pass,
            trace: Trace::default(),
            assertions: Vec::new(),
            error: None,
        }),
    }))
}

fn end() -> String {
    let judged = Event::CaseJudged(CaseJudged {
        case: 0,
        verdict: Verdict::Pass,
        complete: true,
        gates: Vec::new(),
        no_evidence: None,
        saved_runs: None,
        spend: None,
        replayed: None,
        duration_ms: Some(9),
        status_lines: Vec::new(),
    });
    line(&judged)
        + &line(&Event::Ended(Ended {
            interrupted: false,
            panicked: false,
            duration_ms: 12,
        }))
}

/// The status and the body of the answer to a request with these headers.
fn get(port: u16, path: &str, headers: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    (status, text.split_once("\r\n\r\n").unwrap().1.to_owned())
}

struct Client {
    port: u16,
    token: String,
}

impl Client {
    fn of(server: &LiveServer) -> Self {
        let rest = server.url().strip_prefix("http://127.0.0.1:").unwrap();
        let (port, token) = rest.split_once("/?token=").unwrap();
        Self {
            port: port.parse().unwrap(),
            token: token.to_owned(),
        }
    }

    fn data(&self, query: &str) -> (u16, String) {
        let path = format!("/data?token={}&{query}", self.token);
        get(
            self.port,
            &path,
            &format!("Host: 127.0.0.1:{}\r\n", self.port),
        )
    }

    fn json(&self, query: &str) -> Value {
        let (status, body) = self.data(query);
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }
}

#[test]
fn a_growing_log_is_followed_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let mut log = std::fs::File::create(&path).unwrap();
    log.write_all(beginning().as_bytes()).unwrap();
    let server = LiveServer::of_log(&path, 0, Style::default()).unwrap();
    let client = Client::of(&server);
    let first = client.json("since=-1");
    assert_eq!(first["state"]["planned_runs"], 2);
    let version = first["state"]["version"].as_u64().unwrap();
    assert_eq!(client.data(&format!("since={version}")).0, 204);

    // A torn line is not an event yet.
    let text = finished(1);
    let (head, tail) = text.split_at(text.len() / 2);
    log.write_all(head.as_bytes()).unwrap();
    assert_eq!(client.data(&format!("since={version}")).0, 204);
    log.write_all(tail.as_bytes()).unwrap();
    let second = client.json(&format!("since={version}"));
    assert_eq!(second["state"]["finished_runs"], 1);
    assert_eq!(second["state"]["ended"], false);
    assert_eq!(second["report"]["tests"][0]["runs"]["verdicts"], "P");
    let part = "part=1&suite=s+%26+t&name=a+test&model=m%2F1";
    assert_eq!(client.json(&format!("{part}&run=1"))["name"], "a test #1");
    assert_eq!(client.data(&format!("{part}&run=2")).0, 404);

    log.write_all((finished(2) + &end()).as_bytes()).unwrap();
    let last = client.json("since=0");
    assert_eq!(last["state"]["ended"], true);
    assert_eq!(last["report"]["verdict"], "pass");
    assert!(!server.state.gave_whole());
    let (_, whole) = client.data("whole=1");
    assert!(whole.contains("id=\"block-0\""));
    assert!(server.state.gave_whole());
    let began = Instant::now();
    server.finish();
    assert!(began.elapsed() < GRACE, "nothing to wait for");
}

#[test]
fn only_the_owner_of_the_address_is_answered() {
    let report = ReportFold::new().finish(RunStore::Memory(Vec::new()));
    let server = LiveServer::of_report(report, 0, Style::default()).unwrap();
    let Client { port, token } = Client::of(&server);
    let own = format!("Host: 127.0.0.1:{port}\r\n");
    let page = format!("/?token={token}");
    assert_eq!(get(port, &page, &own).0, 200);
    assert!(get(port, &page, &own).1.contains("connect-src 'self'"));
    assert_eq!(
        get(port, &page, &format!("Host: localhost:{port}\r\n")).0,
        200
    );
    assert_eq!(get(port, "/", &own).0, 403, "no token");
    assert_eq!(get(port, "/?token=0", &own).0, 403, "another token");
    assert_eq!(
        get(port, &page, "Host: evil.example\r\n").0,
        403,
        "a rebound name"
    );
    assert_eq!(get(port, &page, "").0, 403, "no host");
    let foreign = format!("{own}Origin: http://evil.example\r\n");
    assert_eq!(get(port, &page, &foreign).0, 403, "another page");
    assert_eq!(get(port, &format!("/x?token={token}"), &own).0, 404);
    let began = Instant::now();
    server.finish();
    assert!(began.elapsed() < GRACE, "no page follows");
}
