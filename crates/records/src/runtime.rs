//! Files that say something about a runtime.

use gt_core::formula::{FormulaProblem, SourceLocation};
use gt_core::runtime::{
    Limit, Pattern, RuntimeLayer, RuntimeName, UsageReport, parse_usage_pattern,
};
use gt_core::schedule::check_variable_name;
use gt_core::time::parse_duration;
use gt_core::{Invalid, Json, words};
use toml_edit::{DocumentMut, Item, TableLike, TomlError};

use crate::formula::node::{Node, NodeValue};
use crate::formula::table::{FieldTable, ReadProblems};
use crate::formula::toml;

/// The contents of a file about a runtime, as far as it could be understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadRuntime {
    /// The layer; values with a problem are left out.
    pub layer: RuntimeLayer,
    /// The parts that cannot be understood.
    pub problems: Vec<FormulaProblem>,
    /// The parts that are not used.
    pub warnings: Vec<FormulaProblem>,
    /// The line of each key.
    lines: Vec<(String, usize)>,
}

impl ReadRuntime {
    /// The line that a key is on, if the file has it.
    pub fn line_of(&self, key: &str) -> Option<usize> {
        let table = key.split('.').next().unwrap_or(key);
        self.lines.iter().find(|(name, _)| name == table).map(|(_, line)| *line)
    }
}

/// The kind of value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    Text,
    Number,
    Flag,
    Table,
    List,
}

/// Every key, and the kind of its value.
const KEYS: [(&str, KeyKind); 22] = [
    ("extends", KeyKind::Text),
    ("description", KeyKind::Text),
    ("command", KeyKind::Text),
    ("prompt", KeyKind::Text),
    ("paste", KeyKind::Table),
    ("environment", KeyKind::Table),
    ("telemetry", KeyKind::Table),
    ("account_variable", KeyKind::Text),
    ("account_flag", KeyKind::Text),
    ("limit", KeyKind::Table),
    ("exit_zero", KeyKind::Text),
    ("memory_mb", KeyKind::Number),
    ("max_runs", KeyKind::Number),
    ("usage", KeyKind::Table),
    ("transcript", KeyKind::Text),
    ("interactive", KeyKind::Flag),
    ("program", KeyKind::Text),
    ("version_flag", KeyKind::Text),
    ("tried_with", KeyKind::Text),
    ("login", KeyKind::Table),
    ("root_variable", KeyKind::Text),
    ("ignore", KeyKind::List),
];

/// The keys of the table `paste`, and the kinds of their values.
const PASTE_KEYS: [(&str, KeyKind); 3] =
    [("ready", KeyKind::Text), ("confirm", KeyKind::Text), ("bytes_max", KeyKind::Number)];

/// The keys of the table `usage`, and the kinds of their values.
const USAGE_KEYS: [(&str, KeyKind); 2] = [("tokens", KeyKind::Text), ("cost", KeyKind::Text)];

/// Most runs that one program can be said to have at once.
const RUNS_MAX: u32 = 1_000_000;

/// Most memory that one program is said to take.
const MEMORY_MB_MAX: u32 = 1_000_000;

/// The longest prompt that can be typed into a terminal.
const PASTE_BYTES_MAX: u32 = 1_000_000;

/// Reads a file about a runtime. `file` is how messages name it.
pub fn read_runtime(text: &str, file: &str) -> ReadRuntime {
    let source = SourceLocation::file(file);
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut found = ReadProblems::default();
    let mut lines = Vec::new();
    let layer = match toml::parse(text) {
        Ok(root) => {
            if let NodeValue::Table(fields) = &root.value {
                lines = fields.iter().map(|(name, node)| (name.clone(), node.line)).collect();
            }
            layer(root, &source, &mut found)
        }
        Err(errors) => {
            let told = errors
                .into_iter()
                .map(|(line, message)| FormulaProblem::new(&source.at(line), "", message));
            found.problems.extend(told);
            RuntimeLayer::default()
        }
    };
    ReadRuntime { layer, problems: found.problems, warnings: found.warnings, lines }
}

