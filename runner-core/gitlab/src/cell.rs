//! Which cell of a server a token belongs to, and where that cell is reached. One module knows both.
//!
//! A routable token is `PREFIX PAYLOAD "." VERSION "." LENGTH CRC`: the payload in base64url, its length in two and the CRC-32 of all before it in
//! seven digits of base 36. Decoded, the payload is 16 random bytes, lines of `KEY:VALUE` with numbers in base 36, and one byte with the length
//! of those lines. Key `c` is the cell. Source: gitlab-org/gitlab, lib/authn/token_field/generator/routable_token.rb.

use crate::{ServerUrl, Token};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellId(pub u64);

/// The address for calls with this token: that of its cell where one is known, else `url`.
pub fn address<'a>(token: &Token, cells: &'a BTreeMap<CellId, ServerUrl>, url: &'a ServerUrl) -> &'a ServerUrl {
    of(token).and_then(|cell| cells.get(&cell)).unwrap_or(url)
}

/// The cell that a routable token names. `None` also for a token that only looks like one: its checksum does not match.
pub fn of(token: &Token) -> Option<CellId> {
    let text = token.expose();
    let checked = text.len().checked_sub(CRC_DIGITS).filter(|end| text.is_char_boundary(*end))?;
    let (before, crc) = text.split_at(checked);
    (u32::from_str_radix(crc, 36).ok()? == crc32fast::hash(before.as_bytes())).then_some(())?;
    let (payload, length) = before.rsplit_once('.')?;
    let (payload, _version) = payload.rsplit_once('.')?;
    let begin = payload.len().checked_sub(usize::from_str_radix(length, 36).ok()?)?;
    cell_in(payload.get(begin..)?)
}

const CRC_DIGITS: usize = 7;

fn cell_in(encoded: &str) -> Option<CellId> {
    let decoded = URL_SAFE_NO_PAD.decode(encoded).ok()?;
    let (length, decoded) = decoded.split_last()?;
    let lines = decoded.get(decoded.len().checked_sub(usize::from(*length))?..)?;
    let cell = std::str::from_utf8(lines).ok()?.lines().find_map(|line| line.strip_prefix("c:"))?;
    u64::from_str_radix(cell, 36).ok().map(CellId)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routable(prefix: &str, lines: &str) -> Token {
        let mut bytes = vec![7; 16];
        bytes.extend(lines.as_bytes());
        bytes.push(u8::try_from(lines.len()).expect("short"));
        let payload = URL_SAFE_NO_PAD.encode(bytes);
        let text = format!("{prefix}{payload}.01.{}", base_36(payload.len(), 2));
        let crc = base_36(crc32fast::hash(text.as_bytes()) as usize, CRC_DIGITS);
        Token::new(text + &crc)
    }

    fn base_36(mut number: usize, digits: usize) -> String {
        let mut text = Vec::new();
        while number > 0 || text.len() < digits {
            text.push(char::from_digit((number % 36) as u32, 36).expect("below 36"));
            number /= 36;
        }
        text.iter().rev().collect()
    }

    #[test]
    fn a_routable_token_names_its_cell() {
        assert_eq!(of(&routable("glrt-", "c:1\no:1")), Some(CellId(1)));
        assert_eq!(of(&routable("glrt-t1_", "o:1\nc:z\nu:2")), Some(CellId(35)));
        assert_eq!(of(&routable("glrt-", "o:1")), None);
    }

    #[test]
    fn any_other_token_names_none() {
        let right = routable("glrt-", "c:1\no:1");
        let altered = right.expose().replacen("glrt-", "glrt_", 1);
        for text in ["", "glrt-abcdefghijklmnopqrst", "glcbt-64_x.y", "a.b.c", "...", "glrt-Zm9v.01.0400000000", "üüüüüüü", &altered]
        {
            assert_eq!(of(&Token::new(text)), None, "{text}");
        }
    }

    #[test]
    fn calls_go_to_the_cell_where_it_is_known() {
        let url = ServerUrl::parse("https://gitlab.example").expect("an address");
        let cell = ServerUrl::parse("https://cell-2.gitlab.example").expect("an address");
        let cells = BTreeMap::from([(CellId(2), cell.clone())]);
        assert_eq!(address(&routable("glrt-", "c:2"), &cells, &url), &cell);
        assert_eq!(address(&routable("glrt-", "c:3"), &cells, &url), &url);
        assert_eq!(address(&Token::new("glrt-abc"), &cells, &url), &url);
    }
}
