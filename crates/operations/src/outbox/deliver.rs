//! One pass over the notices that are due.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use gt_core::decide::{NOTICE_WAIT_MAX, next_delivery};
use gt_core::schedule::{Channel, Notice};
use gt_store::{Due, Writer};

use super::{NotSent, Notifier, Target, setting_of, target_of};
use crate::settings::layers_in;
use crate::{Result, Town};

/// How long sending one notice may take.
pub const SENDING_MAX: Duration = Duration::from_secs(30);
/// How long a notice belongs to whoever took it; if they die, others take it after that.
const LEASE: Duration = Duration::from_mins(1);
/// How much is kept of why a notice did not arrive, in characters.
const ERROR_CHARACTERS_MAX: usize = 500;

/// What a pass did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Delivered {
    /// So many arrived.
    pub sent: usize,
    /// So many did not, and will be tried again.
    pub failed: usize,
    /// So many did not, for the last time.
    pub given_up: usize,
}

/// Sends what is due, at most `limit` notices of each channel. Any number of processes may do this at the
/// same time: each notice is taken by one of them, in the transaction that also writes down what became of
/// the one before it, and sent outside of any transaction. A channel that turns out to be unreachable is
/// left alone for the rest of the pass. If nothing is due, this is a look into an index.
pub fn deliver(town: &Town, notifier: &dyn Notifier, limit: usize) -> Result<Delivered> {
    let mut delivered = Delivered::default();
    for channel in Channel::ALL {
        let due = due(town);
        if town.read(|reader| Ok(reader.due_notice(*channel, due)?))?.is_some() {
            deliver_on(town, notifier, *channel, limit, &mut delivered)?;
        }
    }
    Ok(delivered)
}

/// Whether anything is due.
pub(super) fn is_due(town: &Town) -> Result<bool> {
    let due = due(town);
    town.read(|reader| {
        for channel in Channel::ALL {
            if reader.due_notice(*channel, due)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

fn due(town: &Town) -> Due {
    let now = town.now();
    Due { now, far: now.plus(NOTICE_WAIT_MAX) }
}

fn deliver_on(
    town: &Town,
    notifier: &dyn Notifier,
    channel: Channel,
    limit: usize,
    delivered: &mut Delivered,
) -> Result<()> {
    let settings = town.read(|reader| layers_in(town.root(), reader))?;
    let target = target_of(&settings, channel)?;
    let mut tried: Option<(Notice, Result<(), NotSent>)> = None;
    let mut count = 0;
    loop {
        let unreachable = matches!(&tried, Some((_, Err(NotSent::Unreachable(_)))));
        let goes_on = count < limit && !unreachable;
        let due = due(town);
        let taken = town.write(|writer| {
            if let Some((notice, result)) = &tried {
                record(writer, notice, result)?;
            }
            if !goes_on {
                return Ok(None);
            }
            Ok(writer.take_notice(channel, due, due.now.plus(LEASE))?)
        })?;
        match tried.take() {
            None => {}
            Some((_, Ok(()))) => delivered.sent += 1,
            Some((notice, Err(_))) if is_last(&notice) => delivered.given_up += 1,
            Some((_, Err(_))) => delivered.failed += 1,
        }
        let Some(notice) = taken else { return Ok(()) };
        let result = send(notifier, channel, target.as_ref(), &notice);
        tried = Some((notice, result));
        count += 1;
    }
}

fn send(
    notifier: &dyn Notifier,
    channel: Channel,
    target: Option<&Target>,
    notice: &Notice,
) -> Result<(), NotSent> {
    match target {
        Some(target) => notifier.send(target, notice),
        None => Err(NotSent::Unreachable(format!("{} is not set", setting_of(channel)))),
    }
}

fn is_last(notice: &Notice) -> bool {
    next_delivery(notice.attempts, notice.created_at, 0.5).is_none()
}

fn record(writer: &mut Writer<'_>, notice: &Notice, result: &Result<(), NotSent>) -> Result<()> {
    match result {
        Ok(()) => writer.notice_sent(notice)?,
        Err(error) => {
            let why: String = error.why().chars().take(ERROR_CHARACTERS_MAX).collect();
            let next = next_delivery(notice.attempts, writer.now(), jitter(notice));
            // Whoever took it meanwhile knows better.
            writer.notice_failed(notice, &why, next)?;
        }
    }
    Ok(())
}

/// A number in [0, 1) that is different for every notice and every attempt, and the same whenever it is
/// asked for, so that a simulation replays.
fn jitter(notice: &Notice) -> f64 {
    let mut hasher = DefaultHasher::new();
    (notice.key.as_str(), notice.attempts).hash(&mut hasher);
    let parts = u32::try_from(hasher.finish() >> 32).unwrap_or(0);
    f64::from(parts) / (f64::from(u32::MAX) + 1.0)
}
