//! Late and missing answers, cancellation.

use std::io::{BufReader, Read, Write};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use mcptest_mock::{MockFault, MockServer, load, serve_stdio};
use mcptest_redact::redact::Redactor;
use serde_json::Value;

use crate::{INITIALIZE, load_data};

fn faulty(fault: &str) -> MockServer {
    let fault: MockFault = fault.parse().expect("a fault");
    MockServer::new(load_data("full.yml").with_fault(fault))
}

fn call(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo"}}}}"#)
}

fn cancel(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
    )
}

const PING: &str = r#"{"jsonrpc":"2.0","id":99,"method":"ping"}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":98,"method":"tools/list"}"#;

/// The ids of the replies, in order, to these lines sent together.
fn ids(server: &MockServer, lines: &[&str]) -> Vec<u64> {
    let mut input = String::from(INITIALIZE);
    for line in lines {
        input.push('\n');
        input.push_str(line);
    }
    let mut out = Vec::new();
    serve_stdio(server, BufReader::new(input.as_bytes()), &mut out).expect("served");
    let text = String::from_utf8(out).expect("UTF-8");
    let replies = text.lines().skip(1);
    replies
        .map(|line| {
            let reply: Value = serde_json::from_str(line).expect("JSON");
            reply["id"].as_u64().unwrap_or(u64::MAX)
        })
        .collect()
}

#[test]
fn hanging_calls_are_never_answered_but_other_requests_are() {
    for fault in ["hang", "wedged"] {
        assert_eq!(
            ids(&faulty(fault), &[&call(1), LIST, &call(2), PING]),
            [98, 99],
            "{fault}"
        );
    }
    // Calls of tools that do not exist, too.
    let unknown = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nope"}}"#;
    assert_eq!(ids(&faulty("hang"), &[unknown, PING]), [99]);
    assert_eq!(ids(&faulty("none"), &[&call(1), PING]), [1, 99]);
}

#[test]
fn the_first_calls_hang_and_then_the_server_recovers() {
    let server = faulty("recover-after:2");
    assert_eq!(
        ids(&server, &[&call(1), &call(2), &call(3), &call(4)]),
        [3, 4]
    );
}

#[test]
fn slow_calls_are_answered_last() {
    let start = Instant::now();
    assert_eq!(
        ids(&faulty("slow:30"), &[&call(1), LIST, &call(2), PING]),
        [98, 99, 1, 2]
    );
    assert!(start.elapsed() >= Duration::from_millis(30));
}

#[test]
fn a_cancelled_slow_call_is_not_answered() {
    assert_eq!(
        ids(&faulty("slow:20"), &[&call(1), &call(2), &cancel(1), PING]),
        [99, 2]
    );
    // Cancelling an unknown or finished call has no effect.
    assert_eq!(ids(&faulty("slow:20"), &[&call(1), &cancel(7)]), [1]);
    assert_eq!(ids(&faulty("none"), &[&call(1), &cancel(1), PING]), [1, 99]);
}

#[test]
fn reply_after_cancel_replies_after_a_cancellation() {
    assert_eq!(
        ids(
            &faulty("reply-after-cancel:20"),
            &[&call(1), &cancel(1), PING]
        ),
        [99, 1]
    );
}

#[test]
fn answers_that_are_due_much_later_do_not_delay_the_end() {
    let start = Instant::now();
    assert_eq!(ids(&faulty("slow:60000"), &[&call(1), PING]), [99]);
    assert!(start.elapsed() < Duration::from_secs(30));
}

/// A pipe whose writing end is a channel.
struct Pipe(mpsc::Receiver<Vec<u8>>, Vec<u8>);

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.1.is_empty() {
            self.1 = self.0.recv().unwrap_or_default();
        }
        let length = self.1.len().min(buffer.len());
        buffer[..length].copy_from_slice(&self.1[..length]);
        self.1.drain(..length);
        Ok(length)
    }
}

/// Passes on the written bytes.
struct Tell(mpsc::Sender<String>);

