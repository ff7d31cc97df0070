// SPDX-License-Identifier: GPL-2.0

//! `rpctail.1` is made from the command line's own description, and must be in step with it.
//!
//! `UPDATE_MAN=1 cargo test -p rpctail --test man` writes it anew.

use std::env;
use std::fs;
use std::path::Path;

use clap::CommandFactory;
use clap_mangen::Man;

use rpctail::cli::Cli;

/// The whole page: the program, then each role with its options.
fn page() -> String {
    let mut command = Cli::command();
    command.build();
    let mut out = Vec::new();
    let man = Man::new(command.clone());
    man.render_title(&mut out).unwrap();
    man.render_name_section(&mut out).unwrap();
    man.render_synopsis_section(&mut out).unwrap();
    man.render_description_section(&mut out).unwrap();
    for role in command.get_subcommands().filter(|c| c.get_name() != "help") {
        let name = role.get_name().to_uppercase();
        out.extend(format!(".SH {name}\n").bytes());
        let role = role.clone().after_help("").after_long_help("");
        let about = role.get_about().unwrap().to_string();
        out.extend(format!("{about}.\n").bytes());
        let mut options = Vec::new();
        Man::new(role).render_options_section(&mut options).unwrap();
        out.extend(
            String::from_utf8(options)
                .unwrap()
                .replace(".SH", ".SS")
                .bytes(),
        );
    }
    man.render_extra_section(&mut out).unwrap();
    out.extend(EXIT.bytes());
    String::from_utf8(out).unwrap()
}

const EXIT: &str = "\
.SH RECORDS
.B \\-\\-json
writes an array of
.BR {\"scenario\",\"variant\",\"flow\",\"metric\",\"unit\",\"value\"} ,
one record a line.
.TP
.B min, p50 ... p99.999, max (us)
Latency from the intended send time.
.TP
.B service_min ... service_max (us)
From the actual send.
.TP
.B round_min ... round_max (us)
From the moment a barrier's round was meant to begin to its last reply.
.TP
.B requests, replies, unfinished, errors (count)
Requests meant for the measured time; replies that came in it; requests without a reply at the
end, which are in the latency with the time they had waited; connections that broke.
.TP
.B offered, achieved (1/s)
Requests and replies a second.
.TP
.B throughput (Mbit/s)
Payload both ways; of a stream, what the peer acknowledged.
.TP
.B fairness (index)
Jain's index of the connections' shares of that payload: 1 when they are equal, 1/n when one of n
has it all.
.TP
.B retrans, rto, ce (count), cwnd_min (packets)
Segments retransmitted, retransmission timeouts (Linux 6.7), packets that arrived CE\\-marked
(Linux 4.18), and the smallest congestion window that was seen: it is looked at now and then, so
a smaller one may have passed unseen. With
.BR peer_ ,
the server's end. All cover the measured time and the late replies.
.TP
.B cc, peer_cc, options, note (text)
The congestion control of each end, the effective options, the first error.
.SH \"EXIT STATUS\"
0 when everything was answered; 1 when nothing could be measured; 2 when the command line is wrong;
3 when there is a measurement, but connections broke or requests had no reply.
.SH \"SEE ALSO\"
.BR tcp (7),
.BR ss (8),
.BR nstat (8)
";

#[test]
fn is_in_step_with_the_help() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("rpctail.1");
    let page = format!(".\\\" SPDX-License-Identifier: GPL-2.0\n{}", page());
    if env::var_os("UPDATE_MAN").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == page,
        "rpctail.1 is out of step: UPDATE_MAN=1 cargo test -p rpctail --test man"
    );
    // Each long option of the help is in the page.
    for role in Cli::command().get_subcommands() {
        for option in role.get_arguments().filter_map(|a| a.get_long()) {
            let escaped = format!("\\-\\-{}", option.replace('-', "\\-"));
            assert!(page.contains(&escaped), "--{option} is missing");
        }
    }
}
