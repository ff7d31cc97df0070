// SPDX-License-Identifier: GPL-2.0

//! Makes the two sides of the test: the kernel's own C, cut out of the source that the set-up
//! unpacked (`KSRC`), and the module's Rust, copied from `rust/` with stand-ins for what only a
//! kernel has. Then both again, once for each difference that is planted to show that the test
//! finds it. Nothing that is made here leaves `OUT_DIR`.

mod cut;
mod planted;

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

use cut::{first, Source};

/// Where the window's functions are.
const CODE: &[&str] = &[
    "net/ipv4/tcp_input.c",
    "net/ipv4/tcp_output.c",
    "net/ipv4/tcp_cong.c",
    "net/ipv4/tcp_timer.c",
];

/// What is taken of them.
const FUNCTIONS: &[&str] = &[
    // The life of an ACK, in the kernel's own order.
    "tcp_ack",
    "tcp_ack_update_window",
    "tcp_may_update_window",
    "tcp_snd_una_update",
    "tcp_clean_rtx_queue",
    "tcp_ack_update_rtt",
    "tcp_rtt_estimator",
    "tcp_set_rto",
    "tcp_in_ack_event",
    "tcp_process_tlp_ack",
    "tcp_ack_is_dubious",
    "tcp_fastretrans_alert",
    "tcp_set_xmit_timer",
    "tcp_ack_probe",
    "tcp_newly_delivered",
    "tcp_cong_control",
    "tcp_xmit_recovery",
    // Congestion state.
    "tcp_enter_recovery",
    "tcp_enter_cwr",
    "tcp_enter_loss",
    "tcp_process_loss",
    "tcp_try_to_open",
    "tcp_try_keep_open",
    "tcp_try_undo_recovery",
    "tcp_try_undo_loss",
    "tcp_try_undo_partial",
    "tcp_try_undo_dsack",
    "tcp_may_undo",
    "tcp_init_undo",
    "tcp_packet_delayed",
    "tcp_tsopt_ecr_before",
    "tcp_is_non_sack_preventing_reopen",
    "tcp_any_retrans_done",
    "tcp_retrans_stamp_cleanup",
    "tcp_time_to_recover",
    "tcp_check_sack_reneging",
    "tcp_update_rto_time",
    "tcp_non_congestion_loss_retransmit",
    "tcp_set_ca_state",
    "tcp_init_congestion_control",
    // The window.
    "tcp_init_transfer",
    "tcp_init_cwnd",
    "tcp_init_cwnd_reduction",
    "tcp_cwnd_reduction",
    "tcp_end_cwnd_reduction",
    "tcp_undo_cwnd_reduction",
    "tcp_may_raise_cwnd",
    "tcp_cong_avoid",
    "tcp_slow_start",
    "tcp_cong_avoid_ai",
    "tcp_reno_cong_avoid",
    "tcp_reno_ssthresh",
    "tcp_reno_undo_cwnd",
    "tcp_update_pacing_rate",
    "tcp_cwnd_restart",
    "tcp_cwnd_application_limited",
    "tcp_cwnd_validate",
    // What was lost, what arrived, in which order.
    "tcp_identify_packet_loss",
    "tcp_mark_skb_lost",
    "tcp_notify_skb_loss_event",
    "tcp_verify_retransmit_hint",
    "tcp_timeout_mark_lost",
    "tcp_rack_advance",
    "tcp_rack_update_reo_wnd",
    "tcp_skb_spurious_retrans",
    "tcp_sacktag_one",
    "tcp_dsack_seen",
    "tcp_check_sack_reordering",
    "tcp_check_reno_reordering",
    "tcp_limit_reno_sacked",
    "tcp_add_reno_sack",
    "tcp_remove_reno_sacks",
    "tcp_reset_reno_sack",
    "tcp_count_delivered",
    "tcp_count_delivered_ce",
    "tcp_rate_skb_delivered",
    "tcp_data_ecn_check",
    // Sending.
    "tcp_write_xmit",
    "__tcp_push_pending_frames",
    "tcp_push_one",
    "tcp_event_new_data_sent",
    "tcp_event_data_sent",
    "tcp_cwnd_test",
    "tcp_tso_segs",
    "tcp_tso_autosize",
    "tcp_retransmit_skb",
    "tcp_xmit_retransmit_queue",
    "tcp_send_loss_probe",
    "tcp_schedule_loss_probe",
    "tcp_rearm_rto",
    "tcp_write_timer_handler",
];

