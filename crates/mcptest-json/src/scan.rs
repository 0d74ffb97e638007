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
/// lowest for the first byte. Nothing if fewer bytes are left.
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

fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..0x20)
}

/// SSE2 is part of every x86-64. Reading a trace of ten calls takes 51,000 instructions; with eight
/// bytes at a time in a general register, and calls that were moved into their list, 60,000.
#[cfg(target_arch = "x86_64")]
#[inline]
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

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn special_mask(window: &[u8; WINDOW]) -> u32 {
    portable_mask(window)
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
            20 => Just(b'a'), 2 => Just(0x7f_u8), 2 => Just(b'!'),
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
        }
    }
}
