//! The command that a rig starts for a bead, with placeholders for the values that differ from run to run.

use crate::{Invalid, words};

/// The words of a command: those of the template, each with its places filled. A template is a line, split the way a shell
/// does, or a JSON array that has the words already.
///
/// `{name}` stands for the value of that name, wherever it is in a word; a value never becomes several
/// words, and no place is looked for in it. `{{` and `}}` are braces.
pub fn expand(template: &str, values: &[(&str, &str)]) -> Result<Vec<String>, Invalid> {
    let filled: Vec<String> =
        words_of(template)?.iter().map(|word| fill(word, values)).collect::<Result<_, _>>()?;
    if filled.first().is_none_or(String::is_empty) {
        return Err(Invalid::new("the command names no program"));
    }
    Ok(filled)
}

/// The words of a template, with their places.
pub(crate) fn words_of(template: &str) -> Result<Vec<String>, Invalid> {
    match array_of_words(template)? {
        Some(words) => Ok(words),
        None => Ok(words::split(template)?.into_iter().map(|word| word.text).collect()),
    }
}

/// The words of a template that is a JSON array. A line can begin with a bracket too, but not with one and a quote.
fn array_of_words(template: &str) -> Result<Option<Vec<String>>, Invalid> {
    let inside = template.trim().strip_prefix('[').map(str::trim_start);
    if !inside.is_some_and(|inside| inside.starts_with('"')) {
        return Ok(None);
    }
    serde_json::from_str(template).map(Some).map_err(|why| {
        Invalid(format!(
            "the command begins like a JSON array of words and is none ({why}); write it as \
             [\"program\", \"word\"], or as a line: program word"
        ))
    })
}

/// A word with its places filled.
pub(crate) fn fill(word: &str, values: &[(&str, &str)]) -> Result<String, Invalid> {
    let value =
        |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    fill_with(word, |name| value(name).ok_or_else(|| unknown(name, values)))
}

/// Whether a word has a place of this name.
pub(crate) fn has_place(word: &str, wanted: &str) -> Result<bool, Invalid> {
    let mut found = false;
    fill_with(word, |name| {
        found |= name == wanted;
        Ok("")
    })?;
    Ok(found)
}

fn fill_with<'v>(
    word: &str,
    mut value: impl FnMut(&str) -> Result<&'v str, Invalid>,
) -> Result<String, Invalid> {
    let mut filled = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.find(['{', '}']) {
        let (text, from_brace) = rest.split_at(at);
        filled.push_str(text);
        rest = if let Some(after) = from_brace.strip_prefix("{{") {
            filled.push('{');
            after
        } else if let Some(after) = from_brace.strip_prefix("}}") {
            filled.push('}');
            after
        } else if let Some(after) = from_brace.strip_prefix('{') {
            let Some((name, after)) = after.split_once('}') else {
                return Err(Invalid::new("a { is never closed; write {{ to mean the brace itself"));
            };
            filled.push_str(value(name)?);
            after
        } else {
            return Err(Invalid::new("a } closes nothing; write }} to mean the brace itself"));
        };
    }
    filled.push_str(rest);
    Ok(filled)
}

fn unknown(name: &str, values: &[(&str, &str)]) -> Invalid {
    let known: Vec<String> = values.iter().map(|(known, _)| format!("{{{known}}}")).collect();
    let shown: String = name.chars().take(60).collect();
    let (shown, known) = (shown.escape_debug(), known.join(", "));
    Invalid(format!("{{{shown}}} stands for nothing; there are {known} (write {{{{ for a brace)"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VALUES: &[(&str, &str)] =
        &[("bead", "gt-abc"), ("run", "gt-abc#3"), ("title", "Don't {run} 'away' \\ now")];

    #[test]
    fn places_are_filled_and_never_split() {
        for (template, expected) in [
            ("true", &["true"] as &[&str]),
            ("agent --bead {bead} '{title}'", &["agent", "--bead", "gt-abc", VALUES[2].1]),
            ("agent {title}", &["agent", VALUES[2].1]),
            ("a --x={bead}/{run}. {bead}{bead}", &["a", "--x=gt-abc/gt-abc#3.", "gt-abcgt-abc"]),
            (r#"sh -c "echo ${{HOME}}; exit""#, &["sh", "-c", "echo ${HOME}; exit"]),
            ("a {{bead}} {{{bead}}}", &["a", "{bead}", "{gt-abc}"]),
            ("a '' ä{bead}ö", &["a", "", "ägt-abcö"]),
            (r#"["/bin/true","x y"]"#, &["/bin/true", "x y"]),
            (r#" [ "a", "'{bead}'", "{{}}", "" ] "#, &["a", "'gt-abc'", "{}", ""]),
            ("[ -f {bead} ]", &["[", "-f", "gt-abc", "]"]),
        ] {
            assert_eq!(expand(template, VALUES).unwrap(), expected, "{template}");
        }
    }

    #[test]
    fn a_malformed_template_is_refused() {
        for (template, message) in [
            ("", "the command names no program"),
            ("  ", "the command names no program"),
            ("'' x", "the command names no program"),
            (r#"["", "x"]"#, "the command names no program"),
            ("a 'b", "the ' at column 3 is never closed"),
            ("a {bead", "a { is never closed; write {{ to mean the brace itself"),
            ("a bead}", "a } closes nothing; write }} to mean the brace itself"),
            (
                "a {beads}",
                "{beads} stands for nothing; there are {bead}, {run}, {title} (write {{ for a brace)",
            ),
            (
                "a {}",
                "{} stands for nothing; there are {bead}, {run}, {title} (write {{ for a brace)",
            ),
        ] {
            assert_eq!(expand(template, VALUES).unwrap_err().0, message, "{template}");
        }
    }

    #[test]
    fn an_array_that_is_none_of_words_is_refused() {
        for template in [r#"["a", 1]"#, r#"["a""#, r#"["a"] b"#, r#"["a", ["b"]]"#] {
            let said = expand(template, VALUES).unwrap_err().0;
            assert!(said.starts_with("the command begins like a JSON array"), "{said}");
        }
    }

    proptest! {
        #[test]
        fn words_in_an_array_come_back(words in prop::collection::vec(any::<String>(), 1..6)) {
            prop_assume!(!words[0].is_empty());
            let doubled = |word: &String| word.replace('{', "{{").replace('}', "}}");
            let doubled: Vec<String> = words.iter().map(doubled).collect();
            let array = serde_json::Value::from(doubled).to_string();
            prop_assert_eq!(expand(&array, VALUES), Ok(words));
        }

        #[test]
        fn nothing_makes_it_panic(template in "[{}a' \"\\\\bead]{0,30}|.*") {
            let _ = expand(&template, VALUES);
        }

        #[test]
        fn text_with_its_braces_doubled_comes_back(words in prop::collection::vec(any::<String>(), 1..6)) {
            prop_assume!(!words[0].is_empty());
            let quoted = |word: &String| {
                format!("'{}'", word.replace('{', "{{").replace('}', "}}").replace('\'', r"'\''"))
            };
            let template: Vec<String> = words.iter().map(quoted).collect();
            prop_assert_eq!(expand(&template.join(" "), VALUES), Ok(words));
        }

        #[test]
        fn a_value_arrives_as_it_is(value in any::<String>()) {
            let filled = expand("a x{v}y {v}", &[("v", &value)]).unwrap();
            prop_assert_eq!(filled, ["a".to_owned(), format!("x{value}y"), value]);
        }
    }
}
