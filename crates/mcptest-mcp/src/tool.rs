//! The list of tools, and their schemas.

mod doctor;
mod explain;
mod report;
mod run;
mod score;
mod validate;

use mcptest_json::text::{one_line, shorten};
use mcptest_yaml::suggest;
use rmcp::model::{JsonObject, Tool as Listed, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::call::{Call, ToolError};

/// The number of problems of arguments in a message.
const MAX_PROBLEMS: usize = 5;

/// A tool.
trait Tool {
    const NAME: &'static str;
    const TITLE: &'static str;
    /// Its purpose, its use and its result, for a model.
    const DESCRIPTION: &'static str;
    /// The arguments. Their documentation is that of the input schema.
    type Args: DeserializeOwned + JsonSchema;
    type Output: Serialize + JsonSchema;

    /// The effects of a call, if running is allowed, and if it is not.
    fn effects(allow_run: bool) -> Effects;

    fn call(
        args: Self::Args,
        call: &Call<'_>,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}

/// The effects of a call.
enum Effects {
    /// It reads files of the project, and runs mocks at most.
    Reads,
    /// It starts a program or connects to a server, and calls no tool of it.
    Connects,
    /// It starts programs that may do anything.
    Acts,
}

impl Effects {
    fn annotations(&self, title: &str) -> ToolAnnotations {
        let (read_only, destructive, idempotent, open_world) = match self {
            Self::Reads => (true, false, true, false),
            Self::Connects => (false, false, true, true),
            Self::Acts => (false, true, false, true),
        };
        ToolAnnotations::with_title(title)
            .read_only(read_only)
            .destructive(destructive)
            .idempotent(idempotent)
            .open_world(open_world)
    }
}

/// Calls a macro with all tools, in the order of the list.
macro_rules! for_all_tools {
    ($callback:ident) => {
        $callback!(
            validate::Validate,
            run::Run,
            explain::Explain,
            doctor::Doctor,
            score::Score,
            report::Report
        )
    };
}

/// The tools as they are listed.
pub(crate) fn list(allow_run: bool) -> Vec<Listed> {
    macro_rules! list {
        ($($tool:ty),*) => { vec![$(listed::<$tool>(allow_run)),*] };
    }
    for_all_tools!(list)
}

/// The names of the tools.
pub(crate) fn names() -> Vec<&'static str> {
    macro_rules! names {
        ($($tool:ty),*) => { vec![$(<$tool as Tool>::NAME),*] };
    }
    for_all_tools!(names)
}

/// Calls a tool. `None` if there is no such tool.
pub(crate) async fn call(
    name: &str,
    arguments: JsonObject,
    call: &Call<'_>,
) -> Option<Result<Value, ToolError>> {
    macro_rules! call {
        ($($tool:ty),*) => {
            match name {
                $(<$tool as Tool>::NAME => Some(carry_out::<$tool>(arguments, call).await),)*
                _ => None,
            }
        };
    }
    for_all_tools!(call)
}

async fn carry_out<T: Tool>(arguments: JsonObject, call: &Call<'_>) -> Result<Value, ToolError> {
    let arguments = Value::Object(arguments);
    check::<T>(&arguments)?;
    let args =
        serde_json::from_value(arguments).map_err(|error| invalid::<T>(&[error.to_string()]))?;
    let output = T::call(args, call).await?;
    serde_json::to_value(output)
        .map_err(|error| ToolError(format!("cannot write the result: {error}")))
}

/// Checks arguments against the input schema that the client has seen.
fn check<T: Tool>(arguments: &Value) -> Result<(), ToolError> {
    let schema = Value::Object(input_schema::<T>());
    let validator = jsonschema::validator_for(&schema)
        .map_err(|error| ToolError(format!("the input schema is not valid: {error}")))?;
    let mut problems: Vec<String> = unknown_arguments(arguments, &schema);
    if problems.is_empty() {
        problems = validator
            .iter_errors(arguments)
            .take(MAX_PROBLEMS)
            .map(|error| {
                let place = error.instance_path().to_string();
                // Without the value, which may be long.
                let what = shorten(&one_line(&error.masked_with("it").to_string()), 200);
                match place.trim_start_matches('/') {
                    "" => what,
                    place => format!("`{}`: {what}", shorten(&one_line(place), 100)),
                }
            })
            .collect();
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(invalid::<T>(&problems)),
    }
}

/// A message for each argument that the tool does not have.
fn unknown_arguments(arguments: &Value, schema: &Value) -> Vec<String> {
    let known: Vec<&str> = schema["properties"]
        .as_object()
        .map(|properties| properties.keys().map(String::as_str).collect())
        .unwrap_or_default();
    let given = arguments
        .as_object()
        .into_iter()
        .flat_map(|given| given.keys());
    given
        .filter(|name| !known.contains(&name.as_str()))
        .take(MAX_PROBLEMS)
        .map(|name| {
            let hint = match suggest(name, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known are {}", known.join(", ")),
            };
            format!(
                "there is no argument `{}`; {hint}",
                shorten(&one_line(name), 60)
            )
        })
        .collect()
}

fn invalid<T: Tool>(problems: &[String]) -> ToolError {
    ToolError(format!(
        "invalid arguments of `{}`: {}",
        T::NAME,
        problems.join("; ")
    ))
}

fn listed<T: Tool>(allow_run: bool) -> Listed {
    Listed::new(T::NAME, T::DESCRIPTION, input_schema::<T>())
        .with_title(T::TITLE)
        .with_raw_output_schema(output_schema::<T>().into())
        .with_annotations(T::effects(allow_run).annotations(T::TITLE))
}

fn input_schema<T: Tool>() -> JsonObject {
    schema_of::<T::Args>(SchemaSettings::draft2020_12().for_deserialize())
}

fn output_schema<T: Tool>() -> JsonObject {
    schema_of::<T::Output>(SchemaSettings::draft2020_12().for_serialize())
}

/// The JSON Schema of a type, in one piece.
fn schema_of<T: JsonSchema>(settings: SchemaSettings) -> JsonObject {
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut schema = Value::from(schema);
    tidy(&mut schema);
    match schema {
        Value::Object(mut schema) => {
            schema.remove("$schema");
            schema.remove("title");
            schema.remove("description");
            schema
        }
        _ => JsonObject::new(),
    }
}

/// Makes explicit what an object requires, and a plain `enum` of an enum whose values are
/// documented.
fn tidy(schema: &mut Value) {
    if let Some(map) = schema.as_object_mut() {
        if map.contains_key("properties") && !map.contains_key("required") {
            map.insert("required".to_owned(), json!([]));
        }
        let constants = |options: &Value| -> Option<Vec<Value>> {
            let options = options.as_array()?.iter();
            options.map(|option| option.get("const").cloned()).collect()
        };
        if let Some(values) = map.get("oneOf").and_then(constants) {
            map.remove("oneOf");
            map.insert("type".to_owned(), "string".into());
            map.insert("enum".to_owned(), values.into());
        }
        map.values_mut().for_each(tidy);
    } else if let Some(list) = schema.as_array_mut() {
        list.iter_mut().for_each(tidy);
    }
}
