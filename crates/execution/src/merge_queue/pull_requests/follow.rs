//! Looking at the pull requests that are open, and acting on what people and the service did to them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use gt_core::hosting::{
    PolledPullRequest, PullRequest, PullRequestNext, PullRequestRecord, PullRequestRepair,
    PullRequestTip, PullRequestTrust, ShownFeedback, TrackedPullRequest, judge_pull_request,
};
use gt_core::merging::{
    MergeMethod, MergeRequest, MergeRequestId, OriginAnswer, RequestAction, RequestHold,
    RequestState,
};
use gt_core::{Rig, RigSlug, Timestamp};
use gt_executors::git::{Commit, GitError};
use gt_executors::hosting::{HostingError, HostingRefusal};
use gt_store::Reader;

use super::super::local_machine::LocalMachine;
use super::super::machine::{BuilderWait, HostingService, MergeMachine, MergeRepository};
use super::super::pass::PassReport;
use super::super::queue_name::QueueName;
use super::super::repair::schedule_repair_in;
use super::super::settle::land_in;
use super::super::unmerged::look_at_unmerged;
use super::hosted_rig::HostingFailure;
use super::publish::{CLOSED, base_changed, hold_changed_in};
use gt_beads::merge_requests::{RequestNote, act_in};
use gt_town::hosting::NoHosting;
use gt_town::hosts::other_host_of;
use gt_town::settings::{file_layers, layers_over};
use gt_town::tree_paths::git_failed;
use gt_town::{Result, Town, with_causes};

/// The delay before a service that cannot be asked is asked again, where nothing else is known.
const AWAY_DELAY: Duration = Duration::from_mins(1);
/// How often a pull request is judged in one look: the second time with a tip of others that was fetched.
const JUDGEMENTS_MAX: u32 = 2;

/// Most texts of a pull request that are kept for people; the service has all.
const SHOWN_TEXTS_MAX: usize = 100;

/// Which pull requests are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PullRequestPoll {
    /// Those of rigs where one is due.
    Due,
    /// Those of all rigs.
    Now,
}

/// An open request with a pull request.
struct Followed {
    request: MergeRequest,
    pull: TrackedPullRequest,
    number: u64,
}

/// When this host looks at pull requests next, if there are any.
pub(in super::super) fn next_poll(
    town: &Town,
    machine: &dyn MergeMachine,
) -> Result<Option<Timestamp>> {
    let (now, poll, host) = (town.now(), poll_setting(town)?, machine.host(town)?);
    let mut next: Option<Timestamp> = None;
    for one in town.read(followed_in)? {
        if other_host_of(town, &one.request.rig, &host)?.is_none() {
            let look = one.pull.next_look(now, poll);
            next = Some(next.map_or(look, |next| next.min(look)));
        }
    }
    Ok(next)
}

/// The time between two looks, as it is set.
pub(in super::super) fn poll_setting(town: &Town) -> Result<Duration> {
    let files = file_layers(town)?;
    town.read(|reader| Ok(layers_over(&files, reader)?.pr_poll()?))
}

fn followed_in(reader: &Reader<'_>) -> Result<Vec<Followed>> {
    let mut followed = Vec::new();
    for request in reader.open_merge_requests()? {
        let Some(number) = request.pull_request.number.filter(|_| is_followed(&request)) else {
            continue;
        };
        let branch = request.pull_request.branch.clone();
        let pull = reader.pull_request(&request.id.bead, &branch)?;
        let pull = pull.unwrap_or_else(|| TrackedPullRequest {
            bead: request.id.bead.clone(),
            branch,
            fingerprint: String::new(),
            due_at: Timestamp::from_nanos(0),
            repaired_head: String::new(),
            waits_for: String::new(),
        });
        followed.push(Followed { request, pull, number });
    }
    Ok(followed)
}

/// Whether news about the pull request of a request matter now. One that is in line, or will be by itself, looks at it
/// when it is published.
fn is_followed(request: &MergeRequest) -> bool {
    request.method == MergeMethod::PullRequest
        && match request.state {
            RequestState::Held(_) => request.retry_at.is_none(),
            RequestState::Failed | RequestState::Conflict => true,
            RequestState::Queued
            | RequestState::Building
            | RequestState::Checking
            | RequestState::Landing
            | RequestState::Landed
            | RequestState::Review
            | RequestState::Cancelled
            | RequestState::Superseded => false,
        }
}

