// SPDX-License-Identifier: GPL-2.0

//! A web server in place of an rpctail.

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use common::Server;

/// A server that answers `most` requests a connection with `answer`, and closes it.
fn web(most: usize, answer: fn(left: usize) -> String) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || serve(stream.unwrap(), most, answer));
        }
    });
    Server::stranger(address)
}

fn serve(mut stream: TcpStream, most: usize, answer: fn(usize) -> String) {
    let mut text = Vec::new();
    let mut buffer = [0; 512];
    for left in (0..most).rev() {
        while !text.ends_with(b"\r\n\r\n") {
            match stream.read(&mut buffer) {
                Ok(n @ 1..) => text.extend_from_slice(&buffer[..n]),
                _ => return,
            }
        }
        assert!(text.starts_with(b"GET /reply?n=1 HTTP/1.1\r\nHost: 127.0.0.1:"));
        text.clear();
        if stream.write_all(answer(left).as_bytes()).is_err() {
            return;
        }
    }
}

const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

const LOAD: [&str; 8] = [
    "--http",
    "/reply?n=1",
    "--nodelay=client",
    "--duration",
    "200ms",
    "--conns",
    "2",
    "--warmup-exchanges=4",
];

#[test]
fn chunked_replies_are_measured() {
    let server = web(usize::MAX, |_| format!("{CHUNKED}3\r\nabc\r\n0\r\n\r\n"));
    let run = server.client(&[&LOAD[..], &["--rate", "500"]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.number("rpc", "requests"), 100.0);
    assert_eq!(run.number("rpc", "unfinished"), 0.0);
    let options = run.value("rpc", "options").as_str().unwrap();
    assert!(options.contains(",http=/reply?n=1,"), "{options}");
    // What the server's end saw is not known, and not 0.
    assert!(
        run.records
            .iter()
            .all(|r| !r["metric"].as_str().unwrap().starts_with("peer_"))
    );
}

#[test]
fn back_to_back_too() {
    let server = web(usize::MAX, |_| {
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc".into()
    });
    let run = server.client(&LOAD);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.number("rpc", "replies") > 10.0);
}

#[test]
fn a_server_that_closes_is_named_with_the_remedy() {
    let server = web(7, |left| {
        let close = if left == 0 {
            "Connection: close\r\n"
        } else {
            ""
        };
        format!("HTTP/1.1 200 OK\r\n{close}Content-Length: 3\r\n\r\nabc")
    });
    let run = server.client(&LOAD);
    assert_eq!(run.code, 3, "{}", run.stderr);
    let note = run.value("rpc", "note").as_str().unwrap();
    assert!(
        note.contains("allow more requests on a connection"),
        "{note}"
    );
}

#[test]
fn a_path_that_is_not_there() {
    let server = web(1, |_| {
        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".into()
    });
    let run = server.client(&LOAD);
    assert_eq!(run.code, 3, "{}", run.stderr);
    let note = run.value("rpc", "note").as_str().unwrap();
    assert!(
        note.contains("answers 404 Not Found; is the path right?"),
        "{note}"
    );
}
