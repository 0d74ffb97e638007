//! The quick reader of traces: one pass over the text, in which raw parts are skipped.
//!
//! It accepts only what the thorough reader accepts, with the same result. Where it is in doubt it
//! gives up, and the thorough reader decides.

mod keys;
pub(super) mod skip;

use std::borrow::Cow;

use mcptest_json::scan::{WINDOW, plain_end, special_bytes};
use serde::de::DeserializeOwned;

use super::{
    Catalog, ConversationView, Extra, Raw, TokensView, ToolCallView, ToolName, ToolResultView,
    TraceView, TurnView,
};

/// Integers with this number of digits fit into 64 bits.
const SHORT_INTEGER: usize = 18;

/// Reads the trace at the beginning of a string into its place, which must be empty, and returns
/// its end. `None` if it is not certain that there is one.
pub(super) fn read_into<'a>(text: &'a str, trace: &mut TraceView<'a>) -> Option<usize> {
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        at: 0,
    };
    reader.trace(trace)?;
    Some(reader.at)
}

/// Reads one raw value.
#[cfg(test)]
pub(super) fn read_raw(text: &str) -> Option<Raw<'_>> {
    let bytes = text.as_bytes();
    let mut reader = Reader { text, bytes, at: 0 };
    let mut raw = None;
    reader.raw(&mut raw)?;
    raw.filter(|_| super::is_blank(&bytes[reader.at..]))
}

/// A position in a string. Every method returns `None` to give up.
struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

/// A key of an object.
#[derive(Clone, Copy)]
struct Key {
    /// Its bytes, the first one lowest; 0 if there are more than 15. A key has no zero bytes.
    word: u128,
    start: usize,
    end: usize,
}

/// The bytes of a word before the first `n` ones.
const WORD_MASKS: [u128; WINDOW] = {
    let mut masks = [0; WINDOW];
    let mut size = 1;
    while size < WINDOW {
        masks[size] = masks[size - 1] << 8 | 0xff;
        size += 1;
    }
    masks
};

/// The known keys of an object that were read, one bit each: none may be there twice.
#[derive(Default)]
struct Seen(u32);

impl Seen {
    #[inline(always)]
    fn once(&mut self, key: u32) -> Option<()> {
        let bit = 1 << key;
        let is_new = self.0 & bit == 0;
        self.0 |= bit;
        is_new.then_some(())
    }

    fn has(&self, key: u32) -> bool {
        self.0 & 1 << key != 0
    }
}

/// The other keys of an object.
type Others<'a> = Vec<(Cow<'a, str>, Raw<'a>)>;

impl<'a> Reader<'a> {
    #[inline(always)]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// The next byte that is not white space. It is not consumed.
    #[inline(always)]
    fn next_token(&mut self) -> Option<u8> {
        // Programs write traces without white space between the parts.
        match self.peek()? {
            byte if byte > b' ' => Some(byte),
            _ => self.token_after_space(),
        }
    }

