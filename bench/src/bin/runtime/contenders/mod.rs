//! Who takes part, and which version of it. Next: `effort.rs`.

pub(crate) mod miniloop;
pub(crate) mod tokio;
pub(crate) mod smol;
pub(crate) mod async_executor;
pub(crate) mod monoio;
pub(crate) mod compio;
pub(crate) mod floor;

/// Somebody who takes part.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
pub(crate) enum Contender {
    Miniloop,
    Tokio,
    Smol,
    AsyncExecutor,
    Monoio,
    Compio,
    /// Bare epoll, where there are connections.
    Floor,
}

impl Contender {
    /// As one types it, and as it stands in the results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Contender::Miniloop => "miniloop",
            Contender::Tokio => "tokio",
            Contender::Smol => "smol",
            Contender::AsyncExecutor => "async-executor",
            Contender::Monoio => "monoio",
            Contender::Compio => "compio",
            Contender::Floor => "floor",
        }
    }

    /// What it consists of here.
    pub(crate) fn version(self) -> String {
        let of = |package: &str| format!("{package} {}", locked_version(package));
        match self {
            Contender::Miniloop => of("miniloop"),
            Contender::Tokio => format!("{}, current-thread, plain spawn", of("tokio")),
            Contender::Smol => {
                let parts = ["async-executor", "async-io", "async-channel", "async-lock"].map(of).join(", ");
                format!("LocalExecutor of {parts}; group: {}", of("futures-util"))
            }
            Contender::AsyncExecutor => format!("StaticExecutor of {}, the rest as with smol", of("async-executor")),
            Contender::Monoio => {
                let (runtime, channel, mutex) = (of("monoio"), of("local-sync"), of("async-lock"));
                format!("{runtime} with `sync`, {}; channel: {channel}; mutex: {mutex}; group: {}", monoio::driver(), of("futures-util"))
            }
            Contender::Compio => {
                let (runtime, channel, mutex) = (of("compio"), of("local-sync"), of("synchrony"));
                format!("{runtime}, {}; channel: {channel}; mutex: {mutex}; group: {}", compio::driver(), of("futures-util"))
            }
            Contender::Floor => format!("epoll through {}", of("rustix")),
        }
    }
}

/// The version of a package that this program was built with. Where there are two, the newer one is what the manifest names.
fn locked_version(package: &str) -> &'static str {
    const LOCK: &str = include_str!("../../../../Cargo.lock");
    let entry = format!("name = \"{package}\"\nversion = \"");
    LOCK.rsplit_once(&entry).and_then(|(_, rest)| rest.split('"').next()).unwrap_or("unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_a_version() {
        for contender in <Contender as clap::ValueEnum>::value_variants() {
            let version = contender.version();
            assert!(!version.contains("unknown"), "{}: {version}", contender.name());
        }
    }
}
