use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use gt_executors::git::{
    AppliedAs, CandidateBuild, CandidateMember, Commit, CommitTrailer, DiffOptions, DiffStat,
    LandMethod, LandedRange, MemberOutcome, Push, Repository, RevertCommit, Signature,
};
use gt_testkit::write_program;

use crate::support::{
    Rig, commit_everything, files, git, git_command, make_repository, same_patches, shown, try_git,
    write,
};

fn ada() -> Signature {
    Signature { name: "Ada L.".to_owned(), email: "ada@example.org".to_owned() }
}

fn trailer(key: &str, value: &str) -> CommitTrailer {
    CommitTrailer { key: key.to_owned(), value: value.to_owned() }
}

pub(crate) fn member(name: &str, commit: &Commit) -> CandidateMember {
    CandidateMember {
        commit: commit.clone(),
        base: None,
        name: name.to_owned(),
        message: None,
        trailers: Vec::new(),
        signature: ada(),
        replaced_author: None,
    }
}

/// A worker in a plain clone of the shared repository's commits: one branch for each piece of work.
pub(crate) struct Workbench {
    pub(crate) rig: Rig,
    path: PathBuf,
}

impl Workbench {
    pub(crate) fn new() -> Self {
        let rig = Rig::new();
        let tree = rig.tree("nux");
        let path = tree.path().to_owned();
        Self { rig, path }
    }

    pub(crate) fn repository(&self) -> &Repository {
        &self.rig.repository
    }

    /// Begins work at a commit.
    pub(crate) fn begin(&self, commit: &Commit) {
        git(&self.path, ["checkout", "--quiet", "--detach", commit.as_str()]);
    }

    fn git(&self, arguments: &[&str]) -> String {
        git(&self.path, arguments)
    }

    /// Commits all files of the tree.
    fn commit(&self, message: &str) -> Commit {
        git(&self.path, ["add", "--all"]);
        git(&self.path, ["commit", "--quiet", "--allow-empty", "--message", message]);
        self.head()
    }

    fn head(&self) -> Commit {
        Commit::parse(&self.git(&["rev-parse", "HEAD"])).unwrap()
    }

    /// Changes one file at the commit where the tree is.
    pub(crate) fn change(&self, file: &str, content: &str) -> Commit {
        write(&self.path, file, content);
        self.commit(&format!("change {file}"))
    }

    /// A piece of work of one commit that begins at the base.
    pub(crate) fn work(&self, file: &str, content: &str) -> Commit {
        self.begin(&self.rig.base());
        self.change(file, content)
    }

    fn build(&self, members: &[CandidateMember], method: LandMethod) -> CandidateBuild {
        self.repository().build_candidate("c1", &self.rig.base(), members, method).unwrap()
    }

    pub(crate) fn rebase(&self, commits: &[&Commit]) -> CandidateBuild {
        let members: Vec<CandidateMember> = commits
            .iter()
            .enumerate()
            .map(|(at, commit)| member(&format!("al-{at}"), commit))
            .collect();
        self.build(&members, LandMethod::Rebase)
    }

    /// What git shows of a commit in our own repository.
    fn show(&self, commit: &Commit, format: &str) -> String {
        let format = format!("--format={format}");
        git(&self.repository().own_path(), ["show", "--no-patch", &format, commit.as_str()])
    }

    fn subjects(&self, from: &Commit, to: &Commit) -> Vec<String> {
        let range = format!("{from}..{to}");
        let log = git(
            &self.repository().own_path(),
            ["log", "--reverse", "--topo-order", "--format=%s", &range],
        );
        log.lines().map(str::to_owned).collect()
    }
}

fn commits_of(outcome: &MemberOutcome) -> &[(Commit, Commit)] {
    let MemberOutcome::Applied { commits, .. } = outcome else { panic!("{outcome:?}") };
    commits
}

fn applied_as(outcome: &MemberOutcome) -> AppliedAs {
    let MemberOutcome::Applied { applied_as, .. } = outcome else { panic!("{outcome:?}") };
    *applied_as
}

fn conflicting(outcome: &MemberOutcome) -> Vec<String> {
    let MemberOutcome::Conflict { paths, .. } = outcome else { panic!("{outcome:?}") };
    paths.iter().map(|path| path.display().to_string()).collect()
}

#[test]
fn members_are_applied_in_their_order() {
    let bench = Workbench::new();
    let base = bench.rig.base();
    let (one, two, three) = (bench.work("1", "1"), bench.work("2", "2"), bench.work("3", "3"));
    let built = bench.rebase(&[&two, &three, &one]);
    assert_eq!(bench.subjects(&base, &built.tip), ["change 2", "change 3", "change 1"]);
    assert_eq!(files(bench.repository(), &built.tip), ["1", "2", "3", "file.txt"]);
    assert_eq!(built.tree, bench.repository().tree_of(&built.tip).unwrap());
    let mut tip = base;
    for (outcome, commit) in built.members.iter().zip([&two, &three, &one]) {
        let MemberOutcome::Applied { before, after, commits, applied_as } = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!((before, *applied_as), (&tip, AppliedAs::Commits));
        assert_eq!(*commits, [(commit.clone(), after.clone())]);
        tip = after.clone();
    }
    assert_eq!(tip, built.tip);
    assert_eq!(commits_of(&built.members[0])[0].1, two, "the first goes on from the base");
    assert_eq!(bench.show(&built.tip, "%an %cn"), "agent Ada L.");
}

