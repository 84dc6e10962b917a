//! Texts that Go's library reads in its own way: durations, variables in a text, a host with a port.

use std::collections::BTreeMap;

/// What is wrong with a text that should be a duration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DurationFault {
    #[error("it is no duration")]
    Invalid,
    #[error("a number has no unit")]
    NoUnit,
    #[error("the unit is unknown")]
    UnknownUnit,
    #[error("it is longer than 292 years")]
    TooLong,
}

/// Nanoseconds of a duration as Go writes them: `1h30m`, `-1.5s`, `300ms`, `0`.
pub fn duration(text: &str) -> Result<i64, DurationFault> {
    let (is_negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(DurationFault::Invalid);
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (nanoseconds, behind) = term(rest)?;
        total = total.checked_add(nanoseconds).filter(|total| *total <= LONGEST).ok_or(DurationFault::TooLong)?;
        rest = behind;
    }
    match is_negative {
        true => Ok(0i64.wrapping_sub_unsigned(total)),
        false => i64::try_from(total).map_err(|_| DurationFault::TooLong),
    }
}

const LONGEST: u64 = 1 << 63;

/// One number with its unit, and what follows.
fn term(text: &str) -> Result<(u64, &str), DurationFault> {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let (whole, rest) = text.split_at(text.find(|letter| !is_digit(letter)).unwrap_or(text.len()));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.find(|letter| !is_digit(letter)).unwrap_or(rest.len())),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return Err(DurationFault::Invalid);
    }
    let (unit, rest) = rest.split_at(rest.find(|letter| is_digit(letter) || letter == '.').unwrap_or(rest.len()));
    let unit = unit_of(unit)?;
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| DurationFault::TooLong)? };
    let whole = whole.checked_mul(unit).filter(|whole| *whole <= LONGEST).ok_or(DurationFault::TooLong)?;
    // Digits beyond the eighteenth are below a nanosecond of any unit.
    let digits = &fraction[..fraction.len().min(18)];
    let scale = 10u128.pow(u32::try_from(digits.len()).unwrap_or(0));
    let part = digits.parse::<u128>().unwrap_or(0) * u128::from(unit) / scale;
    let part = u64::try_from(part).map_err(|_| DurationFault::TooLong)?;
    Ok((whole.checked_add(part).ok_or(DurationFault::TooLong)?, rest))
}

fn unit_of(unit: &str) -> Result<u64, DurationFault> {
    match unit {
        "ns" => Ok(1),
        "us" | "µs" | "μs" => Ok(1_000),
        "ms" => Ok(1_000_000),
        "s" => Ok(1_000_000_000),
        "m" => Ok(60_000_000_000),
        "h" => Ok(3_600_000_000_000),
        "" => Err(DurationFault::NoUnit),
        _ => Err(DurationFault::UnknownUnit),
    }
}

/// A text whose `$NAME` and `${NAME}` were replaced, and the names that had no value: those count as empty.
pub fn expand(text: &str, variables: &BTreeMap<String, String>) -> (String, Vec<String>) {
    let mut out = String::new();
    let mut missing = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let (name, behind) = shell_name(&rest[at + 1..]);
        rest = behind;
        match name {
            ShellName::None => out.push('$'),
            ShellName::Bad => {}
            ShellName::Name(name) => match variables.get(name) {
                Some(value) => out.push_str(value),
                None => missing.push(name.to_owned()),
            },
        }
    }
    out.push_str(rest);
    (out, missing)
}

enum ShellName<'a> {
    /// The dollar stands for itself.
    None,
    /// Go swallows what makes no sense: `${}` and `${` without an end.
    Bad,
    Name(&'a str),
}

/// What follows a `$`: a name, and the text behind it.
fn shell_name(text: &str) -> (ShellName<'_>, &str) {
    if let Some(inner) = text.strip_prefix('{') {
        return match inner.find('}') {
            Some(0) => (ShellName::Bad, &inner[1..]),
            Some(end) => (ShellName::Name(&inner[..end]), &inner[end + 1..]),
            None => (ShellName::Bad, inner),
        };
    }
    let first = text.chars().next();
    if first.is_some_and(|letter| "*#$@!?-0123456789".contains(letter)) {
        return (ShellName::Name(&text[..1]), &text[1..]);
    }
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(text.len());
    if end == 0 { (ShellName::None, text) } else { (ShellName::Name(&text[..end]), &text[end..]) }
}

/// An address to listen on, with a port if it has none: case 54 of GitLab's tests. `None` when it is no address.
pub fn with_port(address: &str, port: u16) -> Option<String> {
    let host_and_port = match address.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(_, behind)| behind)?,
        None => address,
    };
    match host_and_port.matches(':').count() {
        0 => Some(format!("{address}:{port}")),
        1 => Some(address.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        for (text, nanoseconds) in [
            ("0", 0),
            ("15m", 900_000_000_000),
            ("15m0s", 900_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("-1.5s", -1_500_000_000),
            (".5s", 500_000_000),
            ("5.s", 5_000_000_000),
            ("+1µs", 1_000),
            ("1us2ns", 1_002),
            ("9223372036854775807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
        ] {
            assert_eq!(duration(text), Ok(nanoseconds), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_says_why() {
        for (text, fault) in [
            ("", DurationFault::Invalid),
            ("-", DurationFault::Invalid),
            (".s", DurationFault::Invalid),
            ("s", DurationFault::Invalid),
            (" 1s", DurationFault::Invalid),
            ("5", DurationFault::NoUnit),
            ("1h5", DurationFault::NoUnit),
            ("5 s", DurationFault::UnknownUnit),
            ("2d", DurationFault::UnknownUnit),
            ("2mö", DurationFault::UnknownUnit),
            ("9223372036854775808ns", DurationFault::TooLong),
            ("99999999999999999999h", DurationFault::TooLong),
            ("2562048h", DurationFault::TooLong),
        ] {
            assert_eq!(duration(text), Err(fault), "{text}");
        }
    }

    #[test]
    fn variables_are_replaced_as_go_replaces_them() {
        let variables = BTreeMap::from([("HOST".to_owned(), "git.example".to_owned()), ("N_1".to_owned(), "x".to_owned())]);
        for (text, expected, missing) in [
            ("https://$HOST/", "https://git.example/", ""),
            ("${HOST}s", "git.examples", ""),
            ("$HOSTs", "", "HOSTs"),
            ("a$N_1-b", "ax-b", ""),
            ("100$", "100$", ""),
            ("$ x", "$ x", ""),
            ("a${}b", "ab", ""),
            ("a${HOST", "aHOST", ""),
            ("$$", "", "$"),
            ("ä$HOSTä", "ägit.exampleä", ""),
        ] {
            let (out, names) = expand(text, &variables);
            assert_eq!((out.as_str(), names.join(" ").as_str()), (expected, missing), "{text}");
        }
    }

    #[test]
    fn an_address_gets_a_port_when_it_has_none() {
        for (address, expected) in [
            ("localhost", Some("localhost:9252")),
            (":1234", Some(":1234")),
            ("localhost:1234", Some("localhost:1234")),
            ("localhost::1234", None),
            ("[::1]", Some("[::1]:9252")),
            ("[::1]:80", Some("[::1]:80")),
            ("[::1", None),
            ("::1", None),
        ] {
            assert_eq!(with_port(address, 9252).as_deref(), expected, "{address}");
        }
    }
}
