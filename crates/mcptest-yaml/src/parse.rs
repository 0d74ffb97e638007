//! The full parser: text to tree, within bounds.

use std::collections::HashMap;
use std::sync::Arc;

use compact_str::CompactString;
use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::document::{Document, Entry, Node, NodeValue};
use crate::entries::Entries;
use crate::limits::DocumentLimits;
use crate::plain_subset;
use crate::scalar;
use crate::source::{Place, Source, Span};
use crate::syntax_help;

impl Document {
    /// Parses one YAML document (JSON is YAML too).
    ///
    /// # Errors
    /// Not UTF-8, over a limit, not YAML, more than one document, duplicate keys (all of them),
    /// unknown tags.
    pub fn parse(name: &str, bytes: &[u8], limits: &DocumentLimits) -> Result<Self, Diagnostics> {
        let text = std::str::from_utf8(bytes)
            .ok()
            .filter(|text| text.len() <= limits.bytes);
        if let Some(text) = text
            && let Some(root) = plain_subset::read(text, limits)
        {
            let source = Arc::new(Source::new(name, text.to_owned()));
            return Ok(Self { source, root });
        }
        Self::parse_in_full(name, bytes, limits)
    }

    /// Parses all of YAML, and explains what is wrong. [`Document::parse`] gives the same, faster.
    ///
    /// # Errors
    /// Those of [`Document::parse`].
    pub fn parse_in_full(
        name: &str,
        bytes: &[u8],
        limits: &DocumentLimits,
    ) -> Result<Self, Diagnostics> {
        if bytes.len() > limits.bytes {
            return Err(Diagnostic::new(
                Severity::Error,
                format!(
                    "the file is {:.1} MiB; the limit is {} MiB",
                    bytes.len() as f64 / 1_048_576.0,
                    limits.bytes / 1_048_576
                ),
            )
            .in_file(name, Some((1, 1)))
            .help("split it with `imports:`, or keep large data in files that a test refers to")
            .into());
        }
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(error) => return Err(not_utf8(name, bytes, error.valid_up_to())),
        };
        let source = Arc::new(Source::new(name, text));
        let mut builder = Builder {
            source: &source,
            limits,
            nodes: 0,
            anchors: HashMap::new(),
            problems: Vec::new(),
            near: Place::default(),
        };
        let root = builder.document();
        let problems = builder.problems;
        match root {
            Ok(root) if problems.is_empty() => Ok(Self { source, root }),
            Ok(_) => Err(Diagnostics(problems)),
            Err(fatal) => {
                let mut problems = problems;
                problems.push(*fatal);
                Err(Diagnostics(problems))
            }
        }
    }
}

fn not_utf8(name: &str, bytes: &[u8], valid_up_to: usize) -> Diagnostics {
    let before = &bytes[..valid_up_to];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let line_start = before
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let column = String::from_utf8_lossy(&before[line_start..])
        .chars()
        .count()
        + 1;
    Diagnostic::new(
        Severity::Error,
        format!(
            "not UTF-8: byte 0x{:02x} at offset {valid_up_to}",
            bytes[valid_up_to]
        ),
    )
    .in_file(name, Some((line, column)))
    .help("save the file as UTF-8")
    .into()
}

type Fatal = Box<Diagnostic>;

/// A collection that is being filled.
enum Frame {
    Sequence {
        span: Span,
        anchor: usize,
        items: Vec<Node>,
    },
    Mapping {
        span: Span,
        anchor: usize,
        entries: Entries,
        /// The key whose value comes next.
        key: Option<(CompactString, Span)>,
        /// The mappings under `<<`, in the order of the file.
        merges: Vec<Node>,
    },
}

struct Builder<'a> {
    source: &'a Arc<Source>,
    limits: &'a DocumentLimits,
    nodes: usize,
    /// Finished anchored nodes with the number of nodes in each.
    anchors: HashMap<usize, (Node, usize)>,
    problems: Vec<Diagnostic>,
    /// The start of the last event.
    near: Place,
}

