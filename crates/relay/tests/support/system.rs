//! What the kernel says of processes and sockets. Next: `server.rs`.

use std::fs;
use std::net::SocketAddrV4;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many descriptors a process has open.
pub(crate) fn count_descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).expect("the process runs").count()
}

/// The memory that a process has in use, in bytes.
pub(crate) fn rss_of(pid: u32) -> u64 {
    status_bytes(pid, "VmRSS:")
}

/// The most that it ever had in use.
pub(crate) fn rss_peak_of(pid: u32) -> u64 {
    status_bytes(pid, "VmHWM:")
}

fn status_bytes(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("the kernel says it");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib * 1024
}

/// The bytes that the kernel holds of a connection, at the end that is `local`.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct KernelQueues {
    /// Written by the program and not yet at the peer's end.
    pub(crate) unsent_bytes: usize,
    /// Arrived, and not yet read by the program.
    pub(crate) unread_bytes: usize,
}

/// What the kernel holds of a connection; `None` when there is no such connection.
pub(crate) fn kernel_queues(local: SocketAddrV4, peer: SocketAddrV4) -> Option<KernelQueues> {
    // 4: 0100007F:1F40 0100007F:D93E 01 0000001A:00000012 ..: number, local, peer, state, queues.
    let wanted = format!(" {} {} ", hex(local), hex(peer));
    let table = fs::read_to_string("/proc/net/tcp").expect("the kernel says it");
    let line = table.lines().find(|line| line.contains(&wanted))?;
    let (unsent, unread) = line.split_whitespace().nth(4)?.split_once(':')?;
    let bytes = |hex| usize::from_str_radix(hex, 16).expect("a number");
    Some(KernelQueues { unsent_bytes: bytes(unsent), unread_bytes: bytes(unread) })
}

/// What the kernel took from a server for a client that reads nothing, in bytes; `None` when the connection has ended.
pub(crate) fn bytes_taken(server: SocketAddrV4, client: SocketAddrV4) -> Option<usize> {
    Some(kernel_queues(server, client)?.unsent_bytes + kernel_queues(client, server)?.unread_bytes)
}

fn hex(address: SocketAddrV4) -> String {
    format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port())
}

/// Lets this process have as many descriptors as it may.
pub(crate) fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).expect("it may be raised to the hard limit");
}
