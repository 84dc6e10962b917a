//! Sizes and durations as people write them in a job.

use std::time::Duration;

/// Bytes: `512m`, `2g`, `1.5GiB`, `1024`. Units count in powers of 1024, as Docker's do. `None`: it is no size.
pub fn bytes(text: &str) -> Option<i64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let factor: f64 = match text[digits..].trim() {
        "" | "b" => 1.0,
        "k" | "kb" | "kib" => 1024.0,
        "m" | "mb" | "mib" => 1024.0 * 1024.0,
        "g" | "gb" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "t" | "tb" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let bytes = text[..digits].parse::<f64>().ok()? * factor;
    #[expect(clippy::cast_possible_truncation, reason = "the range was looked at")]
    (bytes.is_finite() && (1.0..9e18).contains(&bytes)).then_some(bytes as i64)
}

/// `30s`, `5m`, `1h`, `500ms`, a number of seconds, and several of them: `1m30s`. `None`: it is no duration.
pub fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if let Ok(seconds) = rest.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let (unit, seconds) = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)]
            .into_iter()
            .find(|(unit, _)| rest.starts_with(unit) && !(*unit == "m" && rest.starts_with("ms")))?;
        rest = rest[unit.len()..].trim_start();
        sum = sum.checked_add(Duration::try_from_secs_f64(number * seconds).ok()?)?;
    }
    Some(sum).filter(|_| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_count_in_powers_of_1024() {
        assert_eq!(bytes("64m"), Some(64 << 20));
        assert_eq!(bytes("1.5 GiB"), Some(3 << 29));
        assert_eq!(bytes("1024"), Some(1024));
        assert_eq!([bytes("lots"), bytes(""), bytes("-1"), bytes("0"), bytes("1x"), bytes("99999999t")], [None; 6]);
    }

    #[test]
    fn durations_are_sums() {
        assert_eq!(duration("1m30s"), Some(Duration::from_secs(90)));
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(duration("2"), Some(Duration::from_secs(2)));
        assert_eq!([duration("soon"), duration(""), duration("1x"), duration("-1")], [None; 4]);
    }
}
