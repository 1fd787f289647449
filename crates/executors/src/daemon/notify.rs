//! Reports the daemon's state to its service manager (systemd): the part of `sd_notify(3)` that we
//! need.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::Duration;

/// The service manager that keeps us running, if there is one.
#[derive(Debug, Default)]
pub struct ServiceManager {
    socket: Option<UnixDatagram>,
}

impl ServiceManager {
    /// The one that the variable `NOTIFY_SOCKET` names: a path, or a name behind an `@`.
    pub fn named(address: Option<&str>) -> Self {
        Self { socket: address.and_then(connect) }
    }

    /// Tells them something, such as `READY=1`. If they cannot be told, there is nothing else to be done about it.
    pub fn tell(&self, state: &str) {
        if let Some(socket) = &self.socket {
            let _ = socket.send(state.as_bytes());
        }
    }
}

fn connect(address: &str) -> Option<UnixDatagram> {
    let socket = UnixDatagram::unbound().ok()?;
    // A service manager that does not read must not block us.
    socket.set_nonblocking(true).ok()?;
    match address.strip_prefix('@') {
        Some(name) => connect_by_name(&socket, name)?,
        None => socket.connect(Path::new(address)).ok()?,
    }
    Some(socket)
}

fn connect_by_name(socket: &UnixDatagram, name: &str) -> Option<()> {
    use std::os::linux::net::SocketAddrExt as _;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name).ok()?;
    socket.connect_addr(&address).ok()
}

/// How often they want to hear that we make progress: half of the time after which they lose patience. Nothing if they do
/// not, or mean another process. These are the variables `WATCHDOG_USEC` and `WATCHDOG_PID`.
pub fn watchdog_interval(microseconds: Option<&str>, pid: Option<&str>) -> Option<Duration> {
    if pid.is_some_and(|pid| pid != std::process::id().to_string()) {
        return None;
    }
    let microseconds: u64 = microseconds?.parse().ok().filter(|number| *number > 0)?;
    Some(Duration::from_micros(microseconds) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_manager_is_reached_by_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let systemd = UnixDatagram::bind(&path).unwrap();
        ServiceManager::named(path.to_str()).tell("READY=1\nSTATUS=well");
        let mut heard = [0; 100];
        let length = systemd.recv(&mut heard).unwrap();
        assert_eq!(&heard[..length], b"READY=1\nSTATUS=well");
    }

    #[test]
    fn a_service_manager_is_reached_by_abstract_name() {
        use std::os::linux::net::SocketAddrExt as _;
        let name = format!("gt-test-{}", std::process::id());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let systemd = UnixDatagram::bind_addr(&address).unwrap();
        ServiceManager::named(Some(&format!("@{name}"))).tell("STOPPING=1");
        let mut heard = [0; 100];
        let length = systemd.recv(&mut heard).unwrap();
        assert_eq!(&heard[..length], b"STOPPING=1");
    }

    #[test]
    fn a_missing_service_manager_is_no_error() {
        ServiceManager::named(None).tell("READY=1");
        ServiceManager::named(Some("/nonexistent/notify")).tell("READY=1");
    }

    #[test]
    fn a_watchdog_of_another_process_is_ignored() {
        let ours = std::process::id().to_string();
        let half = Some(Duration::from_secs(15));
        assert_eq!(watchdog_interval(Some("30000000"), Some(&ours)), half);
        assert_eq!(watchdog_interval(Some("30000000"), None), half);
        for (time, pid) in [(None, None), (Some("0"), None), (Some("x"), None)] {
            assert_eq!(watchdog_interval(time, pid), None);
        }
        assert_eq!(watchdog_interval(Some("30000000"), Some("1")), None);
    }
}