fn layer(root: Node, source: &SourceLocation, found: &mut ReadProblems) -> RuntimeLayer {
    let mut table = FieldTable::of(root, String::new(), source, found);
    let paste = table.take("paste").map(|node| paste(node, source, found)).unwrap_or_default();
    let login = table.take("login").map(|node| login(node, source, found)).unwrap_or_default();
    let usage = table.take("usage").map(|node| usage(node, source, found)).unwrap_or_default();
    let layer = RuntimeLayer {
        max_runs: number(&mut table, "max_runs", RUNS_MAX, found),
        usage_tokens: usage.tokens,
        usage_cost: usage.cost,
        extends: table.parsed("extends", RuntimeName::parse, found),
        description: line_of_text(&mut table, "description", found),
        command: command(&mut table, "command", found),
        prompt: table.word("prompt", found),
        paste_ready: paste.ready,
        paste_confirm: paste.confirm,
        paste_bytes_max: paste.bytes_max,
        environment: variables(&mut table, "environment", found),
        telemetry: variables(&mut table, "telemetry", found),
        account_variable: variable(&mut table, "account_variable", found),
        account_flag: line_of_text(&mut table, "account_flag", found),
        limits: limits(&mut table, source, found),
        exit_zero: table.word("exit_zero", found),
        memory_mb: number(&mut table, "memory_mb", MEMORY_MB_MAX, found),
        transcript: table.word("transcript", found),
        is_interactive: table.flag("interactive", found),
        program: line_of_text(&mut table, "program", found),
        version_flag: line_of_text(&mut table, "version_flag", found),
        tried_with: line_of_text(&mut table, "tried_with", found),
        login_variables: login.variables,
        login_files: login.files,
        root_variable: variable(&mut table, "root_variable", found),
        ignore: lines_of_text(&mut table, "ignore", found),
    };
    table.warn_of_rest(&KEYS.map(|(name, _)| name), found);
    layer
}

/// Where a value stands that is about to be taken.
fn place(table: &FieldTable, name: &str) -> SourceLocation {
    table.source.at(table.line_of(name))
}

fn wrong(source: &SourceLocation, name: &str, message: &str, found: &mut ReadProblems) {
    found.problems.push(FormulaProblem::new(source, "", format!("{name}: {message}")));
}

fn checked(
    table: &mut FieldTable,
    name: &str,
    check: impl FnOnce(&str) -> Result<(), Invalid>,
    found: &mut ReadProblems,
) -> Option<String> {
    let source = place(table, name);
    let text = table.given_text(name, found)?;
    match check(&text) {
        Ok(()) => Some(text),
        Err(Invalid(message)) => {
            wrong(&source, name, &message, found);
            None
        }
    }
}

fn line_of_text(table: &mut FieldTable, name: &str, found: &mut ReadProblems) -> Option<String> {
    let one_line = |text: &str| {
        let is_plain = !text.chars().any(char::is_control);
        let wrong = || Invalid::new("write it on one line, without control characters");
        is_plain.then_some(()).ok_or_else(wrong)
    };
    checked(table, name, one_line, found)
}

fn command(table: &mut FieldTable, name: &str, found: &mut ReadProblems) -> Option<String> {
    checked(table, name, |text| words::split(text).map(drop), found)
}

fn variable(table: &mut FieldTable, name: &str, found: &mut ReadProblems) -> Option<String> {
    let check = |text: &str| if text.is_empty() { Ok(()) } else { check_variable_name(text) };
    checked(table, name, check, found)
}

fn number(table: &mut FieldTable, name: &str, max: u32, found: &mut ReadProblems) -> Option<u32> {
    let source = place(table, name);
    let number = table.number(name, found)?;
    let fitting = u32::try_from(number).ok().filter(|number| *number <= max);
    if fitting.is_none() {
        wrong(&source, name, &format!("{number} is not a number from 0 to {max}"), found);
    }
    fitting
}

fn variables(
    table: &mut FieldTable,
    key: &'static str,
    found: &mut ReadProblems,
) -> Vec<(String, String)> {
    let source = place(table, key);
    let mut variables = table.bindings(key, found);
    variables.retain(|(name, value)| {
        let can_be_passed = || {
            let wrong = || Invalid::new("a variable cannot hold NUL");
            (!value.contains('\0')).then_some(()).ok_or_else(wrong)
        };
        let check = check_variable_name(name).and_then(|()| can_be_passed());
        if let Err(Invalid(message)) = &check {
            wrong(&source, key, message, found);
        }
        check.is_ok()
    });
    variables
}

