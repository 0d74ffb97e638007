//! Words of tools, and nouns for what they work on.

/// Nouns that can mean anything that a call did.
#[rustfmt::skip]
pub(crate) const GENERAL: &[&str] = &[
    "change", "detail", "information", "request", "modification", "thing", "correction", "fix", "action", "operation",
    "adjustment", "setting", "duration", "default", "item", "slot", "step", "task", "result", "output", "outcome",
];

/// Nouns that only measure: "booked three hours".
#[rustfmt::skip]
pub(crate) const UNITS: &[&str] = &[
    "minute", "hour", "day", "night", "week", "month", "euro", "dollar", "pound", "eur", "usd", "percent", "unit", "piece",
    "copy", "pair", "pack", "time",
];

/// Words of tools that only look.
#[rustfmt::skip]
pub(crate) const READING: &[&str] = &[
    "get", "list", "search", "read", "fetch", "find", "query", "show", "view", "check", "lookup", "look", "count",
    "describe", "retrieve", "browse", "inspect", "validate", "verify", "calculate", "compute", "think", "summarize",
    "extract", "select", "scan", "explain", "compare", "evaluate", "analyze", "status", "preview", "track", "monitor",
    "watch", "review", "estimate", "diagnose", "audit", "measure", "locate", "peek", "detect", "tail", "ping",
    "ps", "ls", "cat", "info", "stats", "head", "tree", "health", "metrics", "whoami", "forecast", "directions",
    "geocode", "screenshot", "resolve-library-id", "recommend", "suggest", "predict", "classify", "recall",
];

/// Words of tools that search the world, where anything can be news.
#[rustfmt::skip]
pub(crate) const WORLDLY: &[&str] = &[
    "web", "news", "internet", "url", "website", "webpage", "page", "article", "articles", "paper", "papers", "wiki", "wikipedia",
    "google", "bing", "arxiv", "pubmed", "youtube", "transcript", "fetch", "browse", "browser", "weather", "forecast",
];

/// Last words of tools that only look, if no other word is a verb.
pub(crate) const RECORDS: &[&str] = &["log", "logs", "history", "diff", "blame"];

/// Words of tools that can be a verb or the thing it is about.
#[rustfmt::skip]
pub(crate) const EITHER: &[&str] = &[
    "order", "file", "record", "message", "text", "email", "mail", "label", "tag", "link", "book", "issue", "copy",
    "log", "store", "invoice", "bill", "post", "commit", "process", "release", "design", "build", "record", "request",
    "place", "include", "page", "flag", "contact", "scale", "play", "hold", "design", "sync",
];

/// Verbs about money, and the words by which a call shows that money moved.
#[rustfmt::skip]
pub(crate) const PAYING: &[&str] = &["refund", "reimburse", "credit", "compensate", "debit", "charge", "pay", "bill", "invoice"];
#[rustfmt::skip]
pub(crate) const MONEY: &[&str] = &["difference", "payment", "price", "amount", "refund", "transaction", "balance", "cost", "fee", "total"];

/// Words by which a call or its result shows that money moved.
#[rustfmt::skip]
pub(crate) const MOVED: &[&str] = &["payment", "refund", "charge", "transaction", "amount", "balance", "fee", "difference", "paid", "credit"];

/// Words of tools that run statements.
pub(crate) const QUERYING: &[&str] = &["query", "sql", "statement", "database", "db"];

/// First words of database statements that write.
pub(crate) const STATEMENTS: &[&str] = &[
    "insert", "update", "delete", "create", "drop", "alter", "truncate",
];

/// Words of tools that operate a user interface, which can do anything.
pub(crate) const OPERATING: &[&str] = &["click", "press", "fill", "type", "tap", "drag"];

/// Words of tools that conclude what was prepared.
pub(crate) const CONCLUDING: &[&str] = &[
    "order", "checkout", "cart", "basket", "purchase", "submit", "confirm", "finalize", "finalise",
];

/// Words of tools that open a page.
pub(crate) const NAVIGATING: &[&str] = &["navigate", "goto", "visit"];

/// Verbs for what writing a file can do to anything.
#[rustfmt::skip]
pub(crate) const CODING: &[&str] = &["fix", "correct", "implement", "refactor", "optimize", "optimise", "format", "rewrite"];

