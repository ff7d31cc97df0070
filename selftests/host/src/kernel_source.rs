// SPDX-License-Identifier: GPL-2.0

//! What we say of the kernel, compared with the kernel source that the set-up unpacked (`KSRC`):
//! numbers that rust/net repeats because the kernel keeps them private, and the places that write a
//! window. Without a source the tests say that they did not look.

use std::{
    borrow::ToOwned, collections::BTreeSet, env, eprintln, format, fs, path::PathBuf,
    string::String, vec::Vec,
};

/// `FLAG_*` of `net/ipv4/tcp_input.c`, which `cong_control` is passed.
#[test]
fn ack_flags() {
    let Some(source) = env::var_os("KSRC").map(PathBuf::from) else {
        eprintln!("KSRC is not set: the flags were not compared with a kernel source");
        return;
    };
    let path = source.join("net/ipv4/tcp_input.c");
    let c = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let ours = include_str!("../../../rust/net/cong.rs");

    for name in [
        "FLAG_DATA_ACKED",
        "FLAG_SYN_ACKED",
        "FLAG_DATA_SACKED",
        "FLAG_SND_UNA_ADVANCED",
    ] {
        let theirs = value(&c, &format!("#define {name}"));
        let here = value(ours, &format!("const {name}: c_int ="));
        assert_eq!(theirs, here, "{name}");
    }
}

/// Every function outside the algorithms that writes a connection's window, or the clamp of one,
/// stands in docs/window.md, which says what becomes of it.
#[test]
fn window_writers() {
    let Some(source) = env::var_os("KSRC").map(PathBuf::from) else {
        eprintln!("KSRC is not set: no kernel source was looked through for writers of a window");
        return;
    };
    let listed = include_str!("../../../docs/window.md");
    let mut found = BTreeSet::new();
    for folder in [
        "net/ipv4",
        "net/ipv6",
        "net/core",
        "net/mptcp",
        "kernel/bpf",
    ] {
        let folder = source.join(folder);
        let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        for path in files.map(|f| f.expect("a folder can be read").path()) {
            if path.extension().is_some_and(|e| e == "c") {
                let text = fs::read_to_string(&path).expect("C source is text");
                // What an algorithm does to its own sockets is its own affair.
                if !text.contains("static struct tcp_congestion_ops ") {
                    found.extend(writers(&text));
                }
            }
        }
    }

    assert!(
        found.contains("tcp_enter_loss"),
        "the search finds nothing: {found:?}"
    );
    let missing: Vec<_> = found
        .iter()
        .filter(|f| !listed.contains(&format!("`{f}()`")))
        .collect();
    assert!(missing.is_empty(), "not in docs/window.md: {missing:?}");
}

/// The functions of a C file that store to `snd_cwnd` or `snd_cwnd_clamp`.
fn writers(text: &str) -> Vec<String> {
    let mut function = "";
    let mut found = Vec::new();
    for line in text.lines() {
        let begins = line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if let (true, false, Some((head, _))) = (begins, line.ends_with(';'), line.split_once('('))
        {
            function = head.rsplit([' ', '*']).next().unwrap_or(head);
        }
        if line.contains("tcp_snd_cwnd_set(")
            || ["->snd_cwnd", "->snd_cwnd_clamp"]
                .iter()
                .any(|m| stores(line, m))
        {
            found.push(function.to_owned());
        }
    }
    found
}

/// Whether a line of C assigns to this member, in any of the ways there are.
fn stores(line: &str, member: &str) -> bool {
    line.split(member).skip(1).any(|after| {
        let after = after.trim_start();
        let plain = after.starts_with('=') && !after.starts_with("==");
        plain
            || ["+=", "-=", "++", "--", "<<=", ">>="]
                .iter()
                .any(|op| after.starts_with(op))
    }) || (line.contains("WRITE_ONCE(") && line.contains(&format!("{member},")))
}

#[test]
fn stores_of_c() {
    for line in [
        "tp->snd_cwnd = 1;",
        "tp->snd_cwnd++;",
        "WRITE_ONCE(tp->snd_cwnd, 1);",
    ] {
        assert!(stores(line, "->snd_cwnd"), "{line}");
    }
    for line in [
        "if (tp->snd_cwnd == 1)",
        "tp->snd_cwnd_cnt = 0;",
        "x = tp->snd_cwnd;",
    ] {
        assert!(!stores(line, "->snd_cwnd"), "{line}");
    }
}

/// The hexadecimal number that follows `what` in `text`.
fn value(text: &str, what: &str) -> u32 {
    let line = text
        .lines()
        .find(|l| l.contains(what) && l.contains("0x"))
        .unwrap_or_else(|| panic!("no line with {what}"));
    let digits: String = line
        .split_once("0x")
        .map(|(_, rest)| rest.chars().take_while(char::is_ascii_hexdigit).collect())
        .unwrap_or_default();
    u32::from_str_radix(&digits, 16).unwrap_or_else(|e| panic!("{line}: {e}"))
}
