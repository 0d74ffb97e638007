//! Visiting the free strings of recorded values: those that a model, a server or an author wrote.
//! Names of our own fields and typed values are never changed.

use mcptest_agent::{AssistantTurn, ToolReply};
use mcptest_redact::redact::Redactor;
use mcptest_trace::verdict::RunError;
use serde_json::{Map, Value};

use crate::format::{RecordedCatalog, RecordedDistractors, Subject};

/// A value with free strings.
pub(crate) trait MapStrings {
    /// Calls `change` with every value that holds free strings.
    fn map_strings(&mut self, change: &mut dyn FnMut(&mut Value));

    /// Does the same and returns the value.
    fn with_mapped_strings(mut self, change: &mut dyn FnMut(&mut Value)) -> Self
    where
        Self: Sized,
    {
        self.map_strings(change);
        self
    }
}

/// Returns the value without secrets. Everything that is written to a cassette passes through here.
pub(crate) fn redacted<T: MapStrings>(redactor: &Redactor, value: T) -> T {
    value.with_mapped_strings(&mut |value| redactor.value(value))
}

impl MapStrings for Value {
    fn map_strings(&mut self, change: &mut dyn FnMut(&mut Value)) {
        change(self);
    }
}

impl MapStrings for String {
    fn map_strings(&mut self, change: &mut dyn FnMut(&mut Value)) {
        let mut value = Value::String(std::mem::take(self));
        change(&mut value);
        if let Value::String(text) = value {
            *self = text;
        }
    }
}

impl MapStrings for Map<String, Value> {
    fn map_strings(&mut self, change: &mut dyn FnMut(&mut Value)) {
        let mut value = Value::Object(std::mem::take(self));
        change(&mut value);
        if let Value::Object(map) = value {
            *self = map;
        }
    }
}

impl<T: MapStrings> MapStrings for Option<T> {
    fn map_strings(&mut self, change: &mut dyn FnMut(&mut Value)) {
        if let Some(inner) = self {
            inner.map_strings(change);
        }
    }
}

impl<T: MapStrings> MapStrings for Vec<T> {
    fn map_strings(&mut self, change: &mut dyn FnMut(&mut Value)) {
        for item in self {
            item.map_strings(change);
        }
    }
}

impl MapStrings for RunError {
    fn map_strings(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.message.map_strings(change);
    }
}

impl MapStrings for AssistantTurn {
    fn map_strings(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.text.map_strings(change);
        for call in &mut self.calls {
            call.id.map_strings(change);
            call.wire_name.map_strings(change);
            call.args.map_strings(change);
            call.caller.map_strings(change);
        }
        self.stop_reason.map_strings(change);
        self.native.map_strings(change);
    }
}

impl MapStrings for ToolReply {
    fn map_strings(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.content.map_strings(change);
        self.structured.map_strings(change);
        self.error.map_strings(change);
        self.marks.map_strings(change);
    }
}

impl MapStrings for RecordedCatalog {
    fn map_strings(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.tools.map_strings(change);
    }
}

impl MapStrings for RecordedDistractors {
    fn map_strings(&mut self, change: &mut dyn FnMut(&mut Value)) {
        for distractor in &mut self.tools {
            let mut value = Value::Object(distractor.tool.raw().clone());
            change(&mut value);
            // `change` keeps objects objects, so this succeeds.
            if let Ok(tool) = serde_json::from_value(value) {
                distractor.tool = tool;
            }
            distractor.refusal.map_strings(change);
        }
        self.order.map_strings(change);
    }
}

impl MapStrings for Subject {
    fn map_strings(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.test.map_strings(change);
        self.model.map_strings(change);
        self.system.map_strings(change);
        self.prompt.map_strings(change);
        self.settings.map_strings(change);
    }
}
