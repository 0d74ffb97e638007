//! A fast reader for YAML in plain block style.
//!
//! Nearly every suite consists of block mappings and lists with short values. The full parser
//! knows all of YAML and takes several times as long for them as everything after it. So this
//! reader comes first. It knows the plain subset only and returns `None` for any other text, which
//! the full parser then reads. Where it succeeds, both readers give the same tree with the same
//! positions; a property test checks that.
//!
//! It stays because its saving shows end to end: with a suite of 200 tool tests, `mcptest run`
//! takes
//! 6.1 ms of CPU time with it and 6.7 ms without (server excluded; minimum of 100 alternating
//! runs), and `mcptest validate` 2.9 ms instead of 3.6 ms (10.3 instead of 17.7 million
//! instructions).
//!
//! The plain subset: spaces and line feeds only; block mappings with keys of one line; block lists;
//! values of one line that are plain, quoted without escapes, or flow collections of such;
//! comments. Not in it: anchors, aliases, tags, merge keys, block scalars, explicit keys, omitted
//! values, document markers, and anything that is not valid.

use crate::document::{Entry, Node, NodeValue};
use crate::entries::KeyIndex;
use crate::limits::DocumentLimits;
use crate::scalar;
use crate::source::Span;

/// Reads a file in the plain subset; `None` for any other file, and for any problem.
pub(crate) fn read(text: &str, limits: &DocumentLimits) -> Option<Node> {
    let unsupported = |c: char| {
        (c.is_control() && c != '\n') || matches!(c, '\u{feff}' | '\u{2028}' | '\u{2029}')
    };
    let is_unsupported = if text.is_ascii() {
        text.bytes()
            .any(|byte| (byte < b' ' && byte != b'\n') || byte == 0x7f)
    } else {
        text.chars().any(unsupported)
    };
    if is_unsupported {
        return None;
    }
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        at: 0,
        line_start: 0,
        nodes: 0,
        limits,
        entries: Vec::new(),
        items: Vec::new(),
        seen_key: None,
    };
    let indent = reader.next_line()??;
    let root = reader.block(indent, 0)?;
    // Text that is left over is not part of this tree.
    reader.at_end().then_some(root)
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    line_start: usize,
    nodes: usize,
    limits: &'a DocumentLimits,
    /// The entries of all mappings that are being read, the innermost last. A mapping takes its
    /// own when it is complete, so that each allocates once, and no more than it needs.
    entries: Vec<Entry>,
    /// The same for the items of lists.
    items: Vec<Node>,
    /// The key that the reader has just read ahead, with the place after its colon.
    seen_key: Option<(&'a str, Span, usize)>,
}

/// The indentation of a line; `None` at the end of the text.
type Indent = Option<usize>;

