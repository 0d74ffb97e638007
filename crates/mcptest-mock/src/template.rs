//! Responses that use the arguments of the call, `${args.name}`, and the answers of the client to
//! its requests, `${answers.name}`.
//!
//! - `${args.a.b[0]}` follows members and list items, `${args["any key"]}` accepts any key,
//!   `${args}` is all arguments.
//! - Within a longer string, a string is inserted as it is, any other value as compact JSON, and an
//!   absent one as the empty string.
//! - A string that is just one template keeps the value's JSON type; absent is `null`.
//! - Before `{`, `$$` means one `$`: `$${` is a literal `${`, and `$$${args.price}` a dollar sign
//!   and the price.
//!
//! A template is compiled once into segments of JSON text and paths, and rendered directly into the
//! output. Inserted values are data: they are escaped and never parsed as templates.

use serde_json::Value;

use crate::expression::{Part, Path, Values, parse};
use crate::jsonrpc::write_json;

/// JSON text with placeholders for arguments.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Template {
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, PartialEq)]
enum Segment {
    /// JSON text.
    Raw(Vec<u8>),
    /// A value with its JSON type.
    Json(Path),
    /// A value as part of a JSON string.
    Text(Path),
    /// The JSON text of another template, as part of a JSON string.
    Quoted(Template),
}

/// An invalid template.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct TemplateError {
    /// The position, as a JSON pointer from the compiled value.
    pub pointer: String,
    /// The error.
    pub message: String,
}

/// The rule for strings that are just one template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They keep the value's type.
    Typed,
    /// In a content block, members that MCP defines as strings stay strings, others keep the type.
    Block,
    /// They become strings.
    Text,
}

/// The members of a content block (and of the resource in it) that must be strings.
const BLOCK_STRINGS: [&str; 9] = [
    "type",
    "text",
    "data",
    "mimeType",
    "uri",
    "blob",
    "name",
    "title",
    "description",
];

impl Template {
    /// Compiles a value; strings that are just one template keep the value's type.
    ///
    /// # Errors
    /// All invalid templates in it.
    pub fn compile(value: &Value) -> Result<Self, Vec<TemplateError>> {
        let mut builder = Builder::default();
        builder.value(value, Mode::Typed, "");
        let (template, errors) = builder.finish();
        if errors.is_empty() {
            Ok(template)
        } else {
            Err(errors)
        }
    }

    /// Appends the JSON text for these arguments.
    pub fn render(&self, args: &Value, out: &mut Vec<u8>) {
        self.render_with(Values::of(args), out);
    }

    /// Returns true if it uses the answers of the client.
    pub(crate) fn uses_answers(&self) -> bool {
        self.segments.iter().any(|segment| match segment {
            Segment::Raw(_) => false,
            Segment::Json(path) | Segment::Text(path) => path.is_of_answers(),
            Segment::Quoted(template) => template.uses_answers(),
        })
    }

    /// Appends the JSON text for these values.
    pub(crate) fn render_with(&self, values: Values<'_>, out: &mut Vec<u8>) {
        for segment in &self.segments {
            match segment {
                Segment::Raw(text) => out.extend_from_slice(text),
                Segment::Json(path) => match path.find(values) {
                    Some(value) => write_json(out, value),
                    None => out.extend_from_slice(b"null"),
                },
                Segment::Text(path) => match path.find(values) {
                    Some(Value::String(text)) => escape(text.as_bytes(), out),
                    Some(value @ (Value::Array(_) | Value::Object(_))) => {
                        let mut json = Vec::new();
                        write_json(&mut json, value);
                        escape(&json, out);
                    }
                    Some(value) => write_json(out, value),
                    None => {}
                },
                Segment::Quoted(template) => {
                    let mut json = Vec::new();
                    template.render_with(values, &mut json);
                    escape(&json, out);
                }
            }
        }
    }
}

/// Builds a template from JSON text and values.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    segments: Vec<Segment>,
    errors: Vec<TemplateError>,
}

impl Builder {
    /// Adds JSON text.
    pub(crate) fn raw(&mut self, text: &[u8]) {
        if let Some(Segment::Raw(last)) = self.segments.last_mut() {
            last.extend_from_slice(text);
        } else if !text.is_empty() {
            self.segments.push(Segment::Raw(text.to_vec()));
        }
    }

    /// Adds a value without templates.
    pub(crate) fn plain(&mut self, value: &Value) {
        let mut text = Vec::new();
        write_json(&mut text, value);
        self.raw(&text);
    }

