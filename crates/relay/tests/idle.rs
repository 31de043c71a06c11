//! What is asked of the kernel: nothing while nothing happens, and three calls for an echo.

mod support;

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use miniloop::net::TcpListener;
use miniloop::thread::Worker;
use support::client::Client;
use support::server::Server;
use support::strace::Strace;
use support::system::raise_descriptor_limit;
use support::{Data, Watchdog, is_missing};

#[test]
fn a_thousand_idle_members_cost_no_system_call() {
    if is_missing("strace") {
        return;
    }
    raise_descriptor_limit();
    let data = Data::new();
    let server = Server::start_prepared(&data, &["--heartbeat-interval", "0", "--log", "warn"]);
    let mut members: Vec<Client> = (0..1_000).map(|number| server.join(&format!("m{number}"), &format!("room-{}", number % 10))).collect();
    members[0].hears_nothing();
    let strace = Strace::attach(&data, server.pid(), &["-f", "-c"]);
    members[0].hears_nothing_for(Duration::from_secs(5));
    assert_eq!(strace.finish(), "", "it prints a table of what it has seen");

    // It would have seen something.
    let strace = Strace::attach(&data, server.pid(), &["-f", "-c"]);
    members[0].hears_nothing();
    let table = strace.finish();
    assert!(table.contains("recvfrom"), "{table}");
    server.stop();
}

const ECHOES: usize = 100;

#[test]
fn an_echo_costs_three_system_calls() {
    if is_missing("strace") {
        return;
    }
    let _watchdog = Watchdog::new();
    // /proc/thread-self is PID/task/TID.
    let thread = fs::read_link("/proc/thread-self").expect("the kernel says it");
    let thread = thread.file_name().and_then(|tid| tid.to_str()?.parse().ok()).expect("a number");
    let trace = miniloop::run(async {
        let listener = TcpListener::bind(([127, 0, 0, 1], 0).into())?;
        let address = listener.local_addr()?;
        let client = Worker::new("client", || ())?;
        let trace = client.call(move |()| echo_under_strace(address, thread));
        let (stream, _) = listener.accept().await?;
        let mut buffer = [0; 64];
        loop {
            match stream.read(&mut buffer).await? {
                0 => break,
                len => assert_eq!(stream.write(&buffer[..len]).await?, len),
            }
        }
        Ok::<String, Box<dyn std::error::Error>>(trace.await?)
    });
    let trace = trace.expect("the loop runs").expect("the client does not panic");

    let calls: Vec<&str> = trace.lines().filter_map(|line| line.split('(').next()).collect();
    let first = calls.iter().position(|call| *call == "recvfrom").expect("it reads");
    let expected = ["recvfrom", "sendto", "epoll_pwait2"].repeat(ECHOES);
    // It may be let go before it waits for more than the last echo.
    let calls = &calls[first..];
    assert!(calls == expected || calls == &expected[..expected.len() - 1], "{trace}");
}

/// Has lines echoed one by one, the thread that echoes being watched.
fn echo_under_strace(address: SocketAddr, thread: u32) -> String {
    let mut client = Client::connect(address);
    let mut echo = |line: &str| {
        client.say(line);
        client.hears(line);
    };
    echo("the first, for what is done once");
    let data = Data::new();
    let strace = Strace::attach(&data, thread, &[]);
    for number in 0..ECHOES {
        echo(&number.to_string());
    }
    strace.finish()
}
