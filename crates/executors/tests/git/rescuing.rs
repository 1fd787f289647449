use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use gt_executors::git::{GitError, Reason, Rescue, RescuedRepositoryKind, Tree};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{
    MEBIBYTE, Rig, commit_everything, files, git, make_repository, nux, shown, try_git, write,
};

const REFERENCE: &str = "refs/gt/rescue/gt-abc/1";

fn rescue(rig: &Rig, tree: &Tree) -> Rescue {
    tree.rescue(&rig.repository, REFERENCE, "gt-abc#1 was lost", &nux(), MEBIBYTE, None).unwrap()
}

/// Everything about a tree that a rescue must not touch.
fn state(tree: &Tree) -> (Vec<u8>, String, String) {
    let index = git(tree.path(), ["rev-parse", "--path-format=absolute", "--git-path", "index"]);
    let status = git(tree.path(), ["--no-optional-locks", "status", "--porcelain=v2", "--branch"]);
    (fs::read(index).unwrap_or_default(), status, git(tree.path(), ["for-each-ref", "refs/heads"]))
}

#[test]
fn everything_is_kept_and_nothing_is_touched() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    write(tree.path(), "committed", "x");
    write(tree.path(), "gone", "x");
    commit_everything(tree.path(), "work");
    write(tree.path(), ".gitignore", "ignored\n");
    write(tree.path(), "ignored", "x");
    write(tree.path(), "file.txt", "changed\n");
    write(tree.path(), "deep/new file", "new\n");
    fs::remove_file(tree.path().join("gone")).unwrap();
    let before = state(&tree);
    let rescue = rescue(&rig, &tree);
    assert_eq!(state(&tree), before);
    let repository = &rig.repository;
    assert_eq!(repository.resolve(REFERENCE).unwrap(), Some(rescue.commit.clone()));
    assert_eq!(
        files(repository, &rescue.commit),
        [".gitignore", "committed", "deep/new file", "file.txt"]
    );
    assert_eq!(shown(repository, &rescue.commit, "file.txt"), "changed");
    assert!(repository.is_ancestor(&tree.head().unwrap().unwrap(), &rescue.commit).unwrap());
    assert_eq!(rescue.left_out, []);
    assert!(rescue.bytes > 0);
    let said = git(repository.path(), ["log", "-1", "--format=%an|%s", REFERENCE]);
    assert_eq!(said, "nux|gt-abc#1 was lost");
}

#[test]
fn a_clean_tree_is_its_own_rescue() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    write(tree.path(), "committed", "x");
    commit_everything(tree.path(), "work");
    assert_eq!(rescue(&rig, &tree).commit, tree.head().unwrap().unwrap());
}

#[test]
fn a_staged_version_of_a_changed_file_is_kept_too() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    write(tree.path(), "draft", "staged\n");
    git(tree.path(), ["add", "draft"]);
    fs::remove_file(tree.path().join("draft")).unwrap();
    let rescue = rescue(&rig, &tree);
    assert_eq!(files(&rig.repository, &rescue.commit), ["file.txt"]);
    let draft = git(rig.repository.path(), ["show", &format!("{REFERENCE}^2:draft")]);
    assert_eq!(draft, "staged");
}

#[test]
fn in_the_middle_of_a_conflict_both_sides_are_kept() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    write(tree.path(), "file.txt", "mine\n");
    commit_everything(tree.path(), "mine");
    rig.land_by_person("file.txt", "theirs\n");
    rig.repository.fetch().unwrap();
    assert!(!try_git(tree.path(), ["merge", "origin/main"]).status.success());
    let before = state(&tree);
    let rescue = rescue(&rig, &tree);
    assert_eq!(state(&tree), before);
    let kept = shown(&rig.repository, &rescue.commit, "file.txt");
    assert!(kept.contains("mine") && kept.contains("theirs"), "{kept}");
}

#[test]
fn a_second_rescue_keeps_the_first() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    write(tree.path(), "new", "1\n");
    let first = rescue(&rig, &tree);
    assert_eq!(rescue(&rig, &tree).commit, first.commit, "nothing is new");
    write(tree.path(), "new", "2\n");
    let second = rescue(&rig, &tree);
    assert!(rig.repository.is_ancestor(&first.commit, &second.commit).unwrap());
    assert_eq!(shown(&rig.repository, &second.commit, "new"), "2");
}