/// Where inline functions and types are.
const HEADERS: &[&str] = &[
    "include/net/tcp.h",
    "include/net/tcp_ecn.h",
    "include/net/inet_connection_sock.h",
    "include/linux/tcp.h",
    "include/net/tcp_states.h",
    "include/uapi/linux/tcp.h",
    "include/uapi/linux/inet_diag.h",
    "include/uapi/linux/snmp.h",
];

/// Inline functions that are taken of them.
const INLINE: &[&str] = &[
    "before",
    "between",
    "tcp_snd_cwnd",
    "tcp_in_slow_start",
    "tcp_in_cwnd_reduction",
    "tcp_current_ssthresh",
    "tcp_is_cwnd_limited",
    "tcp_left_out",
    "tcp_packets_in_flight",
    "tcp_is_sack",
    "tcp_is_reno",
    "tcp_wnd_end",
    "tcp_check_probe_timer",
    "tcp_send_head",
    "tcp_write_queue_empty",
    "tcp_rtx_queue_head",
    "tcp_rtx_queue_empty",
    "tcp_highest_sack_seq",
    "tcp_highest_sack_reset",
    "tcp_highest_sack",
    "tcp_highest_sack_replace",
    "tcp_advance_highest_sack",
    "tcp_clear_all_retrans_hints",
    "tcp_skb_sent_after",
    "tcp_skb_timestamp_us",
    "tcp_skb_timestamp_ts",
    "tcp_stamp_us_delta",
    "tcp_slow_start_after_idle_check",
    "tcp_ca_event",
    "tcp_ca_needs_ecn",
    "tcp_plb_init",
    "tcp_rto_delta_us",
    "tcp_reset_xmit_timer",
    "__tcp_set_rto",
    "tcp_bound_rto",
    "tcp_timeout_expires",
    "inet_csk_reset_xmit_timer",
    "inet_csk_clear_xmit_timer",
    "tcp_ecn_mode_any",
    "tcp_ecn_mode_rfc3168",
    "tcp_ecn_mode_accecn",
    "tcp_ecn_disabled",
    "tcp_ecn_queue_cwr",
    "tcp_ecn_withdraw_cwr",
    "tcp_ecn_rcv_ecn_echo",
];

/// Types that are taken of the headers, in this order.
const TYPES: &[&str] = &[
    "enum tcp_ca_state",
    "enum tcp_ca_event",
    "enum tcp_ca_ack_event_flags",
    "enum inet_csk_ack_state_t",
    "struct tcpvegas_info",
    "struct tcp_dctcp_info",
    "struct tcp_bbr_info",
    "union tcp_cc_info",
    "struct ack_sample",
    "struct rate_sample",
    "struct tcp_plb_state",
];

/// Enumerations without a name, by one of their members.
const ENUMERATIONS: &[&str] = &[
    "TCP_ESTABLISHED",
    "TCPF_ESTABLISHED",
    "INET_DIAG_DCTCPINFO",
    "TCPCB_LOST",
    "LINUX_MIB_TCPFASTRETRANS",
];

/// Constants that are taken of the headers, by what they begin with.
const CONSTANTS: &[&str] = &[
    "TCPF_CA_",
    "TCP_ECN_",
    "TCP_CONG_",
    "TCP_CA_NAME_MAX",
    "TCP_INFINITE_SSTHRESH",
    "TCP_INIT_CWND",
    "TCP_RACK_",
    "TCP_PLB_SCALE",
    "TCP_NAGLE_",
    "TCP_RTO_M",
    "TCP_TIMEOUT_",
    "TCP_DSACK_SEEN",
    "TCP_SACK_SEEN",
    "TCPHDR_",
    "ICSK_TIME_",
    "after(",
];

/// Headers that the kernel's C and `rust/net` include; all are the one that stands in.
const INCLUDED: &[&str] = &[
    "linux/btf.h",
    "linux/btf_ids.h",
    "linux/ftrace.h",
    "linux/inet_diag.h",
    "linux/mm.h",
    "linux/module.h",
    "linux/moduleparam.h",
    "linux/random.h",
    "linux/seq_file.h",
    "linux/sysctl.h",
    "linux/tcp.h",
    "linux/types.h",
    "linux/workqueue.h",
    "net/net_namespace.h",
    "net/tcp.h",
];

/// Names that the linker sees of `c/core.c` itself.
const GLOBAL: &[&str] = &[
    "oracle_core",
    "oracle_registered",
    "param_set_uint_minmax",
    "param_get_uint",
    "tcp_register_congestion_control",
    "tcp_unregister_congestion_control",
    "__tcp_send_ack",
];

