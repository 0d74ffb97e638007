//! HTTP proxies of the environment, with a proxy that other people made, which wants a name and a
//! password.

use std::process::Command;

use anyhow::{Result, ensure};

use super::Checks;
use super::providers::{Addresses, suite_command};
use super::stand_ins::{StandIn, StandIns};
use super::testbed::{Testbed, expect, report};
use crate::workspace;

const NAME: &str = "corporate";
const PASSWORD: &str = "pr0xy-w0rd-that-nobody-sees";

pub fn run(testbed: &Testbed, stand_ins: &StandIns<'_>, checks: &mut Checks<'_>) {
    checks.check(
        "proxies: models in every dialect through proxy-chain",
        || models(testbed, stand_ins),
    );
    checks.check(
        "proxies: FastMCP over TLS through a tunnel of proxy-chain",
        || tunnel(testbed),
    );
}

fn start(testbed: &Testbed) -> Result<StandIn> {
    let mut command = Command::new("node");
    command
        .arg(workspace::root().join("xtask/src/e2e/proxy_server.js"))
        .arg(testbed.parts.proxy_chain()?)
        .args([NAME, PASSWORD]);
    StandIn::with_printed_address(&mut command)
}

/// The value of a variable that names the proxy.
fn with_password(proxy: &StandIn, password: &str) -> String {
    format!("http://{NAME}:{password}@{}", proxy.host())
}

fn models(testbed: &Testbed, stand_ins: &StandIns<'_>) -> Result<()> {
    let (aimock, proxy) = (stand_ins.aimock()?, start(testbed)?);
    let run = |password: &str| {
        let mut command = suite_command(testbed, &Addresses::plain(aimock), "tokens are counted")?;
        testbed.finish(
            command
                .env("HTTP_PROXY", with_password(&proxy, password))
                .env("MCPTEST_PROXY_LOOPBACK", "1"),
        )
    };
    let finished = run(PASSWORD)?;
    finished.expect_code(0)?;
    ensure!(!finished.stdout.contains(PASSWORD) && !finished.stderr.contains(PASSWORD));
    // That it went through the proxy at all: it does not take another password.
    let refused = run("wrong-w0rd")?;
    refused.expect_code(2)?;
    let words =
        "refused with 407 Proxy Authentication Required; it rejects the name and the password";
    ensure!(refused.stdout.contains(words), "{}", refused.stdout);
    ensure!(!refused.stdout.contains("wrong-w0rd") && !refused.stderr.contains("wrong-w0rd"));
    Ok(())
}

fn tunnel(testbed: &Testbed) -> Result<()> {
    let folder = testbed.scratch("certificates")?;
    let made = Command::new(testbed.parts.certificates_python()?)
        .args([
            "-m",
            "trustme",
            "--quiet",
            "--identities",
            "localhost",
            "--dir",
        ])
        .arg(&folder)
        .status()?;
    ensure!(made.success(), "no certificates: {made}");
    let server = StandIn::that_listens(testbed, "fastmcp-tls", |port| {
        let mut command = Command::new(&testbed.parts.fastmcp_python);
        command
            .arg(workspace::root().join("xtask/src/e2e/fastmcp_server.py"))
            .arg(port.to_string())
            // Arguments with the testbed's folder are a mark of what our program left behind.
            .args(["server.pem", "server.key"])
            .current_dir(&folder);
        command
    })?;
    let url = server.url.replace("http://127.0.0.1", "https://localhost");
    let suite = folder.join("tunnel.yml");
    std::fs::write(
        &suite,
        format!(
            "servers: {{library: {{url: '{url}/mcp'}}}}
tools:
  - {{name: t, server: library, tool: find_book, args: {{title: Emma}}, expect: [{{result.structuredContent.year: 1815}}]}}
"
        ),
    )?;
    let proxy = start(testbed)?;
    let run = |password: &str| {
        let mut command = testbed.mcptest(&["run", &suite.to_string_lossy(), "--reporter=json"])?;
        testbed.finish(
            command
                .env("HTTPS_PROXY", with_password(&proxy, password))
                .env("MCPTEST_PROXY_LOOPBACK", "1")
                .env("SSL_CERT_FILE", folder.join("client.pem")),
        )
    };
    let finished = run(PASSWORD)?;
    finished.expect_code(0)?;
    expect(&report(&finished)?, "/tests/0/verdict", "pass")?;
    let refused = run("wrong-w0rd")?;
    refused.expect_code(2)?;
    ensure!(
        refused.stdout.contains("refused with 407") && !refused.stdout.contains("wrong-w0rd"),
        "{}",
        refused.stdout
    );
    Ok(())
}
