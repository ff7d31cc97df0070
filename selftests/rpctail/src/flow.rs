// SPDX-License-Identifier: GPL-2.0

//! A flow as it will be run: every option decided, nothing contradictory left.

use std::fmt;

use crate::Result;
use crate::cli::{ClientArgs, FlowArgs, Mode, Who, flow_spec};
use crate::pattern::Pattern;
use crate::schedule::Arrivals;

/// A flow: connections that carry the same load.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its name in the records.
    pub name: String,
    /// What makes the load.
    pub mode: Mode,
    /// Thousandths of requests (barrier: rounds) a second; `None` is back to back.
    pub rate: Option<u64>,
    /// How an open flow's requests are spread over time.
    pub arrivals: Arrivals,
    /// Connections.
    pub conns: u32,
    /// Most requests on their way on one connection.
    pub depth: u32,
    /// The writes of a request; of a stream, its one write.
    pub request: Pattern,
    /// The writes of a reply.
    pub reply: Pattern,
    /// The path of an HTTP server's that is asked for, instead of `request` and `reply`.
    pub http: Option<String>,
    /// Who sets TCP_NODELAY.
    pub nodelay: Who,
    /// Who sets TCP_NODELAY and takes it back.
    pub nodelay_undone: Who,
    /// Who corks each message.
    pub cork: Who,
    /// Who corks for good.
    pub cork_held: Who,
    /// Who uses MSG_MORE inside a message.
    pub more: Who,
    /// The client's congestion control.
    pub cc: Option<String>,
    /// The server's congestion control.
    pub server_cc: Option<String>,
    /// SO_SNDBUF (bytes).
    pub sndbuf: Option<u64>,
    /// Back-to-back exchanges per connection before the load.
    pub warmup_exchanges: u32,
}

impl Flow {
    /// Decides everything the options leave open; refuses contradictions.
    pub fn new(args: FlowArgs) -> Result<Self> {
        let mode = args.mode.unwrap_or(match args.rate {
            Some(_) => Mode::Open,
            None => Mode::Closed,
        });
        let name = args.name.clone().unwrap_or_else(|| match mode {
            Mode::Open | Mode::Closed => "rpc".into(),
            Mode::Stream => "stream".into(),
            Mode::Barrier => "incast".into(),
        });
        let refuse = |why: &str| Err(format!("flow '{name}': {why}"));
        if name.is_empty() || name.contains(['/', ' ', ',', '"']) {
            return refuse("a name is a word without '/', ',', '\"' or spaces");
        }
        // A rate on the command line is for the flows that can have one.
        let rate = args
            .rate
            .filter(|_| matches!(mode, Mode::Open | Mode::Barrier));
        if mode == Mode::Open && rate.is_none() {
            return refuse(
                "an open loop needs a rate; give --rate, or --mode closed for back to back",
            );
        }
        let depth = args.depth.unwrap_or(1);
        if mode == Mode::Barrier && depth > 1 {
            return refuse("a barrier waits for each reply; leave --depth out");
        }
        if args.http.is_some() {
            if let Some(why) = unfit_for_http(&args, mode, depth) {
                return refuse(why);
            }
        }
        let small: fn() -> Pattern = || "100".parse().expect("100 is a pattern");
        let request = match mode {
            Mode::Stream => args.write.unwrap_or(64 << 10).to_string().parse()?,
            _ => args.request.unwrap_or_else(small),
        };
        Ok(Self {
            mode,
            rate,
            arrivals: args.arrivals.unwrap_or_default(),
            conns: args.conns.unwrap_or(1),
            depth,
            request,
            reply: args.reply.unwrap_or_else(small),
            http: args.http,
            nodelay: args.nodelay.unwrap_or_default(),
            nodelay_undone: args.nodelay_undone.unwrap_or_default(),
            cork: args.cork.unwrap_or_default(),
            cork_held: args.cork_held.unwrap_or_default(),
            more: args.more.unwrap_or_default(),
            cc: args.cc,
            server_cc: args.server_cc,
            sndbuf: args.sndbuf,
            warmup_exchanges: args.warmup_exchanges.unwrap_or(32),
            name,
        })
    }

    /// Whether the flow is a one-way stream.
    pub fn is_stream(&self) -> bool {
        self.mode == Mode::Stream
    }
}

/// What an HTTP flow cannot have: the server is not ours, and says itself how long a reply is.
fn unfit_for_http(args: &FlowArgs, mode: Mode, depth: u32) -> Option<&'static str> {
    let ends = [
        args.nodelay,
        args.nodelay_undone,
        args.cork,
        args.cork_held,
        args.more,
    ];
    if mode == Mode::Stream {
        Some("--http has replies and a stream none; leave --mode stream out")
    } else if depth > 1 {
        Some("an HTTP connection has one request on its way; leave --depth out")
    } else if args.request.is_some() || args.reply.is_some() || args.write.is_some() {
        Some("--http decides what is sent; leave --request, --reply and --write out")
    } else if ends.iter().flatten().any(|who| who.server()) {
        Some(
            "the HTTP server's end is not rpctail's; give the option =client, as in --nodelay=client",
        )
    } else if args.server_cc.is_some() {
        Some("the HTTP server's end is not rpctail's; leave --server-cc out")
    } else {
        None
    }
}