impl Builder<'_> {
    fn document(&mut self) -> Result<Node, Fatal> {
        let text = Arc::clone(self.source);
        let mut stack: Vec<Frame> = Vec::new();
        let mut root: Option<Node> = None;
        for event in Parser::new_from_str(text.text()) {
            let (event, span) = event.map_err(|error| Box::new(self.syntax(&error)))?;
            let span = self.span(span);
            match event {
                Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => {}
                Event::DocumentStart(_) => {
                    if root.is_some() {
                        return Err(self
                            .fatal(span, "a second YAML document")
                            .map(|d| d.help("a file holds one document: remove the `---` line or split the file")));
                    }
                }
                Event::Scalar(text, style, anchor, tag) => {
                    let value = self.scalar(&text, style, tag.as_deref(), span);
                    let node = Node { span, value };
                    self.count(1, span)?;
                    self.remember(anchor, &node, 1);
                    self.insert(&mut stack, &mut root, node)?;
                }
                Event::SequenceStart(anchor, tag) => {
                    self.open(&stack, span, tag.as_deref(), "seq")?;
                    stack.push(Frame::Sequence {
                        span,
                        anchor,
                        items: Vec::new(),
                    });
                }
                Event::MappingStart(anchor, tag) => {
                    self.open(&stack, span, tag.as_deref(), "map")?;
                    stack.push(Frame::Mapping {
                        span,
                        anchor,
                        entries: Entries::default(),
                        key: None,
                        merges: Vec::new(),
                    });
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    let Some(frame) = stack.pop() else { continue };
                    let (node, anchor) = self.close(frame)?;
                    if anchor != 0 {
                        let size = count_nodes(&node);
                        self.remember(anchor, &node, size);
                    }
                    self.insert(&mut stack, &mut root, node)?;
                }
                Event::Alias(id) => {
                    let Some((node, size)) = self.anchors.get(&id) else {
                        return Err(self.fatal(span, "an alias to a value that contains it"));
                    };
                    let size = *size;
                    // Count before cloning: an alias bomb must not get its memory first.
                    self.nodes += size;
                    if self.nodes > self.limits.nodes {
                        return Err(self.too_many(span));
                    }
                    if stack.len() + depth_of(node) > self.limits.depth {
                        return Err(self.too_deep(span));
                    }
                    let node = node.clone();
                    self.insert(&mut stack, &mut root, node)?;
                }
            }
        }
        Ok(root.unwrap_or(Node {
            span: Span::default(),
            value: NodeValue::Null,
        }))
    }

    /// Adds a finished node to the collection that is open.
    fn insert(
        &mut self,
        stack: &mut [Frame],
        root: &mut Option<Node>,
        node: Node,
    ) -> Result<(), Fatal> {
        match stack.last_mut() {
            None => *root = Some(node),
            Some(Frame::Sequence { items, .. }) => items.push(node),
            Some(Frame::Mapping {
                entries,
                key,
                merges,
                ..
            }) => match key.take() {
                None => *key = Some(self.key_text(node)?),
                Some((text, _)) if text == "<<" => merges.push(node),
                Some((text, key_span)) => {
                    if let Some(first) = entries.get(&text) {
                        let (line, _) = self.source.line_column(first.key_span.start);
                        self.problems.push(
                            Diagnostic::new(Severity::Error, format!("duplicate key `{text}`"))
                                .at(self.source, key_span)
                                .label(format!("first set on line {line}"))
                                .related(first.key_span, "first set here")
                                .help("keep one of the two"),
                        );
                    } else {
                        entries.push(Entry {
                            key: text,
                            key_span,
                            value: node,
                        });
                    }
                }
            },
        }
        Ok(())
    }

    fn key_text(&self, node: Node) -> Result<(CompactString, Span), Fatal> {
        let span = node.span;
        match node.value {
            NodeValue::String(text) => Ok((text, span)),
            // `1:` and `true:` are keys by their text.
            NodeValue::Number(_) | NodeValue::Bool(_) | NodeValue::Null => {
                let text = self.source.text().get(span.start..span.end).unwrap_or("");
                Ok((text.trim().into(), span))
            }
            NodeValue::Sequence(_) | NodeValue::Mapping(_) => {
                Err(self.fatal(span, "a key must be a string, not a list or a mapping"))
            }
        }
    }

    fn close(&mut self, frame: Frame) -> Result<(Node, usize), Fatal> {
        match frame {
            Frame::Sequence {
                span,
                anchor,
                items,
            } => Ok((
                Node {
                    span,
                    value: NodeValue::Sequence(items),
                },
                anchor,
            )),
            Frame::Mapping {
                span,
                anchor,
                mut entries,
                merges,
                ..
            } => {
                for merge in merges {
                    self.merge(&mut entries, merge)?;
                }
                Ok((
                    Node {
                        span,
                        value: NodeValue::Mapping(entries.into_vec()),
                    },
                    anchor,
                ))
            }
        }
    }

    /// `<<`: adds the merged mapping's keys that are not set yet; of several mappings, the first
    /// one wins.
    fn merge(&mut self, entries: &mut Entries, merged: Node) -> Result<(), Fatal> {
        let span = merged.span;
        match merged.value {
            NodeValue::Mapping(more) => {
                for entry in more {
                    if entries.get(&entry.key).is_none() {
                        entries.push(entry);
                    }
                }
                Ok(())
            }
            NodeValue::Sequence(list) => {
                for item in list {
                    if !matches!(item.value, NodeValue::Mapping(_)) {
                        return Err(self.fatal(item.span, "`<<` merges mappings only"));
                    }
                    self.merge(entries, item)?;
                }
                Ok(())
            }
            _ => Err(self.fatal(span, "`<<` merges mappings only")),
        }
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: Span,
    ) -> NodeValue {
        let string = || NodeValue::String(text.into());
        let Some(tag) = tag else {
            return if style == ScalarStyle::Plain {
                scalar::resolve_plain(text)
            } else {
                string()
            };
        };
        let resolved = scalar::resolve_plain(text);
        let fits = match tag.suffix.as_str() {
            _ if !tag.is_yaml_core_schema() => None,
            "str" => Some(string()),
            "int" | "float" => matches!(resolved, NodeValue::Number(_)).then_some(resolved),
            "bool" => matches!(resolved, NodeValue::Bool(_)).then_some(resolved),
            "null" => matches!(resolved, NodeValue::Null).then_some(resolved),
            _ => None,
        };
        fits.unwrap_or_else(|| {
            self.problems.push(
                Diagnostic::new(
                    Severity::Error,
                    format!("the tag `{tag}` does not apply here"),
                )
                .at(self.source, span)
                .help("remove the tag; quote the value if it is meant as a string"),
            );
            string()
        })
    }

    fn open(
        &mut self,
        stack: &[Frame],
        span: Span,
        tag: Option<&Tag>,
        plain: &str,
    ) -> Result<(), Fatal> {
        if let Some(tag) = tag
            && !(tag.is_yaml_core_schema() && tag.suffix == plain)
        {
            return Err(self.fatal(span, format!("the tag `{tag}` is not known")));
        }
        if stack.len() >= self.limits.depth {
            return Err(self.too_deep(span));
        }
        self.count(1, span)
    }

    fn count(&mut self, more: usize, span: Span) -> Result<(), Fatal> {
        self.nodes += more;
        if self.nodes > self.limits.nodes {
            return Err(self.too_many(span));
        }
        Ok(())
    }

    fn remember(&mut self, anchor: usize, node: &Node, size: usize) {
        if anchor != 0 {
            self.anchors.insert(anchor, (node.clone(), size));
        }
    }

    fn span(&mut self, span: saphyr_parser::Span) -> Span {
        let start = self.source.byte_near(&mut self.near, span.start.index());
        // The next event may begin before the end of this one.
        let mut from_start = self.near;
        let end = self.source.byte_near(&mut from_start, span.end.index());
        Span { start, end }
    }

    fn syntax(&self, error: &saphyr_parser::ScanError) -> Diagnostic {
        let mut at = self.source.byte_of_char(error.marker().index());
        if error.info().contains("found a tab") {
            // The marker is at the scalar before the tab.
            at += self.source.text()[at..].find('\t').unwrap_or(0);
        }
        // The scanner reads ahead, and may reach its own limit before we reach ours.
        if error.info().contains("recursion limit") {
            return *self.too_deep(Span { start: at, end: at });
        }
        // The marker is behind the tab that is no valid space.
        let before = &self.source.text()[..at];
        let after_tab = error.info().contains("YAML whitespace") && before.ends_with('\t');
        if after_tab {
            at = before.trim_end_matches('\t').len();
        }
        let diagnostic =
            Diagnostic::new(Severity::Error, format!("not valid YAML: {}", error.info()))
                .at(self.source, Span { start: at, end: at });
        let line = self.line_text(at);
        if after_tab {
            diagnostic.help("write a space instead of the tab")
        } else if line.trim_start_matches(' ').starts_with('\t') || error.info().contains("tab") {
            diagnostic.help("YAML forbids tabs for indentation: use spaces")
        } else if error.info().contains("flow mapping") && line.contains('[') {
            diagnostic.help(
                "inside `{ }`, quote a key that has brackets: {\"tool_calls[0].name\": search}",
            )
        } else if error
            .info()
            .contains("invalid Unicode character escape code")
        {
            diagnostic
                .help("YAML has no surrogate pairs like JSON's `\\ud83d\\ude00`: write the character itself, or \
                     `\\U0001F600`")
        } else {
            match syntax_help::help(error.info(), self.source.text(), at) {
                Some(remedy) => diagnostic.help(remedy),
                None => diagnostic,
            }
        }
    }

    fn line_text(&self, at: usize) -> &str {
        let text = self.source.text();
        let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[at..]
            .find('\n')
            .map_or(text.len(), |newline| at + newline);
        &text[start..end]
    }

    fn fatal(&self, span: Span, message: impl Into<String>) -> Fatal {
        Box::new(Diagnostic::new(Severity::Error, message).at(self.source, span))
    }

    fn too_deep(&self, span: Span) -> Fatal {
        self.fatal(
            span,
            format!("nested deeper than {} levels", self.limits.depth),
        )
    }

    fn too_many(&self, span: Span) -> Fatal {
        self.fatal(
            span,
            format!(
                "more than {} values with aliases expanded",
                self.limits.nodes
            ),
        )
    }
}

