//! The name and e-mail address that git has for the person.

use std::path::{Path, PathBuf};

use super::git;
use crate::process::capture;

/// A name and an e-mail address, as far as they are configured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitIdentity {
    /// `user.name`.
    pub name: Option<String>,
    /// `user.email`.
    pub email: Option<String>,
}

/// Reads `user.name` and `user.email` as git would in `directory`.
///
/// Reads the files itself, because starting git takes longer than everything else that a command
/// does. Only configuration that includes other files is left to git.
pub fn identity(directory: &Path, home: Option<&Path>, variables: &Variables) -> GitIdentity {
    let mut files = Vec::new();
    if let Some(global) = &variables.config_global {
        files.push(global.clone());
    } else if let Some(home) = home {
        let config = variables.xdg_config_home.clone().unwrap_or_else(|| home.join(".config"));
        files.push(config.join("git/config"));
        files.push(home.join(".gitconfig"));
    }
    files.extend(repository_config(directory));
    let mut found = GitIdentity::default();
    for file in files {
        let Ok(text) = std::fs::read_to_string(&file) else {
            continue;
        };
        match GitIdentity::parse(&text) {
            Some(here) => {
                found.name = here.name.or(found.name);
                found.email = here.email.or(found.email);
            }
            None => return ask_git(directory),
        }
    }
    found
}

/// The environment variables that decide where git's configuration is.
#[derive(Debug, Clone, Default)]
pub struct Variables {
    /// `GIT_CONFIG_GLOBAL`.
    pub config_global: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    pub xdg_config_home: Option<PathBuf>,
}

fn repository_config(directory: &Path) -> Option<PathBuf> {
    let git = directory.ancestors().map(|at| at.join(".git")).find(|git| git.exists())?;
    if git.is_dir() {
        return Some(git.join("config"));
    }
    // A worktree: `.git` is a file that names its directory, and that one names the shared one.
    let text = std::fs::read_to_string(&git).ok()?;
    let own = git.parent()?.join(text.strip_prefix("gitdir:")?.trim());
    let shared = std::fs::read_to_string(own.join("commondir")).ok();
    let shared = shared.map_or_else(|| own.clone(), |text| own.join(text.trim()));
    Some(shared.join("config"))
}

impl GitIdentity {
    /// The identity in a configuration file, or nothing if the file needs git itself to be understood.
    pub fn parse(text: &str) -> Option<Self> {
        let mut found = Self::default();
        let mut section = String::new();
        for line in text.lines().map(str::trim) {
            if let Some(header) = line.strip_prefix('[') {
                section = header.split(']').next().unwrap_or_default().trim().to_ascii_lowercase();
                if section.starts_with("include") {
                    return None;
                }
                continue;
            }
            if section != "user" {
                continue;
            }
            let Some((key, value)) = line.split_once('=') else {
                continue;
            };
            let value = value.trim();
            if value.contains(['\\', '#', ';']) {
                // Escapes and comments are git's business.
                return None;
            }
            // A name of nothing but quotes and spaces is none; git does without them too.
            let value = value.trim_matches(|c: char| c == '"' || c.is_whitespace());
            let value = Some(value.to_owned()).filter(|value| !value.is_empty());
            match key.trim().to_ascii_lowercase().as_str() {
                "name" => found.name = value,
                "email" => found.email = value,
                _ => {}
            }
        }
        Some(found)
    }
}

fn ask_git(directory: &Path) -> GitIdentity {
    let ask = |key: &str| {
        let mut asked = git();
        asked.arg("-C").arg(directory).args(["config", "--get", key]);
        let output = capture(asked).ok()?;
        let value = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        (!value.is_empty()).then_some(value)
    };
    GitIdentity { name: ask("user.name"), email: ask("user.email") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_overrides_the_person() {
        let directory = tempfile::tempdir().unwrap();
        let repository = directory.path().join("repo");
        std::fs::create_dir_all(repository.join(".git")).unwrap();
        std::fs::create_dir_all(repository.join("deep/inside")).unwrap();
        let global = "[core]\n\teditor = vi\n[user]\n\tname = \"Ada L\"\n\temail = ada@x.y\n";
        std::fs::write(directory.path().join(".gitconfig"), global).unwrap();
        std::fs::write(repository.join(".git/config"), "[User]\nEmail=work@x.y\n").unwrap();
        let variables = Variables::default();
        let found = identity(&repository.join("deep/inside"), Some(directory.path()), &variables);
        assert_eq!(found.name.as_deref(), Some("Ada L"));
        assert_eq!(found.email.as_deref(), Some("work@x.y"));
    }

    #[test]
    fn an_empty_name_is_no_name() {
        let found = GitIdentity::parse("[user]\nname = \" \"\nemail = \" a@b \"\n").unwrap();
        assert_eq!((found.name, found.email.as_deref()), (None, Some("a@b")));
    }

    #[test]
    fn included_files_are_left_to_git() {
        assert_eq!(GitIdentity::parse("[include]\npath = other\n[user]\nname = A\n"), None);
        assert_eq!(GitIdentity::parse("[includeIf \"gitdir:x\"]\npath = other\n"), None);
    }
}
