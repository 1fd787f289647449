//! Reading the workspace: its root, its files, and its metadata from cargo.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A file of ours and its text.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// The path from the root of the workspace, with slashes.
    pub path: String,
    /// Its contents.
    pub text: String,
}

impl SourceFile {
    /// Whether it is Rust.
    pub fn is_rust(&self) -> bool {
        self.has_extension(&["rs"])
    }

    /// Whether it is a page for people.
    pub fn is_page(&self) -> bool {
        self.has_extension(&["md"])
    }

    /// Whether it is data rather than something a person reads and edits: its length says nothing,
    /// and its words are not ours.
    pub fn is_data(&self) -> bool {
        self.has_extension(&["json", "jsonl", "lock", "snap"]) || self.path.contains("/fixtures/")
    }

    /// Whether it is written by a program, by lawyers, or by others.
    pub fn is_foreign(&self) -> bool {
        ["docs/reference/", "LICENSE-", "crates/deck/page/vendor/"]
            .iter()
            .any(|start| self.path.starts_with(start))
    }

    /// Whether it holds nothing but tests. A module of tests inside a source file counts as source.
    pub fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }

    fn has_extension(&self, wanted: &[&str]) -> bool {
        let extension = Path::new(&self.path).extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| wanted.contains(&extension))
    }
}

/// The directory that holds the root manifest.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = here.ancestors().nth(2).expect("this crate lies two levels below the root");
    assert!(root.join("Cargo.lock").is_file(), "{} is not the root", root.display());
    root.to_owned()
}

/// A file of the workspace, which has to be there.
#[track_caller]
pub fn read(path: &str) -> String {
    match fs::read_to_string(root().join(path)) {
        Ok(text) => text,
        Err(error) => panic!("cannot read {path}: {error}"),
    }
}

/// Every text file that is tracked or would be with the next `git add`, so that a broken rule is
/// found before the commit. Files that are not UTF-8 are left out.
pub fn files() -> Vec<SourceFile> {
    // The setting lets git answer when the checkout belongs to another user, as in a container.
    let listing = output(
        "git",
        &["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
    );
    let root = root();
    let files: Vec<SourceFile> = listing
        .split('\0')
        .filter(|path| !path.is_empty())
        // A file that was deleted but is still tracked cannot be read, and need not be.
        .filter_map(|path| Some((path, fs::read_to_string(root.join(path)).ok()?)))
        .map(|(path, text)| SourceFile { path: path.to_owned(), text })
        .collect();
    assert!(
        files.iter().any(|file| file.path == "Cargo.toml"),
        "git lists no Cargo.toml: the rules would be checked against nothing"
    );
    files
}

/// `cargo metadata` of our own packages, without their dependencies.
pub fn own_metadata() -> Value {
    let text = output("cargo", &["metadata", "--format-version", "1", "--offline", "--no-deps"]);
    serde_json::from_str(&text).expect("cargo writes JSON")
}

/// An array in JSON that has to be there.
#[track_caller]
pub fn array<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    match value[key].as_array() {
        Some(items) => items,
        None => panic!("cargo metadata: `{key}` is not an array"),
    }
}

/// A text in JSON that has to be there.
#[track_caller]
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    match value[key].as_str() {
        Some(text) => text,
        None => panic!("cargo metadata: `{key}` is not a text"),
    }
}

/// The output of a program that runs in the root; it has to succeed.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "the rules must not depend on what they check")]
pub fn output(program: &str, arguments: &[&str]) -> String {
    // The cargo that runs this test, rather than the one on the path.
    let path = match program {
        "cargo" => env::var_os("CARGO").unwrap_or_else(|| OsString::from(program)),
        other => OsString::from(other),
    };
    let output = match Command::new(path).args(arguments).current_dir(root()).output() {
        Ok(output) => output,
        Err(error) => panic!("cannot start {program}: {error}"),
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {} failed:\n{stderr}", arguments.join(" "));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
