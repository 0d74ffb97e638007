//! Report model and reporters of mcptest