/// Looks at the pull requests of a rig, or of all, and at work that people are to merge, now.
pub fn sync(town: &Town, program: &Path, rig: Option<&RigSlug>) -> Result<PassReport> {
    sync_on(town, &LocalMachine { program }, rig, BuilderWait::Waits)
}

/// The same on any machine.
pub fn sync_on(
    town: &Town,
    machine: &dyn MergeMachine,
    rig: Option<&RigSlug>,
    wait: BuilderWait,
) -> Result<PassReport> {
    let mut report = PassReport::default();
    follow(town, machine, rig, PullRequestPoll::Now, wait, &mut report)?;
    look_at_unmerged(town, machine, rig, wait, &mut report)?;
    Ok(report)
}

/// Looks at those that are due.
pub(in super::super) fn follow_due(
    town: &Town,
    machine: &dyn MergeMachine,
    wait: BuilderWait,
    report: &mut PassReport,
) -> Result<()> {
    follow(town, machine, None, PullRequestPoll::Due, wait, report)
}

fn follow(
    town: &Town,
    machine: &dyn MergeMachine,
    only: Option<&RigSlug>,
    which: PullRequestPoll,
    wait: BuilderWait,
    report: &mut PassReport,
) -> Result<()> {
    let town = &town.as_system();
    let poll = poll_setting(town)?;
    let mut rigs: BTreeMap<RigSlug, Vec<Followed>> = BTreeMap::new();
    for one in town.read(followed_in)? {
        if only.is_none_or(|only| one.request.rig == *only) {
            rigs.entry(one.request.rig.clone()).or_default().push(one);
        }
    }
    for (slug, followed) in rigs {
        let now = town.now();
        let is_due = followed.iter().any(|one| one.pull.next_look(now, poll) <= now);
        if which == PullRequestPoll::Due && !is_due {
            continue;
        }
        if other_host_of(town, &slug, &machine.host(town)?)?.is_some() {
            continue;
        }
        // Requests for all branches are looked at with one call.
        let name = QueueName { rig: slug.clone(), target: String::new() };
        let Some(_turn) = machine.lock_queue(town, &name, wait)? else { continue };
        let rig = town.read(|reader| Ok(reader.rig(slug.as_str())?))?;
        let repository = rig.as_ref().and_then(|rig| machine.repository(town, rig));
        let Some((rig, repository)) = rig.as_ref().zip(repository) else {
            report.problems.push((name, format!("the rig {slug} has no repository")));
            continue;
        };
        let looked: Result<BTreeSet<MergeRequestId>> = (|| {
            let mut watch = PullRequestWatch::new(town, rig, repository.as_ref())?;
            watch.look(machine, which)?;
            Ok(watch.changed)
        })();
        match looked {
            Ok(changed) => {
                for id in changed {
                    report.changed.extend(town.read(|reader| Ok(reader.merge_request(&id)?))?);
                }
            }
            Err(error) if error.is_of_store() => return Err(error),
            Err(error) => report.problems.push((name, with_causes(&error))),
        }
    }
    Ok(())
}

/// One look at the pull requests of a rig.
struct PullRequestWatch<'a> {
    town: &'a Town,
    rig: &'a Rig,
    repository: &'a dyn MergeRepository,
    repairs_max: u32,
    changed: BTreeSet<MergeRequestId>,
}

/// The outcome of a look at one pull request.
struct LookOutcome {
    /// The reason why it waits, in words.
    waits_for: String,
    /// Whether it needs no other look before it changes.
    is_settled: bool,
    /// The head commit whose failed checks or conflict get a repair now.
    repaired_head: Option<String>,
}

impl LookOutcome {
    fn waits(words: impl Into<String>, is_settled: bool) -> Self {
        Self { waits_for: words.into(), is_settled, repaired_head: None }
    }
}

impl<'a> PullRequestWatch<'a> {
    fn new(town: &'a Town, rig: &'a Rig, repository: &'a dyn MergeRepository) -> Result<Self> {
        let files = file_layers(town)?;
        let repairs = town.read(|reader| Ok(layers_over(&files, reader)?.mq_repairs()?))?;
        Ok(Self {
            town,
            rig,
            repository,
            repairs_max: u32::try_from(repairs).unwrap_or(0),
            changed: BTreeSet::new(),
        })
    }

