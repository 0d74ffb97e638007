//! Search for the end of a JSON string, sixteen bytes at a time.

/// The number of bytes that are searched at a time.
pub const WINDOW: usize = 16;

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
    while let Some(found) = special_bytes(text, at) {
        if found != 0 {
            return at + found.trailing_zeros() as usize;
        }
        at += WINDOW;
    }
    at + text.get(at..).map_or(0, |rest| {
        rest.iter().take_while(|byte| !is_special(**byte)).count()
    })
}

/// The bytes among the next [`WINDOW`] that are not characters of a JSON string: one bit each, the
/// lowest for the first byte. `None` if fewer bytes are left.
///
/// ```
/// use mcptest_json::scan::special_bytes;
/// assert_eq!(special_bytes(br#"ab"def\ghijklmnop"#, 1), Some(0b10_0010));
/// assert_eq!(special_bytes(b"short", 0), None);
/// ```
#[must_use]
#[inline]
pub fn special_bytes(text: &[u8], at: usize) -> Option<u32> {
    text.get(at..)?.first_chunk().map(special_mask)
}

/// The bytes of a window that matter in a JSON string: one bit each, the lowest for the first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StringBytes {
    /// Quotes.
    pub quotes: u32,
    /// Backslashes.
    pub backslashes: u32,
    /// The letter `n`, with which the escape of a line feed ends.
    pub letters_n: u32,
    /// Control characters.
    pub controls: u32,
}

/// The bytes of a window that matter in a JSON string.
///
/// ```
/// use mcptest_json::scan::string_bytes;
/// let found = string_bytes(b"a\\\"n\t 0123456789");
/// assert_eq!((found.quotes, found.backslashes), (0b100, 0b10));
/// assert_eq!((found.letters_n, found.controls), (0b1000, 0b1_0000));
/// ```
#[must_use]
#[inline(always)]
pub fn string_bytes(window: &[u8; WINDOW]) -> StringBytes {
    string_masks(window)
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..0x20)
}

/// SSE2 is part of every x86-64.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn special_mask(window: &[u8; WINDOW]) -> u32 {
    use safe_arch::{
        cmp_eq_mask_i8_m128i, m128i, min_u8_m128i, move_mask_i8_m128i, set_splat_i8_m128i,
    };
    let bytes = m128i::from(*window);
    let is = |byte: u8| cmp_eq_mask_i8_m128i(bytes, set_splat_i8_m128i(byte.cast_signed()));
    // A byte is at most 0x1f if it is the smaller of the two.
    let control = cmp_eq_mask_i8_m128i(min_u8_m128i(bytes, set_splat_i8_m128i(0x1f)), bytes);
    move_mask_i8_m128i(is(b'"') | is(b'\\') | control).cast_unsigned()
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn string_masks(window: &[u8; WINDOW]) -> StringBytes {
    use safe_arch::{
        cmp_eq_mask_i8_m128i, m128i, min_u8_m128i, move_mask_i8_m128i, set_splat_i8_m128i,
    };
    let bytes = m128i::from(*window);
    let is = |byte: u8| {
        let equal = cmp_eq_mask_i8_m128i(bytes, set_splat_i8_m128i(byte.cast_signed()));
        move_mask_i8_m128i(equal).cast_unsigned()
    };
    let control = cmp_eq_mask_i8_m128i(min_u8_m128i(bytes, set_splat_i8_m128i(0x1f)), bytes);
    StringBytes {
        quotes: is(b'"'),
        backslashes: is(b'\\'),
        letters_n: is(b'n'),
        controls: move_mask_i8_m128i(control).cast_unsigned(),
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn special_mask(window: &[u8; WINDOW]) -> u32 {
    portable_mask(window)
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn string_masks(window: &[u8; WINDOW]) -> StringBytes {
    portable_masks(window)
}

/// The same on any machine.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn portable_masks(window: &[u8; WINDOW]) -> StringBytes {
    let is = |wanted: fn(u8) -> bool| {
        let bits = window.iter().enumerate();
        bits.map(|(at, byte)| u32::from(wanted(*byte)) << at).sum()
    };
    StringBytes {
        quotes: is(|byte| byte == b'"'),
        backslashes: is(|byte| byte == b'\\'),
        letters_n: is(|byte| byte == b'n'),
        controls: is(|byte| byte < 0x20),
    }
}

/// The same on any machine.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn portable_mask(window: &[u8; WINDOW]) -> u32 {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const LOW_BITS: u64 = u64::from_ne_bytes([0x7f; 8]);
    /// Moves the highest bits of eight bytes into the highest byte.
    const GATHER: u64 = 0x0002_0408_1020_4081;
    // The highest bit of each byte that is zero. No byte carries into the next.
    let zero = |word: u64| !(((word & LOW_BITS) + LOW_BITS) | word | LOW_BITS);
    let mask = |word: u64| {
        let is = |byte: u8| zero(word ^ (ONES * u64::from(byte)));
        let control = zero(word & (ONES * 0xe0));
        let special = is(b'"') | is(b'\\') | control;
        ((special >> 7).wrapping_mul(GATHER << 7) >> 56) as u32
    };
    let both = u128::from_le_bytes(*window);
    mask(both as u64) | (mask((both >> 64) as u64) << 8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(size: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![
            8 => any::<u8>(), 1 => Just(b'"'), 1 => Just(b'\\'), 1 => Just(0x1f_u8),
            20 => Just(b'a'), 2 => Just(b'n'), 2 => Just(0x7f_u8), 2 => Just(b'!'),
        ];
        prop::collection::vec(byte, size)
    }

    proptest! {
        #[test]
        fn the_first_special_byte_is_found(text in bytes(0..60), start in 0_usize..20) {
            let slow = text.iter().skip(start).position(|byte| is_special(*byte));
            let expected = slow.map_or(text.len().max(start), |found| start + found);
            prop_assert_eq!(plain_end(&text, start), expected);
        }

        #[test]
        fn all_special_bytes_of_a_window_are_found(text in bytes(WINDOW)) {
            let bit = |at: usize| u32::from(is_special(text[at])) << at;
            let expected: u32 = (0..WINDOW).map(bit).sum();
            prop_assert_eq!(special_bytes(&text, 0), Some(expected));
            let window = text.first_chunk().unwrap();
            prop_assert_eq!(portable_mask(window), expected);
            let found = string_bytes(window);
            prop_assert_eq!(found, portable_masks(window));
            let special = found.quotes | found.backslashes | found.controls;
            prop_assert_eq!(special, expected);
        }
    }
}