/// The C side of a variant: the files that core.c includes.
struct Core {
    input: String,
    recovery: String,
    plb: String,
    dctcp: String,
    /// tcp_dctcp.h.
    ece: String,
    /// Inline functions of the headers.
    inline: String,
}

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let top = here
        .join("../..")
        .canonicalize()
        .expect("the checkout is there");
    println!("cargo:rerun-if-env-changed=KSRC");
    for watched in ["build", "c", "net"] {
        println!("cargo:rerun-if-changed={}", here.join(watched).display());
    }
    println!("cargo:rerun-if-changed={}", top.join("rust").display());

    let Some(ksrc) = env::var_os("KSRC").map(PathBuf::from) else {
        panic!(
            "lowtail: error: KSRC does not name a kernel source, whose C is what this compares with\n\
             lowtail: remedy: make setup, then make oracle"
        );
    };
    println!("cargo:rerun-if-changed={}", ksrc.join("net/ipv4").display());

    let core = cut_core(&ksrc, &out);
    compile(&here, &out, &core, None);
    let next = AtomicUsize::new(0);
    let jobs = thread::available_parallelism().map_or(1, |n| n.get());
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while let Some(p) = planted::IN_C.get(next.fetch_add(1, Relaxed)) {
                    compile(&here, &out, &core, Some(p));
                }
            });
        }
    });
    bind(&here, &top, &out);

    copy_module(&here, &top, &out.join("floor"), None);
    for p in planted::IN_RUST {
        copy_module(&here, &top, &out.join(p.name), Some(p));
    }
    write(&out.join("variants.rs"), &variants(&out));
}

/// Cuts what is needed out of the kernel source.
fn cut_core(ksrc: &Path, out: &Path) -> Core {
    let read = |paths: &[&'static str]| -> Vec<Source> {
        paths.iter().map(|p| Source::read(ksrc, p)).collect()
    };
    let code = read(CODE);
    let headers = read(HEADERS);

    let mut types = String::from("/* Cut out of the kernel source by selftests/oracle/build. */\n");
    for prefix in CONSTANTS {
        for header in &headers {
            types += &header.constants(prefix);
        }
    }
    for prefix in ["FLAG_", "REXMIT_"] {
        types += &code[0].constants(prefix);
    }
    for member in ENUMERATIONS {
        types += &first(&headers, member, |s| s.enumeration_of(member));
        types.push('\n');
    }
    for what in TYPES {
        types += &first(&headers, what, |s| s.definition(what));
        types.push('\n');
    }
    types += &first(&headers, "struct tcp_congestion_ops", |s| {
        s.definition("struct tcp_congestion_ops")
    });
    types.push('\n');
    types += &first(&code, "struct tcp_sacktag_state", |s| {
        s.definition("struct tcp_sacktag_state")
    });
    types.push('\n');
    write(&out.join("cut.h"), &types);

    let mut input = String::new();
    let mut prototypes = String::new();
    for name in FUNCTIONS {
        let function = first(&code, name, |s| s.function(name));
        prototypes += &format!("{};\n", function.signature);
        input += &format!("{}\n", function.text);
    }
    let recovery = Source::read(ksrc, "net/ipv4/tcp_recovery.c");
    for name in [
        "tcp_rack_skb_timeout",
        "tcp_rack_mark_lost",
        "tcp_rack_reo_timeout",
        "tcp_newreno_mark_lost",
    ] {
        let function = first(std::slice::from_ref(&recovery), name, |s| s.function(name));
        prototypes += &format!("{};\n", function.signature);
    }
    write(&out.join("cut_prototypes.h"), &prototypes);

    let mut inline = String::new();
    let mut prototypes = String::new();
    for name in INLINE {
        let function = first(&headers, name, |s| s.function(name));
        prototypes += &format!("{};\n", function.signature);
        inline += &format!("{}\n", function.text);
    }
    let plb = Source::read(ksrc, "net/ipv4/tcp_plb.c");
    for name in [
        "tcp_plb_update_state",
        "tcp_plb_check_rehash",
        "tcp_plb_update_state_upon_rto",
    ] {
        let function = first(std::slice::from_ref(&plb), name, |s| s.function(name));
        prototypes += &format!("{};\n", function.signature);
    }
    for name in [
        "tcp_cwnd_restart",
        "tcp_reno_cong_avoid",
        "tcp_reno_ssthresh",
        "tcp_reno_undo_cwnd",
    ] {
        let function = first(&code, name, |s| s.function(name));
        prototypes += &format!("{};\n", function.signature);
    }
    write(&out.join("cut_inline_prototypes.h"), &prototypes);
    write(&out.join("cut_inline.h"), &inline);

    let include = out.join("include");
    for header in INCLUDED {
        write(&include.join(header), "#include \"standin.h\"\n");
    }

    Core {
        input,
        recovery: recovery.whole().to_owned(),
        plb: plb.whole().to_owned(),
        dctcp: Source::read(ksrc, "net/ipv4/tcp_dctcp.c")
            .whole()
            .to_owned(),
        ece: Source::read(ksrc, "net/ipv4/tcp_dctcp.h")
            .whole()
            .to_owned(),
        inline,
    }
}

