//! Servers behind authorization, with a certified authorization server (npm `oidc-provider`) and an
//! MCP server on the official SDK that accepts its JWTs: client credentials as CI uses them, a
//! login in Chromium, tokens that end in the middle of a run.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::processes::Finished;
use super::stand_ins::StandIn;
use super::testbed::{Testbed, expect, report};
use super::{Checks, html, parts};
use crate::workspace;

/// The authorization server, and the SDK of the server.
const PACKAGES: [&str; 2] = ["oidc-provider@9.13.3", "@modelcontextprotocol/sdk@1.32.2"];
const SCRIPTS: [&str; 2] = ["oauth_servers.mjs", "oauth_agent.mjs"];

const SECRET: &str = "s3cret of-ci/with:odd+chars%";

pub fn run(testbed: &Testbed, checks: &mut Checks<'_>) {
    checks.check(
        "oauth: client credentials with a secret and with keys",
        || client_credentials(testbed),
    );
    checks.check("oauth: tokens end in the middle of runs", || {
        expiry(testbed)
    });
    checks.check("oauth: a login in Chromium, until it is ended", || {
        login(testbed)
    });
    checks.check("oauth: a login that is denied in Chromium", || {
        denied(testbed)
    });
}

/// The servers of one check.
struct Servers {
    stand_in: StandIn,
    folder: PathBuf,
    packages: PathBuf,
}

impl Servers {
    fn start(testbed: &Testbed, name: &str, ttl: u32) -> Result<Self> {
        let packages = workspace::target_directory()?.join("e2e/oauth");
        parts::npm(&packages, &PACKAGES)?;
        for script in SCRIPTS {
            let source = workspace::root().join("xtask/src/e2e").join(script);
            std::fs::copy(source, packages.join(script))?;
        }
        let folder = testbed.scratch(name)?;
        let settings = json!({"ttl": ttl, "secret": SECRET, "keys": folder});
        let mut command = Command::new("node");
        command
            .current_dir(&packages)
            .arg("oauth_servers.mjs")
            // Arguments with the testbed's folder are a mark of what our program left behind.
            .env("E2E_OAUTH", settings.to_string());
        Ok(Self {
            stand_in: StandIn::with_printed_address(&mut command)?,
            folder,
            packages,
        })
    }

    /// The address of the MCP server.
    fn url(&self) -> String {
        format!("{}/mcp", self.stand_in.url)
    }

    fn journal(&self) -> Result<Value> {
        self.stand_in.get("/journal")
    }

    /// Writes a suite with this authorization.
    fn suite(&self, auth: &str, tests: &str) -> Result<String> {
        let file = self.folder.join("suite.yml");
        let text = format!(
            "servers:\n  guarded:\n    url: {}\n    auth: {auth}\n{tests}",
            self.url()
        );
        std::fs::write(&file, text)?;
        Ok(file.to_string_lossy().into_owned())
    }

    fn mcptest(&self, testbed: &Testbed, arguments: &[&str]) -> Result<Finished> {
        let mut command = testbed.mcptest(arguments)?;
        let finished = testbed.finish(self.environment(&mut command))?;
        self.check(&finished)?;
        Ok(finished)
    }

    fn environment<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("CI_CLIENT_SECRET", SECRET)
            .env("MCPTEST_AUTH_DIR", self.folder.join("logins"))
            .env("MCPTEST_AUTH_KEYCHAIN", "0")
    }

    /// Fails if an output has a token (all are JWTs) or the secret.
    fn check(&self, finished: &Finished) -> Result<()> {
        for text in [&finished.stdout, &finished.stderr] {
            ensure!(!text.contains("eyJ"), "an output has a token: {text}");
            ensure!(!text.contains(SECRET), "an output has the secret: {text}");
        }
        Ok(())
    }
}

fn call(name: &str, tool: &str, answer: &str) -> String {
    format!(
        "  - {{name: {name}, server: guarded, tool: {tool}, serial: true, \
         expect: [{{\"result.content[0].text\": {{contains: {answer}}}}}]}}\n"
    )
}

