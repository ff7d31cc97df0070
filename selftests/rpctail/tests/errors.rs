// SPDX-License-Identifier: GPL-2.0

//! Errors name the thing and the remedy.

mod common;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use common::{Server, rpctail};

/// The code and the error output of a program that has to fail.
fn fails(args: &[&str]) -> (i32, String) {
    let output = rpctail().args(args).output().unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn bad_input() {
    for (args, wanted) in [
        (&["--rate", "0"][..], "is not a rate above 0"),
        (&["--reply", "mss+1"], "(mss+1)"),
        (&["--reply", "12Q"], "unknown unit 'Q'"),
        (&["--duration", "1 fortnight"], "unknown unit"),
    ] {
        let (code, error) = fails(&[&["client", "--connect", "127.0.0.1"], args].concat());
        assert!(
            code == 2 && error.contains(wanted),
            "{args:?}: {code} {error}"
        );
    }
    for (args, wanted) in [
        (&["--mode", "open"][..], "an open loop needs a rate"),
        (&["--flow", "colour=red"], "--colour"),
        (
            &["--flow", "name=a", "--flow", "name=a"],
            "two flows are named 'a'",
        ),
        (
            &["--connect", "no.such.host.invalid"],
            "'no.such.host.invalid' is no address",
        ),
        (&["--duration", "0"], "--duration"),
    ] {
        let (code, error) =
            fails(&[&["client", "--connect", "127.0.0.1", "--wait", "0"], args].concat());
        assert!(
            code == 1 && error.contains(wanted),
            "{args:?}: {code} {error}"
        );
    }
}

#[test]
fn nobody_listens() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let (code, error) = fails(&["client", "--connect", &free, "--wait", "50ms"]);
    assert_eq!(code, 1);
    assert!(
        error.contains(&format!("start 'rpctail server --listen {free}'")),
        "{error}"
    );
}

#[test]
fn the_port_is_taken() {
    let server = Server::start(&[]);
    let (code, error) = fails(&["server", "--listen", &server.address]);
    assert_eq!(code, 1);
    assert!(
        error.contains("is in use") && error.contains("--listen ADDR:PORT"),
        "{error}"
    );
}

#[test]
fn a_congestion_control_that_is_not_there() {
    let server = Server::start(&[]);
    for key in ["--cc", "--server-cc"] {
        let (code, error) = fails(&["client", "--connect", &server.address, key, "nosuch"]);
        assert_eq!(code, 1);
        assert!(
            error.contains("modprobe tcp_nosuch") && error.contains("flow 'rpc'"),
            "{error}"
        );
        assert_eq!(
            error.contains("the server says"),
            key == "--server-cc",
            "{error}"
        );
    }
    // The server survives what one client asked for.
    let run = server.client(&["--duration", "50ms"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

#[test]
fn the_other_end_is_no_rpctail() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let stranger = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        _ = stream.read(&mut [0; 512]);
        _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let (code, error) = fails(&["client", "--connect", &address]);
    stranger.join().unwrap();
    assert_eq!(code, 1);
    assert!(error.contains("is the other end an rpctail?"), "{error}");
}

#[test]
fn a_stranger_does_not_disturb_the_server() {
    let server = Server::start(&[]);
    let mut stranger = std::net::TcpStream::connect(&server.address).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    let mut answer = String::new();
    stranger.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("is not rpctail's protocol"), "{answer}");
    assert_eq!(server.client(&["--duration", "50ms"]).code, 0);
}
