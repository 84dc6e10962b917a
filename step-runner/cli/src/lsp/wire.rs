//! Messages on the stream: a header with the length, an empty line, and JSON.

use serde_json::Value as Json;
use std::io::{self, BufRead, Write};

/// A larger message is no message of an editor.
const LIMIT: usize = 64 << 20;

/// The next message. `None`: the stream has ended.
/// # Errors
/// It ends in the middle of a message, or what comes is none.
pub fn read(input: &mut impl BufRead) -> io::Result<Option<Json>> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return if length.is_none() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<usize>().ok();
        }
    }
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    let length = length.filter(|length| *length <= LIMIT).ok_or_else(|| wrong("a message has no sensible Content-Length"))?;
    let mut body = vec![0; length];
    input.read_exact(&mut body)?;
    serde_json::from_slice(&body).map(Some).map_err(|_| wrong("a message is not JSON"))
}

/// # Errors
/// The stream is closed.
pub fn write(out: &mut dyn Write, message: &Json) -> io::Result<()> {
    let body = message.to_string();
    write!(out, "Content-Length: {}\r\n\r\n{body}", body.len())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_is_read_again() {
        let mut bytes = Vec::new();
        let messages = [json!({"a": "ü"}), json!([])];
        messages.iter().for_each(|message| write(&mut bytes, message).expect("written"));
        let mut input = &bytes[..];
        assert_eq!([read(&mut input).expect("one"), read(&mut input).expect("two")], messages.map(Some));
        assert_eq!(read(&mut input).expect("the end"), None);
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for bytes in [
            "Content-Length: 5\r\n\r\n{}",
            "Content-Length: x\r\n\r\n{}",
            "Content-Length: 99999999999\r\n\r\n",
            "Content-Length: 1\r\n\r\nx",
            "A: 1\r\n\r\n",
        ] {
            assert!(read(&mut bytes.as_bytes()).is_err(), "{bytes}");
        }
    }
}
