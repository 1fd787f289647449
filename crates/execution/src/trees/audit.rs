//! Finds changes that were made past the fence, puts them back, and tells a person.
//!
//! A process of the same user can push with an environment of its own, or write the files of the shared repository. So
//! the branch of the origin is compared with the last commit that gt has seen there, and the shared repository with what
//! gt has left there. Both are kept under `.gt/fence/<rig>`, on the machine whose trees they are about.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gt_core::hexadecimal::file_name_of;
use gt_core::message::{MessageBody, MessageTopic};
use gt_core::schedule::Run;
use gt_core::{MessageAddress, Rig, RigSlug, Sender};
use gt_executors::git::fence::NewCommit;
use gt_executors::git::{Commit, Repository};
use gt_executors::private;

use super::reference_part;
use gt_beads::messages::escalate_finding_in;
use gt_town::tree_paths::{Trees, git_failed, signature_of};
use gt_town::{OperationError, Result, Town};

/// How many of the last runs are searched for the maker of a commit.
const RUNS_MAX: usize = 500;
/// How many findings a message names.
const NAMED_MAX: usize = 5;

/// Compares the tip of a branch of the origin, as it was fetched last, with the state that gt knows. Commits of a worker that no
/// landing brought there are reported to a person, and landed commits that are gone. Commits of people are not.
pub(crate) fn look_at_target(
    town: &Town,
    rig: &Rig,
    repository: &Repository,
    branch: &str,
    tip: &Commit,
) -> Result<()> {
    let failed = git_failed(rig);
    let known = known_target(town, rig, branch);
    if known.as_ref() == Some(tip) {
        return Ok(());
    }
    if let Some(known) = known {
        // At one moment: a landing is in one of both, also while its push is on its way.
        let (runs, landing) = town.read(|reader| {
            Ok((reader.recent_runs(RUNS_MAX)?, reader.landing_candidates(&rig.slug, branch)?))
        })?;
        let runs: Vec<Run> = runs.into_iter().filter(|run| run.rig == rig.slug).collect();
        let mut accounted: Vec<Commit> = runs.iter().flat_map(accounted_for).collect();
        accounted.extend(landing.iter().filter_map(|candidate| Commit::parse(&candidate.tip)));
        accounted.extend(in_pull_requests(town, rig)?);
        let new = repository.new_commits(&known, tip, &accounted).map_err(&failed)?;
        let mut by_run: BTreeMap<usize, Vec<&NewCommit>> = BTreeMap::new();
        for commit in &new {
            if let Some(place) = maker(repository, &runs, commit).map_err(&failed)? {
                by_run.entry(place).or_default().push(commit);
            }
        }
        for (place, commits) in by_run {
            let words = pushed_past(rig, branch, &runs[place], &commits);
            report_finding(town, rig, &words, MessageTopic::ForeignCommits)?;
        }
        let gone = repository.new_commits(tip, &known, &[]).map_err(&failed)?;
        let landed =
            |new: &&NewCommit| runs.iter().any(|run| run.landing.commit == new.commit.as_str());
        let gone: Vec<&NewCommit> = gone.iter().filter(landed).collect();
        if !gone.is_empty() {
            let words = taken_away(rig, branch, &known, &gone, &runs);
            report_finding(town, rig, &words, MessageTopic::ForeignCommits)?;
        }
    }
    note_target(town, rig, branch, tip)
}

/// The commits that a run has brought to the origin, or left to people to bring there.
fn accounted_for(run: &Run) -> Vec<Commit> {
    let landed = Commit::parse(&run.landing.commit);
    let accepted = Commit::parse(&run.landing.accepted).filter(|_| !run.state.is_live());
    landed.into_iter().chain(accepted).collect()
}

/// The commits that we have pushed for pull requests, which people merge.
fn in_pull_requests(town: &Town, rig: &Rig) -> Result<Vec<Commit>> {
    town.read(|reader| {
        let mut commits = Vec::new();
        for request in reader.open_merge_requests()? {
            let branch = &request.pull_request.branch;
            if request.rig == rig.slug && !branch.is_empty() {
                let tips = reader.pull_request_tips(&request.id.bead, branch)?;
                commits.extend(tips.iter().filter_map(|tip| Commit::parse(&tip.commit)));
            }
        }
        Ok(commits)
    })
}

