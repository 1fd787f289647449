//! A new program for a host.

use std::path::Path;

use gt_core::decide::Right;
use gt_executors::remote_shell::RemoteInput;
use gt_scheduling::fleet::{self, FleetHost};
use gt_town::{OperationError, Result, Town};

use super::{JOIN_LIMIT, SHORT_LIMIT, carry_out, copy, scripts, shell_of, wait_for_lease};

/// Gives the host that `input` names this program, of this version, restarts its daemon, and waits until that has renewed its
/// lease. Its workers go on. If any of that fails, the host has its former program again. `target` is its machine, if its own
/// settings do not name it.
pub fn upgrade(
    town: &Town,
    input: &str,
    target: Option<&str>,
    (program, version): (&Path, &str),
) -> Result<FleetHost> {
    town.require_right(Right::Queue, "an upgrade of a host")?;
    let host = fleet::named(town, input)?;
    let name = &host.record.host.name;
    if host.is_here {
        return Err(OperationError::rejected(format!(
            "{name} is this host; install the new gt here, then gt down && gt up"
        )));
    }
    let target = target.unwrap_or(&host.record.declared.address);
    if target.is_empty() {
        return Err(OperationError::rejected(format!(
            "{name} has no address; name its machine with --ssh, or set host.address in its settings/config.json"
        )));
    }
    let (shell, path) = (shell_of(town, target)?, host.record.host.path.as_str());
    copy(&shell, scripts::SWAP, path, program)?;
    let id = &host.record.host.id;
    let restarted = carry_out(&shell, scripts::RESTART, &[path], RemoteInput::Nothing, JOIN_LIMIT)
        .and_then(|_| {
            wait_for_lease(town, &shell, |host| {
                host.record.host.id == *id && host.record.declared.version == version
            })
        });
    match restarted {
        Ok(host) => {
            // The next upgrade would replace it.
            let _ = carry_out(&shell, scripts::SWAPPED, &[path], RemoteInput::Nothing, SHORT_LIMIT);
            Ok(host)
        }
        Err(error) => {
            let back =
                carry_out(&shell, scripts::SWAP_BACK, &[path], RemoteInput::Nothing, JOIN_LIMIT);
            let now = match back {
                Ok(_) => "it has its former program again".to_owned(),
                Err(why) => {
                    format!("its former program is {path}/.gt/program/gt.old there ({why})")
                }
            };
            Err(OperationError::rejected(format!("{name} was not upgraded: {error}; {now}")))
        }
    }
}
