//! Integers in few bytes: seven bits in each, the lowest first; the highest bit is set if more
//! follow.

/// Appends a number: one byte below 128, two below 16,384, at most ten.
///
/// ```
/// use mcptest_numbers::varint;
/// let mut bytes = Vec::new();
/// varint::write(300, &mut bytes);
/// assert_eq!(bytes, [0xac, 0x02]);
/// assert_eq!(varint::read(&mut bytes.as_slice()), Some(300));
/// ```
#[inline]
pub fn write(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number from the beginning of some bytes. `None` if they end before it does.
#[inline]
pub fn read(bytes: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0_u64, 0_u32);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

/// Appends the distance between two numbers, which is short in both directions.
#[inline]
pub fn write_distance(from: u64, to: u64, out: &mut Vec<u8>) {
    let distance = to.wrapping_sub(from).cast_signed();
    write(((distance << 1) ^ (distance >> 63)).cast_unsigned(), out);
}

/// Takes the number at a distance from another one.
#[inline]
pub fn read_distance(from: u64, bytes: &mut &[u8]) -> Option<u64> {
    let zigzag = read(bytes)?;
    let distance = (zigzag >> 1) ^ (zigzag & 1).wrapping_neg();
    Some(from.wrapping_add(distance))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn truncated_bytes_are_not_a_number() {
        assert_eq!(read(&mut [].as_slice()), None);
        assert_eq!(read(&mut [0x80, 0x80].as_slice()), None);
        assert_eq!(read(&mut [0x80; 20].as_slice()), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            numbers in prop::collection::vec(prop_oneof![any::<u64>(), 0..300_u64], 0..20),
        ) {
            let mut bytes = Vec::new();
            let mut before = 0;
            for number in &numbers {
                write(*number, &mut bytes);
                write_distance(before, *number, &mut bytes);
                before = *number;
            }
            let mut rest = bytes.as_slice();
            before = 0;
            for number in &numbers {
                prop_assert_eq!(read(&mut rest), Some(*number));
                prop_assert_eq!(read_distance(before, &mut rest), Some(*number));
                before = *number;
            }
            prop_assert!(rest.is_empty());
        }
    }
}
