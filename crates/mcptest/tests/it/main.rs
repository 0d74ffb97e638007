//! The command line, tried as a user would.
//!
//! | module | what is tried |
//! |---|---|
//! | `agents` | agents under test: figures, faults, failures, recordings, files, processes |
//! | `attacks` | attacks on agents: run, score, replay and proxy give the same result |
//! | `auth` | servers behind authorization: tokens, logins, failures, nothing that shows a secret |
//! | `configs` | the configurations of MCP clients, for every command that takes one |
//! | `golden` | whole commands with their exact output, in `tests/golden/*.trycmd` |
//! | `bad_suites` | every file under `tests/bad`: exit 2, a place, all problems together |
//! | `examples` | every suite under `examples`: valid, accepted by the schema, its expected verdict |
//! | `budgets` | caps on money, tokens and time, and what was spent |
//! | `decided` | tests that stop when they are decided |
//! | `judges` | judged assertions: asked, recorded, scored, switched off, broken |
//! | `bounds` | every target of every gate with a bound that cannot be met |
//! | `trace_inputs` | many and compressed trace files, broken lines, partial results |
//! | `cassettes` | recording, replay, stale and damaged cassettes, planted keys, kills |
//! | `catalogs` | catalogs from files, suites, addresses and commands, for every command that takes one |
//! | `history` | logs of runs: shown, listed, resumed after kills, removed |
//! | `diagnosis` | `-v`, `MCPTEST_LOG`, `--quiet` |
//! | `init` | `init`: what it writes passes immediately |
//! | `init_hostile` | `init` with bad servers, catalogs, schemas, folders and files |
//! | `init_questions` | `init` on a terminal |
//! | `hung_calls` | calls that hang: evidence if the server still answers, else an error |
//! | `hostile` | exhausted mocks, killed processes, malformed answers |
//! | `http` | suites with servers over streamable HTTP |
//! | `legacy_sse` | servers over HTTP+SSE: suites, `doctor`, the proxy |
//! | `lists` | `list`, `call` and `catalog` |
//! | `many` | shards, `--fail-fast`, `--rerun-failed`, `--watch` |
//! | `agents_md` | `agents-md`: its blocks run, its commands exist |
//! | `mcp`, `mcp_limits`, `mcp_ends` | `mcp`: tools, confinement, bounds, progress, cancellation |
//! | `mock` | the mock server as a process: faults, records, HTTP |
//! | `models` | live models: every dialect over HTTP, what models and providers do wrong, keys, overlap |
//! | `mutation` | `mutate`: which changes to traces the gates notice |
//! | `protocol` | resources, prompts, requests of servers to the client, changes, tasks, cancellation |
//! | `proxy` | `proxy`: bytes, traces, faults, the end of both sides |
//! | `released` | files of released versions, in `tests/released`: every stored format still loads |
//! | `reports` | `report`: shown again, compared, merged; JUnit, Markdown, models side by side |
//! | `scoring` | `score`: how traces find their tests, what is no evidence, bad traces |
//! | `streams` | standard output that cannot be written, readers that leave early |
//! | `suites` | what a suite can say, and what comes of it |
//! | `tool_names` | tools that a suite names and no server offers |
//! | `trace_tools` | `trace`: convert, show, stats, infer, anonymise |
//! | `world` | outcomes: the tasks of `examples/world`, 100 runs with mistakes, a second evaluation |
//! | `state` | `setup:`, `after:` and `teardown:` of agent tests |
//! | `turns` | further messages of the user |
//! | `tools` | direct tool tests: fixtures, order, isolation, snapshots |
//! | `docs` | every block of the README and the pages below `docs` |
//! | `doctor` | `doctor` and `tool_quality:` against servers that misbehave, waivers, fixes |
//! | `signals` | signals twice, and while an output blocks |
//! | `servers` | servers that misbehave: typed errors, bounded time, no process left |

#![allow(clippy::unwrap_used, reason = "a test that cannot continue panics")]

mod agents;
mod agents_md;
mod attacks;
mod auth;
mod bad_suites;
mod bounds;
mod budgets;
mod cassettes;
mod catalogs;
mod configs;
mod decided;
mod diagnosis;
mod docs;
mod doctor;
mod examples;
mod golden;
mod guarded;
mod hints;
mod history;
mod hostile;
mod http;
mod hung_calls;
mod init;
mod init_hostile;
mod init_questions;
mod judges;
mod legacy_sse;
mod lists;
mod mangled;
mod many;
mod mcp;
mod mcp_ends;
mod mcp_limits;
mod mock;
mod models;
mod mutation;
mod outputs;
mod panics;
mod protocol;
mod proxy;
mod readings;
mod recorded;
mod released;
mod reports;
mod scoring;
mod servers;
mod signals;
mod site;
#[path = "../../../mcptest-provider/tests/it/stand_in.rs"]
mod stand_in;
mod state;
mod stops;
mod streams;
mod suites;
mod support;
mod teardown;
mod through_proxy;
mod tool_names;
mod tools;
mod trace_inputs;
mod trace_tools;
mod turns;
mod world;
