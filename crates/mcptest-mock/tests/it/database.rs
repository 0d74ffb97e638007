//! State: tables in a manifest, and tools that are statements on them.

use mcptest_mock::{MockServer, load};
use serde_json::{Value, json};

use crate::INITIALIZE;

const SHOP: &str = r#"
mock_server:
  name: shop
  database:
    schema: |
      CREATE TABLE orders (id TEXT PRIMARY KEY, status TEXT NOT NULL, total REAL, tags TEXT);
      CREATE TABLE log (n INTEGER PRIMARY KEY, order_id TEXT REFERENCES orders (id), note TEXT);
    rows:
      log: [{ n: 1, order_id: A1, note: created }]
      orders:
        - { id: A1, status: open, total: 12.5, tags: [new, "gift"] }
        - { id: A2, status: shipped, total: 3 }
  tools:
    - name: cancel_order
      input_schema: { type: object, properties: { id: { type: string } }, required: [id] }
      sql: "UPDATE orders SET status = 'cancelled' WHERE id = :id AND status = 'open' RETURNING id, status"
      expect_rows: 1
      error: "order ${args.id} cannot be cancelled"
    - name: note
      input_schema: { type: object, properties: { id: { type: string }, note: {} }, required: [id] }
      sql:
        - "UPDATE orders SET status = status || '*' WHERE id = :id"
        - "INSERT INTO log (order_id, note) VALUES (:id, :note)"
      expect_rows: [{ ">=": 1 }, null]
    - name: raw_note
      input_schema: { type: object, properties: { id: {}, note: {} } }
      sql: "INSERT INTO log (order_id, note) VALUES (:id, :note)"
    - name: orders
      input_schema: { type: object, properties: { status: {} } }
      sql: "SELECT id, status, total, tags FROM orders WHERE status = :status OR :status IS NULL ORDER BY id"
    - name: notes
      sql: "SELECT n, order_id, note, typeof(note) AS kind FROM log ORDER BY n"
    - name: endless
      sql: "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT max(x) AS m FROM c"
    - name: many
      sql: "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 1001) SELECT x FROM c"
    - name: plain
      response: hello
"#;

pub(crate) fn shop() -> MockServer {
    let manifest = load("shop.yml", SHOP.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    MockServer::new(manifest)
}

/// Calls on one session.
struct Client<'a> {
    server: &'a MockServer,
    session: mcptest_mock::Session,
    meta: Option<Value>,
}

impl<'a> Client<'a> {
    fn new(server: &'a MockServer) -> Self {
        let mut session = server.session();
        server.handle_line(&mut session, INITIALIZE.as_bytes(), &mut Vec::new());
        Self {
            server,
            session,
            meta: None,
        }
    }

    /// A client of revision 2026-07-28.
    fn stateless(server: &'a MockServer) -> Self {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
        });
        Self {
            server,
            session: server.session(),
            meta: Some(meta),
        }
    }

    fn request(&mut self, method: &str, mut params: Value) -> Value {
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut out = Vec::new();
        let line = message.to_string();
        self.server
            .handle_line(&mut self.session, line.as_bytes(), &mut out);
        serde_json::from_slice(&out).expect("a reply")
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let reply = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        reply["result"].clone()
    }

    fn rows(&mut self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments)["structuredContent"]["rows"].clone()
    }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}