/// The run that made a commit, by its place in the list: the one whose branch has it and made it, else the last one of the
/// worker whose address it bears.
fn maker(
    repository: &Repository,
    runs: &[Run],
    new: &NewCommit,
) -> std::result::Result<Option<usize>, gt_executors::git::GitError> {
    let is_workers = |run: &Run| signature_of(run).email == new.email;
    for branch in repository.branches_with(&new.commit)? {
        let Some(place) = runs.iter().position(|run| run.workplace.branch == branch) else {
            continue;
        };
        if is_workers(&runs[place]) || repository.was_made_on(&branch, &new.commit)? {
            return Ok(Some(place));
        }
    }
    Ok(runs.iter().position(is_workers))
}

/// Commits with their subjects, the first of them if there are many.
fn named(commits: &[&NewCommit]) -> String {
    let named: Vec<String> = commits
        .iter()
        .take(NAMED_MAX)
        .map(|new| {
            let short = new.commit.as_str().get(..10).unwrap_or_default();
            format!("{short} \"{}\"", new.subject)
        })
        .collect();
    let more = match commits.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", named.join(", "))
}

fn taken_away(
    rig: &Rig,
    branch: &str,
    known: &Commit,
    commits: &[&NewCommit],
    runs: &[Run],
) -> String {
    let live: Vec<String> =
        runs.iter().filter(|run| run.state.is_live()).map(|run| run.id.to_string()).collect();
    let live = match live.as_slice() {
        [] => String::new(),
        live => format!(" At work now: {}.", live.join(", ")),
    };
    let short = known.as_str().get(..10).unwrap_or_default();
    format!(
        "{branch} at the origin of {} no longer has commits that gt landed: {}. A push has replaced them.{live} Nothing was \
         changed. The branch was at {short} before; merge that, or push it there again, if it was not meant",
        rig.slug,
        named(commits),
    )
}

fn pushed_past(rig: &Rig, branch: &str, run: &Run, commits: &[&NewCommit]) -> String {
    format!(
        "{branch} at the origin of {} has commits of {} that no landing brought there: {}. A process of {} \
         pushed them past gt, or a person took them from its branch. They are in {} ({}). Nothing was changed. Look at \
         them, and take them back with git revert if they are wrong",
        rig.slug,
        run.id,
        named(commits),
        run.id,
        run.workplace.tree,
        run.workplace.branch,
    )
}

/// The last commit that gt has seen on a branch of the origin.
fn known_target(town: &Town, rig: &Rig, branch: &str) -> Option<Commit> {
    let text = std::fs::read_to_string(target_path(town, rig, branch)).ok()?;
    Commit::parse(text.trim())
}

/// Records that gt has seen this commit on a branch of the origin, or has brought it there.
pub(crate) fn note_target(town: &Town, rig: &Rig, branch: &str, commit: &Commit) -> Result<()> {
    write(&target_path(town, rig, branch), commit.as_str().as_bytes())
}

fn target_path(town: &Town, rig: &Rig, branch: &str) -> PathBuf {
    directory(town, rig).join(format!("target-{}", file_name_of(branch)))
}

fn directory(town: &Town, rig: &Rig) -> PathBuf {
    directory_of(town, &rig.slug)
}

fn directory_of(town: &Town, rig: &RigSlug) -> PathBuf {
    town.root().join(gt_town::town::DIRECTORY).join("fence").join(rig.as_str())
}

fn write(path: &std::path::Path, contents: &[u8]) -> Result<()> {
    let failed = |source| OperationError::File { action: "write", path: path.to_owned(), source };
    let parent = path.parent().unwrap_or(path);
    private::create_dir_all(parent).map_err(failed)?;
    // The threads of a daemon write this for several workers at once.
    private::replace(path, contents).map_err(failed)
}

fn report_finding(town: &Town, rig: &Rig, words: &str, topic: MessageTopic) -> Result<()> {
    let body = MessageBody::parse(words)?;
    let from = Sender::Standing(MessageAddress::Refinery(rig.slug.clone()));
    town.write(|writer| {
        escalate_finding_in(writer, from.clone(), body.clone(), topic)?;
        Ok(())
    })
}