impl<'a> Reader<'a> {
    fn peek(&self) -> u8 {
        // The plain subset has no zero byte.
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    fn after(&self, bytes: usize) -> u8 {
        self.bytes.get(self.at + bytes).copied().unwrap_or(0)
    }

    fn at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn column(&self) -> usize {
        self.at - self.line_start
    }

    fn skip_spaces(&mut self) {
        while self.peek() == b' ' {
            self.at += 1;
        }
    }

    /// Moves to the first character of the next line that has more than a comment. Called at the
    /// end of a line, or at the start of the text.
    fn next_line(&mut self) -> Option<Indent> {
        loop {
            match self.peek() {
                b'\n' => {
                    self.at += 1;
                    self.line_start = self.at;
                }
                _ if self.at_end() => return Some(None),
                _ if self.at == self.line_start => {}
                _ => return None,
            }
            self.skip_spaces();
            match self.peek() {
                b'\n' => {}
                b'#' => self.skip_line(),
                _ if self.at_end() => return Some(None),
                first => {
                    let marks = matches!(first, b'-' | b'.')
                        && self.after(1) == first
                        && self.after(2) == first;
                    if self.column() == 0 && (marks || first == b'%') {
                        return None;
                    }
                    return Some(Some(self.column()));
                }
            }
        }
    }

    fn skip_line(&mut self) {
        while !matches!(self.peek(), b'\n' | 0) {
            self.at += 1;
        }
    }

    /// Moves past spaces and a comment to the end of the line; `None` if there is more.
    fn end_line(&mut self) -> Option<()> {
        let before = self.at;
        self.skip_spaces();
        if self.peek() == b'#' && self.at > before {
            self.skip_line();
        }
        (self.at_end() || self.peek() == b'\n').then_some(())
    }

    /// Returns true if a list item begins here.
    fn at_item(&self) -> bool {
        self.peek() == b'-' && matches!(self.after(1), b' ' | b'\n' | 0)
    }

    fn node(&mut self, span: Span, value: NodeValue) -> Option<Node> {
        self.nodes += 1;
        (self.nodes <= self.limits.nodes).then_some(Node { span, value })
    }

    /// A block collection whose first line begins here.
    fn block(&mut self, column: usize, depth: usize) -> Option<Node> {
        if self.at_item() {
            let start = self.at;
            self.list(column, start, depth)
        } else {
            self.mapping(column, depth)
        }
    }

    /// A block mapping whose first key begins here.
    fn mapping(&mut self, column: usize, depth: usize) -> Option<Node> {
        if depth >= self.limits.depth {
            return None;
        }
        let position = empty(self.at);
        let first = self.entries.len();
        let mut index = KeyIndex::default();
        loop {
            let (key, key_span) = self.new_key(false, first, &index)?;
            let value = self.value_of_key(column, depth)?;
            self.add_entry(first, &mut index, (key, key_span), value);
            match self.next_line()? {
                Some(indent) if indent == column && !self.at_item() => {}
                Some(indent) if indent > column => return None,
                // The list item of an outer list, or a key of an outer mapping.
                _ => {
                    let value = NodeValue::Mapping(self.entries.drain(first..).collect());
                    return self
                        .node(position, value)
                        .inspect(|_| self.back_to_line_start());
                }
            }
        }
    }

    /// A key that the mapping does not have yet. Its entries begin at `first`.
    fn new_key(
        &mut self,
        in_flow: bool,
        first: usize,
        index: &KeyIndex,
    ) -> Option<(&'a str, Span)> {
        let (key, span) = self.key(in_flow)?;
        self.nodes += 1;
        let is_new = key != "<<" && index.find(&self.entries[first..], key).is_none();
        is_new.then_some((key, span))
    }

    fn add_entry(
        &mut self,
        first: usize,
        index: &mut KeyIndex,
        (key, key_span): (&str, Span),
        value: Node,
    ) {
        index.add(&self.entries[first..], key);
        self.entries.push(Entry {
            key: key.into(),
            key_span,
            value,
        });
    }

    /// Moves back to the start of a line that belongs to an outer collection, for
    /// [`Self::next_line`].
    fn back_to_line_start(&mut self) {
        if !self.at_end() {
            self.at = self.line_start;
        }
    }

    /// The value after the colon of a key in a block mapping.
    fn value_of_key(&mut self, column: usize, depth: usize) -> Option<Node> {
        self.skip_spaces();
        if !matches!(self.peek(), b'\n' | b'#' | 0) {
            return self.short_value(depth + 1);
        }
        self.end_line()?;
        let indent = self.next_line()??;
        if indent > column {
            return self.block(indent, depth + 1);
        }
        if indent == column && self.at_item() {
            // A list with the indentation of its key has the position of its first item.
            let list = self.at;
            self.at += 1;
            self.skip_spaces();
            let start = if self.peek() == b'\n' {
                return None;
            } else {
                self.at
            };
            self.at = list;
            return self.list(column, start, depth + 1);
        }
        None
    }

    /// A block list whose first item begins here.
    fn list(&mut self, column: usize, start: usize, depth: usize) -> Option<Node> {
        if depth >= self.limits.depth {
            return None;
        }
        let first = self.items.len();
        loop {
            // Past the dash.
            self.at += 1;
            self.skip_spaces();
            let item = if matches!(self.peek(), b'\n' | b'#' | 0) {
                self.end_line()?;
                let indent = self.next_line()??;
                if indent <= column {
                    return None;
                }
                self.block(indent, depth + 1)?
            } else if self.at_item() || self.is_key() {
                self.block(self.column(), depth + 1)?
            } else {
                self.short_value(depth + 1)?
            };
            self.items.push(item);
            match self.next_line()? {
                Some(indent) if indent == column && self.at_item() => {}
                Some(indent) if indent > column => return None,
                _ => {
                    let value = NodeValue::Sequence(self.items.drain(first..).collect());
                    return self
                        .node(empty(start), value)
                        .inspect(|_| self.back_to_line_start());
                }
            }
        }
    }

    /// Returns true if a key begins here, and not a value.
    fn is_key(&mut self) -> bool {
        let start = self.at;
        let found = self.key(false);
        self.seen_key = found.map(|(key, span)| (key, span, self.at));
        self.at = start;
        found.is_some()
    }

    /// A value of one line, to the end of the line.
    fn short_value(&mut self, depth: usize) -> Option<Node> {
        let node = match self.peek() {
            b'{' | b'[' => self.flow(depth)?,
            quote @ (b'"' | b'\'') => self.quoted_node(quote)?,
            _ => self.plain_to_line_end()?,
        };
        self.end_line()?;
        Some(node)
    }

    fn plain_to_line_end(&mut self) -> Option<Node> {
        let start = self.at;
        self.plain_start(false)?;
        let mut end = start;
        loop {
            match self.peek() {
                b'\n' | 0 => break,
                b' ' if self.after(1) == b'#' => break,
                b':' if matches!(self.after(1), b' ' | b'\n' | 0) => return None,
                b' ' => self.at += 1,
                _ => {
                    self.at += 1;
                    end = self.at;
                }
            }
        }
        self.plain_node(start, end)
    }

    fn plain_node(&mut self, start: usize, end: usize) -> Option<Node> {
        let value = scalar::resolve_plain(&self.text[start..end]);
        self.node(Span { start, end }, value)
    }

    /// Returns `Some` if a plain value can begin here.
    fn plain_start(&self, in_flow: bool) -> Option<()> {
        let next = self.after(1);
        match self.peek() {
            b'-' if !in_flow => next.is_ascii_alphanumeric().then_some(()),
            b'-' => next.is_ascii_digit().then_some(()),
            b'?' | b':' | b',' | b'[' | b']' | b'{' | b'}' | b'#' | b'&' | b'*' | b'!' | b'|'
            | b'>' | b'\'' | b'"' | b'%' | b'@' | b'`' | b' ' | b'\n' | 0 => None,
            _ => Some(()),
        }
    }

    /// A key and its colon.
    fn key(&mut self, in_flow: bool) -> Option<(&'a str, Span)> {
        /// The full parser bounds the length of a key.
        const MAX_LENGTH: usize = 1000;
        let start = self.at;
        if let Some((key, span, end)) = self.seen_key.take().filter(|key| key.1.start == start) {
            self.at = end;
            return Some((key, span));
        }
        if let quote @ (b'"' | b'\'') = self.peek() {
            let (text, span) = self.quoted(quote)?;
            return (self.colon()? && self.at - start <= MAX_LENGTH).then_some((text, span));
        }
        self.plain_start(in_flow)?;
        loop {
            match self.peek() {
                b'\n' | 0 => return None,
                b',' | b'[' | b']' | b'{' | b'}' if in_flow => return None,
                // Also a space before the colon, which is rare.
                b' ' if matches!(self.after(1), b'#' | b':') => return None,
                b':' if matches!(self.after(1), b' ' | b'\n' | 0) => break,
                b':' if in_flow => return None,
                _ => self.at += 1,
            }
        }
        let span = Span {
            start,
            end: self.at,
        };
        let key = &self.text[start..self.at];
        (self.colon()? && self.at - start <= MAX_LENGTH).then_some((key, span))
    }

    /// Moves past the colon that ends a key.
    fn colon(&mut self) -> Option<bool> {
        if self.peek() != b':' || !matches!(self.after(1), b' ' | b'\n' | 0) {
            return None;
        }
        self.at += 1;
        Some(true)
    }

    fn quoted_node(&mut self, quote: u8) -> Option<Node> {
        let (text, span) = self.quoted(quote)?;
        let value = NodeValue::String(text.into());
        self.node(span, value)
    }

    /// A quoted string of one line without escapes.
    fn quoted(&mut self, quote: u8) -> Option<(&'a str, Span)> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                byte if byte == quote => break,
                b'\n' | b'\\' | 0 => return None,
                _ => self.at += 1,
            }
        }
        let end = self.at + 1;
        // Two single quotes are an escape. Spaces that follow are part of the span that the full
        // parser gives.
        if matches!(self.bytes.get(end), Some(b'"' | b'\'' | b' ')) {
            return None;
        }
        self.at = end;
        Some((&self.text[start + 1..end - 1], Span { start, end }))
    }

    /// A flow collection on one line.
    fn flow(&mut self, depth: usize) -> Option<Node> {
        if depth >= self.limits.depth {
            return None;
        }
        let start = self.at;
        let is_mapping = self.peek() == b'{';
        let close = if is_mapping { b'}' } else { b']' };
        self.at += 1;
        self.skip_spaces();
        let span = Span {
            start,
            end: self.at,
        };
        let (first_item, first_entry) = (self.items.len(), self.entries.len());
        let mut index = KeyIndex::default();
        let mut is_first = true;
        while !(is_first && self.peek() == close) {
            is_first = false;
            if is_mapping {
                let key = self.new_key(true, first_entry, &index)?;
                self.skip_spaces();
                let value = self.flow_value(depth)?;
                self.add_entry(first_entry, &mut index, key, value);
            } else {
                let item = self.flow_value(depth)?;
                self.items.push(item);
            }
            self.skip_spaces();
            match self.peek() {
                b',' => {
                    self.at += 1;
                    self.skip_spaces();
                }
                byte if byte == close => break,
                _ => return None,
            }
        }
        self.at += 1;
        let value = if is_mapping {
            NodeValue::Mapping(self.entries.drain(first_entry..).collect())
        } else {
            NodeValue::Sequence(self.items.drain(first_item..).collect())
        };
        self.node(span, value)
    }

    fn flow_value(&mut self, depth: usize) -> Option<Node> {
        match self.peek() {
            b'{' | b'[' => self.flow(depth + 1),
            quote @ (b'"' | b'\'') => self.quoted_node(quote),
            _ => self.plain_in_flow(),
        }
    }

    fn plain_in_flow(&mut self) -> Option<Node> {
        let start = self.at;
        self.plain_start(true)?;
        let mut end = start;
        loop {
            match self.peek() {
                b',' | b']' | b'}' => break,
                b'\n' | 0 | b'[' | b'{' => return None,
                b' ' if self.after(1) == b'#' => return None,
                b':' if matches!(
                    self.after(1),
                    b' ' | b',' | b'[' | b']' | b'{' | b'}' | b'\n' | 0
                ) =>
                {
                    return None;
                }
                b' ' => self.at += 1,
                _ => {
                    self.at += 1;
                    end = self.at;
                }
            }
        }
        self.plain_node(start, end)
    }
}