#[test]
fn a_statement_changes_the_session_and_returns_its_rows() {
    let server = shop();
    for mut client in [Client::new(&server), Client::stateless(&server)] {
        let done = client.call("cancel_order", json!({"id": "A1"}));
        let rows = json!({"rows": [{"id": "A1", "status": "cancelled"}]});
        assert_eq!(done["structuredContent"], rows);
        assert_eq!(text(&done), rows.to_string());
        assert_eq!(done["isError"], Value::Null);
        // Not twice, and not a shipped one.
        for id in ["A1", "A2", "x' OR 1=1 --"] {
            let failed = client.call("cancel_order", json!({"id": id}));
            assert_eq!(failed["isError"], true);
            assert_eq!(text(&failed), format!("order {id} cannot be cancelled"));
            assert_eq!(failed.get("structuredContent"), None);
        }
        let all = client.rows("orders", json!({}));
        assert_eq!(
            all,
            json!([
                {"id": "A1", "status": "cancelled", "total": 12.5, "tags": "[\"new\",\"gift\"]"},
                {"id": "A2", "status": "shipped", "total": 3.0, "tags": null},
            ])
        );
        let invalid = client.call("cancel_order", json!({}));
        assert!(text(&invalid).contains("/id: is required"), "{invalid}");
        assert_eq!(text(&client.call("plain", json!({}))), "hello");
    }
}

#[test]
fn every_session_has_its_own_copy() {
    let server = shop();
    let (mut one, mut two) = (Client::new(&server), Client::new(&server));
    one.call("cancel_order", json!({"id": "A1"}));
    let open = |client: &mut Client<'_>| client.rows("orders", json!({"status": "open"}));
    assert_eq!(open(&mut one), json!([]));
    assert_eq!(open(&mut two)[0]["id"], "A1");
    assert_eq!(open(&mut Client::new(&server))[0]["id"], "A1");
}

#[test]
fn a_call_that_fails_changes_nothing() {
    let server = shop();
    let mut client = Client::new(&server);
    // The second statement violates the foreign key, the first one would have matched no row.
    let failed = client.call("note", json!({"id": "A9", "note": "x"}));
    assert_eq!(text(&failed), "expected at least 1 row, found 0");
    let failed = client.call("raw_note", json!({"id": "A9"}));
    assert_eq!(text(&failed), "FOREIGN KEY constraint failed");
    let done = client.call("note", json!({"id": "A1", "note": "x"}));
    assert_eq!(done["structuredContent"], json!({"rows": [], "changed": 2}));
    assert_eq!(
        client.rows("orders", json!({"status": "open*"}))[0]["id"],
        "A1"
    );
    assert_eq!(
        client.rows("notes", json!({})).as_array().map(Vec::len),
        Some(2)
    );
}

#[test]
fn arguments_are_bound_by_type() {
    let server = shop();
    let mut client = Client::new(&server);
    let values = [
        (json!(7), "integer", json!("7")),
        (json!(1.5), "real", json!("1.5")),
        (json!(true), "integer", json!("1")),
        (json!("it's"), "text", json!("it's")),
        (json!(null), "null", json!(null)),
        (json!({"a": [1]}), "text", json!("{\"a\":[1]}")),
    ];
    // A column of text stores numbers as text.
    for (value, _, stored) in &values {
        client.call("raw_note", json!({"id": "A1", "note": value}));
        let rows = client.rows("notes", json!({}));
        let last = rows.as_array().and_then(|rows| rows.last()).expect("a row");
        assert_eq!(&last["note"], stored, "{value}");
    }
}

#[test]
fn results_and_steps_are_bounded() {
    let server = shop();
    let mut client = Client::new(&server);
    let failed = client.call("many", json!({}));
    assert_eq!(
        text(&failed),
        "the result is too large: it has more than 1000 rows"
    );
    let failed = client.call("endless", json!({}));
    assert_eq!(text(&failed), "the statement takes too long");
    // The session is still usable.
    assert_eq!(
        client.rows("orders", json!({"status": "open"}))[0]["id"],
        "A1"
    );
}