fn client_credentials(testbed: &Testbed) -> Result<()> {
    let servers = Servers::start(testbed, "oauth-ci", 600)?;
    let clients = [
        ("ci-secret", "client_secret_env: CI_CLIENT_SECRET"),
        ("ci-ES256", "private_key_file: ES256.pem"),
        ("ci-RS256", "private_key_file: RS256.pem"),
        ("ci-EdDSA", "private_key_file: EdDSA.pem"),
    ];
    for (client, proof) in clients {
        let auth = format!("{{type: client_credentials, client_id: {client}, {proof}}}");
        let mut tests = "tools:\n".to_owned();
        tests += &call("who", "who_am_i", client);
        // A server that repeats the token.
        tests += &call("leak", "show_token", "your token is");
        // The server asks for a further scope.
        tests += &call("write", "write_note", client);
        let suite = servers.suite(&auth, &tests)?;
        let finished = servers.mcptest(testbed, &["run", &suite, "--reporter=json"])?;
        finished.expect_code(0).with_context(|| client.to_owned())?;
        expect(&report(&finished)?, "/verdict", "pass")?;
    }
    // The settings are those of CI: a wrong secret is an error, not a failure.
    let auth = "{type: client_credentials, client_id: ci-secret, client_secret_env: HOME}";
    let suite = servers.suite(auth, &format!("tools:\n{}", call("who", "who_am_i", "x")))?;
    let finished = servers.mcptest(testbed, &["run", &suite, "--reporter=json"])?;
    finished.expect_code(2)?;
    expect(&report(&finished)?, "/tests/0/runs/0/error/kind", "auth")?;
    let doctor = servers.mcptest(testbed, &["doctor", "--suite", &suite])?;
    ensure!(
        doctor.stdout.contains("`invalid_client`"),
        "{}",
        doctor.stdout
    );
    Ok(())
}

/// The life of a token in seconds, where it must end during the runs. On a busy machine, one of 2 s
/// ended before its first use.
const TOKEN_LIFE: u32 = 4;