fn empty(at: usize) -> Span {
    Span { start: at, end: at }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Document;

    fn full(text: &str) -> Option<Node> {
        Document::parse_in_full("t.yml", text.as_bytes(), &DocumentLimits::default())
            .ok()
            .map(|document| document.root)
    }

    const SUITE: &str = "# A suite.\nname: two\nservers:\n  s:\n    command: [\"a b\", 'c', -1]\n\ntools:\n  - name: echo 1  # first\n    server: s\n    args: { message: hello 1, x: [1, 2.5], e: {}, f: [] }\n    expect:\n      - result.text: \"Echo: hello 1\"\n      - result.content[0].type: text\n  -\n    name: second\n    tags:\n    - a\n    - b\ntests:\n- name: t\n  runs: 3\n  models:\n    - x/y\n";

    #[test]
    fn the_plain_subset_is_read() {
        for text in [
            SUITE,
            "a: 1\n",
            "a: 1",
            "# c\n\na: x y  # c\nb: 'q'\n",
            "name: two hundred\nservers:\n  s:\n    command: [\"a b\", -1, {}]\ntools:\n  - name: echo 1\n    args: { message: hello 1, x: [1, 2] }\n    expect:\n      - result.text: \"Echo: hello\"\n  - name: b\n",
            "a:\n- 1\n-   b: x  # c\n    c: y\n- - 1\n  - 2\nz: ~\n",
            "- a\n- b: c\n-\n  d: e\n",
            "\n\n  # c\n  a: {}\n  b: []\n",
            "tool_calls[0].name: é ü\n\"k\": 'it is'\n",
        ] {
            let plain = read(text, &DocumentLimits::default());
            assert!(plain.is_some(), "{text:?}");
            assert_eq!(plain, full(text), "{text:?}");
        }
    }

    #[test]
    fn everything_else_is_left_to_the_full_parser() {
        for text in [
            "",
            "# c\n",
            "x\n",
            "a: b: c\n",
            "a:\n",
            "a:\nb: 1\n",
            "a: |\n  x\n",
            "a: &x 1\n",
            "a: *x\n",
            "a: !t 1\n",
            "? a\n: b\n",
            "---\na: 1\n",
            "a: 1\n...\n",
            "%YAML 1.2\n",
            "a: 1\na: 2\n",
            "<<: {a: 1}\n",
            "a: x\n  y\n",
            "a: \"x\n  y\"\n",
            "a: \"\\n\"\n",
            "a: 'it''s'\n",
            "a: [1,\n 2]\n",
            "a: {b}\n",
            "a: [b: c]\n",
            "a: [1,]\n",
            "a: {b: }\n",
            "a:\tb\n",
            "a: 1\r\n",
            "a: b #c: d\n  e: f\n",
            "a: [x] y\n",
            "a: 'x' y\n",
            " a: 1\nb: 2\n",
            "a: 1\n b: 2\n",
            "- a\nb: 1\n",
            "a: 1\n- b\n",
            "a: @b\n",
            "a: -\n",
            "a: - b\n",
            "a : b\n",
            "a:b\n",
            "a: \u{feff}b\n",
        ] {
            assert_eq!(read(text, &DocumentLimits::default()), None, "{text:?}");
        }
        let limits = DocumentLimits {
            depth: 2,
            nodes: 5,
            ..DocumentLimits::default()
        };
        assert_eq!(read("a: [[[]]]\n", &limits), None);
        assert_eq!(read("a: [1, 2, 3, 4]\n", &limits), None);
    }

    fn both_agree(text: &str) -> Result<(), TestCaseError> {
        let plain = read(text, &DocumentLimits::default());
        if plain.is_some() {
            prop_assert!(plain == full(text), "{:?}", text);
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4 * ProptestConfig::default().cases))]

        #[test]
        fn both_readers_agree_on_any_input(text in "(  |a|b1|: |:|- |-|\n|\n  |\n    |\"|'|\\{|\\}|\\[|\\]|, |,|#| #|ü|1|\\.5|~|null|\\?|&|!|\\||>|%|@|\\\\|<<|---){0,24}") {
            both_agree(&text)?;
        }

        #[test]
        fn both_readers_agree_on_edited_suites(
            at in 0usize..400,
            length in 0usize..6,
            inserted in "(a|: |:|- |\n|\n  |\n      |\"|'|\\{|\\}|\\[|, |#| #| ){0,4}",
        ) {
            let text = SUITE;
            let from = at.min(text.len());
            let to = (from + length).min(text.len());
            both_agree(&format!("{}{inserted}{}", &text[..from], &text[to..]))?;
        }
    }
}
