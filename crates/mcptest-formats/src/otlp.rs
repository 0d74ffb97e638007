//! Spans in OTLP JSON: the form that OpenTelemetry exporters and collectors write.
//!
//! Written for OTLP 1.x (`opentelemetry-proto`): documents with `resourceSpans`, one in a file or
//! one per line. Exporters repeat and reorder spans: a span that is recorded twice is one, and
//! spans are sorted by the time at which they started.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::content::string;
use crate::error::FormatError;
use crate::input::{Document, Input};
use crate::reader::Detection;

/// A span.
#[derive(Debug)]
pub(crate) struct Span<'v> {
    /// The id of its trace.
    pub trace: &'v str,
    /// Its own id.
    pub id: &'v str,
    /// The id of the span that it is a part of.
    pub parent: Option<&'v str>,
    /// The name.
    pub name: &'v str,
    /// Its start and its end, in nanoseconds.
    pub start: u64,
    pub end: u64,
    /// True if its status is an error.
    pub failed: bool,
    /// The message of its status.
    pub message: Option<&'v str>,
    /// The attributes, also those of its events that have the whole span's facts.
    pub attributes: HashMap<&'v str, Value>,
}

impl Span<'_> {
    /// An attribute.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.attributes.get(key)
    }

    /// An attribute that is a string, and not an empty one.
    pub fn text(&self, key: &str) -> Option<&str> {
        let text = self.attributes.get(key)?.as_str()?;
        (!text.is_empty()).then_some(text)
    }

    /// An attribute that is a count.
    pub fn count(&self, key: &str) -> Option<u64> {
        let value = self.attributes.get(key)?;
        let text = || value.as_str()?.parse().ok();
        value.as_u64().or_else(text)
    }

    /// An attribute that is JSON, as a value or as text. Text that is not JSON stays a string.
    pub fn json(&self, key: &str) -> Option<Value> {
        let value = self.attributes.get(key)?;
        match value {
            Value::String(text) => {
                Some(serde_json::from_str(text).unwrap_or_else(|_| value.clone()))
            }
            other => Some(other.clone()),
        }
    }
}

/// Detects spans of a format. `claims` decides about one span: `Match` for a mark of the format,
/// `No` for a mark of another one, `Possible` for anything else.
pub(crate) fn detect(input: &Input<'_>, claims: impl Fn(&Span<'_>) -> Detection) -> Detection {
    if input.archive().is_some() || input.documents().is_empty() {
        return Detection::No;
    }
    let mut found = Detection::Possible;
    for document in input.documents() {
        for one in exports(&document.value) {
            if one.get("resourceSpans").is_none() {
                return Detection::No;
            }
            for span in spans_of(one) {
                match claims(&span) {
                    Detection::Match => found = Detection::Match,
                    Detection::Possible => {}
                    other => return other,
                }
            }
        }
    }
    found
}

/// The exports of a document: the document, or the elements of an array.
fn exports(document: &Value) -> &[Value] {
    match document {
        Value::Array(items) => items,
        one => std::slice::from_ref(one),
    }
}

/// The spans of all traces of an input: by trace in the order of the file, each by start.
///
/// # Errors
/// A document is not OTLP JSON.
pub(crate) fn traces<'v>(
    format: &'static str,
    documents: &'v [Document],
) -> Result<Vec<Vec<Span<'v>>>, FormatError> {
    let mut traces: Vec<Vec<Span<'v>>> = Vec::new();
    let mut place: HashMap<&str, usize> = HashMap::new();
    let mut seen = HashSet::new();
    for document in documents {
        for one in exports(&document.value) {
            for resource in document.array(format, one, "resourceSpans")? {
                document.object(format, resource)?;
            }
            for span in spans_of(one) {
                if !seen.insert((span.trace, span.id)) {
                    continue;
                }
                let at = *place.entry(span.trace).or_insert_with(|| {
                    traces.push(Vec::new());
                    traces.len() - 1
                });
                if let Some(trace) = traces.get_mut(at) {
                    trace.push(span);
                }
            }
        }
    }
    for trace in &mut traces {
        // The sort is stable: spans of the same moment stay in the order of the file.
        trace.sort_by_key(|span| span.start);
    }
    Ok(traces)
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice)
}

fn spans_of(export: &Value) -> impl Iterator<Item = Span<'_>> {
    list(export, "resourceSpans").iter().flat_map(|resource| {
        // The second key is the name before OTLP 0.15.
        let scopes = list(resource, "scopeSpans").iter();
        let scopes = scopes.chain(list(resource, "instrumentationLibrarySpans"));
        scopes.flat_map(|scope| list(scope, "spans").iter().filter_map(span))
    })
}