#[test]
fn files_that_are_too_large_are_left_out_and_listed() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    // A gigabyte that takes no room on the disk of the test.
    fs::File::create(tree.path().join("aaa dump")).unwrap().set_len(1 << 30).unwrap();
    write(tree.path(), "small", "x");
    let rescue = rescue(&rig, &tree);
    assert_eq!(rescue.left_out.len(), 1);
    assert_eq!(rescue.left_out[0].path, PathBuf::from("aaa dump"));
    assert_eq!(rescue.left_out[0].reason, Reason::TooLarge { bytes: 1 << 30 });
    assert_eq!(files(&rig.repository, &rescue.commit), ["file.txt", "small"]);
    let message = git(rig.repository.path(), ["log", "-1", "--format=%b", REFERENCE]);
    assert_eq!(message, "Left out: aaa dump: too large (1073741824 bytes)");
    assert!(tree.path().join("aaa dump").exists());
}

#[test]
fn pipes_and_sockets_are_named_and_never_opened() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let pipe = |name: &str| {
        let path = tree.path().join(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    };
    fs::create_dir_all(tree.path().join("deep")).unwrap();
    pipe("deep/pipe");
    let _listener = UnixListener::bind(tree.path().join("socket")).unwrap();
    // In the place of a file that git knows.
    fs::remove_file(tree.path().join("file.txt")).unwrap();
    pipe("file.txt");
    write(tree.path(), "small", "x");
    let rescue = rescue(&rig, &tree);
    let mut named: Vec<(String, Reason)> = Vec::new();
    for left in &rescue.left_out {
        named.push((left.path.display().to_string(), left.reason.clone()));
    }
    named.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(
        named,
        [
            ("deep/pipe".to_owned(), Reason::NoFile("a pipe")),
            ("file.txt".to_owned(), Reason::NoFile("a pipe")),
            ("socket".to_owned(), Reason::NoFile("a socket")),
        ]
    );
    assert_eq!(files(&rig.repository, &rescue.commit), ["small"]);
}

#[test]
fn a_file_that_git_cannot_read_does_not_stop_the_others() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    // Git refuses text that is not in the encoding that it should have; root can read everything else.
    write(tree.path(), ".gitattributes", "locked working-tree-encoding=UTF-16\n");
    for name in ["a", "locked", "z"] {
        write(tree.path(), name, "x");
    }
    let rescue = rescue(&rig, &tree);
    assert_eq!(rescue.left_out.len(), 1);
    assert_eq!(rescue.left_out[0].path, PathBuf::from("locked"));
    assert!(matches!(rescue.left_out[0].reason, Reason::Unreadable(_)));
    assert_eq!(files(&rig.repository, &rescue.commit), [".gitattributes", "a", "file.txt", "z"]);
}

#[test]
fn files_that_became_directories_and_the_other_way_round() {
    let rig = Rig::new();
    rig.land_by_person("directory/inside", "x");
    rig.repository.fetch().unwrap();
    let tree = rig.tree("nux");
    fs::remove_file(tree.path().join("file.txt")).unwrap();
    write(tree.path(), "file.txt/now a directory", "x");
    fs::remove_dir_all(tree.path().join("directory")).unwrap();
    write(tree.path(), "directory", "now a file\n");
    std::os::unix::fs::symlink("nowhere", tree.path().join("link")).unwrap();
    write(tree.path(), "program", "#!/bin/sh\n");
    fs::set_permissions(tree.path().join("program"), fs::Permissions::from_mode(0o755)).unwrap();
    let rescue = rescue(&rig, &tree);
    assert_eq!(rescue.left_out, []);
    assert_eq!(
        files(&rig.repository, &rescue.commit),
        ["directory", "file.txt/now a directory", "link", "program"]
    );
}

#[test]
fn commits_of_a_submodule_that_are_nowhere_else_are_kept() {
    let rig = Rig::new();
    make_repository(&rig.path("library"), "lib.txt");
    make_repository(&rig.path("published"), "lib.txt");
    let tree = rig.tree("nux");
    for name in ["library", "published"] {
        let source = rig.path(name);
        git(tree.path(), ["submodule", "--quiet", "add", source.to_str().unwrap(), name]);
    }
    commit_everything(tree.path(), "with libraries");
    let library = tree.path().join("library");
    write(&library, "lib.txt", "committed\n");
    commit_everything(&library, "not pushed");
    let not_pushed = git(&library, ["rev-parse", "HEAD"]);
    write(&library, "lib.txt", "not committed\n");
    write(&library, "unknown.txt", "x");
    let before = state(&Tree::at(&library));
    let rescue = rescue(&rig, &tree);
    assert_eq!(state(&Tree::at(&library)), before);
    assert_eq!(rescue.left_out, []);
    let [part] = rescue.parts.as_slice() else { panic!("{:?}", rescue.parts) };
    assert_eq!(
        (part.path.to_str().unwrap(), part.kind),
        ("library", RescuedRepositoryKind::Submodule)
    );
    assert_eq!(shown(&rig.repository, &part.commit, "lib.txt"), "not committed");
    assert_eq!(files(&rig.repository, &part.commit), ["lib.txt", "unknown.txt"]);
    let kept = rig.repository.resolve(&format!("{}/commit", part.prefix)).unwrap();
    assert_eq!(kept.as_ref(), Some(&part.commit));
    let repository = rig.repository.path();
    assert_eq!(git(repository, ["rev-parse", &format!("{}^1", part.commit)]), not_pushed);
    let listed = git(repository, ["ls-tree", rescue.commit.as_str(), "library"]);
    assert!(listed.contains(&not_pushed), "{listed}");
    git(repository, ["fsck", "--connectivity-only"]);
}

