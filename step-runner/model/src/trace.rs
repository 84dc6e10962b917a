//! The place of a span in a trace, as the W3C writes it: <https://www.w3.org/TR/trace-context/>, section 3.2.

use std::fmt;
use std::str::FromStr;

/// Names a trace. Never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TraceId([u8; 16]);

/// Names a span in its trace. Never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanId([u8; 8]);

impl TraceId {
    /// Zero becomes one: no trace is called zero.
    pub const fn from_number(number: u128) -> Self {
        Self(if number == 0 { 1u128 } else { number }.to_be_bytes())
    }

    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }
}

impl SpanId {
    /// Zero becomes one: no span is called zero.
    pub const fn from_number(number: u64) -> Self {
        Self(if number == 0 { 1u64 } else { number }.to_be_bytes())
    }

    pub const fn bytes(self) -> [u8; 8] {
        self.0
    }
}

/// A span and its trace: what `traceparent` carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    pub trace: TraceId,
    pub span: SpanId,
    /// Whether whoever began the trace records it. Nobody exports spans of one that is not recorded.
    pub is_sampled: bool,
}

/// Why a text is no `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotATraceContext {
    #[error("it is not `VERSION-TRACE-SPAN-FLAGS` of 2, 32, 16 and 2 lowercase hexadecimal digits")]
    Form,
    #[error("there is no version ff")]
    Version,
    #[error("the trace is all zeros")]
    Trace,
    #[error("the span is all zeros")]
    Span,
}

impl FromStr for TraceContext {
    type Err = NotATraceContext;

    /// A version that is newer than ours may have more at its end, as the specification asks readers to accept.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split('-');
        let mut next = || parts.next().ok_or(NotATraceContext::Form);
        let version = number(next()?, 2)?;
        let trace = number(next()?, 32)?;
        let span = number(next()?, 16)?;
        let flags = number(next()?, 2)?;
        match (version, parts.next()) {
            (0xff, _) => return Err(NotATraceContext::Version),
            (0, Some(_)) => return Err(NotATraceContext::Form),
            _ if trace == 0 => return Err(NotATraceContext::Trace),
            _ if span == 0 => return Err(NotATraceContext::Span),
            _ => {}
        }
        let span = u64::try_from(span).map_err(|_| NotATraceContext::Form)?;
        Ok(Self { trace: TraceId::from_number(trace), span: SpanId::from_number(span), is_sampled: flags & 1 == 1 })
    }
}

fn number(digits: &str, length: usize) -> Result<u128, NotATraceContext> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if digits.len() != length || !digits.bytes().all(is_digit) {
        return Err(NotATraceContext::Form);
    }
    u128::from_str_radix(digits, 16).map_err(|_| NotATraceContext::Form)
}

/// In version 00.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (trace, span) = (u128::from_be_bytes(self.trace.0), u64::from_be_bytes(self.span.0));
        write!(f, "00-{trace:032x}-{span:016x}-{:02x}", u8::from(self.is_sampled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_example_of_the_specification_is_read_and_written() {
        let context: TraceContext = EXAMPLE.parse().unwrap();
        assert!(context.is_sampled);
        assert_eq!(context.to_string(), EXAMPLE);
        let unsampled: TraceContext = EXAMPLE.replace("-01", "-00").parse().unwrap();
        assert!(!unsampled.is_sampled);
    }

    #[test]
    fn what_is_none_is_refused_with_the_reason() {
        let fault = |text: &str| text.parse::<TraceContext>().unwrap_err();
        for text in ["", "00", "00-1-2-01", &EXAMPLE[1..], &EXAMPLE.to_uppercase(), &format!("{EXAMPLE}-x"), &EXAMPLE.replace('f', "g")] {
            assert_eq!(fault(text), NotATraceContext::Form, "{text}");
        }
        assert_eq!(fault(&EXAMPLE.replacen("00", "ff", 1)), NotATraceContext::Version);
        assert_eq!(fault("00-00000000000000000000000000000000-00f067aa0ba902b7-01"), NotATraceContext::Trace);
        assert_eq!(fault("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"), NotATraceContext::Span);
    }

    #[test]
    fn a_newer_version_may_carry_more() {
        let newer: TraceContext = format!("{}-more", EXAMPLE.replacen("00", "01", 1)).parse().unwrap();
        assert_eq!(newer.to_string(), EXAMPLE);
    }
}
