//! The names and trailers of commits that land.

use std::path::Path;

use gt_core::Rig;
use gt_core::schedule::RunId;
use gt_executors::git::{self, CommitTrailer, Signature};

use crate::Environment;

/// The names and trailers of the landed commits of a run.
///
/// On its branch, a worker commits under its own name, by which commits that were pushed past gt are recognised. Its name
/// has no address that a person has configured, so the commits land under the name of the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandingIdentity {
    /// The committer of all commits, and the author of those that squash or merge the work.
    pub signature: Signature,
    /// Commits by this author get `signature` as their author.
    pub replaced_author: Option<Signature>,
    /// The trailers of each commit.
    pub trailers: Vec<CommitTrailer>,
}

impl LandingIdentity {
    /// The identity for a run of an agent, in the name of a person or, without one, of the agent.
    pub fn of(run: &RunId, agent: Signature, person: Option<Signature>) -> Self {
        let trailer = |key: &str, value: String| CommitTrailer { key: key.to_owned(), value };
        let mut trailers =
            vec![trailer("Bead", run.bead.to_string()), trailer("Run", run.to_string())];
        let Some(person) = person else {
            return Self { signature: agent, replaced_author: None, trailers };
        };
        let Signature { name, email } = &agent;
        trailers.push(trailer("Co-authored-by", format!("{name} <{email}>")));
        Self { signature: person, replaced_author: Some(agent), trailers }
    }
}

/// The name and address that git has for the person: in the origin of the rig, if that is a checkout on this machine, else
/// for all repositories. Nothing unless git has both.
pub fn person_of(rig: &Rig, environment: &Environment) -> Option<Signature> {
    let variables = git::Variables {
        config_global: environment.path("GIT_CONFIG_GLOBAL"),
        xdg_config_home: environment.path("XDG_CONFIG_HOME"),
    };
    let origin = Path::new(&rig.repo);
    let directory = if origin.is_absolute() && origin.is_dir() { origin } else { Path::new("/") };
    let known = git::identity(directory, environment.path("HOME").as_deref(), &variables);
    Some(Signature { name: known.name?, email: known.email? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(name: &str, email: &str) -> Signature {
        Signature { name: name.to_owned(), email: email.to_owned() }
    }

    #[test]
    fn commits_land_in_the_name_of_the_person() {
        let run = RunId::parse("al-1#2").unwrap();
        let agent = signature("web/polecats/nux", "web.polecats.nux@gt.invalid");
        let shown = |identity: &LandingIdentity| {
            let line = |trailer: &CommitTrailer| format!("{}: {}", trailer.key, trailer.value);
            identity.trailers.iter().map(line).collect::<Vec<_>>().join("\n")
        };
        let person = signature("Ada", "ada@example.org");
        let identity = LandingIdentity::of(&run, agent.clone(), Some(person.clone()));
        assert_eq!(identity.signature, person);
        assert_eq!(identity.replaced_author, Some(agent.clone()));
        assert_eq!(
            shown(&identity),
            "Bead: al-1\nRun: al-1#2\nCo-authored-by: web/polecats/nux <web.polecats.nux@gt.invalid>"
        );
        let identity = LandingIdentity::of(&run, agent.clone(), None);
        assert_eq!((identity.signature.clone(), identity.replaced_author.clone()), (agent, None));
        assert_eq!(shown(&identity), "Bead: al-1\nRun: al-1#2");
    }
}