/// Verbs of tools for any change of a thing.
pub(crate) const ANY_CHANGE: &[&str] = &[
    "update",
    "modify",
    "edit",
    "change",
    "set",
    "patch",
    "manage",
    "configure",
];

/// Keys of arguments that end something.
#[rustfmt::skip]
pub(crate) const STATE_KEYS: &[&str] = &[
    "status", "state", "stage", "resolution", "phase", "active", "enabled", "done", "completed", "label", "transition",
    "action", "operation", "data", "content", "text", "value", "patch", "body", "field",
];

/// Verbs for any change of a state.
pub(crate) const STATE_CHANGES: &[&str] = &["update", "change", "modify", "mark", "set", "adjust"];

/// Messages that a system sends by itself when something is done.
#[rustfmt::skip]
pub(crate) const CONFIRMATIONS: &[&str] = &["confirmation", "receipt", "instruction", "email", "notification", "invoice", "detail"];

/// Nouns for files.
#[rustfmt::skip]
pub(crate) const DOCUMENTS: &[&str] = &[
    "report", "document", "summary", "analysis", "guide", "article", "essay", "script", "note", "plan", "draft",
    "template", "letter", "description", "tutorial", "overview", "readme", "documentation", "page", "csv", "json", "table",
    "program", "component", "website", "poem", "story", "list", "configuration", "spreadsheet", "presentation",
];

/// Nouns for parts of files.
#[rustfmt::skip]
pub(crate) const CONTENTS: &[&str] = &[
    "code", "function", "method", "class", "test", "import", "line", "comment", "variable", "parameter", "argument",
    "type", "check", "handling", "handler", "validation", "section", "paragraph", "heading", "field", "header",
    "dependency", "docstring", "block", "statement", "logging", "error", "typo", "text", "content", "style", "component",
    "module", "route", "endpoint", "string", "regex", "expression", "logic", "constant", "import", "entry", "value",
];

/// Nouns for messages.
#[rustfmt::skip]
pub(crate) const MESSAGES: &[&str] = &[
    "update", "announcement", "note", "reminder", "notification", "reply", "response", "alert", "summary", "link",
    "confirmation", "instruction", "message", "warning", "notice", "greeting", "apology", "feedback",
];

/// Nouns for those who get a message.
#[rustfmt::skip]
pub(crate) const PEOPLE: &[&str] = &[
    "team", "user", "customer", "client", "everyone", "recipient", "participant", "attendee", "member", "guest", "people",
    "group", "channel", "requester", "owner", "assignee", "colleague",
];

/// Nouns for where anything can go.
#[rustfmt::skip]
pub(crate) const TARGETS: &[&str] = &[
    "account", "profile", "system", "record", "list", "inventory", "address", "inbox", "email", "queue", "database", "name",
];

/// Nouns for where things of a kind are kept.
#[rustfmt::skip]
pub(crate) const HOLDERS: &[&str] = &[
    "calendar", "agenda", "diary", "schedule", "page", "document", "board", "library", "collection", "cart", "basket", "folder",
    "playlist", "thread", "conversation", "timeline", "file",
];

/// Nouns for the record of a thing: "the customer record", "a Jira ticket".
#[rustfmt::skip]
pub(crate) const RECORDED: &[&str] = &["record", "entry", "profile", "object", "row", "ticket", "issue", "task", "page", "card"];

/// Nouns for what a message can contain.
#[rustfmt::skip]
pub(crate) const UTTERANCES: &[&str] = &[
    "question", "answer", "information", "link", "detail", "summary", "list", "reminder", "invitation", "result",
    "finding", "request", "code", "fact", "name", "recap", "explanation", "greeting", "hobby", "word", "wish", "thanks",
    "feedback", "news", "update", "recommendation", "suggestion", "plan", "score", "reply", "response", "note",
];

/// Words in the names of tools that work on files, and of those that send messages.
pub(crate) const FILE_TOOLS: &[&str] = &["file", "text", "notebook", "editor", "str"];
pub(crate) const MESSAGE_TOOLS: &[&str] = &[
    "message",
    "email",
    "mail",
    "comment",
    "notification",
    "sms",
    "chat",
    "notify",
    "reply",
];
