// SPDX-License-Identifier: GPL-2.0

//! The written-down `struct tcp_info` against the C compiler's reading of `<linux/tcp.h>`.

use std::fs;
use std::mem::offset_of;
use std::path::PathBuf;
use std::process::Command;

use rpctail::tcp_info::Raw;

macro_rules! offsets {
    ($($field:ident),* $(,)?) => { [$((stringify!($field), offset_of!(Raw, $field))),*] };
}

#[test]
fn offsets_are_the_kernels() {
    // One field after each place where the layout could slip.
    let fields = offsets![
        tcpi_rto,
        tcpi_snd_mss,
        tcpi_snd_cwnd,
        tcpi_total_retrans,
        tcpi_pacing_rate,
        tcpi_bytes_acked,
        tcpi_delivery_rate,
        tcpi_delivered,
        tcpi_delivered_ce,
        tcpi_bytes_sent,
        tcpi_snd_wnd,
        tcpi_rcv_wnd,
        tcpi_rehash,
        tcpi_total_rto,
        tcpi_total_rto_time,
    ];
    let header = fs::read_to_string("/usr/include/linux/tcp.h").unwrap_or_default();
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let source = dir.join("tcp_info.c");
    let mut text = String::from("#include <stddef.h>\n#include <linux/tcp.h>\n");
    let mut checked = 0;
    // Older headers end earlier; what they have must agree.
    for (field, offset) in fields.iter().filter(|(field, _)| {
        header.contains(&format!("{field};")) || header.contains(&format!("{field},"))
    }) {
        text += &format!(
            "_Static_assert(offsetof(struct tcp_info, {field}) == {offset}, \"{field}\");\n"
        );
        checked += 1;
    }
    fs::write(&source, text).unwrap();
    let compiler = Command::new("cc")
        .args(["-c", "-o"])
        .arg(dir.join("tcp_info.o"))
        .arg(&source)
        .output();
    match compiler {
        Ok(output) if checked > 0 => {
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        _ => eprintln!("skipped: no cc or no <linux/tcp.h> here (libc6-dev, linux-libc-dev)"),
    }
}
