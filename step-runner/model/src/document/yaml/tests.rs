use super::*;

fn stream(text: &str) -> Stream<'_> {
    parse(text, 2, &Lines::of(text))
}

/// The only document of a sound text.
fn root(text: &str) -> Node<'_> {
    let mut stream = stream(text);
    assert_eq!(stream.problems, []);
    stream.documents.pop().flatten().expect("a document")
}

#[test]
fn every_node_knows_its_bytes() {
    let text = "a: |\n    x\n      y\nb: 'it''s'\nc: &x  \"q\\n\"\nd: *x\ne: [1, 2]  # c\nf:\n  - g: 1\n    h: 2\n\n# end\n";
    let root = root(text);
    let written = |path: &[&str]| {
        let node = path.iter().fold(&root, |node, key| match key.parse::<usize>() {
            Ok(index) => &node.as_list().expect("a list")[index],
            Err(_) => node.get(key).expect("a key"),
        });
        &text[node.span.range()]
    };
    assert_eq!(written(&["a"]), "x\n      y\n");
    assert_eq!(written(&["b"]), "'it''s'");
    assert_eq!(written(&["c"]), "\"q\\n\"");
    assert_eq!(written(&["d"]), "*x");
    assert_eq!(written(&["e"]), "[1, 2]");
    assert_eq!(written(&["f"]), "- g: 1\n    h: 2");
    assert_eq!(written(&["f", "0"]), "g: 1\n    h: 2");
    assert_eq!(written(&["f", "0", "h"]), "2");
}

#[test]
fn an_alias_holds_what_it_stands_for() {
    let text = "a: &x {k: [1]}\nb: *x\n";
    let root = root(text);
    assert_eq!(root.get("b").and_then(|node| node.get("k")).and_then(Node::as_list).map(<[_]>::len), Some(1));
    let problems = stream("a: &x [*x]").problems;
    assert_eq!(problems[0].message, "the alias stands for the value that holds it");
}

#[test]
fn merged_keys_come_behind_and_win_over_nothing() {
    let root = root("x: &x {a: 1, b: 2}\ny: &y {b: 3, c: 4}\nz: {b: 0, <<: [*x, *y]}\n");
    let entries = root.get("z").and_then(Node::as_map).expect("a map");
    let texts: Vec<_> = entries.iter().map(|(key, value)| (key.source_text().unwrap(), value.source_text().unwrap())).collect();
    assert_eq!(texts, [("b", "0"), ("a", "1"), ("c", "4")]);
}

#[test]
fn a_document_that_cannot_be_read_does_not_hide_the_next() {
    let stream = stream("a: [\n---\nb: 1\n");
    assert_eq!(stream.documents.len(), 2);
    assert!(stream.documents[0].is_none());
    assert_eq!(stream.documents[1].as_ref().and_then(|root| root.get("b")).and_then(Node::source_text), Some("1"));
    assert_eq!(stream.problems.len(), 1);
}

#[test]
fn documents_behind_the_wanted_ones_are_not_read() {
    let stream = stream("a\n---\nb\n---\n]\n");
    assert_eq!((stream.documents.len(), stream.problems.len()), (2, 0));
    assert_eq!(stream.rest.map(|span| span.start), Some(8));
}

#[test]
fn tags_are_kept() {
    let root = root("a: !reference [x, y]\nb: !!str 1\nc: !!int \"1\"\n");
    assert_eq!(root.get("a").and_then(|node| node.tag.as_deref()), Some("!reference"));
    assert_eq!(root.get("b").and_then(Node::resolve), Some(Resolved::Text("1".into())));
    assert_eq!(root.get("c").and_then(Node::resolve), Some(Resolved::Number(1.0)));
}

#[test]
fn a_scalar_is_named_as_the_original_names_it() {
    let names: Vec<String> =
        root("[x, a long text of words, 1, 1.5, true, null, [], {}]").as_list().unwrap().iter().map(Node::yaml_name).collect();
    assert_eq!(names, ["!!str `x`", "!!str `a long ...`", "!!int `1`", "!!float `1.5`", "!!bool `true`", "!!null", "!!seq", "!!map"]);
}
