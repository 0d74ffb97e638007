//! Search for the end of a JSON string, eight bytes at a time.

const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
const SPACES: u64 = u64::from_ne_bytes([0x20; 8]);
const QUOTES: u64 = u64::from_ne_bytes([b'"'; 8]);
const BACKSLASHES: u64 = u64::from_ne_bytes([b'\\'; 8]);

/// The place of the next byte that is not a character of a JSON string: a quote, a backslash
/// or a control character. The length of the text if there is none.
///
/// ```
/// use mcptest_json::scan::plain_end;
/// assert_eq!(plain_end(br#"a longer string" : 1"#, 0), 15);
/// assert_eq!(plain_end(b"no end", 2), 6);
/// ```
#[must_use]
#[inline]
pub fn plain_end(text: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(chunk) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*chunk);
        let quotes = word ^ QUOTES;
        let backslashes = word ^ BACKSLASHES;
        // A subtraction may borrow into higher bytes, so only the lowest match is certain; it is
        // the one that is needed.
        let found = (word.wrapping_sub(SPACES) & !word)
            | (quotes.wrapping_sub(ONES) & !quotes)
            | (backslashes.wrapping_sub(ONES) & !backslashes);
        let found = found & HIGHS;
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let is_plain = |byte: &u8| !matches!(byte, b'"' | b'\\' | 0..0x20);
    at + text.get(at..).map_or(0, |rest| {
        rest.iter().take_while(|byte| is_plain(byte)).count()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_special_byte_is_found(
            text in proptest::collection::vec(prop_oneof![
                8 => any::<u8>(), 1 => Just(b'"'), 1 => Just(b'\\'), 1 => Just(0x1f_u8),
                20 => Just(b'a'), 2 => Just(0x7f_u8), 2 => Just(b'!'),
            ], 0..60),
            start in 0_usize..20,
        ) {
            let slow = text.iter().skip(start).position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
            let expected = slow.map_or(text.len().max(start), |found| start + found);
            prop_assert_eq!(plain_end(&text, start), expected);
        }
    }
}
