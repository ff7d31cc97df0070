// SPDX-License-Identifier: GPL-2.0

//! Socket options, and errors that say what to do about them.

use std::fs;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::sockopt;

use crate::Result;
use crate::wire::EndOptions;

/// The kernel's list of the algorithms that can be had right now, for an error's sake.
fn list(sysctl: &str) -> String {
    let path = format!("/proc/sys/net/ipv4/{sysctl}");
    fs::read_to_string(path).map_or("unknown".into(), |names| names.trim().to_owned())
}

/// What to do when the kernel refuses a congestion control.
fn explain_cc(name: &str, error: Errno) -> String {
    match error {
        Errno::NOENT => format!(
            "congestion control '{name}' is not there: load its module (modprobe tcp_{name}); available now: {}",
            list("tcp_available_congestion_control")
        ),
        Errno::PERM => format!(
            "congestion control '{name}' is only for CAP_NET_ADMIN: run as root, or allow it (as root, in the \
             initial network namespace: sysctl -w net.ipv4.tcp_allowed_congestion_control='{} {name}')",
            list("tcp_allowed_congestion_control")
        ),
        _ => format!("congestion control '{name}': {error}"),
    }
}

/// Selects a congestion control by name and makes sure that it is the one in use.
pub fn set_cc(fd: impl AsFd, name: &str) -> Result<()> {
    // TCP_CA_NAME_MAX counts the terminating NUL; the kernel would cut a longer name short.
    if name.is_empty() || name.len() > 15 {
        return Err(format!(
            "congestion control '{name}': a name has 1 to 15 characters"
        ));
    }
    sockopt::set_tcp_congestion(&fd, name).map_err(|error| explain_cc(name, error))?;
    match cc(&fd) {
        now if now == name => Ok(()),
        now => Err(format!(
            "congestion control '{name}' was accepted, but the kernel uses '{now}'"
        )),
    }
}

/// The congestion control a socket uses.
pub fn cc(fd: impl AsFd) -> String {
    sockopt::tcp_congestion(fd).unwrap_or_default()
}

/// What has to be set before the connection is made.
pub fn before_connect(fd: impl AsFd, options: &EndOptions) -> Result<()> {
    if let Some(bytes) = options.sndbuf {
        // The kernel doubles what it is given, for its own overhead, as socket(7) says.
        let value = usize::try_from(bytes).unwrap_or(usize::MAX);
        sockopt::set_socket_send_buffer_size(&fd, value)
            .map_err(|e| format!("SO_SNDBUF {bytes}: {e}"))?;
    }
    match &options.cc {
        Some(name) => set_cc(&fd, name),
        None => Ok(()),
    }
}

/// What has to wait until the hello and the welcome are exchanged, so that they are not held.
pub fn before_load(fd: impl AsFd, options: &EndOptions) -> Result<()> {
    if options.nodelay || options.nodelay_undone {
        sockopt::set_tcp_nodelay(&fd, true).map_err(|e| format!("TCP_NODELAY: {e}"))?;
    }
    if options.nodelay_undone {
        sockopt::set_tcp_nodelay(&fd, false).map_err(|e| format!("TCP_NODELAY: {e}"))?;
    }
    if options.cork_held {
        sockopt::set_tcp_cork(&fd, true).map_err(|e| format!("TCP_CORK: {e}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn says_what_is_missing_and_the_remedy() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let error = set_cc(&socket, "no_such_cc").unwrap_err();
        // Without CAP_NET_ADMIN the kernel does not even try to load the module: ENOENT as well.
        assert!(
            error.contains("modprobe tcp_no_such_cc") && error.contains("available now: "),
            "{error}"
        );
        let error = explain_cc("dctcp", Errno::PERM);
        assert!(
            error.contains("tcp_allowed_congestion_control='") && error.contains(" dctcp'"),
            "{error}"
        );
        assert!(set_cc(&socket, "a_name_that_is_too_long").is_err());
        let available = list("tcp_available_congestion_control");
        let first = available.split(' ').next().unwrap();
        assert_eq!(set_cc(&socket, first), Ok(()));
        assert_eq!(cc(&socket), first);
    }

    #[test]
    fn nodelay_can_be_taken_back() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        let undone = EndOptions {
            nodelay_undone: true,
            ..EndOptions::default()
        };
        before_load(&socket, &undone).unwrap();
        assert!(!sockopt::tcp_nodelay(&socket).unwrap());
        let nodelay = EndOptions {
            nodelay: true,
            ..EndOptions::default()
        };
        before_load(&socket, &nodelay).unwrap();
        assert!(sockopt::tcp_nodelay(&socket).unwrap());
    }
}