#[test]
fn members_that_do_not_apply_are_left_out() {
    let bench = Workbench::new();
    let base = bench.rig.base();
    let one = bench.work("file.txt", "one\n");
    let two = bench.work("file.txt", "two\n");
    let three = bench.work("other", "3");
    let built = bench.rebase(&[&one, &two, &three]);
    assert_eq!(conflicting(&built.members[1]), ["file.txt"]);
    assert_eq!(bench.subjects(&base, &built.tip), ["change file.txt", "change other"]);
    assert_eq!(shown(bench.repository(), &built.tip, "file.txt"), "one");
}

#[test]
fn changes_that_are_there_become_nothing() {
    let bench = Workbench::new();
    let base = bench.rig.base();
    let one = bench.work("same", "x");
    let again = bench.work("same", "x");
    // Two commits in one second would be the same commit.
    let again = if again == one { bench.commit("empty") } else { again };
    let built = bench.rebase(&[&one, &again, &base, &one]);
    assert_eq!(built.members[2], MemberOutcome::AlreadyThere);
    assert_eq!(built.members[3], MemberOutcome::AlreadyThere);
    let nothing = bench.rebase(&[&base]);
    assert_eq!((nothing.tip, &nothing.members[0]), (base.clone(), &MemberOutcome::AlreadyThere));

    // Part of it is there.
    bench.begin(&base);
    bench.git(&["commit", "--quiet", "--allow-empty", "--message", "first"]);
    bench.change("same", "x");
    let more = bench.change("more", "y");
    let built = bench.rebase(&[&one, &more]);
    assert_eq!(bench.subjects(&base, &built.tip), ["change same", "first", "change more"]);
    assert_eq!(commits_of(&built.members[1]).len(), 2);
}

#[test]
fn a_member_without_a_change_of_its_own_is_already_there() {
    let bench = Workbench::new();
    let one = bench.work("same", "x");
    bench.begin(&bench.rig.base());
    write(&bench.path, "same", "x");
    let two = bench.commit("another message");
    let built = bench.rebase(&[&one, &two]);
    assert_eq!(built.members[1], MemberOutcome::AlreadyThere);
    assert_eq!(built.tip, one);
}

#[test]
fn work_on_top_of_other_work_lands_after_it() {
    let bench = Workbench::new();
    let base = bench.rig.base();
    let zero = bench.work("0", "0");
    let lower = bench.work("lower", "x");
    bench.change("upper", "y");
    let upper = bench.change("top", "z");
    let mut stacked = member("al-2", &upper);
    stacked.base = Some(lower.clone());
    let members = [member("al-0", &zero), member("al-1", &lower), stacked];
    let built = bench.build(&members, LandMethod::Rebase);
    let subjects = ["change 0", "change lower", "change upper", "change top"];
    assert_eq!(bench.subjects(&base, &built.tip), subjects);

    // Without the lower one, only the commits after it come along.
    let built = bench.build(&[members[0].clone(), members[2].clone()], LandMethod::Rebase);
    assert_eq!(bench.subjects(&base, &built.tip), ["change 0", "change upper", "change top"]);
    assert_eq!(files(bench.repository(), &built.tip), ["0", "file.txt", "top", "upper"]);
}

#[test]
fn merges_are_kept() {
    let bench = Workbench::new();
    let base = bench.rig.base();
    let zero = bench.work("0", "0");
    let side = bench.work("side", "s");
    bench.begin(&base);
    bench.change("main", "m");
    bench.git(&["merge", "--quiet", "--no-ff", "--no-commit", side.as_str()]);
    write(&bench.path, "precious", "only the merge has it");
    let merged = bench.commit("merge with a change");

    let alone = bench.rebase(&[&merged]);
    assert_eq!(alone.tip, merged, "it begins at the base");

    let built = bench.rebase(&[&zero, &merged]);
    assert_eq!(applied_as(&built.members[1]), AppliedAs::Merged);
    assert_eq!(bench.show(&built.tip, "%P"), format!("{zero} {merged}"));
    assert_eq!(
        files(bench.repository(), &built.tip),
        ["0", "file.txt", "main", "precious", "side"]
    );
    assert_eq!(commits_of(&built.members[1]).len(), 3);

    // Work that the merge has brought along is there.
    let built = bench.rebase(&[&zero, &merged, &side]);
    assert_eq!(built.members[2], MemberOutcome::AlreadyThere);
}

