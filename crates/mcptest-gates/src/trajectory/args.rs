//! The expected arguments of a call.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::pattern::{Extent, Pattern};
use mcptest_json::text::{one_line, shorten};
use mcptest_json::{pointer_join, type_name};
use mcptest_trace::catalog::Tool;
use mcptest_trace::matcher::{
    Difference, JsonSchema as CheckedSchema, Matcher, Problem, matcher_schema,
};
use mcptest_trace::trace::ToolCallView;

/// The words for it in messages.
const EXPECTED: &str = "`any`, `ignore`, or one of `exact:`, `subset:`, `schema:` and `match:`";

/// The `args:` of an expected call as written.
///
/// ```yaml
/// args: any                                    # also absent; the same as leaving `args` out
/// args: ignore                                 # never checked
/// args: { exact: { city: Sacramento } }
/// args: { subset: { city: { one_of: [Sacramento, Davis] } }, ignore_keys: ["*_id"] }
/// args: { schema: { required: [city] } }
/// args: { match: { city: { contains: Sac } } }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WrittenArgs(pub Value);

impl Default for WrittenArgs {
    fn default() -> Self {
        Self("any".into())
    }
}

impl JsonSchema for WrittenArgs {
    fn schema_name() -> Cow<'static, str> {
        "ExpectedArgs".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let matcher = matcher_schema(generator);
        json_schema!({
            "description": "What the call's arguments must look like.",
            "x-mcptest-expected": EXPECTED,
            "anyOf": [
                {"const": "any"},
                {"const": "ignore"},
                {
                    "type": "object",
                    "x-mcptest-expected": EXPECTED,
                    "minProperties": 1,
                    "additionalProperties": false,
                    "properties": {
                        "exact": {"description": "The arguments equal this deeply; `{one_of: [..]}` in it matches any of its values."},
                        "subset": {"description": "The arguments have at least these keys with these values, nested ones too, also inside lists; `{one_of: [..]}` as in `exact`."},
                        "partial": {"x-mcptest-alias-of": "subset", "description": "Another spelling of `subset`."},
                        "schema": {"type": ["object", "boolean"], "description": "The arguments are valid under this JSON Schema."},
                        "match": {
                            "type": "object",
                            "description": "A matcher for each of these arguments; others may be there.",
                            "additionalProperties": {
                                "x-mcptest-expected": "a matcher, or a plain value that must be equal",
                                "anyOf": [matcher, {"type": ["string", "number", "boolean", "null"]}]
                            }
                        },
                        "ignore_keys": {"type": "array", "items": {"type": "string", "minLength": 1}, "description": "Keys that are left out on both sides, at any depth; `*` and `?` are wildcards."},
                        "defaults": {"type": "boolean", "description": "Whether an omitted argument equals the default in the tool's input schema."}
                    }
                }
            ]
        })
    }
}

/// Argument options for several calls; a call's own option wins.
#[derive(Debug, Clone, Default)]
pub(super) struct ArgsOptions {
    pub(super) ignore_keys: Vec<String>,
    pub(super) defaults: bool,
}

/// Compiled expected arguments.
#[derive(Debug, Clone)]
pub(super) struct ExpectedArgs {
    shape: Shape,
    ignore: Option<KeyGlobs>,
    defaults: bool,
}

#[derive(Debug, Clone)]
enum Shape {
    /// `any` and `ignore`.
    Anything,
    Pattern(Pattern, Extent),
    Schema(CheckedSchema),
    Match(Vec<(String, Matcher)>),
}

/// The reason why recorded arguments do not fit.
#[derive(Debug)]
pub(super) struct ArgsMismatch {
    pub(super) reason: String,
    pub(super) diff: Vec<Difference>,
}

