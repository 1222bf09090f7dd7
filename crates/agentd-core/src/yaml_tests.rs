//! The quick reader and the library, held together.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Data,
    Logic,
}

#[derive(Debug, PartialEq, Default, Deserialize)]
#[serde(default)]
struct Inner {
    id: Option<String>,
    count: Option<u32>,
    list: Vec<String>,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Either {
    Text(String),
    Inner(Inner),
}

#[derive(Debug, PartialEq, Default, Deserialize)]
#[serde(default)]
struct Sample {
    a: Option<String>,
    b: Option<u32>,
    c: Option<f64>,
    d: Option<bool>,
    e: Vec<String>,
    f: Option<Kind>,
    g: Option<Inner>,
    h: Vec<Inner>,
    i: Vec<Either>,
    j: BTreeMap<String, String>,
}

#[test]
fn what_agentd_writes_is_read_quickly() {
    let yaml = "# c\na: Add a thing, it's (new)\nb: 3\nc: 0.02\nd: true\ne: [\"1.1\", 2.10]\nf: data\ng:\n  id: \"x: y\"\n  list: []\nh:\n  - id: a\n    count: 1\n    list:\n      - x\n  - count: 2\ni:\n- id: b\n- auth-flow\nj:\n  R1: \"t\"\n";
    let read: Sample = quick(yaml).expect("it is plain");
    assert_eq!(read.e, ["1.1", "2.10"]);
    assert_eq!(read.h.len(), 2);
    assert_eq!(read.i.len(), 2);
    assert_eq!(read, by_the_library::<Sample>(yaml).unwrap());
}

#[test]
fn unusual_yaml_is_left_to_the_library() {
    for yaml in [
        "",
        "a: |\n  x\n",
        "a: &x 1\n",
        "a: 'x'\n",
        "a: x\n  y\n",
        "a: {}\n",
        "a:\tx\n",
        "a: x # c\n",
        "? a\n",
        "a: 1\na: 2\n",
        "\"a\": 1\n",
        "a: \"x\\n\"\n",
        "- a\n",
        "a: !t x\n",
        "a: x: y\n",
        "a: [x, [y]]\n",
        "a:\n",
        "a: ~\n",
        "yes: 1\n",
        " a: 1\n",
        "a: \u{e9}\n",
        "--- \na: 1\n",
        "a: \"x\" y\n",
        "a:b\n",
        "a: x\r\n",
    ] {
        assert!(quick::<BTreeMap<String, serde_json::Value>>(yaml).is_none(), "{yaml:?}");
    }
}

fn yaml() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "id", "count", "list", "no",
    ]);
    let value = prop_oneof![
        prop::sample::select(vec![
            "",
            "x",
            "1",
            "0",
            "01",
            "1.10",
            "0x1F",
            "1e3",
            "true",
            "True",
            "no",
            "null",
            "Null",
            "~",
            "\"q\"",
            "\"a: b\"",
            "\"a\\n\"",
            "'s'",
            "[]",
            "[a, b]",
            "[\"1.1\", 2]",
            "[a, [b]]",
            "{}",
            "{k: v}",
            "data",
            "x: y",
            "x #c",
            "x#c",
            "|",
            "- x",
            "-",
            "*x",
            "&x y",
            "!t x",
            "a, b",
            "(x)",
            "x:",
            ".5",
            ".",
            "..",
            "1_000",
            "0o7",
            "2026-01-02T03:04:05Z",
            "1.",
            "+1",
            "-1",
            "\"\"",
            "[ ]",
            "[a,]",
            "[,]",
            "[a:b]",
            "a:b",
            ".inf",
            "x  y",
            "\"x\" ",
            "%x",
            "@x",
            "é",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,6}",
    ];
    let line = (0..3_usize, prop::bool::weighted(0.25), key, value, prop::bool::weighted(0.9))
        .prop_map(|(depth, item, key, value, entry)| {
            let pad = "  ".repeat(depth);
            let dash = if item { "- " } else { "" };
            match (entry, value.as_str()) {
                (true, "") => format!("{pad}{dash}{key}:\n"),
                (true, value) => format!("{pad}{dash}{key}: {value}\n"),
                (false, value) => format!("{pad}{dash}{value}\n"),
            }
        });
    proptest::collection::vec(line, 1..7).prop_map(|lines| lines.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn the_quick_reader_agrees_with_the_library(yaml in yaml()) {
        if let Some(read) = quick::<Sample>(&yaml) {
            prop_assert_eq!(Ok(read), by_the_library::<Sample>(&yaml).map_err(|e| e.0), "{}", yaml);
        }
        if let Some(read) = quick::<BTreeMap<String, String>>(&yaml) {
            prop_assert_eq!(Ok(read), by_the_library(&yaml).map_err(|e| e.0), "{}", yaml);
        }
        if let Some(read) = quick::<BTreeMap<String, serde_json::Value>>(&yaml) {
            prop_assert_eq!(Ok(read), by_the_library(&yaml).map_err(|e| e.0), "{}", yaml);
        }
    }
}