    fn look(&mut self, machine: &dyn MergeMachine, which: PullRequestPoll) -> Result<()> {
        let hosted = match machine.hosting(self.town, self.rig)? {
            Ok(hosted) => hosted,
            Err(NoHosting(words)) => {
                let later = self.town.now().plus(AWAY_DELAY);
                let followed = self.town.read(followed_in)?;
                for one in followed.iter().filter(|one| one.request.rig == self.rig.slug) {
                    self.hold(one, RequestHold::HostingTool, &words)?;
                    self.save(one, &LookOutcome::waits(&*words, false), "", later)?;
                }
                return Ok(());
            }
        };
        let hosted = hosted.as_ref();
        let followed = self.claim(which, hosted.poll_interval())?;
        if followed.is_empty() {
            return Ok(());
        }
        let numbers: Vec<u64> = followed.iter().map(|one| one.number).collect();
        let polled = match hosted.poll(&numbers) {
            Ok(polled) => polled,
            Err(error) => return self.service_failed(&followed, &error),
        };
        let mut own_login = None;
        let mut is_fetched = false;
        for (index, one) in followed.iter().enumerate() {
            let fingerprint = fingerprint_of(&polled, one.number, hosted.trust());
            let is_same = !fingerprint.is_empty() && fingerprint == one.pull.fingerprint;
            if is_same && is_at_rest(&one.request) {
                continue;
            }
            let asked = (|| {
                let login = match &own_login {
                    Some(login) => String::clone(login),
                    None => hosted.login()?,
                };
                own_login = Some(login.clone());
                Ok((login, hosted.show(one.number)?))
            })();
            let (login, shown) = match asked {
                Ok(asked) => asked,
                Err(HostingError::Refused { reason: HostingRefusal::NotFound, words }) => {
                    let words = format!("the hosting service does not show it any more: {words}");
                    self.hold_changed(one, &words)?;
                    continue;
                }
                Err(error) => return self.service_failed(&followed[index..], &error),
            };
            if !is_fetched {
                match self.repository.fetch() {
                    Ok(()) => is_fetched = true,
                    // Without the target nothing can be said; it is looked at again.
                    Err(GitError::Unreachable { message, .. }) => {
                        let due_at = self.town.now().plus(hosted.poll_interval());
                        let outcome = LookOutcome::waits(message, false);
                        self.save(one, &outcome, "", due_at)?;
                        continue;
                    }
                    Err(error) => return Err(git_failed(self.rig)(error)),
                }
            }
            let outcome = self.judge(hosted, one, &shown, &login)?;
            let due_at = self.town.now().plus(hosted.poll_interval());
            self.save(one, &outcome, &fingerprint, due_at)?;
        }
        Ok(())
    }

    /// The requests of the rig with a pull request. Others that look at the same time find nothing due.
    fn claim(&self, which: PullRequestPoll, poll: Duration) -> Result<Vec<Followed>> {
        let due_at = self.town.now().plus(poll);
        self.town.write(|writer| {
            let mut followed = followed_in(writer)?;
            followed.retain(|one| one.request.rig == self.rig.slug);
            let now = writer.now();
            let is_due = followed.iter().any(|one| one.pull.next_look(now, poll) <= now);
            if which == PullRequestPoll::Due && !is_due {
                return Ok(Vec::new());
            }
            for one in &mut followed {
                writer.save_pull_request(&TrackedPullRequest { due_at, ..one.pull.clone() })?;
            }
            Ok(followed)
        })
    }

