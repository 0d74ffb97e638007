//! mcptest: tests for MCP servers and the agents that use them.
//!
//! The program is the command line (`mcptest-cli`) with the gates (`mcptest-gates`). It has no
//! other code: a change to a gate compiles the gates and this file, and links.

use std::process::ExitCode;

fn main() -> ExitCode {
    mcptest_cli::main(mcptest_gates::GATES)
}
