//! Resources and resource templates.

use mcptest_protocol::base64::is_base64;
use serde_json::{Map, Value};

use super::compiled::{Resource, ResourceTemplate};
use super::{Compiler, insert_some};
use crate::manifest::{ResourceSpec, ResourceTemplateSpec};
use crate::template::{Builder, Mode};

/// An entry of a list: the URI, then the name (the URI by default), title, description and media
/// type.
fn entry(key: &str, uri: &str, described: [&Option<String>; 4]) -> Value {
    let [name, title, description, mime_type] = described;
    let mut wire = Map::new();
    wire.insert(key.to_owned(), uri.into());
    wire.insert("name".to_owned(), name.as_deref().unwrap_or(uri).into());
    insert_some(&mut wire, "title", title.as_ref());
    insert_some(&mut wire, "description", description.as_ref());
    insert_some(&mut wire, "mimeType", mime_type.as_ref());
    wire.into()
}

impl Compiler {
    pub(super) fn resource(&mut self, spec: &ResourceSpec, at: &str) -> Resource {
        let mut contents = Map::new();
        contents.insert("uri".to_owned(), spec.uri.clone().into());
        insert_some(&mut contents, "mimeType", spec.mime_type.as_ref());
        insert_some(&mut contents, "text", spec.text.as_ref());
        insert_some(&mut contents, "blob", spec.blob.as_ref());
        match (&spec.text, &spec.blob) {
            (Some(_), None) => {}
            (None, Some(blob)) if is_base64(blob) => {}
            (None, Some(_)) => self.problem(
                format!("{at}/blob"),
                "not base64: for plain text use `text`",
            ),
            (None, None) => self.problem(at, "a resource needs `text`, or `blob` in base64"),
            (Some(_), Some(_)) => self.problem(
                format!("{at}/blob"),
                "a resource has either `text` or `blob`, not both",
            ),
        }
        let mut versions = vec![Value::Object(contents.clone())];
        let key = match spec.blob {
            Some(_) => "blob",
            None => "text",
        };
        for (index, update) in spec.updates.iter().enumerate() {
            if key == "blob" && !is_base64(update) {
                self.problem(format!("{at}/updates/{index}"), "not base64");
            }
            let mut contents = contents.clone();
            contents.insert(key.to_owned(), update.clone().into());
            versions.push(contents.into());
        }
        Resource {
            uri: spec.uri.clone(),
            wire: entry(
                "uri",
                &spec.uri,
                [&spec.name, &spec.title, &spec.description, &spec.mime_type],
            ),
            contents: versions,
            subscribe: spec.subscribe,
            hidden: spec.hidden,
        }
    }

    pub(super) fn resource_template(
        &mut self,
        spec: &ResourceTemplateSpec,
        at: &str,
    ) -> ResourceTemplate {
        let (literals, names) = self.pattern(&spec.uri_template, &format!("{at}/uri_template"));
        for name in spec.complete.keys().filter(|name| !names.contains(name)) {
            self.problem(
                format!("{at}/complete"),
                format!("the pattern has no `{{{name}}}`"),
            );
        }
        let mut builder = Builder::default();
        if let Some(kind) = &spec.mime_type {
            builder.raw(br#","mimeType":"#);
            builder.plain(&kind.clone().into());
        }
        match (&spec.text, &spec.blob) {
            (Some(text), None) => {
                builder.raw(br#","text":"#);
                builder.value(&text.clone().into(), Mode::Text, &format!("{at}/text"));
            }
            (None, Some(blob)) => {
                if !is_base64(blob) {
                    self.problem(
                        format!("{at}/blob"),
                        "not base64: for plain text use `text`",
                    );
                }
                builder.raw(br#","blob":"#);
                builder.plain(&blob.clone().into());
            }
            _ => self.problem(
                at,
                "a resource template needs either `text`, or `blob` in base64",
            ),
        }
        ResourceTemplate {
            literals,
            names,
            pattern: spec.uri_template.clone(),
            wire: entry(
                "uriTemplate",
                &spec.uri_template,
                [&spec.name, &spec.title, &spec.description, &spec.mime_type],
            ),
            contents: self.finish(builder),
            complete: spec.complete.clone(),
        }
    }

    /// The literals of a pattern and the names between them: one more literal than names.
    fn pattern(&mut self, pattern: &str, at: &str) -> (Vec<String>, Vec<String>) {
        let mut literals = Vec::new();
        let mut names: Vec<String> = Vec::new();
        let mut rest = pattern;
        while let Some((literal, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else {
                self.problem(at, "a `{` is never closed");
                break;
            };
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if name.is_empty() || !name.bytes().all(plain) {
                self.problem(
                    at,
                    "between `{` and `}` must be a name of letters, digits and `_`",
                );
            }
            if !names.is_empty() && literal.is_empty() {
                self.problem(at, "two variables need a literal between them");
            }
            if names.iter().any(|other| other == name) {
                self.problem(at, format!("`{{{name}}}` is used twice"));
            }
            literals.push(literal.to_owned());
            names.push(name.to_owned());
            rest = after;
        }
        literals.push(rest.to_owned());
        if names.is_empty() {
            self.problem(at, "it has no variables: declare it under `resources`");
        }
        (literals, names)
    }
}
