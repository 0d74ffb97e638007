//! The tools that a block of a suite names.

/// A tool that a block names, and the place of the name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolReference {
    /// The place of the name: a JSON pointer that starts at the block.
    pub pointer: String,
    /// The name as written: a bare name, or `server.tool`.
    pub name: String,
    /// The server, if the block names it next to the tool.
    pub server: Option<String>,
    /// True if nothing depends on the tool being offered, as for one that must not be called: then
    /// a name that no server offers is a warning, never an error.
    pub optional: bool,
}

impl ToolReference {
    /// A tool that the agent may or must call.
    #[must_use]
    pub fn new(pointer: impl Into<String>, name: &str) -> Self {
        Self {
            pointer: pointer.into(),
            name: name.to_owned(),
            server: None,
            optional: false,
        }
    }

    /// The same tool on one server.
    #[must_use]
    pub fn on_server(mut self, server: Option<&str>) -> Self {
        self.server = server.map(str::to_owned);
        self
    }

    /// The same tool, which need not be offered.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// The tools of a list at `pointer`.
    pub fn of_list(pointer: &str, names: &[String]) -> impl Iterator<Item = Self> {
        names
            .iter()
            .enumerate()
            .map(move |(index, name)| Self::new(format!("{pointer}/{index}"), name))
    }
}
