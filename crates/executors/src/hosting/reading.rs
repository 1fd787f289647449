//! From the JSON of a tool to pull requests.

use std::collections::BTreeMap;

use gt_core::formula::WordSet;
use gt_core::hosting::{
    HostedCheck, HostedCheckState, PullRequest, PullRequestApproval, PullRequestFeedback,
    PullRequestFeedbackKind,
};
use serde_json::Value;

use super::json_path::JsonPath;
use super::provider::{ChecksQuery, FeedbackQuery, FileWord, ProviderFile, ShowQuery};

/// Most rows of one list that are read.
const ROWS_MAX: usize = 5_000;

/// The rows of an answer: those at a path, or the answer itself. A tool that asks for several pages prints an array for
/// each, one after the other.
pub(super) fn rows(output: &str, path: Option<&JsonPath>) -> Result<Vec<Value>, String> {
    let mut rows = Vec::new();
    for value in serde_json::Deserializer::from_str(output).into_iter::<Value>() {
        let value = value.map_err(|why| format!("it is not JSON ({why})"))?;
        let found = match path {
            Some(path) => path.value(&value).cloned(),
            None => Some(value),
        };
        match found {
            Some(Value::Array(found)) => rows.extend(found),
            Some(_) => return Err("a list was expected".to_owned()),
            None => {}
        }
    }
    if rows.len() > ROWS_MAX {
        return Err(format!("it has more than {ROWS_MAX} entries"));
    }
    Ok(rows)
}

/// The one object of an answer.
pub(super) fn object(output: &str) -> Result<Value, String> {
    let value: Value =
        serde_json::from_str(output).map_err(|why| format!("it is not JSON ({why})"))?;
    if value.is_object() { Ok(value) } else { Err("an object was expected".to_owned()) }
}

/// The text at a path that must be there.
pub(super) fn needed(path: &JsonPath, from: &Value, name: &str) -> Result<String, String> {
    path.text(from).ok_or_else(|| format!("it has no {name}"))
}

/// The number at a path that must be there.
pub(super) fn needed_number(path: &JsonPath, from: &Value) -> Result<u64, String> {
    path.number(from).ok_or_else(|| "it has no number".to_owned())
}

/// The commit at a path that must be there.
fn needed_commit(path: &JsonPath, from: &Value, name: &str) -> Result<String, String> {
    let commit = needed(path, from, name)?;
    if is_commit(&commit) { Ok(commit) } else { Err(format!("its {name} is no commit")) }
}

fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn word<W: WordSet>(words: &BTreeMap<String, FileWord<W>>, text: &str) -> Option<W> {
    words.get(text).map(|word| word.0)
}

impl ShowQuery {
    /// A pull request without its checks and texts.
    pub(super) fn read(&self, from: &Value) -> Result<PullRequest, String> {
        let state = needed(&self.state, from, "state")?;
        let state = word(&self.states, &state)
            .ok_or_else(|| format!("the state {:?} is unknown", shown(&state)))?;
        let approval = self.approval.as_ref().and_then(|path| path.text(from));
        let approval = approval.and_then(|text| word(&self.approvals, &text));
        let conflict = self.conflict.as_ref().and_then(|path| path.text(from));
        Ok(PullRequest {
            number: needed_number(&self.number, from)?,
            state,
            url: needed(&self.url, from, "address")?,
            author: self.author.text(from).unwrap_or_default(),
            head_branch: needed(&self.head_branch, from, "head branch")?,
            head_commit: needed_commit(&self.head_commit, from, "head commit")?,
            base_branch: needed(&self.base_branch, from, "base branch")?,
            merge_commit: self.merge_commit.text(from).filter(|text| is_commit(text)),
            has_conflict: conflict.is_some_and(|text| self.conflicts.contains(&text)),
            approval: approval.unwrap_or(PullRequestApproval::NotRequired),
            checks: Vec::new(),
            feedback: Vec::new(),
        })
    }
}

