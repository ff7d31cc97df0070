// SPDX-License-Identifier: GPL-2.0

//! Numbers that `net/ack_2018.rs` repeats because the kernel keeps them private: compared with the
//! kernel source that the set-up unpacked (`KSRC`). Without one the test says that it did not look.

use std::{env, eprintln, format, fs, path::PathBuf, string::String};

/// `FLAG_*` of `net/ipv4/tcp_input.c`, which `cong_control` is passed.
#[test]
fn ack_flags() {
    let Some(source) = env::var_os("KSRC").map(PathBuf::from) else {
        eprintln!("KSRC is not set: the flags were not compared with a kernel source");
        return;
    };
    let path = source.join("net/ipv4/tcp_input.c");
    let c = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let ours = include_str!("../../net/ack_2018.rs");

    for name in ["FLAG_RETRANS_DATA_ACKED", "FLAG_LOST_RETRANS"] {
        let theirs = value(&c, &format!("#define {name}"));
        let here = value(ours, &format!("const {name}: c_int ="));
        assert_eq!(theirs, here, "{name}");
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
