//! Why a bead is where it is, as a document.

use gt_api::{
    CauseDocument, ContextDocument, ConvoyReferenceDocument, FullRunDocument, LineDocument,
    NeedDocument, NeedsYouDocument, PullRequestDocument, RemediedReasonDocument,
    StepProgressDocument, UtcTime, WaitReasonDocument, WhyBeadDocument,
};
use gt_core::decide::WaitReason;
use gt_core::schedule::Context as SlingContext;

use super::absence_document;
use crate::daemon::{self, DaemonAbsence};
use gt_scheduling::needs::Need;
use gt_scheduling::queue::{self, WaitCause, WhyAnswer, WhyHeadline};
use gt_town::{Result, Town};

/// Whether a bead that could start or land waits for a daemon that does not run.
pub fn absence_for(town: &Town, why: &WhyAnswer) -> Result<Option<DaemonAbsence>> {
    let is_backoff = |reason: &WaitReason| matches!(reason, WaitReason::Backoff(_));
    let in_backoff = u64::from(why.reasons.iter().any(is_backoff));
    let absence = || daemon::absence_with_backoff(town, &queue::status(town)?, in_backoff);
    Ok(match why.headline() {
        WhyHeadline::Next | WhyHeadline::Waiting => absence()?,
        WhyHeadline::Landing => absence()?.filter(|absence| {
            why.reasons.iter().any(|reason| match reason {
                WaitReason::Merging(request) => absence.concerns(request),
                _ => false,
            })
        }),
        WhyHeadline::Running | WhyHeadline::Starting | WhyHeadline::Idle | WhyHeadline::Over => {
            None
        }
    })
}

/// Something that waits for a person.
pub fn need_document(need: &Need) -> NeedDocument {
    NeedDocument { code: need.code().to_owned(), what: need.what(), remedy: need.remedy() }
}

/// Why a bead is where it is.
pub fn why_document(why: &WhyAnswer, absence: Option<DaemonAbsence>) -> WhyBeadDocument {
    let reasons =
        why.reasons.iter().zip(&why.remedies).map(|(reason, remedy)| RemediedReasonDocument {
            code: reason.code().to_owned(),
            text: reason.to_string(),
            until: reason.until().map(UtcTime),
            remedy: remedy.clone(),
            pull_request: match reason {
                WaitReason::Merging(request) => PullRequestDocument::of(&request.pull_request),
                _ => None,
            },
        });
    let convoys = why.convoys.iter().map(|convoy| ConvoyReferenceDocument {
        id: convoy.id.to_string(),
        title: convoy.title.to_string(),
        status: convoy.status.to_string(),
    });
    let needs = why.needs.iter().map(|need| NeedsYouDocument::Need(need_document(need)));
    let messages =
        why.needs_you.iter().map(|message| NeedsYouDocument::Message(Box::new(message.into())));
    WhyBeadDocument {
        daemon_absence: absence_document(absence),
        id: why.bead.id.to_string(),
        title: why.bead.title.to_string(),
        status: why.bead.status.to_string(),
        state: why.headline().as_str().to_owned(),
        reasons: reasons.collect(),
        causes: why.causes.iter().map(cause_document).collect(),
        convoys: convoys.collect(),
        line: why.outlook.as_ref().map(|outlook| LineDocument {
            position: outlook.position as u64,
            of: outlook.of as u64,
            ahead: outlook.ahead.iter().map(ToString::to_string).collect(),
        }),
        holders: why.holders.iter().map(FullRunDocument::from).collect(),
        context: why.context.as_ref().map(context_document),
        attempts: why.context.as_ref().map(|context| context.attempts.into()),
        max_attempts: why.max_attempts.into(),
        run: why.run.as_ref().map(FullRunDocument::from),
        progress: why.progress.map(StepProgressDocument::from),
        needs_you: needs.chain(messages).collect(),
        landed_commit: why.landed.as_ref().map(|request| request.landed.clone()),
    }
}

fn cause_document(cause: &WaitCause) -> CauseDocument {
    CauseDocument {
        id: cause.bead.id.to_string(),
        title: cause.bead.title.to_string(),
        status: cause.bead.status.to_string(),
        outcome: cause.bead.outcome.map(|outcome| outcome.as_str().to_owned()),
        reasons: cause.reasons.iter().map(WaitReasonDocument::from).collect(),
        remedy: cause.remedy.clone(),
    }
}

fn context_document(context: &SlingContext) -> ContextDocument {
    let closed = context.closed.as_ref();
    ContextDocument {
        id: context.id.to_string(),
        number: context.number,
        rig: context.rig.to_string(),
        place: context.place.as_ref().map(|place| place.as_str().to_owned()),
        origin: context.origin.as_str().to_owned(),
        enqueued_at: context.enqueued_at.into(),
        enqueued_by: context.enqueued_by.clone(),
        failures: context.failures.into(),
        last_failure: context.last_failure.clone(),
        next_attempt_at: context.next_attempt_at.map(UtcTime),
        close_reason: closed.map(|closed| closed.reason.as_str().to_owned()),
        closed_at: closed.map(|closed| closed.at.into()),
        closed_by: closed.map(|closed| closed.by.clone()),
    }
}
