//! The server of an echo: a process of its own, on a core of its own. Here stands what runs in it, and how it is started.
//!
//! Next: `programs/echo.rs`.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};
use std::{env, fs};

use bench::processor;

use crate::contenders::{Contender, floor};
use crate::contract::Runtime;

/// What a server does beside the echo.
#[derive(Clone, Copy, clap::Args)]
pub(crate) struct Duties {
    /// The length of the buffer of each connection.
    #[arg(long)]
    pub(crate) buffer_len: usize,
    /// Ends after so many ticks of a timer of 1 ms and prints how late each was, in nanoseconds.
    #[arg(long, default_value_t = 0)]
    pub(crate) ticks: usize,
}

/// How many connections may wait to be accepted: as many as the kernel allows by default.
const LINE_LEN: i32 = 4_096;
const PERIOD: Duration = Duration::from_millis(1);

/// The server process: prints its port and serves until it is killed or has done its ticks.
pub(crate) fn main<R: Runtime>(duties: Duties) -> io::Result<()> {
    let listener = listen()?;
    let late_ns = R::run(async move {
        R::detach(R::spawn(async move {
            let listener = R::listen(listener);
            loop {
                let stream = R::accept(&listener).await;
                R::detach(R::spawn(R::echo(stream, duties.buffer_len)));
            }
        }));
        if duties.ticks == 0 {
            std::future::pending::<()>().await;
        }
        ticks::<R>(duties.ticks).await
    });
    println!("{}", serde_json::to_string(&late_ns)?);
    Ok(())
}

/// The same without a runtime, which has no timer.
pub(crate) fn main_of_floor(duties: Duties) -> io::Result<()> {
    floor::serve(&listen()?, duties.buffer_len)
}

fn listen() -> io::Result<TcpListener> {
    processor::pin(processor::SERVER_CORE)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    // Once more, for more than std asks for: who comes while the line is full tries again only after a second.
    rustix::net::listen(&listener, LINE_LEN)?;
    listener.set_nonblocking(true)?;
    println!("{}", listener.local_addr()?);
    io::stdout().flush()?;
    Ok(listener)
}

/// By how much each tick of a timer is late.
async fn ticks<R: Runtime>(count: usize) -> Vec<u64> {
    let late_ns = Rc::new(RefCell::new(Vec::with_capacity(count)));
    for _ in 0..count {
        let due = Instant::now() + PERIOD;
        R::sleep(PERIOD).await;
        let late = Instant::now().checked_duration_since(due).expect("no timer fires early");
        late_ns.borrow_mut().push(late.as_nanos() as u64);
    }
    late_ns.take()
}

/// A server that was started. It ends when this is dropped.
pub(crate) struct Server {
    process: Child,
    output: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
}

impl Server {
    pub(crate) fn start(contender: Contender, duties: Duties) -> io::Result<Server> {
        let (buffer_len, ticks) = (duties.buffer_len.to_string(), duties.ticks.to_string());
        let mut process = Command::new(env::current_exe()?)
            .args(["server", "--contender", contender.name(), "--buffer-len", &buffer_len, "--ticks", &ticks])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut output = BufReader::new(process.stdout.take().expect("it was asked for"));
        let mut line = String::new();
        output.read_line(&mut line)?;
        let address = line.trim().parse().map_err(|_| io::Error::other(format!("the server of {} has not started", contender.name())))?;
        Ok(Server { process, output, address })
    }

    /// The processor time that it has used so far: in all, and the part that was not the kernel's.
    pub(crate) fn used(&self) -> io::Result<(Duration, Duration)> {
        let process = self.process.id();
        Ok((processor::used_by(process)?, processor::used_outside_kernel(process)?))
    }

    /// The memory that is its own, in bytes.
    pub(crate) fn memory_bytes(&self) -> io::Result<u64> {
        memory_bytes(&self.process.id().to_string())
    }

    /// How late its ticks were, when it has done them.
    pub(crate) fn late_ns(&mut self) -> io::Result<Vec<u64>> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is gone already where it has ended itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a process (`self` for this one) has touched and shares with nobody. What the kernel keeps for it is not in this.
pub(crate) fn memory_bytes(process: &str) -> io::Result<u64> {
    let path = format!("/proc/{process}/smaps_rollup");
    let text = fs::read_to_string(&path)?;
    let kib = text.lines().find_map(|line| line.strip_prefix("Private_Dirty:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.map(|kib| kib << 10).ok_or_else(|| io::Error::other(format!("{path} does not say how much is dirty")))
}
