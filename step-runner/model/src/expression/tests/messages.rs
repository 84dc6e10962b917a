//! What a person reads: message, the place that is meant, and the way out.

use super::*;
use crate::document::Dialect::{Functions, Steps};
use crate::testing::{Contexts, contexts};
use insta::assert_snapshot;
use std::fmt::Write;

fn scope() -> Contexts {
    contexts(&json!({
        "inputs": {"version": "1.2", "count": 2, "list": ["a"], "o": {"my-key": 1}, "none": null},
        "steps": {"build": {"outputs": {"path": "p", "digest": "d"}}},
        "env": {}, "vars": {}, "work_dir": "/w",
    }))
}

/// Each source with what is meant underlined, and what is said about it.
fn messages(dialect: Dialect, sources: &[&str]) -> String {
    let mut page = String::new();
    for source in sources {
        let error = failure(source, dialect, &scope());
        let (before, meant) = (source[..error.span.start].chars().count(), source[error.span.clone()].chars().count());
        writeln!(page, "{source}\n{}{}\n{}", " ".repeat(before), "^".repeat(meant.max(1)), error.message).unwrap();
        writeln!(page, "{}", error.hint.map_or_else(|| "(no hint)".to_owned(), |hint| format!("hint: {hint}"))).unwrap();
        page.push('\n');
    }
    page
}