    fn judge(
        &mut self,
        hosted: &dyn HostingService,
        one: &Followed,
        shown: &PullRequest,
        own_login: &str,
    ) -> Result<LookOutcome> {
        let failed = git_failed(self.rig);
        let request = &one.request;
        let bead = &request.id.bead;
        let repaired = self.town.read(|reader| Ok(reader.repaired_feedback(bead)?))?;
        let merge_is_in_target = match shown.merge_commit.as_deref().and_then(Commit::parse) {
            Some(commit) => {
                self.repository.origin_has(&request.target, &commit).map_err(&failed)?
            }
            None => false,
        };
        let mut waits_for = String::new();
        for _ in 0..JUDGEMENTS_MAX {
            let tips = self.tips(one)?;
            let known_heads: Vec<String> = tips.iter().map(|tip| tip.commit.clone()).collect();
            let record = PullRequestRecord {
                base_branch: &request.target,
                known_heads: &known_heads,
                repaired_head: Some(one.pull.repaired_head.as_str())
                    .filter(|head| !head.is_empty()),
                repaired_feedback: &repaired,
                trust: hosted.trust(),
                own_login,
            };
            let verdict = judge_pull_request(&record, shown, merge_is_in_target, self.town.now());
            let is_settled = verdict.is_settled;
            self.show(one, &verdict.shown)?;
            match verdict.next {
                PullRequestNext::Landed { commit } => {
                    return self.land(hosted, one, &commit);
                }
                PullRequestNext::MergedNotSeen { .. } => {
                    let words =
                        format!("it is merged, and {} does not have it yet", request.target);
                    return Ok(LookOutcome::waits(words, false));
                }
                PullRequestNext::MergedElsewhere { base } => {
                    let words =
                        format!("a person has merged it into {base}, not {}", request.target);
                    self.hold_changed(one, &words)?;
                    return Ok(LookOutcome::waits(words, is_settled));
                }
                PullRequestNext::ClosedUnmerged => {
                    self.hold_changed(one, CLOSED)?;
                    return Ok(LookOutcome::waits(CLOSED, is_settled));
                }
                PullRequestNext::BaseChanged { base } => {
                    let words = base_changed(request, &base);
                    self.hold_changed(one, &words)?;
                    return Ok(LookOutcome::waits(words, is_settled));
                }
                PullRequestNext::ForeignHead { commit } => {
                    waits_for = format!("others have pushed {} to its branch", short_id(&commit));
                    self.adopt_tip(hosted, one)?;
                }
                PullRequestNext::Repair(repair) => {
                    self.resume(one)?;
                    let words = repair_words(&repair);
                    return self.send_back(one, shown, &repair, RequestAction::FailCheck, &words);
                }
                PullRequestNext::Conflict(repair) => {
                    self.resume(one)?;
                    let words = self.conflict_words(request, &shown.head_commit)?;
                    return self.send_back(
                        one,
                        shown,
                        &repair,
                        RequestAction::MeetConflict,
                        &words,
                    );
                }
                PullRequestNext::Wait(wait) => {
                    self.resume(one)?;
                    return Ok(LookOutcome::waits(wait.words(), is_settled));
                }
            }
        }
        Ok(LookOutcome::waits(waits_for, false))
    }

    fn tips(&self, one: &Followed) -> Result<Vec<PullRequestTip>> {
        let (bead, branch) = (&one.request.id.bead, one.pull.branch.as_str());
        self.town.read(|reader| Ok(reader.pull_request_tips(bead, branch)?))
    }

    /// Keeps the texts that start no repair, for people.
    fn show(&self, one: &Followed, texts: &[ShownFeedback]) -> Result<()> {
        let (bead, branch) = (&one.request.id.bead, one.pull.branch.as_str());
        let known = self.town.read(|reader| Ok(reader.pull_request_texts(bead, branch)?))?;
        let newest = &texts[texts.len().saturating_sub(SHOWN_TEXTS_MAX)..];
        if known == newest {
            return Ok(());
        }
        self.town.write(|writer| Ok(writer.set_pull_request_texts(bead, branch, newest)?))
    }

    /// Fetches the tip of others, so that the next commit is built upon it.
    fn adopt_tip(&self, hosted: &dyn HostingService, one: &Followed) -> Result<()> {
        let (bead, branch) = (&one.request.id.bead, one.pull.branch.as_str());
        let tip = match hosted.hosted_tip(branch) {
            Ok(tip) => tip,
            Err(GitError::Unreachable { .. }) => return Ok(()),
            Err(error) => return Err(git_failed(self.rig)(error)),
        };
        let Some(tip) = tip else { return Ok(()) };
        let is_known = self.tips(one)?.iter().any(|known| known.commit == tip.as_str());
        if is_known {
            return Ok(());
        }
        let foreign = PullRequestTip { commit: tip.to_string(), accepted: String::new() };
        self.town.write(|writer| Ok(writer.add_pull_request_tip(bead, branch, &foreign)?))
    }

