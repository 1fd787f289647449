//! The daemon as a service of systemd.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use gt_executors::private;
use gt_town::{Environment, OperationError, Result};

/// A systemd unit for the service manager of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// Its name, such as `gt-work-1a2b3c4d.service`.
    pub name: String,
    /// Its path.
    pub path: PathBuf,
    /// The text of the unit file.
    pub text: String,
}

/// The unit that runs the daemon of the town at `root` with this program. Workers get the `PATH` of the caller.
pub fn unit(root: &Path, program: &Path, environment: &Environment) -> Result<Unit> {
    let home = environment.path("HOME");
    let configuration = environment
        .path("XDG_CONFIG_HOME")
        .or_else(|| home.map(|home| home.join(".config")))
        .ok_or_else(|| {
            OperationError::rejected(
                "HOME is not set; print the unit with gt daemon install --print",
            )
        })?;
    let name = name_of(root);
    let path = configuration.join("systemd/user").join(&name);
    let text = text(root, program, environment.get("PATH"))?;
    Ok(Unit { name, path, text })
}

/// Writes a unit where the service manager finds it.
pub fn install_unit(unit: &Unit) -> Result<()> {
    let failed = |source| OperationError::File { action: "write", path: unit.path.clone(), source };
    if let Some(directory) = unit.path.parent() {
        private::create_dir_all(directory).map_err(failed)?;
    }
    // It names a program that runs as the user.
    private::write(&unit.path, &unit.text).map_err(failed)
}

/// The name of the unit of a town. Each town on a machine has one of its own.
fn name_of(root: &Path) -> String {
    let last = root.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut words: String = last
        .unwrap_or_default()
        .chars()
        .map(|character| if character.is_ascii_alphanumeric() { character } else { '-' })
        .take(40)
        .collect();
    words.make_ascii_lowercase();
    let mut hasher = DefaultHasher::new();
    root.hash(&mut hasher);
    format!("gt-{}-{:08x}.service", words.trim_matches('-'), hasher.finish() >> 32)
}

fn text(root: &Path, program: &Path, search_path: Option<&str>) -> Result<String> {
    let (root_text, program) = (utf8(root)?, utf8(program)?);
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "[Unit]\n\
         Description=gt daemon of {description}\n\
         StartLimitIntervalSec=0\n\
         \n\
         [Service]\n\
         Type=notify\n\
         NotifyAccess=main\n\
         ExecStart={program} -C {root} daemon run\n\
         ExecReload=/bin/kill -HUP $MAINPID\n\
         Restart=on-failure\n\
         RestartSec=2\n\
         # The first look at everything may have to start workers.\n\
         TimeoutStartSec=15min\n\
         TimeoutStopSec=45\n\
         WatchdogSec=60\n\
         # Workers go on when the daemon stops, and are found again by the next.\n\
         KillMode=process\n\
         # Each run keeps its processes in a control group of its own.\n\
         Delegate=yes\n",
        description = escaped(root_text),
        program = quoted_program(program),
        root = quoted(root_text),
    );
    if let Some(search_path) = search_path {
        let _ = writeln!(text, "Environment={}", quoted_plain(&format!("PATH={search_path}")));
    }
    text.push_str("\n[Install]\nWantedBy=default.target\n");
    Ok(text)
}

fn utf8(path: &Path) -> Result<&str> {
    path.to_str().filter(|text| !text.chars().any(char::is_control)).ok_or_else(|| {
        OperationError::rejected(format!(
            "systemd cannot be told of {}; move it to a path without such characters",
            path.display()
        ))
    })
}

/// A word of a command line, where `%` and `$` mean something.
fn quoted(word: &str) -> String {
    quoted_plain(word).replace('$', "$$")
}

/// A program, where `$` means nothing.
fn quoted_program(word: &str) -> String {
    quoted_plain(word)
}

/// A word of an assignment, where only `%` means something.
fn quoted_plain(word: &str) -> String {
    format!("\"{}\"", escaped(&word.replace('\\', "\\\\").replace('"', "\\\"")))
}

fn escaped(text: &str) -> String {
    text.replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn systemd_unit_escapes_every_town_name() {
        let town = Path::new("/srv/my \"50%\" $town");
        let text = text(town, Path::new("/opt/my gt"), Some("/bin:/a b")).unwrap();
        assert!(text.contains(r#"ExecStart="/opt/my gt" -C "/srv/my \"50%%\" $$town" daemon run"#));
        assert!(text.contains("Environment=\"PATH=/bin:/a b\"\n"));
        for line in ["Type=notify", "KillMode=process", "WatchdogSec=60", "Restart=on-failure"] {
            assert!(text.lines().any(|other| other == line), "{line}");
        }
    }

    #[test]
    fn every_town_has_a_name_of_its_own() {
        let names = ["/a/work", "/b/work", "/a/My Town!", "/"].map(|root| name_of(Path::new(root)));
        assert_ne!(names[0], names[1]);
        assert!(names[0].starts_with("gt-work-"), "{}", names[0]);
        assert!(names[2].starts_with("gt-my-town-"), "{}", names[2]);
    }

    #[test]
    fn a_path_with_control_characters_is_refused() {
        assert!(text(Path::new("/a\nExecStart=rm"), Path::new("/gt"), None).is_err());
    }
}
