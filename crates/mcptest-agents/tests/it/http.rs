//! Agents behind HTTP.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::{agent, folders, kind, run_in};

/// A server that gives these answers in order, and the requests that it received.
async fn serve(answers: Vec<String>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let task = tokio::spawn(async move {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            let mut chunk = [0; 4096];
            loop {
                let count = stream.read(&mut chunk).await.unwrap();
                request.extend_from_slice(&chunk[..count]);
                let text = String::from_utf8_lossy(&request).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else {
                    continue;
                };
                let length = head
                    .lines()
                    .find_map(|line| {
                        line.to_ascii_lowercase()
                            .strip_prefix("content-length: ")
                            .map(str::to_owned)
                    })
                    .map_or(0, |length| length.parse::<usize>().unwrap());
                if count == 0 || body.len() >= length {
                    requests.push(text);
                    break;
                }
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        requests
    });
    (address, task)
}

fn answer(status: &str, content_type: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn a_request_and_its_answer() {
    let body = r#"{"output": {"text": "Sunny."}, "usage": {"in": 5, "out": 2}, "id": "c-9"}"#;
    let (url, server) = serve(vec![
        answer("200 OK", "application/json", body),
        answer("200 OK", "application/json", body),
    ])
    .await;
    let agent = agent(&format!(
        "{{url: \"{url}/run?x=1\", headers: {{X-Key: \"{{{{api_key}}}}\", X-None: \"{{{{base_url}}}}\"}}, api_key_env: KEY, \
          body: {{input: \"Q: {{{{prompt}}}}\", messages: \"{{{{history}}}}\", servers: \"{{{{mcp_json}}}}\", session: \"{{{{session}}}}\", n: \"{{{{turn}}}}\"}}, \
          response: {{final: output.text, tokens: {{input: usage.in, output: usage.out}}, session: id}}}}"
    ));
    assert!(agent.can_continue());
    let outcome = run_in(&folders(), &agent, &["And tomorrow?"]).await;
    assert_eq!(kind(&outcome), "none", "{:?}", outcome.error);
    assert_eq!(outcome.final_response.as_deref(), Some("Sunny."));
    assert_eq!(outcome.tokens.unwrap().total, Some(14));
    let requests = server.await.unwrap();
    assert!(requests[0].starts_with("POST /run?x=1 HTTP/1.1\r\n"));
    assert!(requests[0].contains("x-key: k-1\r\n") && !requests[0].contains("x-none"));
    let body = |request: &str| -> serde_json::Value {
        serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    assert_eq!(body(&requests[0])["input"], "Q: What is the weather?");
    assert_eq!(body(&requests[0])["session"], serde_json::Value::Null);
    assert_eq!(
        body(&requests[0])["servers"]["mcpServers"]["weather"]["command"],
        "weather-server"
    );
    assert_eq!(body(&requests[1])["session"], "c-9");
    assert_eq!(body(&requests[1])["n"], 2);
    assert_eq!(body(&requests[1])["messages"][1]["content"], "Sunny.");
    assert_eq!(
        body(&requests[1])["messages"][2]["content"],
        "And tomorrow?"
    );
}

#[tokio::test]
async fn a_stream_of_events() {
    let events = "event: delta\ndata: {\"text\": \"Sun\"}\n\nevent: delta\ndata: {\"text\": \"ny\"}\n\n\
                  event: done\ndata: {\"usage\": {\"o\": 3}}\n\n";
    let rules = "response: {final: {where: {event: delta}, take: text, join: true}, \
                 tokens: {output: usage.o}, ended: {where: {event: done}}}";
    for (body, expected) in [(events, "none"), (&events[..60], "no_end")] {
        let (url, _server) = serve(vec![answer("200 OK", "text/event-stream", body)]).await;
        let agent = agent(&format!(
            "{{url: \"{url}\", body: \"{{{{prompt}}}}\", stream: sse, {rules}}}"
        ));
        let outcome = run_in(&folders(), &agent, &[]).await;
        assert_eq!(kind(&outcome), expected, "{:?}", outcome.error);
        if expected == "none" {
            assert_eq!(outcome.final_response.as_deref(), Some("Sunny"));
            assert_eq!(outcome.tokens.unwrap().output, Some(3));
        }
    }
}

#[tokio::test]
async fn statuses_have_their_kinds() {
    for (status, expected) in [
        ("401 Unauthorized", "login"),
        ("403 Forbidden", "login"),
        ("429 Too Many Requests", "rate_limit"),
        ("503 Service Unavailable", "provider"),
        ("404 Not Found", "provider"),
    ] {
        let (url, _server) = serve(vec![answer(status, "text/plain", "no")]).await;
        let agent = agent(&format!("{{url: \"{url}\", body: \"{{{{prompt}}}}\"}}"));
        let outcome = run_in(&folders(), &agent, &[]).await;
        assert_eq!(kind(&outcome), expected, "{status}");
        assert!(!outcome.ended);
    }
    let reported = answer(
        "200 OK",
        "application/json",
        r#"{"error": {"message": "overloaded"}}"#,
    );
    let (url, _server) = serve(vec![reported]).await;
    let agent = agent(&format!(
        "{{url: \"{url}\", body: \"{{{{prompt}}}}\", response: {{final: text, error: error.message}}}}"
    ));
    assert_eq!(kind(&run_in(&folders(), &agent, &[]).await), "provider");
    let nobody = crate::support::agent("{url: \"http://127.0.0.1:9/\", body: x}");
    assert_eq!(kind(&run_in(&folders(), &nobody, &[]).await), "not_started");
}
