//! Catalogs of live servers that we did not write, over stdio and HTTP: `doctor` and `diff`.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::testbed::{Testbed, expect, report};
use super::{Checks, serving};

pub fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    checks.check(
        "doctor and diff: server-everything over stdio and HTTP",
        || everything(testbed),
    );
    checks.check("doctor and diff: FastMCP over stdio and HTTP", || {
        fastmcp(testbed)
    });
}

fn everything(testbed: &Testbed) -> Result<()> {
    let (command, serving) = serving::everything(testbed)?;
    both_ways(testbed, &serving.url, &words(&command), 13, true)
}

fn fastmcp(testbed: &Testbed) -> Result<()> {
    let (command, serving) = serving::fastmcp(testbed)?;
    both_ways(testbed, &serving.url, &words(&command), 7, false)
}

fn words(command: &[String]) -> Vec<&str> {
    command.iter().map(String::as_str).collect()
}

/// Both see the same catalog, and a saved one differs by what was changed in it. `lax`: schemas
/// that can be made strict are there.
fn both_ways(
    testbed: &Testbed,
    url: &str,
    command: &[&str],
    tools: usize,
    lax: bool,
) -> Result<()> {
    let json = ["--format=json", "--timeout=60s"];
    let examined = |source: &[&str]| -> Result<Value> {
        let finished = testbed.run(&[&["doctor"], &json[..], source].concat())?;
        let examined = report(&finished)?;
        expect(&examined, "/servers/0/startable", true)?;
        let listed = examined
            .pointer("/servers/0/tools")
            .and_then(Value::as_array);
        let found = listed.map_or(0, Vec::len);
        ensure!(
            found == tools,
            "{found} tools instead of {tools}\n{}",
            finished.stdout
        );
        Ok(examined)
    };
    let started = [&["--"], command].concat();
    let over_http = examined(&["--url", url])?;
    let over_stdio = examined(&started)?;
    ensure!(
        over_http.pointer("/servers/0/tools") == over_stdio.pointer("/servers/0/tools"),
        "the prices differ\nhttp: {over_http}\nstdio: {over_stdio}"
    );

    let same = testbed.run(&[&["diff", url, "--timeout=60s"], started.as_slice()].concat())?;
    same.expect_code(0)?;
    ensure!(same.stdout == "no difference\n", "{}", same.stdout);

    // The fixes that `doctor` finds safe make the schemas strict: the catalog is read, written and
    // compared again.
    let fixed = testbed.scratch("catalogs")?.join("fixed.json");
    let fixed = fixed.to_string_lossy();
    testbed
        .run(&["doctor", "--url", url, "--fix", &fixed])?
        .expect_code(0)?;
    let changed = testbed.run(&["diff", url, &fixed, "--format=json"])?;
    let changes = report(&changed)?;
    ensure!(
        changes["added"] == serde_json::json!([]) && changes["removed"] == serde_json::json!([]),
        "tools came or went: {changes}"
    );
    let changed = changes["changed"]
        .as_array()
        .is_some_and(|changed| !changed.is_empty());
    ensure!(changed == lax, "what was made strict: {changes}");
    Ok(())
}
