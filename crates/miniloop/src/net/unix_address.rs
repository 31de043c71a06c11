//! Names of Unix sockets: those of the standard library, those of the kernel, and the way between.
//!
//! A name is a path, an abstract name of Linux, which has no file, or nothing.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::SocketAddr;
use std::path::Path;

use rustix::net::{SocketAddrAny, SocketAddrUnix};

use crate::os;

/// # Errors
/// A path of more than 107 bytes, or one with a zero byte.
pub(super) fn of_path(path: &Path) -> io::Result<SocketAddrUnix> {
    SocketAddr::from_pathname(path).and_then(|address| to_kernel(&address))
}

pub(super) fn to_kernel(address: &SocketAddr) -> io::Result<SocketAddrUnix> {
    match address.as_pathname() {
        Some(path) => Ok(SocketAddrUnix::new(path)?),
        None => os::pathless_to_kernel(address),
    }
}

/// What `accept` and `recvfrom` say. They say nothing of a peer without a name.
pub(super) fn from_kernel(address: Option<SocketAddrAny>) -> io::Result<SocketAddr> {
    let Some(address) = address else {
        return unnamed();
    };
    let address = SocketAddrUnix::try_from(address)?;
    match address.path_bytes() {
        Some(path) => SocketAddr::from_pathname(OsStr::from_bytes(path)),
        None => os::abstract_from_kernel(&address).unwrap_or_else(unnamed),
    }
}

fn unnamed() -> io::Result<SocketAddr> {
    SocketAddr::from_pathname("")
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt;

    use super::*;

    #[test]
    fn every_name_survives_the_way_to_the_kernel_and_back() {
        let names = [
            SocketAddr::from_pathname("/tmp/a b"),
            SocketAddr::from_pathname("relative"),
            SocketAddr::from_abstract_name(b"miniloop\0zero\xff"),
            unnamed(),
        ];
        for name in names.map(Result::unwrap) {
            let back = from_kernel(Some(to_kernel(&name).unwrap().into())).unwrap();
            assert_eq!((back.as_pathname(), back.as_abstract_name()), (name.as_pathname(), name.as_abstract_name()));
            assert_eq!(back.is_unnamed(), name.is_unnamed());
        }
        assert!(from_kernel(None).unwrap().is_unnamed());
    }
}
