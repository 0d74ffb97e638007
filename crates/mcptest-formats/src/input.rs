//! Inputs: JSON documents with their lines, or an archive.

use mcptest_json::{pointer_join, type_name};
use serde_json::Value;

use crate::error::FormatError;

/// The size of the largest input that is read as a whole: 1 GiB.
pub const MAX_BYTES: usize = 1 << 30;

/// The first bytes of a ZIP archive.
const ARCHIVE: &[u8] = b"PK\x03\x04";
/// The mark that some editors write at the start of UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An input of readers.
///
/// Text is a sequence of JSON documents: one for a JSON file, one per line for JSON Lines. They
/// nest at most 128 levels deep.
#[derive(Debug, Default)]
pub struct Input<'a> {
    documents: Vec<Document>,
    archive: Option<&'a [u8]>,
}

/// One JSON document of an input.
#[derive(Debug)]
pub struct Document {
    /// The line on which it starts, from 1.
    pub line: usize,
    /// Its value.
    pub value: Value,
}

impl Document {
    /// An error about a part of the document. Its pointer is found by a search for the part, so
    /// `part` must be a reference into this document.
    #[must_use]
    pub fn wrong(
        &self,
        format: &'static str,
        part: &Value,
        message: impl Into<String>,
    ) -> FormatError {
        FormatError::NotThisFormat {
            format,
            line: self.line,
            pointer: pointer_of(&self.value, part).unwrap_or_default(),
            message: message.into(),
        }
    }

    /// An array that a key of a part must have.
    ///
    /// # Errors
    /// The key is missing, or its value is not an array.
    pub fn array<'v>(
        &self,
        format: &'static str,
        part: &'v Value,
        key: &str,
    ) -> Result<&'v Vec<Value>, FormatError> {
        match part.get(key) {
            Some(Value::Array(items)) => Ok(items),
            Some(other) => Err(self.wrong(
                format,
                other,
                format!("expected an array, found {}", a_type(other)),
            )),
            None if part.is_object() => {
                Err(self.wrong(format, part, format!("`{key}` is missing")))
            }
            None => Err(self.wrong(
                format,
                part,
                format!("expected an object with `{key}`, found {}", a_type(part)),
            )),
        }
    }

    /// Fails unless a part is an object.
    ///
    /// # Errors
    /// The part is anything else.
    pub fn object(&self, format: &'static str, part: &Value) -> Result<(), FormatError> {
        if part.is_object() {
            return Ok(());
        }
        Err(self.wrong(
            format,
            part,
            format!("expected an object, found {}", a_type(part)),
        ))
    }
}

/// The type of a value with its article.
pub(crate) fn a_type(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Array(_) | Value::Object(_) => format!("an {}", type_name(value)),
        _ => format!("a {}", type_name(value)),
    }
}

/// The JSON pointer of a part of a value, found by its address.
fn pointer_of(root: &Value, part: &Value) -> Option<String> {
    if std::ptr::eq(root, part) {
        return Some(String::new());
    }
    let inside = |step: &str, child: &Value| {
        Some(format!(
            "{}{}",
            pointer_join("", step),
            pointer_of(child, part)?
        ))
    };
    match root {
        Value::Array(items) => {
            let mut steps = items.iter().enumerate();
            steps.find_map(|(at, child)| inside(&at.to_string(), child))
        }
        Value::Object(map) => map.iter().find_map(|(key, child)| inside(key, child)),
        _ => None,
    }
}

