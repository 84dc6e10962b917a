//! Lengths of time as they are typed: `90s`, `5m`, `1h30m`, `1.5h`.

use std::time::Duration;

/// Reads a length of time. Units: ms, s, m, h, d; several may follow each other.
/// # Errors
/// Says what is wrong with it, as a fragment that follows the text.
pub fn parse(text: &str) -> Result<Duration, &'static str> {
    if text.is_empty() {
        return Err("is empty");
    }
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or("has no unit")?;
        let unit_and_rest = &rest[digits..];
        let letters = unit_and_rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit_and_rest.len());
        let number: f64 = rest[..digits].parse().map_err(|_| "is not a length of time")?;
        total += number * seconds_of(&unit_and_rest[..letters]).ok_or("has a unit that is not known")?;
        rest = &unit_and_rest[letters..];
    }
    Duration::try_from_secs_f64(total).map_err(|_| "is too long")
}

fn seconds_of(unit: &str) -> Option<f64> {
    Some(match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_may_follow_each_other() {
        assert_eq!(parse("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(parse("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse("1.5h"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse("0s"), Ok(Duration::ZERO));
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert_eq!(parse("90"), Err("has no unit"));
        assert_eq!(parse(""), Err("is empty"));
        assert_eq!(parse("5 minutes"), Err("has a unit that is not known"));
        assert_eq!(parse("5y"), Err("has a unit that is not known"));
        assert_eq!(parse("s"), Err("is not a length of time"));
        assert_eq!(parse("-5s"), Err("is not a length of time"));
        assert_eq!(parse("1.2.3s"), Err("is not a length of time"));
        assert_eq!(parse("99999999999999999999999d"), Err("is too long"));
    }
}