/// Records the state of the shared repository, if none is recorded yet. Called before its first worker starts.
pub(crate) fn remember_repository(town: &Town, rig: &Rig) -> Result<()> {
    let Some(trees) = Trees::of(town, rig) else { return Ok(()) };
    let (repository, failed) = (trees.repository(), git_failed(rig));
    let place = directory(town, rig);
    if !place.join("settings").exists() {
        write(&place.join("settings"), &repository.settings_file().map_err(&failed)?)?;
    }
    if !place.join("references").exists() {
        write_references(&place, &repository.shared_references().map_err(&failed)?)?;
    }
    Ok(())
}

/// Undoes changes to the settings of the shared repository that were made past the fence, before a run uses them, and tells
/// a person.
pub(crate) fn restore_settings(town: &Town, rig: &Rig, next: &Run) -> Result<()> {
    let Some(trees) = Trees::of(town, rig) else { return Ok(()) };
    let changed = put_back_settings(rig, &trees.repository(), &directory(town, rig))?;
    let at_work = others_at_work(town, rig, next)?;
    tell_changed(town, rig, &changed, &at_work, "")
}

/// Undoes changes to the shared repository that were made past the fence during a run, and tells a person.
pub(crate) fn undo_repository_changes(town: &Town, rig: &Rig, run: &Run) -> Result<()> {
    let Some(trees) = Trees::of(town, rig) else { return Ok(()) };
    let repository = trees.repository();
    let place = directory(town, rig);
    let mut changed = put_back_settings(rig, &repository, &place)?;
    let references = put_back_references(town, rig, run, &repository, &place)?;
    let kept = if references.is_empty() {
        String::new()
    } else {
        let path = repository.path().display();
        format!(". The commits of such references are kept under refs/gt/outside in {path}")
    };
    changed.extend(references);
    let mut at_work = vec![run.id.to_string()];
    at_work.extend(others_at_work(town, rig, run)?);
    tell_changed(town, rig, &changed, &at_work, &kept)
}

/// Restores the recorded settings of the shared repository, and names those that differed.
fn put_back_settings(
    rig: &Rig,
    repository: &Repository,
    place: &std::path::Path,
) -> Result<Vec<String>> {
    let failed = git_failed(rig);
    let Ok(before) = std::fs::read(place.join("settings")) else { return Ok(Vec::new()) };
    repository.free_settings();
    // A repository that is gone comes back with settings of its own.
    if repository.settings_file().is_ok_and(|now| now == before) || !repository.path().is_dir() {
        return Ok(Vec::new());
    }
    let restored = repository.put_back_settings(&before).map_err(&failed)?;
    write(&place.join("settings"), &restored.file)?;
    Ok(restored.names)
}

/// The other live runs of a rig.
fn others_at_work(town: &Town, rig: &Rig, run: &Run) -> Result<Vec<String>> {
    let live = town.read(|reader| Ok(reader.live_runs()?))?;
    let others = live.iter().filter(|other| other.rig == rig.slug && other.id != run.id);
    Ok(others.map(|other| other.id.to_string()).collect())
}

fn tell_changed(
    town: &Town,
    rig: &Rig,
    changed: &[String],
    at_work: &[String],
    kept: &str,
) -> Result<()> {
    if changed.is_empty() {
        return Ok(());
    }
    let at_work = match at_work {
        [] => String::new(),
        runs => format!(". At work then: {}", runs.join(", ")),
    };
    let words = format!(
        "{} of the repository that the workers of {} share was changed past gt, and is put back{at_work}{kept}",
        changed.join(", "),
        rig.slug,
    );
    report_finding(town, rig, &words, MessageTopic::RepositoryChanged)
}