#[test]
fn a_repository_inside_the_tree_is_kept_with_its_branches() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    let nested = tree.path().join("vendor/a thing");
    make_repository(&nested, "a");
    git(&nested, ["branch", "side"]);
    write(&nested, "b", "not committed");
    make_repository(&nested.join("deeper"), "c");
    git(tree.path(), ["init", "--quiet", "unborn"]);
    write(tree.path(), "unborn/draft", "x");
    let rescue = rescue(&rig, &tree);
    assert_eq!(rescue.left_out, []);
    let mut parts: Vec<_> =
        rescue.parts.iter().map(|part| (part.path.to_str().unwrap(), part)).collect();
    parts.sort_by_key(|(path, _)| *path);
    let paths: Vec<&str> = parts.iter().map(|(path, _)| *path).collect();
    assert_eq!(paths, ["unborn", "vendor/a thing", "vendor/a thing/deeper"]);
    assert_eq!(files(&rig.repository, &parts[0].1.commit), ["draft"]);
    assert_eq!(files(&rig.repository, &parts[1].1.commit), ["a", "b"]);
    assert_eq!(files(&rig.repository, &parts[2].1.commit), ["c"]);
    let side = format!("{}/refs/heads/side", parts[1].1.prefix);
    assert!(rig.repository.resolve(&side).unwrap().is_some());
    git(rig.repository.path(), ["fsck", "--connectivity-only"]);
}

#[test]
fn of_a_shallow_clone_the_files_are_kept() {
    let rig = Rig::new();
    rig.land_by_person("second", "x");
    let tree = rig.tree("nux");
    let url = format!("file://{}", rig.origin().display());
    git(tree.path(), ["clone", "--quiet", "--depth=1", &url, "clone"]);
    write(tree.path(), "clone/new", "x");
    let rescue = rescue(&rig, &tree);
    let [part] = rescue.parts.as_slice() else { panic!("{rescue:?}") };
    assert_eq!(files(&rig.repository, &part.commit), ["file.txt", "new", "second"]);
    assert!(matches!(rescue.left_out[0].reason, Reason::HistoryOnly(_)), "{rescue:?}");
    assert!(!rig.repository.path().join("shallow").exists());
    git(rig.repository.path(), ["fsck", "--connectivity-only"]);
}

#[test]
fn a_repository_inside_that_is_too_large_is_left_out_and_listed() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    make_repository(&tree.path().join("nested"), "a");
    let rescue = tree.rescue(&rig.repository, REFERENCE, "x", &nux(), 3, None).unwrap();
    assert_eq!(rescue.parts, []);
    assert!(rescue.left_out.iter().any(|left| left.path.starts_with("nested")), "{rescue:?}");
}

#[test]
fn a_tree_that_became_a_repository_of_its_own_is_kept_in_the_shared_one() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    write(tree.path(), "one", "1\n");
    let first = rescue(&rig, &tree);
    fs::remove_file(tree.path().join(".git")).unwrap();
    git(tree.path(), ["init", "--quiet"]);
    commit_everything(tree.path(), "my own history");
    write(tree.path(), "two", "2\n");
    let second = rescue(&rig, &tree);
    assert_eq!(files(&rig.repository, &second.commit), ["file.txt", "one", "two"]);
    assert!(rig.repository.is_ancestor(&first.commit, &second.commit).unwrap());
    assert!(rig.repository.is_ancestor(&second.parts[0].commit, &second.commit).unwrap());
    assert_eq!(rig.repository.resolve(REFERENCE).unwrap(), Some(second.commit));
}

#[test]
fn a_pipe_that_git_would_read_is_an_error() {
    let rig = Rig::new();
    let tree = rig.tree("nux");
    fs::create_dir(tree.path().join("deep")).unwrap();
    for name in ["deep/.gitignore", "deep/.gitattributes"] {
        let pipe = tree.path().join(name);
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let error =
            tree.rescue(&rig.repository, REFERENCE, "x", &nux(), MEBIBYTE, None).unwrap_err();
        assert!(matches!(&error, GitError::WouldBlock { path } if *path == pipe), "{error}");
        fs::remove_file(pipe).unwrap();
    }
}
