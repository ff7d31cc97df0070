// SPDX-License-Identifier: GPL-2.0

//! What a segment is to its sender.

use crate::fault::segment::Segment;

/// A small request, alone, on a connection whose sequence numbers are about to wrap.
const LONE: Segment = Segment {
    seq: 0xffff_fff0,
    payload: 100,
    fin: false,
    push: true,
    ect: true,
    segs: 1,
    snd_nxt: 0xffff_fff0,
    write_seq: 84,
    packets_out: 0,
    cwnd: 10,
};

#[test]
fn a_small_request_is_lone_and_ends_itself() {
    assert!(LONE.is_lone() && LONE.ends_request() && LONE.can_be_marked_alone());
    assert!(!LONE.is_retransmission());
    let last = Segment {
        fin: true,
        write_seq: 85,
        ..LONE
    };
    assert!(last.is_lone() && last.ends_request());
}

#[test]
fn with_data_behind_it_a_packet_is_not_lone() {
    let first = Segment {
        write_seq: 85,
        push: false,
        ..LONE
    };
    assert!(!first.is_lone() && !first.ends_request());
    // In the middle of a write, of which more is about to be queued.
    let pushed = Segment {
        push: false,
        ..LONE
    };
    assert!(!pushed.is_lone() && !pushed.ends_request());
    // Unless the window holds it back.
    assert!(Segment { cwnd: 1, ..first }.is_lone());
    assert!(Segment { cwnd: 1, ..pushed }.is_lone());
}

#[test]
fn with_packets_out_or_several_in_one_it_is_not_lone() {
    let second = Segment {
        packets_out: 1,
        ..LONE
    };
    assert!(!second.is_lone() && second.ends_request());
    assert!(
        !Segment {
            packets_out: 1,
            cwnd: 1,
            ..LONE
        }
        .is_lone()
    );
    let tso = Segment { segs: 2, ..LONE };
    assert!(!tso.is_lone() && tso.ends_request() && !tso.can_be_marked_alone());
    assert!(!Segment { ect: false, ..LONE }.can_be_marked_alone());
}

#[test]
fn what_was_sent_before_is_a_retransmission_and_nothing_else() {
    let again = Segment {
        snd_nxt: 84,
        packets_out: 1,
        ..LONE
    };
    assert!(again.is_retransmission());
    assert!(!again.is_lone() && !again.ends_request());
    assert!(
        !Segment {
            cwnd: 1,
            packets_out: 0,
            ..again
        }
        .is_lone()
    );
    // Data beyond SND.NXT is not sent by TCP; it would be neither.
    let ahead = Segment {
        snd_nxt: 0xffff_ff00,
        ..LONE
    };
    assert!(!ahead.is_retransmission() && !ahead.is_lone());
}
