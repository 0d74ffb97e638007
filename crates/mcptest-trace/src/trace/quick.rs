//! The quick reader of traces: one pass over the text, in which raw parts are skipped.
//!
//! It accepts only what the thorough reader accepts, with the same result. Where it is in doubt it
//! gives up, and the thorough reader decides.

use std::borrow::Cow;

use mcptest_json::scan::{WINDOW, plain_end, special_bytes};
use serde::de::DeserializeOwned;

use super::raw::MAX_DEPTH;
use super::{
    Catalog, ConversationView, Extra, Raw, TokensView, ToolCallView, ToolName, ToolResultView,
    TraceView, TurnView,
};

/// Integers with this number of digits fit into 64 bits.
const SHORT_INTEGER: usize = 18;

/// A number with this number of digits may be out of range (309 digits are).
const LONG_NUMBER: usize = 64;

/// Reads the trace at the beginning of a string, and its end. Nothing if it is not certain that
/// there is one.
pub(super) fn read(text: &str) -> Option<(TraceView<'_>, usize)> {
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        at: 0,
    };
    let trace = reader.trace()?;
    Some((trace, reader.at))
}

/// Reads one raw value.
#[cfg(test)]
pub(super) fn read_raw(text: &str) -> Option<Raw<'_>> {
    let bytes = text.as_bytes();
    let mut reader = Reader { text, bytes, at: 0 };
    let raw = reader.raw()?;
    super::is_blank(&bytes[reader.at..]).then_some(raw)
}

/// A position in a string. Every method gives up by returning nothing.
struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

/// The known keys of an object that were read, one bit each: none may be there twice.
#[derive(Default)]
struct Seen(u32);

impl Seen {
    fn once(&mut self, key: u32) -> Option<()> {
        let bit = 1 << key;
        let is_new = self.0 & bit == 0;
        self.0 |= bit;
        is_new.then_some(())
    }
}