impl ExpectedArgs {
    /// Compiles what was written. Pointers of problems start at `at`.
    pub(super) fn compile(
        written: &WrittenArgs,
        mut options: ArgsOptions,
        at: &str,
        problems: &mut Vec<Problem>,
    ) -> Self {
        let mut shapes = Vec::new();
        let mut unknown = false;
        match &written.0 {
            Value::String(word) if word == "any" || word == "ignore" => {
                shapes.push(Shape::Anything)
            }
            Value::Object(map) => {
                for (key, value) in map {
                    let place = pointer_join(at, key);
                    match key.as_str() {
                        "exact" => shapes.push(Shape::Pattern(
                            Pattern::compile(value, &place, problems),
                            Extent::Whole,
                        )),
                        "subset" | "partial" => shapes.push(Shape::Pattern(
                            Pattern::compile(value, &place, problems),
                            Extent::Part,
                        )),
                        "schema" => match CheckedSchema::new(value, &place) {
                            Ok(schema) => shapes.push(Shape::Schema(schema)),
                            Err(more) => {
                                problems.extend(more);
                                shapes.push(Shape::Anything);
                            }
                        },
                        "match" => shapes.push(matchers(value, &place, problems)),
                        "ignore_keys" => match serde_json::from_value::<Vec<String>>(value.clone())
                        {
                            Ok(more) => options.ignore_keys.extend(more),
                            Err(_) => problems
                                .push(Problem::new(place, "`ignore_keys` takes a list of keys")),
                        },
                        "defaults" => match value.as_bool() {
                            Some(defaults) => options.defaults = defaults,
                            None => {
                                problems.push(Problem::new(place, "`defaults` takes true or false"))
                            }
                        },
                        _ => {
                            unknown = true;
                            problems.push(
                                Problem::new(place, format!("`{}` is not a shape of arguments", one_line(key))).help(
                                    format!("expected {EXPECTED}; plain values go below `subset:` or `exact:`"),
                                ),
                            );
                        }
                    }
                }
                if shapes.len() > 1 {
                    problems.push(Problem::new(
                        at,
                        format!("more than one shape; expected {EXPECTED}"),
                    ));
                } else if shapes.is_empty() && !unknown {
                    problems.push(Problem::new(at, format!("no shape; expected {EXPECTED}")));
                }
            }
            _ => problems.push(Problem::new(at, format!("expected {EXPECTED}"))),
        }
        Self {
            shape: shapes.pop().unwrap_or(Shape::Anything),
            ignore: KeyGlobs::compile(&options.ignore_keys),
            defaults: options.defaults,
        }
    }

    /// Returns true if the arguments of a call fit. `tool` is its entry in the catalog.
    pub(super) fn fits(&self, call: &ToolCallView<'_>, tool: Option<&Tool>) -> bool {
        if matches!(self.shape, Shape::Anything) {
            return true;
        }
        let defaults = self.defaults_of(tool);
        let recorded = self.prepared(call, &defaults);
        match &self.shape {
            Shape::Anything => true,
            Shape::Pattern(pattern, extent) => self
                .prepared_pattern(pattern, *extent, &defaults)
                .fits(&recorded, *extent),
            Shape::Schema(schema) => schema
                .validator()
                .is_ok_and(|validator| validator.is_valid(&recorded)),
            Shape::Match(matchers) => recorded.as_object().is_some_and(|args| {
                self.counted(matchers)
                    .all(|(key, matcher)| matcher.check(args.get(key)).is_ok())
            }),
        }
    }

    /// Compares the arguments of a call and explains what does not fit.
    pub(super) fn check(
        &self,
        call: &ToolCallView<'_>,
        tool: Option<&Tool>,
    ) -> Result<(), ArgsMismatch> {
        if self.fits(call, tool) {
            return Ok(());
        }
        let defaults = self.defaults_of(tool);
        let recorded = self.prepared(call, &defaults);
        match &self.shape {
            Shape::Anything => Ok(()),
            Shape::Pattern(pattern, extent) => {
                let pattern = self.prepared_pattern(pattern, *extent, &defaults);
                Err(ArgsMismatch::of(pattern.differences(&recorded, *extent)))
            }
            Shape::Schema(schema) => check_schema(schema, &recorded),
            Shape::Match(matchers) => self.check_match(matchers, &recorded),
        }
    }