impl<'a> Input<'a> {
    /// Parses an input: JSON, JSON Lines, or an archive that only its reader opens.
    ///
    /// # Errors
    /// The first place that is not JSON.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FormatError> {
        Self::parse_at(bytes, 1)
    }

    /// Parses a part of a file that starts at the beginning of a line.
    ///
    /// # Errors
    /// The first place that is not JSON.
    pub fn parse_at(bytes: &'a [u8], first_line: usize) -> Result<Self, FormatError> {
        if let Some(archive) = archive(bytes)? {
            return Ok(archive);
        }
        let text = text(bytes, first_line)?;
        let mut input = Self::default();
        match sequence(text, first_line, &mut input.documents) {
            Some(error) => Err(error),
            None if input.documents.is_empty() => Err(FormatError::Empty),
            None => Ok(input),
        }
    }

    /// Parses the start of a file, for detection. The last document may be incomplete: it is left
    /// out. `None` if there is no complete document: more of the file is needed.
    ///
    /// # Errors
    /// The first place that is not JSON.
    pub fn head(bytes: &'a [u8]) -> Result<Option<Self>, FormatError> {
        if let Some(archive) = archive(bytes)? {
            return Ok(Some(archive));
        }
        // A character may be cut off at the end.
        let whole = match std::str::from_utf8(bytes) {
            Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
            _ => bytes,
        };
        let mut input = Self::default();
        match sequence(text(whole, 1)?, 1, &mut input.documents) {
            Some(FormatError::Syntax { message, .. }) if is_incomplete(&message) => {}
            Some(error) => return Err(error),
            None => {}
        }
        Ok((!input.documents.is_empty()).then_some(input))
    }

    /// Parses JSON Lines and leaves out the lines that are not JSON, each with its error. Use
    /// [`Input::parse`] for files that are not lines.
    #[must_use]
    pub fn parse_lines(bytes: &'a [u8], first_line: usize) -> (Self, Vec<FormatError>) {
        let mut input = Self::default();
        let mut errors = Vec::new();
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        for (at, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let number = first_line.saturating_add(at);
            match text(line, number) {
                Ok(text) => errors.extend(sequence(text, number, &mut input.documents)),
                Err(error) => errors.push(error),
            }
        }
        (input, errors)
    }

    /// The documents, in order. There are none in an archive.
    #[must_use]
    pub fn documents(&self) -> &[Document] {
        &self.documents
    }

    /// The records of all documents: the elements of arrays, and documents that are not arrays.
    /// Each has its JSON pointer in the document.
    pub(crate) fn records(&self) -> impl Iterator<Item = (&Document, &Value, String)> {
        self.documents.iter().flat_map(|document| {
            let items: Vec<(&Document, &Value, String)> = match &document.value {
                Value::Array(items) => items
                    .iter()
                    .enumerate()
                    .map(|(at, item)| (document, item, format!("/{at}")))
                    .collect(),
                one => vec![(document, one, String::new())],
            };
            items
        })
    }

    /// The bytes of an archive.
    #[must_use]
    pub fn archive(&self) -> Option<&'a [u8]> {
        self.archive
    }
}

impl From<Vec<Document>> for Input<'_> {
    fn from(documents: Vec<Document>) -> Self {
        Self {
            documents,
            archive: None,
        }
    }
}

fn archive(bytes: &[u8]) -> Result<Option<Input<'_>>, FormatError> {
    if bytes.len() > MAX_BYTES {
        return Err(FormatError::TooLarge {
            bytes: bytes.len(),
            max: MAX_BYTES,
        });
    }
    Ok(bytes.starts_with(ARCHIVE).then_some(Input {
        documents: Vec::new(),
        archive: Some(bytes),
    }))
}

fn text(bytes: &[u8], first_line: usize) -> Result<&str, FormatError> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|error| FormatError::NotText {
        line: first_line + line_ends(&bytes[..error.valid_up_to()]),
    })
}

