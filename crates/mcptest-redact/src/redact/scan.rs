//! Search for secrets in the strings of a serializable value, without serializing it to text.

use std::fmt;

use serde::Serialize;
use serde::ser::{self, Serializer};

use super::Redactor;

/// Returns true if no string of a value, keys included, contains a secret.
pub(super) fn is_clean(redactor: &Redactor, value: &impl Serialize) -> bool {
    value.serialize(Scan(redactor)).is_ok()
}

/// A secret was found, or the value could not be serialized.
#[derive(Debug)]
struct NotClean;

impl fmt::Display for NotClean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not clean")
    }
}

impl std::error::Error for NotClean {}

impl ser::Error for NotClean {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

#[derive(Clone, Copy)]
struct Scan<'a>(&'a Redactor);

type Scanned = Result<(), NotClean>;

/// Methods for types without strings.
macro_rules! no_strings {
    ($($method:ident: $type:ty),*) => {
        $(fn $method(self, _: $type) -> Scanned {
            Ok(())
        })*
    };
}

impl Serializer for Scan<'_> {
    type Ok = ();
    type Error = NotClean;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    no_strings!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32,
        serialize_i64: i64, serialize_i128: i128, serialize_u8: u8, serialize_u16: u16,
        serialize_u32: u32, serialize_u64: u64, serialize_u128: u128, serialize_f32: f32,
        serialize_f64: f64, serialize_char: char, serialize_bytes: &[u8],
        serialize_unit_struct: &'static str
    );

    fn serialize_str(self, text: &str) -> Scanned {
        if self.0.is_clean(text) {
            Ok(())
        } else {
            Err(NotClean)
        }
    }

    fn serialize_unit(self) -> Scanned {
        Ok(())
    }

    fn serialize_none(self) -> Scanned {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Scanned {
        value.serialize(self)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Scanned {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Scanned {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Scanned {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, NotClean> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, NotClean> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, NotClean> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, NotClean> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, NotClean> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, NotClean> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, NotClean> {
        Ok(self)
    }
}

/// Collections: every part is scanned. Names of fields are ours, not data.
macro_rules! scan_parts {
    ($($collection:ident :: $method:ident($($name:ident)?)),*) => {
        $(impl ser::$collection for Scan<'_> {
            type Ok = ();
            type Error = NotClean;

            fn $method<T: Serialize + ?Sized>(&mut self, $($name: &'static str,)? value: &T) -> Scanned {
                $(let _ = $name;)?
                value.serialize(*self)
            }

            fn end(self) -> Scanned {
                Ok(())
            }
        })*
    };
}

scan_parts!(
    SerializeSeq::serialize_element(),
    SerializeTuple::serialize_element(),
    SerializeTupleStruct::serialize_field(),
    SerializeTupleVariant::serialize_field(),
    SerializeStruct::serialize_field(_name),
    SerializeStructVariant::serialize_field(_name)
);

impl ser::SerializeMap for Scan<'_> {
    type Ok = ();
    type Error = NotClean;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Scanned {
        key.serialize(*self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Scanned {
        value.serialize(*self)
    }

    fn end(self) -> Scanned {
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