impl Write for Tell {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let _ = self.0.send(String::from_utf8_lossy(bytes).into_owned());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn late_answers_are_sent_while_the_input_is_open() {
    let (send, input) = mpsc::channel();
    let (told, output) = mpsc::channel();
    let server = faulty("slow:10");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            serve_stdio(&server, BufReader::new(Pipe(input, Vec::new())), Tell(told))
                .expect("served")
        });
        let next = || {
            output
                .recv_timeout(Duration::from_secs(30))
                .expect("an answer")
        };
        let line = |text: &str| send.send(format!("{text}\n").into_bytes()).expect("sent");
        line(INITIALIZE);
        assert!(next().contains("\"id\":0"));
        line(&call(1));
        assert!(next().contains("\"id\":1"));
        line(&call(2));
        line(PING);
        let both = [next(), next()];
        assert!(
            both.iter().any(|text| text.contains("\"id\":2")),
            "{both:?}"
        );
        drop(send);
    });
}

#[test]
fn faults_of_the_manifest_apply() {
    let text = "mock_server:
  name: x
  fault: hang
  tools:
    - { name: a }
    - { name: b, fault: none }
    - { name: c, fault: \"recover-after:1\" }
";
    let load = || load("x.yml", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    let call = |id: u64, name: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}"}}}}"#
        )
    };
    let lines = [call(1, "a"), call(2, "b"), call(3, "c"), call(4, "c")];
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    assert_eq!(ids(&MockServer::new(load()), &lines), [2, 4]);
    // The command line overrides the manifest.
    assert_eq!(
        ids(&MockServer::new(load().with_fault(MockFault::None)), &lines),
        [1, 2, 3, 4]
    );
    assert_eq!(
        ids(&MockServer::new(load().with_fault(MockFault::Hang)), &lines),
        [] as [u64; 0]
    );
    let wrong = text.replace("hang", "slow");
    let error = mcptest_mock::load("x.yml", wrong.as_bytes())
        .expect_err("no number")
        .to_string();
    assert!(
        error.contains("x.yml:3") && error.contains("slow:<ms>"),
        "{error}"
    );
}

#[test]
fn all_messages_of_clients_are_recorded() {
    let path = std::env::temp_dir().join(format!("mcptest-mock-record-{}", std::process::id()));
    let file = std::fs::File::create(&path).expect("a file");
    let server =
        MockServer::new(load_data("full.yml")).recording(Box::new(file), Redactor::default());
    ids(&server, &[PING, "{", &cancel(1)]);
    let text = std::fs::read_to_string(&path).expect("a record");
    std::fs::remove_file(&path).expect("removed");
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["message"]["method"], "initialize");
    assert_eq!(
        lines[1]["message"],
        serde_json::from_str::<Value>(PING).expect("JSON")
    );
    assert_eq!(lines[2]["unreadable"], "{");
    assert_eq!(
        (&lines[3]["seq"], &lines[3]["message"]["method"]),
        (&4.into(), &"notifications/cancelled".into())
    );
}

#[test]
fn requests_to_the_client_are_sent_one_by_one_over_stdio() {
    let (send, input) = mpsc::channel();
    let (told, output) = mpsc::channel();
    let server = MockServer::new(load_data("behaviour.yml"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            serve_stdio(&server, BufReader::new(Pipe(input, Vec::new())), Tell(told))
                .expect("served")
        });
        let next = || {
            output
                .recv_timeout(Duration::from_secs(30))
                .expect("a line")
        };
        let line = |text: &str| send.send(format!("{text}\n").into_bytes()).expect("sent");
        let answer = |id: &str| line(&format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{{}}}}"#));
        line(&INITIALIZE.replace(
            "\"capabilities\":{}",
            "\"capabilities\":{\"elicitation\":{},\"roots\":{},\"sampling\":{}}",
        ));
        assert!(next().contains("\"id\":0"));
        line(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"asks"}}"#);
        // In rounds, by name within a round; an unexpected answer has no effect.
        for (id, method) in [
            ("ask-1", "roots/list"),
            ("ask-2", "elicitation/create"),
            ("ask-3", "sampling/createMessage"),
        ] {
            let asked = next();
            assert!(asked.contains(id) && asked.contains(method), "{asked}");
            answer("ask-9");
            answer(id);
        }
        let last = next();
        assert!(
            last.contains("\"id\":1") && last.contains("thanks"),
            "{last}"
        );
        drop(send);
    });
}