/// The table about logins.
#[derive(Default)]
struct LoginTable {
    variables: Option<Vec<String>>,
    files: Option<Vec<String>>,
}

/// The keys of the table `login`.
const LOGIN_KEYS: [&str; 2] = ["variables", "files"];

fn login(node: Node, source: &SourceLocation, found: &mut ReadProblems) -> LoginTable {
    let mut table = FieldTable::of(node, "login".to_owned(), source, found);
    let variables = lines_of_text(&mut table, "variables", found);
    let files = lines_of_text(&mut table, "files", found);
    table.warn_of_rest(&LOGIN_KEYS, found);
    LoginTable { variables, files }
}

/// A list of texts without control characters; none if the file does not have it.
fn lines_of_text(
    table: &mut FieldTable,
    name: &str,
    found: &mut ReadProblems,
) -> Option<Vec<String>> {
    let source = table.line_of(name).map(|line| table.source.at(Some(line)))?;
    let texts = table.texts(name, found);
    if texts.iter().any(|text| text.is_empty() || text.chars().any(char::is_control)) {
        wrong(&source, name, "write each on one line, without control characters", found);
        return None;
    }
    Some(texts)
}

/// The table about pasting.
#[derive(Default)]
struct PasteTable {
    ready: Option<Pattern>,
    confirm: Option<Pattern>,
    bytes_max: Option<usize>,
}

fn paste(node: Node, source: &SourceLocation, found: &mut ReadProblems) -> PasteTable {
    let mut table = FieldTable::of(node, "paste".to_owned(), source, found);
    let ready = table.parsed("ready", Pattern::parse, found);
    let confirm = table.parsed("confirm", Pattern::parse, found);
    let bytes_max = number(&mut table, "bytes_max", PASTE_BYTES_MAX, found);
    table.warn_of_rest(&PASTE_KEYS.map(|(name, _)| name), found);
    let bytes_max = bytes_max.and_then(|bytes| usize::try_from(bytes).ok());
    PasteTable { ready, confirm, bytes_max }
}

fn usage(node: Node, source: &SourceLocation, found: &mut ReadProblems) -> UsageReport {
    let mut table = FieldTable::of(node, "usage".to_owned(), source, found);
    let tokens = table.parsed("tokens", parse_usage_pattern, found);
    let cost = table.parsed("cost", parse_usage_pattern, found);
    table.warn_of_rest(&USAGE_KEYS.map(|(name, _)| name), found);
    UsageReport { tokens, cost }
}

fn limits(
    table: &mut FieldTable,
    source: &SourceLocation,
    found: &mut ReadProblems,
) -> Option<Vec<Limit>> {
    table.line_of("limit")?;
    let nodes = table.list("limit", found);
    Some(nodes.into_iter().filter_map(|node| limit(node, source, found)).collect())
}

fn limit(node: Node, source: &SourceLocation, found: &mut ReadProblems) -> Option<Limit> {
    let at = source.at(Some(node.line));
    let problems = found.problems.len();
    let mut table = FieldTable::of(node, "limit".to_owned(), source, found);
    let pattern = table.parsed("pattern", Pattern::parse, found);
    let wait = table.parsed("wait", parse_duration, found);
    table.warn_of_rest(&["pattern", "wait"], found);
    let Some(pattern) = pattern else {
        if found.problems.len() == problems {
            wrong(&at, "limit", "lacks pattern, which says what the program prints", found);
        }
        return None;
    };
    let limit = Limit::new(pattern, wait);
    limit.map_err(|Invalid(message)| wrong(&at, "limit", &message, found)).ok()
}

