//! The flight deck: the files of its page, compiled into the program.
//!
//! # Architecture invariants
//!
//! - Nothing is read from a disk and nothing is fetched from elsewhere: the program is the whole page.
//! - The list of files is that of the directory `page`; a test compares them.
//! - A file is known by the hash of its bytes, so that a browser asks for the same bytes once.

use std::fmt::Write as _;
use std::sync::LazyLock;

use sha2::{Digest as _, Sha256};

/// The file that stands for the page itself.
pub const INDEX: &str = "index.html";

/// How many bytes of the hash tell two versions of a file apart.
const TAG_BYTES: usize = 12;

/// A file of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFile {
    /// Its path below the page's directory.
    pub path: &'static str,
    /// Its contents.
    pub bytes: &'static [u8],
}

impl PageFile {
    /// The media type of its contents, by its name; nothing for a kind of file that no page has.
    pub fn content_type(&self) -> Option<&'static str> {
        let (_, extension) = self.path.rsplit_once('.')?;
        Some(match extension {
            "html" => "text/html; charset=utf-8",
            "js" | "mjs" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "json" => "application/json",
            "svg" => "image/svg+xml",
            "png" => "image/png",
            "ico" => "image/x-icon",
            "woff2" => "font/woff2",
            "txt" | "md" => "text/plain; charset=utf-8",
            _ => return None,
        })
    }
}

macro_rules! page_files {
    ($($path:literal),* $(,)?) => {
        /// Every file of the page, by name. Add a line here for each file in `crates/deck/page`.
        pub const PAGE_FILES: &[PageFile] = &[$(PageFile {
            path: $path,
            bytes: include_bytes!(concat!("../page/", $path)),
        }),*];
    };
}

page_files![
    "api.js",
    "app.js",
    "clock.js",
    "components/basics.js",
    "components/check_log.js",
    "components/decide.js",
    "components/help.js",
    "components/layout.js",
    "components/marks.js",
    "components/search.js",
    "components/terminal.js",
    "components/toasts.js",
    "components/transcript.js",
    "decisions.js",
    "deck.css",
    "diff.js",
    "format.js",
    "html.js",
    "icon.svg",
    "index.html",
    "keys.js",
    "router.js",
    "selection.js",
    "sharing.js",
    "store.js",
    "theme.js",
    "vendor/LICENSE-htm.txt",
    "vendor/LICENSE-preact.txt",
    "vendor/LICENSE-signals-core.txt",
    "vendor/LICENSE-signals.txt",
    "vendor/hooks.js",
    "vendor/htm.js",
    "vendor/preact.js",
    "vendor/signals-core.js",
    "vendor/signals.js",
    "views/bead.js",
    "views/board.js",
    "views/graph.js",
    "views/money.js",
    "views/needs_you.js",
    "views/queue.js",
    "views/review.js",
    "views/runs.js",
    "views/wall.js",
];

/// The tags of the files, in the order of the list.
static TAGS: LazyLock<Vec<String>> =
    LazyLock::new(|| PAGE_FILES.iter().map(|file| tag_of(file.bytes)).collect());

/// The file of this path and its tag; an empty path is the page itself.
pub fn page_file(path: &str) -> Option<(&'static PageFile, &'static str)> {
    let path = if path.is_empty() { INDEX } else { path };
    let at = PAGE_FILES.iter().position(|file| file.path == path)?;
    Some((&PAGE_FILES[at], TAGS[at].as_str()))
}

fn tag_of(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().take(TAG_BYTES).fold(String::new(), |mut text, byte| {
        // Writing to a text never fails.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;

    use super::*;

    fn files_below(directory: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files_below(&path, root, found);
            } else {
                found.push(path.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
            }
        }
    }

    #[test]
    fn the_list_of_files_is_that_of_the_directory() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let mut there = Vec::new();
        files_below(&root, &root, &mut there);
        there.sort();
        let mut listed: Vec<&str> = PAGE_FILES.iter().map(|file| file.path).collect();
        listed.sort_unstable();
        assert_eq!(listed, there, "add the files to page_files! in crates/deck/src/lib.rs");
    }

    #[test]
    fn every_file_has_a_media_type_and_a_tag_of_its_own_bytes() {
        for file in PAGE_FILES {
            assert!(file.content_type().is_some(), "{}: this kind of file has no type", file.path);
            let (found, tag) = page_file(file.path).unwrap();
            assert_eq!((found.path, tag), (file.path, tag_of(file.bytes).as_str()));
        }
        assert_eq!(page_file("").unwrap().0.path, INDEX);
        for wrong in ["no-such-file", "../Cargo.toml", "/index.html", "index.html/"] {
            assert!(page_file(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn files_of_others_are_those_of_the_checksums() {
        let list = include_str!("../CHECKSUMS");
        let lines = list.lines().filter(|line| !line.starts_with('#'));
        let mut listed: Vec<(String, &str)> = lines
            .map(|line| {
                let mut fields = line.split_whitespace();
                let hash = fields.next().unwrap();
                (format!("vendor/{}", fields.nth(1).unwrap()), hash)
            })
            .collect();
        listed.sort();
        let there = PAGE_FILES.iter().filter(|file| file.path.starts_with("vendor/"));
        let there: Vec<(String, String)> = there
            .map(|file| {
                let mut hash = String::new();
                for byte in Sha256::digest(file.bytes) {
                    write!(hash, "{byte:02x}").unwrap();
                }
                (file.path.to_owned(), hash)
            })
            .collect();
        let listed: Vec<(String, String)> =
            listed.into_iter().map(|(path, hash)| (path, hash.to_owned())).collect();
        assert_eq!(listed, there, "scripts/deck vendor writes both");
    }

    #[test]
    fn no_module_parses_text_as_html_or_runs_it() {
        let is_module =
            |file: &&PageFile| file.content_type().is_some_and(|kind| kind.contains("javascript"));
        let ours = PAGE_FILES.iter().filter(|file| !file.path.starts_with("vendor/"));
        for file in ours.filter(is_module) {
            let text = std::str::from_utf8(file.bytes).unwrap();
            let banned = [
                "innerHTML",
                "outerHTML",
                "insertAdjacent",
                "document.write",
                "eval(",
                "new Function",
            ];
            for word in banned {
                assert!(!text.contains(word), "{}: {word}", file.path);
            }
        }
    }

    #[test]
    fn the_page_has_no_inline_script_and_names_no_other_host() {
        let (index, _) = page_file(INDEX).unwrap();
        let text = std::str::from_utf8(index.bytes).unwrap().to_ascii_lowercase();
        for tag in text.split("<script").skip(1) {
            let (attributes, _) = tag.split_once('>').unwrap();
            assert!(attributes.contains("src="), "an inline script is not run: {attributes}");
        }
        for address in ["src=\"http", "href=\"http", "src=\"/", "href=\"/", "<style", " style=\""] {
            assert!(!text.contains(address), "the page says {address}");
        }
    }
}
