//! Objects of GitHub that a gate waits for. The user's `gh` is asked in the checkout, and so about its repository.

use std::path::Path;

use gt_core::Json;

use super::HOSTING_CALL_LIMIT;
use super::limited_call::{CallEnd, CallOutput, LimitedCall};

/// The longest answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 1024 * 1024;

/// An object of GitHub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AwaitedObject<'a> {
    /// A run of a workflow, by its number, or the latest run of the workflow of this name.
    WorkflowRun(&'a str),
    /// A pull request, by its number.
    PullRequest(&'a str),
}

/// The state of an object: the fields `status` and `conclusion` of a workflow run, `state` of a pull request. An error is a
/// sentence for people.
pub fn awaited_state(object: AwaitedObject<'_>, checkout: &Path) -> Result<Json, String> {
    let (name, arguments) = match object {
        AwaitedObject::WorkflowRun(run) if is_number(run) => {
            (run, vec!["run", "view", run, "--json", "status,conclusion"])
        }
        AwaitedObject::WorkflowRun(workflow) => {
            let json = ["--limit", "1", "--json", "status,conclusion"];
            (workflow, [&["run", "list", "--workflow", workflow], json.as_slice()].concat())
        }
        AwaitedObject::PullRequest(number) => {
            (number, vec!["pr", "view", number, "--json", "state"])
        }
    };
    // A name that begins with a hyphen would be a flag.
    let is_name = !name.is_empty() && !name.starts_with('-') && !name.contains('\0');
    if !is_name {
        return Err(
            "the gate does not name what it waits for; bd update <gate> --await-id sets it"
                .to_owned(),
        );
    }
    let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
    let answer = asked(&arguments, checkout)?;
    // A list of runs has the latest one.
    match answer.elements() {
        Some(runs) => {
            runs.into_iter().next().ok_or_else(|| "the workflow has not run yet".to_owned())
        }
        None => Ok(answer),
    }
}

/// The answer of `gh` to a call in the checkout.
fn asked(arguments: &[String], checkout: &Path) -> Result<Json, String> {
    let call = LimitedCall {
        program: "gh",
        arguments,
        directory: checkout,
        environment: &[],
        input: &[],
        limit: HOSTING_CALL_LIMIT,
        output_bytes_max: ANSWER_BYTES_MAX,
    };
    let output = match call.run() {
        Ok(CallEnd::Ended(output)) => output,
        Ok(CallEnd::TooLate) => return Err("gh did not answer in time".to_owned()),
        Ok(CallEnd::TooMuch) => return Err("gh printed too much".to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err("gh is not installed".to_owned());
        }
        Err(error) => return Err(format!("cannot start gh: {error}")),
    };
    answer(&output)
}

/// The latest runs of workflows, of this branch if one is named, with the fields `databaseId`, `headSha`, `workflowName`
/// and `createdAt`. An error is a sentence for people.
pub fn latest_workflow_runs(
    checkout: &Path,
    branch: Option<&str>,
    limit: usize,
) -> Result<Vec<Json>, String> {
    let mut arguments: Vec<String> =
        ["run", "list", "--json", "databaseId,headSha,workflowName,createdAt", "--limit"]
            .map(str::to_owned)
            .into();
    arguments.push(limit.to_string());
    arguments.extend(branch.map(|branch| format!("--branch={branch}")));
    let runs = asked(&arguments, checkout)?;
    runs.elements().ok_or_else(|| "the answer of gh cannot be read".to_owned())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn answer(output: &CallOutput) -> Result<Json, String> {
    if output.code != Some(0) {
        let said = output.stderr.lines().map(str::trim).find(|line| !line.is_empty());
        let said: String = said.unwrap_or("it failed").chars().take(200).collect();
        return Err(format!("gh: {}", said.escape_debug()));
    }
    Json::parse(output.stdout.trim()).map_err(|_| "the answer of gh cannot be read".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(code: i32, stdout: &str, stderr: &str) -> Result<Json, String> {
        let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
        answer(&CallOutput { code: Some(code), stdout, stderr })
    }

    #[test]
    fn an_answer_is_json_or_the_first_words_of_the_failure() {
        let one = answered(0, "{\"state\":\"OPEN\"}\n", "").unwrap();
        assert_eq!(one.string_field("state").as_deref(), Some("OPEN"));
        assert!(answered(0, "no json", "").is_err());
        assert_eq!(answered(1, "", "\nnot found\n").unwrap_err(), "gh: not found");
    }

    #[test]
    fn a_name_that_would_be_a_flag_is_not_passed_on() {
        for object in [
            AwaitedObject::PullRequest("--web"),
            AwaitedObject::WorkflowRun(""),
            AwaitedObject::WorkflowRun("a\0b"),
        ] {
            let refused = awaited_state(object, Path::new("/")).unwrap_err();
            assert!(refused.contains("does not name"), "{refused}");
        }
    }
}
