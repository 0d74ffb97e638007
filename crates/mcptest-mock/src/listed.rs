//! What is listed once and asked for by name, and the results that come of it.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::jsonrpc::{RpcError, write_json};

/// Things that can be listed and asked for by name.
#[derive(Debug)]
pub(crate) struct Listed<T> {
    /// The members of the list result, written once.
    pub(crate) list: Vec<u8>,
    pub(crate) length: usize,
    pub(crate) by_name: HashMap<String, T>,
}

/// The members of a result and whether clients may cache it.
pub(crate) struct Outcome<'a> {
    pub(crate) members: Cow<'a, [u8]>,
    pub(crate) cacheable: bool,
}

impl<'a> Outcome<'a> {
    pub(crate) fn fresh(members: Vec<u8>) -> Self {
        Self {
            members: Cow::Owned(members),
            cacheable: false,
        }
    }

    pub(crate) fn cacheable(members: impl Into<Cow<'a, [u8]>>) -> Self {
        Self {
            members: members.into(),
            cacheable: true,
        }
    }
}

impl<T> Listed<T> {
    /// The first of several with the same name is the one that answers.
    pub(crate) fn new(key: &str, entries: Vec<(Value, Option<String>, T)>) -> Self {
        let mut list = Vec::new();
        write_json(&mut list, key);
        list.extend_from_slice(b":[");
        let length = entries.len();
        let mut by_name = HashMap::with_capacity(length);
        for (index, (wire, name, item)) in entries.into_iter().enumerate() {
            if index > 0 {
                list.push(b',');
            }
            write_json(&mut list, &wire);
            if let Some(name) = name {
                by_name.entry(name).or_insert(item);
            }
        }
        list.push(b']');
        Self { list, length, by_name }
    }

    pub(crate) fn page<'a>(&'a self, params: &Map<String, Value>) -> Result<Outcome<'a>, RpcError> {
        // There is one page, so no cursor was ever given out.
        match params.get("cursor") {
            None | Some(Value::Null) => Ok(Outcome::cacheable(self.list.as_slice())),
            Some(_) => Err(RpcError::invalid_params("Invalid cursor")),
        }
    }
}

/// The members of an object, without the braces.
pub(crate) fn members(object: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    write_json(&mut text, object);
    text.pop();
    text.split_off(1)
}
