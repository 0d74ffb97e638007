//! Bundled catalogs, for use without a file.

use crate::compile::Manifest;
use crate::load::load;

/// A bundled catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Preset {
    /// A help desk with clear, strict, well documented tools.
    Tidy,
    /// The same help desk with flaws that make models pick wrong tools: vague and missing
    /// descriptions, similar names, schemas that allow anything.
    Smelly,
    /// Several hundred tools of many departments, more than a context should hold.
    Overloaded,
    /// Strings that attack programs and models that process them: terminal escapes, markup,
    /// instructions to the model, invisible characters.
    Hostile,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Self; 4] = [Self::Tidy, Self::Smelly, Self::Overloaded, Self::Hostile];

    /// Its name on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tidy => "tidy",
            Self::Smelly => "smelly",
            Self::Overloaded => "overloaded",
            Self::Hostile => "hostile",
        }
    }

    /// The manifest as it is written.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Tidy => include_str!("../presets/tidy.yml"),
            Self::Smelly => include_str!("../presets/smelly.yml"),
            Self::Overloaded => include_str!("../presets/overloaded.yml"),
            Self::Hostile => include_str!("../presets/hostile.yml"),
        }
    }

    /// Loads the server that it describes.
    ///
    /// # Errors
    /// The bundled file is invalid, which a test rules out.
    pub fn manifest(self) -> Result<Manifest, mcptest_yaml::Diagnostics> {
        load(&format!("{}.yml", self.as_str()), self.text().as_bytes())
    }
}