/// Direct tests, a scripted model and an agent under test, each longer than a token lives.
fn expiry(testbed: &Testbed) -> Result<()> {
    let servers = Servers::start(testbed, "oauth-expiry", TOKEN_LIFE)?;
    let auth =
        "{type: client_credentials, client_id: ci-secret, client_secret_env: CI_CLIENT_SECRET}";
    let mut tests = "tools:\n".to_owned();
    for number in 1..=4 {
        tests += &call(&format!("wait {number}"), "wait", "ci-secret");
    }
    let calls = "{calls: [{tool: wait, args: {}}]}";
    let _ = write!(
        tests,
        "agents:
  - name: model
    model: builtin/scripted
    servers: [guarded]
    prompt: Wait.
    script: [[{calls}, {calls}, {calls}, {calls}, {{say: Done.}}]]
    expect: [{{\"tool_results[3].is_error\": false}}, {{\"tool_results[3].content[0].text\": ci-secret}}]
  - name: agent
    servers: [guarded]
    prompt: wait wait wait wait who_am_i
    expect: [{{\"tool_calls[4].name\": who_am_i}}, {{final_response: {{contains: ci-secret}}}}]
    agent:
      name: sdk-agent
      command: [node, \"{}/oauth_agent.mjs\", \"{{{{prompt}}}}\"]
      env: {{MCP_CONFIG: \"{{{{mcp_json_file}}}}\"}}
      output: {{format: json, final: final}}
",
        servers.packages.display()
    );
    let suite = servers.suite(auth, &tests)?;
    let finished = servers.mcptest(testbed, &["run", &suite, "--reporter=json", "--jobs=1"])?;
    finished.expect_code(0)?;
    expect(&report(&finished)?, "/verdict", "pass")?;
    let journal = servers.journal()?;
    ensure!(
        journal["calls"] == 13,
        "no call was lost or repeated: {journal}"
    );
    let tokens = journal["tokens"].as_array().map_or(0, Vec::len);
    ensure!(tokens >= 3, "the tokens of 12 s and more: {journal}");
    Ok(())
}

/// A folder with an `xdg-open` that is a person at Chromium.
fn browser(testbed: &Testbed, servers: &Servers, answer: &str) -> Result<PathBuf> {
    let packages = html::packages()?;
    let source = workspace::root().join("xtask/src/e2e/oauth_login.mjs");
    std::fs::copy(source, packages.join("oauth_login.mjs"))?;
    let folder = testbed.scratch(&format!("browser-{answer}"))?;
    let program = folder.join("xdg-open");
    // It may need longer to close than mcptest, which does not wait for it.
    let script = format!(
        "#!/bin/sh\ncd '{}'\nE2E_CHROMIUM='{}' exec env -u MCPTEST_E2E_MARK \
         node oauth_login.mjs \"$1\" {answer} > '{}' 2>&1\n",
        packages.display(),
        html::chromium()?.display(),
        servers.folder.join("browser.txt").display(),
    );
    std::fs::write(&program, script)?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    Ok(folder)
}

/// Logs in; mcptest opens the browser itself.
fn log_in(testbed: &Testbed, servers: &Servers, browser: &Path, more: &[&str]) -> Result<Finished> {
    let suite = servers.folder.join("suite.yml");
    let suite = suite.to_string_lossy();
    let mut command = testbed.mcptest(&["auth", "login", "guarded", "--suite", &suite])?;
    let path = std::env::var("PATH").unwrap_or_default();
    command
        .args(more)
        .env("PATH", format!("{}:{path}", browser.display()));
    let finished = testbed.finish(servers.environment(&mut command))?;
    servers.check(&finished)?;
    Ok(finished)
}

fn login(testbed: &Testbed) -> Result<()> {
    let servers = Servers::start(testbed, "oauth-login", TOKEN_LIFE)?;
    let mut tests = "tools:\n".to_owned();
    for number in 1..=9 {
        tests += &call(&format!("wait {number}"), "wait", "ada");
    }
    tests += &call("leak", "show_token", "your token is");
    let suite = servers.suite("{type: authorization_code}", &tests)?;
    let run = ["run", &suite, "--reporter=json"];
    let before = servers.mcptest(testbed, &run)?;
    before.expect_code(2)?;
    ensure!(
        before.stdout.contains("run `mcptest auth login guarded`"),
        "{}",
        before.stdout
    );
    let browser = browser(testbed, &servers, "")?;
    let logged_in = log_in(testbed, &servers, &browser, &[])?;
    logged_in.expect_code(0)?;
    ensure!(logged_in.stdout.contains("it is refreshed without you"));
    // Its token ends several times; each refresh token can be used once.
    let finished = servers.mcptest(testbed, &run)?;
    finished.expect_code(0)?;
    let journal = servers.journal()?;
    let of = |grant: &str| {
        let tokens = journal["tokens"].as_array();
        tokens.map_or(0, |tokens| {
            tokens.iter().filter(|one| *one == grant).count()
        })
    };
    ensure!(
        of("authorization_code") == 1 && of("refresh_token") >= 2,
        "{journal}"
    );
    // A further scope needs a further login, whose command the error names.
    let write = servers.suite(
        "{type: authorization_code}",
        &format!("tools:\n{}", call("write", "write_note", "ada")),
    )?;
    let refused = servers.mcptest(testbed, &["run", &write, "--reporter=json"])?;
    refused.expect_code(2)?;
    let command = "run `mcptest auth login guarded --scope write`";
    ensure!(refused.stdout.contains(command), "{}", refused.stdout);
    log_in(testbed, &servers, &browser, &["--scope", "write"])?.expect_code(0)?;
    let accepted = servers.mcptest(testbed, &["run", &write, "--reporter=json"])?;
    accepted.expect_code(0)?;
    // The client was registered once.
    ensure!(servers.journal()?["clients"].as_array().map(Vec::len) == Some(1));
    let out = servers.mcptest(testbed, &["auth", "logout", "--url", &servers.url()])?;
    ensure!(
        out.stdout.contains("its tokens are revoked and deleted"),
        "{}",
        out.stdout
    );
    servers.mcptest(testbed, &["run", &write])?.expect_code(2)
}

fn denied(testbed: &Testbed) -> Result<()> {
    let servers = Servers::start(testbed, "oauth-denied", 60)?;
    servers.suite("{type: authorization_code}", "tools: []\n")?;
    let browser = browser(testbed, &servers, "deny")?;
    let finished = log_in(testbed, &servers, &browser, &[])?;
    finished.expect_code(2)?;
    let reason = "the authorization server refused the login: `access_denied`";
    ensure!(finished.stderr.contains(reason), "{}", finished.stderr);
    ensure!(finished.stderr.contains("step") || finished.stderr.contains(" 1. ok"));
    Ok(())
}
