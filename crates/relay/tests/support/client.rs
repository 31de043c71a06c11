//! A client that speaks lines and waits for lines, over TCP or over the standard streams of a program such as `nc`.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use memchr::memchr;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::LIMIT;

/// One end of a conversation. Every wait has [`LIMIT`].
pub(crate) struct Client {
    /// A socket. As a file, so that TCP and Unix sockets are one type; its time limits hold for `read` and `write` as well.
    socket: File,
    unread: Vec<u8>,
    /// The program that talks to the server for us.
    _program: Option<Program>,
}

/// How a conversation ends.
#[derive(Debug, PartialEq)]
pub(crate) enum End {
    Orderly,
    Reset,
}

impl Client {
    #[expect(clippy::disallowed_methods, reason = "there is no loop to block")]
    pub(crate) fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).expect("the server listens");
        stream.set_nodelay(true).and_then(|()| stream.set_read_timeout(Some(LIMIT))).expect("it is a socket");
        stream.set_write_timeout(Some(LIMIT)).expect("it is a socket");
        Client::of(stream.into())
    }

    /// A client that has joined a room.
    #[track_caller]
    pub(crate) fn join(address: SocketAddr, name: &str, room: &str) -> Client {
        let mut client = Client::connect(address);
        client.say(&format!("JOIN {name} {room}"));
        client.hears(&format!("OK JOIN {name} {room}"));
        client
    }

    /// The netcat that people use.
    pub(crate) fn nc(address: SocketAddr) -> Client {
        let (ours, theirs) = UnixStream::pair().expect("there are descriptors left");
        ours.set_read_timeout(Some(LIMIT)).expect("it is a socket");
        let output: OwnedFd = theirs.try_clone().expect("there are descriptors left").into();
        let mut command = Command::new("nc");
        command.args([address.ip().to_string(), address.port().to_string()]);
        let program = command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(output).spawn().expect("nc is installed");
        Client { _program: Some(Program(program)), ..Client::of(ours.into()) }
    }

    /// What a process prints, as lines.
    pub(crate) fn listening_to(socket: UnixStream) -> Client {
        socket.set_read_timeout(Some(LIMIT)).expect("it is a socket");
        Client::of(socket.into())
    }

    /// A conversation over a socket that has its time limits.
    pub(crate) fn of(socket: OwnedFd) -> Client {
        Client { socket: socket.into(), unread: Vec::new(), _program: None }
    }

    /// Sends a line.
    pub(crate) fn say(&mut self, line: &str) {
        self.send(format!("{line}\n").as_bytes());
    }

    /// Sends any bytes.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("the server takes it");
    }

    /// Sends what the server takes: it may have closed the connection, or stopped reading.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) {
        let _ = rustix::net::send(&self.socket, bytes, rustix::net::SendFlags::DONTWAIT | rustix::net::SendFlags::NOSIGNAL);
    }

    /// Says that nothing more will be sent, and goes on listening.
    pub(crate) fn end_input(&self) {
        rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Write).expect("it is connected");
    }

    /// The next line without its end; `Err` when there is none any more.
    #[track_caller]
    pub(crate) fn line(&mut self) -> Result<String, End> {
        loop {
            if let Some(len) = memchr(b'\n', &self.unread) {
                let line: Vec<u8> = self.unread.drain(..=len).take(len).collect();
                return Ok(String::from_utf8(line).expect("the server says valid text"));
            }
            self.read()?;
        }
    }

    /// Whether something was said, or the end has come.
    pub(crate) fn can_read(&self) -> bool {
        let mut ready = [PollFd::new(&self.socket, PollFlags::IN)];
        let count = poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).expect("it is a socket");
        count > 0 || !self.unread.is_empty()
    }

    /// Reads once.
    #[track_caller]
    fn read(&mut self) -> Result<(), End> {
        let mut buffer = [0; 64 * 1024];
        match self.socket.read(&mut buffer) {
            Ok(0) => Err(End::Orderly),
            Ok(len) => {
                self.unread.extend_from_slice(&buffer[..len]);
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Err(End::Reset),
            Err(error) => panic!("nothing comes: {error}; so far unread: `{}`", self.unread.escape_ascii()),
        }
    }

    /// The next line must be this one.
    #[track_caller]
    pub(crate) fn hears(&mut self, expected: &str) {
        match self.line() {
            Ok(line) => assert_eq!(line, expected),
            Err(end) => panic!("the connection has ended ({end:?}) instead of `{expected}`"),
        }
    }

    /// All lines until the connection ends, and how it does.
    #[track_caller]
    pub(crate) fn hears_to_the_end(&mut self) -> (Vec<String>, End) {
        let mut lines = Vec::new();
        loop {
            match self.line() {
                Ok(line) => lines.push(line),
                Err(end) => return (lines, end),
            }
        }
    }

    /// Nothing is said to it. Shown by a question whose answer comes next, so nothing is waited for.
    #[track_caller]
    pub(crate) fn hears_nothing(&mut self) {
        self.say("WHAT");
        self.hears("ERR expected MSG <text>, HISTORY, or QUIT");
    }

    /// Nothing is said to it for a while of real time.
    #[track_caller]
    pub(crate) fn hears_nothing_for(&mut self, duration: Duration) {
        rustix::net::sockopt::set_socket_timeout(&self.socket, rustix::net::sockopt::Timeout::Recv, Some(duration))
            .expect("it is a socket");
        let read = self.socket.read(&mut [0; 64]);
        rustix::net::sockopt::set_socket_timeout(&self.socket, rustix::net::sockopt::Timeout::Recv, Some(LIMIT)).expect("it is a socket");
        assert_eq!(read.map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
        assert_eq!(self.unread, b"");
    }

    /// The answer to `HISTORY`, its first and last line taken off.
    #[track_caller]
    pub(crate) fn history(&mut self) -> Vec<String> {
        self.say("HISTORY");
        let begin = self.line().expect("an answer");
        let count = begin.strip_prefix("HISTORY_BEGIN ").unwrap_or_else(|| panic!("`{begin}` is no history"));
        let lines = (0..count.parse().expect("a number")).map(|_| self.line().expect("an answer")).collect();
        self.hears("HISTORY_END");
        lines
    }

    /// Says goodbye, and must be told so.
    #[track_caller]
    pub(crate) fn quit(mut self) {
        self.say("QUIT");
        assert_eq!(self.hears_to_the_end(), (vec!["OK QUIT".to_owned()], End::Orderly));
    }

    /// Ends the connection in a way that looks like a crash to the server.
    pub(crate) fn reset(self) {
        rustix::net::sockopt::set_socket_linger(&self.socket, Some(Duration::ZERO)).expect("it is a TCP socket");
    }

    /// The error of the connection, if it has one that was not read yet.
    pub(crate) fn take_error(&self) -> Option<rustix::io::Errno> {
        rustix::net::sockopt::socket_error(&self.socket).expect("it is a socket").err()
    }

    pub(crate) fn address(&self) -> SocketAddrV4 {
        let address = rustix::net::getsockname(&self.socket).expect("it is a socket");
        address.try_into().expect("it has an IPv4 address")
    }

    /// The socket, to go on with in another way. Nothing may be unread.
    #[track_caller]
    pub(crate) fn into_stream(self) -> TcpStream {
        assert_eq!(self.unread, b"");
        OwnedFd::from(self.socket).into()
    }
}

/// A program that is killed when its client is dropped.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