/// A span, unless it has no ids.
fn span(span: &Value) -> Option<Span<'_>> {
    let status = span.get("status");
    let code = status.and_then(|status| status.get("code"));
    let mut all = attributes(span);
    for event in list(span, "events") {
        // The contents of a request, for those who do not want them on the span.
        if string(event, "name") == Some("gen_ai.client.inference.operation.details") {
            for (key, value) in attributes(event) {
                all.entry(key).or_insert(value);
            }
        }
    }
    Some(Span {
        trace: string(span, "traceId")?,
        id: string(span, "spanId")?,
        parent: string(span, "parentSpanId").filter(|parent| !parent.is_empty()),
        name: string(span, "name").unwrap_or_default(),
        start: time(span, "startTimeUnixNano"),
        end: time(span, "endTimeUnixNano"),
        failed: code.is_some_and(|code| *code == 2 || *code == "STATUS_CODE_ERROR"),
        message: status
            .and_then(|status| string(status, "message"))
            .filter(|message| !message.is_empty()),
        attributes: all,
    })
}

/// A time: 64 bits are a string in JSON, but not every writer follows.
fn time(span: &Value, key: &str) -> u64 {
    let value = span.get(key);
    let text = value
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok());
    text.or_else(|| value?.as_u64()).unwrap_or(0)
}

/// The attributes of a span, an event or a resource.
pub(crate) fn attributes(of: &Value) -> HashMap<&str, Value> {
    let pairs = list(of, "attributes").iter();
    pairs
        .filter_map(|pair| Some((string(pair, "key")?, any_value(pair.get("value")?))))
        .collect()
}

/// The JSON value of an `AnyValue`.
fn any_value(value: &Value) -> Value {
    let Some((kind, inner)) = value.as_object().and_then(|map| map.iter().next()) else {
        return Value::Null;
    };
    match (kind.as_str(), inner) {
        ("intValue", Value::String(text)) => match text.parse::<i64>() {
            Ok(number) => number.into(),
            Err(_) => inner.clone(),
        },
        ("arrayValue", array) => list(array, "values").iter().map(any_value).collect(),
        ("kvlistValue", pairs) => {
            let pairs = list(pairs, "values").iter().filter_map(|pair| {
                let value = pair.get("value").map_or(Value::Null, any_value);
                Some((string(pair, "key")?.to_owned(), value))
            });
            Value::Object(pairs.collect::<Map<_, _>>())
        }
        _ => inner.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn export(spans: &Value) -> Vec<u8> {
        json!({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})
            .to_string()
            .into_bytes()
    }

    #[test]
    fn spans_are_grouped_sorted_and_counted_once() {
        let span = |trace: &str, id: &str, start: &str| {
            json!({"traceId": trace, "spanId": id, "startTimeUnixNano": start,
                   "status": {"code": 2, "message": "no"}})
        };
        let text = export(&json!([
            span("b", "1", "30"),
            span("a", "2", "20"),
            span("b", "3", "10"),
            span("b", "1", "30"),
            {"name": "no ids"},
        ]));
        let input = Input::parse(&text).unwrap();
        let traces = traces("otel", input.documents()).unwrap();
        let ids: Vec<Vec<&str>> = traces
            .iter()
            .map(|trace| trace.iter().map(|span| span.id).collect())
            .collect();
        assert_eq!(ids, [vec!["3", "1"], vec!["2"]]);
        assert!(traces[0][0].failed);
        assert_eq!(traces[0][0].message, Some("no"));
    }

    #[test]
    fn attribute_values_become_json() {
        let text = export(&json!([{
            "traceId": "a", "spanId": "1", "attributes": [
                {"key": "text", "value": {"stringValue": "x"}},
                {"key": "json", "value": {"stringValue": "{\"a\": [1]}"}},
                {"key": "count", "value": {"intValue": "7"}},
                {"key": "also", "value": {"intValue": 7}},
                {"key": "list", "value": {"arrayValue": {"values": [{"boolValue": true}]}}},
                {"key": "map", "value": {"kvlistValue": {"values": [
                    {"key": "k", "value": {"doubleValue": 0.5}}]}}},
                {"key": "none", "value": {}},
            ],
            "events": [
                {"name": "gen_ai.client.inference.operation.details", "attributes": [
                    {"key": "text", "value": {"stringValue": "y"}},
                    {"key": "more", "value": {"stringValue": "z"}}]},
            ],
        }]));
        let input = Input::parse(&text).unwrap();
        let traces = traces("otel", input.documents()).unwrap();
        let span = &traces[0][0];
        assert_eq!(span.text("text"), Some("x"));
        assert_eq!(span.text("more"), Some("z"));
        assert_eq!(span.json("json"), Some(json!({"a": [1]})));
        assert_eq!(span.json("text"), Some(json!("x")));
        assert_eq!(
            (span.count("count"), span.count("also")),
            (Some(7), Some(7))
        );
        assert_eq!(span.get("list"), Some(&json!([true])));
        assert_eq!(span.get("map"), Some(&json!({"k": 0.5})));
        assert_eq!(span.get("none"), Some(&json!(null)));
    }

    #[test]
    fn a_document_without_spans_is_an_error_with_its_place() {
        let input = Input::parse(br#"{"resourceSpans": {}}"#).unwrap();
        let error = traces("otel", input.documents()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 1, at /resourceSpans: not otel: expected an array, found an object"
        );
    }
}
