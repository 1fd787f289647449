//! Which repository of which hosting service an origin is.

use std::fmt;

/// A repository on a hosting service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostedRepository {
    /// The host of its web pages, in small letters, with a port if the origin has one for the web.
    pub host: String,
    /// The account or group it belongs to; groups below groups are separated by `/`.
    pub owner: String,
    /// Its name, without `.git`.
    pub name: String,
}

/// Why an origin is not a repository on a hosting service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoHostingService {
    /// It is a directory.
    #[error("the origin is a path, and a path has no hosting service")]
    Path,
    /// It is an address, but not of the form host, owner and name.
    #[error("the origin does not name a repository of a hosting service as host/owner/name")]
    Unfit,
}

/// Hosts that serve ssh for another host: the first serves for the second.
const SSH_HOSTS: [(&str, &str); 3] = [
    ("ssh.github.com", "github.com"),
    ("altssh.gitlab.com", "gitlab.com"),
    ("www.github.com", "github.com"),
];

impl HostedRepository {
    /// Reads the origin of a rig: `https://host/owner/name.git`, `ssh://git@host:22/owner/name`, `git@host:owner/name`.
    pub fn of_origin(origin: &str) -> Result<Self, NoHostingService> {
        let origin = origin.trim();
        let (host, path) = match origin.split_once("://") {
            Some((scheme, rest)) => {
                let keeps_port = match scheme.to_ascii_lowercase().as_str() {
                    "https" | "http" => true,
                    // The port of another service says nothing about the web pages.
                    "ssh" | "git+ssh" | "ssh+git" | "git" => false,
                    "file" => return Err(NoHostingService::Path),
                    _ => return Err(NoHostingService::Unfit),
                };
                let (authority, path) = rest.split_once('/').ok_or(NoHostingService::Unfit)?;
                let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
                let (name, port) = host.split_once(':').unwrap_or((host, ""));
                if !port.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(NoHostingService::Unfit);
                }
                let is_usual = matches!(port, "" | "80" | "443");
                let host = if keeps_port && !is_usual { host } else { name };
                (host.to_owned(), path)
            }
            // As git decides: a colon before the first slash makes it a host.
            None => match origin.split_once(':') {
                Some((host, path)) if !host.contains('/') && !host.is_empty() => {
                    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
                    (host.to_owned(), path)
                }
                _ => return Err(NoHostingService::Path),
            },
        };
        let host = host.to_ascii_lowercase();
        let host = match SSH_HOSTS.iter().find(|(alias, _)| *alias == host) {
            Some((_, host)) => (*host).to_owned(),
            None => host,
        };
        let path = path.split(['?', '#']).next().unwrap_or_default().trim_matches('/');
        let path = path.trim_end_matches(".git");
        let (owner, name) = path.rsplit_once('/').ok_or(NoHostingService::Unfit)?;
        let is_fit = is_host(&host) && is_segment(name) && owner.split('/').all(is_segment);
        if !is_fit {
            return Err(NoHostingService::Unfit);
        }
        Ok(Self { host, owner: owner.to_owned(), name: name.to_owned() })
    }

    /// Owner and name, separated by `/`.
    pub fn path(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }
}

impl fmt::Display for HostedRepository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.host, self.owner, self.name)
    }
}

/// Whether a text can be the owner of a repository: an account, or groups separated by `/`.
pub fn is_repository_owner(text: &str) -> bool {
    text.split('/').all(is_segment)
}

/// The address of the repository with the same name that another owner has: a fork of `origin`.
pub fn fork_address(origin: &str, fork_owner: &str) -> Result<String, NoHostingService> {
    let repository = HostedRepository::of_origin(origin)?;
    let (path, owner) = (repository.path(), &repository.owner);
    let start = origin.rfind(&path).ok_or(NoHostingService::Unfit)?;
    let (before, rest) = origin.split_at(start);
    Ok(format!("{before}{fork_owner}{}", &rest[owner.len()..]).trim().to_owned())
}

fn is_host(host: &str) -> bool {
    let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
        && port.is_none_or(is_port)
}

