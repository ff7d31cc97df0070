// SPDX-License-Identifier: GPL-2.0

//! Both ends on loopback: what was asked for is what is sent, counted and written.
//!
//! Nothing here depends on how fast the machine is: counts are exact, times are compared within
//! one run.

mod common;

use std::fs;

use common::{Server, rpctail, scratch};

#[test]
fn an_open_loop_offers_its_rate() {
    let server = Server::start(&[]);
    let run = server.client(&[
        "--rate",
        "1000",
        "--conns",
        "7",
        "--reply",
        "3091+5",
        "--nodelay",
        "--duration",
        "500ms", //
        "--scenario",
        "T0",
        "--variant",
        "stock",
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    // One more or less at the edge of the window.
    let requests = run.number("rpc", "requests");
    assert!((499.0..=501.0).contains(&requests), "{requests}");
    assert_eq!(run.number("rpc", "unfinished"), 0.0);
    assert!(
        run.records
            .iter()
            .all(|r| r["scenario"] == "T0" && r["variant"] == "stock")
    );
    let mut last = 0.0;
    for metric in [
        "min", "p50", "p75", "p90", "p99", "p99.9", "p99.99", "p99.999", "max",
    ] {
        let (latency, service) = (
            run.number("rpc", metric),
            run.number("rpc", &format!("service_{metric}")),
        );
        assert!(latency >= last, "{metric}: {latency} < {last}");
        assert!(
            service <= latency,
            "{metric}: service {service} > latency {latency}"
        );
        last = latency;
    }
    assert!(run.number("rpc", "cwnd_min") >= 1.0 && run.number("rpc", "peer_cwnd_min") >= 1.0);
    assert!(run.number("rpc", "peer_retrans") >= 0.0);
    assert!(!run.value("rpc", "cc").as_str().unwrap().is_empty());
    // Whole exchanges only: requests of 100 bytes, replies of 3096.
    let bytes = run.number("rpc", "throughput") * 1e6 / 8.0 * 0.5;
    assert!(
        (bytes - run.number("rpc", "replies") * 3196.0).abs() < 1.0,
        "{bytes}"
    );
}

#[test]
fn a_stall_shows_in_every_request_it_held_up() {
    // 2000 a second, held for 200 ms once: a fifth of the second's requests are late, and only the
    // four that were on their way are slow from where they were sent.
    let server = Server::start(&["--stall", "1500:200ms"]);
    let run = server.client(&["--rate", "2k", "--conns", "4", "--duration", "1s"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.number("rpc", "max") > 190_000.0);
    let (latency, service) = (run.number("rpc", "p90"), run.number("rpc", "service_p90"));
    assert!(
        latency > 5.0 * service,
        "latency {latency}, service {service}"
    );
}

#[test]
fn two_small_writes_wait_for_an_ack_unless_nodelay() {
    let server = Server::start(&[]);
    let run = server.client(&[
        "--request",
        "76+15",
        "--duration",
        "300ms",
        "--flow",
        "name=nagle", //
        "--flow",
        "name=nodelay,nodelay",
        "--flow",
        "name=undone,nodelay-undone", //
        "--flow",
        "name=more,more",
        "--flow",
        "name=cork,cork",
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let p50 = |flow: &str| run.number(flow, "p50");
    for held in ["nagle", "undone"] {
        for sent in ["nodelay", "more", "cork"] {
            assert!(
                p50(held) > 5.0 * p50(sent),
                "{held} {}, {sent} {}",
                p50(held),
                p50(sent)
            );
        }
    }
}

#[test]
fn a_cork_that_is_held_costs_200_ms() {
    let server = Server::start(&[]);
    let run = server.client(&[
        "--duration",
        "600ms",
        "--warmup-exchanges",
        "0", //
        "--flow",
        "name=held,cork-held=server",
        "--flow",
        "name=plain",
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.number("held", "min") > 150_000.0);
    assert!(run.number("held", "p50") > 5.0 * run.number("plain", "p50"));
}

#[test]
fn a_stream_and_back_to_back_rpcs_share_a_client() {
    let server = Server::start(&[]);
    let run = server.client(&[
        "--duration",
        "500ms",
        "--flow",
        "name=stream,mode=stream", //
        "--flow",
        "name=1MB,request=1M,reply=1,warmup-exchanges=2",
        "--flow",
        "name=10KB,request=10K,reply=1",
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.number("stream", "throughput") > 0.0);
    assert!(run.number("1MB", "replies") > 0.0 && run.number("10KB", "replies") > 0.0);
    // Back to back with one on its way: nothing can be late, so the two clocks agree.
    let late = run.number("10KB", "p50") - run.number("10KB", "service_p50");
    assert!(late < run.number("10KB", "service_p50"), "{late}");
}

#[test]
fn a_barrier_waits_for_all() {
    let servers = [Server::start(&[]), Server::start(&[])];
    let run = servers[0].client(&[
        "--connect",
        &servers[1].address,
        "--mode",
        "barrier",
        "--conns",
        "6",
        "--rate",
        "50", //
        "--reply",
        "(mss+1)",
        "--nodelay",
        "--duration",
        "1s",
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let requests = run.number("incast", "requests");
    assert!(
        [49.0, 50.0, 51.0].map(|n| n * 6.0).contains(&requests),
        "{requests}"
    );
    assert!(run.number("incast", "round_p50") >= run.number("incast", "p50"));
    assert_eq!(
        run.number("incast", "round_max"),
        run.number("incast", "max")
    );
}

#[test]
fn pipelined_requests_are_all_answered() {
    let server = Server::start(&[]);
    let run = server.client(&[
        "--depth",
        "8",
        "--nodelay",
        "--duration",
        "300ms",
        "--cooldown",
        "100ms",
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.number("rpc", "unfinished"), 0.0);
    let (requests, replies) = (run.number("rpc", "requests"), run.number("rpc", "replies"));
    assert!((requests - replies).abs() <= 16.0, "{requests} {replies}");
}

#[test]
fn what_is_never_answered_is_in_the_tail() {
    // The first stall comes after the warm-up and outlasts the drain.
    let server = Server::start(&["--stall", "200:3s"]);
    let run = server.client(&["--rate", "500", "--duration", "1s", "--drain", "100ms"]);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert!(run.number("rpc", "unfinished") > 100.0);
    assert!(
        run.number("rpc", "max") > 500_000.0,
        "{}",
        run.number("rpc", "max")
    );
}

#[test]
fn a_server_that_dies_is_an_error_and_no_hang() {
    let mut server = Server::start(&[]);
    let client = rpctail()
        .args([
            "client",
            "--connect",
            &server.address,
            "--rate",
            "100",
            "--duration",
            "60s",
            "--json",
            "-",
        ])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    server.child.as_mut().unwrap().kill().unwrap();
    let output = client.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains(r#""metric":"errors","unit":"count","value":1"#),
        "{text}"
    );
}

#[test]
fn every_kind_of_output_is_written() {
    let server = Server::start(&["--once"]);
    let (json, csv, prefix) = (scratch("out.json"), scratch("out.csv"), scratch("out"));
    let output = rpctail()
        .args([
            "client",
            "--connect",
            &server.address,
            "--rate",
            "200",
            "--duration",
            "300ms",
            "--warmup",
            "0",
        ])
        .arg("--json")
        .arg(&json)
        .arg("--csv")
        .arg(&csv)
        .arg("--hgrm")
        .arg(&prefix)
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}");
    assert_eq!(output.stderr, b"", "no progress where no terminal is");
    assert!(
        stdout.contains("# rpctail") && stdout.contains("rate=200,depth=1"),
        "{stdout}"
    );
    assert!(
        stdout.contains("p99.999") && stdout.contains("offered 200"),
        "{stdout}"
    );
    assert!(
        fs::read_to_string(json)
            .unwrap()
            .starts_with("[\n{\"scenario\":\"rpctail\"")
    );
    assert!(
        fs::read_to_string(csv)
            .unwrap()
            .contains("rpctail,default,rpc,p99,")
    );
    for name in ["out.rpc.hgrm", "out.rpc.service.hgrm"] {
        assert!(
            fs::read_to_string(scratch(name))
                .unwrap()
                .contains("Total count    ="),
            "{name}"
        );
    }
    // --once: the server goes when its client has gone.
    let mut server = server;
    assert!(server.child.as_mut().unwrap().wait().unwrap().success());
}
