//! Values: JSON to SQLite and back.

use rusqlite::types::{ToSqlOutput, Value as SqlValue, ValueRef};
use rusqlite::{Statement, ToSql};
use serde_json::{Number, Value};

/// A JSON value as a parameter: booleans are 1 and 0, lists and objects are JSON text.
pub(super) struct Parameter<'a>(pub &'a Value);

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Value::Null => ToSqlOutput::Owned(SqlValue::Null),
            Value::Bool(flag) => ToSqlOutput::Owned(SqlValue::Integer(i64::from(*flag))),
            Value::Number(number) => ToSqlOutput::Owned(match number.as_i64() {
                Some(number) => SqlValue::Integer(number),
                None => SqlValue::Real(number.as_f64().unwrap_or_default()),
            }),
            Value::String(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            other => ToSqlOutput::Owned(SqlValue::Text(other.to_string())),
        })
    }
}

/// Binds every parameter `:name` to the argument `name`; an absent argument is NULL.
pub(super) fn bind(statement: &mut Statement<'_>, arguments: &Value) -> rusqlite::Result<()> {
    for index in 1..=statement.parameter_count() {
        let name = statement.parameter_name(index).unwrap_or_default();
        let value = arguments.get(name.trim_start_matches(':'));
        let value = value.unwrap_or(&Value::Null);
        statement.raw_bind_parameter(index, Parameter(value))?;
    }
    Ok(())
}

/// A value of a row as JSON, and its length as an estimate. Blobs are hexadecimal text.
pub(super) fn row_value(value: ValueRef<'_>) -> (Value, usize) {
    match value {
        ValueRef::Null => (Value::Null, 4),
        ValueRef::Integer(number) => (number.into(), 8),
        ValueRef::Real(number) => (
            Number::from_f64(number).map_or(Value::Null, Value::Number),
            8,
        ),
        ValueRef::Text(text) => (
            String::from_utf8_lossy(text).into_owned().into(),
            text.len(),
        ),
        ValueRef::Blob(bytes) => {
            let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let length = text.len();
            (text.into(), length)
        }
    }
}
