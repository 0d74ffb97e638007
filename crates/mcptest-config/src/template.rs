//! Strings of a configuration in which a client inserts values.

use std::fmt;

/// A string with references to variables and folders.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Template(Vec<TemplatePiece>);

/// A piece of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePiece {
    /// Text as it is.
    Text(String),
    /// A variable of the environment.
    Variable {
        /// Its name.
        name: String,
        /// The value if it is not set.
        default: Option<String>,
    },
    /// The folder of the project.
    ProjectFolder,
    /// The home folder of the user.
    HomeFolder,
}

/// The values for templates.
pub struct TemplateValues<'a> {
    /// The environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The folder of the project.
    pub project_folder: &'a str,
}

/// A variable that a template needs and nobody set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing(pub String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the environment variable {} is not set", self.0)
    }
}

/// The references that a format knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum References {
    /// None: values are literal.
    None,
    /// `${VAR}` and `${VAR:-default}`.
    Shell,
    /// `${env:VAR}`, `${input:id}`, `${workspaceFolder}`, `${userHome}`.
    Editor,
    /// `$VAR` and `${VAR}`.
    Plain,
}

impl FromIterator<TemplatePiece> for Template {
    fn from_iter<I: IntoIterator<Item = TemplatePiece>>(pieces: I) -> Self {
        Self(pieces.into_iter().collect())
    }
}

impl Template {
    /// A string without references.
    #[must_use]
    pub fn literal(text: impl Into<String>) -> Self {
        Self(vec![TemplatePiece::Text(text.into())])
    }

    /// A reference to a variable.
    #[must_use]
    pub fn variable(name: impl Into<String>) -> Self {
        Self(vec![TemplatePiece::Variable {
            name: name.into(),
            default: None,
        }])
    }

    /// Text before the template.
    #[must_use]
    pub fn prefixed(mut self, text: &str) -> Self {
        self.0.insert(0, TemplatePiece::Text(text.to_owned()));
        self
    }

    /// The pieces, in order.
    #[must_use]
    pub fn pieces(&self) -> &[TemplatePiece] {
        &self.0
    }

