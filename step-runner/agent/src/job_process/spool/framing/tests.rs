use super::*;
use proptest::prelude::*;
use step_client::logs::{self, LogReader};

/// 2026-11-20T17:53:54.410763Z
const THEN: Timestamp = Timestamp::from_nanoseconds(1_795_197_234_410_763_999);

/// Each piece on its own; `E:` before those of standard error, `!` for a quiet moment, `#` before lines of ours.
fn stamped(pieces: &[&str]) -> Vec<String> {
    let mut framer = Framer::new(Framing::Stamped);
    let mut out = Vec::new();
    for piece in pieces {
        match (*piece, piece.strip_prefix("E:"), piece.strip_prefix('#')) {
            ("!", ..) => framer.release(THEN, &mut out),
            (_, Some(text), _) => framer.output(Stream::Error, text.as_bytes(), THEN, &mut out),
            (_, _, Some(line)) => framer.line(line, false, THEN, &mut out),
            (text, ..) => framer.output(Stream::Output, text.as_bytes(), THEN, &mut out),
        }
    }
    framer.release(THEN, &mut out);
    assert!(!framer.holds_back());
    let text = String::from_utf8(out).unwrap();
    let lines = text.split_terminator('\n').map(|line| line.strip_prefix("2026-11-20T17:53:54.410763Z ").expect("every line has a header"));
    lines.map(str::to_owned).collect()
}

#[test]
fn lines_get_their_headers_and_blank_ones_are_kept() {
    assert_eq!(stamped(&["a\n\nb\n", "E:c\n", "\n"]), ["01O a", "01O ", "01O b", "01E c", "01O "]);
}

#[test]
fn a_line_in_pieces_is_one_line() {
    assert_eq!(stamped(&["a", "b", "E:x", "c\n", "E:y\n"]), ["01O abc", "01E xy"]);
}

#[test]
fn a_prompt_is_shown_when_it_is_quiet_and_stays_one_line() {
    assert_eq!(stamped(&["prompt> ", "!", "yes\nnext\n"]), ["01O prompt> ", "01O+yes", "01O next"]);
    assert_eq!(stamped(&["prompt> ", "!", "\nnext\n"]), ["01O prompt> ", "01O next"]);
    assert_eq!(stamped(&["prompt> ", "!", "\n", "\n", "x"]), ["01O prompt> ", "01O ", "01O x"], "the second newline is a blank line");
}

#[test]
fn a_carriage_return_cuts_a_line_unless_it_ends_it() {
    assert_eq!(stamped(&["10%\r20%\r30%\n"]), ["01O 10%\r", "01O+20%\r", "01O+30%"]);
    assert_eq!(stamped(&["a\r\nb\r", "\nc\r\r\nd\r", "e\r\r"]), ["01O a\r", "01O b\r", "01O c\r\r", "01O d\r", "01O+e\r\r"]);
    assert_eq!(stamped(&["section_start:1:x\r\x1b[0KHeader\n"]), ["01O section_start:1:x\r", "01O+\x1b[0KHeader"]);
}

#[test]
fn a_long_line_is_cut_between_characters() {
    let long = "x".repeat(LONGEST);
    assert_eq!(stamped(&[&long, "\n"]), [format!("01O {long}")], "it fits exactly");
    assert_eq!(stamped(&[&long, "y\nz\n"]), [format!("01O {long}"), "01O+y".into(), "01O z".into()]);
    let wide = "é".repeat(LONGEST);
    let lines = stamped(&["a", &wide]);
    assert_eq!(lines.iter().map(String::len).collect::<Vec<_>>(), [LONGEST - 1 + 4, LONGEST + 4, 5 + 1]);
    let returns = "\r".repeat(3 * LONGEST);
    assert_eq!(stamped(&[&returns]).iter().map(|line| line.len() - 4).sum::<usize>(), returns.len());
}

#[test]
fn a_line_of_ours_is_a_line_of_its_own() {
    assert_eq!(
        stamped(&["a", "E:b", "#Running step \"x\"", "c\n", "E:d\n"]),
        ["01O a", "01E b", "01O Running step \"x\"", "01O c", "01E+d"]
    );
    let mut framer = Framer::new(Framing::Raw);
    let mut out = Vec::new();
    framer.line("one", false, THEN, &mut out);
    framer.output(Stream::Both, b"a\r\n\nb", THEN, &mut out);
    framer.line("two\nlines", true, THEN, &mut out);
    framer.output(Stream::Both, b"c", THEN, &mut out);
    framer.release(THEN, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), "one\na\r\n\nb\nwarning: two\nlines\nc");
}

#[test]
fn dates_are_those_of_the_calendar() {
    let date = |seconds: i64| String::from_utf8(header(Timestamp::from_nanoseconds(seconds * 1_000_000_000), b'O').to_vec()).unwrap();
    assert_eq!(date(0), "1970-01-01T00:00:00.000000Z 01O ");
    assert_eq!(date(951_868_799), "2000-02-29T23:59:59.000000Z 01O ");
    assert_eq!(date(4_107_542_400), "2100-03-01T00:00:00.000000Z 01O ");
    assert_eq!(date(-1), "1969-12-31T23:59:59.000000Z 01O ");
}

/// What happens to a log.
#[derive(Debug, Clone)]
enum Moment {
    Output(String),
    Error(String),
    Quiet,
}

fn moments() -> impl Strategy<Value = Vec<Moment>> {
    let text = || prop_oneof!["[ab\\r\\n\u{e9}]{0,12}", "x{8180,8200}", "\r{8185,8195}", "[a+ \\n]{0,5}"];
    prop::collection::vec(prop_oneof![text().prop_map(Moment::Output), text().prop_map(Moment::Error), Just(Moment::Quiet)], 0..20)
}

proptest! {
    #[test]
    fn unstamping_gives_each_stream_back_however_it_was_cut(moments in moments(), size in 1..70usize) {
        let mut framer = Framer::new(Framing::Stamped);
        let mut log = Vec::new();
        let mut written = [Vec::new(), Vec::new()];
        for moment in &moments {
            match moment {
                Moment::Output(text) => framer.output(Stream::Output, text.as_bytes(), THEN, &mut log),
                Moment::Error(text) => framer.output(Stream::Error, text.as_bytes(), THEN, &mut log),
                Moment::Quiet => framer.release(THEN, &mut log),
            }
            match moment {
                Moment::Output(text) => written[0].extend_from_slice(text.as_bytes()),
                Moment::Error(text) => written[1].extend_from_slice(text.as_bytes()),
                Moment::Quiet => {}
            }
        }
        framer.release(THEN, &mut log);
        for stream in &mut written {
            if stream.last().is_some_and(|last| *last != b'\n') {
                stream.push(b'\n');
            }
        }
        let mut read = [Vec::new(), Vec::new()];
        let mut reader = LogReader::new();
        let mut take = |piece: logs::Piece<'_>| match piece.stream {
            logs::Stream::Output => read[0].extend_from_slice(piece.bytes),
            logs::Stream::Error => read[1].extend_from_slice(piece.bytes),
            logs::Stream::Unknown => panic!("every line has a header"),
        };
        log.chunks(size).for_each(|bytes| reader.push(bytes, &mut take));
        reader.finish(&mut take);
        let lines = log.split(|byte| *byte == b'\n');
        prop_assert!(lines.clone().all(|line| line.len() <= HEADER + LONGEST));
        prop_assert_eq!(read.map(text), written.map(text));
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}
