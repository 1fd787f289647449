//! Why a work queue that is elsewhere did nothing.

use gt_api::{ProblemDocument, from_json};
use gt_core::{Uid, WebAddress};
use gt_executors::web::{Reply, WebError};

/// How much of what a strange server said is repeated, in characters.
const WORDS_CHARACTERS_MAX: usize = 200;

/// Why a work queue that is elsewhere did nothing.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// It said no, in these words.
    #[error("{detail}")]
    Told {
        /// The status of the answer.
        status: u16,
        /// A short name for why; empty if it gave none.
        code: String,
        /// Why, and what to do next.
        detail: String,
        /// The item that it is about, if it names one.
        item: Option<Uid>,
    },
    /// It cannot be asked.
    #[error(transparent)]
    Away(WebError),
    /// It was asked, and it is not known whether it acted.
    #[error("it is not known whether this was done; look before you repeat it")]
    Unsure(#[source] WebError),
    /// It answered, and the answer cannot be read.
    #[error("what {origin} answers makes no sense ({why}); is it a server of gt?")]
    Senseless {
        /// The server.
        origin: String,
        /// The fault of the answer.
        why: String,
    },
}

impl RemoteError {
    /// The meaning of an answer that is no success.
    pub(super) fn of_reply(address: &WebAddress, reply: &Reply) -> Self {
        let status = reply.head.status;
        let text = String::from_utf8_lossy(&reply.body);
        let is_problem = reply.head.field("content-type").is_some_and(|kind| {
            kind.split(';').next().unwrap_or_default().trim() == "application/problem+json"
        });
        if is_problem && let Ok(problem) = from_json::<ProblemDocument>(&text) {
            let (code, detail) = (problem.code, problem.detail);
            let item = problem.item.as_deref().and_then(Uid::parse);
            return Self::Told { status, code, detail, item };
        }
        let origin = address.origin();
        let place = reply.head.field("location").filter(|_| (300..400).contains(&status));
        let detail = if let Some(place) = place {
            format!(
                "{origin} answered {status} and points to {place}; redirects are not followed, so give the address where it leads"
            )
        } else {
            let words: String = text.chars().take(WORDS_CHARACTERS_MAX).collect();
            let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
            let words = if words.is_empty() { words } else { format!(": {words}") };
            format!("{origin} answered {status}, and not as a server of gt does{words}")
        };
        Self::Told { status, code: String::new(), detail, item: None }
    }

    /// Whether the same may work in a moment.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Told { status, .. } => matches!(status, 408 | 429 | 502..=504),
            Self::Away(error) | Self::Unsure(error) => match error {
                WebError::Unknown { .. }
                | WebError::Unreachable { .. }
                | WebError::Silent { .. }
                | WebError::Strange(_)
                | WebError::Interrupted(_) => true,
                WebError::Field(_) | WebError::Untrusted { .. } | WebError::TooLong { .. } => false,
            },
            Self::Senseless { .. } => false,
        }
    }
}