/// The text of a file about a runtime with one key set to another value; everything else in it stays as it is.
///
/// Besides the plain keys there are `environment.NAME`, `telemetry.NAME`, `paste.ready`, `paste.confirm`, `paste.bytes_max`, `usage.tokens`
/// and `usage.cost`.
pub fn set_runtime_key(text: &str, key: &str, value: &str) -> Result<String, Invalid> {
    let spelled = spelled(key, value)?;
    toml::parse(text).map_err(|errors| {
        let (line, message) = errors.into_iter().next().unwrap_or_default();
        Invalid(line.map_or(message.clone(), |line| format!("line {line}: {message}")))
    })?;
    let refused = |error: TomlError| Invalid(error.message().to_owned());
    let mut file: DocumentMut = text.parse().map_err(refused)?;
    let value: toml_edit::Value = spelled.parse().map_err(refused)?;
    let (table, name): (&mut dyn TableLike, &str) = match key.split_once('.') {
        None => (file.as_table_mut(), key),
        Some((table, name)) => {
            let dotted = || {
                let mut table = toml_edit::Table::new();
                table.set_dotted(true);
                Item::Table(table)
            };
            let item = file.entry(table).or_insert_with(dotted);
            (item.as_table_like_mut().ok_or_else(|| other_kind(table))?, name)
        }
    };
    match table.get_mut(name) {
        None => drop(table.insert(name, Item::Value(value))),
        Some(Item::Value(old)) => {
            // The comment behind the old value stays.
            let decor = old.decor().clone();
            *old = value;
            *old.decor_mut() = decor;
        }
        Some(_) => return Err(other_kind(key)),
    }
    Ok(file.to_string())
}

fn other_kind(key: &str) -> Invalid {
    Invalid(format!("{key} is something else in the file; change it there"))
}

/// A value as the file spells it.
fn spelled(key: &str, value: &str) -> Result<String, Invalid> {
    let shown: String = value.chars().take(60).collect();
    let not = |what: &str| Invalid(format!("{key}: \"{}\" is not {what}", shown.escape_debug()));
    let kind = match key.split_once('.') {
        Some(("environment" | "telemetry", name)) => {
            check_variable_name(name)?;
            KeyKind::Text
        }
        Some(("paste", name)) => kind_of(key, name, &PASTE_KEYS)?,
        Some(("usage", name)) => kind_of(key, name, &USAGE_KEYS)?,
        _ => kind_of(key, key, &KEYS)?,
    };
    match kind {
        KeyKind::Text => Ok(toml_text(value)),
        KeyKind::Number => {
            value.parse::<u32>().map(|number| number.to_string()).map_err(|_| not("a whole number"))
        }
        KeyKind::Flag => match value {
            "true" | "yes" | "1" | "on" => Ok("true".to_owned()),
            "false" | "no" | "0" | "off" => Ok("false".to_owned()),
            _ => Err(not("a yes or no; write true or false")),
        },
        KeyKind::Table if key == "limit" => {
            Err(Invalid::new("limit is a list of tables; write them into the file"))
        }
        KeyKind::Table if key == "login" => {
            Err(Invalid::new("login is a table of lists; write it into the file"))
        }
        KeyKind::List => Err(Invalid(format!("{key} is a list; write it into the file"))),
        KeyKind::Table => Err(Invalid(format!("{key} is a table; set {key}.<name>"))),
    }
}

fn kind_of(key: &str, name: &str, known: &[(&str, KeyKind)]) -> Result<KeyKind, Invalid> {
    let found = known.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
    found.ok_or_else(|| {
        let names = known.iter().map(|(known, _)| *known);
        let hint = gt_core::similar_names::closest(name, names.clone());
        let hint = hint.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
        let shown: String = key.chars().take(60).collect();
        Invalid(format!(
            "a runtime has no key \"{}\"{hint} (known: {})",
            shown.escape_debug(),
            names.collect::<Vec<_>>().join(", ")
        ))
    })
}

