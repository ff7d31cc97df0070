// SPDX-License-Identifier: GPL-2.0

//! `splicefwd`: forwards TCP connections with `splice(2)`, as forwarders do that want to touch no
//! data: what comes out of one socket goes through a pipe into the other.
//!
//! By default it sets no option on either socket, so Nagle's algorithm applies to the data of
//! others that passes through: that is the fault of T2. `--nodelay` is the cure in the program.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::ExitCode;
use std::thread;

use clap::Parser;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};

/// The most bytes moved by one splice: what a pipe holds by default.
const CHUNK: usize = 64 << 10;

/// Forward TCP connections with splice(2)
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Where to listen
    #[arg(long, value_name = "ADDR:PORT")]
    listen: String,

    /// Where to forward to
    #[arg(long, value_name = "ADDR:PORT")]
    connect: String,

    /// Set TCP_NODELAY on both sides
    #[arg(long)]
    nodelay: bool,
}

/// Moves data from one socket into the other until the first ends.
fn pump(from: &TcpStream, to: &TcpStream) -> io::Result<()> {
    let (outlet, inlet) = pipe_with(PipeFlags::CLOEXEC)?;
    loop {
        let mut held = splice(from, None, &inlet, None, CHUNK, SpliceFlags::MOVE)?;
        if held == 0 {
            return Ok(());
        }
        while held > 0 {
            // No SPLICE_F_MORE: whether more will come is not known here.
            held -= splice(&outlet, None, to, None, held, SpliceFlags::MOVE)?;
        }
    }
}

/// One direction of a connection, to its end; the other end is told.
fn direction(from: TcpStream, to: TcpStream) {
    if let Err(error) = pump(&from, &to) {
        eprintln!("splicefwd: {error}");
        _ = from.shutdown(Shutdown::Both);
    }
    _ = to.shutdown(Shutdown::Write);
}

/// Connects an accepted client to the server and starts both directions.
fn forward(client: TcpStream, args: &Args) -> io::Result<()> {
    let server = TcpStream::connect(&args.connect)?;
    if args.nodelay {
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
    }
    let (up, down) = (client.try_clone()?, server.try_clone()?);
    thread::spawn(move || direction(up, server));
    thread::spawn(move || direction(down, client));
    Ok(())
}

fn serve(args: &Args) -> io::Result<()> {
    let listener = TcpListener::bind(&args.listen)?;
    println!("forwarding {} to {}", listener.local_addr()?, args.connect);
    for client in listener.incoming() {
        if let Err(error) = client.and_then(|client| forward(client, args)) {
            eprintln!("splicefwd: {}: {error}", args.connect);
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let args = Args::parse();
    match serve(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("splicefwd: {}: {error}", args.listen);
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    /// A forwarder of one connection, and the two ends that it joins.
    fn joined(nodelay: bool) -> (TcpStream, TcpStream) {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let front = TcpListener::bind("127.0.0.1:0").unwrap();
        let args = Args {
            listen: String::new(),
            connect: server.local_addr().unwrap().to_string(),
            nodelay,
        };
        let client = TcpStream::connect(front.local_addr().unwrap()).unwrap();
        forward(front.accept().unwrap().0, &args).unwrap();
        (client, server.accept().unwrap().0)
    }

    #[test]
    fn passes_bytes_and_both_ends_of_file() {
        for nodelay in [false, true] {
            let (mut a, mut b) = joined(nodelay);
            let sent: Vec<u8> = (0..300_000u32).map(|i| i as u8).collect();
            let copy = sent.clone();
            let writer = thread::spawn(move || {
                a.write_all(&copy).unwrap();
                a.shutdown(Shutdown::Write).unwrap();
                let mut back = Vec::new();
                a.read_to_end(&mut back).unwrap();
                back
            });
            let mut got = Vec::new();
            b.read_to_end(&mut got).unwrap();
            assert_eq!(got, sent);
            b.write_all(b"answer").unwrap();
            drop(b);
            assert_eq!(writer.join().unwrap(), b"answer");
        }
    }
}
