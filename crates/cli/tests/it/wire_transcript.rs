//! A transcript of commands and requests with the JSON that they print, without what differs from one run to the next.
//!
//! Lines of a transcript that begin with a mark are its script; all others are recorded output:
//!
//! - `# …` is a comment; `: name: a, b` lists fields (`prose`, `numbers`, `texts`) whose values are not compared.
//! - `== …` begins a new sandbox.
//! - `% …` runs a shell command that must succeed; its output is not recorded.
//! - `~ … ~ text` repeats a shell command until it prints the text.
//! - `$ …` runs a shell command and records what it prints and its exit code, unless that is 0.
//! - `& …` starts a server and records what it prints.
//! - `> METHOD path <Header: value> body` asks that server and records status and body; `> EVENTS n path` records n events of a stream.
//!
//! Recorded names such as `UUID_1` can be used in the script: they stand for the value of this run.

use std::collections::HashMap;
use std::path::Path;

use gt_testkit::http::{self, EventListener};
use gt_testkit::{RunningProgram, Sandbox, wait_until};
use regex_lite::{Captures, Regex};

/// The marks that lines of the script begin with.
const MARKS: [&str; 8] = ["# ", ": ", "== ", "% ", "~ ", "$ ", "& ", "> "];

/// Patterns of values that differ from run to run, with the name that replaces each; each value gets its own number.
const GENERATED: [(&str, &str); 8] = [
    ("SERVICE", r"\bgt-town-[0-9a-f]{8}\b"),
    ("@TRY", r"@[0-9a-z]{8}\b"),
    ("UUID", r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
    ("SECRET", r"\bgtw_[A-Za-z0-9_-]+"),
    ("COMMIT", r"\b[0-9a-f]{40}\b"),
    ("HASH", r"\b[0-9a-f]{12,16}\b"),
    ("NAMED", r"\b[a-z]{2,8}-(?:cv|ctx|mol|wisp|msg|sc)-[0-9a-z]{3,13}\b"),
    ("BEAD", r"\b(?:hq|wq|li|sh|gt|tw)-[0-9a-z]{3,8}\b"),
];

/// The script lines of a transcript.
pub(crate) fn script(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| MARKS.iter().any(|mark| line.starts_with(mark)))
}

/// Does everything that the script of a transcript says; the transcript as it is now.
pub(crate) fn record(text: &str, gt: &Path) -> String {
    let lists: HashMap<&str, Vec<&str>> = script(text).filter_map(list).collect();
    let mut sections: Vec<Vec<&str>> = vec![Vec::new()];
    for line in script(text) {
        if line.starts_with("== ") {
            sections.push(Vec::new());
        }
        sections.last_mut().expect("there is one").push(line);
    }
    let lists = &lists;
    let recorded: Vec<String> = std::thread::scope(|scope| {
        let started: Vec<_> = sections
            .into_iter()
            .map(|lines| scope.spawn(move || record_section(&lines, gt, lists)))
            .collect();
        started.into_iter().map(|section| section.join().expect("a section ends well")).collect()
    });
    recorded.join("\n")
}

/// Does what one section says, in a sandbox of its own.
fn record_section(lines: &[&str], gt: &Path, lists: &HashMap<&str, Vec<&str>>) -> String {
    let mut stage = Stage::new(gt, lists);
    let recorded = lines.iter().map(|line| format!("{line}\n{}", stage.perform(line)));
    recorded.collect::<Vec<_>>().concat()
}

/// The fields that a line of the script lists.
fn list(line: &str) -> Option<(&str, Vec<&str>)> {
    let (name, fields) = line.strip_prefix(": ")?.split_once(": ")?;
    Some((name, fields.split(", ").collect()))
}

/// A sandbox and what is known of this run.
struct Stage {
    sandbox: Sandbox,
    server: Option<(RunningProgram, String)>,
    rules: Rules,
    /// The values that have a name, each with its name.
    named: Vec<(String, String)>,
}