/// The other keys of an object.
type Others<'a> = Vec<(Cow<'a, str>, Raw<'a>)>;

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// The next byte that is not white space. It is not passed.
    #[inline]
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

    #[inline]
    fn expect(&mut self, byte: u8) -> Option<()> {
        let found = self.next_token()? == byte;
        self.at += 1;
        found.then_some(())
    }

    fn literal(&mut self, literal: &str) -> Option<()> {
        let found = self.bytes[self.at..].starts_with(literal.as_bytes());
        self.at += literal.len();
        found.then_some(())
    }

    /// Passes `null`, if it is the next value.
    #[inline]
    fn null(&mut self) -> Option<bool> {
        if self.next_token()? != b'n' {
            return Some(false);
        }
        self.literal("null").map(|()| true)
    }

    /// The next value, unless it is `null`.
    #[inline]
    fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.null()? {
            return Some(None);
        }
        read(self).map(Some)
    }

    /// The next key of an object, and then its colon; nothing at its end. `started` is false before
    /// the first key.
    #[inline]
    fn key(&mut self, started: &mut bool) -> Option<Option<&'a str>> {
        let mut token = self.next_token()?;
        if token == b'}' {
            self.at += 1;
            return Some(None);
        }
        if std::mem::replace(started, true) {
            self.expect(b',')?;
            token = self.next_token()?;
        }
        if token != b'"' {
            return None;
        }
        let start = self.at + 1;
        let end = plain_end(self.bytes, start);
        // A key with escapes is left to the thorough reader.
        if self.bytes.get(end) != Some(&b'"') {
            return None;
        }
        self.at = end + 1;
        self.expect(b':')?;
        self.text.get(start..end).map(Some)
    }

    /// The items of a list. `item` reads one and adds it: items are large, so they are built in
    /// their place.
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

    #[inline]
    fn string(&mut self) -> Option<Cow<'a, str>> {
        if self.next_token()? != b'"' {
            return None;
        }
        let quote = self.at;
        let has_escapes = self.skip_string()?.has_escapes;
        if has_escapes {
            let quoted = self.text.get(quote..self.at)?;
            return serde_json::from_str(quoted).ok().map(Cow::Owned);
        }
        self.text.get(quote + 1..self.at - 1).map(Cow::Borrowed)
    }

    fn integer(&mut self) -> Option<u64> {
        self.next_token()?;
        let digits = self.bytes[self.at..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let text = self.text.get(self.at..self.at + digits)?;
        self.at += digits;
        let is_plain = (1..=SHORT_INTEGER).contains(&digits)
            && (digits == 1 || !text.starts_with('0'))
            && !matches!(self.peek(), Some(b'.' | b'e' | b'E'));
        text.parse().ok().filter(|_| is_plain)
    }

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
        self.skip()?;
        serde_json::from_str(self.text.get(start..self.at)?).ok()
    }

    fn raw(&mut self) -> Option<Raw<'a>> {
        let token = self.next_token()?;
        let start = self.at;
        let is_plain = match token {
            b'"' => !self.skip_string()?.has_numeric_escapes,
            _ => self.skip()?,
        };
        let text = self.text.get(start..self.at)?;
        if is_plain {
            Some(Raw::from_plain(text))
        } else {
            Raw::parsed(text)
        }
    }

    fn other(&mut self, key: &'a str, others: &mut Others<'a>) -> Option<()> {
        others.push((Cow::Borrowed(key), self.raw()?));
        Some(())
    }

    fn trace(&mut self) -> Option<TraceView<'a>> {
        self.expect(b'{')?;
        let mut trace = TraceView::default();
        let (mut seen, mut others, mut started) = (Seen::default(), Vec::new(), false);
        let mut has_calls = false;
        while let Some(key) = self.key(&mut started)? {
            match key {
                "test" => {
                    seen.once(0)?;
                    trace.test = self.optional(Self::string)?;
                }
                "model" => {
                    seen.once(1)?;
                    trace.model = self.optional(Self::string)?;
                }
                "run" => {
                    seen.once(2)?;
                    trace.run = self.optional(Self::integer)?;
                }
                "tool_calls" => {
                    seen.once(3)?;
                    has_calls = true;
                    trace.tool_calls = self.list(16, Self::tool_call)?;
                }
                "tool_results" => {
                    seen.once(4)?;
                    let capacity = trace.tool_calls.len().max(1);
                    let results =
                        self.optional(|reader| reader.list(capacity, Self::tool_result))?;
                    trace.tool_results = results.unwrap_or_default();
                }
                "conversation" => {
                    seen.once(5)?;
                    let conversation = self.optional(Self::conversation)?;
                    trace.conversation = conversation.unwrap_or_default();
                }
                "final_response" => {
                    seen.once(6)?;
                    trace.final_response = self.optional(Self::string)?;
                }
                "catalog" => {
                    seen.once(7)?;
                    trace.catalog = self.optional(Self::catalog)?;
                }
                "distractors" => {
                    seen.once(8)?;
                    trace.distractors = self.parsed()?;
                }
                "judgements" => {
                    seen.once(9)?;
                    trace.judgements = self.parsed()?;
                }
                "error" => {
                    seen.once(10)?;
                    trace.error = self.parsed()?;
                }
                _ => self.other(key, &mut others)?,
            }
        }
        trace.extra = Extra::from_entries(others);
        has_calls.then_some(trace)
    }

    fn tool_call(&mut self, calls: &mut Vec<ToolCallView<'a>>) -> Option<()> {
        self.expect(b'{')?;
        calls.push(ToolCallView::default());
        let call = calls.last_mut()?;
        let (mut seen, mut others, mut started) = (Seen::default(), Vec::new(), false);
        while let Some(key) = self.key(&mut started)? {
            match key {
                "id" => {
                    seen.once(0)?;
                    call.id = self.optional(Self::raw)?;
                }
                "name" => {
                    seen.once(1)?;
                    call.raw_name = ToolName::Text(self.string()?);
                }
                "server" => {
                    seen.once(2)?;
                    call.server = self.optional(Self::string)?;
                }
                // `"args": null` is recorded evidence, unlike a missing key.
                "args" => {
                    seen.once(3)?;
                    call.args = Some(self.raw()?);
                }
                "caller" => {
                    seen.once(4)?;
                    call.caller = self.optional(Self::raw)?;
                }
                "turn" => {
                    seen.once(5)?;
                    call.turn = self.optional(Self::integer)?;
                }
                _ => self.other(key, &mut others)?,
            }
        }
        call.extra = Extra::from_entries(others);
        call.foreign_form().is_none().then_some(())
    }

    fn tool_result(&mut self, results: &mut Vec<ToolResultView<'a>>) -> Option<()> {
        self.expect(b'{')?;
        results.push(ToolResultView::default());
        let result = results.last_mut()?;
        let (mut seen, mut others, mut started) = (Seen::default(), Vec::new(), false);
        while let Some(key) = self.key(&mut started)? {
            match key {
                "call_id" => {
                    seen.once(0)?;
                    result.call_id = self.optional(Self::raw)?;
                }
                "is_error" => {
                    seen.once(1)?;
                    result.is_error = self.optional(Self::flag)?;
                }
                "content" => {
                    seen.once(2)?;
                    result.content = self.optional(Self::raw)?;
                }
                _ => self.other(key, &mut others)?,
            }
        }
        result.extra = Extra::from_entries(others);
        Some(())
    }

    fn conversation(&mut self) -> Option<ConversationView<'a>> {
        self.expect(b'{')?;
        let mut conversation = ConversationView::default();
        let (mut seen, mut others, mut started) = (Seen::default(), Vec::new(), false);
        while let Some(key) = self.key(&mut started)? {
            match key {
                "turns" => {
                    seen.once(0)?;
                    conversation.turns = self.optional(|reader| reader.list(4, Self::turn))?;
                }
                "tokens" => {
                    seen.once(1)?;
                    conversation.tokens = self.optional(Self::tokens)?;
                }
                _ => self.other(key, &mut others)?,
            }
        }
        conversation.extra = Extra::from_entries(others);
        Some(conversation)
    }

    fn turn(&mut self, turns: &mut Vec<TurnView<'a>>) -> Option<()> {
        self.expect(b'{')?;
        turns.push(TurnView::default());
        let turn = turns.last_mut()?;
        let (mut seen, mut others, mut started) = (Seen::default(), Vec::new(), false);
        while let Some(key) = self.key(&mut started)? {
            match key {
                "role" => {
                    seen.once(0)?;
                    turn.role = self.optional(Self::string)?;
                }
                "content" => {
                    seen.once(1)?;
                    turn.content = self.optional(Self::raw)?;
                }
                _ => self.other(key, &mut others)?,
            }
        }
        turn.extra = Extra::from_entries(others);
        Some(())
    }

    fn tokens(&mut self) -> Option<TokensView<'a>> {
        self.expect(b'{')?;
        let mut tokens = TokensView::default();
        let (mut seen, mut others, mut started) = (Seen::default(), Vec::new(), false);
        while let Some(key) = self.key(&mut started)? {
            match key {
                "input" => {
                    seen.once(0)?;
                    tokens.input = self.optional(Self::integer)?;
                }
                "output" => {
                    seen.once(1)?;
                    tokens.output = self.optional(Self::integer)?;
                }
                "total" => {
                    seen.once(2)?;
                    tokens.total = self.optional(Self::integer)?;
                }
                _ => self.other(key, &mut others)?,
            }
        }
        tokens.extra = Extra::from_entries(others);
        Some(tokens)
    }

    fn catalog(&mut self) -> Option<Catalog<'a>> {
        let tools = self.list(8, |reader, tools| {
            tools.push(reader.raw()?);
            Some(())
        })?;
        let all_objects = tools.iter().all(Raw::is_object);
        all_objects.then(|| Catalog::from_raw(tools))
    }
}