    fn defaults_of<'a>(&self, tool: Option<&'a Tool>) -> Vec<(&'a str, &'a Value)> {
        match tool {
            Some(tool) if self.defaults => defaults(tool),
            _ => Vec::new(),
        }
    }

    /// The matchers of arguments that are not ignored.
    fn counted<'a>(
        &'a self,
        matchers: &'a [(String, Matcher)],
    ) -> impl Iterator<Item = &'a (String, Matcher)> {
        matchers.iter().filter(|(key, _)| {
            self.ignore
                .as_ref()
                .is_none_or(|ignore| !ignore.hits(key, key))
        })
    }

    /// Returns true if omitted arguments take the defaults of the schema.
    pub(super) fn wants_defaults(&self) -> bool {
        self.defaults && !matches!(self.shape, Shape::Anything)
    }

    /// The recorded arguments with defaults filled in and ignored keys left out. A call without
    /// arguments has none of them: the protocol makes no difference between that and an empty
    /// object.
    fn prepared<'a>(
        &self,
        call: &'a ToolCallView<'a>,
        defaults: &[(&str, &Value)],
    ) -> Cow<'a, Value> {
        let mut args = match call.args() {
            Some(args) => Cow::Borrowed(args),
            None => Cow::Owned(Value::Object(Map::new())),
        };
        if args
            .as_object()
            .is_some_and(|map| defaults.iter().any(|(key, _)| !map.contains_key(*key)))
            && let Value::Object(map) = args.to_mut()
        {
            for (key, value) in defaults {
                if !map.contains_key(*key) {
                    map.insert((*key).to_owned(), (*value).clone());
                }
            }
        }
        if let Some(ignore) = &self.ignore {
            ignore.prune(args.to_mut(), "");
        }
        args
    }

    /// The pattern with defaults filled in and ignored keys left out. As a part, an omitted key of
    /// the expectation asks for nothing, so only the recorded side is filled.
    fn prepared_pattern<'a>(
        &self,
        pattern: &'a Pattern,
        extent: Extent,
        defaults: &[(&str, &Value)],
    ) -> Cow<'a, Pattern> {
        let mut pattern = Cow::Borrowed(pattern);
        if extent == Extent::Whole && !defaults.is_empty() {
            pattern = Cow::Owned(pattern.filled(defaults));
        }
        if let Some(ignore) = &self.ignore {
            ignore.prune_pattern(pattern.to_mut(), "");
        }
        pattern
    }

    fn check_match(
        &self,
        matchers: &[(String, Matcher)],
        recorded: &Value,
    ) -> Result<(), ArgsMismatch> {
        let Value::Object(args) = recorded else {
            return Err(ArgsMismatch::of(vec![Difference {
                pointer: String::new(),
                expected: Some(written_match(matchers)),
                actual: Some(recorded.clone()),
            }]));
        };
        let mut reasons = Vec::new();
        let mut diff = Vec::new();
        for (key, matcher) in self.counted(matchers) {
            let Err(mismatch) = matcher.check(args.get(key)) else {
                continue;
            };
            let at = pointer_join("", key);
            reasons.push(format!("{}: {}", one_line(&at), mismatch.reason));
            if mismatch.differences.is_empty() {
                diff.push(Difference {
                    pointer: at,
                    expected: Some(matcher.written().clone()),
                    actual: args.get(key).cloned(),
                });
            } else {
                diff.extend(
                    mismatch
                        .differences
                        .into_iter()
                        .map(|difference| Difference {
                            pointer: format!("{at}{}", difference.pointer),
                            ..difference
                        }),
                );
            }
        }
        if diff.is_empty() {
            return Ok(());
        }
        Err(ArgsMismatch {
            reason: reasons.join("; "),
            diff,
        })
    }
}

fn written_match(matchers: &[(String, Matcher)]) -> Value {
    let map: Map<_, _> = matchers
        .iter()
        .map(|(key, matcher)| (key.clone(), matcher.written().clone()))
        .collect();
    map.into()
}

fn matchers(written: &Value, at: &str, problems: &mut Vec<Problem>) -> Shape {
    let Value::Object(map) = written else {
        problems.push(Problem::new(
            at,
            "`match` takes a matcher for each argument, such as `city: { contains: Sac }`",
        ));
        return Shape::Anything;
    };
    let mut compiled = Vec::new();
    for (key, value) in map {
        if value.is_object() {
            match Matcher::compile(value, &pointer_join(at, key)) {
                Ok(matcher) => compiled.push((key.clone(), matcher)),
                Err(more) => problems.extend(more),
            }
        } else {
            compiled.push((key.clone(), Matcher::exact(value.clone())));
        }
    }
    Shape::Match(compiled)
}

fn check_schema(schema: &CheckedSchema, recorded: &Value) -> Result<(), ArgsMismatch> {
    let validator = schema.validator().map_err(|error| ArgsMismatch {
        reason: format!("the schema does not work: {error}"),
        diff: Vec::new(),
    })?;
    let schema = schema.written();
    let mut reasons = Vec::new();
    let mut diff = Vec::new();
    for error in validator.iter_errors(recorded).take(10) {
        let place = error.instance_path().to_string();
        let words = one_line(&shorten(&error.to_string(), 200));
        reasons.push(if place.is_empty() {
            words
        } else {
            format!("{}: {words}", one_line(&place))
        });
        // The keyword that was not met, with its value: `{"minimum": 1}`.
        let rule = error.schema_path().to_string();
        let expected = schema.pointer(&rule).and_then(|value| {
            let keyword = rule
                .rsplit('/')
                .next()
                .filter(|keyword| !keyword.is_empty())?;
            Some(Value::Object(Map::from_iter([(
                keyword.to_owned(),
                value.clone(),
            )])))
        });
        diff.push(Difference {
            actual: recorded.pointer(&place).cloned(),
            expected,
            pointer: place,
        });
    }
    if diff.is_empty() {
        return Ok(());
    }
    Err(ArgsMismatch {
        reason: reasons.join("; "),
        diff,
    })
}