    #[cold]
    fn token_after_space(&mut self) -> Option<u8> {
        loop {
            match self.peek()? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    #[inline(always)]
    fn expect(&mut self, byte: u8) -> Option<()> {
        let found = self.next_token()? == byte;
        self.at += 1;
        found.then_some(())
    }

    #[inline(always)]
    fn literal(&mut self, literal: &str) -> Option<()> {
        let found = self.bytes[self.at..].starts_with(literal.as_bytes());
        self.at += literal.len();
        found.then_some(())
    }

    /// Consumes `null`, if it is the next value.
    #[inline(always)]
    fn null(&mut self) -> Option<bool> {
        if self.next_token()? != b'n' {
            return Some(false);
        }
        self.literal("null").map(|()| true)
    }

    /// The next value, unless it is `null`.
    #[inline(always)]
    fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.null()? {
            return Some(None);
        }
        read(self).map(Some)
    }

    /// The entries of an object. `entry` reads the value of a key.
    #[inline(always)]
    fn object(&mut self, mut entry: impl FnMut(&mut Self, Key) -> Option<()>) -> Option<()> {
        self.expect(b'{')?;
        if self.next_token()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            let key = self.key()?;
            entry(self, key)?;
            let token = self.next_token()?;
            self.at += 1;
            match token {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    /// The next key of an object, and then its colon.
    #[inline(always)]
    fn key(&mut self) -> Option<Key> {
        if self.next_token()? != b'"' {
            return None;
        }
        let start = self.at + 1;
        let window: Option<&[u8; WINDOW]> = self.bytes.get(start..)?.first_chunk();
        let key = match window {
            Some(window) => {
                let size = special_bytes(window, 0)?.trailing_zeros() as usize;
                if size < WINDOW && window[size] == b'"' {
                    Key {
                        word: u128::from_le_bytes(*window) & WORD_MASKS[size],
                        start,
                        end: start + size,
                    }
                } else {
                    self.long_key(start)?
                }
            }
            None => self.long_key(start)?,
        };
        self.at = key.end + 1;
        self.expect(b':')?;
        Some(key)
    }

    /// A key that is long, or at the end of the text.
    #[cold]
    fn long_key(&self, start: usize) -> Option<Key> {
        let end = plain_end(self.bytes, start);
        // A key with escapes is left to the thorough reader.
        if self.bytes.get(end) != Some(&b'"') {
            return None;
        }
        let known = self.text.get(start..end)?;
        let word = match known.len() < WINDOW {
            true => keys::word(known),
            false => 0,
        };
        Some(Key { word, start, end })
    }

    /// The items of a list. `item` reads one and adds it: items are large, so they are built in
    /// their place.
    #[inline(always)]
    fn list<T>(
        &mut self,
        capacity: usize,
        mut item: impl FnMut(&mut Self, &mut Vec<T>) -> Option<()>,
    ) -> Option<Vec<T>> {
        self.expect(b'[')?;
        if self.next_token()? == b']' {
            self.at += 1;
            return Some(Vec::new());
        }
        let mut items = Vec::with_capacity(capacity);
        loop {
            item(self, &mut items)?;
            let token = self.next_token()?;
            self.at += 1;
            match token {
                b',' => {}
                b']' => return Some(items),
                _ => return None,
            }
        }
    }

    /// Reads a string into its place. Values are written where they stay: moving them through the
    /// stack took a tenth of the time.
    #[inline(always)]
    fn string(&mut self, place: &mut Option<Cow<'a, str>>) -> Option<()> {
        if self.next_token()? != b'"' {
            return None;
        }
        let start = self.at + 1;
        let skipped = skip::string(self.bytes, start)?;
        self.at = skipped.end;
        if skipped.has_escapes {
            *place = Some(self.unescaped(start)?);
        } else {
            *place = Some(Cow::Borrowed(self.text.get(start..skipped.end - 1)?));
        }
        Some(())
    }

    /// Reads a string or `null` into its place.
    #[inline(always)]
    fn optional_string(&mut self, place: &mut Option<Cow<'a, str>>) -> Option<()> {
        match self.null()? {
            true => Some(()),
            false => self.string(place),
        }
    }

    /// Reads the name of a tool into its place.
    #[inline(always)]
    fn name(&mut self, place: &mut ToolName<'a>) -> Option<()> {
        if self.next_token()? != b'"' {
            return None;
        }
        let start = self.at + 1;
        let skipped = skip::string(self.bytes, start)?;
        self.at = skipped.end;
        if skipped.has_escapes {
            *place = ToolName::Text(self.unescaped(start)?);
        } else {
            *place = ToolName::Text(Cow::Borrowed(self.text.get(start..skipped.end - 1)?));
        }
        Some(())
    }

    /// A string with escapes that begins at `start` and ends here.
    #[cold]
    fn unescaped(&self, start: usize) -> Option<Cow<'a, str>> {
        let quoted = self.text.get(start - 1..self.at)?;
        serde_json::from_str(quoted).ok().map(Cow::Owned)
    }

    #[inline(always)]
    fn integer(&mut self) -> Option<u64> {
        let first = self.next_token()?;
        let start = self.at;
        let mut number = 0_u64;
        while let Some(byte @ b'0'..=b'9') = self.peek() {
            // Too many digits are rejected below.
            number = number.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
            self.at += 1;
        }
        let digits = self.at - start;
        let is_plain = (1..=SHORT_INTEGER).contains(&digits)
            && (digits == 1 || first != b'0')
            && !matches!(self.peek(), Some(b'.' | b'e' | b'E'));
        is_plain.then_some(number)
    }

    #[inline(always)]
    fn flag(&mut self) -> Option<bool> {
        match self.next_token()? {
            b't' => self.literal("true").map(|()| true),
            b'f' => self.literal("false").map(|()| false),
            _ => None,
        }
    }

    /// A part that is rare, or small: parsed as it would be alone.
    fn parsed<T: DeserializeOwned>(&mut self) -> Option<T> {
        self.next_token()?;
        let start = self.at;
        self.at = skip::value(self.bytes, start)?.0;
        serde_json::from_str(self.text.get(start..self.at)?).ok()
    }

    /// Reads a raw value or `null` into its place.
    #[inline(always)]
    fn optional_raw(&mut self, place: &mut Option<Raw<'a>>) -> Option<()> {
        match self.null()? {
            true => Some(()),
            false => self.raw(place),
        }
    }

    /// Reads a raw value into its place.
    #[inline(always)]
    fn raw(&mut self, place: &mut Option<Raw<'a>>) -> Option<()> {
        let token = self.next_token()?;
        let start = self.at;
        let is_plain = if token == b'"' {
            let skipped = skip::string(self.bytes, start + 1)?;
            self.at = skipped.end;
            !skipped.has_numeric_escapes
        } else {
            let (end, is_plain) = skip::value(self.bytes, start)?;
            self.at = end;
            is_plain
        };
        let text = self.text.get(start..self.at)?;
        if is_plain {
            *place = Some(Raw::from_plain(text));
        } else {
            *place = Some(Raw::parsed(text)?);
        }
        Some(())
    }

    #[inline(never)]
    fn other(&mut self, key: Key, others: &mut Others<'a>) -> Option<()> {
        let name = self.text.get(key.start..key.end)?;
        let mut value = None;
        self.raw(&mut value)?;
        others.push((Cow::Borrowed(name), value?));
        Some(())
    }

    fn trace(&mut self, trace: &mut TraceView<'a>) -> Option<()> {
        let (mut seen, mut others) = (Seen::default(), Vec::new());
        self.object(|reader, key| {
            match key.word {
                keys::TEST => {
                    seen.once(0)?;
                    reader.optional_string(&mut trace.test)?;
                }
                keys::MODEL => {
                    seen.once(1)?;
                    reader.optional_string(&mut trace.model)?;
                }
                keys::RUN => {
                    seen.once(2)?;
                    trace.run = reader.optional(Self::integer)?;
                }
                keys::TOOL_CALLS => {
                    seen.once(3)?;
                    trace.tool_calls = reader.list(16, Self::tool_call)?;
                }
                keys::TOOL_RESULTS => {
                    seen.once(4)?;
                    let capacity = trace.tool_calls.len().max(1);
                    let results =
                        reader.optional(|reader| reader.list(capacity, Self::tool_result))?;
                    trace.tool_results = results.unwrap_or_default();
                }
                keys::CONVERSATION => {
                    seen.once(5)?;
                    if !reader.null()? {
                        reader.conversation(&mut trace.conversation)?;
                    }
                }
                keys::FINAL_RESPONSE => {
                    seen.once(6)?;
                    reader.optional_string(&mut trace.final_response)?;
                }
                keys::CATALOG => {
                    seen.once(7)?;
                    trace.catalog = reader.optional(Self::catalog)?;
                }
                keys::DISTRACTORS => {
                    seen.once(8)?;
                    trace.distractors = reader.parsed()?;
                }
                keys::JUDGEMENTS => {
                    seen.once(9)?;
                    trace.judgements = reader.parsed()?;
                }
                keys::ERROR => {
                    seen.once(10)?;
                    trace.error = reader.parsed()?;
                }
                _ => reader.other(key, &mut others)?,
            }
            Some(())
        })?;
        trace.extra = Extra::from_entries(others);
        seen.has(3).then_some(())
    }

    fn tool_call(&mut self, calls: &mut Vec<ToolCallView<'a>>) -> Option<()> {
        calls.push(ToolCallView {
            // A name that is missing is set at the end: it needs memory of its own.
            raw_name: ToolName::Text(Cow::Borrowed("")),
            id: None,
            server: None,
            args: None,
            caller: None,
            turn: None,
            extra: Extra::default(),
        });
        let call = calls.last_mut()?;
        let (mut seen, mut others) = (Seen::default(), Vec::new());
        self.object(|reader, key| {
            match key.word {
                keys::ID => {
                    seen.once(0)?;
                    reader.optional_raw(&mut call.id)?;
                }
                keys::NAME => {
                    seen.once(1)?;
                    reader.name(&mut call.raw_name)?;
                }
                keys::SERVER => {
                    seen.once(2)?;
                    reader.optional_string(&mut call.server)?;
                }
                // `"args": null` is recorded evidence, unlike a missing key.
                keys::ARGS => {
                    seen.once(3)?;
                    reader.raw(&mut call.args)?;
                }
                keys::CALLER => {
                    seen.once(4)?;
                    reader.optional_raw(&mut call.caller)?;
                }
                keys::TURN => {
                    seen.once(5)?;
                    call.turn = reader.optional(Self::integer)?;
                }
                _ => reader.other(key, &mut others)?,
            }
            Some(())
        })?;
        if !seen.has(1) {
            call.raw_name = ToolName::default();
        }
        if others.is_empty() {
            return Some(());
        }
        call.extra = Extra::from_entries(others);
        call.foreign_form().is_none().then_some(())
    }

    fn tool_result(&mut self, results: &mut Vec<ToolResultView<'a>>) -> Option<()> {
        results.push(ToolResultView::default());
        let result = results.last_mut()?;
        let (mut seen, mut others) = (Seen::default(), Vec::new());
        self.object(|reader, key| {
            match key.word {
                keys::CALL_ID => {
                    seen.once(0)?;
                    reader.optional_raw(&mut result.call_id)?;
                }
                keys::IS_ERROR => {
                    seen.once(1)?;
                    result.is_error = reader.optional(Self::flag)?;
                }
                keys::CONTENT => {
                    seen.once(2)?;
                    reader.optional_raw(&mut result.content)?;
                }
                _ => reader.other(key, &mut others)?,
            }
            Some(())
        })?;
        result.extra = Extra::from_entries(others);
        Some(())
    }

    fn conversation(&mut self, conversation: &mut ConversationView<'a>) -> Option<()> {
        let (mut seen, mut others) = (Seen::default(), Vec::new());
        self.object(|reader, key| {
            match key.word {
                keys::TURNS => {
                    seen.once(0)?;
                    conversation.turns = reader.optional(|reader| reader.list(4, Self::turn))?;
                }
                keys::TOKENS => {
                    seen.once(1)?;
                    conversation.tokens = reader.optional(Self::tokens)?;
                }
                _ => reader.other(key, &mut others)?,
            }
            Some(())
        })?;
        conversation.extra = Extra::from_entries(others);
        Some(())
    }

    fn turn(&mut self, turns: &mut Vec<TurnView<'a>>) -> Option<()> {
        turns.push(TurnView::default());
        let turn = turns.last_mut()?;
        let (mut seen, mut others) = (Seen::default(), Vec::new());
        self.object(|reader, key| {
            match key.word {
                keys::ROLE => {
                    seen.once(0)?;
                    reader.optional_string(&mut turn.role)?;
                }
                keys::CONTENT => {
                    seen.once(1)?;
                    reader.optional_raw(&mut turn.content)?;
                }
                _ => reader.other(key, &mut others)?,
            }
            Some(())
        })?;
        turn.extra = Extra::from_entries(others);
        Some(())
    }

    fn tokens(&mut self) -> Option<TokensView<'a>> {
        let mut tokens = TokensView::default();
        let (mut seen, mut others) = (Seen::default(), Vec::new());
        self.object(|reader, key| {
            match key.word {
                keys::INPUT => {
                    seen.once(0)?;
                    tokens.input = reader.optional(Self::integer)?;
                }
                keys::OUTPUT => {
                    seen.once(1)?;
                    tokens.output = reader.optional(Self::integer)?;
                }
                keys::TOTAL => {
                    seen.once(2)?;
                    tokens.total = reader.optional(Self::integer)?;
                }
                _ => reader.other(key, &mut others)?,
            }
            Some(())
        })?;
        tokens.extra = Extra::from_entries(others);
        Some(tokens)
    }

    fn catalog(&mut self) -> Option<Catalog<'a>> {
        let tools = self.list(8, |reader, tools| {
            let mut tool = None;
            reader.raw(&mut tool)?;
            tools.push(tool?);
            Some(())
        })?;
        let all_objects = tools.iter().all(Raw::is_object);
        all_objects.then(|| Catalog::from_raw(tools))
    }
}

#[cfg(test)]
mod tests;
