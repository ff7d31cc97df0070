// SPDX-License-Identifier: GPL-2.0

//! What a data segment is to its sender at the moment it leaves: a retransmission, a lone packet,
//! the end of a request.
//!
//! Judged before the sender counts the segment as sent, from `snd_nxt`, `write_seq`, `packets_out`
//! and cwnd as `tcp_write_xmit()` left them.

/// A segment with data on its way out, and its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Sequence number of its first byte.
    pub(crate) seq: u32,
    /// Bytes of data, at least 1.
    pub(crate) payload: u32,
    /// It carries FIN.
    pub(crate) fin: bool,
    /// It carries PSH: the application's write ends here.
    pub(crate) push: bool,
    /// It may be marked: ECT(0) or ECT(1).
    pub(crate) ect: bool,
    /// Packets that a device will make of it (TSO), at least 1.
    pub(crate) segs: u16,
    /// SND.NXT before this segment.
    pub(crate) snd_nxt: u32,
    /// Where the data that the application wrote so far ends.
    pub(crate) write_seq: u32,
    /// Packets sent before this one, and not cumulatively acknowledged.
    pub(crate) packets_out: u32,
    /// Congestion window, in packets.
    pub(crate) cwnd: u32,
}

impl Segment {
    /// Sent before: its data, or a part of it, lies below SND.NXT.
    pub(crate) fn is_retransmission(self) -> bool {
        (self.seq.wrapping_sub(self.snd_nxt) as i32) < 0
    }

    /// Data that was never sent.
    fn is_new(self) -> bool {
        self.seq == self.snd_nxt
    }

    /// The application's write ends with it, and nothing that was written lies behind it. Without
    /// PSH it is the middle of a write, of which more is about to be queued (`tcp_push_one()`).
    fn ends_the_data(self) -> bool {
        let end = self
            .seq
            .wrapping_add(self.payload)
            .wrapping_add(self.fin.into());
        self.push && end == self.write_seq
    }

    /// The one packet in flight: nothing is out, and nothing can follow it at once, because nothing
    /// was written or because the window is one packet. (What Nagle or a cork holds back behind it
    /// counts as following.)
    pub(crate) fn is_lone(self) -> bool {
        self.is_new()
            && self.packets_out == 0
            && self.segs == 1
            && (self.cwnd <= 1 || self.ends_the_data())
    }

    /// The last packet of a request, or of a reply.
    pub(crate) fn ends_request(self) -> bool {
        self.is_new() && self.ends_the_data()
    }

    /// A mark on it marks one packet. Where a device makes several of it, all would be marked.
    pub(crate) fn can_be_marked_alone(self) -> bool {
        self.ect && self.segs == 1
    }
}
