//! The installation, the command and the outputs of each producer.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::super::testbed::Testbed;
use super::{Output, mcp_servers};
use crate::workspace;

/// A program that writes logs.
pub struct Producer {
    pub name: &'static str,
    /// The start of the names of its fixtures, where a format has several producers.
    pub prefix: &'static str,
    /// The scripts that it can play.
    pub scripts: &'static [&'static str],
    pub outputs: &'static [Output],
    pub recipe: fn(&Testbed, &Path, &[Server]) -> Result<Recipe>,
}

/// The name of a server, and the command of its proxy.
pub type Server = (&'static str, Vec<String>);

/// The configuration and the command of a session.
pub struct Recipe {
    /// Files in the session's folder.
    pub files: Vec<(String, String)>,
    /// Assignments for `export`.
    pub environment: String,
    /// Commands of a shell, in the folder `cwd`.
    pub command: String,
    /// The number of runs in a session.
    pub runs: usize,
}

/// The scripts of agents for the command line.
const CLI: &[&str] = &["turns", "parallel", "refused"];
/// The scripts of programs on an SDK.
const SDK: &[&str] = &["turns", "parallel"];
/// Those of an SDK that keeps arguments that are not valid JSON.
const SDK_BROKEN: &[&str] = &["turns", "parallel", "broken"];

pub static PRODUCERS: [Producer; 11] = [
    Producer {
        name: "claude-code",
        prefix: "",
        scripts: CLI,
        outputs: &[
            Output::new("claude-stream", "stdout", "stream.jsonl"),
            Output::new("claude-code", "home/.claude/projects/*/*", "session.jsonl"),
        ],
        recipe: claude_code,
    },
    Producer {
        name: "codex",
        prefix: "",
        scripts: CLI,
        outputs: &[
            Output {
                turns: false,
                ..Output::new("codex", "stdout", "exec.jsonl")
            },
            Output::new("codex", "home/codex/sessions/*/*/*/*", "rollout.jsonl"),
        ],
        recipe: codex,
    },
    Producer {
        name: "gemini-cli",
        prefix: "",
        scripts: CLI,
        outputs: &[
            Output::new("gemini-cli", "stdout", "stream.jsonl"),
            Output::new(
                "gemini-cli",
                "home/.gemini/tmp/cwd/chats/*",
                "session.jsonl",
            ),
        ],
        recipe: gemini_cli,
    },
    Producer {
        name: "gemini-cli-json",
        prefix: "",
        scripts: &["one"],
        outputs: &[Output {
            turns: false,
            ..Output::new("gemini-cli", "stdout", "output.json")
        }],
        recipe: gemini_cli_json,
    },
    Producer {
        name: "opencode",
        prefix: "",
        scripts: CLI,
        outputs: &[
            Output::new("opencode", "stdout", "run.jsonl"),
            Output::new("opencode", "export.json", "export.json"),
        ],
        recipe: opencode,
    },
    Producer {
        name: "langgraph",
        prefix: "",
        scripts: SDK_BROKEN,
        outputs: &[
            Output {
                servers: false,
                ..Output::new("langchain", "out.json", "dict.json")
            },
            Output {
                servers: false,
                ..Output::new("langchain", "out.dumps.json", "dumps.json")
            },
            Output {
                servers: false,
                ..Output::new("langchain", "out.dump.json", "state.json")
            },
        ],
        recipe: langgraph,
    },
    Producer {
        name: "inspect",
        prefix: "",
        scripts: &["turns", "broken"],
        outputs: &[
            Output {
                servers: false,
                ..Output::new("inspect", "out.eval", "eval")
            },
            Output {
                servers: false,
                ..Output::new("inspect", "out.deflate.eval", "deflate.eval")
            },
            Output {
                servers: false,
                ..Output::new("inspect", "out.json", "json")
            },
        ],
        recipe: inspect,
    },
    Producer {
        name: "openai-agents",
        prefix: "openai-agents-",
        scripts: SDK,
        outputs: &[Output {
            servers: false,
            errors: false,
            tokens: false,
            ..Output::new("openai-responses", "out.json", "json")
        }],
        recipe: openai_agents,
    },
    Producer {
        name: "adk",
        prefix: "",
        scripts: SDK,
        outputs: &[
            Output {
                servers: false,
                ..Output::new("adk", "out.evalset.json", "evalset.json")
            },
            Output {
                servers: false,
                tokens: false,
                turns: false,
                ..Output::new("adk", "out.old.evalset.json", "old.evalset.json")
            },
            Output {
                servers: false,
                ..Output::new("adk", "out.result.json", "result.json")
            },
            Output {
                servers: false,
                ..Output::new("adk", "out.session.json", "session.json")
            },
        ],
        recipe: adk,
    },
    Producer {
        name: "otel-pydantic-ai",
        prefix: "pydantic-ai-",
        scripts: SDK,
        outputs: &[Output {
            servers: false,
            ..Output::new("otel", "out.jsonl", "jsonl")
        }],
        recipe: otel_pydantic_ai,
    },
    Producer {
        name: "otel-openai",
        prefix: "openai-",
        scripts: SDK,
        outputs: &[Output {
            servers: false,
            ..Output::new("otel", "out.jsonl", "jsonl")
        }],
        recipe: otel_openai,
    },
];

fn recipe(files: &[(&str, Value)], environment: &str, command: String) -> Recipe {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Recipe {
        files: files
            .iter()
            .map(|(name, value)| ((*name).to_owned(), text(value)))
            .collect(),
        environment: environment.to_owned(),
        command,
        runs: 1,
    }
}

fn claude_code(testbed: &Testbed, _: &Path, servers: &[Server]) -> Result<Recipe> {
    let program = testbed.parts.agents_bin()?.join("claude");
    Ok(recipe(
        &[("mcp.json", json!({"mcpServers": mcp_servers(servers)}))],
        "ANTHROPIC_BASE_URL=@BASE@ ANTHROPIC_API_KEY=sk-ant-fake ENABLE_TOOL_SEARCH=false \
         CLAUDE_CODE_MAX_RETRIES=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 \
         DISABLE_AUTOUPDATER=1",
        format!(
            "'{}' -p \"$PROMPT\" --mcp-config ../mcp.json --strict-mcp-config --allowedTools \
             mcp__weather,mcp__time --output-format stream-json --verbose --model \
             claude-sonnet-4-5 </dev/null >../stdout 2>../stderr",
            program.display()
        ),
    ))
}

fn codex(testbed: &Testbed, folder: &Path, servers: &[Server]) -> Result<Recipe> {
    let mut config = "model = \"gpt-5\"\nmodel_provider = \"scripted\"\n\
         approval_policy = \"never\"\n[model_providers.scripted]\nname = \"scripted\"\n\
         base_url = \"@BASE@/v1\"\nenv_key = \"SCRIPTED_KEY\"\nwire_api = \"responses\"\n\
         request_max_retries = 0\nstream_max_retries = 0\n"
        .to_owned();
    for (name, command) in servers {
        let (program, arguments) = command.split_at(1);
        config.push_str(&format!(
            "[mcp_servers.{name}]\ncommand = {}\nargs = {}\nrequired = true\n\
             default_tools_approval_mode = \"approve\"\nstartup_timeout_sec = 60\n",
            json!(program[0]),
            json!(arguments)
        ));
    }
    let program = testbed.parts.agents_bin()?.join("codex");
    Ok(recipe(
        &[("home/codex/config.toml", config.into())],
        &format!(
            "SCRIPTED_KEY=fake CODEX_HOME='{}'",
            folder.join("home/codex").display()
        ),
        format!(
            "'{}' exec --json --skip-git-repo-check --sandbox read-only \"$PROMPT\" </dev/null \
             >../stdout 2>../stderr",
            program.display()
        ),
    ))
}

fn gemini_cli(testbed: &Testbed, _: &Path, servers: &[Server]) -> Result<Recipe> {
    gemini(testbed, servers, "stream-json")
}

fn gemini_cli_json(testbed: &Testbed, _: &Path, servers: &[Server]) -> Result<Recipe> {
    gemini(testbed, servers, "json")
}

fn gemini(testbed: &Testbed, servers: &[Server], format: &str) -> Result<Recipe> {
    let settings = json!({
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": false},
        "general": {"disableAutoUpdate": true},
        "mcpServers": mcp_servers(servers),
    });
    let program = testbed.parts.agents_bin()?.join("gemini");
    Ok(recipe(
        &[("home/.gemini/settings.json", settings)],
        "GOOGLE_GEMINI_BASE_URL=@BASE@ GEMINI_API_KEY=fake GEMINI_CLI_NO_RELAUNCH=true",
        format!(
            "'{}' -p \"$PROMPT\" -m gemini-2.5-flash --approval-mode yolo --skip-trust -o \
             {format} </dev/null >../stdout 2>../stderr",
            program.display()
        ),
    ))
}

fn opencode(testbed: &Testbed, _: &Path, servers: &[Server]) -> Result<Recipe> {
    let each = servers.iter().map(|(name, command)| {
        (
            (*name).to_owned(),
            json!({"type": "local", "command": command, "enabled": true}),
        )
    });
    let config = json!({
        "autoupdate": false,
        "share": "disabled",
        "model": "anthropic/claude-sonnet-4-5",
        "provider": {"anthropic": {"options": {"baseURL": "@BASE@/v1", "apiKey": "fake"}}},
        "mcp": Value::Object(each.collect()),
        "permission": {"*": "allow"},
    });
    let program = testbed.parts.agents_bin()?.join("opencode");
    let program = program.display();
    Ok(recipe(
        &[("cwd/opencode.json", config)],
        "OPENCODE_DISABLE_AUTOUPDATE=1",
        format!(
            "'{program}' run --format json \"$PROMPT\" </dev/null >../stdout 2>../stderr\n\
             ENDED=$?\n\
             SESSION=$(sed -n 's/.*\"sessionID\":\"\\([^\"]*\\)\".*/\\1/p' ../stdout | head -n 1)\n\
             '{program}' export \"$SESSION\" </dev/null >../export.json 2>>../stderr\n\
             (exit $ENDED)"
        ),
    ))
}

/// A program of ours on an SDK.
fn program(
    python: &Path,
    script: &str,
    more: &str,
    servers: &[Server],
    environment: &str,
) -> Recipe {
    let script = workspace::root()
        .join("xtask/src/e2e/producers")
        .join(script);
    recipe(
        &[("mcp.json", json!({"mcpServers": mcp_servers(servers)}))],
        &format!("MCP_CONFIG=$PWD/mcp.json {environment}"),
        format!(
            "'{}' '{}' \"$PROMPT\" ../out {more} </dev/null >../stdout 2>../stderr",
            python.display(),
            script.display()
        ),
    )
}

const OPENAI: &str = "OPENAI_BASE_URL=@BASE@/v1 OPENAI_API_KEY=fake";

fn langgraph(testbed: &Testbed, _: &Path, servers: &[Server]) -> Result<Recipe> {
    let python = testbed.parts.langgraph_python()?;
    Ok(program(&python, "langgraph_run.py", "", servers, OPENAI))
}

fn inspect(testbed: &Testbed, _: &Path, servers: &[Server]) -> Result<Recipe> {
    let python = testbed.parts.inspect_python()?;
    let environment = format!("{OPENAI} EPOCHS=2");
    Ok(Recipe {
        runs: 2,
        ..program(&python, "inspect_run.py", "", servers, &environment)
    })
}

fn openai_agents(testbed: &Testbed, _: &Path, servers: &[Server]) -> Result<Recipe> {
    let python = testbed.parts.openai_agents_python()?;
    Ok(program(&python, "agents_run.py", "", servers, OPENAI))
}

fn adk(testbed: &Testbed, _: &Path, servers: &[Server]) -> Result<Recipe> {
    let python = testbed.parts.adk_python()?;
    let environment = "GOOGLE_GEMINI_BASE_URL=@BASE@ GOOGLE_API_KEY=fake";
    Ok(program(&python, "adk_run.py", "", servers, environment))
}

fn otel_pydantic_ai(testbed: &Testbed, _: &Path, servers: &[Server]) -> Result<Recipe> {
    let python = testbed.parts.otel_python()?;
    Ok(program(&python, "otel_run.py", "pydantic", servers, OPENAI))
}

fn otel_openai(testbed: &Testbed, _: &Path, servers: &[Server]) -> Result<Recipe> {
    let python = testbed.parts.otel_python()?;
    Ok(program(&python, "otel_run.py", "openai", servers, OPENAI))
}