    /// Records that a request has landed, and deletes its branch if its tip is ours. A run that is at it may still add to
    /// it, so its end comes first.
    fn land(
        &mut self,
        hosted: &dyn HostingService,
        one: &Followed,
        commit: &str,
    ) -> Result<LookOutcome> {
        let Followed { request, .. } = one;
        let landed = self.town.write(|writer| {
            if writer.live_run(&request.id.bead)?.is_some() {
                return Ok(None);
            }
            land_in(writer, &request.id, &request.target, commit)
        })?;
        let Some(landed) = landed else {
            return Ok(LookOutcome::waits("it is merged; its run is not over yet", false));
        };
        self.changed.insert(landed.id);
        if let Ok(Some(tip)) = self.repository.tip(&request.target) {
            // If this cannot be recorded, the commits are looked at again.
            let _ = self.repository.note_target(self.town, &request.target, &tip);
        }
        self.delete_branch(hosted, one);
        Ok(LookOutcome::waits("", true))
    }

    /// Deletes the branch of a pull request that was merged. A branch that cannot be deleted, or has commits of others, stays.
    fn delete_branch(&self, hosted: &dyn HostingService, one: &Followed) {
        let branch = one.pull.branch.as_str();
        let (Ok(tips), Ok(Some(tip))) = (self.tips(one), hosted.hosted_tip(branch)) else {
            return;
        };
        let is_ours = tips.iter().any(|known| known.is_ours() && known.commit == tip.as_str());
        if is_ours {
            // A rest of it does no harm.
            let _ = hosted.delete(branch, &tip);
        }
    }

    /// The files that conflict with the target, as far as they can be found here.
    fn conflict_words(&self, request: &MergeRequest, head: &str) -> Result<String> {
        let failed = git_failed(self.rig);
        let target = &request.target;
        let tip = self.repository.tip(target).map_err(&failed)?;
        let head = match Commit::parse(head) {
            Some(head) if self.repository.has(&head).map_err(&failed)? => Some(head),
            _ => None,
        };
        let Some((tip, head)) = tip.zip(head) else {
            return Ok(format!("the hosting service reports a conflict with {target}"));
        };
        let paths = self.repository.conflicting_paths(&head, &tip).map_err(&failed)?;
        let tip = short_id(tip.as_str());
        Ok(if paths.is_empty() {
            format!("the hosting service reports a conflict with {target} (on {tip})")
        } else {
            let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            format!("{} (on {tip})", paths.join(", "))
        })
    }

    /// Sends a request back to its author with what failed and what people said, once for each.
    fn send_back(
        &mut self,
        one: &Followed,
        shown: &PullRequest,
        repair: &PullRequestRepair,
        action: RequestAction,
        words: &str,
    ) -> Result<LookOutcome> {
        let (request, repairs) = (&one.request, self.repairs_max);
        let sent = self.town.write(|writer| {
            let current = writer.merge_request(&request.id)?;
            let open = RequestState::Held(RequestHold::PullRequestOpen);
            if current.is_none_or(|current| current.state != open) {
                return Ok(None);
            }
            let note = RequestNote { counts_as_try: true, ..RequestNote::words(words) };
            let sent = act_in(writer, &request.id, action, OriginAnswer::Unknown, note)?;
            if let Some(sent) = &sent {
                writer.add_pull_request_repair(&sent.id, repair)?;
                schedule_repair_in(self.town, writer, sent, repairs)?;
            }
            Ok(sent)
        })?;
        let Some(sent) = sent else {
            return Ok(LookOutcome::waits(words, false));
        };
        self.changed.insert(sent.id);
        let is_of_head = action == RequestAction::MeetConflict || !repair.checks.is_empty();
        let repaired_head = is_of_head.then(|| shown.head_commit.clone());
        Ok(LookOutcome { waits_for: words.to_owned(), is_settled: true, repaired_head })
    }

