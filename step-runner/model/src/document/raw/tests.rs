use super::*;

fn shown(problems: &[Problem]) -> String {
    problems
        .iter()
        .map(|problem| {
            let span = problem.place.as_ref().map(|place| place.span.clone());
            let hint = problem.hint.as_ref().map(|hint| format!("\n    hint: {hint}")).unwrap_or_default();
            format!("{:?} {} {:?}: {problem}{hint}", problem.verdict, problem.code, span)
        })
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn scratch() {
    for (text, file) in [
        ("spec:\n  inputs:\n    a: {type: string, default: x}\n---\nexec:\n  command: [echo, 2, true, 1.50, 0x10]\n", "step.yml"),
        (
            "spec:\n  inptus:\n    a: {type: int, default: x}\n    b:\n---\nexec:\n  command: [echo, 2, true, 1.50, 0x10]\nrun:\n- script: |\n    echo\n  name: x\n",
            "step.yml",
        ),
        (
            "{}\n---\nrun:\n  - name: a b\n    script: x\n  - func: foo\n  - name: a\n    step: foo\n  - name: a\n    step: ./foo\n    exec: {}\n    a: 1\n    a: 2\n",
            "step.yml",
        ),
        ("{}\n---\nrun: [\n", "step.yml"),
        ("type: x\nspec: [a\n---\nrun: [\n", "step.yml"),
        ("exec: {}\n", "step.yml"),
        ("", "step.yml"),
    ] {
        let reading = read(text, file);
        println!("=====\n{text}\n--> {:?}\n{}", reading.document, shown(&reading.problems));
    }
    println!("{:?}", read_steps("[{\"name\":\"a\",\"script\":\"echo \\u00e4\"}]", None));
    let text = "a: |\n    x\n      y\nb: >-\n   z\n   z\n\nc: 'it''s'\nd: &x  \"q\\n\"\ne: *x\nf: [1, 2]  # c\ng:\n  - h: 1\n\n# end\n";
    let lines = Lines::of(text);
    let stream = parse(text, 2, &lines).unwrap();
    fn dump(text: &str, node: &Node<'_>) {
        println!("{:?} {:?}", node.content, &text[node.span.range()]);
        for (k, v) in node.as_map().unwrap_or_default() {
            dump(text, k);
            dump(text, v);
        }
    }
    dump(text, stream.documents[0].as_ref().unwrap());
}