#[test]
fn queries_need_the_token_and_change_nothing() {
    let server = shop().with_query_token(Some("secret".to_owned()));
    let mut client = Client::new(&server);
    client.call("cancel_order", json!({"id": "A1"}));
    let query = |client: &mut Client<'_>, token: &str, sql: &str| {
        client.request(
            "mcptest/query",
            json!({"token": token, "sql": sql, "args": {"id": "A1"}}),
        )
    };
    let status = "SELECT status FROM orders WHERE id = :id";
    let reply = query(&mut client, "secret", status);
    assert_eq!(reply["result"]["rows"], json!([{"status": "cancelled"}]));
    for (token, sql) in [("wrong", status), ("", status)] {
        assert_eq!(query(&mut client, token, sql)["error"]["code"], -32601);
    }
    for sql in [
        "DELETE FROM orders",
        "UPDATE orders SET status = 'x' RETURNING id",
        "PRAGMA table_info(orders)",
        "ATTACH 'x.db' AS x",
        "SELECT 1 AS a; DELETE FROM orders",
        "SELECT random() AS r",
        "",
        "nonsense",
    ] {
        let reply = query(&mut client, "secret", sql);
        assert_eq!(reply["error"]["code"], -32602, "{sql}: {reply}");
    }
    assert_eq!(
        client.rows("orders", json!({})).as_array().map(Vec::len),
        Some(2)
    );
    // Without a token the method does not exist, and it is never listed.
    let plain = shop();
    let reply = query(&mut Client::new(&plain), "", status);
    assert_eq!(reply["error"]["code"], -32601);
    let listed = Client::new(&server).request("tools/list", json!({}));
    assert!(!listed.to_string().contains("query"), "{listed}");
}

