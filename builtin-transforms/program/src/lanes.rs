//! Looking at 16 bytes at once.

/// How many bytes come before the first that ends a run of plain text in a JSON string: a quote, a backslash, a control
/// character. 16 where there is none.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#[inline(always)]
pub(crate) fn plain_text(bytes: &[u8; 16]) -> usize {
    use core::arch::wasm32::{i8x16_bitmask, u8x16_eq, u8x16_lt, u8x16_splat, v128_or};
    let bytes = load(bytes);
    let ends = v128_or(u8x16_eq(bytes, u8x16_splat(b'"')), u8x16_eq(bytes, u8x16_splat(b'\\')));
    let ends = v128_or(ends, u8x16_lt(bytes, u8x16_splat(b' ')));
    (u32::from(i8x16_bitmask(ends)) | 1 << 16).trailing_zeros() as usize
}

/// How many decimal digits the bytes begin with.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#[inline(always)]
pub(crate) fn digits(bytes: &[u8; 16]) -> usize {
    use core::arch::wasm32::{i8x16_bitmask, u8x16_lt, u8x16_splat, u8x16_sub};
    let digits = u8x16_lt(u8x16_sub(load(bytes), u8x16_splat(b'0')), u8x16_splat(10));
    (!u32::from(i8x16_bitmask(digits))).trailing_zeros() as usize
}

/// One load, without a pointer.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#[inline(always)]
fn load(bytes: &[u8; 16]) -> core::arch::wasm32::v128 {
    let bytes = u128::from_le_bytes(*bytes);
    core::arch::wasm32::u64x2(bytes as u64, (bytes >> 64) as u64)
}

/// How many bytes come before the first that ends a run of plain text in a JSON string: a quote, a backslash, a control
/// character. 16 where there is none.
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
#[inline(always)]
pub(crate) fn plain_text(bytes: &[u8; 16]) -> usize {
    first(bytes, |word| {
        let quote = word ^ (ONES * b'"' as u64);
        let backslash = word ^ (ONES * b'\\' as u64);
        // A borrow reaches only bytes above one that ends the run itself.
        (quote.wrapping_sub(ONES) | backslash.wrapping_sub(ONES) | word.wrapping_sub(ONES * b' ' as u64)) & !word & HIGHS
    })
}

/// How many decimal digits the bytes begin with.
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
#[inline(always)]
pub(crate) fn digits(bytes: &[u8; 16]) -> usize {
    first(bytes, |word| {
        let value = word ^ (ONES * b'0' as u64);
        (((value & !HIGHS) + ONES * (0x80 - 10)) | value) & HIGHS
    })
}

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
const ONES: u64 = 0x0101_0101_0101_0101;
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The first byte whose highest bit `mark` sets.
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
#[inline(always)]
fn first(bytes: &[u8; 16], mark: impl Fn(u64) -> u64) -> usize {
    let bytes = u128::from_le_bytes(*bytes);
    let low = mark(bytes as u64);
    if low != 0 {
        return (low.trailing_zeros() / 8) as usize;
    }
    8 + (mark((bytes >> 64) as u64).trailing_zeros() / 8) as usize
}

/// Whether all bytes are ASCII.
pub(crate) fn is_ascii(bytes: &[u8]) -> bool {
    let (blocks, rest) = bytes.as_chunks::<64>();
    let mut all = [0; 16];
    for block in blocks {
        let (lanes, _) = block.as_chunks::<16>();
        for lane in lanes {
            for (all, byte) in all.iter_mut().zip(lane) {
                *all |= byte;
            }
        }
    }
    let (lanes, rest) = rest.as_chunks::<16>();
    for lane in lanes {
        for (all, byte) in all.iter_mut().zip(lane) {
            *all |= byte;
        }
    }
    let rest = rest.iter().fold(0, |all, byte| all | byte);
    all.iter().fold(rest, |all, byte| all | byte) < 0x80
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_byte_at_every_place_is_told_from_plain_text_and_from_digits() {
        for byte in 0..=255_u8 {
            for place in 0..16 {
                for (around, beyond) in [(b'7', b'7'), (b'7', 0), (b'0', 0xff), (b'9', b'"')] {
                    let mut bytes = [beyond; 16];
                    bytes[..place].fill(around);
                    bytes[place] = byte;
                    let plain = |byte: &u8| *byte >= b' ' && *byte != b'"' && *byte != b'\\';
                    let expected = bytes.iter().position(|byte| !plain(byte)).unwrap_or(16);
                    assert_eq!(super::plain_text(&bytes), expected, "{bytes:?}");
                    let expected = bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(16);
                    assert_eq!(super::digits(&bytes), expected, "{bytes:?}");
                }
            }
        }
    }

    #[test]
    fn one_byte_that_is_not_ascii_is_seen_wherever_it_stands() {
        for length in 0..200 {
            let mut bytes = vec![0x7f; length];
            assert!(super::is_ascii(&bytes));
            for place in 0..length {
                bytes[place] = 0x80;
                assert!(!super::is_ascii(&bytes), "{place} of {length}");
                bytes[place] = 0;
            }
        }
    }
}