#[test]
fn merges_that_begin_at_the_base_keep_their_shape_when_they_get_trailers() {
    let bench = Workbench::new();
    let side = bench.work("side", "s");
    bench.begin(&bench.rig.base());
    bench.change("main", "m");
    bench.git(&["merge", "--quiet", "--no-ff", "-m", "merge", side.as_str()]);
    let merged = bench.head();
    let mut one = member("al-1", &merged);
    one.trailers = vec![trailer("Bead", "al-1")];
    let built = bench.build(&[one], LandMethod::Rebase);
    assert_ne!(built.tip, merged);
    assert_eq!(bench.show(&built.tip, "%T"), bench.show(&merged, "%T"));
    assert_eq!(bench.show(&built.tip, "%P").split(' ').count(), 2);
    let out: Vec<&Commit> = commits_of(&built.members[0]).iter().map(|(_, out)| out).collect();
    assert_eq!(out.len(), 3);
    for commit in out {
        assert!(bench.show(commit, "%B").ends_with("Bead: al-1"));
    }
}

#[test]
fn commits_of_another_branch_that_work_has_merged_stay_the_same() {
    let bench = Workbench::new();
    let repository = bench.repository();
    let other = bench.work("other", "o");
    let limit = Duration::from_mins(1);
    assert_eq!(repository.push(&other, "other", None, limit).unwrap(), Push::Done);
    repository.fetch().unwrap();
    bench.begin(&bench.rig.base());
    let own = bench.change("main", "m");
    bench.git(&["merge", "--quiet", "--no-ff", "-m", "merge", other.as_str()]);
    let mut one = member("al-1", &bench.head());
    one.trailers = vec![trailer("Bead", "al-1")];

    let built = bench.build(&[one], LandMethod::Rebase);

    let parents = bench.show(&built.tip, "%P");
    assert!(parents.ends_with(other.as_str()), "{parents}");
    assert!(!parents.contains(own.as_str()), "its own commits have trailers");
    assert_eq!(bench.show(&built.tip, "%(trailers)").trim(), "Bead: al-1");
}

#[test]
fn squashed_work_is_one_commit_with_its_message_and_its_authors() {
    let bench = Workbench::new();
    let base = bench.rig.base();
    let zero = bench.work("0", "0");
    bench.begin(&base);
    bench.change("a", "1");
    bench.git(&["commit", "--quiet", "--amend", "--no-edit", "--author=Grace <grace@example.org>"]);
    let two = bench.change("a", "2");
    let mut squashed = member("al-2", &two);
    squashed.message = Some("Add a\n\nBecause.".to_owned());
    squashed.trailers = vec![trailer("Bead", "al-2")];
    squashed.replaced_author =
        Some(Signature { name: "agent".to_owned(), email: "agent@rig".to_owned() });
    let built = bench.build(&[member("al-0", &zero), squashed], LandMethod::Squash);
    assert_eq!(applied_as(&built.members[1]), AppliedAs::Squashed);
    assert_eq!(commits_of(&built.members[1]).len(), 2);
    let message = "Add a\n\nBecause.\n\nBead: al-2\nCo-authored-by: Grace <grace@example.org>";
    assert_eq!(bench.show(&built.tip, "%B"), message);
    assert_eq!(bench.show(&built.tip, "%an <%ae>"), "Ada L. <ada@example.org>");
    assert_eq!(bench.subjects(&base, &built.tip).len(), 2);
    assert_eq!(shown(bench.repository(), &built.tip, "a"), "2");
}

#[test]
fn merged_work_has_a_merge_commit_even_at_the_base() {
    let bench = Workbench::new();
    let base = bench.rig.base();
    let one = bench.work("1", "1");
    let two = bench.work("2", "2");
    let mut first = member("al-1", &one);
    first.message = Some("Merge al-1: Add one".to_owned());
    first.trailers = vec![trailer("Bead", "al-1"), trailer("Run", "al-1#1")];
    let built = bench.build(&[first, member("al-2", &two)], LandMethod::Merge);
    let MemberOutcome::Applied { after, applied_as, .. } = &built.members[0] else { panic!() };
    assert_eq!(*applied_as, AppliedAs::Merged);
    assert_eq!(bench.show(after, "%P"), format!("{base} {one}"));
    assert_eq!(bench.show(after, "%B"), "Merge al-1: Add one\n\nBead: al-1\nRun: al-1#1");
    assert_eq!(bench.show(&built.tip, "%P"), format!("{after} {two}"));
    assert_eq!(bench.show(&built.tip, "%s"), "Merge the work of al-2");
    let again = bench.build(&[member("al-1", &one), member("al-1", &one)], LandMethod::Merge);
    assert_eq!(again.members[1], MemberOutcome::AlreadyThere);
}

