//! Workers write the configuration, attributes, excludes and index of their trees; landings must not depend on any of it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use gt_executors::git::{
    Commit, CommitLimits, PUSH_TIME_MAX, Push, Rebased, Repository, Tree, WorkToRebase,
};
use gt_testkit::write_program;

use crate::support::{MEBIBYTE, Rig, commit_everything, git, make_repository, nux, try_git, write};

/// The means of a worker to do harm.
struct Worker<'a> {
    tree: &'a Tree,
    /// A program that leaves a trace of being called.
    evil: String,
    /// Another repository, which no landing may reach.
    elsewhere: String,
    origin: String,
    shared: PathBuf,
    /// A place for files.
    place: PathBuf,
}

impl Worker<'_> {
    fn set(&self, name: &str, value: &str) {
        git(self.tree.path(), ["config", name, value]);
    }

    fn file(&self, name: &str, content: &str) -> String {
        write(&self.place, name, content);
        self.place.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file of the repository that all workers share.
    fn shared_file(&self, name: &str, content: &str) {
        write(&self.shared, name, content);
    }
}

type Plant = fn(&Worker<'_>);

const PLANTS: &[(&str, Plant)] = &[
    ("url.insteadOf", |w| w.set(&format!("url.{}.insteadOf", w.elsewhere), &w.origin)),
    ("url.pushInsteadOf", |w| w.set(&format!("url.{}.pushInsteadOf", w.elsewhere), &w.origin)),
    ("include.path", |w| {
        let text = format!("[url \"{}\"]\n\tinsteadOf = {}\n", w.elsewhere, w.origin);
        w.set("include.path", &w.file("included", &text));
    }),
    ("includeIf", |w| {
        let text = format!("[url \"{}\"]\n\tinsteadOf = {}\n", w.elsewhere, w.origin);
        w.set("includeIf.gitdir:/.path", &w.file("included", &text));
    }),
    ("include.path of a pipe", |w| {
        let pipe = w.place.join("pipe");
        git(&w.place, ["-c", &format!("alias.pipe=!mkfifo {}", pipe.display()), "pipe"]);
        // Git itself would wait for the pipe, so the file is written without it.
        let config = fs::read_to_string(w.shared.join("config")).unwrap();
        let config = format!("{config}[include]\n\tpath = {}\n", pipe.display());
        w.shared_file("config", &config);
    }),
    ("config.worktree", |w| {
        w.set("extensions.worktreeConfig", "true");
        let name = format!("url.{}.insteadOf", w.elsewhere);
        git(w.tree.path(), ["config", "--worktree", &name, &w.origin]);
        git(w.tree.path(), ["config", "--worktree", "core.fsmonitor", &w.evil]);
    }),
    ("core.excludesFile", |w| w.set("core.excludesFile", &w.file("excludes", "*\n"))),
    ("info/exclude", |w| w.shared_file("info/exclude", "*\n")),
    ("core.fileMode", |w| w.set("core.fileMode", "false")),
    ("core.symlinks", |w| w.set("core.symlinks", "false")),
    ("core.ignoreStat", |w| w.set("core.ignoreStat", "true")),
    ("info/attributes and a filter", |w| {
        w.shared_file("info/attributes", "* filter=evil\n");
        w.set("filter.evil.clean", &format!("{} clean", w.evil));
        w.set("filter.evil.smudge", &format!("{} smudge", w.evil));
    }),
    ("a filter process", |w| {
        w.shared_file("info/attributes", "* filter=evil\n");
        w.set("filter.evil.process", &w.evil);
        w.set("filter.evil.required", "true");
    }),
    ("core.attributesFile", |w| {
        w.set("core.attributesFile", &w.file("attributes", "* filter=evil diff=evil\n"));
        w.set("filter.evil.clean", &w.evil);
        w.set("diff.evil.textconv", &w.evil);
        w.set("diff.evil.command", &w.evil);
    }),
    ("contents that a filter has staged", |w| {
        w.set("filter.evil.clean", "cut -c 1");
        w.shared_file("info/attributes", "* filter=evil\n");
        write(w.tree.path(), "file.txt", "changed\n");
        git(w.tree.path(), ["add", "--all"]);
        git(w.tree.path(), ["commit", "--quiet", "--message", "less than the work"]);
    }),
    ("a merge driver", |w| {
        w.shared_file("info/attributes", "* merge=evil\n");
        w.set("merge.evil.driver", &w.evil);
    }),
    ("skip-worktree", |w| {
        git(w.tree.path(), ["update-index", "--skip-worktree", "file.txt"]);
    }),
    ("assume-unchanged", |w| {
        git(w.tree.path(), ["update-index", "--assume-unchanged", "file.txt"]);
    }),
    ("an index that is no index", |w| {
        let index = git(w.tree.path(), ["rev-parse", "--absolute-git-dir"]) + "/index";
        fs::write(index, "nonsense").unwrap();
    }),
    ("unknown extensions", |w| {
        w.set("core.repositoryformatversion", "1");
        w.set("extensions.evil", "true");
    }),
    ("core.repositoryformatversion", |w| w.set("core.repositoryformatversion", "99")),
    ("extensions.objectFormat", |w| {
        let config = fs::read_to_string(w.shared.join("config")).unwrap();
        let config = format!(
            "{config}[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n"
        );
        w.shared_file("config", &config);
    }),
    ("a configuration that is none", |w| w.shared_file("config", "[core\n")),
    ("core.worktree", |w| w.set("core.worktree", "/nonexistent")),
    ("protocol.allow", |w| w.set("protocol.allow", "never")),
    ("push options", |w| {
        w.set("push.pushOption", "evil");
        w.set("push.gpgSign", "true");
    }),
    ("autocrlf and safecrlf", |w| {
        w.set("core.autocrlf", "true");
        w.set("core.safecrlf", "true");
    }),
    ("receive and transfer limits", |w| {
        w.set("transfer.hideRefs", "refs");
        w.set("uploadpack.hideRefs", "refs");
        w.set("fetch.fsckObjects", "true");
    }),
    ("core.fsmonitor", |w| w.set("core.fsmonitor", &w.evil)),
    ("core.hooksPath", |w| {
        let hooks = w.place.join("hooks");
        fs::create_dir_all(&hooks).unwrap();
        for name in ["pre-commit", "post-checkout", "reference-transaction", "pre-push"] {
            write_program(hooks.join(name), fs::read(&w.evil).unwrap());
        }
        w.set("core.hooksPath", hooks.to_str().unwrap());
    }),
    ("programs", |w| {
        for name in [
            "core.sshCommand",
            "core.editor",
            "core.askPass",
            "core.pager",
            "core.alternateRefsCommand",
            "credential.helper",
            "gpg.program",
            "diff.external",
            "sequence.editor",
            "uploadpack.packObjectsHook",
            "remote.origin.uploadpack",
            "remote.origin.receivepack",
        ] {
            w.set(name, &w.evil);
        }
        w.set("commit.gpgSign", "true");
    }),
    ("borrowed objects", |w| w.shared_file("objects/info/alternates", "/nonexistent\n")),
    ("a shallow repository", |w| {
        let head = git(w.tree.path(), ["rev-parse", "HEAD"]);
        w.shared_file("shallow", &format!("{head}\n"));
    }),
    ("the branches of the origin", |w| {
        git(w.tree.path(), ["update-ref", "refs/remotes/origin/main", "HEAD"]);
        git(w.tree.path(), ["symbolic-ref", "refs/remotes/origin/main", "refs/heads/elsewhere"]);
    }),
    ("a lock that stays", |w| w.shared_file("refs/remotes/origin/main.lock", "")),
];

/// Lands the work of a tree, as the landing of a run does.
fn land(rig: &Rig, tree: &Tree) -> Commit {
    let base = rig.base();
    let limits = CommitLimits { file_bytes_max: MEBIBYTE, base: Some(base.clone()) };
    tree.commit_all("work", &nux(), &limits).unwrap();
    let commit = tree.head().unwrap().unwrap();
    let repository = Repository::of(rig.repository.path(), rig.origin().to_str().unwrap());
    repository.fetch().unwrap();
    let tip = repository.tip("main").unwrap().unwrap();
    let work = WorkToRebase { commit: &commit, base: Some(&base) };
    let Rebased::Clean(ready) = repository.rebase_onto(work, &tip, &nux()).unwrap() else {
        panic!("the work conflicts with nothing");
    };
    assert_eq!(repository.push(&ready, "main", Some(&tip), PUSH_TIME_MAX).unwrap(), Push::Done);
    repository.fetch().unwrap();
    assert!(repository.origin_has("main", &ready).unwrap());
    ready
}

fn work_in(tree: &Path, name: &str) {
    write(tree, "file.txt", &format!("changed by {name}\n"));
    write(tree, &format!("{name}.txt"), "a\r\nb\n");
    write(tree, &format!("{name}.sh"), "#!/bin/sh\n");
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(tree.join(format!("{name}.sh")), executable).unwrap();
}

fn assert_landed(rig: &Rig, name: &str, what: &str) {
    let shown = |file: &str| {
        let output = try_git(&rig.origin(), ["show", &format!("main:{file}")]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(shown("file.txt"), format!("changed by {name}\n"), "{what}");
    assert_eq!(shown(&format!("{name}.txt")), "a\r\nb\n", "{what}");
    let listed = git(&rig.origin(), ["ls-tree", "main", &format!("{name}.sh")]);
    assert!(listed.starts_with("100755 "), "{what}: {listed}");
}

#[test]
fn settings_and_index_flags_of_workers_do_not_reach_landings() {
    for (what, plant) in PLANTS {
        let rig = Rig::new();
        make_repository(&rig.path("other"), "file.txt");
        git(&rig.path(""), ["clone", "--quiet", "--bare", "other", "elsewhere.git"]);
        let elsewhere = git(&rig.path("elsewhere.git"), ["rev-parse", "main"]);
        let trace = rig.path("trace");
        let evil = rig.path("evil");
        let script = format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\n", trace.display());
        write_program(&evil, &script);
        let tree = Tree::of(rig.tree("nux").path(), &rig.repository);
        plant(&Worker {
            tree: &tree,
            evil: evil.to_str().unwrap().to_owned(),
            elsewhere: rig.path("elsewhere.git").to_str().unwrap().to_owned(),
            origin: rig.origin().to_str().unwrap().to_owned(),
            shared: rig.repository.path().to_owned(),
            place: rig.path(""),
        });
        // The worker's own git may have called it.
        let _ = fs::remove_file(&trace);

        work_in(tree.path(), "nux");
        rig.land_by_person("person.txt", "x");
        land(&rig, &tree);
        assert_landed(&rig, "nux", what);

        // The next runs of the rig: in another tree, and in this one again.
        let origin = rig.origin();
        let next = Repository::clone_from(origin.to_str().unwrap(), rig.repository.path()).unwrap();
        let path = rig.path("rig/polecats/slit/rig");
        next.add_worktree(&path, "polecat/slit/1", &rig.base()).unwrap();
        work_in(&path, "slit");
        land(&rig, &Tree::of(&path, &next));
        assert_landed(&rig, "slit", what);
        tree.recycle("polecat/nux/2", &rig.base())
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let committed = fs::read_to_string(tree.path().join("file.txt")).unwrap();
        assert_eq!(committed, "changed by slit\n", "{what}");
        work_in(tree.path(), "nux");
        land(&rig, &tree);
        assert_landed(&rig, "nux", what);

        assert_eq!(git(&rig.path("elsewhere.git"), ["rev-parse", "main"]), elsewhere, "{what}");
        assert!(!trace.exists(), "{what}: {}", fs::read_to_string(&trace).unwrap_or_default());
    }
}

#[test]
fn files_that_a_sparse_checkout_leaves_out_are_not_deleted() {
    let rig = Rig::new();
    rig.land_by_person("deep/kept.txt", "kept\n");
    rig.repository.fetch().unwrap();
    let tree = Tree::of(rig.tree("nux").path(), &rig.repository);
    git(tree.path(), ["sparse-checkout", "set", "--no-cone", "/file.txt"]);
    assert!(!tree.path().join("deep").exists());
    work_in(tree.path(), "nux");

    land(&rig, &tree);

    assert_landed(&rig, "nux", "sparse checkout");
    assert_eq!(git(&rig.origin(), ["show", "main:deep/kept.txt"]), "kept");
    // The next worker would miss the files.
    tree.recycle("polecat/nux/2", &rig.base()).unwrap_err();
}

#[test]
fn repositories_inside_a_tree_run_none_of_their_programs() {
    let rig = Rig::new();
    let trace = rig.path("trace");
    let evil = rig.path("evil");
    write_program(&evil, format!("#!/bin/sh\necho \"$*\" >> '{}'\ncat\n", trace.display()));
    make_repository(&rig.path("library"), "lib.txt");
    let tree = Tree::of(rig.tree("nux").path(), &rig.repository);
    let library = rig.path("library");
    git(tree.path(), ["submodule", "--quiet", "add", library.to_str().unwrap(), "lib"]);
    commit_everything(tree.path(), "with a library");
    make_repository(&tree.path().join("nested"), "inside.txt");
    for inside in ["lib", "nested"] {
        let inside = tree.path().join(inside);
        for name in ["filter.evil.clean", "core.fsmonitor", "diff.external"] {
            git(&inside, ["config", name, evil.to_str().unwrap()]);
        }
        let own = PathBuf::from(git(&inside, ["rev-parse", "--absolute-git-dir"]));
        write(&own, "info/attributes", "* filter=evil\n");
        write(&inside, "work.txt", "x\n");
        write(&inside, "lib.txt", "changed\n");
    }
    let _ = fs::remove_file(&trace);

    let status = tree.status().unwrap();
    assert_eq!(status.changes.dirty_submodules, [PathBuf::from("lib")]);
    let rescue = tree
        .rescue(&rig.repository, "refs/gt/rescue/x/1", "saved", &nux(), 16 * MEBIBYTE, None)
        .unwrap();
    assert_eq!(rescue.parts.len(), 2, "{rescue:?}");
    assert!(!trace.exists(), "{}", fs::read_to_string(&trace).unwrap_or_default());
}
