//! Texts that nobody means well with.

use super::*;

#[test]
fn a_text_of_ten_thousand_levels_is_refused() {
    for deep in
        ["[".repeat(10_000), "{a: ".repeat(10_000), "\n".to_owned() + &"- ".repeat(10_000), "[".repeat(10_000) + &"]".repeat(10_000)]
    {
        assert_refused(&read(&format!("{{}}\n---\nrun: {deep}"), "step.yml"), "the text nests deeper than 128 levels");
    }
}

#[test]
fn a_value_has_at_most_32_levels() {
    let input = |levels: usize| item(&format!("{{name: a, step: ./x, inputs: {{v: {}{}}}}}", "[".repeat(levels), "]".repeat(levels)));
    assert_valid(&input(32));
    assert_refused(&input(33), "the value nests deeper than 32 levels");
    let default = |levels: usize| {
        spec_of(&format!("spec: {{inputs: {{v: {{type: array, default: {}{}}}}}}}", "[".repeat(levels), "]".repeat(levels)))
    };
    assert_valid(&default(32));
    assert_refused(&default(33), "the value nests deeper than 32 levels");
}

#[test]
fn a_text_that_grows_by_its_aliases_is_refused() {
    let mut text = "{}\n---\na0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        text += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    assert_refused(&read(&text, "step.yml"), "the text holds more than 500000 values, counting what its aliases repeat");
}

#[test]
fn an_alias_for_what_holds_it_is_refused() {
    assert_refused(&definition_of("env: &a {X: *a}"), "the alias stands for the value that holds it");
    assert_refused(&definition_of("env: *nothing"), "unknown anchor");
}

#[test]
fn a_text_that_is_too_large_is_refused_unread() {
    let text = format!("{{}}\n---\nexec: {{command: [prog]}}\n#{}", "x".repeat(MAXIMUM_SIZE));
    assert_refused(&read(&text, "step.yml"), "a document has at most 4194304");
    assert_eq!(text_of(text.as_bytes()).unwrap_err().code, "too-large");
}

#[test]
fn a_text_that_is_not_utf_8_is_refused_at_its_place() {
    let problem = text_of(b"a: 1\nb: \xff\n").unwrap_err();
    assert_eq!(problem.to_string(), "line 2, column 4: the text is not UTF-8: byte 0xff");
    assert_eq!(text_of("ü".as_bytes()), Ok("ü"));
}

#[test]
fn a_text_that_is_cut_off_is_refused() {
    let text = "spec:\n  inputs:\n    a: {type: string, default: \"x\"}\n---\nrun:\n  - {name: a, script: \"echo\"}\n";
    for end in [3, 9, 30, 44, 52, 58, 63, 70, 80] {
        assert!(read(&text[..end], "step.yml").document.is_none(), "{}", &text[..end]);
    }
    sound(text, "step.yml");
}

#[test]
fn every_key_that_occurs_twice_is_reported_where_it_occurs_again() {
    let reading = definition_of("env: {A: 1, A: 2, B: 1, A: 3}\nexec: {command: [a], command: [b]}");
    insta::assert_snapshot!(shown(&reading.problems), @r#"
    error[duplicate-key] line 3, column 13: mapping key "A" already defined at line 3
        hint: remove one of the two
    error[duplicate-key] line 3, column 25: mapping key "A" already defined at line 3
        hint: remove one of the two
    error[duplicate-key] line 4, column 22: mapping key "command" already defined at line 4
        hint: remove one of the two
    "#);
    let many: String = (0..40).map(|number| format!("K{}: 1, ", number % 39)).collect();
    assert_refused(&definition_of(&format!("env: {{{many}}}\nexec: {{command: [a]}}")), "mapping key \"K0\" already defined");
}

#[test]
fn numbers_that_no_value_holds_are_refused() {
    assert_refused(&item("{name: a, step: ./x, inputs: {v: .inf}}"), "`.inf` is a number that no value can hold");
}

#[test]
fn a_flood_of_problems_is_cut() {
    let items: String = (0..5000).map(|_| "- {}\n").collect();
    let (_, problems) = read_steps(&items, None);
    assert_eq!(problems.len(), 1001);
    assert_eq!(problems[1000].message, "9000 more problems are not listed");
}

#[test]
fn one_text_full_of_unknown_names_fills_the_list_once() {
    let reading = definition_of(&format!("exec: {{command: [\"{}\"]}}", "${{ a }}".repeat(5000)));
    assert!(reading.document.is_some());
    assert_eq!(reading.problems.len(), 1001);
    assert_eq!(reading.problems[1000].to_string(), "4000 more problems are not listed");
    assert_eq!(reading.problems[999].place.as_ref().map(|place| place.column), Some(19 + 4 + 999 * 8));
}

#[test]
fn other_line_ends_and_a_byte_order_mark_are_read() {
    sound("\u{feff}spec: {}\r\n---\r\nexec:\r\n  command: [prog]\r\n", "step.yml");
}
