//! Plans and executes mcptest suites