impl ChecksQuery {
    /// The checks in these rows. Of several runs of one check the last counts.
    pub(super) fn read(&self, rows: &[Value]) -> Result<Vec<HostedCheck>, String> {
        let text = |path: &Option<JsonPath>, row| path.as_ref().and_then(|path| path.text(row));
        let time = |path: &Option<JsonPath>, row| path.as_ref().and_then(|path| path.time(row));
        let mut checks: Vec<(Option<String>, _, HostedCheck)> = Vec::new();
        for row in rows {
            let name = needed(&self.name, row, "name of a check")?;
            let state = needed(&self.state, row, "state of a check")?;
            // A state that a newer service has says nothing about the code.
            let state = word(&self.states, &state).unwrap_or(HostedCheckState::Stopped);
            let is_optional = self.optional.as_ref().is_some_and(|path| path.is_true(row));
            let has_no_say = matches!(state, HostedCheckState::Failed | HostedCheckState::Stopped);
            let state = if is_optional && has_no_say { HostedCheckState::Passed } else { state };
            let (group, started) = (text(&self.group, row), time(&self.started, row));
            let (link, ended_at) = (text(&self.link, row), time(&self.ended, row));
            let check = HostedCheck { name, state, link, ended_at };
            let same =
                checks.iter().position(|(other, _, it)| *other == group && it.name == check.name);
            match same {
                Some(at) if checks[at].1 > started => {}
                Some(at) => checks[at] = (group, started, check),
                None => checks.push((group, started, check)),
            }
        }
        Ok(checks.into_iter().map(|(_, _, check)| check).collect())
    }
}

/// A text with the number of its author, by which the access is asked for where the text does not say it.
pub(super) struct ReadFeedback {
    pub(super) feedback: PullRequestFeedback,
    pub(super) author_id: Option<String>,
}

impl FeedbackQuery {
    /// The texts in these rows.
    pub(super) fn read(
        &self,
        rows: &[Value],
        file: &ProviderFile,
    ) -> Result<Vec<ReadFeedback>, String> {
        let is_true =
            |path: &Option<JsonPath>, row| path.as_ref().is_some_and(|path| path.is_true(row));
        let kept = rows.iter().filter(|row| !is_true(&self.skip, row));
        kept.map(|row| {
            let text =
                |path: &Option<JsonPath>| path.as_ref().and_then(|path: &JsonPath| path.text(row));
            let id = needed(&self.id, row, "number of a comment")?;
            let author = self.author.text(row).unwrap_or_default();
            let bot_kind =
                text(&self.author_kind).is_some_and(|kind| self.bot_kinds.contains(&kind));
            let bot_login = file.bot_login.as_ref().is_some_and(|bots| bots.0.is_in(&author));
            let access = text(&self.access).unwrap_or_default();
            let at_file = text(&self.file);
            let kind = match text(&self.state) {
                Some(state) => {
                    PullRequestFeedbackKind::Review(word(&self.states, &state).ok_or_else(
                        || format!("the review state {:?} is unknown", shown(&state)),
                    )?)
                }
                None if at_file.is_some() => PullRequestFeedbackKind::LineComment,
                None => PullRequestFeedbackKind::Conversation,
            };
            Ok(ReadFeedback {
                feedback: PullRequestFeedback {
                    id: format!("{}:{id}", self.name),
                    kind,
                    author,
                    is_bot: bot_kind || bot_login,
                    may_write: self.write_access.contains(&access),
                    access,
                    body: self.body.text(row).unwrap_or_default(),
                    file: at_file,
                    line: self.line.as_ref().and_then(|path| path.number(row)),
                    url: text(&self.url),
                    submitted_at: self.submitted.as_ref().and_then(|path| path.time(row)),
                    is_resolved: is_true(&self.resolved, row),
                },
                author_id: text(&self.author_id),
            })
        })
        .collect()
    }
}

/// The beginning of a text of a service, for a message.
fn shown(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::HostingProvider;
    use super::*;

    fn any_json() -> impl Strategy<Value = Value> {
        let names = prop::sample::select(vec![
            "number",
            "iid",
            "state",
            "url",
            "author",
            "login",
            "user",
            "id",
            "body",
            "name",
            "sha",
            "x",
            "statusCheckRollup",
            "headRefOid",
            "conclusion",
            "status",
            "position",
            "new_path",
            "system",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            prop::sample::select(vec!["OPEN", "opened", "FAILURE", "APPROVED", "", "ada"])
                .prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 60, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(names.clone(), inner, 0..8).prop_map(|fields| fields
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value))
                    .collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(answer in any_json(), text in ".{0,40}") {
            for name in ["gh", "glab"] {
                let provider = HostingProvider::built_in(name).unwrap();
                let file = provider.file();
                for text in [answer.to_string(), text.clone(), format!("{answer}{answer}")] {
                    let _ = object(&text).and_then(|object| file.show.read(&object));
                    let Ok(rows) = rows(&text, None) else { continue };
                    let _ = file.checks.read(&rows);
                    for list in &file.feedback {
                        let _ = list.read(&rows, file);
                    }
                }
            }
        }
    }

    #[test]
    fn pages_after_each_other_are_one_list() {
        assert_eq!(rows("[1,2]\n[3][]", None).unwrap(), [1, 2, 3].map(Value::from));
        assert_eq!(rows("", None).unwrap(), Vec::<Value>::new());
        assert!(rows("[1][2", None).is_err());
        assert!(rows("{}", None).is_err());
    }
}
