//! Where the free texts of recorded things are. Names of fields and typed values are ours and stay
//! as they are, whatever they look like.

use mcptest_agent::{AssistantTurn, ToolReply};
use mcptest_trace::verdict::RunError;
use serde_json::{Map, Value};

use crate::format::{Catalog, Distractors, Subject};

/// Something that holds texts which others wrote.
pub(crate) trait Scrub {
    /// Shows each of them.
    fn scrub(&mut self, change: &mut dyn FnMut(&mut Value));

    /// As [`Scrub::scrub`], for a thing in hand.
    fn scrubbed(mut self, change: &mut dyn FnMut(&mut Value)) -> Self
    where
        Self: Sized,
    {
        self.scrub(change);
        self
    }
}

impl Scrub for Value {
    fn scrub(&mut self, change: &mut dyn FnMut(&mut Value)) {
        change(self);
    }
}

impl Scrub for String {
    fn scrub(&mut self, change: &mut dyn FnMut(&mut Value)) {
        let mut value = Value::String(std::mem::take(self));
        change(&mut value);
        if let Value::String(text) = value {
            *self = text;
        }
    }
}

impl Scrub for Map<String, Value> {
    fn scrub(&mut self, change: &mut dyn FnMut(&mut Value)) {
        let mut value = Value::Object(std::mem::take(self));
        change(&mut value);
        if let Value::Object(map) = value {
            *self = map;
        }
    }
}

impl<T: Scrub> Scrub for Option<T> {
    fn scrub(&mut self, change: &mut dyn FnMut(&mut Value)) {
        if let Some(inner) = self {
            inner.scrub(change);
        }
    }
}

impl<T: Scrub> Scrub for Vec<T> {
    fn scrub(&mut self, change: &mut dyn FnMut(&mut Value)) {
        for item in self {
            item.scrub(change);
        }
    }
}

impl Scrub for RunError {
    fn scrub(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.message.scrub(change);
    }
}

impl Scrub for AssistantTurn {
    fn scrub(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.text.scrub(change);
        for call in &mut self.calls {
            call.id.scrub(change);
            call.wire_name.scrub(change);
            call.args.scrub(change);
            call.caller.scrub(change);
        }
        self.stop_reason.scrub(change);
        self.native.scrub(change);
    }
}

impl Scrub for ToolReply {
    fn scrub(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.content.scrub(change);
        self.structured.scrub(change);
        self.error.scrub(change);
        self.marks.scrub(change);
    }
}

impl Scrub for Catalog {
    fn scrub(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.tools.scrub(change);
    }
}

impl Scrub for Distractors {
    fn scrub(&mut self, change: &mut dyn FnMut(&mut Value)) {
        for distractor in &mut self.tools {
            let mut value = Value::Object(distractor.tool.raw().clone());
            change(&mut value);
            // An object stays an object.
            if let Ok(tool) = serde_json::from_value(value) {
                distractor.tool = tool;
            }
            distractor.refusal.scrub(change);
        }
        self.order.scrub(change);
    }
}

impl Scrub for Subject {
    fn scrub(&mut self, change: &mut dyn FnMut(&mut Value)) {
        self.test.scrub(change);
        self.model.scrub(change);
        self.system.scrub(change);
        self.prompt.scrub(change);
        self.settings.scrub(change);
    }
}