    /// Adds a value with its templates.
    pub(crate) fn value(&mut self, value: &Value, mode: Mode, pointer: &str) {
        match value {
            Value::String(text) => self.text(text, mode, pointer),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.raw(if index == 0 { b"[" } else { b"," });
                    self.value(item, mode, &format!("{pointer}/{index}"));
                }
                self.raw(if items.is_empty() { b"[]" } else { b"]" });
            }
            Value::Object(members) => {
                for (index, (key, member)) in members.iter().enumerate() {
                    self.raw(if index == 0 { b"{" } else { b"," });
                    self.plain(&Value::String(key.clone()));
                    self.raw(b":");
                    let mode = member_mode(mode, key);
                    self.value(member, mode, &format!("{pointer}/{}", escape_token(key)));
                }
                self.raw(if members.is_empty() { b"{}" } else { b"}" });
            }
            other => self.plain(other),
        }
    }

    /// Adds a JSON string that contains the JSON text of `template`.
    pub(crate) fn quoted(&mut self, template: Template) {
        self.raw(b"\"");
        self.segments.push(Segment::Quoted(template));
        self.raw(b"\"");
    }

    /// Adds all arguments as part of a JSON string.
    pub(crate) fn all_arguments_as_text(&mut self) {
        self.segments.push(Segment::Text(Path::default()));
    }

    /// Returns the template and the errors.
    pub(crate) fn finish(self) -> (Template, Vec<TemplateError>) {
        let template = Template {
            segments: self.segments,
        };
        (template, self.errors)
    }

    fn text(&mut self, text: &str, mode: Mode, pointer: &str) {
        let parts = match parse(text) {
            Ok(parts) => parts,
            Err(message) => {
                self.errors.push(TemplateError {
                    pointer: pointer.to_owned(),
                    message,
                });
                return;
            }
        };
        if mode != Mode::Text
            && let [Part::Path(_)] = parts.as_slice()
        {
            let paths = parts.into_iter().filter_map(|part| match part {
                Part::Path(path) => Some(Segment::Json(path)),
                Part::Literal(_) => None,
            });
            self.segments.extend(paths);
            return;
        }
        self.raw(b"\"");
        for part in parts {
            match part {
                Part::Literal(text) => {
                    let mut escaped = Vec::with_capacity(text.len());
                    escape(text.as_bytes(), &mut escaped);
                    self.raw(&escaped);
                }
                Part::Path(path) => self.segments.push(Segment::Text(path)),
            }
        }
        self.raw(b"\"");
    }
}

/// The mode of an object's member.
fn member_mode(mode: Mode, key: &str) -> Mode {
    match mode {
        Mode::Block if BLOCK_STRINGS.contains(&key) => Mode::Text,
        Mode::Block if key == "resource" => Mode::Block,
        Mode::Block => Mode::Typed,
        other => other,
    }
}

/// A key as part of a JSON pointer.
pub(crate) fn escape_token(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Appends UTF-8 text, escaped for the inside of a JSON string.
fn escape(text: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut done = 0;
    for (at, &byte) in text.iter().enumerate() {
        let short = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x00..=0x1f => b'u',
            _ => continue,
        };
        out.extend_from_slice(&text[done..at]);
        out.extend_from_slice(&[b'\\', short]);
        if short == b'u' {
            let digits = [
                b'0',
                b'0',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ];
            out.extend_from_slice(&digits);
        }
        done = at + 1;
    }
    out.extend_from_slice(&text[done..]);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn render(template: &Value, args: &Value) -> Value {
        let mut out = Vec::new();
        Template::compile(template)
            .expect("a valid template")
            .render(args, &mut out);
        serde_json::from_slice(&out).expect("valid JSON")
    }

    #[test]
    fn strings_take_values_and_single_templates_keep_their_type() {
        let args = json!({
            "q": "a \"b\"\n", "n": 7, "list": [{"x": [1, 2]}], "odd key": true, "nothing": null,
        });
        for (template, expected) in [
            (json!("no template, $5, $$"), json!("no template, $5, $$")),
            (json!("Find ${args.q}!"), json!("Find a \"b\"\n!")),
            (json!("${args.n}"), json!(7)),
            (json!("n=${args.n}${args.nothing}"), json!("n=7null")),
            (json!("${args.list[0].x[1]}"), json!(2)),
            (json!("x ${args.list}"), json!("x [{\"x\":[1,2]}]")),
            (json!("${args[\"odd key\"]}"), json!(true)),
            (json!("${args.absent}"), json!(null)),
            (json!("<${args.absent.deep[3]}>"), json!("<>")),
            (json!("${args}"), args.clone()),
            (json!("$${args.q}"), json!("${args.q}")),
            (json!("$$${args.n}"), json!("$7")),
            (json!("$$$${args.n}"), json!("$${args.n}")),
            (
                json!({"a": ["${args.n}", {"b": "v${args.n}"}], "e": [{}, []]}),
                json!({"a": [7, {"b": "v7"}], "e": [{}, []]}),
            ),
        ] {
            assert_eq!(render(&template, &args), expected, "{template}");
        }
    }

    #[test]
    fn arguments_are_never_parsed_as_templates() {
        let args = json!({"a": "${args.b}", "b": "secret"});
        assert_eq!(render(&json!("-${args.a}-"), &args), json!("-${args.b}-"));
        assert_eq!(render(&json!("${args.a}"), &args), json!("${args.b}"));
    }

    #[test]
    fn every_invalid_template_is_reported_with_its_position() {
        let bad = json!({
            "a": ["${query}", "fine"], "b/c": "x ${args.", "d": "${args[x]}",
            "e": "${args.x", "f": "${args x}",
        });
        let errors = Template::compile(&bad).expect_err("four errors");
        let pointers: Vec<_> = errors.iter().map(|error| error.pointer.as_str()).collect();
        assert_eq!(pointers, ["/a/0", "/b~1c", "/d", "/e", "/f"]);
        assert_eq!(
            errors[0].message,
            "`${query}` is not a template: only arguments are available here, \
             write `${args.query}`; for a literal `${` write `$${`"
        );
    }

    #[test]
    fn a_content_block_keeps_its_strings() {
        let block = json!({
            "type": "text", "text": "${args.n}", "annotations": {"priority": "${args.n}"},
            "resource": {"uri": "${args.absent}"},
        });
        let mut builder = Builder::default();
        builder.value(&block, Mode::Block, "");
        let mut out = Vec::new();
        builder.finish().0.render(&json!({"n": 1}), &mut out);
        let rendered: Value = serde_json::from_slice(&out).expect("valid JSON");
        assert_eq!(
            rendered,
            json!({
                "type": "text", "text": "1", "annotations": {"priority": 1},
                "resource": {"uri": ""},
            })
        );
    }
}