/// Compiles core.c around `core`, with one difference planted into the kernel's text.
fn compile(here: &Path, out: &Path, core: &Core, planted: Option<&planted::Planted>) {
    let name = planted.map_or("core", |p| p.name);
    let dir = out.join(name);
    let files = [
        ("cut.c", &core.input),
        ("cut_recovery.c", &core.recovery),
        ("cut_plb.c", &core.plb),
        ("cut_dctcp.c", &core.dctcp),
        ("tcp_dctcp.h", &core.ece),
        ("cut_inline.h", &core.inline),
    ];
    let mut made = 0;
    for (file, text) in files {
        let mut text = text.clone();
        if let Some(p) = planted {
            made += text.matches(p.from).count();
            text = text.replace(p.from, p.to);
        }
        write(&dir.join(file), &text);
    }
    if let Some(p) = planted {
        assert_eq!(
            made, 1,
            "lowtail: error: planted difference {name}: `{}` is not once in the kernel's C\n\
             lowtail: remedy: write it as this kernel has it, in selftests/oracle/build/planted.rs",
            p.from
        );
    }

    let mut build = cc::Build::new();
    build
        .std("gnu11")
        .warnings(false)
        // The planted ones need not be fast, and are many.
        .opt_level(if planted.is_none() { 2 } else { 1 })
        .debug(false)
        // Objects of the same name must not meet.
        .out_dir(&dir)
        .include(&dir)
        .include(here.join("c"))
        .include(out.join("include"))
        .include(out);
    for flag in ["-funsigned-char", "-fno-strict-aliasing", "-fwrapv", "-w"] {
        build.flag(flag);
    }
    build.file(here.join("c/core.c"));
    if planted.is_none() {
        build.file(here.join("c/connection.c"));
        build.file(here.join("../../rust/net/tcp_helpers.c"));
    } else {
        let all = format!("{}\n{}\n{}", core.input, core.recovery, core.plb);
        for global in globals(&all).chain(GLOBAL.iter().map(|g| (*g).to_owned())) {
            build.define(&global, format!("{global}__{name}").as_str());
        }
    }
    build.compile(&format!("oracle_{name}"));
}

/// The functions in `text` that the linker sees.
fn globals(text: &str) -> impl Iterator<Item = String> + '_ {
    text.lines().filter_map(|line| {
        let starts = line.starts_with(|c: char| c.is_alphabetic() || c == '_');
        if !starts || line.starts_with("static") || line.ends_with([';', ':']) {
            return None;
        }
        let (before, _) = line.split_once('(')?;
        let name = before.rsplit([' ', '*']).next()?;
        (before.contains(' ') && !name.is_empty()).then(|| name.to_owned())
    })
}

/// Binds the C side for the test, and what `rust/net` uses of it for the module.
fn bind(here: &Path, top: &Path, out: &Path) {
    let builder = || {
        bindgen::Builder::default()
            .rust_target(bindgen::RustTarget::stable(85, 0).unwrap_or_default())
            .use_core()
            .layout_tests(false)
            .generate_comments(false)
            .clang_args(["-funsigned-char", "-w", "-std=gnu11"])
            .clang_arg(format!("-I{}", here.join("c").display()))
            .clang_arg(format!("-I{}", out.join("include").display()))
            .clang_arg(format!("-I{}", out.display()))
    };
    builder()
        .header(here.join("c/oracle.h").to_string_lossy())
        .allowlist_item("oracle_.*|ORACLE_.*")
        .opaque_type("tcp_sock|tcp_congestion_ops")
        .prepend_enum_name(false)
        .derive_default(true)
        .derive_eq(true)
        .generate()
        .expect("bindgen binds oracle.h")
        .write_to_file(out.join("bindings.rs"))
        .expect("OUT_DIR can be written");

    let parameters = top.join("rust/net/bindgen_parameters");
    let parameters = fs::read_to_string(&parameters).expect("rust/net is there");
    let mut module = builder()
        .header(top.join("rust/net/bindings_helper.h").to_string_lossy())
        .ctypes_prefix("ffi")
        .derive_default(true)
        .derive_debug(false)
        .allowlist_type("module")
        .allowlist_var("oracle_net");
    for line in parameters.lines() {
        module = match line.split_once(' ') {
            Some(("--allowlist-type", what)) => module.allowlist_type(what),
            Some(("--allowlist-function", what)) => module.allowlist_function(what),
            Some(("--allowlist-var", what)) => module.allowlist_var(what),
            _ => module,
        };
    }
    module
        .generate()
        .expect("bindgen binds what rust/net uses")
        .write_to_file(out.join("bindings_module.rs"))
        .expect("OUT_DIR can be written");
}

