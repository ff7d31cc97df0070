// SPDX-License-Identifier: GPL-2.0

//! What 2018's reduction rule asks of an ACK, and today's does not.

use kernel::prelude::*;

use super::cong::Ack;

/// As in `rust/net/cong.rs`: private to `net/ipv4/tcp_input.c`, compared with the kernel source by
/// `selftests/faults/check`.
impl Ack {
    /// This ACK acknowledged new data, some of which was retransmitted.
    pub(super) const FLAG_RETRANS_DATA_ACKED: c_int = 0x08;
    /// This ACK marked some retransmission lost.
    pub(super) const FLAG_LOST_RETRANS: c_int = 0x80;

    /// A retransmission was acknowledged, and none was found to be lost again.
    pub(crate) fn retransmission_arrived(self) -> bool {
        self.flag & (Self::FLAG_RETRANS_DATA_ACKED | Self::FLAG_LOST_RETRANS)
            == Self::FLAG_RETRANS_DATA_ACKED
    }
}
