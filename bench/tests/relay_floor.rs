//! The floor is a yardstick only while it does what it is compared for: every member is shown everything in one order, and answers come
//! behind what was said before.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use relay_bench::{Length, Pace, RelayCodec, Workload};
use tempfile::TempDir;

struct Floor {
    address: SocketAddr,
    process: Child,
    _data: TempDir,
}

impl Floor {
    fn start() -> Floor {
        let data = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_relay-floor"));
        command.args(["--listen", "127.0.0.1:0", "--data"]).arg(data.path()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap().parse().unwrap();
        Floor { address, process, _data: data }
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn every_member_sees_every_message_once_and_in_one_order() {
    let floor = Floor::start();
    let (pace, length) = (Pace::Window(8), Length::Messages(500));
    let workload = Workload { address: floor.address, rooms: 3, members: 4, senders: 2, pace, length, ..Workload::default() };
    let report = relay_bench::run(RelayCodec, workload).unwrap();
    assert_eq!((report.publishes, report.deliveries), (3 * 2 * 500, 3 * 4 * 2 * 500));
}

#[test]
fn answers_come_behind_what_was_said_before() {
    let floor = Floor::start();
    let mut stream = TcpStream::connect(floor.address).unwrap();
    stream.write_all(b"HELLO\nJOIN ada lobby\nMSG hello\r\nPONG\nMSG good").unwrap();
    stream.write_all(b"bye\nQUIT\n").unwrap();
    let mut heard = String::new();
    stream.read_to_string(&mut heard).unwrap();
    let expected = "ERR expected JOIN <name> <room>\nOK JOIN ada lobby\nMESSAGE ada hello\nMESSAGE ada goodbye\nOK QUIT\n";
    assert_eq!(heard, expected);
}

#[test]
fn what_is_not_text_ends_the_connection() {
    let floor = Floor::start();
    let mut stream = TcpStream::connect(floor.address).unwrap();
    stream.write_all(b"JOIN ada lobby\nMSG \xff\nQUIT\n").unwrap();
    let mut heard = Vec::new();
    let _ended = stream.read_to_end(&mut heard);
    assert!(!heard.windows(7).any(|words| words == b"MESSAGE"), "{}", heard.escape_ascii());
}