/// Whether this is one part of a path that a service has, and no option or path of a program.
fn is_segment(segment: &str) -> bool {
    !segment.is_empty()
        && !segment.starts_with(['-', '.'])
        && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn origins_of_services_are_read() {
        for (origin, expected) in [
            ("https://github.com/acme/web.git", "github.com/acme/web"),
            ("https://github.com/acme/web", "github.com/acme/web"),
            ("https://GitHub.com/acme/Web/", "github.com/acme/Web"),
            ("https://www.github.com/acme/web", "github.com/acme/web"),
            ("https://ada:s3cret@github.com/acme/web.git", "github.com/acme/web"),
            ("https://github.com:443/acme/web.git", "github.com/acme/web"),
            ("http://git.example.com:8080/acme/web.git", "git.example.com:8080/acme/web"),
            ("ssh://git@github.com/acme/web.git", "github.com/acme/web"),
            ("ssh://git@ssh.github.com:443/acme/web.git", "github.com/acme/web"),
            ("ssh://git@altssh.gitlab.com:443/acme/web.git", "gitlab.com/acme/web"),
            ("ssh://git@git.example.com:2222/acme/web", "git.example.com/acme/web"),
            ("git+ssh://git@git.example.com/acme/web", "git.example.com/acme/web"),
            ("git@github.com:acme/web.git", "github.com/acme/web"),
            ("git@github.com:/acme/web.git", "github.com/acme/web"),
            ("github.com:acme/web", "github.com/acme/web"),
            ("org-123@github.com:acme/web.git", "github.com/acme/web"),
            ("git@gitlab.com:group/sub/deep/web.git", "gitlab.com/group/sub/deep/web"),
            ("https://gitlab.example.com/group/sub/web.git", "gitlab.example.com/group/sub/web"),
            ("https://github.com/acme/web.js.git", "github.com/acme/web.js"),
            (" https://github.com/acme/web.git\n", "github.com/acme/web"),
        ] {
            let found = HostedRepository::of_origin(origin);
            assert_eq!(found.map(|found| found.to_string()).as_deref(), Ok(expected), "{origin}");
        }
        let deep = HostedRepository::of_origin("git@gitlab.com:group/sub/web.git").unwrap();
        assert_eq!((deep.owner.as_str(), deep.name.as_str()), ("group/sub", "web"));
        assert_eq!(deep.path(), "group/sub/web");
    }

    #[test]
    fn a_fork_has_the_address_of_its_owner() {
        for (origin, expected) in [
            ("https://github.com/acme/web.git", "https://github.com/ada/web.git"),
            ("git@github.com:acme/acme.git", "git@github.com:ada/acme.git"),
            ("ssh://git@ssh.github.com:443/acme/web", "ssh://git@ssh.github.com:443/ada/web"),
            ("git@gitlab.com:group/sub/web.git", "git@gitlab.com:ada/web.git"),
        ] {
            assert_eq!(fork_address(origin, "ada").as_deref(), Ok(expected), "{origin}");
        }
        assert_eq!(fork_address("/srv/web.git", "ada"), Err(NoHostingService::Path));
    }

    #[test]
    fn paths_and_unfit_addresses_have_no_service() {
        for origin in ["/srv/git/web.git", "../web", "web", "file:///srv/web.git", "./a:b/c", ""] {
            let found = HostedRepository::of_origin(origin);
            assert_eq!(found, Err(NoHostingService::Path), "{origin}");
        }
        for origin in [
            "https://github.com",
            "https://github.com/web",
            "https://github.com/-x/web",
            "https://github.com/acme/../web",
            "https://github.com/acme/we b",
            "https://github.com:x/acme/web",
            "ssh://git@host:x/acme/web",
            "ftp://host/acme/web",
            "git@host:web",
            "git@host:~ada/web",
            "https://[::1]/acme/web",
            "https:///acme/web",
            "ssh://host::/acme/web",
        ] {
            let found = HostedRepository::of_origin(origin);
            assert_eq!(found, Err(NoHostingService::Unfit), "{origin}");
        }
    }

    proptest! {
        #[test]
        fn no_origin_makes_an_option_or_leaves_its_path(origin in "(https://|git@|ssh://)?[a-z.:/@~ -]{0,30}|.*") {
            if let Ok(found) = HostedRepository::of_origin(&origin) {
                for part in found.owner.split('/').chain([found.name.as_str(), found.host.as_str()]) {
                    prop_assert!(!part.is_empty() && !part.starts_with(['-', '.']), "{found}");
                }
            }
        }

        #[test]
        fn each_form_of_one_repository_reads_the_same(
            owner in "[a-z][a-z0-9-]{0,8}(/[a-z][a-z0-9]{0,5}){0,2}", name in "[a-z][a-z0-9_]{0,8}"
        ) {
            let read = |origin: String| HostedRepository::of_origin(&origin).unwrap();
            let expected = read(format!("https://git.example.com/{owner}/{name}"));
            for origin in [
                format!("https://git.example.com/{owner}/{name}.git"),
                format!("ssh://git@git.example.com:22/{owner}/{name}.git/"),
                format!("git@git.example.com:{owner}/{name}.git"),
            ] {
                prop_assert_eq!(&read(origin), &expected);
            }
        }
    }
}
