//! From names to addresses, off the loop.
//!
//! The system's resolver (`getaddrinfo`) is asked on a thread of the loop's pool: it is the only one that knows all that an administrator
//! may have configured, and it blocks. What is an address already is not asked about. What is done with several addresses stands in
//! `connect.rs`.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, ToSocketAddrs};

use crate::engine::context;
use crate::thread::pool::spawn_blocking;

/// The addresses of a host, each with the given port, in the order in which the system prefers them. A literal address is returned at once,
/// without a thread.
///
/// ```
/// miniloop::run(async {
///     for address in miniloop::net::resolve("localhost", 8000).await? {
///         println!("{address}"); // [::1]:8000, 127.0.0.1:8000, or both
///     }
///     Ok::<(), std::io::Error>(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The name does not exist, has no address, or nobody could be asked. The error names it.
///
/// # Cancellation
/// Nothing is lost. A question that has been put to the system holds its thread until it is answered, which can take half a minute.
///
/// # Panics
/// Outside a loop, unless `host` is a literal address.
#[doc(alias = "getaddrinfo")]
#[doc(alias = "lookup_host")]
pub async fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        context::at_once().await;
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let name = host.to_owned();
    let asked = spawn_blocking(move || (name.as_str(), port).to_socket_addrs().map(Vec::from_iter));
    let answer = asked.await.unwrap_or_else(|nobody_asked| Err(nobody_asked.into()));
    let mut addresses: Vec<SocketAddr> =
        answer.map_err(|error| io::Error::new(error.kind(), format!("cannot resolve `{host}`: {error}")))?;
    let mut known = Vec::with_capacity(addresses.len());
    addresses.retain(|address| {
        !known.contains(address) && {
            known.push(*address);
            true
        }
    });
    if addresses.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("cannot resolve `{host}`: it has no address")));
    }
    Ok(addresses)
}

/// Where a connection may lead: an address, several of them, or a name with a port, `"localhost:8000"` or `("localhost", 8000)`.
///
/// The trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no place to connect to",
    note = "a place is a `SocketAddr`, several of them, `\"HOST:PORT\"`, or a pair of a host and a port"
)]
pub trait Destination: sealed::IntoPlace {}

impl<T: sealed::IntoPlace> Destination for T {}

/// A destination, taken apart.
#[derive(Debug)]
#[doc(hidden)]
pub enum Place {
    One(SocketAddr),
    Several(Vec<SocketAddr>),
    Name {
        host: String,
        port: u16,
    },
    /// What is wrong with it.
    Nowhere(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::One(address) => write!(f, "{address}"),
            Place::Several(addresses) => write!(f, "any of {} addresses", addresses.len()),
            Place::Name { host, port } => write!(f, "`{host}:{port}`"),
            Place::Nowhere(what) => f.write_str(what),
        }
    }
}

impl Place {
    fn of_text(text: &str) -> Place {
        if let Ok(address) = text.parse() {
            return Place::One(address);
        }
        let nowhere = |why| Place::Nowhere(format!("`{text}` is no place to connect to: {why}"));
        match text.rsplit_once(':') {
            None => nowhere("write HOST:PORT"),
            Some((host, port)) => {
                let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
                match (bare.unwrap_or(host), port.parse()) {
                    (_, Err(_)) => nowhere("a port is a number up to 65535"),
                    ("", _) => nowhere("the host is missing"),
                    (host, _) if host.contains(['[', ']']) || bare.is_none() && host.contains(':') => {
                        nowhere("write an IPv6 address in brackets: [::1]:8000")
                    }
                    (host, Ok(port)) => Place::of_pair(host, port),
                }
            }
        }
    }

    fn of_pair(host: &str, port: u16) -> Place {
        match host.parse() {
            Ok(address) => Place::One(SocketAddr::new(address, port)),
            Err(_) => Place::Name { host: host.to_owned(), port },
        }
    }
}

mod sealed {
    use super::{IpAddr, Ipv4Addr, Ipv6Addr, Place, SocketAddr, SocketAddrV4, SocketAddrV6};

    pub trait IntoPlace {
        #[doc(hidden)]
        fn into_place(self) -> Place;
    }

    /// The place that each of these types names.
    macro_rules! places {
        ($($type:ty: |$value:pat_param| $place:expr;)*) => {
            $(impl IntoPlace for $type {
                fn into_place(self) -> Place {
                    let $value = self;
                    $place
                }
            })*
        };
    }

    places! {
        SocketAddr: |address| Place::One(address);
        SocketAddrV4: |address| Place::One(address.into());
        SocketAddrV6: |address| Place::One(address.into());
        (IpAddr, u16): |address| Place::One(address.into());
        (Ipv4Addr, u16): |address| Place::One(address.into());
        (Ipv6Addr, u16): |address| Place::One(address.into());
        &[SocketAddr]: |addresses| Place::Several(addresses.to_vec());
        Vec<SocketAddr>: |addresses| Place::Several(addresses);
        &str: |text| Place::of_text(text);
        &String: |text| Place::of_text(text);
        String: |text| Place::of_text(&text);
        (&str, u16): |(host, port)| Place::of_pair(host, port);
        (String, u16): |(host, port)| Place::of_pair(&host, port);
    }
}

#[cfg(test)]
mod tests {
    use super::sealed::IntoPlace;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(format!("{:?}", text.into_place()), expected);
    }

    #[test]
    fn a_text_is_an_address_a_name_with_a_port_or_wrong() {
        check("127.0.0.1:80", "One(127.0.0.1:80)");
        check("[::1]:80", "One([::1]:80)");
        check("localhost:80", r#"Name { host: "localhost", port: 80 }"#);
        check("[fe80::1%eth0]:80", r#"Name { host: "fe80::1%eth0", port: 80 }"#);
        let wrong = |text, why: &str| check(text, &format!("Nowhere({:?})", format!("`{text}` is no place to connect to: {why}")));
        wrong("localhost", "write HOST:PORT");
        wrong("", "write HOST:PORT");
        wrong("localhost:http", "a port is a number up to 65535");
        wrong("localhost:65536", "a port is a number up to 65535");
        wrong(":80", "the host is missing");
        wrong("[]:80", "the host is missing");
        wrong("[::1:80", "write an IPv6 address in brackets: [::1]:8000");
        wrong("[[::1]]:80", "write an IPv6 address in brackets: [::1]:8000");
        wrong("::1:80", "write an IPv6 address in brackets: [::1]:8000");
    }

    #[test]
    fn a_pair_with_a_literal_address_is_no_name() {
        assert_eq!(format!("{:?}", ("::1", 80).into_place()), "One([::1]:80)");
        assert_eq!(format!("{}", ("relay", 80).into_place()), "`relay:80`");
    }
}
