//! Where something was measured: without it a figure says nothing.
//!
//! Next: `results.rs`.

use std::fs;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// The machine and the compiler.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Machine {
    /// As the kernel names it.
    pub processor: String,
    /// How many cores this process may use.
    pub cores: usize,
    /// How much memory there is, in GiB.
    pub memory_gib: u64,
    /// Its release.
    pub kernel: String,
    /// What compiled the contenders that are Rust.
    pub rustc: String,
}

impl Machine {
    /// This one. What cannot be found out is `unknown`.
    #[must_use]
    pub fn this() -> Machine {
        let unknown = || "unknown".to_owned();
        let kib: u64 = field("/proc/meminfo", "MemTotal").and_then(|line| line.split(' ').next()?.parse().ok()).unwrap_or(0);
        let rustc = Command::new("rustc").arg("--version").output().ok().and_then(|output| String::from_utf8(output.stdout).ok());
        Machine {
            processor: field("/proc/cpuinfo", "model name").unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            memory_gib: kib.div_ceil(1 << 20),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease").map_or_else(|_| unknown(), |release| release.trim().to_owned()),
            rustc: rustc.map_or_else(unknown, |version| version.trim().to_owned()),
        }
    }
}

/// What follows `name :` in a file of the kernel's.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
    value.map(|value| value.trim().to_owned())
}
