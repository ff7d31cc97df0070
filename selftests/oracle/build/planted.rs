// SPDX-License-Identifier: GPL-2.0

//! Differences that are planted into one side, each into a copy of its own, to show that the test
//! finds it.

/// One difference.
pub(crate) struct Planted {
    /// A name for the copy.
    pub(crate) name: &'static str,
    /// What it is, for the report.
    pub(crate) what: &'static str,
    /// The text that is replaced; it must be there once.
    pub(crate) from: &'static str,
    /// What is put in its place.
    pub(crate) to: &'static str,
}

const fn plant(
    name: &'static str,
    what: &'static str,
    from: &'static str,
    to: &'static str,
) -> Planted {
    Planted {
        name,
        what,
        from,
        to,
    }
}

/// Into the kernel's C.
pub(crate) const IN_C: &[Planted] = &[
    plant(
        "c_alpha_stuck",
        "alpha does not decay to 0 (min() for min_not_zero())",
        "alpha -= min_not_zero(alpha, alpha >> dctcp_shift_g);",
        "alpha -= min(alpha, alpha >> dctcp_shift_g);",
    ),
    plant(
        "c_alpha_gain",
        "alpha: the gain is one bit off",
        "delivered_ce <<= (10 - dctcp_shift_g);",
        "delivered_ce <<= (9 - dctcp_shift_g);",
    ),
    plant(
        "c_alpha_window",
        "alpha: the observation window ends one byte late",
        "if (!before(tp->snd_una, ca->next_seq)) {",
        "if (after(tp->snd_una, ca->next_seq)) {",
    ),
    plant(
        "c_alpha_cap",
        "alpha may exceed 1",
        "alpha = min(alpha + delivered_ce, DCTCP_MAX_ALPHA);",
        "alpha = alpha + delivered_ce;",
    ),
    plant(
        "c_mark_reaction",
        "a mark: the window falls by alpha, not by alpha/2",
        ">> 11U), 2U);",
        ">> 10U), 2U);",
    ),
    plant(
        "c_loss_reaction",
        "a loss: a window of 3 gives a threshold of 3",
        "max(tcp_snd_cwnd(tp) >> 1U, 2U));\n}",
        "max((tcp_snd_cwnd(tp) + 1) >> 1U, 2U));\n}",
    ),
    plant(
        "c_loss_twice",
        "a loss in Recovery is answered again",
        "\tif (new_state == TCP_CA_Recovery &&\n\t    new_state != inet_csk(sk)->icsk_ca_state)",
        "\tif (new_state == TCP_CA_Recovery ||\n\t    new_state == TCP_CA_Loss)",
    ),
    plant(
        "c_undo",
        "undo forgets the window before the loss",
        "\treturn max(tcp_snd_cwnd(tp), ca->loss_cwnd);",
        "\treturn tcp_snd_cwnd(tp);",
    ),
    plant(
        "c_plb",
        "PLB is told nothing of marks",
        "tcp_plb_update_state(sk, &ca->plb, (int)ce_ratio);",
        "tcp_plb_update_state(sk, &ca->plb, 0);",
    ),
    plant(
        "c_plb_idle",
        "PLB does not look when nothing is in flight",
        "tcp_plb_check_rehash(sk, &ca->plb); /* Maybe rehash when inflight is 0 */",
        ";",
    ),
    plant(
        "c_info",
        "ss: bytes of another window",
        "(tp->delivered_ce - ca->old_delivered_ce);\n\t\t\tinfo->",
        "(tp->delivered_ce + ca->old_delivered_ce);\n\t\t\tinfo->",
    ),
    plant(
        "c_ce_at_once",
        "a change of CE is not acknowledged at once",
        "\t\tinet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;\n",
        "",
    ),
    plant(
        "c_ce_old_state",
        "a delayed ACK carries the new CE state",
        "\t\t\tdctcp_ece_ack_cwr(sk, *ce_state);\n",
        "\t\t\tdctcp_ece_ack_cwr(sk, new_ce_state);\n",
    ),
    plant(
        "c_ce_old_ack",
        "a delayed ACK acknowledges the new segment",
        "__tcp_send_ack(sk, *prior_rcv_nxt, 0);",
        "__tcp_send_ack(sk, tcp_sk(sk)->rcv_nxt + 1, 0);",
    ),
    plant(
        "c_prr_round",
        "PRR rounds down",
        "tp->prior_cwnd - 1;\n",
        "0;\n",
    ),
    plant(
        "c_prr_bound",
        "PRR: the bound holds one packet early",
        "\tif (delta < 0) {\n",
        "\tif (delta <= 0) {\n",
    ),
    plant(
        "c_prr_slow_start",
        "PRR: no slow start where SND.UNA advanced",
        "\t\t\tsndcnt++;\n",
        "",
    ),
    plant(
        "c_prr_slow_start_lost",
        "PRR: slow start although more was lost",
        "flag & FLAG_SND_UNA_ADVANCED && !newly_lost)\n\t\t\tsnd",
        "flag & FLAG_SND_UNA_ADVANCED)\n\t\t\tsnd",
    ),
    plant(
        "c_prr_forced",
        "PRR: no forced fast retransmit",
        "sndcnt = max(sndcnt, (tp->prr_out ? 0 : 1));",
        "sndcnt = max(sndcnt, 0);",
    ),
    plant(
        "c_prr_reo",
        "the reordering timer does not reduce",
        "\t\t\t\ttcp_cwnd_reduction(sk, 1, tp->lost - lost, 0);",
        ";",
    ),
    plant(
        "c_end_threshold",
        "CWR ends with one packet more",
        "\t\ttcp_snd_cwnd_set(tp, tp->snd_ssthresh);\n\t\ttp->snd_cwnd_stamp",
        "\t\ttcp_snd_cwnd_set(tp, tp->snd_ssthresh + 1);\n\t\ttp->snd_cwnd_stamp",
    ),
    plant(
        "c_end_undone",
        "an undone Recovery ends at ssthresh",
        "(inet_csk(sk)->icsk_ca_state == TCP_CA_CWR || tp->undo_marker)) {\n\t\ttcp_snd",
        "(inet_csk(sk)->icsk_ca_state == TCP_CA_CWR || 1)) {\n\t\ttcp_snd",
    ),
    plant(
        "c_raise_reordering",
        "high reordering: one packet off",
        "\tif (tcp_sk(sk)->reordering >\n",
        "\tif (tcp_sk(sk)->reordering >=\n",
    ),
    plant(
        "c_raise_order",
        "out of order data raises the window",
        "\treturn flag & FLAG_DATA_ACKED;",
        "\treturn flag & FLAG_FORWARD_PROGRESS;",
    ),
    plant(
        "c_idle_rto",
        "idle time: >= for >",
        "\tif (delta > inet_csk(sk)->icsk_rto)\n",
        "\tif (delta >= (s32)inet_csk(sk)->icsk_rto)\n",
    ),
    plant(
        "c_idle_round",
        "idle time: one halving more at whole RTOs",
        "while ((delta -= inet_csk(sk)->icsk_rto) > 0 &&",
        "while ((delta -= inet_csk(sk)->icsk_rto) >= 0 &&",
    ),
    plant(
        "c_idle_threshold",
        "idle time: the threshold is not remembered",
        "\tWRITE_ONCE(tp->snd_ssthresh, tcp_current_ssthresh(sk));\n\trestart_cwnd",
        "\trestart_cwnd",
    ),
    plant(
        "c_unused_rto",
        "underuse: > for >=",
        "(s32)(tcp_jiffies32 - tp->snd_cwnd_stamp) >= inet_csk(sk)->icsk_rto &&",
        "(s32)(tcp_jiffies32 - tp->snd_cwnd_stamp) > inet_csk(sk)->icsk_rto &&",
    ),
    plant(
        "c_unused_half",
        "underuse: the window falls to what was used",
        "(tcp_snd_cwnd(tp) + win_used) >> 1);",
        "win_used);",
    ),
    plant(
        "c_unused_space",
        "underuse: judged although the send buffer was full",
        "sk->sk_socket && !test_bit(SOCK_NOSPACE, &sk->sk_socket->flags)) {\n\t\t/* Limited by",
        "sk->sk_socket) {\n\t\t/* Limited by",
    ),
    plant(
        "c_pace_half",
        "pacing: the ratio of slow start up to ssthresh",
        "if (tcp_snd_cwnd(tp) < tp->snd_ssthresh / 2)",
        "if (tcp_snd_cwnd(tp) < tp->snd_ssthresh)",
    ),
    plant(
        "c_pace_out",
        "pacing: by the window, whatever is out",
        "rate *= max(tcp_snd_cwnd(tp), tp->packets_out);",
        "rate *= tcp_snd_cwnd(tp);",
    ),
    plant(
        "c_pace_limit",
        "pacing: no limit",
        "min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));",
        "rate);",
    ),
];

