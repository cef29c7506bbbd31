//! Commit times: RFC 3339 in UTC.

/// Microseconds since 1970-01-01 of `2026-01-31T09:00:00.5Z`; `None` where the text is not of that form.
pub(crate) fn parse_us(text: &str) -> Option<i64> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = fields(date, '-', [4, 2, 2])?;
    let (whole, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let [hour, minute, second] = fields(whole, ':', [2, 2, 2])?;
    let valid = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    if !valid || fraction.len() > 6 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let micros: i64 = format!("{fraction:0<6}").parse().ok()?;
    Some((days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second) * 1_000_000 + micros)
}

fn fields(text: &str, separator: char, widths: [usize; 3]) -> Option<[i64; 3]> {
    let mut parts = text.split(separator);
    let mut values = [0; 3];
    for (value, width) in values.iter_mut().zip(widths) {
        let part = parts.next().filter(|part| part.len() == width && part.bytes().all(|byte| byte.is_ascii_digit()))?;
        *value = part.parse().ok()?;
    }
    parts.next().is_none().then_some(values)
}

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar (Hinnant's `days_from_civil`).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_to_the_microsecond() {
        assert_eq!(parse_us("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(parse_us("2000-03-01T00:00:00.000001Z"), Some(951_868_800_000_001));
        assert_eq!(parse_us("2024-02-29T12:34:56.5Z"), Some(1_709_210_096_500_000));
        for bad in ["", "2024-02-29", "2024-02-29T12:34:56", "2024-02-29T12:34:56+01:00", "24-02-29T12:34:56Z", "2024-13-01T00:00:00Z"] {
            assert_eq!(parse_us(bad), None, "{bad}");
        }
    }
}
