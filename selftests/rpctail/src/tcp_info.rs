// SPDX-License-Identifier: GPL-2.0

//! `struct tcp_info` as the running kernel fills it in.
//!
//! The layout is the kernel's user API and only grows at its end. It is written down here rather
//! than taken from the build machine's headers, so that a program built on an old system still
//! reads what a newer kernel says; the kernel returns how much it filled in, and a field beyond
//! that is `None`, never 0. `tests/tcp_info.rs` compares the offsets with `<linux/tcp.h>`.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};

/// `struct tcp_info` of `<linux/tcp.h>`, up to `tcpi_total_rto_time` (Linux 6.7).
#[repr(C)]
#[derive(Clone, Copy, Default)]
#[expect(missing_docs, reason = "the names are the kernel's")]
pub struct Raw {
    pub tcpi_state: u8,
    pub tcpi_ca_state: u8,
    pub tcpi_retransmits: u8,
    pub tcpi_probes: u8,
    pub tcpi_backoff: u8,
    pub tcpi_options: u8,
    pub wscale: u8,
    pub flags: u8,
    pub tcpi_rto: u32,
    pub tcpi_ato: u32,
    pub tcpi_snd_mss: u32,
    pub tcpi_rcv_mss: u32,
    pub tcpi_unacked: u32,
    pub tcpi_sacked: u32,
    pub tcpi_lost: u32,
    pub tcpi_retrans: u32,
    pub tcpi_fackets: u32,
    pub tcpi_last_data_sent: u32,
    pub tcpi_last_ack_sent: u32,
    pub tcpi_last_data_recv: u32,
    pub tcpi_last_ack_recv: u32,
    pub tcpi_pmtu: u32,
    pub tcpi_rcv_ssthresh: u32,
    pub tcpi_rtt: u32,
    pub tcpi_rttvar: u32,
    pub tcpi_snd_ssthresh: u32,
    pub tcpi_snd_cwnd: u32,
    pub tcpi_advmss: u32,
    pub tcpi_reordering: u32,
    pub tcpi_rcv_rtt: u32,
    pub tcpi_rcv_space: u32,
    pub tcpi_total_retrans: u32,
    pub tcpi_pacing_rate: u64,
    pub tcpi_max_pacing_rate: u64,
    pub tcpi_bytes_acked: u64,
    pub tcpi_bytes_received: u64,
    pub tcpi_segs_out: u32,
    pub tcpi_segs_in: u32,
    pub tcpi_notsent_bytes: u32,
    pub tcpi_min_rtt: u32,
    pub tcpi_data_segs_in: u32,
    pub tcpi_data_segs_out: u32,
    pub tcpi_delivery_rate: u64,
    pub tcpi_busy_time: u64,
    pub tcpi_rwnd_limited: u64,
    pub tcpi_sndbuf_limited: u64,
    pub tcpi_delivered: u32,
    pub tcpi_delivered_ce: u32,
    pub tcpi_bytes_sent: u64,
    pub tcpi_bytes_retrans: u64,
    pub tcpi_dsack_dups: u32,
    pub tcpi_reord_seen: u32,
    pub tcpi_rcv_ooopack: u32,
    pub tcpi_snd_wnd: u32,
    pub tcpi_rcv_wnd: u32,
    pub tcpi_rehash: u32,
    pub tcpi_total_rto: u16,
    pub tcpi_total_rto_recoveries: u16,
    pub tcpi_total_rto_time: u32,
}

/// What the load generator wants to know of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Info {
    /// Payload of a full segment (bytes).
    pub mss: u32,
    /// Congestion window (packets).
    pub cwnd: u32,
    /// Segments retransmitted since the connection began.
    pub retrans: u32,
    /// Payload acknowledged by the peer (bytes).
    pub bytes_acked: u64,
    /// Packets the peer reported as CE-marked (Linux 4.18).
    pub ce: Option<u32>,
    /// Retransmission timeouts since the connection began (Linux 6.7). Not loss probes: those are
    /// in no field of tcp_info, see TCPLossProbes in nstat.
    pub rto: Option<u32>,
}

/// Whether the kernel filled in the field that ends at `end` when it returned `len` bytes.
macro_rules! filled {
    ($raw:expr, $len:expr, $field:ident) => {{
        let end = mem::offset_of!(Raw, $field) + mem::size_of_val(&$raw.$field);
        ($len >= end).then_some($raw.$field)
    }};
}

/// Asks the kernel about a TCP connection.
pub fn read(fd: impl AsFd) -> io::Result<Info> {
    let mut raw = Raw::default();
    let mut len = mem::size_of::<Raw>() as libc::socklen_t;
    // SAFETY: the descriptor is open for the call, the pointer is to `len` writable bytes, and
    // every bit pattern is a valid `Raw`.
    let error = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut raw).cast(),
            &raw mut len,
        )
    };
    if error != 0 {
        return Err(io::Error::last_os_error());
    }
    let len = len as usize;
    Ok(Info {
        mss: raw.tcpi_snd_mss,
        cwnd: raw.tcpi_snd_cwnd,
        retrans: raw.tcpi_total_retrans,
        bytes_acked: raw.tcpi_bytes_acked,
        ce: filled!(raw, len, tcpi_delivered_ce),
        rto: filled!(raw, len, tcpi_total_rto).map(u32::from),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn reads_a_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = read(&stream).unwrap();
        assert!(info.mss >= 500 && info.cwnd >= 1, "{info:?}");
        assert_eq!(info.retrans, 0);
    }

    #[test]
    fn a_field_beyond_what_was_filled_in_is_none() {
        let raw = Raw::default();
        let end = mem::offset_of!(Raw, tcpi_total_rto) + 2;
        assert_eq!(filled!(raw, end, tcpi_total_rto), Some(0));
        let short = end - 1;
        assert_eq!(filled!(raw, short, tcpi_total_rto), None);
    }

    #[test]
    fn refuses_what_is_no_tcp_socket() {
        assert!(read(std::io::stdin()).is_err());
    }
}
