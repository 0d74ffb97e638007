//! Keys of `_meta` that the protocol defines.

/// The revision of a stateless request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// The name and version of the client.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

/// The capabilities of the client.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The name and version of the server.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The lowest level of log messages that the client wants.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// The request that opened the stream to which a notification belongs.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// The task to which a message belongs (2025-11-25).
pub const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The extension with tasks (2026-07-28).
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";
