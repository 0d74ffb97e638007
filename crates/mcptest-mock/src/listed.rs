//! Items that are listed and requested by name, and the results of requests.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::jsonrpc::{RpcError, write_json};

/// Items that can be listed and requested by name.
#[derive(Debug)]
pub(crate) struct Listed<T> {
    /// The members of the list results, page by page, written once.
    pages: Vec<Vec<u8>>,
    pub(crate) length: usize,
    pub(crate) by_name: HashMap<String, T>,
}

/// The members of a result and its kind.
pub(crate) struct Outcome<'a> {
    pub(crate) members: Cow<'a, [u8]>,
    pub(crate) kind: ResultKind,
}

/// The kind of a result in revision 2026-07-28.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultKind {
    Complete,
    Cacheable,
    InputRequired,
}

impl<'a> Outcome<'a> {
    pub(crate) fn fresh(members: Vec<u8>) -> Self {
        Self {
            members: Cow::Owned(members),
            kind: ResultKind::Complete,
        }
    }

    pub(crate) fn input_required(members: Vec<u8>) -> Self {
        Self {
            members: Cow::Owned(members),
            kind: ResultKind::InputRequired,
        }
    }

    pub(crate) fn cacheable(members: impl Into<Cow<'a, [u8]>>) -> Self {
        Self {
            members: members.into(),
            kind: ResultKind::Cacheable,
        }
    }
}

impl<T> Listed<T> {
    /// Builds the pages. If several entries have the same name, the first one wins.
    pub(crate) fn new(
        key: &str,
        entries: Vec<(Value, Option<String>, T)>,
        page_size: Option<usize>,
    ) -> Self {
        let mut start = Vec::new();
        write_json(&mut start, key);
        start.extend_from_slice(b":[");
        let length = entries.len();
        let page_size = page_size.unwrap_or(length).max(1);
        let mut pages = Vec::new();
        let mut list = start.clone();
        let mut by_name = HashMap::with_capacity(length);
        for (index, (wire, name, item)) in entries.into_iter().enumerate() {
            if index > 0 && index % page_size == 0 {
                list.extend_from_slice(br#"],"nextCursor":"#);
                write_json(&mut list, &cursor(pages.len() + 1));
                pages.push(std::mem::replace(&mut list, start.clone()));
            } else if index > 0 {
                list.push(b',');
            }
            write_json(&mut list, &wire);
            if let Some(name) = name {
                by_name.entry(name).or_insert(item);
            }
        }
        list.push(b']');
        pages.push(list);
        Self {
            pages,
            length,
            by_name,
        }
    }

    pub(crate) fn page<'a>(&'a self, params: &Map<String, Value>) -> Result<Outcome<'a>, RpcError> {
        let page = match params.get("cursor") {
            None | Some(Value::Null) => self.pages.first(),
            // The first page has no cursor of its own.
            Some(given) => (1..)
                .zip(self.pages.iter().skip(1))
                .find_map(|(index, page)| {
                    let known = given.as_str() == Some(cursor(index).as_str());
                    known.then_some(page)
                }),
        };
        match page {
            Some(page) => Ok(Outcome::cacheable(page.as_slice())),
            None => Err(RpcError::invalid_params("Invalid cursor")),
        }
    }
}

fn cursor(page: usize) -> String {
    format!("page-{page}")
}

/// The members of an object, without the braces.
pub(crate) fn members(object: &Value) -> Vec<u8> {
    let mut text = Vec::new();
    write_json(&mut text, object);
    text.pop();
    text.split_off(1)
}
