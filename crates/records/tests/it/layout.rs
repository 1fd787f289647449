//! How finished JSON is laid out.

use gt_records::{escape_html, pretty, sorted_object};
use proptest::prelude::*;
use serde_json::Value;

use crate::HTML;
use crate::strategies::json;

#[test]
fn pretty_json_looks_like_that_of_go() {
    assert_eq!(
        pretty(r#"[{"b":1.50,"a":{},"c":[],"d":["<",{"e":null}],"f, :":"\""}]"#),
        r#"[
  {
    "b": 1.50,
    "a": {},
    "c": [],
    "d": [
      "\u003c",
      {
        "e": null
      }
    ],
    "f, :": "\""
  }
]"#
    );
    assert_eq!(pretty("[ ]"), "[]");
    assert_eq!(pretty("\"a&b\""), "\"a\\u0026b\"");
}

#[test]
fn html_is_escaped_and_other_text_is_not() {
    assert_eq!(
        escape_html("\"<b>&\u{2027}\u{2028}\u{2029}\u{202a}ä✓\\\\<\""),
        "\"\\u003cb\\u003e\\u0026\u{2027}\\u2028\\u2029\u{202a}ä✓\\\\\\u003c\""
    );
}

#[test]
fn sorted_objects_carry_the_version() {
    for (given, expected) in [
        ("{}", r#"{"schema_version":1}"#),
        (r#"{"z":{"b":1,"a":2},"a":1.0}"#, r#"{"a":1.0,"schema_version":1,"z":{"b":1,"a":2}}"#),
        (r#"{"b":1,"schema_version":9,"a":2,"b":3}"#, r#"{"a":2,"b":3,"schema_version":1}"#),
        (r#"{"é":1,"Z":2,"a\"":3}"#, r#"{"Z":2,"a\"":3,"schema_version":1,"é":1}"#),
    ] {
        assert_eq!(sorted_object(given), expected);
    }
}

#[test]
fn invalid_json_comes_back_unchanged() {
    for text in ["", "{", "{\"a\":}", "<{}>", "{} {}", "\"\u{2028}"] {
        assert_eq!(pretty(text), text);
        assert_eq!(sorted_object(text), text);
    }
    assert_eq!(sorted_object("[1]"), "[1]");
}

#[test]
fn depth_does_not_make_the_output_explode() {
    let depth = 100_000;
    let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(pretty(&deep).len() < deep.len() * 300);
}

fn value(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

proptest! {
    #[test]
    fn pretty_json_is_the_same_json(text in json()) {
        let pretty = pretty(&text);
        prop_assert_eq!(value(&pretty), value(&text));
        prop_assert_eq!(value(&escape_html(&text)), value(&text));
        let scalars = |text: &str| text.replace([' ', '\n'], "");
        prop_assert_eq!(scalars(&pretty), scalars(&escape_html(&text)));
    }

    #[test]
    fn sorting_changes_nothing_but_the_version(text in json()) {
        if let Some(Value::Object(mut map)) = value(&text) {
            map.insert("schema_version".to_owned(), 1.into());
            prop_assert_eq!(value(&sorted_object(&text)), Some(Value::Object(map)));
        }
    }

    #[test]
    fn no_text_makes_the_layout_panic(text in any::<String>(), jsonish in "[\\[\\]{},:\"\\\\ a0<\u{2028}ä]{0,40}") {
        for text in [text, jsonish] {
            let escaped = escape_html(&text);
            prop_assert!(!escaped.contains(HTML));
            for laid_out in [pretty(&text), sorted_object(&text)] {
                prop_assert!(value(&text).is_some() || laid_out == text || value(&laid_out).is_some());
            }
        }
    }
}
