//! The syntax of `${args.name}` and `${answers.name}` in a string.

use serde_json::Value;

use crate::jsonrpc::clip;

/// The values that templates can use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a> {
    /// The arguments of the call.
    pub(crate) args: &'a Value,
    /// The answers of the client, by the names of the requests.
    pub(crate) answers: &'a Value,
}

impl<'a> Values<'a> {
    /// Values of a call that asks nothing.
    pub(crate) fn of(args: &'a Value) -> Self {
        Self {
            args,
            answers: &Value::Null,
        }
    }
}

/// The path from the arguments or the answers to a value.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Path {
    of_answers: bool,
    segments: Vec<PathSegment>,
}

#[derive(Debug, Clone, PartialEq)]
enum PathSegment {
    Key(String),
    Index(usize),
}

impl Path {
    /// The value, if it is there.
    pub(crate) fn find<'a>(&self, values: Values<'a>) -> Option<&'a Value> {
        let root = match self.of_answers {
            true => values.answers,
            false => values.args,
        };
        self.segments
            .iter()
            .try_fold(root, |value, segment| match segment {
                PathSegment::Key(key) => value.as_object()?.get(key),
                PathSegment::Index(index) => value.as_array()?.get(*index),
            })
    }

    /// Returns true if it selects from the answers of the client.
    pub(crate) fn is_of_answers(&self) -> bool {
        self.of_answers
    }
}

/// A part of a string.
#[derive(Debug, PartialEq)]
pub(crate) enum Part {
    Literal(String),
    Path(Path),
}

/// Splits a string into literals and templates.
pub(crate) fn parse(text: &str) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('$') {
        literal.push_str(&rest[..start]);
        rest = &rest[start..];
        let dollars = rest.len() - rest.trim_start_matches('$').len();
        let after = &rest[dollars..];
        if !after.starts_with('{') {
            literal.push_str(&rest[..dollars]);
            rest = after;
            continue;
        }
        literal.extend(std::iter::repeat_n('$', dollars / 2));
        if dollars.is_multiple_of(2) {
            literal.push('{');
            rest = &after[1..];
            continue;
        }
        let (path, length) = parse_path(&after[1..]).map_err(|problem| {
            let shown = after.find('}').map_or(after, |end| &after[..=end]);
            format!(
                "`${}` is not a template: {problem}; for a literal `${{` write `$${{`",
                clip(shown)
            )
        })?;
        if !literal.is_empty() {
            parts.push(Part::Literal(std::mem::take(&mut literal)));
        }
        parts.push(Part::Path(path));
        rest = &after[1 + length..];
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        parts.push(Part::Literal(literal));
    }
    Ok(parts)
}

/// Parses `args…}` or `answers…}`. Returns the path and the number of bytes, including the closing
/// brace.
fn parse_path(text: &str) -> Result<(Path, usize), String> {
    let is_name = |c: char| !c.is_whitespace() && !matches!(c, '.' | '[' | ']' | '{' | '}' | '"');
    let name = |text: &str| text.find(|c| !is_name(c)).unwrap_or(text.len());

    let root = &text[..name(text)];
    if !matches!(root, "args" | "answers") {
        return Err(match root {
            "" => "write `${args.NAME}`".to_owned(),
            _ => format!("only arguments are available here, write `${{args.{root}}}`"),
        });
    }
    let mut segments = Vec::new();
    let mut rest = &text[root.len()..];
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            let path = Path {
                of_answers: root == "answers",
                segments,
            };
            return Ok((path, text.len() - after.len()));
        } else if let Some(after) = rest.strip_prefix('.') {
            let end = name(after);
            if end == 0 {
                return Err("a name is missing after the dot".to_owned());
            }
            segments.push(PathSegment::Key(after[..end].to_owned()));
            rest = &after[end..];
        } else if let Some(after) = rest.strip_prefix("[\"") {
            let Some((key, after)) = after.split_once("\"]") else {
                return Err("`[\"` is never closed with `\"]`".to_owned());
            };
            segments.push(PathSegment::Key(key.to_owned()));
            rest = after;
        } else if let Some(after) = rest.strip_prefix('[') {
            let index = after.split_once(']').and_then(|(index, after)| {
                let digits = index.bytes().all(|byte| byte.is_ascii_digit());
                let index = index.parse().ok().filter(|_| digits)?;
                Some((index, after))
            });
            let Some((index, after)) = index else {
                return Err("between `[` and `]` must be a number or a key in quotes".to_owned());
            };
            segments.push(PathSegment::Index(index));
            rest = after;
        } else if rest.is_empty() {
            return Err("the closing `}` is missing".to_owned());
        } else {
            return Err("after a name must be `.`, `[` or `}`".to_owned());
        }
    }
}
