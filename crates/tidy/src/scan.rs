//! Searches in source text. Each returns the lines, from 1, on which it found something.
//!
//! The words looked for are put together from parts: this file is searched too.

/// Words that say work was left for later.
const LEFT_BEHIND: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME")];

/// Macros that say the same in code.
const LEFT_BEHIND_MACROS: &[&str] =
    &[concat!("to", "do!"), concat!("unimple", "mented!"), concat!("db", "g!")];

/// The attribute of a test that does not run.
const IGNORED: &str = concat!("#[", "ignore");

/// Conditions that choose code by the operating system. The jobs of continuous integration compile for Linux alone.
const SYSTEM_CONDITIONS: &[&str] = &[
    concat!("target_", "os"),
    concat!("target_", "vendor"),
    concat!("target_", "family"),
    concat!("cfg(", "windows"),
    concat!("cfg(", "unix"),
    concat!("cfg(not(", "unix"),
];

/// Where the files of developers and of build machines lie. Addresses of the work queue begin like the first of them.
const MACHINE_PATHS: &[&str] = &[
    concat!("/wo", "rk/main"),
    concat!("/wo", "rk/wt"),
    concat!("/wo", "rk/shared"),
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
    concat!("/Us", "ers/"),
];

/// The first word of a string with SQL, after white space. `UPDATE` is looked at separately: it is
/// an English word as well.
const SQL: &[&str] = &[
    concat!("SEL", "ECT "),
    concat!("SEL", "ECT\n"),
    concat!("INS", "ERT INTO"),
    concat!("INS", "ERT OR"),
    concat!("DEL", "ETE FROM"),
    concat!("CRE", "ATE TABLE"),
    concat!("WI", "TH RECURSIVE"),
    concat!("PRA", "GMA "),
];

/// How many words after `UPDATE` may stand before its `SET`: `UPDATE OR IGNORE beads AS b SET`.
const WORDS_BEFORE_SET_MAX: usize = 5;

/// Markers of work left for later, in any kind of text.
pub fn left_behind(text: &str) -> Vec<usize> {
    let stands_alone = |before: Option<char>, after: Option<char>| {
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    };
    lines_with(text, LEFT_BEHIND, stands_alone)
}

/// Macros of work left for later, in Rust.
pub fn left_behind_macros(source: &str) -> Vec<usize> {
    lines_with(source, LEFT_BEHIND_MACROS, |before, after| {
        !before.is_some_and(is_word) && matches!(after, Some('(' | '[' | '{'))
    })
}

/// Tests that are switched off, in Rust.
pub fn ignored_tests(source: &str) -> Vec<usize> {
    lines_with(source, &[IGNORED], |_, after| !after.is_some_and(is_word))
}

/// Code for one operating system among several, in Rust.
pub fn system_conditions(source: &str) -> Vec<usize> {
    lines_with(source, SYSTEM_CONDITIONS, |before, _| !before.is_some_and(is_word))
}

/// Absolute paths that exist on one machine only. The same words further inside a path, as in a
/// web address or after a variable, are none.
pub fn machine_paths(text: &str) -> Vec<usize> {
    let inside_path = |character: char| is_word(character) || ".-/~$})>*".contains(character);
    lines_with(text, MACHINE_PATHS, |before, _| !before.is_some_and(inside_path))
}

/// String literals that begin with SQL, in Rust.
pub fn sql(source: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for (position, _) in source.match_indices('"') {
        // A backslash at the end of a line continues the string on the next one.
        let begin = source[position + 1..]
            .trim_start_matches(|character: char| character.is_whitespace() || character == '\\');
        if SQL.iter().any(|keyword| begin.starts_with(keyword)) || is_sql_update(begin) {
            found.push(line_of(source, position));
        }
    }
    found.dedup();
    found
}

fn is_sql_update(begin: &str) -> bool {
    let mut words = begin.split_whitespace();
    words.next() == Some("UPDATE")
        // The string itself has to have it, not the code after it.
        && words
            .take(WORDS_BEFORE_SET_MAX + 1)
            .take_while(|word| !word.contains('"'))
            .any(|word| word == "SET")
}

/// The lines with one of `needles` where the characters directly before and after it are accepted.
fn lines_with(
    text: &str,
    needles: &[&str],
    accept: impl Fn(Option<char>, Option<char>) -> bool,
) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let hit = needles.iter().any(|needle| {
            line.match_indices(needle).any(|(position, _)| {
                let before = line[..position].chars().next_back();
                let after = line[position + needle.len()..].chars().next();
                accept(before, after)
            })
        });
        if hit {
            found.push(index + 1);
        }
    }
    found
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn line_of(text: &str, position: usize) -> usize {
    text[..position].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn left_behind_words_stand_alone() {
        let word = LEFT_BEHIND[0];
        assert_eq!(left_behind(&format!("one\n// {word}: two\n({word})")), [2, 3]);
        assert_eq!(left_behind(&format!("{word}S MY{word} {word}_LIST")), [0; 0]);
        assert_eq!(left_behind(&word.to_lowercase()), [0; 0]);
    }

    #[test]
    fn macros_are_found_where_they_are_called() {
        for name in LEFT_BEHIND_MACROS {
            assert_eq!(left_behind_macros(&format!("fn f() {{\n    {name}(\"x\")\n}}")), [2]);
            assert_eq!(left_behind_macros(&format!("let x = std::{name}[1];")), [1]);
            assert_eq!(left_behind_macros(&format!("my_{name}(1); // {name} is a macro")), [0; 0]);
        }
    }

    #[test]
    fn ignored_tests_are_found_with_and_without_a_reason() {
        assert_eq!(ignored_tests(&format!("{IGNORED}]\n{IGNORED} = \"slow\"]")), [1, 2]);
        assert_eq!(ignored_tests(&format!("{IGNORED}d]")), [0; 0]);
    }

    #[test]
    fn machine_paths_begin_at_the_root() {
        for path in MACHINE_PATHS {
            assert_eq!(machine_paths(&format!("cd {path}x\n\"{path}\"\n={path}y")), [1, 2, 3]);
            let elsewhere =
                format!("https://host{path} $HOME{path} {{root}}{path} ~{path} ..{path}");
            assert_eq!(machine_paths(&elsewhere), [0; 0], "{elsewhere}");
        }
    }

    /// Source with `'` in place of the quotation marks, so that this file itself has no SQL.
    #[track_caller]
    fn check_sql(source: &str, expected: &[usize]) {
        assert_eq!(sql(&source.replace('\'', "\"")), expected, "{source}");
    }

    #[test]
    fn sql_is_found_at_the_beginning_of_strings() {
        check_sql("let a = 1;\nlet q = 'SELECT id FROM beads';", &[2]);
        check_sql("r#'\n    SELECT\n    id'#", &[1]);
        check_sql("'\\\n   INSERT INTO beads'", &[1]);
        check_sql("'INSERT OR IGNORE INTO beads'", &[1]);
        check_sql("'DELETE FROM beads'", &[1]);
        check_sql("'UPDATE beads SET a = 1'", &[1]);
        check_sql("'UPDATE OR IGNORE beads AS b SET a = 1'", &[1]);
        check_sql("'PRAGMA foreign_keys'", &[1]);
    }

    #[test]
    fn prose_is_not_sql() {
        check_sql("'Select one of these'", &[]);
        check_sql("'UPDATE your town to continue'", &[]);
        check_sql("f('UPDATE', SET)", &[]);
        check_sql("f('UPDATE this', a, SET , b)", &[]);
        check_sql("// SELECT without a string", &[]);
        check_sql("'please DELETE FROM nothing'", &[]);
    }
}
