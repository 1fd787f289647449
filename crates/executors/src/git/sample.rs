//! Repositories that are made for a demonstration.

use std::path::Path;

use super::call::GitCall;
use super::{GitError, Signature};

/// Makes a repository without a work tree at `path`, whose branch `branch` has one commit with these files.
pub fn make_sample(
    path: &Path,
    branch: &str,
    signature: &Signature,
    files: &[(&str, &str)],
) -> Result<(), GitError> {
    let path = &std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let deed = format!("make the repository {}", path.display());
    GitCall::anywhere(deed.clone())
        .args(["init", "--quiet", "--bare", "--initial-branch", branch])
        .arg(path)
        .done()?;
    let Signature { name, email } = signature;
    let message = "Begin";
    let file = |(path, text): &(&str, &str)| {
        format!("M 100644 inline {path}\ndata {}\n{text}\n", text.len())
    };
    let files: Vec<String> = files.iter().map(file).collect();
    let stream = format!(
        "commit refs/heads/{branch}\ncommitter {name} <{email}> now\ndata {}\n{message}\n{}",
        message.len(),
        files.concat()
    );
    let import = ["fast-import", "--quiet", "--date-format=now"];
    GitCall::on(path, deed).args(import).input(stream).done().map(drop)
}