/// The spelling of a skipped string.
#[derive(Default)]
struct SkippedString {
    has_escapes: bool,
    /// True if it has an escape by number, which may be half of a pair.
    has_numeric_escapes: bool,
}

/// Skipping values, which checks their form.
impl Reader<'_> {
    /// Passes the string that begins here.
    #[inline]
    fn skip_string(&mut self) -> Option<SkippedString> {
        let start = self.at + 1;
        // Most strings are short and have no escapes.
        if let Some(found) = special_bytes(self.bytes, start) {
            let end = start + found.trailing_zeros() as usize;
            if found != 0 && self.bytes.get(end) == Some(&b'"') {
                self.at = end + 1;
                return Some(SkippedString::default());
            }
        }
        self.skip_long_string(start)
    }

    /// Passes the rest of any string.
    fn skip_long_string(&mut self, start: usize) -> Option<SkippedString> {
        let mut string = SkippedString::default();
        let mut at = start;
        'window: while let Some(mut found) = special_bytes(self.bytes, at) {
            while found != 0 {
                let place = found.trailing_zeros() as usize;
                let next = match self.bytes.get(at + place)? {
                    b'"' => {
                        self.at = at + place + 1;
                        return Some(string);
                    }
                    _ => self.skip_escape(at + place, &mut string)? - at,
                };
                if next >= WINDOW {
                    at += next;
                    continue 'window;
                }
                // The bytes of the escape are passed too.
                found &= u32::MAX << next;
            }
            at += WINDOW;
        }
        // The last bytes of the text.
        loop {
            at = plain_end(self.bytes, at);
            if self.bytes.get(at)? == &b'"' {
                self.at = at + 1;
                return Some(string);
            }
            at = self.skip_escape(at, &mut string)?;
        }
    }

    /// The end of the escape at a place. Nothing if a control character is there.
    #[inline]
    fn skip_escape(&self, at: usize, string: &mut SkippedString) -> Option<usize> {
        if self.bytes.get(at)? != &b'\\' {
            return None;
        }
        string.has_escapes = true;
        match self.bytes.get(at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 2),
            b'u' => {
                let digits = self.bytes.get(at + 2..at + 6)?;
                string.has_numeric_escapes = true;
                let are_digits = digits.iter().all(u8::is_ascii_hexdigit);
                are_digits.then_some(at + 6)
            }
            _ => None,
        }
    }

    /// Passes the number that begins here. False if it might be out of range.
    fn skip_number(&mut self) -> Option<bool> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek()? {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.skip_digits()?,
            _ => return None,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.skip_digits()?;
        }
        let mut is_plain = self.at - start < LONG_NUMBER;
        if matches!(self.peek(), Some(b'e' | b'E')) {
            is_plain = false;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.skip_digits()?;
        }
        Some(is_plain)
    }

    /// Passes one or more digits.
    fn skip_digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    /// Passes the value that begins here. False if its form is right and it might still have no
    /// value: half of a surrogate pair, or a number out of range.
    fn skip(&mut self) -> Option<bool> {
        let mut is_plain = true;
        // One bit for each open list or object: set for an object.
        let (mut open, mut depth) = (0_u128, 0);
        loop {
            match self.next_token()? {
                b'"' => is_plain &= !self.skip_string()?.has_numeric_escapes,
                b'{' => {
                    self.at += 1;
                    if self.next_token()? == b'}' {
                        self.at += 1;
                    } else {
                        depth += 1;
                        open = (open << 1) | 1;
                        is_plain &= self.skip_key()?;
                        if depth > MAX_DEPTH {
                            return None;
                        }
                        continue;
                    }
                }
                b'[' => {
                    self.at += 1;
                    if self.next_token()? == b']' {
                        self.at += 1;
                    } else {
                        depth += 1;
                        open <<= 1;
                        if depth > MAX_DEPTH {
                            return None;
                        }
                        continue;
                    }
                }
                b't' => self.literal("true")?,
                b'f' => self.literal("false")?,
                b'n' => self.literal("null")?,
                _ => is_plain &= self.skip_number()?,
            }
            // A value has ended.
            loop {
                if depth == 0 {
                    return Some(is_plain);
                }
                let is_object = open & 1 == 1;
                let token = self.next_token()?;
                self.at += 1;
                match token {
                    b',' => {
                        if is_object {
                            is_plain &= self.skip_key()?;
                        }
                        break;
                    }
                    b'}' if is_object => {}
                    b']' if !is_object => {}
                    _ => return None,
                }
                open >>= 1;
                depth -= 1;
            }
        }
    }

    /// Passes a key and its colon. False as for [`Reader::skip`].
    fn skip_key(&mut self) -> Option<bool> {
        if self.next_token()? != b'"' {
            return None;
        }
        let key = self.skip_string()?;
        self.expect(b':')?;
        Some(!key.has_numeric_escapes)
    }
}

#[cfg(test)]
mod tests;
