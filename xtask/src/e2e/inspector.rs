//! A client that we did not write, the command line of the MCP Inspector, against our mock server.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::processes::Finished;
use super::testbed::{Testbed, expect, report};
use super::{Checks, serving};
use crate::workspace;

pub const WEATHER: &str = "examples/quickstart/servers/weather.yml";
const LIBRARY: &str = "tests/e2e/mock/library.yml";

pub fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    let inspector = Inspector { testbed };
    checks.check("inspector: tools/list of the quickstart's mock", || {
        inspector.lists(
            WEATHER,
            "tools/list",
            "/tools",
            "name",
            &["get_weather", "list_alerts", "subscribe"],
        )?;
        let answer = inspector.ask(WEATHER, &["tools/list"])?;
        expect(&answer, "/tools/0/inputSchema/required", json!(["city"]))?;
        expect(&answer, "/tools/0/annotations/readOnlyHint", true)
    });
    checks.check("inspector: tools/call answers from the template", || {
        let answer = inspector.ask(
            WEATHER,
            &[
                "tools/call",
                "--tool-name=get_weather",
                "--tool-arg",
                "city=Oslo",
            ],
        )?;
        expect(
            &answer,
            "/content/0/text",
            "It is 22 degrees and sunny in Oslo.",
        )?;
        expect(&answer, "/structuredContent/city", "Oslo")?;
        expect(&answer, "/isError", Value::Null)
    });
    checks.check(
        "inspector: tools/call with wrong arguments is an error result",
        || {
            let answer = inspector.ask(
                WEATHER,
                &[
                    "tools/call",
                    "--tool-name=get_weather",
                    "--tool-arg",
                    "town=Oslo",
                ],
            )?;
            expect(&answer, "/isError", true)?;
            let text = answer
                .pointer("/content/0/text")
                .and_then(Value::as_str)
                .unwrap_or_default();
            ensure!(
                text.contains("city") && text.contains("town"),
                "the error says: {text}"
            );
            Ok(())
        },
    );
    checks.check(
        "inspector: resources/list, /read and prompts/list, /get",
        || {
            inspector.lists(
                LIBRARY,
                "resources/list",
                "/resources",
                "uri",
                &["library://rules", "library://logo"],
            )?;
            let answer = inspector.ask(LIBRARY, &["resources/read", "--uri=library://rules"])?;
            expect(&answer, "/contents/0/text", "Be quiet.")?;
            inspector.lists(LIBRARY, "prompts/list", "/prompts", "name", &["recommend"])?;
            let answer = inspector.ask(
                LIBRARY,
                &[
                    "prompts/get",
                    "--prompt-name=recommend",
                    "--prompt-args",
                    "genre=saga",
                ],
            )?;
            expect(&answer, "/messages/0/content/text", "Recommend a saga.")
        },
    );
    checks.check(
        "inspector: what the mock does not have it does not offer",
        || {
            let finished = inspector.run(WEATHER, &["resources/list"])?;
            finished.expect_code(1)?;
            ensure!(
                finished.stderr.contains("-32601"),
                "the error says: {}",
                finished.stderr
            );
            Ok(())
        },
    );
    checks.check("inspector: our mock over HTTP", || {
        let serving = serving::mock(testbed, WEATHER)?.ready()?;
        let http = [serving.url.as_str(), "--transport", "http"];
        let call = [
            "tools/call",
            "--tool-name=get_weather",
            "--tool-arg",
            "city=Oslo",
        ];
        let finished = inspector.with(&http, &call)?;
        finished.expect_code(0)?;
        expect(&report(&finished)?, "/structuredContent/city", "Oslo")
    });
    checks.check("inspector: through the proxy to server-everything", || {
        inspector.through_the_proxy()
    });
}

struct Inspector<'a> {
    testbed: &'a Testbed,
}

impl Inspector<'_> {
    /// The output of the inspector about a mock server.
    fn ask(&self, manifest: &str, request: &[&str]) -> Result<Value> {
        let finished = self.run(manifest, request)?;
        finished.expect_code(0)?;
        report(&finished)
    }

    fn run(&self, manifest: &str, request: &[&str]) -> Result<Finished> {
        // It starts servers with few of our variables, so the mock is recognised by an argument in
        // our folder.
        let manifest = in_folder(self.testbed, manifest)?;
        let (program, manifest) = (
            self.testbed.program.to_string_lossy(),
            manifest.to_string_lossy(),
        );
        self.with(&[&program, "mock", "--tools-from", &manifest], request)
    }

    /// One request to a server: a command with its arguments, or an address.
    fn with(&self, server: &[&str], request: &[&str]) -> Result<Finished> {
        self.testbed.finish(
            Command::new(self.testbed.parts.npm_bin.join("mcp-inspector"))
                .arg("--cli")
                .args(server)
                .arg("--method")
                .args(request),
        )
    }

    fn through_the_proxy(&self) -> Result<()> {
        let folder = self.testbed.scratch("inspector")?;
        let (script, trace) = (folder.join("proxy.sh"), folder.join("trace.json"));
        let server = self.testbed.parts.npm_bin.join("mcp-server-everything");
        // It would take a `--` among the words of a server for its own.
        let line = format!(
            "exec '{}' proxy --record '{}' -- '{}'\n",
            self.testbed.program.display(),
            trace.display(),
            server.display()
        );
        std::fs::write(&script, line)
            .with_context(|| format!("cannot write {}", script.display()))?;
        let (script, server) = (script.to_string_lossy(), server.to_string_lossy());
        let direct = self.with(&[&server], &["tools/list"])?;
        let proxied = self.with(&["sh", &script], &["tools/list"])?;
        ensure!(
            direct.stdout == proxied.stdout,
            "the lists differ\n{}\n{}",
            direct.stdout,
            proxied.stdout
        );
        let call = ["tools/call", "--tool-name=echo", "--tool-arg", "message=hi"];
        let called = self.with(&["sh", &script], &call)?;
        called.expect_code(0)?;
        expect(&report(&called)?, "/content/0/text", "Echo: hi")?;
        let trace: Value = serde_json::from_str(&std::fs::read_to_string(&trace)?)?;
        expect(&trace, "/tool_calls/0/name", "echo")?;
        expect(&trace, "/tool_calls/0/args", json!({"message": "hi"}))
    }

    /// Fails unless the list has exactly these.
    fn lists(
        &self,
        manifest: &str,
        method: &str,
        list: &str,
        key: &str,
        wanted: &[&str],
    ) -> Result<()> {
        let answer = self.ask(manifest, &[method])?;
        let found = answer.pointer(list).and_then(Value::as_array);
        let found: Vec<&str> = found
            .into_iter()
            .flatten()
            .filter_map(|one| one[key].as_str())
            .collect();
        ensure!(
            found == wanted,
            "{method} gives {found:?} instead of {wanted:?}"
        );
        Ok(())
    }
}

/// A copy of a manifest in our folder, by which the server that is given it is recognised.
pub fn in_folder(testbed: &Testbed, manifest: &str) -> Result<PathBuf> {
    let from = workspace::root().join(manifest);
    let to = testbed
        .scratch("manifests")?
        .join(manifest.replace('/', "-"));
    std::fs::copy(&from, &to).with_context(|| format!("cannot copy {manifest}"))?;
    Ok(to)
}
