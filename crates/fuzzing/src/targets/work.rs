//! Texts that clients of the work queue write: names of things, cursors, tokens, small values.

use gt_core::bead::RequestKey;
use gt_core::work::{
    Cursor, ItemRef, ProjectRef, RunRef, Scopes, TokenId, TokenSecret, Version, WorkFilter,
    WorkStatus, check_agent, work_title, work_type,
};
use gt_core::{RigSlug, limits};

use crate::promise::{accepted, reads_back, text};

pub(super) const WORDS: &[&str] = &[
    "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b",
    "wq-abc#2",
    "gtw_",
    "0707070707070707070707070707070707070707070707070707070707070707",
    "read,submit,work,admin",
    "in_progress",
    "31203020",
    "752032",
];

/// Every small text that a client of the work queue sends.
pub(super) fn words(input: &[u8]) {
    let Some(text) = text(input) else { return };
    if let Some(item) = accepted(ItemRef::parse(text)) {
        reads_back(&item, &item.to_string(), ItemRef::parse);
    }
    if let Some(project) = accepted(ProjectRef::parse(text)) {
        reads_back(&project, &project.to_string(), ProjectRef::parse);
    }
    if let Some(run) = accepted(RunRef::parse(text)) {
        reads_back(&run, &run.to_string(), RunRef::parse);
    }
    if let Some(cursor) = accepted(Cursor::parse(text)) {
        assert_eq!(cursor.to_string(), text);
        let _ = cursor.position_in(&WorkFilter::default());
    }
    if let Some(secret) = TokenSecret::parse(text) {
        assert_eq!(secret.reveal(), text);
        assert!(secret.hash().matches(&secret.hash()));
    }
    if let Some(scopes) = accepted(Scopes::parse(text)) {
        reads_back(&scopes, &scopes.to_string(), Scopes::parse);
    }
    if let Some(id) = accepted(TokenId::parse(text)) {
        reads_back(&id, &id.to_string(), TokenId::parse);
    }
    if let Some(version) = accepted(Version::parse(text)) {
        reads_back(&version, &version.to_string(), Version::parse);
    }
    if let Some(status) = accepted(WorkStatus::parse(text)) {
        reads_back(&status, status.as_str(), WorkStatus::parse);
    }
    if let Some(title) = accepted(work_title(text)) {
        assert!(title.as_str().len() <= limits::TITLE_BYTES_MAX);
        assert!(!title.as_str().chars().any(char::is_control));
    }
    if let Some(kind) = accepted(work_type(text)) {
        assert_eq!(kind.as_str(), text);
    }
    let _ = accepted(check_agent(text));
    if let Some(key) = accepted(RequestKey::parse(text)) {
        assert!(RequestKey::parse(key.nth(1).as_str()).is_ok());
    }
    let slug = RigSlug::derive(text, |_| false);
    reads_back(&slug, slug.as_str(), RigSlug::parse);
}