    /// The string, if it has no references.
    #[must_use]
    pub fn as_literal(&self) -> Option<String> {
        let texts = self.0.iter().map(|piece| match piece {
            TemplatePiece::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// The string with its values.
    ///
    /// # Errors
    /// A variable that is not set and has no default.
    pub fn resolve(&self, values: &TemplateValues<'_>) -> Result<String, Missing> {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                TemplatePiece::Text(text) => out.push_str(text),
                TemplatePiece::Variable { name, default } => {
                    let value = (values.env)(name).or_else(|| default.clone());
                    out.push_str(&value.ok_or_else(|| Missing(name.clone()))?);
                }
                TemplatePiece::ProjectFolder => out.push_str(values.project_folder),
                TemplatePiece::HomeFolder => {
                    let home = (values.env)("HOME");
                    out.push_str(&home.ok_or_else(|| Missing("HOME".to_owned()))?);
                }
            }
        }
        Ok(out)
    }

    /// Parses a string. The error is a reference that the format's client would insert and nobody
    /// else can, such as `${command:pickProcess}`.
    pub(crate) fn parse(text: &str, references: References) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$').filter(|_| references != References::None) {
            literal.push_str(&rest[..at]);
            let after = &rest[at + 1..];
            let (piece, behind) = match after.strip_prefix('{') {
                Some(inside) => match inside.split_once('}') {
                    Some((name, behind)) => (named(name, references)?, behind),
                    None => (None, after),
                },
                None if references == References::Plain => plain(after),
                None => (None, after),
            };
            match piece {
                Some(piece) => {
                    if !literal.is_empty() {
                        pieces.push(TemplatePiece::Text(std::mem::take(&mut literal)));
                    }
                    pieces.push(piece);
                    rest = behind;
                }
                None => {
                    literal.push('$');
                    rest = after;
                }
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() || pieces.is_empty() {
            pieces.push(TemplatePiece::Text(literal));
        }
        Ok(Self(pieces))
    }
}

/// `$NAME` at the start of a string, and the rest.
fn plain(text: &str) -> (Option<TemplatePiece>, &str) {
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(text.len());
    let name = &text[..end];
    if is_variable(name) {
        (Some(variable(name, None)), &text[end..])
    } else {
        (None, text)
    }
}

fn variable(name: &str, default: Option<&str>) -> TemplatePiece {
    TemplatePiece::Variable {
        name: name.to_owned(),
        default: default.map(str::to_owned),
    }
}

/// The piece for the inside of `${…}`; none if it is ordinary text.
fn named(inside: &str, references: References) -> Result<Option<TemplatePiece>, String> {
    if references != References::Editor {
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        return Ok(is_variable(name).then(|| variable(name, default)));
    }
    Ok(match inside.split_once(':') {
        Some(("env", name)) if is_variable(name) => Some(variable(name, None)),
        Some(("input", id)) => Some(variable(&input_variable(id), None)),
        Some((kind, _)) => {
            return Err(format!(
                "`${{{kind}:…}}` is known to the client alone: mcptest cannot resolve it"
            ));
        }
        None => match inside {
            "workspaceFolder" => Some(TemplatePiece::ProjectFolder),
            "userHome" => Some(TemplatePiece::HomeFolder),
            "pathSeparator" | "/" => Some(TemplatePiece::Text("/".to_owned())),
            "workspaceFolderBasename" | "cwd" | "file" => {
                return Err(format!(
                    "`${{{inside}}}` is known to the client alone: mcptest cannot resolve it"
                ));
            }
            // Clients of this family also accept the form of a shell.
            name if is_variable(name) => Some(variable(name, None)),
            _ => None,
        },
    })
}

/// Returns true for a name that a shell could set.
fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The environment variable for an input of VS Code: `github-token` is `GITHUB_TOKEN`.
pub(crate) fn input_variable(id: &str) -> String {
    let mut name: String = id
        .chars()
        .map(|c| match c {
            c if c.is_ascii_alphanumeric() => c.to_ascii_uppercase(),
            _ => '_',
        })
        .collect();
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        name.insert_str(0, "INPUT_");
    }
    name
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn resolved(text: &str, references: References) -> Result<String, String> {
        let template = Template::parse(text, references)?;
        let values = TemplateValues {
            env: &|name| match name {
                "HOME" => Some("/home/ann".to_owned()),
                "KEY" | "GITHUB_TOKEN" => Some("s3cret".to_owned()),
                _ => None,
            },
            project_folder: "/project",
        };
        template.resolve(&values).map_err(|missing| missing.0)
    }

    #[test]
    fn each_family_has_its_own_references() {
        use References::{Editor, None, Plain, Shell};
        for (text, references, expected) in [
            ("a ${KEY} $KEY", None, "a ${KEY} $KEY"),
            ("${KEY}/x", Shell, "s3cret/x"),
            ("${NOPE:-no} ${NOPE:-}", Shell, "no "),
            ("$KEY ${} ${1} ${a b", Shell, "$KEY ${} ${1} ${a b"),
            ("${env:KEY}", Editor, "s3cret"),
            ("${input:github-token}", Editor, "s3cret"),
            ("${workspaceFolder}/s.py", Editor, "/project/s.py"),
            ("${userHome}${/}x", Editor, "/home/ann/x"),
            ("$KEY-${KEY}-$1", Plain, "s3cret-s3cret-$1"),
        ] {
            assert_eq!(
                resolved(text, references).as_deref(),
                Ok(expected),
                "{text}"
            );
        }
        assert_eq!(resolved("${NOPE}", Shell), Err("NOPE".to_owned()));
        assert!(
            resolved("${command:pick}", Editor)
                .unwrap_err()
                .contains("`${command:…}`")
        );
    }

    #[test]
    fn inputs_have_variables() {
        assert_eq!(input_variable("perplexity-key"), "PERPLEXITY_KEY");
        assert_eq!(input_variable("1st key"), "INPUT_1ST_KEY");
        assert_eq!(input_variable(""), "INPUT_");
    }

    proptest! {
        #[test]
        fn text_without_references_stays(text in "[^$]*") {
            for references in [References::None, References::Shell, References::Editor, References::Plain] {
                let template = Template::parse(&text, references).unwrap();
                prop_assert_eq!(template.as_literal(), Some(text.clone()));
            }
        }

        #[test]
        fn any_input_is_parsed(text in "[${}a-zA-Z:/_ -]{0,40}") {
            for references in [References::None, References::Shell, References::Editor, References::Plain] {
                let _ = Template::parse(&text, references);
            }
        }
    }
}