/// A text as TOML has it: characters that JSON escapes are escaped the same way there, except for one.
fn toml_text(text: &str) -> String {
    Json::string(text).to_string().replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use gt_core::formula::WordSet as _;
    use gt_core::runtime::{ExitZero, PromptMethod, TranscriptFormat};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn everything_that_a_file_can_say_is_read() {
        let read = read_runtime(
            "extends = 'claude'\n\
             description = 'Mine'\n\
             command = 'agent {prompt}'\n\
             prompt = 'argument'\n\
             environment = { A = 'x', B = 2 }\n\
             account_variable = 'AGENT_HOME'\n\
             exit_zero = 'ask'\n\
             memory_mb = 512\n\
             max_runs = 3\n\
             interactive = true\n\
             transcript = 'codex'\n\
             program = 'agent'\n\
             version_flag = '-V'\n\
             tried_with = '1.2'\nroot_variable = ''\nignore = ['.a*']\n\
             login = {variables = ['A_KEY', 'B_KEY'], files = ['.a/key']}\n\
             [paste]\nready = 'help'\nconfirm = '^>'\nbytes_max = 100\n\
             [usage]\ntokens = 'used (\\d+)'\ncost = 'cost (.+)'\n\
             [[limit]]\npattern = 'wait (?<after>.)'\nwait = '5m'\n",
            "x.toml",
        );
        assert_eq!((read.problems, read.warnings), (vec![], vec![]));
        let layer = read.layer;
        assert_eq!(layer.extends.unwrap().as_str(), "claude");
        assert_eq!(layer.command.as_deref(), Some("agent {prompt}"));
        assert_eq!(layer.root_variable.as_deref(), Some(""), "nothing is something that is said");
        assert_eq!(layer.tried_with.as_deref(), Some("1.2"));
        assert_eq!(layer.login_variables.unwrap(), ["A_KEY", "B_KEY"]);
        assert_eq!(
            (layer.login_files.unwrap(), layer.ignore.unwrap()),
            (vec![".a/key".to_owned()], vec![".a*".to_owned()])
        );
        assert_eq!(layer.prompt, Some(PromptMethod::Argument));
        assert_eq!(layer.transcript, Some(TranscriptFormat::Codex));
        assert_eq!(layer.environment[1], ("B".to_owned(), "2".to_owned()));
        assert_eq!(layer.exit_zero, Some(ExitZero::Ask));
        assert_eq!((layer.memory_mb, layer.is_interactive), (Some(512), Some(true)));
        assert_eq!(layer.paste_bytes_max, Some(100));
        assert_eq!(layer.paste_ready.unwrap().as_str(), "help");
        assert_eq!(layer.limits.unwrap()[0].wait.as_secs(), 300);
        assert_eq!(layer.account_flag, None);
        assert_eq!((layer.max_runs, layer.usage_cost.unwrap().as_str()), (Some(3), "cost (.+)"));
        assert_eq!(layer.usage_tokens.unwrap().as_str(), r"used (\d+)");
    }

    #[test]
    fn a_problem_names_file_line_and_key() {
        for (text, expected) in [
            (
                "\nprompt = 'shout'",
                "x.toml:2: prompt: \"shout\" is not a way to give a prompt; known: argument,",
            ),
            ("command = 3", "x.toml:1: command: expected a text, found"),
            ("command = \"a 'b\"", "x.toml:1: command: the ' at column 3 is never closed"),
            ("memory_mb = -1", "x.toml:1: memory_mb: -1 is not a number from 0 to 1000000"),
            ("interactive = 'yes'", "x.toml:1: interactive: expected true or false"),
            (
                "account_variable = '1A'",
                "x.toml:1: account_variable: \"1A\" is not the name of a variable",
            ),
            (
                "[environment]\n'A B' = '1'",
                "x.toml:1: environment: \"A B\" is not the name of a variable",
            ),
            ("\n[[limit]]\nwait = '5m'", "x.toml:2: limit: lacks pattern"),
            ("[[limit]]\npattern = '('", "x.toml:2: limit: pattern: \"(\" is not a pattern"),
            ("[[limit]]\npattern = 'a'\nwait = '8d'", "x.toml:1: limit: wait must be"),
            ("[usage]\ntokens = 'used'", "x.toml:2: usage: tokens: put the number in parentheses"),
            ("limit = 'a'", "x.toml:1: limit: expected a list"),
            ("extends = 'A'", "x.toml:1: extends: \"A\" is not a name for a runtime"),
            ("a = ", "x.toml:1: not valid TOML"),
        ] {
            let problems = read_runtime(text, "x.toml").problems;
            let told = problems.first().map(ToString::to_string).unwrap_or_default();
            assert!(told.starts_with(expected), "{text:?}: {told}");
        }
    }

    #[test]
    fn unknown_keys_are_warnings_with_a_suggestion() {
        let read = read_runtime("comand = 'a'\n[paste]\nconfrim = 'b'\nxyz = 1", "x.toml");
        assert_eq!(read.problems, []);
        let told: Vec<String> = read.warnings.iter().map(ToString::to_string).collect();
        let told = told.join("\n");
        for part in [
            "x.toml:1: ",
            "did you mean command?",
            "x.toml:3: paste: ",
            "did you mean confirm?",
            "known: ready, confirm, bytes_max",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
    }

    #[test]
    fn one_key_is_changed_and_the_rest_stays() {
        let file = "# mine\ncommand = 'a' # why\n\n[environment] # keys\n# one\nA = '1'\n";
        for (key, value, before, after) in [
            ("command", "b \"c\"", "command = 'a'", "command = \"b \\\"c\\\"\""),
            ("memory_mb", "9", "# why\n", "# why\nmemory_mb = 9\n"),
            ("environment.A", "2", "A = '1'", "A = \"2\""),
            ("environment.B", "2", "A = '1'\n", "A = '1'\nB = \"2\"\n"),
            ("paste.confirm", "x", "# why\n", "# why\npaste.confirm = \"x\"\n"),
        ] {
            let expected = file.replacen(before, after, 1);
            assert_eq!(set_runtime_key(file, key, value).unwrap(), expected);
        }
        assert_eq!(set_runtime_key("", "interactive", "yes").unwrap(), "interactive = true\n");
    }

    #[test]
    fn a_key_is_set_however_the_file_is_laid_out() {
        for (file, key, expected) in [
            ("[ environment ]\n", "environment.B", "[ environment ]\nB = \"2\"\n"),
            (
                "environment = { A = '1' }",
                "environment.B",
                "environment = { A = '1' , B = \"2\" }\n",
            ),
            (
                "environment.A = '1'",
                "environment.B",
                "environment.A = '1'\nenvironment.B = \"2\"\n",
            ),
            (
                "command = \"\"\"\n[x]\"\"\"\n",
                "program",
                "command = \"\"\"\n[x]\"\"\"\nprogram = \"2\"\n",
            ),
            ("command = \"\"\"\na\"\"\" # b\n", "command", "command = \"2\" # b\n"),
        ] {
            let set = set_runtime_key(file, key, "2").unwrap();
            assert_eq!(set, expected);
            assert_eq!(read_runtime(&set, "x.toml").problems, []);
        }
    }

    #[test]
    fn an_invalid_setting_is_refused() {
        for (file, key, value, expected) in [
            ("", "comand", "a", "a runtime has no key \"comand\"; did you mean command?"),
            ("", "limit", "a", "limit is a list of tables"),
            ("", "environment", "a", "environment is a table; set environment.<name>"),
            ("", "environment.A B", "a", "\"A B\" is not the name of a variable"),
            ("", "memory_mb", "much", "memory_mb: \"much\" is not a whole number"),
            ("", "interactive", "maybe", "interactive: \"maybe\" is not a yes or no"),
            ("[command]", "command", "b", "command is something else in the file"),
            ("environment = 1", "environment.A", "b", "environment is something else in the file"),
            ("command =", "command", "b", "line 1: not valid TOML"),
        ] {
            let refused = set_runtime_key(file, key, value).unwrap_err().to_string();
            assert!(refused.starts_with(expected), "{key}: {refused}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "([a-z_]{1,9} = ('[a-z]*'|[0-9]|true|\\[\\])\n|\\[+[a-z]{1,5}\\]+\n|.){0,12}") {
            let _ = read_runtime(&text, "x.toml");
            let _ = set_runtime_key(&text, "command", "x");
            let _ = set_runtime_key(&text, "environment.A", "x");
        }

        #[test]
        fn a_value_that_was_set_is_read(value in any::<String>(), file in "(# [a-z]*\n|memory_mb = 1\n|\\[environment\\]\n){0,1}") {
            let file = set_runtime_key(&file, "environment.A", &value).unwrap();
            let read = read_runtime(&file, "x.toml");
            if !value.contains('\0') {
                prop_assert_eq!(read.problems, vec![]);
                prop_assert_eq!(read.layer.environment, vec![("A".to_owned(), value)]);
            }
        }
    }

    #[test]
    fn words_are_those_of_the_guide() {
        assert_eq!(ExitZero::DoneIfCommitted.as_str(), "done-if-committed");
    }
}
