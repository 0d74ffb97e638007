//! Items that are listed and requested by name, and the results of requests.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::jsonrpc::{RpcError, write_json};
use crate::manifest::ChangedList;
use crate::server_changes::ServerChanges;

/// Items that can be listed and requested by name.
#[derive(Debug)]
pub(crate) struct Listed<T> {
    /// The members of the list results, page by page, written once.
    pages: Vec<Vec<u8>>,
    pub(crate) length: usize,
    pub(crate) by_name: HashMap<String, T>,
    /// The entries, if some of them are hidden at first.
    changing: Option<Changing>,
}

/// A list whose entries may be revealed.
#[derive(Debug)]
struct Changing {
    key: &'static str,
    list: ChangedList,
    page_size: Option<usize>,
    /// The entries, with the names of those that are hidden.
    entries: Vec<(Value, Option<String>)>,
}

/// An entry of a list.
pub(crate) struct Entry<T> {
    /// The entry as sent.
    pub(crate) wire: Value,
    /// The name by which it is requested.
    pub(crate) name: Option<String>,
    pub(crate) item: T,
    /// True if it is not listed until it is revealed.
    pub(crate) hidden: bool,
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
    Task,
}

impl<'a> Outcome<'a> {
    pub(crate) fn of(kind: ResultKind, members: Vec<u8>) -> Self {
        Self {
            members: Cow::Owned(members),
            kind,
        }
    }

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
        (key, list): (&'static str, ChangedList),
        entries: Vec<Entry<T>>,
        page_size: Option<usize>,
    ) -> Self {
        let length = entries.iter().filter(|entry| !entry.hidden).count();
        let has_hidden = entries.iter().any(|entry| entry.hidden);
        let shown = entries.iter().filter(|entry| !entry.hidden);
        let pages = pages(key, shown.map(|entry| &entry.wire), length, page_size);
        let mut by_name = HashMap::with_capacity(entries.len());
        let mut changing = has_hidden.then(|| Changing {
            key,
            list,
            page_size,
            entries: Vec::new(),
        });
        for entry in entries {
            if let Some(changing) = &mut changing {
                let hidden = entry.name.clone().filter(|_| entry.hidden);
                changing.entries.push((entry.wire, hidden));
            }
            if let Some(name) = entry.name {
                by_name.entry(name).or_insert(entry.item);
            }
        }
        Self {
            pages,
            length,
            by_name,
            changing,
        }
    }

    pub(crate) fn page<'a>(
        &'a self,
        params: &Map<String, Value>,
        changes: &ServerChanges,
    ) -> Result<Outcome<'a>, RpcError> {
        if let Some(changing) = &self.changing {
            let is_shown = |hidden: &Option<String>| {
                let hidden = hidden.as_deref();
                hidden.is_none_or(|name| changes.has_revealed(changing.list, name))
            };
            let shown: Vec<&Value> = changing
                .entries
                .iter()
                .filter(|(_, hidden)| is_shown(hidden))
                .map(|(wire, _)| wire)
                .collect();
            let length = shown.len();
            let pages = pages(changing.key, shown.into_iter(), length, changing.page_size);
            let page = page_of(&pages, params)?.clone();
            return Ok(Outcome::cacheable(page));
        }
        let page = page_of(&self.pages, params)?;
        Ok(Outcome::cacheable(page.as_slice()))
    }
}

/// The members of list results, page by page.
fn pages<'w>(
    key: &str,
    entries: impl Iterator<Item = &'w Value>,
    length: usize,
    page_size: Option<usize>,
) -> Vec<Vec<u8>> {
    let mut start = Vec::new();
    write_json(&mut start, key);
    start.extend_from_slice(b":[");
    let page_size = page_size.unwrap_or(length).max(1);
    let mut pages = Vec::new();
    let mut list = start.clone();
    for (index, wire) in entries.enumerate() {
        if index > 0 && index % page_size == 0 {
            list.extend_from_slice(br#"],"nextCursor":"#);
            write_json(&mut list, &cursor(pages.len() + 1));
            pages.push(std::mem::replace(&mut list, start.clone()));
        } else if index > 0 {
            list.push(b',');
        }
        write_json(&mut list, wire);
    }
    list.push(b']');
    pages.push(list);
    pages
}

/// The page that a request asks for.
fn page_of<'p>(pages: &'p [Vec<u8>], params: &Map<String, Value>) -> Result<&'p Vec<u8>, RpcError> {
    let page = match params.get("cursor") {
        None | Some(Value::Null) => pages.first(),
        // The first page has no cursor of its own.
        Some(given) => (1..).zip(pages.iter().skip(1)).find_map(|(index, page)| {
            let known = given.as_str() == Some(cursor(index).as_str());
            known.then_some(page)
        }),
    };
    page.ok_or_else(|| RpcError::invalid_params("Invalid cursor"))
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