#[test]
fn a_file_is_shared_by_all_sessions_that_name_it() {
    let dir = std::env::temp_dir().join(format!("mcptest-mock-state-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a folder");
    let file = dir.join("shop.db");
    // As two processes would.
    let (first, second) = (
        shop().with_state_file(Some(file.clone())),
        shop().with_state_file(Some(file.clone())),
    );
    let (mut one, mut two) = (Client::new(&first), Client::new(&second));
    let all = |client: &mut Client<'_>| client.rows("orders", json!({"status": "open"}));
    assert_eq!(all(&mut two)[0]["id"], "A1");
    one.call("cancel_order", json!({"id": "A1"}));
    assert_eq!(all(&mut two), json!([]));
    assert_eq!(all(&mut Client::new(&second)), json!([]));
    // Both write at the same time.
    std::thread::scope(|scope| {
        for server in [&first, &second] {
            scope.spawn(move || {
                let mut client = Client::new(server);
                for _ in 0..20 {
                    let done = client.call("note", json!({"id": "A1", "note": "x"}));
                    assert_eq!(done["isError"], Value::Null, "{done}");
                }
            });
        }
    });
    let notes = two.rows("notes", json!({}));
    assert_eq!(notes.as_array().map(Vec::len), Some(41));
    drop((one, two));
    std::fs::remove_dir_all(&dir).expect("removed");
}

/// The line, column and message of every problem.
fn problems(text: &str) -> Vec<(usize, usize, String)> {
    let diagnostics = load("m.yml", text.as_bytes()).expect_err("a bad manifest");
    let problems = diagnostics.0.iter().map(|diagnostic| {
        let (line, column) = diagnostic.location().1.unwrap_or_default();
        (line, column, diagnostic.message.clone())
    });
    problems.collect()
}

fn manifest(database: &str, tool: &str) -> String {
    format!(
        "mock_server:\n  name: x\n  database:\n{database}\n  tools:\n    - name: t\n      input_schema: {{ type: object, properties: {{ id: {{}} }} }}\n{tool}\n"
    )
}

const TABLE: &str = "    schema: CREATE TABLE orders (id TEXT PRIMARY KEY, status TEXT)";

#[test]
fn mistakes_are_found_when_the_manifest_is_loaded() {
    let tool = "      sql: SELECT id FROM orders";
    let cases = [
        (
            "    schema: CREATE TABEL x (a)",
            tool,
            4,
            "near \"TABEL\": syntax error",
        ),
        ("    schema: SELECT 1", tool, 4, "Execute returned results"),
        ("    schema: \"\"", tool, 4, "the schema creates nothing"),
        (
            "    schema: ATTACH 'x.db' AS x",
            tool,
            4,
            "a schema can only create tables",
        ),
        (
            "    schema: PRAGMA journal_mode = OFF",
            tool,
            4,
            "a schema can only create tables",
        ),
    ];
    for (database, tool, line, words) in cases {
        let found = problems(&manifest(database, tool));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, line, "{found:?}");
        assert!(found[0].2.contains(words), "{found:?}");
    }
    let rows = [
        (
            "{ order: [] }",
            "the schema has no table `order`; did you mean `orders`?",
        ),
        (
            "{ orders: [{ id: A, sttus: x }] }",
            "table `orders` has no column `sttus`; did you mean `status`?",
        ),
        (
            "{ orders: [{ id: A }, { id: A }] }",
            "UNIQUE constraint failed: orders.id",
        ),
    ];
    for (rows, words) in rows {
        let found = problems(&manifest(&format!("{TABLE}\n    rows: {rows}"), tool));
        assert_eq!((found.len(), found[0].0), (1, 5), "{found:?}");
        assert_eq!(found[0].2, words);
    }
    let statements = [
        ("SELECT id FROM ordrs", "no such table: ordrs"),
        ("SELECT nam FROM orders", "no such column: nam"),
        (
            "SELECT id FROM orders WHERE id = :di",
            "`:di` is not a property of `input_schema`; did you mean `:id`?",
        ),
        (
            "SELECT id FROM orders WHERE id = ?",
            "`?` has no name: write `:name`",
        ),
        (
            "SELECT id FROM orders; DELETE FROM orders",
            "a string is one statement: write several statements as a list",
        ),
        (
            "SELECT id, id FROM orders",
            "two columns of the result are named `id`: rename one with `AS`",
        ),
        (
            "DROP TABLE orders",
            "a tool can only query, insert, update and delete rows",
        ),
        (
            "PRAGMA foreign_keys = OFF",
            "a tool can only query, insert, update and delete rows",
        ),
        (
            "BEGIN",
            "transactions are not available: every call is one transaction",
        ),
        (
            "SELECT random() AS n",
            "the function `random` is not available in a mock",
        ),
        (
            "SELECT load_extension('x') AS n",
            "the function `load_extension` is not available in a mock",
        ),
    ];
    for (sql, words) in statements {
        let found = problems(&manifest(TABLE, &format!("      sql: \"{sql}\"")));
        assert_eq!(
            (found.len(), found[0].0, found[0].1),
            (1, 8, 12),
            "{sql}: {found:?}"
        );
        assert_eq!(found[0].2, words, "{sql}");
    }
    let found = problems(&manifest(
        TABLE,
        "      sql: [SELECT id FROM orders, nonsense]",
    ));
    assert_eq!((found.len(), found[0].1), (1, 36), "{found:?}");
}

#[test]
fn keys_that_do_not_belong_together_are_reported() {
    let cases = [
        ("      expect_rows: 1", "`expect_rows` needs `sql`"),
        ("      error: x", "`error` needs `sql`"),
        (
            "      sql: [SELECT 1 AS a, SELECT 2 AS a]\n      expect_rows: 1",
            "with several statements, write a list with a number of rows for each",
        ),
        (
            "      sql: [SELECT 1 AS a, SELECT 2 AS a]\n      expect_rows: [1]",
            "1 numbers of rows for 2 statements: write one for each, `null` for any",
        ),
        (
            "      sql: SELECT 1 AS a\n      response: x",
            "the rows of `sql` are the answer: either `sql` or an answer, not both",
        ),
        (
            "      sql: SELECT 1 AS a\n      error: \"${id}\"",
            "`${id}` is not a template: only arguments are available here, write `${args.id}`; for a literal `${` write `$${`",
        ),
    ];
    for (tool, words) in cases {
        let found = problems(&manifest(TABLE, tool));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].2, words);
    }
    let found = problems("mock_server:\n  name: x\n  tools: [{ name: t, sql: SELECT 1 AS a }]\n");
    assert_eq!(found[0].2, "`sql` needs a `database`");
}
