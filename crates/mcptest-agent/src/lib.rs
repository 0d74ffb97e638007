//! The agent loop and the built-in models of mcptest
