//! The options that all calls to an origin share.

use std::path::Path;
use std::time::Duration;

use super::call::{GitCall, GitOutput, TOO_LATE};
use super::error::GitError;

/// The messages of git when the origin does not answer, or does not let us in.
const UNREACHABLE: [&str; 15] = [
    TOO_LATE,
    "Could not read from remote repository",
    "does not appear to be a git repository",
    "unable to access",
    "unable to connect",
    "Could not resolve",
    "Connection refused",
    "Connection timed out",
    "Authentication failed",
    "terminal prompts disabled",
    "could not read Username",
    "could not read Password",
    "the remote end hung up",
    "does not exist",
    "Repository not found",
];

/// A connection over which nothing comes for this long is given up.
const SILENCE_SECONDS_MAX: &str = "30";
/// A call that takes longer than this is given up, although the connection is alive: a hook of the
/// origin may hang. After the first time, no fetch or push is so large that it needs longer.
const NETWORK_CALL_TIME_MAX: Duration = Duration::from_mins(15);
/// The longest time for a push. A limit that is longer does not count.
pub const PUSH_TIME_MAX: Duration = NETWORK_CALL_TIME_MAX;

impl GitOutput {
    /// Whether the origin was not there for us.
    pub(super) fn is_unreachable(&self) -> bool {
        UNREACHABLE.iter().any(|phrase| self.complaint.contains(phrase))
    }

    /// The error of a call that speaks to an origin.
    pub(super) fn unreachable(&self, origin: &str) -> GitError {
        GitError::Unreachable { origin: without_secrets(origin), message: self.reason() }
    }
}

impl GitCall {
    /// A call to an origin: it never prompts, and gives up a connection that is silent.
    pub(super) fn over_network(
        repository: Option<&Path>,
        origin: &str,
        deed: impl Into<String>,
    ) -> Result<Self, GitError> {
        let mut settings = vec![
            "http.lowSpeedLimit=1".to_owned(),
            format!("http.lowSpeedTime={SILENCE_SECONDS_MAX}"),
        ];
        if is_ssh(origin) {
            // Options that are appended to a configured command still belong to its ssh.
            let mut asked = Self::perhaps_on(repository, "read its settings").args([
                "config",
                "--get",
                "core.sshCommand",
            ]);
            let configured = String::from_utf8_lossy(&asked.answer()?.output).trim().to_owned();
            let ssh = if configured.is_empty() { "ssh" } else { &configured };
            settings.push(format!(
                "core.sshCommand={ssh} -oBatchMode=yes -oConnectTimeout={SILENCE_SECONDS_MAX} \
                 -oServerAliveInterval={SILENCE_SECONDS_MAX}"
            ));
        }
        let call = Self::perhaps_on(repository, deed).limited(NETWORK_CALL_TIME_MAX);
        Ok(settings.into_iter().fold(call, |call, setting| call.arg("-c").arg(setting)))
    }
}

impl GitCall {
    fn perhaps_on(repository: Option<&Path>, deed: impl Into<String>) -> Self {
        let deed = deed.into();
        repository.map_or_else(|| Self::anywhere(deed.clone()), |at| Self::on(at, deed.clone()))
    }
}

/// Whether git goes there over ssh: `ssh://…`, or `host:path` as scp writes it.
fn is_ssh(origin: &str) -> bool {
    if let Some((scheme, _)) = origin.split_once("://") {
        return scheme.contains("ssh");
    }
    let before_path = origin.split('/').next().unwrap_or_default();
    before_path.contains(':')
}

/// A URL as people may see it: without user name and password.
pub(super) fn without_secrets(origin: &str) -> String {
    let Some((scheme, rest)) = origin.split_once("://") else { return origin.to_owned() };
    let (host, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    path.map_or_else(|| format!("{scheme}://{host}"), |path| format!("{scheme}://{host}/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_url_are_not_shown() {
        let shown = without_secrets("https://ada:s3cret@example.org/a/b@c.git");
        assert_eq!(shown, "https://example.org/a/b@c.git");
        assert_eq!(without_secrets("https://token@example.org"), "https://example.org");
        assert_eq!(without_secrets("git@example.org:a/b.git"), "git@example.org:a/b.git");
        assert_eq!(without_secrets("some/place"), "some/place");
    }

    #[test]
    fn ssh_is_told_from_paths_and_other_schemes() {
        assert!(is_ssh("git@example.org:a/b.git"));
        assert!(is_ssh("ssh://example.org/a"));
        assert!(is_ssh("git+ssh://example.org/a"));
        assert!(!is_ssh("https://example.org/a"));
        assert!(!is_ssh("a/place:with/colon"));
        assert!(!is_ssh("place"));
    }
}
