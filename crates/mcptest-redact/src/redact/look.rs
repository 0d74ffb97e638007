//! Looking for secrets in the texts of a value, whatever its type, without writing the value down.

use std::fmt;

use serde::Serialize;
use serde::ser::{self, Serializer};

use super::Redactor;

/// Whether no text of a value, keys included, has a secret in it.
pub(super) fn is_clean(redactor: &Redactor, value: &impl Serialize) -> bool {
    value.serialize(Look(redactor)).is_ok()
}

/// There is a secret, or the value cannot say what it holds.
#[derive(Debug)]
struct Found;

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not clean")
    }
}

impl std::error::Error for Found {}

impl ser::Error for Found {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

#[derive(Clone, Copy)]
struct Look<'a>(&'a Redactor);

type Looked = Result<(), Found>;

/// What has no text in it.
macro_rules! nothing_in {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, _: $type) -> Looked {
            Ok(())
        })*
    };
}

impl Serializer for Look<'_> {
    type Ok = ();
    type Error = Found;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    nothing_in!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64, serialize_i128: i128, serialize_u8: u8,
        serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_u128: u128, serialize_f32: f32, serialize_f64: f64, serialize_char: char,
        serialize_bytes: &[u8], serialize_unit_struct: &'static str
    );

    fn serialize_str(self, text: &str) -> Looked {
        if self.0.is_clean(text) {
            Ok(())
        } else {
            Err(Found)
        }
    }

    fn serialize_unit(self) -> Looked {
        Ok(())
    }

    fn serialize_none(self) -> Looked {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Looked {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Looked {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Looked {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Looked {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Found> {
        Ok(self)
    }
}

/// A collection, of which each part is looked into; the names of fields are ours.
macro_rules! look_into {
    ($($collection:ident :: $method:ident($($name:ident)?)),*) => {
        $(impl ser::$collection for Look<'_> {
            type Ok = ();
            type Error = Found;

            fn $method<T: Serialize + ?Sized>(&mut self, $($name: &'static str,)? value: &T) -> Looked {
                $(let _ = $name;)?
                value.serialize(*self)
            }

            fn end(self) -> Looked {
                Ok(())
            }
        })*
    };
}

look_into!(
    SerializeSeq::serialize_element(),
    SerializeTuple::serialize_element(),
    SerializeTupleStruct::serialize_field(),
    SerializeTupleVariant::serialize_field(),
    SerializeStruct::serialize_field(_name),
    SerializeStructVariant::serialize_field(_name)
);

impl ser::SerializeMap for Look<'_> {
    type Ok = ();
    type Error = Found;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Looked {
        key.serialize(*self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Looked {
        value.serialize(*self)
    }

    fn end(self) -> Looked {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Serialize)]
    enum Kind {
        Plain,
        New(String),
        Pair(u8, String),
        Named { text: Option<String> },
    }

    #[derive(Serialize)]
    struct Whole {
        kind: Kind,
        number: f64,
        rest: serde_json::Value,
    }

    #[test]
    fn a_secret_is_found_wherever_it_is() {
        let redactor = Redactor::new(["s3cret".to_owned()]);
        let whole = |kind: Kind, rest| Whole {
            kind,
            number: 0.5,
            rest,
        };
        let text = || "a s3cret b".to_owned();
        for dirty in [
            whole(Kind::New(text()), json!(null)),
            whole(Kind::Pair(1, text()), json!(null)),
            whole(Kind::Named { text: Some(text()) }, json!(null)),
            whole(Kind::Plain, json!([1, {"a": ["s3cret"]}])),
            whole(Kind::Plain, json!({"s3cret": 1})),
            whole(
                Kind::Plain,
                json!("ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
            ),
        ] {
            assert!(!redactor.is_clean_in(&dirty), "{}", json!(dirty));
        }
        assert!(redactor.is_clean_in(&whole(
            Kind::Named { text: None },
            json!({"a": [true, 2, "x"]})
        )));
        assert!(redactor.is_clean_in(&(Kind::Plain, 'c', ())));
    }
}
