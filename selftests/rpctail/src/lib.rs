// SPDX-License-Identifier: GPL-2.0

//! Open-loop RPC load over TCP, and the tail of its latency.
//!
//! The library is what the `rpctail` program is made of; its tests use it too. One thread, one
//! epoll, one timer: it must be economical on a guest with a single CPU whose clock counts
//! instructions, and there it must do the same thing on each run. So nothing here reads random
//! numbers, the wall clock or the host; the only clock is `CLOCK_MONOTONIC`.
//!
//! Data flows one way: [`cli`] → [`flow`] (what is wanted) → [`connect`] (sockets that agreed with
//! the server) → [`client`] (the load) → [`stats`] (what was measured) → [`records`], [`table`],
//! [`hgrm`] (what is written).

pub mod cli;
pub mod client;
pub mod connect;
pub mod flow;
pub mod hgrm;
pub mod http;
pub mod pattern;
pub mod poller;
pub mod records;
pub mod rpc;
pub mod schedule;
pub mod server;
pub mod sockopt;
pub mod stats;
pub mod table;
pub mod tcp_info;
pub mod units;
pub mod wire;
pub mod writer;

/// What every fallible function of this crate returns: the message is made for the user.
pub type Result<T> = std::result::Result<T, String>;