/// Into the module's Rust.
pub(crate) const IN_RUST: &[Planted] = &[
    plant("r_alpha_shift", "alpha decays by g/2", "alpha >> shift_g {", "alpha >> (shift_g + 1) {"),
    plant("r_alpha_cap", "alpha's cap is one below 1", "decayed.wrapping_add(gain).min(MAX_ALPHA)", "decayed.wrapping_add(gain).min(MAX_ALPHA - 1)"),
    plant("r_alpha_start", "alpha begins at 0", "alpha: ALPHA_ON_INIT.get(),", "alpha: 0,"),
    plant("r_mark_floor", "a mark: no threshold below 3", ".wrapping_mul(alpha) >> (MAX_ALPHA_SHIFT + 1))\n        .max(MIN_SSTHRESH)", ".wrapping_mul(alpha) >> (MAX_ALPHA_SHIFT + 1))\n        .max(3)"),
    plant("r_loss", "a loss: a third is given up", "(cwnd >> 1).max(MIN_SSTHRESH)", "(cwnd - cwnd / 3).max(MIN_SSTHRESH)"),
    plant("r_loss_state", "a loss of marked packets is not answered", "if new == CaState::Recovery && sk.ca_state() != CaState::Recovery {\n            let reduced", "if new == CaState::Recovery && sk.ca_state() == CaState::Open {\n            let reduced"),
    plant("r_undo", "undo forgets the window before the loss", "sk.snd_cwnd().max(sk.data().loss_cwnd)", "sk.snd_cwnd()"),
    plant("r_window_wraps", "the observation window does not end when sequence numbers wrap", "if !before(sk.snd_una(), sk.data().next_seq) {", "if sk.snd_una() >= sk.data().next_seq {"),
    plant("r_floor", "a floor of 3", "pub(crate) const MIN_CWND: u32 = 2;", "pub(crate) const MIN_CWND: u32 = 3;"),
    plant("r_no_floor", "no floor", "Floor::Held => cwnd.max(MIN_CWND),", "Floor::Held => cwnd,"),
    plant("r_no_floor_rto", "no floor after an RTO", "    // After an RTO core TCP has just set the window to what is in flight and one packet.\n    hold_floor_in(sk, new);\n", ""),
    plant("r_uncounted", "a window that is raised is not counted", "        seen::raised(sk, state, cwnd, held);\n", ""),
    plant("r_counted", "every look at a window below 2 is counted", "    if held != cwnd {\n        sk.set_snd_cwnd(held);\n        seen::raised(sk, state, cwnd, held);\n    }\n", "    sk.set_snd_cwnd(held);\n    seen::raised(sk, state, 1, 2);\n"),
    plant("r_waived", "rto_floor=N waives nothing", "if in_loss && !rto_floor {", "if in_loss && !rto_floor && false {"),
    plant("r_ce", "the CE state does not stick", "    connection.ce_state = marked;\n", ""),
    plant("r_prr_round", "PRR rounds down", "u64::from(self.prior_cwnd) - 1)", "0)"),
    plant("r_prr_forced", "PRR forces two packets", "send.max(i32::from(self.out == 0))", "send.max(2 * i32::from(self.out == 0))"),
    plant("r_prr_lost", "PRR: slow start although more was lost", "i32::from(ack.advanced && ack.lost == 0)", "i32::from(ack.advanced)"),
    plant("r_prr_reo", "the reordering timer does not reduce", "        && !sk.data().in_ack\n", "        && false\n"),
    plant("r_prr_ack", "every ACK that finds a loss reduces twice", "        && !sk.data().in_ack\n        && sk.reordering_timer_fired()\n", "\n"),
    plant("r_end", "CWR that ends in Disorder keeps its window", "(CaState::Cwr, CaState::Open | CaState::Disorder) => true,", "(CaState::Cwr, CaState::Open) => true,"),
    plant("r_end_undone", "an undone Recovery ends at ssthresh", "=> sk.undo_marker() != 0,", "=> true,"),
    plant("r_raise", "a window may grow by what is acknowledged only", " || (ack.progressed() && sk.reordering() > sk.sysctl_reordering())", ""),
    plant("r_idle", "idle time: < for <=", "    idle > rto\n", "    idle >= rto\n"),
    plant("r_idle_again", "idle time is measured again at every attempt to send", "    if !queued && !window_changed {\n        return;\n    }\n", ""),
    plant("r_idle_window", "idle time is not measured when the peer's window changes", "    if !queued && !window_changed {", "    if !queued {"),
    plant("r_idle_in_flight", "idle time is measured when the peer's window changed with data in flight", "    connection.peer_window = peer_window;\n", ""),
    plant("r_unused", "underuse: <= for <", "unused >= sk.rto() as i32", "unused > sk.rto() as i32"),
    plant("r_unused_probe",
        "underuse is judged after a probe that is a retransmission",
        "        asked: sent,\n        ..\n    } = *sk.data();\n    if judged == sk.snd_nxt() {\n        return;\n    }\n    sk.data_mut().judged = sk.snd_nxt();\n",
        "        ..\n    } = *sk.data();\n    let sent = sk.lsndtime();\n    if judged == sent {\n        return;\n    }\n    sk.data_mut().judged = sent;\n",
    ),
    plant("r_pace", "pacing: the ratio of slow start at half of ssthresh", "self.cwnd < self.ssthresh / 2", "self.cwnd <= self.ssthresh / 2"),
    plant("r_pace_open", "a passive open has no pacing rate", "    if sk.is_passive_open() {\n        pace(sk);\n    }\n", ""),
    plant("r_fallback", "without ECN the window reacts as with it", "            sk.switch_to(Pin::static_ref(&RENO));\n", ""),
];