impl ArgsMismatch {
    fn of(diff: Vec<Difference>) -> Self {
        let mut reasons: Vec<String> = diff.iter().take(3).map(one_difference).collect();
        if diff.len() > reasons.len() {
            reasons.push(format!("and {} more", diff.len() - reasons.len()));
        }
        Self {
            reason: reasons.join("; "),
            diff,
        }
    }
}

fn one_difference(difference: &Difference) -> String {
    let show = |value: &Value| one_line(&shorten(&value.to_string(), 80));
    if difference.pointer.is_empty()
        && let Some(text @ Value::String(_)) = &difference.actual
    {
        return format!("the arguments are a {}: {}", type_name(text), show(text));
    }
    let place = if difference.pointer.is_empty() {
        "the arguments".to_owned()
    } else {
        one_line(&difference.pointer)
    };
    match (&difference.expected, &difference.actual) {
        (Some(wanted), Some(seen)) => {
            format!("{place} is {}, expected {}", show(seen), show(wanted))
        }
        (Some(wanted), None) => format!("{place} is missing, expected {}", show(wanted)),
        (None, Some(seen)) => format!("{place} is {}, and should not be there", show(seen)),
        (None, None) => format!("{place} differs"),
    }
}

/// The arguments for which the tool's input schema has a default.
fn defaults(tool: &Tool) -> Vec<(&str, &Value)> {
    tool.input_schema()
        .and_then(|schema| schema.get("properties")?.as_object())
        .into_iter()
        .flatten()
        .filter_map(|(key, property)| Some((key.as_str(), property.get("default")?)))
        .collect()
}

/// Keys that are ignored, with `*` for any string and `?` for any one character.
#[derive(Debug, Clone)]
struct KeyGlobs(Vec<regex::Regex>);

impl KeyGlobs {
    fn compile(globs: &[String]) -> Option<Self> {
        let compiled: Vec<regex::Regex> = globs
            .iter()
            .filter_map(|glob| {
                let pattern: String = glob
                    .chars()
                    .map(|c| match c {
                        '*' => ".*".to_owned(),
                        '?' => ".".to_owned(),
                        c => regex::escape(c.encode_utf8(&mut [0; 4])),
                    })
                    .collect();
                // An escaped text with wildcards is always a valid expression.
                regex::Regex::new(&format!("(?s)^{pattern}$")).ok()
            })
            .collect();
        (!compiled.is_empty()).then_some(Self(compiled))
    }

    /// By the key's own name, or by its dotted path from the top of the arguments.
    fn hits(&self, key: &str, path: &str) -> bool {
        self.0
            .iter()
            .any(|glob| glob.is_match(key) || glob.is_match(path))
    }

    fn prune(&self, value: &mut Value, path: &str) {
        match value {
            Value::Object(map) => map.retain(|key, value| {
                let path = join(path, key);
                let keep = !self.hits(key, &path);
                if keep {
                    self.prune(value, &path);
                }
                keep
            }),
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.prune(item, &join(path, &index.to_string()));
                }
            }
            _ => {}
        }
    }

    fn prune_pattern(&self, pattern: &mut Pattern, path: &str) {
        match pattern {
            Pattern::Literal(value) => self.prune(value, path),
            Pattern::List(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.prune_pattern(item, &join(path, &index.to_string()));
                }
            }
            Pattern::OneOf(any) => any
                .iter_mut()
                .for_each(|pattern| self.prune_pattern(pattern, path)),
            Pattern::Map(entries) => entries.retain_mut(|(key, pattern)| {
                let path = join(path, key);
                let keep = !self.hits(key, &path);
                if keep {
                    self.prune_pattern(pattern, &path);
                }
                keep
            }),
        }
    }
}

fn join(path: &str, step: &str) -> String {
    if path.is_empty() {
        step.to_owned()
    } else {
        format!("{path}.{step}")
    }
}
