//! The load: the engine that checks every message at every member, on the second core, speaking the protocol of whoever is measured.
//!
//! Next: `cases.rs`.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use bench::processor;
use relay_bench::{Bench, BenchError, Codec, Event, Member, RelayCodec, Report, Workload};

use crate::contender::Contender;
use crate::failure::{Failure, Outcome};
use crate::nats_codec::{NatsCore, NatsStream};
use crate::redis_codec::{RedisPublish, RedisStream};
use crate::server::Server;

/// Runs a workload against a server.
///
/// # Errors
/// The first thing that the server did wrong, with what it has said about it.
pub(crate) fn run(contender: Contender, server: &Server, workload: Workload) -> Outcome<Report> {
    let workload = Workload { address: server.address, ..workload };
    let process = server.process();
    let report = on_core(LOAD_CORE, || match contender {
        Contender::Relay | Contender::Floor => run_as(RelayCodec, workload, process),
        Contender::Nats => run_as(NatsCore, workload, process),
        Contender::JetStream => run_as(NatsStream, workload, process),
        Contender::Redis => run_as(RedisPublish, workload, process),
        Contender::RedisAlways => run_as(RedisStream, workload, process),
    });
    report.map_err(|failure| Failure::new(format!("{}: {failure}; it said last:\n{}", contender.name(), server.last_words())))
}

/// So many members in rooms of ten, who have joined and do nothing. They are gone when they are dropped.
pub(crate) fn join_idle(contender: Contender, server: &Server, count: usize) -> Outcome<Vec<TcpStream>> {
    let joined = match contender {
        Contender::Relay | Contender::Floor => join_idle_as(&RelayCodec, server, count),
        Contender::Nats => join_idle_as(&NatsCore, server, count),
        Contender::JetStream => join_idle_as(&NatsStream, server, count),
        Contender::Redis => join_idle_as(&RedisPublish, server, count),
        Contender::RedisAlways => join_idle_as(&RedisStream, server, count),
    };
    joined.map_err(|failure| failure.of(contender.name()))
}

fn run_as<C: Codec>(codec: C, workload: Workload, process: u32) -> Outcome<Report> {
    let bench = Bench::new(codec, workload)?.with_server_clock(move || processor::used_by(process).unwrap_or_default());
    let report = miniloop::run(async move { bench.run().await }).map_err(BenchError::from)??;
    Ok(report)
}

fn on_core<T: Send>(core: usize, work: impl FnOnce() -> Outcome<T> + Send) -> Outcome<T> {
    let pinned = || {
        processor::pin(core)?;
        work()
    };
    thread::scope(|scope| scope.spawn(pinned).join()).unwrap_or_else(|_| Err(Failure::new("the load panicked")))
}

fn join_idle_as(codec: &impl Codec, server: &Server, count: usize) -> Outcome<Vec<TcpStream>> {
    let joined = |number: usize| {
        let (name, room) = (format!("m{:05}", number % ROOM_MEMBERS), format!("idle-{}", number / ROOM_MEMBERS));
        let join = || join(codec, &Member { name: &name, room: &room }, server);
        join().map_err(|failure| failure.of(format!("idle member {number}")))
    };
    (0..count).map(joined).collect()
}

fn join(codec: &impl Codec, member: &Member<'_>, server: &Server) -> Outcome<TcpStream> {
    let mut stream = TcpStream::connect(server.address)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    let mut said = Vec::new();
    codec.hello(member, &mut said);
    stream.write_all(&said)?;
    let mut heard = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let len = match stream.read(&mut buffer) {
            Ok(0) => return Err(Failure::new("the server has closed the connection")),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(Failure::new("the server does not answer")),
            len => len?,
        };
        heard.extend_from_slice(&buffer[..len]);
        while let Some((event, len)) = codec.cut(&heard).filter(|_| !heard.is_empty()) {
            match event {
                Event::Done => return Ok(stream),
                Event::Error(text) => return Err(Failure::new(format!("the server says `{}`", text.escape_ascii()))),
                Event::Answer(answer) => stream.write_all(answer)?,
                Event::Message(_) | Event::Acknowledged | Event::Nothing => {}
            }
            heard.drain(..len);
        }
    }
}

const LOAD_CORE: usize = 1;
const ROOM_MEMBERS: usize = 10;
const ANSWER_MAX: Duration = Duration::from_secs(10);