    /// A pull request that was changed and is as before again, or that can be looked at again, waits for people as before.
    fn resume(&mut self, one: &Followed) -> Result<()> {
        match one.request.state {
            RequestState::Held(
                RequestHold::PullRequestChanged
                | RequestHold::HostingTool
                | RequestHold::OriginRefused,
            ) => {}
            _ => return Ok(()),
        }
        let tips = self.tips(one)?;
        let last = tips.iter().rev().find(|tip| tip.is_ours());
        if last.is_some_and(|tip| tip.accepted == one.request.accepted) {
            return self.hold(one, RequestHold::PullRequestOpen, "");
        }
        // Its branch does not have the commit yet.
        let again = self.town.write(|writer| {
            let (action, note) = (RequestAction::Requeue, RequestNote::default());
            act_in(writer, &one.request.id, action, OriginAnswer::Unknown, note)
        })?;
        self.changed.extend(again.map(|request| request.id));
        Ok(())
    }

    fn hold(&mut self, one: &Followed, reason: RequestHold, words: &str) -> Result<()> {
        let is_held = matches!(one.request.state, RequestState::Held(_));
        let is_same =
            one.request.state == RequestState::Held(reason) && one.request.detail == words;
        if is_same || !is_held {
            return Ok(());
        }
        let held = self.town.write(|writer| {
            let note = RequestNote::words(words);
            act_in(
                writer,
                &one.request.id,
                RequestAction::Hold(reason),
                OriginAnswer::Unknown,
                note,
            )
        })?;
        self.changed.extend(held.map(|request| request.id));
        Ok(())
    }

    fn hold_changed(&mut self, one: &Followed, words: &str) -> Result<()> {
        // A repair that is under way finds out when it pushes.
        if !matches!(one.request.state, RequestState::Held(_)) {
            return Ok(());
        }
        let held = self.town.write(|writer| hold_changed_in(writer, &one.request, words))?;
        self.changed.extend(held.map(|request| request.id));
        Ok(())
    }

    /// Nothing is known about these: they are looked at later, and held if a person has to do something for it.
    fn service_failed(&mut self, followed: &[Followed], error: &HostingError) -> Result<()> {
        let now = self.town.now();
        let failure = HostingFailure::of(error, &self.rig.slug, now);
        let due_at = failure.retry_at.unwrap_or_else(|| now.plus(AWAY_DELAY));
        for one in followed {
            if let Some(hold) = failure.hold {
                self.hold(one, hold, &failure.words)?;
            }
            self.save(one, &LookOutcome::waits(&*failure.words, false), "", due_at)?;
        }
        Ok(())
    }

    fn save(
        &self,
        one: &Followed,
        outcome: &LookOutcome,
        fingerprint: &str,
        due_at: Timestamp,
    ) -> Result<()> {
        let repaired = outcome.repaired_head.clone();
        self.town.write(|writer| {
            Ok(writer.save_pull_request(&TrackedPullRequest {
                fingerprint: if outcome.is_settled {
                    fingerprint.to_owned()
                } else {
                    String::new()
                },
                due_at,
                repaired_head: repaired.unwrap_or_else(|| one.pull.repaired_head.clone()),
                waits_for: outcome.waits_for.clone(),
                ..one.pull.clone()
            })?)
        })
    }
}

/// Whether a request stays as it is while its pull request does.
fn is_at_rest(request: &MergeRequest) -> bool {
    !matches!(
        request.state,
        RequestState::Held(RequestHold::HostingTool | RequestHold::OriginRefused)
    )
}

/// Everything that the judgement depends on. Another setting of trust judges the texts that are there again.
fn fingerprint_of(polled: &[PolledPullRequest], number: u64, trust: &PullRequestTrust) -> String {
    let found = polled.iter().find(|polled| polled.number == number);
    let fingerprint = found.and_then(|polled| polled.fingerprint.as_ref());
    fingerprint.map(|fingerprint| format!("{fingerprint} {trust}")).unwrap_or_default()
}

/// Why a pull request goes back, in words of ours alone: texts of others are quoted in the briefing.
fn repair_words(repair: &PullRequestRepair) -> String {
    let mut words = Vec::new();
    if !repair.checks.is_empty() {
        let names: Vec<&str> = repair.checks.iter().map(|check| check.name.as_str()).collect();
        words.push(format!("checks of the pull request fail: {}", names.join(", ")));
    }
    match repair.feedback.len() {
        0 => {}
        1 => words.push("a comment on the pull request is to be answered".to_owned()),
        more => words.push(format!("{more} comments on the pull request are to be answered")),
    }
    words.join("; ")
}

/// As much of a commit id as tells it from others.
fn short_id(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}