/// Lets a boxed diagnostic be extended in place.
trait MapFatal {
    fn map(self, change: impl FnOnce(Diagnostic) -> Diagnostic) -> Self;
}

impl MapFatal for Fatal {
    fn map(self, change: impl FnOnce(Diagnostic) -> Diagnostic) -> Self {
        Box::new(change(*self))
    }
}

fn count_nodes(node: &Node) -> usize {
    1 + match &node.value {
        NodeValue::Sequence(items) => items.iter().map(count_nodes).sum(),
        NodeValue::Mapping(entries) => entries
            .iter()
            .map(|entry| 1 + count_nodes(&entry.value))
            .sum(),
        _ => 0,
    }
}

fn depth_of(node: &Node) -> usize {
    match &node.value {
        NodeValue::Sequence(items) => 1 + items.iter().map(depth_of).max().unwrap_or(0),
        NodeValue::Mapping(entries) => {
            1 + entries
                .iter()
                .map(|entry| depth_of(&entry.value))
                .max()
                .unwrap_or(0)
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> Result<Document, Diagnostics> {
        Document::parse("t.yml", text.as_bytes(), &DocumentLimits::default())
    }

    fn problem(text: &str) -> String {
        parse(text).expect_err("must not parse").to_string()
    }

    #[test]
    fn values_positions_and_order() {
        let document = parse("b: 1\na: [x, 'y', 2.5]\nc: {d: ~}\n").unwrap();
        assert_eq!(
            document.root().to_json().to_string(),
            r#"{"b":1,"a":["x","y",2.5],"c":{"d":null}}"#
        );
        let span = document.span_at("/a/1");
        assert_eq!(document.source().line_column(span.start), (2, 8));
        let key = document.key_span_at("/c/d");
        assert_eq!(document.source().line_column(key.start), (3, 5));
    }

    #[test]
    fn anchors_aliases_and_merge_keys() {
        let document = parse("a: &x {p: 1, q: 2}\nb:\n  <<: *x\n  q: 3\nc: *x\n").unwrap();
        assert_eq!(
            document.root().to_json(),
            json!({"a": {"p": 1, "q": 2}, "b": {"q": 3, "p": 1}, "c": {"p": 1, "q": 2}})
        );
    }

    #[test]
    fn all_duplicate_keys_are_reported_with_both_lines() {
        let text = problem("a: 1\nb: 2\na: 3\nb: 4\n");
        assert!(
            text.contains("duplicate key `a`") && text.contains("t.yml:3:1"),
            "{text}"
        );
        assert!(
            text.contains("duplicate key `b`") && text.contains("t.yml:4:1"),
            "{text}"
        );
        assert!(text.contains("first set on line 1"), "{text}");
    }

    #[test]
    fn messages_about_a_long_line_are_short() {
        let keys: Vec<String> = (0..5000).map(|key| format!("ké{key}: 1")).collect();
        let text = problem(&format!("{{{}, ké7: 2}}\n", keys.join(", ")));
        assert!(text.contains("first set on line 1"), "{text}");
        assert!(text.len() < 2000, "{} bytes", text.len());
        // Two places that are near each other are both drawn.
        let near = problem("{aa: 1, aa: 2}\n");
        assert!(near.contains("first set here"), "{near}");
    }

    #[test]
    fn an_alias_bomb_is_rejected_before_it_uses_memory() {
        let mut text = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
        for level in 1..10 {
            let alias = format!("*a{}", level - 1);
            let list = vec![alias; 10].join(",");
            text.push_str(&format!("a{level}: &a{level} [{list}]\n"));
        }
        let text = problem(&text);
        assert!(text.contains("more than 1000000 values"), "{text}");
    }

    #[test]
    fn depth_is_bounded_for_both_styles_and_through_aliases() {
        assert!(problem(&"[".repeat(100)).contains("nested deeper than 64"));
        assert!(problem(&"- ".repeat(100_000)).contains("nested deeper than 64"));
        let deep = format!(
            "a: &a {}1{}\nb: {}*a{}\n",
            "[".repeat(40),
            "]".repeat(40),
            "[".repeat(40),
            "]".repeat(40)
        );
        assert!(problem(&deep).contains("nested deeper than 64"));
    }

    #[test]
    fn a_value_cannot_contain_itself() {
        assert!(problem("a: &a [*a]").contains("contains it"));
    }

    #[test]
    fn tabs_are_explained() {
        let text = problem("a:\n\tb: 1\n");
        assert!(text.contains("tabs"), "{text}");
        assert!(text.contains("t.yml:2"), "{text}");
        // After a plain scalar, the error is at the tab and not at the scalar.
        let text = problem("a: one\n\tb: 1\n");
        assert!(text.contains("t.yml:2:1"), "{text}");
        assert!(text.contains("use spaces"), "{text}");
    }

    #[test]
    fn other_invalid_input_has_a_position() {
        assert!(problem("a: [1, 2\nb: 3\n").contains("t.yml:"));
        assert!(problem("a: 1\n---\nb: 2\n").contains("second YAML document"));
        assert!(problem("? [a, b]\n: 1\n").contains("key must be a string"));
        assert!(problem("a: !thing x\n").contains("tag"));
        let bytes = b"a: 1\nb: \xff\xfe\n";
        let error = Document::parse("t.yml", bytes, &DocumentLimits::default()).unwrap_err();
        assert!(
            error.to_string().contains("t.yml:2:4: not UTF-8"),
            "{error}"
        );
        let big = vec![b' '; 9 * 1024 * 1024];
        let error = Document::parse("t.yml", &big, &DocumentLimits::default()).unwrap_err();
        assert!(error.to_string().contains("limit is 8 MiB"), "{error}");
    }

    #[test]
    fn a_byte_order_mark_and_an_empty_file() {
        assert_eq!(
            parse("\u{feff}a: 1").unwrap().root().to_json(),
            json!({"a": 1})
        );
        assert_eq!(parse("").unwrap().root().to_json(), json!(null));
        assert_eq!(
            parse("# only a comment\n").unwrap().root().to_json(),
            json!(null)
        );
    }
}
