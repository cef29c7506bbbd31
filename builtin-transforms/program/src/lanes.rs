//! Looking at 16 bytes at once.

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
mod wide {
    use core::arch::wasm32::{
        i8x16_bitmask, i8x16_lt, i8x16_splat, u8x16, u8x16_eq, u8x16_lt, u8x16_splat, u8x16_sub, u8x16_swizzle, u64x2, v128, v128_and,
        v128_any_true, v128_or, v128_xor,
    };

    /// 16 bytes.
    pub(crate) type Lane = v128;

    /// One load, without a pointer.
    #[inline(always)]
    pub(crate) fn load(bytes: &[u8; 16]) -> Lane {
        let bytes = u128::from_le_bytes(*bytes);
        u64x2(bytes as u64, (bytes >> 64) as u64)
    }

    /// The last `count` bytes, and zeros behind them.
    #[inline(always)]
    pub(super) fn last(bytes: &[u8; 16], count: usize) -> Lane {
        let places = u8x16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        u8x16_swizzle(load(bytes), u8x16_sub(places, u8x16_splat(count.wrapping_sub(16) as u8)))
    }

    /// How many bytes come before the first that ends a run of plain text in a JSON string: a quote, a backslash, a control
    /// character, a byte that is not ASCII. 16 where there is none.
    #[inline(always)]
    pub(crate) fn plain_text(bytes: Lane) -> usize {
        let ends = v128_or(u8x16_eq(bytes, u8x16_splat(b'"')), u8x16_eq(bytes, u8x16_splat(b'\\')));
        // As signed numbers, bytes that are not ASCII come before all others.
        let ends = v128_or(ends, i8x16_lt(bytes, i8x16_splat(b' '.cast_signed())));
        (u32::from(i8x16_bitmask(ends)) | 1 << 16).trailing_zeros() as usize
    }

    /// How many bytes that are not ASCII the bytes begin with.
    #[inline(always)]
    pub(crate) fn foreign(bytes: Lane) -> usize {
        (!u32::from(i8x16_bitmask(bytes))).trailing_zeros() as usize
    }

    /// How many decimal digits the bytes begin with.
    #[inline(always)]
    pub(crate) fn digits(bytes: Lane) -> usize {
        let digits = u8x16_lt(u8x16_sub(bytes, u8x16_splat(b'0')), u8x16_splat(10));
        (!u32::from(i8x16_bitmask(digits))).trailing_zeros() as usize
    }

    /// Whether the bytes are the same where `mask` is 0xff.
    #[inline(always)]
    pub(crate) fn same(bytes: Lane, others: Lane, mask: Lane) -> bool {
        !v128_any_true(v128_and(v128_xor(bytes, others), mask))
    }
}

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
mod wide {
    /// 16 bytes.
    pub(crate) type Lane = u128;

    #[inline(always)]
    pub(crate) fn load(bytes: &[u8; 16]) -> Lane {
        u128::from_le_bytes(*bytes)
    }

    /// The last `count` bytes, of which there is one or more, and zeros behind them.
    #[inline(always)]
    pub(super) fn last(bytes: &[u8; 16], count: usize) -> Lane {
        load(bytes) >> ((16 - count) * 8)
    }

    #[inline(always)]
    pub(crate) fn plain_text(bytes: Lane) -> usize {
        first(bytes, |word| {
            let quote = word ^ (ONES * b'"' as u64);
            let backslash = word ^ (ONES * b'\\' as u64);
            // A borrow reaches only bytes above one that ends the run itself.
            (quote.wrapping_sub(ONES) | backslash.wrapping_sub(ONES) | word.wrapping_sub(ONES * b' ' as u64) | word) & HIGHS
        })
    }

    #[inline(always)]
    pub(crate) fn foreign(bytes: Lane) -> usize {
        first(bytes, |word| !word & HIGHS)
    }

    #[inline(always)]
    pub(crate) fn digits(bytes: Lane) -> usize {
        first(bytes, |word| {
            let value = word ^ (ONES * b'0' as u64);
            (((value & !HIGHS) + ONES * (0x80 - 10)) | value) & HIGHS
        })
    }

    #[inline(always)]
    pub(crate) fn same(bytes: Lane, others: Lane, mask: Lane) -> bool {
        (bytes ^ others) & mask == 0
    }

    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;

    /// The first byte whose highest bit `mark` sets.
    #[inline(always)]
    fn first(bytes: Lane, mark: impl Fn(u64) -> u64) -> usize {
        let low = mark(bytes as u64);
        if low != 0 {
            return (low.trailing_zeros() / 8) as usize;
        }
        8 + (mark((bytes >> 64) as u64).trailing_zeros() / 8) as usize
    }
}

pub(crate) use wide::{Lane, digits, foreign, load, plain_text, same};

/// The 16 bytes at `at`; zeros behind the end.
#[inline(always)]
pub(crate) fn lane(text: &[u8], at: usize) -> Lane {
    match text.get(at..).unwrap_or_default().first_chunk() {
        Some(bytes) => load(bytes),
        None => last_lane(text, at),
    }
}

/// The same near the end.
#[inline(never)]
fn last_lane(text: &[u8], at: usize) -> Lane {
    match text.last_chunk() {
        Some(bytes) if at < text.len() => wide::last(bytes, text.len() - at),
        _ => load(&std::array::from_fn(|place| text.get(at + place).copied().unwrap_or(0))),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_byte_at_every_place_is_told_from_the_others() {
        for byte in 0..=255_u8 {
            for place in 0..16 {
                for (around, beyond) in [(b'7', b'7'), (b'7', 0), (b'0', 0xff), (b'9', b'"')] {
                    let mut bytes = [beyond; 16];
                    bytes[..place].fill(around);
                    bytes[place] = byte;
                    let plain = |byte: &u8| *byte >= b' ' && *byte != b'"' && *byte != b'\\' && byte.is_ascii();
                    let expected = bytes.iter().position(|byte| !plain(byte)).unwrap_or(16);
                    assert_eq!(super::plain_text(super::load(&bytes)), expected, "{bytes:?}");
                    let expected = bytes.iter().position(u8::is_ascii).unwrap_or(16);
                    assert_eq!(super::foreign(super::load(&bytes)), expected, "{bytes:?}");
                    let expected = bytes.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(16);
                    assert_eq!(super::digits(super::load(&bytes)), expected, "{bytes:?}");
                }
            }
        }
    }
}
