use super::*;

/// What each stream wrote, and both as a screen shows them, for a log that comes in pieces of this size.
fn read(log: &str, size: usize, mut reader: LogReader) -> [String; 4] {
    let mut streams = [Vec::new(), Vec::new(), Vec::new()];
    let (mut merged, mut shown) = (Merged::default(), Vec::new());
    let mut take = |piece: Piece<'_>| {
        streams[piece.stream as usize].extend_from_slice(piece.bytes);
        merged.add(&piece, &mut shown);
    };
    log.as_bytes().chunks(size).for_each(|bytes| reader.push(bytes, &mut take));
    reader.finish(&mut take);
    let [output, error, unknown] = streams;
    [output, error, unknown, shown].map(|bytes| String::from_utf8(bytes).unwrap())
}

fn stamped(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("2026-11-20T17:53:54.410763Z {line}\n")).collect()
}

/// The same however the log is cut.
fn in_any_pieces(log: &str, expected: [&str; 4]) {
    for size in [1, 2, 3, 31, 32, 33, 4096] {
        assert_eq!(read(log, size, LogReader::new()), expected, "in pieces of {size}");
    }
}

#[test]
fn streams_are_told_apart_and_blank_lines_kept() {
    let log = stamped(&["01O a", "01O ", "01E b", "00O c"]);
    in_any_pieces(&log, ["a\n\nc\n", "b\n", "", "a\n\nb\nc\n"]);
}

#[test]
fn a_line_that_was_cut_is_one_line_also_beside_the_other_stream() {
    let log = stamped(&["01O prompt> ", "01E x", "01O+yes", "01E+y", "01O 1%\r", "01O+2%"]);
    in_any_pieces(&log, ["prompt> yes\n1%\r2%\n", "xy\n", "", "prompt> \nx\nyes\ny\n1%\r2%\n"]);
}

#[test]
fn a_raw_log_is_what_it_is() {
    in_any_pieces("Running step \"a\"\n\nb\rc", ["", "", "Running step \"a\"\n\nb\rc", "Running step \"a\"\n\nb\rc"]);
    let other = "2026-11-20T17:53:54.410763Z an other log\n2";
    in_any_pieces(other, ["", "", other, other]);
    in_any_pieces("2026", ["", "", "2026", "2026"]);
    in_any_pieces("", [""; 4]);
}

#[test]
fn a_header_that_was_torn_is_not_shown_and_a_line_without_one_is() {
    let log = format!("{}2026-11-20T17\n{}no header\n", stamped(&["01O a"]), stamped(&["01E the log ends here"]));
    in_any_pieces(&log, ["a\n", "the log ends here\n", "\nno header\n", "a\n\nthe log ends here\nno header\n"]);
}

#[test]
fn reading_may_begin_in_the_middle_of_a_line() {
    let log = stamped(&["01O abc", "01O d"]);
    for offset in 1..36 {
        let [output, _, unknown, _] = read(&log[offset..], 5, LogReader::stamped_from_the_middle());
        assert_eq!((output.as_str(), unknown.as_str()), ("d\n", &log[offset..36]));
    }
}

#[test]
fn a_quiet_moment_hands_on_newlines_but_those_that_nobody_wrote() {
    let mut reader = LogReader::new();
    let mut shown = Vec::new();
    let mut take = |piece: Piece<'_>| shown.extend_from_slice(piece.bytes);
    reader.push(stamped(&["01O a"]).as_bytes(), &mut take);
    reader.quiet(&mut take);
    reader.push(stamped(&["01O b\r"]).as_bytes(), &mut take);
    reader.quiet(&mut take);
    reader.push(stamped(&["01O+c"]).as_bytes(), &mut take);
    reader.quiet(&mut take);
    reader.finish(&mut take);
    assert_eq!(String::from_utf8(shown).unwrap(), "a\nb\rc\n");
    assert_eq!(reader.is_stamped(), Some(true));
}

#[test]
fn the_time_of_a_line_is_told() {
    let mut times = Vec::new();
    LogReader::new().push(stamped(&["01O a"]).as_bytes(), &mut |piece| times.push(piece.time.map(str::to_owned)));
    assert_eq!(times, [Some("2026-11-20T17:53:54.410763Z".to_owned())]);
}