#[test]
fn every_kind_of_change_arrives_unchanged() {
    let bench = Workbench::new();
    let base = bench.rig.base();
    let path = &bench.path;
    let zero = bench.work("0", "0");
    let mut works = Vec::new();

    // A submodule is a commit, and a file that git-lfs keeps is its pointer.
    let inner = bench.rig.path("inner");
    make_repository(&inner, "inside");
    bench.begin(&base);
    let inner_path = inner.to_str().unwrap();
    bench.git(&["submodule", "--quiet", "add", inner_path, "module"]);
    works.push(bench.commit("submodule"));
    bench.begin(&base);
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n";
    write(path, "large.bin", pointer);
    write(path, "lfs/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    write(path, "lfs/large.bin", pointer);
    works.push(bench.commit("pointers"));

    bench.begin(&base);
    fs::write(path.join("binary"), [0, 159, 146, 150, 0, 10, 13, 10]).unwrap();
    works.push(bench.commit("binary"));
    bench.begin(&base);
    write(path, "windows.txt", "one\r\ntwo\r\n");
    write(path, ".gitattributes", "windows.txt text eol=crlf\nother.txt -text\n");
    write(path, "other.txt", "one\r\nmixed\n");
    works.push(bench.commit("line ends"));
    bench.begin(&base);
    write(path, "script", "#!/bin/sh\n");
    bench.git(&["add", "script"]);
    bench.git(&["update-index", "--chmod=+x", "script", "file.txt"]);
    std::os::unix::fs::symlink("nowhere", path.join("link")).unwrap();
    bench.git(&["add", "link"]);
    bench.git(&["commit", "--quiet", "--message", "modes"]);
    works.push(bench.head());

    let works: Vec<&Commit> = [&zero].into_iter().chain(&works).collect();
    let built = bench.rebase(&works);
    let entry = |commit: &Commit, file: &str| {
        git(&bench.repository().own_path(), ["ls-tree", "-r", commit.as_str(), "--", file])
    };
    for commit in &works {
        for file in bench.repository().changed_paths(&base, commit).unwrap() {
            let file = file.to_str().unwrap();
            assert!(!entry(commit, file).is_empty());
            assert_eq!(entry(&built.tip, file), entry(commit, file), "{file}");
        }
    }
    assert!(built.members.iter().all(|outcome| commits_of(outcome).len() == 1));
}

#[test]
fn a_change_follows_a_renamed_file() {
    let bench = Workbench::new();
    let lines = (0..40).map(|line| format!("line {line}\n")).collect::<Vec<_>>().concat();
    bench.rig.land_by_person("old/name.txt", &lines);
    bench.repository().fetch().unwrap();
    let base = bench.rig.base();
    let changed = bench.work("old/name.txt", &lines.replace("line 20\n", "line twenty\n"));
    bench.begin(&base);
    fs::create_dir(bench.path.join("new")).unwrap();
    bench.git(&["mv", "old/name.txt", "new/name.txt"]);
    let renamed = bench.commit("rename");
    for order in [[&changed, &renamed], [&renamed, &changed]] {
        let built = bench.rebase(&order);
        assert_eq!(files(bench.repository(), &built.tip), ["file.txt", "new/name.txt"]);
        assert!(shown(bench.repository(), &built.tip, "new/name.txt").contains("line twenty"));
    }
}

#[test]
fn authors_and_messages_stay_as_they_are() {
    let bench = Workbench::new();
    let base = bench.rig.base();
    let zero = bench.work("0", "0");
    bench.begin(&base);
    for (at, author) in ["J. Doe <j@example.org>", "Zoë <>", "agent <agent@rig>"].iter().enumerate()
    {
        write(&bench.path, &format!("f{at}"), "x");
        bench.git(&["add", "--all"]);
        let date = format!("--date=@{}00 +0530", at + 1);
        bench.git(&[
            "commit",
            "--quiet",
            "-m",
            "by one of many",
            &format!("--author={author}"),
            &date,
        ]);
    }
    // A message in another encoding, with white space that git would clean up.
    write(&bench.path, "odd", "x");
    bench.git(&["add", "--all"]);
    let message = bench.rig.path("message");
    fs::write(&message, b"caf\xe9  \n\n\n\n# no comment\t\n\n\n").unwrap();
    let message = message.to_str().unwrap();
    bench.git(&[
        "-c",
        "i18n.commitEncoding=ISO-8859-1",
        "commit",
        "--quiet",
        "--cleanup=verbatim",
        "-F",
        message,
    ]);
    let last = bench.head();

    let parts = |commit: &Commit| {
        let output = git_command(&bench.repository().own_path())
            .args(["cat-file", "commit", commit.as_str()])
            .output()
            .unwrap();
        let mut lines =
            output.stdout.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
        lines.retain(|line| {
            ![&b"tree "[..], b"parent ", b"committer "].iter().any(|start| line.starts_with(start))
        });
        lines
    };
    let built = bench.rebase(&[&zero, &last]);
    let commits = commits_of(&built.members[1]);
    assert_eq!(commits.len(), 4);
    for (before, after) in commits {
        assert_ne!(before, after);
        assert_eq!(parts(before), parts(after));
    }

    // Only the agent's own commits get another author.
    let mut changed = member("al-1", &last);
    changed.trailers =
        vec![trailer("Bead", "al-1"), trailer("Co-authored-by", "agent <agent@rig>")];
    changed.replaced_author =
        Some(Signature { name: "agent".to_owned(), email: "agent@rig".to_owned() });
    let built = bench.build(&[member("al-0", &zero), changed], LandMethod::Rebase);
    let authors: Vec<String> = commits_of(&built.members[1])
        .iter()
        .map(|(_, after)| bench.show(after, "%an <%ae> %at"))
        .collect();
    assert_eq!(authors[..2], ["J. Doe <j@example.org> 100", "Zoë <> 200"]);
    assert_eq!(authors[2], "Ada L. <ada@example.org> 300");
    let raw = git_command(&bench.repository().own_path())
        .args(["cat-file", "commit", built.tip.as_str()])
        .output()
        .unwrap();
    let end = b"# no comment\n\nBead: al-1\nCo-authored-by: agent <agent@rig>\n";
    assert!(raw.stdout.ends_with(end), "{}", String::from_utf8_lossy(&raw.stdout));
}

#[test]
fn trailers_do_not_change_the_patches() {
    let bench = Workbench::new();
    let base = bench.rig.base();
    bench.begin(&base);
    bench.change("a", "a");
    let last = bench.change("b", "b");
    let mut one = member("al-1", &last);
    one.trailers = vec![trailer("Bead", "al-1"), trailer("Run", "al-1#2")];
    let built = bench.build(std::slice::from_ref(&one), LandMethod::Rebase);
    assert_eq!(built.tree, bench.repository().tree_of(&last).unwrap());
    assert!(same_patches(bench.repository(), (&base, &last), (&base, &built.tip)));
    assert_eq!(bench.show(&built.tip, "%B"), "change b\n\nBead: al-1\nRun: al-1#2");
    one.commit = built.tip.clone();
    let again = bench.build(&[one], LandMethod::Rebase);
    assert_eq!(again.tip, built.tip, "nothing is missing");
}

#[test]
fn patches_are_equal_after_a_rebase_and_different_after_a_change() {
    let bench = Workbench::new();
    let base = bench.rig.base();
    let repository = bench.repository();
    let zero = bench.work("0", "0");
    bench.begin(&base);
    write(&bench.path, "indented.py", "if x:\n    y()\n");
    fs::write(bench.path.join("binary"), [0, 1, 2]).unwrap();
    bench.commit("first");
    let accepted = bench.change("second", "x\n");
    let built = bench.rebase(&[&zero, &accepted]);
    let MemberOutcome::Applied { before, after, .. } = &built.members[1] else { panic!() };
    assert!(same_patches(repository, (&base, &accepted), (before, after)));
    assert_eq!(repository.patch_ids(&base, &accepted).unwrap().len(), 2);
    assert!(repository.patch_ids(&base, &base).unwrap().is_empty());

    let same = |content: &str, binary: u8, mode: &str| {
        bench.begin(&base);
        write(&bench.path, "indented.py", content);
        fs::write(bench.path.join("binary"), [0, 1, binary]).unwrap();
        bench.git(&["add", "--all"]);
        bench.git(&["update-index", &format!("--chmod={mode}"), "indented.py"]);
        bench.git(&["commit", "--quiet", "-m", "first"]);
        let other = bench.change("second", "x\n");
        same_patches(repository, (&base, &accepted), (&base, &other))
    };
    assert!(same("if x:\n    y()\n", 2, "-x"));
    assert!(!same("if x:\ny()\n", 2, "-x"), "white space counts");
    assert!(!same("if x:\n    y()\n", 3, "-x"), "contents that are no text count");
    assert!(!same("if x:\n    y()\n", 2, "+x"), "modes count");
    // One commit less, and one that squashes both.
    let squashed = bench.build(&[member("al-1", &accepted)], LandMethod::Squash);
    assert!(!same_patches(repository, (&base, &accepted), (&base, &squashed.tip)));
    // Lines that look like the beginning of a patch.
    bench.begin(&base);
    let text = format!("{accepted}\n@@ -1 +1 @@\nindex 1..2\n");
    let one = bench.change("odd", &text);
    bench.begin(&base);
    let other = bench.change("odd", &text.replace("1..2", "1..3"));
    assert!(!same_patches(repository, (&base, &one), (&base, &other)));
}

#[test]
fn work_that_was_rebased_by_its_author_is_the_same_work() {
    let bench = Workbench::new();
    let base = bench.rig.base();
    let repository = bench.repository();
    // Others have landed since the work began, and its author has put it on top of them.
    bench.begin(&base);
    let tip = bench.change("theirs", "theirs");
    let accepted = bench.change("mine", "mine");
    let other = bench.change("more", "more");
    assert!(!same_patches(repository, (&base, &accepted), (&tip, &accepted)));
    assert!(repository.is_same_work((&base, &accepted), (&tip, &accepted)).unwrap());
    assert!(!repository.is_same_work((&base, &accepted), (&tip, &other)).unwrap());
    assert!(!repository.is_same_work((&base, &other), (&tip, &accepted)).unwrap());
}

#[test]
fn work_that_has_merged_the_target_is_the_same_change_on_a_newer_one() {
    let bench = Workbench::new();
    let base = bench.rig.base();
    let repository = bench.repository();
    bench.begin(&base);
    let theirs = bench.change("theirs", "theirs");
    bench.begin(&base);
    bench.change("mine", "mine");
    bench.git(&["merge", "--quiet", "--no-edit", theirs.as_str()]);
    let accepted = bench.change("mine too", "mine");
    bench.begin(&theirs);
    let tip = bench.change("newer", "newer");
    bench.git(&["merge", "--quiet", "--no-edit", accepted.as_str()]);
    let head = bench.git(&["rev-parse", "HEAD"]);
    let after = Commit::parse(head.trim()).unwrap();
    let other = bench.change("more", "more");
    assert!(!repository.is_same_work((&base, &accepted), (&tip, &after)).unwrap());
    assert!(repository.is_same_change((&base, &accepted), (&tip, &after)).unwrap());
    assert!(!repository.is_same_change((&base, &accepted), (&tip, &other)).unwrap());
    // The target has lost the base of the work: what changed since then counts.
    bench.git(&["checkout", "--quiet", "--orphan", "anew"]);
    let anew = bench.change("anew", "anew");
    assert!(!repository.is_same_change((&base, &accepted), (&anew, &anew)).unwrap());
}

#[test]
fn candidates_outlive_a_collection_of_garbage() {
    let bench = Workbench::new();
    let (one, two) = (bench.work("1", "1"), bench.work("2", "2"));
    let base = bench.rig.base();
    let members = [member("al-1", &one), member("al-2", &two)];
    let repository = bench.repository();
    let name = "al-1@2{x..lock/~^: #";
    let built = repository.build_candidate(name, &base, &members, LandMethod::Rebase).unwrap();
    let own = repository.own_path();
    let collect = || {
        git(
            &own,
            [
                "-c",
                "gc.reflogExpire=now",
                "-c",
                "gc.reflogExpireUnreachable=now",
                "gc",
                "--quiet",
                "--prune=now",
            ],
        )
    };
    let is_there = || try_git(&own, ["cat-file", "-e", built.tip.as_str()]).status.success();
    collect();
    assert!(is_there());
    // A worker cannot move it.
    let reference = git(&own, ["for-each-ref", "--format=%(refname)", "refs/gt/candidates"]);
    git(repository.path(), ["update-ref", &reference, base.as_str()]);
    git(repository.path(), ["update-ref", "refs/gt/rescue/x", base.as_str()]);
    repository.repair().unwrap();
    assert_eq!(git(&own, ["rev-parse", &reference]), built.tip.as_str());
    repository.drop_candidate(name).unwrap();
    repository.drop_candidate(name).unwrap();
    collect();
    assert!(!is_there());
}

#[test]
fn a_landed_member_is_undone_or_conflicts() {
    let bench = Workbench::new();
    let base = bench.rig.base();
    let one = bench.work("file.txt", "one\n");
    bench.begin(&base);
    bench.change("two", "2");
    let two = bench.change("too", "2");
    let three = bench.work("three", "3");
    let built = bench.rebase(&[&one, &two, &three]);
    let range = |at: usize| {
        let MemberOutcome::Applied { before, after, .. } = &built.members[at] else { panic!() };
        LandedRange { before: before.clone(), after: after.clone() }
    };
    let how = RevertCommit {
        message: "Revert al-1".to_owned(),
        trailers: vec![trailer("Bead", "al-1")],
        signature: ada(),
    };
    let repository = bench.repository();
    let revert =
        |tip: &Commit, at: usize| repository.build_revert("r1", tip, &range(at), &how).unwrap();
    let undone = revert(&built.tip, 1);
    assert_eq!(files(repository, &undone.tip), ["file.txt", "three"]);
    assert_eq!(bench.show(&undone.tip, "%P %an"), format!("{} Ada L.", built.tip));
    assert_eq!(bench.show(&undone.tip, "%B"), "Revert al-1\n\nBead: al-1");
    // Another command does the same for another reason, and is refused later: both are kept until they are dropped.
    let again = RevertCommit { message: "Revert al-1 again".to_owned(), ..how.clone() };
    let other = repository.build_revert("r1", &built.tip, &range(1), &again).unwrap();
    let kept = || git(&repository.own_path(), ["for-each-ref", "--format=%(objectname)"]);
    let is_kept = |commit: &Commit| kept().contains(commit.as_str());
    assert!(is_kept(&undone.tip) && is_kept(&other.tip));
    repository.drop_candidate(&format!("r1-{}", other.tip)).unwrap();
    assert!(is_kept(&undone.tip) && !is_kept(&other.tip));
    assert_eq!(revert(&undone.tip, 1).members, [MemberOutcome::AlreadyThere]);
    assert_eq!(shown(repository, &revert(&undone.tip, 0).tip, "file.txt"), "first");

    bench.begin(&built.tip);
    let later = bench.change("file.txt", "later\n");
    repository.import(&later).unwrap();
    assert_eq!(conflicting(&revert(&later, 0).members[0]), ["file.txt"]);
}

#[test]
fn settings_of_workers_do_not_reach_a_candidate() {
    let bench = Workbench::new();
    let base = bench.rig.base();
    let shared = bench.repository().path();
    let one = bench.work("file.txt", "one\n");
    let two = bench.work("file.txt", "two\n");
    bench.begin(&base);
    write(&bench.path, ".gitattributes", "* merge=union\n");
    let attributes = bench.change("file.txt", "three\n");
    // The worker has resolved the conflict before, and git remembers how.
    git(shared, ["config", "rerere.enabled", "true"]);
    git(shared, ["config", "rerere.autoUpdate", "true"]);
    bench.begin(&one);
    assert!(!try_git(&bench.path, ["cherry-pick", two.as_str()]).status.success());
    write(&bench.path, "file.txt", "resolved\n");
    bench.git(&["add", "--all"]);
    bench.git(&["-c", "core.editor=true", "cherry-pick", "--continue"]);
    assert_eq!(fs::read_dir(shared.join("rr-cache")).unwrap().count(), 1);
    for (name, value) in [
        ("merge.x.driver", "printf hacked > %A"),
        ("merge.default", "x"),
        ("commit.gpgSign", "true"),
        ("gpg.program", "/nonexistent"),
        ("core.hooksPath", "/nonexistent"),
        ("user.name", "Mallory"),
    ] {
        git(shared, ["config", name, value]);
    }
    fs::create_dir_all(shared.join("info")).unwrap();
    fs::write(shared.join("info/attributes"), "* merge=union\n").unwrap();
    // Attributes of a worker's own commit count only after it has landed.
    let built = bench.rebase(&[&one, &two, &attributes]);
    assert_eq!(conflicting(&built.members[1]), ["file.txt"]);
    assert_eq!(conflicting(&built.members[2]), ["file.txt"]);
    assert_eq!((&built.tip, &built.unsigned), (&one, &None));
    let squashed = bench.build(&[member("al-1", &one)], LandMethod::Squash);
    assert_eq!(bench.show(&squashed.tip, "%cn"), "Ada L.");
    assert_eq!(squashed.unsigned, None);
}

#[test]
fn attributes_of_the_branch_count() {
    let bench = Workbench::new();
    bench.rig.land_by_person(".gitattributes", "log.txt merge=union\nsub/b.txt -merge\n");
    bench.rig.land_by_person("log.txt", "first\n");
    bench.rig.land_by_person("sub/b.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    bench.repository().fetch().unwrap();
    let base = bench.rig.base();
    let one = bench.work("log.txt", "first\none\n");
    let two = bench.work("log.txt", "first\ntwo\n");
    let built = bench.rebase(&[&one, &two]);
    assert_eq!(shown(bench.repository(), &built.tip, "log.txt"), "first\none\ntwo");
    // Changes of a file that is no text do not go together, wherever they are.
    let top = bench.work("sub/b.txt", "one\n2\n3\n4\n5\n6\n7\n8\n9\n");
    let end = bench.work("sub/b.txt", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    let built = bench.rebase(&[&top, &end]);
    assert_eq!(conflicting(&built.members[1]), ["sub/b.txt"]);
    // A member that changes the attributes changes them for those after it.
    bench.begin(&base);
    let free = bench.change(".gitattributes", "log.txt merge=union\n");
    let built = bench.rebase(&[&top, &free, &end]);
    assert_eq!(shown(bench.repository(), &built.tip, "sub/b.txt").lines().last(), Some("nine"));
    let back = bench.rebase(&[&free, &end, &one, &two, &top]);
    assert_eq!(conflicts(&back), 0);
}

fn conflicts(built: &CandidateBuild) -> usize {
    let is_conflict = |outcome: &&MemberOutcome| matches!(outcome, MemberOutcome::Conflict { .. });
    built.members.iter().filter(is_conflict).count()
}

#[test]
fn a_member_whose_commit_is_gone_does_not_stop_the_others() {
    let bench = Workbench::new();
    let one = bench.work("1", "1");
    let gone = Commit::parse(&"b".repeat(40)).unwrap();
    let built = bench.rebase(&[&gone, &one]);
    assert!(matches!(built.members[0], MemberOutcome::Unreadable(_)), "{:?}", built.members[0]);
    assert_eq!(built.tip, one);
}

#[test]
fn differences_have_paths_size_and_text() {
    let bench = Workbench::new();
    let base = bench.rig.base();
    bench.begin(&base);
    write(&bench.path, "ä \"quoted\"", "one\ntwo\n");
    fs::write(bench.path.join("binary"), [0, 1]).unwrap();
    let commit = bench.change("file.txt", "changed\n");
    let repository = bench.repository();
    let paths = repository.changed_paths(&base, &commit).unwrap();
    assert_eq!(paths, ["binary", "file.txt", "ä \"quoted\""].map(PathBuf::from));
    let stat = repository.diff_stat(&base, &commit).unwrap();
    assert_eq!(stat, DiffStat { files: 3, insertions: 3, deletions: 1 });
    let shown = |options: &DiffOptions| {
        String::from_utf8(repository.diff(&base, &commit, options).unwrap()).unwrap()
    };
    let plain = shown(&DiffOptions::default());
    assert!(plain.contains("-first\n+changed\n"), "{plain}");
    let one = DiffOptions { paths: vec!["file.txt".into()], stat: true, ..DiffOptions::default() };
    assert!(shown(&one).contains("1 file changed, 1 insertion(+), 1 deletion(-)"));
    let colored = DiffOptions { color: true, context: Some(0), ..DiffOptions::default() };
    assert!(shown(&colored).contains("\u{1b}["));
}

/// A base with many files in many directories.
fn with_many_files() -> Workbench {
    let bench = Workbench::new();
    let person = bench.rig.path("person");
    for directory in 0..200 {
        let path = person.join(format!("d{}/e{directory}", directory % 10));
        fs::create_dir_all(&path).unwrap();
        for file in 0..100 {
            fs::write(path.join(format!("f{file}")), format!("{directory} {file}\n")).unwrap();
        }
    }
    commit_everything(&person, "20,000 files");
    git(&person, ["push", "--quiet", "origin", "main"]);
    bench.repository().fetch().unwrap();
    bench
}

/// Makes pieces of work of one commit each without a worktree, so that many are quickly made.
fn independent(bench: &Workbench, count: usize) -> Vec<Commit> {
    let repository = bench.repository().path();
    let base = bench.rig.base();
    let index = bench.rig.path("index-of-works");
    let call = |arguments: &[&str]| {
        let output =
            git_command(repository).env("GIT_INDEX_FILE", &index).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let content = bench.rig.path("content");
    let work = |at: usize| {
        fs::write(&content, format!("work {at}\n")).unwrap();
        let blob = call(&["hash-object", "-w", content.to_str().unwrap()]);
        call(&["read-tree", base.as_str()]);
        let entry = format!("100644,{blob},d1/new{at}");
        call(&["update-index", "--add", "--cacheinfo", &entry]);
        let tree = call(&["write-tree"]);
        let message = format!("work {at}");
        Commit::parse(&call(&["commit-tree", &tree, "-p", base.as_str(), "-m", &message])).unwrap()
    };
    (0..count).map(work).collect()
}

#[test]
fn a_base_with_20_000_files_takes_a_batch() {
    let bench = with_many_files();
    let works = independent(&bench, 8);
    let built = bench.rebase(&works.iter().collect::<Vec<_>>());
    assert_eq!(conflicts(&built), 0);
    assert_eq!(files(bench.repository(), &built.tip).len(), 20_009);
}

#[test]
fn a_batch_has_the_tree_that_bare_git_commands_make() {
    let bench = Workbench::new();
    let works = independent(&bench, 8);
    let own = bench.repository().own_path();
    for work in &works {
        bench.repository().import(work).unwrap();
    }
    let mut tip = bench.rig.base().to_string();
    for work in &works {
        let tree = git(&own, ["merge-tree", "--write-tree", &tip, work.as_str()]);
        tip = git(&own, ["commit-tree", &tree, "-p", &tip, "-m", "work"]);
    }
    let built = bench.rebase(&works.iter().collect::<Vec<_>>());
    assert_eq!(built.tree.to_string(), git(&own, ["rev-parse", &format!("{tip}^{{tree}}")]));
}

/// Sets git up to sign with a program of the test.
fn sign_with(bench: &Workbench, format: &str, script: &str) {
    let program = bench.rig.path(&format!("sign-{format}"));
    write_program(&program, script);
    let own = bench.repository().own_path();
    let name = if format == "ssh" { "gpg.ssh.program" } else { "gpg.program" };
    for (name, value) in [
        ("commit.gpgSign", "true"),
        ("gpg.format", format),
        ("user.signingKey", "/a/key"),
        (name, program.to_str().unwrap()),
    ] {
        git(&own, ["config", name, value]);
    }
}

#[test]
fn commits_are_signed_if_git_is_set_up_so() {
    let bench = Workbench::new();
    let (one, two) = (bench.work("1", "1"), bench.work("2", "2"));
    let is_signed = |built: &CandidateBuild| {
        let own = bench.repository().own_path();
        git(&own, ["cat-file", "commit", built.tip.as_str()]).contains("\ngpgsig the signature")
    };
    let ssh = "#!/bin/sh\nfor last; do :; done\necho 'the signature' > \"$last.sig\"\n";
    sign_with(&bench, "ssh", ssh);
    let built = bench.rebase(&[&one, &two]);
    assert_eq!(built.unsigned, None);
    assert!(is_signed(&built));
    assert_eq!(bench.show(&built.tip, "%an %cn %s"), "agent Ada L change 2");
    assert_eq!(commits_of(&built.members[0])[0].1, one, "it stays as it is");

    // A program that never asks gets what it needs for that.
    let openpgp = "#!/bin/sh\ncase \"$*\" in\n*--batch*--pinentry-mode=error*) ;;\n*) exit 1 ;;\nesac\n\
                   cat > /dev/null\nprintf '\\n[GNUPG:] SIG_CREATED \\n' >&2\necho 'the signature'\n";
    sign_with(&bench, "openpgp", openpgp);
    let built = bench.rebase(&[&one, &two]);
    assert_eq!(built.unsigned, None);
    assert!(is_signed(&built));
}

#[test]
fn commits_that_only_a_person_could_sign_are_not_signed() {
    let bench = Workbench::new();
    let (one, two) = (bench.work("1", "1"), bench.work("2", "2"));
    let ask = "#!/bin/sh\nif ! \"$SSH_ASKPASS\"; then\necho 'no passphrase' >&2\nexit 1\nfi\n";
    sign_with(&bench, "ssh", ask);
    let built = bench.rebase(&[&one, &two]);
    let why = built.unsigned.unwrap();
    assert!(why.contains("sign a commit"), "{why}");
    assert_eq!(bench.show(&built.tip, "%G? %s"), "N change 2");
}
