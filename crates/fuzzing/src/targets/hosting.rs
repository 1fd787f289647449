//! Origins, pull requests and files about hosting services.

use gt_core::hosting::{HostedRepository, PullRequestTrust, RequestMarker, quote_text};
use gt_core::merging::MergeRequestId;
use gt_executors::hosting::HostingProvider;

use crate::promise::{accepted, reads_back, text};

pub(super) const WORDS: &[&str] = &[
    "https://",
    "ssh://git@",
    "git@github.com:",
    ":443/",
    "acme/web",
    ".git",
    "Request: web-1@1\n",
    "```",
    "\n````\n",
    "\u{2028}",
    "write,",
    "all",
];

/// An origin, the setting `pr.trust`, and a text on a pull request.
pub(super) fn pull_request(input: &[u8]) {
    let Some(given) = text(input) else { return };
    if let Some(found) = accepted(HostedRepository::of_origin(given)) {
        reads_back(&found, &format!("https://{found}"), HostedRepository::of_origin);
    }
    if let Some(trust) = accepted(PullRequestTrust::parse(given)) {
        reads_back(&trust, &trust.to_string(), PullRequestTrust::parse);
    }
    let marker = RequestMarker(MergeRequestId::parse("web-1@1").expect("this is an id"));
    assert!(marker.is_in(&format!("{given}\n{marker}")));
    let quoted = quote_text(given, 100);
    let fence = quoted.lines().next().unwrap_or_default().trim_end_matches("text");
    let closing = quoted.lines().skip(1).filter(|line| line.trim_start().starts_with(fence));
    assert_eq!(closing.count(), 1, "{quoted}");
}

pub(super) const KEYS: &[&str] = &[
    "program = \"gh\"\n",
    "hosts = ['x']\n",
    "[create]\ncommand = \"api {owner}\"\n",
    "number = \"a.b|c\"\n",
    "[[failure]]\nkind = \"logged-out\"\nexit = 4\n",
    "pattern = 'x(?<until>.)'\n",
    "states = { OPEN = \"open\" }\n",
];

/// A file about a hosting service.
pub(super) fn provider(input: &[u8]) {
    let Some(given) = text(input) else { return };
    if let Some(provider) = accepted(HostingProvider::parse(given, "fuzz.toml")) {
        assert!(!provider.program().is_empty());
    }
}
