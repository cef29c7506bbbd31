//! Equality of numbers by their exact decimal value.

use std::iter::{Chain, Copied, repeat};
use std::slice::Iter;

/// A comparison met an exponent of more than 18 digits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LongExponent;

/// The most digits that an exponent may have, as written.
const MAX_EXPONENT_DIGITS: usize = 18;

/// Whether two JSON numbers have one value, without rounding: `1`, `1.0` and `10e-1` are one number, 0 has no sign.
pub(crate) fn equal(a: &[u8], b: &[u8]) -> Result<bool, LongExponent> {
    // The same text is the same number; so short a one has no long exponent.
    if a == b && a.len() <= MAX_EXPONENT_DIGITS {
        return Ok(true);
    }
    let (a, b) = (Decimal::read(a)?, Decimal::read(b)?);
    match (a.point(), b.point()) {
        (None, None) => Ok(true),
        (Some(x), Some(y)) if x == y && a.negative == b.negative => {
            let (longest, shortest) = if a.count() > b.count() { (&a, &b) } else { (&b, &a) };
            // Zeros behind the last digit mean nothing here: the point is the same.
            Ok(longest.digits().eq(shortest.digits().chain(repeat(b'0')).take(longest.digits().count())))
        }
        _ => Ok(false),
    }
}

struct Decimal<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Decimal<'a> {
    fn read(text: &'a [u8]) -> Result<Self, LongExponent> {
        let (mantissa, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
            Some(at) => (text.get(..at).unwrap_or_default(), exponent(text.get(at + 1..).unwrap_or_default())?),
            None => (text, 0),
        };
        let (negative, mantissa) = match mantissa.strip_prefix(b"-") {
            Some(mantissa) => (true, mantissa),
            None => (false, mantissa),
        };
        let mut parts = mantissa.splitn(2, |byte| *byte == b'.');
        let whole = parts.next().unwrap_or_default();
        let fraction = parts.next().unwrap_or_default();
        Ok(Self { negative, whole, fraction, exponent })
    }

    fn all(&self) -> Chain<Copied<Iter<'a, u8>>, Copied<Iter<'a, u8>>> {
        self.whole.iter().copied().chain(self.fraction.iter().copied())
    }

    /// From the first that is not 0.
    fn digits(&self) -> impl Iterator<Item = u8> + use<'a> {
        self.all().skip_while(|digit| *digit == b'0')
    }

    fn count(&self) -> usize {
        self.digits().count()
    }

    /// The power of ten before the first digit that is not 0; none for 0.
    fn point(&self) -> Option<i64> {
        let zeros = self.all().position(|digit| digit != b'0')?;
        // Far from overflow: the exponent has 18 digits, a text far less than 2^62.
        Some(self.exponent + self.whole.len() as i64 - zeros as i64)
    }
}

fn exponent(text: &[u8]) -> Result<i64, LongExponent> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.len() > MAX_EXPONENT_DIGITS {
        return Err(LongExponent);
    }
    let value = digits.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    Ok(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::{LongExponent, equal};

    fn same(a: &str, b: &str) -> bool {
        let forwards = equal(a.as_bytes(), b.as_bytes()).unwrap();
        assert_eq!(equal(b.as_bytes(), a.as_bytes()).unwrap(), forwards);
        forwards
    }

    #[test]
    fn one_number_has_many_ways_to_be_written() {
        for way in ["1", "1.0", "10e-1", "0.1E1", "1e0", "1e-0", "1E+0", "0.001e3", "1000000000000000000000000e-24"] {
            assert!(same("1", way), "{way}");
        }
        assert!(same("120", "1.2e2") && same("-50e-1", "-5.0") && same("0.00120", "12e-4"));
    }

    #[test]
    fn zero_has_no_sign_and_no_exponent() {
        for zero in ["0", "-0", "0.00", "0e5", "-0.0e-7", "0e999999999999999999"] {
            assert!(same("0", zero), "{zero}");
        }
        assert!(!same("0", "1e-999999999999999999"));
    }

    #[test]
    fn nothing_is_rounded() {
        assert!(!same("9007199254740992", "9007199254740993"));
        assert!(!same("9007199254740992", "9007199254740992.0000000000000001"));
        assert!(!same("18446744073709551616", "18446744073709551615"));
        assert!(!same("1", "-1") && !same("1", "10") && !same("1", "0.1") && !same("12", "1.3e1") && !same("1", "11"));
    }

    #[test]
    fn exponents_count_up_to_18_digits() {
        assert!(same("1e999999999999999999", "10e999999999999999998"));
        assert!(!same("1e999999999999999999", "0.1e999999999999999999"));
        assert!(!same("1e4294967296", "1"));
        for long in ["1e1000000000000000000", "1E-1000000000000000000", "0e+18446744073709551616"] {
            assert_eq!(equal(long.as_bytes(), b"1"), Err(LongExponent));
            assert_eq!(equal(long.as_bytes(), long.as_bytes()), Err(LongExponent));
        }
    }
}