/// Whether the flows are for an HTTP server: then all of them are.
pub fn is_http(flows: &[Flow]) -> bool {
    flows.iter().any(|flow| flow.http.is_some())
}

/// All flows the command line asks for: each `--flow`, or the one made of the flow options.
pub fn flows(args: &ClientArgs) -> Result<Vec<Flow>> {
    if args.duration == 0 {
        return Err(
            "--duration 0 measures nothing; give it some time, as in --duration 10s".into(),
        );
    }
    let specs = if args.flows.is_empty() {
        vec![args.flow.clone()]
    } else {
        let specs = args.flows.iter();
        specs
            .map(|text| Ok(flow_spec(text)?.or(&args.flow)))
            .collect::<Result<_>>()?
    };
    let flows: Vec<Flow> = specs.into_iter().map(Flow::new).collect::<Result<_>>()?;
    for (i, flow) in flows.iter().enumerate() {
        if flows[..i].iter().any(|other| other.name == flow.name) {
            return Err(format!(
                "two flows are named '{}'; give each its own name=",
                flow.name
            ));
        }
    }
    if is_http(&flows) && flows.iter().any(|flow| flow.http.is_none()) {
        return Err(
            "some flows have --http and some not: a server is either; give them to a client each"
                .into(),
        );
    }
    Ok(flows)
}

impl fmt::Display for Flow {
    /// The effective options, as a `--flow` would give them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = format!("{:?}", self.mode).to_lowercase();
        write!(f, "name={},mode={mode},conns={}", self.name, self.conns)?;
        if let Some(rate) = self.rate {
            write!(f, ",rate={}", rate as f64 / 1000.0)?;
        }
        if self.arrivals == Arrivals::Poisson {
            write!(f, ",arrivals=poisson")?;
        }
        if self.is_stream() {
            write!(f, ",write={}", self.request)?;
        } else {
            match &self.http {
                Some(path) => write!(f, ",http={path}")?,
                None => write!(
                    f,
                    ",depth={},request={},reply={}",
                    self.depth, self.request, self.reply
                )?,
            }
            write!(f, ",warmup-exchanges={}", self.warmup_exchanges)?;
        }
        for (key, who) in [
            ("nodelay", self.nodelay),
            ("nodelay-undone", self.nodelay_undone),
            ("cork", self.cork),
            ("cork-held", self.cork_held),
            ("more", self.more),
        ] {
            if who != Who::None {
                write!(f, ",{key}={}", format!("{who:?}").to_lowercase())?;
            }
        }
        for (key, cc) in [("cc", &self.cc), ("server-cc", &self.server_cc)] {
            if let Some(cc) = cc {
                write!(f, ",{key}={cc}")?;
            }
        }
        match self.sndbuf {
            Some(bytes) => write!(f, ",sndbuf={bytes}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(text: &str) -> Result<Flow> {
        Flow::new(flow_spec(text)?)
    }

    #[test]
    fn the_mode_follows_the_rate() {
        assert_eq!(flow("rate=10").unwrap().mode, Mode::Open);
        assert_eq!(flow("conns=2").unwrap().mode, Mode::Closed);
        assert_eq!(flow("mode=closed,rate=10").unwrap().rate, None);
        assert!(flow("mode=open").unwrap_err().contains("--rate"));
        assert!(flow("mode=barrier,depth=2").is_err());
        assert!(flow("name=a/b").is_err());
    }

    #[test]
    fn http_refuses_what_it_cannot_have() {
        for (text, wanted) in [
            ("mode=stream", "leave --mode stream out"),
            ("depth=2", "leave --depth out"),
            ("reply=5", "leave --request, --reply"),
            ("nodelay", "--nodelay=client"),
            ("more=server", "=client"),
            ("server-cc=dctcp", "leave --server-cc out"),
        ] {
            let error = flow(&format!("http=/,{text}")).unwrap_err();
            assert!(error.contains(wanted), "{text}: {error}");
        }
        assert!(flow("http=index.html").unwrap_err().contains("is no path"));
    }

    #[test]
    fn the_echo_reads_back() {
        for text in [
            "name=x,rate=2500,conns=128,request=100,reply=3091+5,nodelay,more=server,cc=dctcp",
            "mode=stream,write=500,nodelay=client,sndbuf=20K",
            "mode=barrier,rate=0.5,reply=(mss+1),cork-held=server",
            "rate=500,conns=8,http=/reply?n=1,nodelay=client",
        ] {
            let echo = flow(text).unwrap().to_string();
            assert_eq!(flow(&echo).unwrap().to_string(), echo);
        }
    }
}