/// How output is made comparable.
struct Rules {
    prose: Option<Regex>,
    numbers: Option<Regex>,
    texts: Option<Regex>,
    instant: Regex,
    port: Regex,
    cursor: Regex,
    root: Regex,
    generated: Vec<(&'static str, Regex)>,
}

impl Rules {
    fn new(lists: &HashMap<&str, Vec<&str>>) -> Self {
        let of = |name: &str, value: &str| {
            let fields = lists.get(name)?.join("|");
            Some(regex(&format!(r#"(?m)^( *"(?:{fields})": ){value}(,?)$"#)))
        };
        Self {
            // A single word is a value for programs in every field.
            prose: of("prose", r#""\S* .*""#),
            numbers: of("numbers", r"[0-9.-]+"),
            texts: of("texts", r#"".*""#),
            instant: regex(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"),
            port: regex(r"\[::1\]:\d+"),
            cursor: regex(r"\bcursor=[0-9a-f]+"),
            root: regex(r"\bROOT\b"),
            generated: GENERATED.iter().map(|(name, pattern)| (*name, regex(pattern))).collect(),
        }
    }
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"))
}

impl Stage {
    fn new(gt: &Path, lists: &HashMap<&str, Vec<&str>>) -> Self {
        let sandbox = Sandbox::new(gt);
        let town = sandbox.make_dir("town");
        let sandbox = sandbox.in_dir(town);
        Self { sandbox, server: None, rules: Rules::new(lists), named: Vec::new() }
    }

    #[expect(clippy::print_stderr, reason = "a test that fails shows what it has printed")]
    fn perform(&mut self, line: &str) -> String {
        let (mark, said) = line.split_once(' ').unwrap_or((line, ""));
        let said = self.with_values(said);
        match mark {
            "%" => {
                self.shell(&said).run().ok();
                String::new()
            }
            "~" => {
                let (command, text) = said.rsplit_once(" ~ ").expect("a text to wait for");
                wait_until(&said, || self.shell(command).run().stdout.contains(text));
                String::new()
            }
            "$" => {
                let ran = self.shell(&said).run();
                if ran.code != 0 {
                    // The transcript leaves the words out; a test that fails shows them.
                    eprintln!("{ran}");
                }
                let code =
                    if ran.code == 0 { String::new() } else { format!("exit {}\n", ran.code) };
                let lines = ran.stdout.lines().map(|line| format!("{}\n", indented(line)));
                format!("{}{code}", self.comparable(&lines.collect::<String>()))
            }
            "&" => {
                let running = self.shell(&format!("exec {said}")).start();
                wait_until("the server says where it listens", || {
                    running.stdout().ends_with("}\n")
                });
                let printed = running.stdout();
                let address = regex(r"127\.0\.0\.1:\d+").find(&printed).expect("an address");
                let address = address.as_str().to_owned();
                self.named.push((address.clone(), "ADDRESS".to_owned()));
                self.server = Some((running, address));
                self.comparable(&printed)
            }
            ">" => self.ask(&said),
            _ => String::new(),
        }
    }

    /// Runs a command as a person would type it.
    fn shell(&self, command: &str) -> gt_testkit::SandboxCommand {
        let programs = self.sandbox.gt_path().parent().expect("the binary has a directory");
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display());
        self.sandbox.command("sh").args(["-c", command]).env("PATH", path)
    }

    fn ask(&mut self, said: &str) -> String {
        let (_, address) = self.server.as_ref().expect("a server was started");
        let mut words = said.splitn(3, ' ');
        let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let rest = words.next().unwrap_or("");
        if method == "EVENTS" {
            let count: usize = path.parse().expect("a number of events");
            let heard: Vec<String> = EventListener::to(address, rest, &[])
                .take(count)
                .map(|one| format!("event {} {:?}\n{}\n", one.event, one.id, indented(&one.data)))
                .collect();
            return self.comparable(&heard.concat());
        }
        // A header may stand before the body.
        let (header, body) = match rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
            Some((header, body)) => (header.split_once(": "), body.trim_start()),
            None => (None, rest),
        };
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(header);
        let answer = http::ask(address, method, path, &headers, body);
        let shown = ["content-type", "etag", "link", "location", "idempotent-replayed"];
        let heads = answer.headers.iter().filter(|(name, _)| shown.contains(&name.as_str()));
        let heads = heads.map(|(name, value)| format!("{name}: {value}\n"));
        let heads = heads.collect::<Vec<_>>().concat();
        let text = answer.text();
        let is_json = answer.header("content-type").is_some_and(|kind| kind.contains("json"));
        let body = match (is_json, text.is_empty()) {
            (_, true) => String::new(),
            (true, false) => format!("{}\n", indented(&text)),
            (false, false) => "(not JSON)\n".to_owned(),
        };
        self.comparable(&format!("status {}\n{heads}{body}", answer.status))
    }

    /// Puts the values of this run in place of their names.
    fn with_values(&self, text: &str) -> String {
        let mut text = text.to_owned();
        // The longest name first: UUID_1 is the beginning of UUID_12.
        let mut named: Vec<_> = self.named.iter().collect();
        named.sort_by_key(|(_, name)| std::cmp::Reverse(name.len()));
        for (value, name) in named {
            text = text.replace(name, value);
        }
        // The whole word: a script may name the variable GT_TOWN_ROOT.
        let root = self.sandbox.root().display().to_string();
        self.rules.root.replace_all(&text, root.as_str()).into_owned()
    }

    /// Puts names in place of what differs from one run to the next.
    fn comparable(&mut self, text: &str) -> String {
        let mut text = text.replace(&self.sandbox.root().display().to_string(), "ROOT");
        if let Some((_, address)) = &self.server {
            text = text.replace(address, "ADDRESS");
        }
        let rules = &self.rules;
        let kept = |found: &Captures<'_>, value: &str| format!("{}{value}{}", &found[1], &found[2]);
        for (rule, value) in
            [(&rules.prose, "\"PROSE\""), (&rules.numbers, "NUMBER"), (&rules.texts, "\"TEXT\"")]
        {
            if let Some(rule) = rule {
                text =
                    rule.replace_all(&text, |found: &Captures<'_>| kept(found, value)).into_owned();
            }
        }
        text = rules.instant.replace_all(&text, "TIME").into_owned();
        text = rules.port.replace_all(&text, "[::1]:PORT").into_owned();
        text = rules.cursor.replace_all(&text, "cursor=CURSOR").into_owned();
        for (name, pattern) in &rules.generated {
            let named = &mut self.named;
            let replaced = pattern.replace_all(&text, |found: &Captures<'_>| {
                let value = &found[0];
                if let Some((_, known)) = named.iter().find(|(known, _)| known == value) {
                    return known.clone();
                }
                let number = named.iter().filter(|(_, of)| of.starts_with(name)).count() + 1;
                let new = format!("{name}_{number}");
                named.push((value.to_owned(), new.clone()));
                new
            });
            text = replaced.into_owned();
        }
        if text.is_empty() || text.ends_with('\n') { text } else { format!("{text}\n") }
    }
}

/// A compact JSON object or array with a field on each line, in its order; other text stays as it is.
fn indented(json: &str) -> String {
    if !json.starts_with("{\"") && !json.starts_with("[{\"") {
        return json.to_owned();
    }
    let (mut out, mut depth, mut in_text, mut escaped) = (String::new(), 0_usize, false, false);
    let mut characters = json.chars().peekable();
    while let Some(character) = characters.next() {
        if in_text {
            out.push(character);
            in_text = escaped || character != '"';
            escaped = !escaped && character == '\\';
            continue;
        }
        let line = |out: &mut String, depth: usize| {
            out.push('\n');
            out.push_str(&"  ".repeat(depth));
        };
        match character {
            '{' | '[' => {
                out.push(character);
                if matches!(characters.peek(), Some('}' | ']')) {
                    out.extend(characters.next());
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                in_text = character == '"';
                out.push(character);
            }
        }
    }
    out
}
