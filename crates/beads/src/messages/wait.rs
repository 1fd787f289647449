//! Waiting until a message is read.

use std::time::Duration;

use gt_core::{Message, MessageAddress, MessageId};

use super::address::check;
use super::inbox::require;
use gt_town::{OperationError, Result, Town};

/// How often the message is read where no bell rings: one read of a row.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// How often the message is read although no bell rang.
const POLL_INTERVAL_WITH_BELL: Duration = Duration::from_secs(1);

/// Waits until a message is seen, at most so long; gives it as it is then. It is an error if it has no reader any
/// more.
pub fn wait_until_seen(town: &Town, id: MessageId, timeout: Option<Duration>) -> Result<Message> {
    let began = town.now();
    let bell = town.bell();
    loop {
        let looked = town.read(|reader| {
            let message = require(reader, id)?;
            if message.seen_at.is_none()
                && let MessageAddress::Work(bead) = &message.to
                && check(reader, &message.to).is_err()
            {
                return Err(OperationError::rejected(format!(
                    "{id} was not read, and {bead} has no worker any more; see gt why {bead}"
                )));
            }
            Ok(message)
        });
        let message = match looked {
            Ok(message) => Some(message),
            // A passing error does not end the wait.
            Err(error) if error.may_pass() => None,
            Err(error) => return Err(error),
        };
        let passed = town.now().since(began);
        let left = timeout.map_or(Duration::MAX, |limit| limit.saturating_sub(passed));
        match message {
            Some(message) if message.seen_at.is_some() || left.is_zero() => return Ok(message),
            None if left.is_zero() => return town.read(|reader| require(reader, id)),
            _ => {}
        }
        let usual = if bell.rings() { POLL_INTERVAL_WITH_BELL } else { POLL_INTERVAL };
        bell.wait(usual.min(left));
    }
}
