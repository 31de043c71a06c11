//! Programs of the system that some tests use. Rust alone builds and runs the product and nearly all tests.
//!
//! The tests look for themselves and skip; here what is missing is named beforehand, and installed where that is allowed.
//! Read next: `plan.rs`, the steps.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// A program and the Debian package that brings it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tool {
    program: &'static str,
    package: &'static str,
}

const TOOLS: [Tool; 6] = [
    Tool { program: "nc", package: "netcat-openbsd" },
    Tool { program: "strace", package: "strace" },
    Tool { program: "valgrind", package: "valgrind" },
    Tool { program: "redis-server", package: "redis-server" },
    Tool { program: "python3", package: "python3" },
    Tool { program: "sqlite3", package: "sqlite3" },
];

#[derive(Debug, PartialEq)]
enum Action {
    Nothing,
    Install(Vec<&'static str>),
    Tell(String),
}

/// Installs what is missing when `may_install` says so and we are root, else names it. A failed installation is told and shows as skips.
pub(crate) fn provide(may_install: bool) {
    let missing: Vec<Tool> = TOOLS.into_iter().filter(|tool| !is_on_path(tool.program)).collect();
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    match action(&missing, may_install, is_root) {
        Action::Nothing => {}
        Action::Tell(message) => println!("{message}"),
        Action::Install(packages) => {
            println!("installing {}", packages.join(" "));
            let apt_get = |arguments: &[&str]| {
                let status = Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive").output();
                status.is_ok_and(|output| output.status.success())
            };
            if !(apt_get(&["update"]) && apt_get(&[&["install", "-y", "--no-install-recommends"], packages.as_slice()].concat())) {
                println!("apt-get failed: tests that need these programs will skip");
            }
        }
    }
}

fn action(missing: &[Tool], may_install: bool, is_root: bool) -> Action {
    let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    if missing.is_empty() {
        return Action::Nothing;
    }
    if may_install && is_root {
        return Action::Install(packages);
    }
    let programs: Vec<&str> = missing.iter().map(|tool| tool.program).collect();
    let way_out = if is_root { "cargo xtask test --install".to_owned() } else { format!("sudo apt-get install {}", packages.join(" ")) };
    Action::Tell(format!("not installed: {}. Tests that need them will skip. To have them run: {way_out}", programs.join(", ")))
}

fn is_on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| Path::new(&folder).join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_installed_only_by_root_and_only_when_asked() {
        let missing = &TOOLS[..2];
        assert_eq!(action(&[], true, true), Action::Nothing);
        assert_eq!(action(missing, true, true), Action::Install(vec!["netcat-openbsd", "strace"]));
        for (may_install, is_root, way_out) in [(true, false, "sudo apt-get install netcat-openbsd strace"), (false, true, "--install")] {
            let Action::Tell(message) = action(missing, may_install, is_root) else { panic!("it must not install") };
            assert!(message.contains("nc, strace") && message.contains(way_out), "{message}");
        }
    }

    #[test]
    fn programs_are_found_on_the_path() {
        assert!(is_on_path("sh"));
        assert!(!is_on_path("a-program-that-nobody-has"));
    }
}