fn put_back_references(
    town: &Town,
    rig: &Rig,
    run: &Run,
    repository: &Repository,
    place: &std::path::Path,
) -> Result<Vec<String>> {
    let failed = git_failed(rig);
    let Some(before) = noted_references(place) else { return Ok(Vec::new()) };
    let now: BTreeMap<String, Commit> =
        repository.shared_references().map_err(&failed)?.into_iter().collect();
    let mut changed: Vec<String> = Vec::new();
    if now != before {
        let names = before.keys().chain(now.keys().filter(|name| !before.contains_key(*name)));
        let mut differing: Vec<&String> =
            names.filter(|name| before.get(*name) != now.get(*name)).collect();
        if differing.iter().any(|name| name.starts_with("refs/tags/")) {
            // Our own fetch brings tags. If the origin does not answer, they are checked another time.
            let Ok(tags) = repository.tags_of_origin() else { return Ok(changed) };
            let tags: BTreeMap<String, Commit> = tags.into_iter().collect();
            differing.retain(|name| {
                !name.starts_with("refs/tags/") || tags.get(*name) != now.get(*name)
            });
        }
        for name in differing {
            let kept = kept_name(run, name);
            let values = (before.get(name), now.get(name));
            repository.put_back_reference(name, values, &kept).map_err(&failed)?;
            changed.push(name.clone());
        }
        write_references(place, &repository.shared_references().map_err(&failed)?)?;
    }
    changed.extend(put_back_branches(town, rig, run, repository)?);
    Ok(changed)
}

/// Restores the branches of other live runs that the worker of this one has moved.
fn put_back_branches(
    town: &Town,
    rig: &Rig,
    run: &Run,
    repository: &Repository,
) -> Result<Vec<String>> {
    let failed = git_failed(rig);
    let own = signature_of(run).email;
    let live = town.read(|reader| Ok(reader.live_runs()?))?;
    let mut changed = Vec::new();
    for other in live.iter().filter(|other| other.rig == rig.slug && other.id != run.id) {
        let branch = &other.workplace.branch;
        if branch.is_empty() || signature_of(other).email == own {
            continue;
        }
        let Some((old, new, email)) = repository.last_change_of(branch) else { continue };
        if email == own {
            let name = format!("refs/heads/{branch}");
            let kept = kept_name(run, &name);
            let values = (old.as_ref(), Some(&new));
            repository.put_back_reference(&name, values, &kept).map_err(&failed)?;
            changed.push(name);
        }
    }
    Ok(changed)
}

fn kept_name(run: &Run, reference: &str) -> String {
    let name = reference.trim_start_matches("refs/");
    format!("refs/gt/outside/{}/{name}", reference_part(&run.id))
}

/// Records that gt itself makes a reference of the shared repository, or with no commit that it did not.
pub(super) fn note_reference(
    town: &Town,
    rig: &RigSlug,
    name: &str,
    commit: Option<&Commit>,
) -> Result<()> {
    let place = directory_of(town, rig);
    let Some(mut references) = noted_references(&place) else { return Ok(()) };
    match commit {
        Some(commit) => references.insert(name.to_owned(), commit.clone()),
        None => references.remove(name),
    };
    write_references(&place, &references.into_iter().collect::<Vec<_>>())
}

/// The references that gt has left in the shared repository; nothing if none were recorded.
fn noted_references(place: &std::path::Path) -> Option<BTreeMap<String, Commit>> {
    let text = std::fs::read_to_string(place.join("references")).ok()?;
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    Some(lines.filter_map(|(hash, name)| Some((name.to_owned(), Commit::parse(hash)?))).collect())
}

fn write_references(place: &std::path::Path, references: &[(String, Commit)]) -> Result<()> {
    let lines: Vec<String> =
        references.iter().map(|(name, commit)| format!("{commit} {name}")).collect();
    let text = lines.join("\n");
    write(&place.join("references"), text.as_bytes())
}

/// Checks everything that a run may have done past the fence, when it is over. Where the origin is on another
/// machine, its branch is checked with the next fetch: the end of a run does not wait for it.
pub fn audit_run(town: &Town, rig: &Rig, run: &Run) -> Result<()> {
    let Some(trees) = Trees::of(town, rig) else { return Ok(()) };
    let repository = trees.repository();
    if repository.origin().is_ok_and(|origin| origin.starts_with('/')) {
        // An origin that is missing is noticed when something lands.
        let _ = repository.fetch();
    }
    let target = &run.workplace.base;
    if let Some(tip) = repository.tip(target).map_err(git_failed(rig))? {
        look_at_target(town, rig, &repository, target, &tip)?;
    }
    undo_repository_changes(town, rig, run)
}
