//! Prompts and their messages.

use serde_json::{Map, Value};

use super::compiled::Prompt;
use super::{Compiler, insert_some};
use crate::manifest::PromptSpec;
use crate::template::Builder;

impl Compiler {
    pub(super) fn prompt(&mut self, spec: &PromptSpec, at: &str) -> Prompt {
        let mut wire = Map::new();
        wire.insert("name".to_owned(), spec.name.clone().into());
        insert_some(&mut wire, "title", spec.title.as_ref());
        insert_some(&mut wire, "description", spec.description.as_ref());
        let arguments = spec.arguments.iter().map(|argument| {
            let mut entry = Map::new();
            entry.insert("name".to_owned(), argument.name.clone().into());
            insert_some(&mut entry, "description", argument.description.as_ref());
            entry.insert("required".to_owned(), argument.required.into());
            Value::Object(entry)
        });
        wire.insert("arguments".to_owned(), arguments.collect());

        let mut builder = Builder::default();
        if let Some(description) = &spec.description {
            builder.raw(br#""description":"#);
            builder.plain(&description.clone().into());
            builder.raw(b",");
        }
        builder.raw(br#""messages":["#);
        for (index, message) in spec.messages.iter().enumerate() {
            builder.raw(if index == 0 {
                b"{\"role\":\""
            } else {
                b",{\"role\":\""
            });
            builder.raw(message.role.as_str().as_bytes());
            builder.raw(br#"","content":"#);
            self.block(
                &mut builder,
                &message.content,
                &format!("{at}/messages/{index}/content"),
            );
            builder.raw(b"}");
        }
        builder.raw(b"]");
        Prompt {
            name: spec.name.clone(),
            wire: wire.into(),
            required: spec
                .arguments
                .iter()
                .filter(|argument| argument.required)
                .map(|argument| argument.name.clone())
                .collect(),
            complete: spec
                .arguments
                .iter()
                .filter_map(|argument| Some((argument.name.clone(), argument.complete.clone()?)))
                .collect(),
            ask: self.ask(&spec.ask, at),
            hidden: spec.hidden,
            response: self.finish(builder),
        }
    }
}
