//! Lengths of time as GitLab's configuration and its variables write them.

use std::time::Duration;

/// A duration as Go writes it: `1h30m`, `1.5m`, `300s`. `None`: it is not one, or it is negative.
pub(crate) fn go_duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim().trim_start_matches('+');
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    let mut seconds = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, after) = number(rest)?;
        let (factor, after) = [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)]
            .into_iter()
            .find_map(|(unit, factor)| Some((factor, after.strip_prefix(unit)?)))?;
        seconds += number * factor;
        rest = after;
    }
    Duration::try_from_secs_f64(seconds).ok()
}

/// A duration as `.gitlab-ci.yml` writes it: `3600`, `1h 30m`, `3 hours 30 minutes`, `2 weeks and 3 days`, `1:30:00`.
pub(crate) fn spoken_duration(text: &str) -> Option<Duration> {
    let text = text.trim().to_lowercase().replace([',', '_'], " ");
    if text.contains(':') {
        return clock(&text);
    }
    let mut rest = text.as_str();
    let mut seconds = 0.0;
    let mut found = false;
    loop {
        rest = rest.trim_start();
        rest = rest.strip_prefix("and ").unwrap_or(rest).trim_start();
        if rest.is_empty() {
            break;
        }
        let (number, after) = number(rest)?;
        let after = after.trim_start();
        let length = after.bytes().take_while(u8::is_ascii_alphabetic).count();
        seconds += number * seconds_of(&after[..length])?;
        rest = &after[length..];
        found = true;
    }
    found.then(|| Duration::try_from_secs_f64(seconds).ok()).flatten()
}

/// `minutes:seconds`, or `hours:minutes:seconds`.
fn clock(text: &str) -> Option<Duration> {
    let parts = text.split(':').map(|part| part.trim().parse::<u32>().ok()).collect::<Option<Vec<_>>>()?;
    let in_order = (2..=3).contains(&parts.len());
    in_order.then(|| Duration::from_secs(parts.iter().fold(0, |sum, part| sum * 60 + u64::from(*part))))
}

fn seconds_of(unit: &str) -> Option<f64> {
    Some(match unit {
        "" | "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        "mo" | "mos" | "month" | "months" => 2_592_000.0, // 30 days, as GitLab counts them
        "y" | "yr" | "yrs" | "year" | "years" => 31_557_600.0,
        _ => return None,
    })
}

fn number(text: &str) -> Option<(f64, &str)> {
    let length = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    Some((text[..length].parse().ok()?, &text[length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_durations() {
        let seconds = |text| go_duration(text).map(|duration| duration.as_secs_f64());
        assert_eq!(seconds("1h30m"), Some(5400.0));
        assert_eq!(seconds("1.5m"), Some(90.0));
        assert_eq!(seconds("250ms"), Some(0.25));
        assert_eq!(seconds("0"), Some(0.0));
        for wrong in ["", "5", "-5m", "5 m", "x", "1h3", "."] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn spoken_durations() {
        let seconds = |text| spoken_duration(text).map(|duration| duration.as_secs());
        for (text, expected) in [
            ("3600", 3600),
            ("1h 30m", 5400),
            ("1h30m", 5400),
            ("3 hours 30 minutes", 12_600),
            ("1 week, 2 days and 3 seconds", 777_603),
            ("1:30:00", 5400),
            ("0.5 h", 1800),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for wrong in ["", "never", "1 lightyear", "h", "1:2:3:4", "and"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