/// Copies the module's source to `to`, with the files of `connection/` and `net/` here in place of
/// those of the same name, and with one difference planted.
fn copy_module(here: &Path, top: &Path, to: &Path, planted: Option<&planted::Planted>) {
    let mut made = 0;
    let mut place = |from: &Path, to: &Path| {
        let mut text = fs::read_to_string(from).expect("rust/ can be read");
        if let Some(p) = planted {
            made += text.matches(p.from).count();
            text = text.replace(p.from, p.to);
        }
        if to.ends_with("tcp_dctcp_floor.rs") {
            let marker = "mod net {\n";
            assert!(
                text.contains(marker),
                "the module has its abstractions in `mod net`"
            );
            text = text.replace(marker, "pub(crate) mod net {\n    pub(crate) mod view;\n");
        }
        write(to, &text);
    };
    let rust = top.join("rust");
    place(
        &rust.join("tcp_dctcp_floor.rs"),
        &to.join("tcp_dctcp_floor.rs"),
    );
    for folder in ["connection", "dctcp", "net"] {
        for entry in fs::read_dir(rust.join(folder)).expect("rust/ can be read") {
            let path = entry.expect("rust/ can be read").path();
            if path.extension().is_some_and(|e| e == "rs") {
                let name = path.file_name().expect("it is a file");
                place(&path, &to.join(folder).join(name));
            }
        }
    }
    for folder in ["connection", "net"] {
        for entry in fs::read_dir(here.join(folder)).expect("stand-ins can be read") {
            let path = entry.expect("stand-ins can be read").path();
            let name = path.file_name().expect("it is a file").to_owned();
            write(
                &to.join(folder).join(name),
                &fs::read_to_string(&path).expect("it can be read"),
            );
        }
    }
    if let Some(p) = planted {
        assert_eq!(
            made, 1,
            "lowtail: error: planted difference {}: `{}` is not once in rust/\n\
             lowtail: remedy: write it as the module has it, in selftests/oracle/build/planted.rs",
            p.name, p.from
        );
    }
}

/// The module's copies as Rust modules, and the two lists of what was planted.
fn variants(out: &Path) -> String {
    let mut text = String::new();
    let mut module = |name: &str| {
        text += &format!(
            "#[path = \"{}\"]\n#[allow(warnings, clippy::all, clippy::undocumented_unsafe_blocks)]\n\
             #[rustfmt::skip]\nmod {name};\n",
            out.join(name).join("tcp_dctcp_floor.rs").display()
        );
    };
    module("floor");
    for p in planted::IN_RUST {
        module(p.name);
    }
    for p in planted::IN_C {
        text += &format!(
            "unsafe extern \"C\" {{ #[link_name = \"oracle_core__{0}\"] fn core_{0}() -> *const ffi::oracle_core; }}\n",
            p.name
        );
    }
    text += "/// Differences planted into the module's Rust: what, and the copy with it.\n\
             pub const PLANTED_IN_RUST: &[(&str, Module)] = &[\n";
    for p in planted::IN_RUST {
        text += &format!("    ({:?}, {}::net::view::MODULE),\n", p.what, p.name);
    }
    text += "];\n/// Differences planted into the kernel's C: what, and the core with it.\n\
             pub const PLANTED_IN_C: &[(&str, Core)] = &[\n";
    for p in planted::IN_C {
        text += &format!("    ({:?}, Core(core_{})),\n", p.what, p.name);
    }
    text += "];\n";
    text
}

/// Writes a file where its text changed, so that nothing is compiled again for nothing.
fn write(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return;
    }
    let folder = path.parent().expect("a file is in a folder");
    fs::create_dir_all(folder).expect("OUT_DIR can be written");
    fs::write(path, text).expect("OUT_DIR can be written");
}