fn line_ends(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// Parses a sequence of documents. Those before an error are kept.
fn sequence(text: &str, first_line: usize, documents: &mut Vec<Document>) -> Option<FormatError> {
    let (text, first_line) = without_comments(text, first_line);
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let (mut line, mut counted) = (first_line, 0);
    loop {
        let rest = &text[values.byte_offset()..];
        let start = text.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
        line += line_ends(&text.as_bytes()[counted..start]);
        counted = start;
        match values.next() {
            None => return None,
            Some(Ok(value)) => documents.push(Document { line, value }),
            Some(Err(error)) => {
                let message = error.to_string();
                // serde_json appends the position to the message.
                let end = message.rfind(" at line ").unwrap_or(message.len());
                return Some(FormatError::Syntax {
                    line: first_line + error.line().saturating_sub(1),
                    column: error.column(),
                    message: message[..end].to_owned(),
                });
            }
        }
    }
}

/// Leaves out the lines before the first document that start with `#`, which some recorders write.
fn without_comments(mut text: &str, mut line: usize) -> (&str, usize) {
    while text.starts_with('#') {
        let (_, rest) = text.split_once('\n').unwrap_or((text, ""));
        text = rest;
        line += 1;
    }
    (text, line)
}

/// Returns true for the error of an input that ends inside of a document.
fn is_incomplete(message: &str) -> bool {
    // All errors of this kind, and no others, have this prefix in serde_json.
    message.starts_with("EOF while parsing")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_know_their_lines() {
        let input = Input::parse(b"\n{\"a\":\n1}\n\n [2] 3\n").unwrap();
        let found: Vec<_> = input
            .documents()
            .iter()
            .map(|one| (one.line, one.value.clone()))
            .collect();
        assert_eq!(
            found,
            [(2, json!({"a": 1})), (5, json!([2])), (5, json!(3))]
        );
    }

    #[test]
    fn comments_before_the_first_document_are_left_out() {
        let input = Input::parse(b"# a\n# b\n{}\n").unwrap();
        assert_eq!(input.documents()[0].line, 3);
        assert_eq!(Input::parse(b"# a").unwrap_err(), FormatError::Empty);
        assert!(Input::parse(b"{}\n# a\n").is_err());
    }

    #[test]
    fn errors_have_a_place() {
        let error = Input::parse_at(b"{}\n{\"a\" 1}", 10).unwrap_err();
        assert!(
            matches!(
                error,
                FormatError::Syntax {
                    line: 11,
                    column: 6,
                    ..
                }
            ),
            "{error}"
        );
        let error = Input::parse(b"{}\n\xff").unwrap_err();
        assert_eq!(error, FormatError::NotText { line: 2 });
        assert_eq!(Input::parse(b" \n").unwrap_err(), FormatError::Empty);
        let deep = "[".repeat(1_000_000);
        assert!(matches!(
            Input::parse(deep.as_bytes()).unwrap_err(),
            FormatError::Syntax { line: 1, .. }
        ));
    }

    #[test]
    fn the_head_of_a_file_may_be_cut_anywhere() {
        let text = "{\"a\": \"ä\"}\n{\"b\": \"ö\"}\n".as_bytes();
        let first_end = text.iter().position(|byte| *byte == b'\n').unwrap();
        for end in 0..text.len() {
            let head = Input::head(&text[..end]).unwrap();
            assert_eq!(head.is_some(), end >= first_end, "{end}");
        }
        assert!(Input::head(b"{\"a\" 1").is_err());
    }

    #[test]
    fn broken_lines_are_left_out_and_reported() {
        let (input, errors) = Input::parse_lines(b"{}\n{\"a\": \n\xff\n[1]\n", 1);
        let lines: Vec<_> = input.documents().iter().map(|one| one.line).collect();
        assert_eq!(lines, [1, 4]);
        let lines: Vec<_> = errors.iter().map(FormatError::line).collect();
        assert_eq!(lines, [Some(2), Some(3)]);
    }

    #[test]
    fn a_part_is_found_by_its_address() {
        let document = Document {
            line: 3,
            value: json!({"a/b": [{"c": 1}, {"c": 1}]}),
        };
        let part = &document.value["a/b"][1]["c"];
        assert_eq!(
            document.wrong("x", part, "bad").to_string(),
            "line 3, at /a~1b/1/c: not x: bad"
        );
    }
}