#[test]
fn what_is_missing_is_named_and_what_was_meant_is_guessed() {
    let sources = [
        "v${{ inputs.vesrion }}",
        "${{ input.version }}",
        "${{ steps.built.outputs.path }}",
        "${{ steps.build.outputs.image }}",
        "${{ inputs.o.my-key }}",
        "${{ env.HOME }}",
        "${{ main }}",
        "${{ inputs.list.0 }}",
        "${{ inputs.list.first }}",
        "${{ inputs.none.x }}",
        "${{ inputs.list[3] }}",
    ];
    assert_snapshot!(messages(Functions, &sources), @r##"
    v${{ inputs.vesrion }}
                ^^^^^^^
    attribute not found: `vesrion` in `inputs`
    hint: did you mean `version`?

    ${{ input.version }}
        ^^^^^
    attribute not found: there is no `input` here
    hint: did you mean `inputs`?

    ${{ steps.built.outputs.path }}
              ^^^^^
    attribute not found: `built` in `steps`
    hint: did you mean `build`?

    ${{ steps.build.outputs.image }}
                            ^^^^^
    attribute not found: `image` in `steps.build.outputs`
    hint: there are `digest`, `path`

    ${{ inputs.o.my-key }}
                 ^^
    attribute not found: `my` in `inputs.o`
    hint: `-` is minus here; a key that holds it stands in brackets, as in `inputs["my-key"]`

    ${{ env.HOME }}
            ^^^^
    attribute not found: `HOME` in `env`
    hint: there is nothing in it

    ${{ main }}
        ^^^^
    attribute not found: there is no `main` here
    hint: a text stands in quotes, as in `"main"`; a value begins with `inputs.`, `steps.`, `env.` or `vars.`

    ${{ inputs.list.0 }}
                   ^^
    expected `}}`, found `.0`
    hint: an element stands in brackets, as in `[0]`

    ${{ inputs.list.first }}
                    ^^^^^
    invalid kind: `inputs.list` is an array, which has no attributes
    hint: elements are counted from 0, as in `inputs.list[0]`

    ${{ inputs.none.x }}
                    ^
    invalid kind: `inputs.none` is null, which has no attributes
    (no hint)

    ${{ inputs.list[3] }}
                    ^
    array index out of range
    hint: the array has 1 element: the last index is 0
    "##);
    let sources = [&sources[..4], &sources[5..], &["${{ inputs.o.my-kex }}", "${{ work_dir.x }}"]].concat();
    assert_snapshot!(messages(Steps, &sources), @r##"
    v${{ inputs.vesrion }}
                ^^^^^^^
    inputs.vesrion: the "vesrion" was not found
    hint: did you mean `version`?

    ${{ input.version }}
        ^^^^^
    input.version: the "input" was not found
    hint: did you mean `inputs`?

    ${{ steps.built.outputs.path }}
              ^^^^^
    steps.built.outputs.path: the "built" was not found
    hint: did you mean `build`?

    ${{ steps.build.outputs.image }}
                            ^^^^^
    steps.build.outputs.image: the "image" was not found
    hint: there are `digest`, `path`

    ${{ env.HOME }}
            ^^^^
    env.HOME: the "HOME" was not found
    hint: there is nothing in it

    ${{ main }}
        ^^^^
    main: the "main" was not found
    hint: a text stands in quotes, as in `"main"`; a value begins with `inputs.`, `steps.`, `env.` or `vars.`

    ${{ inputs.list.0 }}
                    ^
    inputs.list.0: the array is not map to get "0" key
    hint: elements are counted from 0, as in `inputs.list[0]`

    ${{ inputs.list.first }}
                    ^^^^^
    inputs.list.first: the array is not map to get "first" key
    hint: elements are counted from 0, as in `inputs.list[0]`

    ${{ inputs.none.x }}
                    ^
    inputs.none.x: the null is not map to get "x" key
    (no hint)

    ${{ inputs.list[3] }}
                    ^
    array index out of range
    hint: the array has 1 element: the last index is 0

    ${{ inputs.o.my-kex }}
                 ^^^^^^
    inputs.o.my-kex: the "my-kex" was not found
    hint: did you mean `my-key`?

    ${{ work_dir.x }}
                 ^
    work_dir.x: "string" is not supported
    (no hint)
    "##);
}

#[test]
fn what_does_not_fit_is_explained() {
    let sources = [
        "${{ inputs.version + 1 }}",
        "${{ inputs.version * 2 }}",
        "${{ null - 1 }}",
        "${{ -inputs.version }}",
        "${{ num(inputs.version + 'x') }}",
        "${{ num(null) }}",
        "${{ inputs.count / 0 }}",
        "${{ inputs.o[1] }}",
        "${{ inputs.list['a'] }}",
        "${{ inputs.count[0] }}",
        "${{ inputs.version(1) }}",
        "${{ {(inputs.count): 1} }}",
        "${{ str }}",
        "${{ str(1, 2) }}",
        "${{ strr(1) }}",
        "${{ contains('a', 'b') }}",
    ];
    assert_snapshot!(messages(Functions, &sources), @r##"
    ${{ inputs.version + 1 }}
        ^^^^^^^^^^^^^^^^^^
    invalid kind: `+` takes two numbers or two strings, not a string and a number
    hint: write `str(...)` around what is not a string, or `num(...)` around what is one

    ${{ inputs.version * 2 }}
        ^^^^^^^^^^^^^^^^^^
    invalid kind: `*` takes two numbers, not a string and a number
    hint: write `num(...)` around the string

    ${{ null - 1 }}
        ^^^^^^^^
    invalid kind: `-` takes two numbers, not null and a number
    (no hint)

    ${{ -inputs.version }}
         ^^^^^^^^^^^^^^
    invalid kind: `-` takes a number, not a string
    hint: write `num(...)` around it

    ${{ num(inputs.version + 'x') }}
            ^^^^^^^^^^^^^^^^^^^^
    the string is not a number
    hint: `num` reads 42, -3.14 and 1.5e3, with nothing around it

    ${{ num(null) }}
            ^^^^
    invalid kind: `num` takes a string, not null
    (no hint)

    ${{ inputs.count / 0 }}
        ^^^^^^^^^^^^^^^^
    division by zero
    (no hint)

    ${{ inputs.o[1] }}
                 ^
    invalid key: an object is indexed by a string, not by a number
    (no hint)

    ${{ inputs.list['a'] }}
                     ^
    invalid kind: `inputs.list` is an array, which has no attributes
    hint: elements are counted from 0, as in `inputs.list[0]`

    ${{ inputs.count[0] }}
        ^^^^^^^^^^^^
    invalid kind: a number has no elements
    hint: arrays, strings and objects can be indexed

    ${{ inputs.version(1) }}
                      ^^^
    invalid kind: a string cannot be called
    (no hint)

    ${{ {(inputs.count): 1} }}
         ^^^^^^^^^^^^^^
    invalid key: a key of an object is a string, not a number
    hint: write `str(...)` around it

    ${{ str }}
        ^^^
    `str` is a function, not a value
    hint: call it, as in `str(inputs.x)`: it gives a string

    ${{ str(1, 2) }}
           ^^^^^^
    `str` takes one value, not 2
    (no hint)

    ${{ strr(1) }}
        ^^^^
    there is no function `strr`
    hint: did you mean `str`?

    ${{ contains('a', 'b') }}
        ^^^^^^^^
    there is no function `contains`
    hint: the functions are `str`, `num` and `bool`
    "##);
}

#[test]
fn what_is_not_of_the_language_is_pointed_at() {
    let sources = [
        "${{ inputs.version",
        "a ${{ \"b }}",
        "${{ 'b }}",
        "${{ inputs.version } }}",
        "${{ inputs.version = '1' }}",
        "${{ inputs.a | inputs.b }}",
        "${{ $HOME }}",
        "${{ type }}",
        "${{ 1 2 }}",
        "${{ 0x10 }}",
        "${{ (1 }}",
        "${{ [1; 2] }}",
        "${{ {1: 2} }}",
        "${{ \"\\d\" }}",
        "${{ \"\\ud800\" }}",
        "${{ a ? b : c }}",
        "${{ inputs[${{ env.X }}] }}",
        "${{ größe § }}",
    ];
    assert_snapshot!(messages(Functions, &sources), @r##"
    ${{ inputs.version
    ^^^^^^^^^^^^^^^^^^
    the " inputs.version" is not closed: ${{ ... }}
    hint: write the closing `}}`, or `\${{` for a literal `${{`

    a ${{ "b }}
          ^^^^^
    the string is not closed
    hint: write the closing quote, or `\` before a quote that belongs to the string

    ${{ 'b }}
        ^^^^^
    the string is not closed
    hint: write the closing quote, or `\` before a quote that belongs to the string

    ${{ inputs.version } }}
                       ^
    expected `}}`, found `}`
    (no hint)

    ${{ inputs.version = '1' }}
                       ^
    `=` is not expected here
    hint: did you mean `==`?

    ${{ inputs.a | inputs.b }}
                 ^
    `|` is not expected here
    hint: did you mean `||`?

    ${{ $HOME }}
        ^
    `$` is not expected here
    hint: inside an expression names are written as they are, without `$`

    ${{ type }}
        ^^^^
    `type` is a reserved word
    hint: it can be a key, as in `inputs.type`, or a string, as in `"type"`

    ${{ 1 2 }}
          ^
    expected `}}`, found `2`
    (no hint)

    ${{ 0x10 }}
        ^^^^
    `0x10` is not a number
    hint: numbers are written as 42, 3.14 or 1.5e3; a name cannot begin with a digit

    ${{ (1 }}
           ^^
    expected `)`, found `}}`
    (no hint)

    ${{ [1; 2] }}
          ^
    `;` is not expected here
    (no hint)

    ${{ {1: 2} }}
         ^
    expected a key, found `1`
    hint: keys are names, strings, or expressions in parentheses

    ${{ "\d" }}
         ^^
    `\d` is not an escape
    hint: write `\\` for a backslash, or use a string in single quotes

    ${{ "\ud800" }}
         ^^^^^^
    `\ud800` is not a character
    hint: write `\u` and four hexadecimal digits; characters beyond them as a pair of surrogates

    ${{ a ? b : c }}
          ^
    `?` is not expected here
    hint: write `condition && this || that`; `that` is also taken when `this` is empty, 0, false or null

    ${{ inputs[${{ env.X }}] }}
               ^
    `$` is not expected here
    hint: inside an expression names are written as they are, without `$`

    ${{ größe § }}
              ^
    `§` is not expected here
    (no hint)
    "##);
    assert_snapshot!(messages(Steps, &["${{ }}", "${{ inputs..x }}", "${{ inputs.${{ env.X }} }}", "${{ inputs.a + }}"]), @r##"
    ${{ }}
        ^
    : the "" was not found
    hint: write an expression between `${{` and `}}`

    ${{ inputs..x }}
               ^
    inputs..x: the "" was not found
    hint: a path is names with a dot between each two

    ${{ inputs.${{ env.X }} }}
               ^^^
    inputs.${{ env.X }}: the "${{ env" was not found
    hint: a key that is computed stands in brackets, as in `inputs[inputs.name]`

    ${{ inputs.a + }}
                   ^^
    expected a value, found `}}`
    (no hint)
    "##);
}

#[test]
fn a_long_text_is_cut_in_a_message() {
    let error = Template::parse(format!("${{{{ {}", "x ".repeat(100_000)), Steps).unwrap_err();
    assert!(error.message.len() < 200, "{}", error.message.len());
}
