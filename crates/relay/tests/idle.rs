//! What is asked of the kernel: nothing while nothing happens, three calls for an echo, and what has to be for a message that is stored.

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

#[test]
fn a_message_costs_one_read_one_synced_write_and_a_send_for_each_member() {
    check_calls_of_commits(1);
}

#[test]
fn a_hundred_messages_in_a_read_cost_the_calls_of_one() {
    check_calls_of_commits(100);
}

/// One member of five says so many messages at once, 20 times, each time when everybody has seen those before.
fn check_calls_of_commits(messages: usize) {
    const MEMBERS: usize = 5;
    const COMMITS: usize = 20;
    if is_missing("strace") {
        return;
    }
    let data = Data::new();
    let server = Server::start_prepared(&data, &["--heartbeat-interval", "0", "--log", "warn"]);
    let mut members: Vec<Client> = (0..MEMBERS).map(|number| server.join(&format!("m{number}"), "lounge")).collect();
    // The archive is asked for a room that comes into memory. When it has answered, only commits are left to be seen.
    assert_eq!(members[0].history(), [""; 0]);
    let mut talk = || {
        members[0].send("MSG hello\n".repeat(messages).as_bytes());
        members.iter_mut().for_each(|member| (0..messages).for_each(|_| member.hears("MESSAGE m0 hello")));
    };
    talk();
    // Memory is the allocator's business, and how threads wait for each other depends on who is faster.
    let strace = Strace::attach(&data, server.pid(), &["-f", "-e", "trace=!%memory,futex"]);
    (0..COMMITS).for_each(|_| talk());
    let trace = strace.finish();

    // Each line is a thread and a call; that one returns later is not its second call.
    let calls = trace.lines().filter_map(|line| line.split_whitespace().nth(1)?.split_once('(')).map(|(name, _)| name);
    let calls: Vec<&str> = calls.skip_while(|name| *name != "recvfrom").collect();
    let count = |name: &str| calls.iter().filter(|call| **call == name).count();
    let exact = ["recvfrom", "pwrite64", "fdatasync", "sendmsg"].map(count);
    assert_eq!(exact, [COMMITS, COMMITS, COMMITS, COMMITS * MEMBERS], "{trace}");
    // The worker rings unless the loop has not gone to sleep by then, and the loop wakes for the read and for the ring. One that comes late
    // costs a wait more.
    let [rings, waits] = ["write", "epoll_pwait2"].map(count);
    assert!(rings <= COMMITS && waits <= 2 * COMMITS + COMMITS / 2, "{rings} rings, {waits} waits: {trace}");
    assert_eq!(exact.iter().sum::<usize>() + rings + waits, calls.len(), "it makes other calls: {trace}");
    server.stop();
}
