//! Catalogs of live servers that we did not write, over stdio and HTTP: `doctor` and `diff`.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::Checks;
use super::lab::{Lab, expect, report};

pub fn run(lab: &Lab, checks: &mut Checks<'_>) {
    checks.check("doctor and diff: server-everything over stdio and HTTP", || {
        everything(lab)
    });
    checks.check("doctor and diff: FastMCP over stdio and HTTP", || fastmcp(lab));
}

/// A server of somebody else's on HTTP, ended with the check.
struct Serving(Child, String);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server on a free port. Our client waits until it listens.
fn serve(command: impl FnOnce(u16) -> Command) -> Result<Serving> {
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let child = command(port)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start the server")?;
    Ok(Serving(child, format!("http://127.0.0.1:{port}/mcp")))
}

fn everything(lab: &Lab) -> Result<()> {
    let program = lab.parts.npm_bin.join("mcp-server-everything");
    let program = program.to_string_lossy();
    let serving = serve(|port| {
        let mut command = Command::new(&*program);
        command.arg("streamableHttp").env("PORT", port.to_string());
        command
    })?;
    both_ways(lab, &serving.1, &[&program], 13, true)
}

fn fastmcp(lab: &Lab) -> Result<()> {
    let python = lab.parts.fastmcp_python.to_string_lossy().into_owned();
    let script = crate::workspace::root().join("xtask/src/e2e/fastmcp_server.py");
    let script = script.to_string_lossy();
    let serving = serve(|port| {
        let mut command = Command::new(&python);
        command.args([&*script, &port.to_string()]);
        command
    })?;
    both_ways(lab, &serving.1, &[&python, &script], 7, false)
}

/// Both see the same catalog, and a saved one differs by what was changed in it. `lax`: schemas that can be made strict are there.
fn both_ways(lab: &Lab, url: &str, command: &[&str], tools: usize, lax: bool) -> Result<()> {
    let json = ["--format=json", "--timeout=60s"];
    let examined = |source: &[&str]| -> Result<Value> {
        let finished = lab.run(&[&["doctor"], &json[..], source].concat())?;
        let examined = report(&finished)?;
        expect(&examined, "/servers/0/startable", true)?;
        let listed = examined.pointer("/servers/0/tools").and_then(Value::as_array);
        let found = listed.map_or(0, Vec::len);
        ensure!(found == tools, "{found} tools instead of {tools}\n{}", finished.stdout);
        Ok(examined)
    };
    let started = [&["--"], command].concat();
    let over_http = examined(&["--url", url])?;
    let over_stdio = examined(&started)?;
    ensure!(
        over_http.pointer("/servers/0/tools") == over_stdio.pointer("/servers/0/tools"),
        "the prices differ\nhttp: {over_http}\nstdio: {over_stdio}"
    );

    let same = lab.run(&[&["diff", url, "--timeout=60s"], started.as_slice()].concat())?;
    same.expect_code(0)?;
    ensure!(same.stdout == "no difference\n", "{}", same.stdout);

    // The fixes that `doctor` finds safe make the schemas strict: the catalog is read, written and compared again.
    let fixed = lab.scratch("catalogs")?.join("fixed.json");
    let fixed = fixed.to_string_lossy();
    lab.run(&["doctor", "--url", url, "--fix", &fixed])?.expect_code(0)?;
    let changed = lab.run(&["diff", url, &fixed, "--format=json"])?;
    let changes = report(&changed)?;
    ensure!(
        changes["added"] == serde_json::json!([]) && changes["removed"] == serde_json::json!([]),
        "tools came or went: {changes}"
    );
    let changed = changes["changed"].as_array().is_some_and(|changed| !changed.is_empty());
    ensure!(changed == lax, "what was made strict: {changes}");
    Ok(())
}
