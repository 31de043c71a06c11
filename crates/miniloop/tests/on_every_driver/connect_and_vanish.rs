//! Clients that connect and vanish leave nothing behind. Alone in its process: it counts the process's descriptors.

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future;
use miniloop::net::{TcpListener, TcpStream};
use miniloop::spawn;

use super::{event_loop, in_a_process_of_its_own, watched};

#[test]
fn ten_thousand_clients_that_vanish_leave_no_descriptor() {
    in_a_process_of_its_own(module_path!(), "ten_thousand_clients_that_vanish_leave_no_descriptor", || {
        const CLIENTS: usize = 10_000;
        const AT_A_TIME: usize = 100;

        let mut event_loop = event_loop();
        let watched = watched(&event_loop);
        let open = || fs::read_dir("/proc/self/fd").unwrap().count();
        let before = (open(), watched());
        event_loop
            .run_until_complete(async {
                let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
                let address = listener.local_addr().unwrap();
                let server = spawn(async move {
                    let mut sessions = Vec::new();
                    for _ in 0..CLIENTS {
                        let (stream, _) = listener.accept().await.unwrap();
                        sessions.push(spawn(async move {
                            let mut buffer = [0; 16];
                            while stream.read(&mut buffer).await.is_ok_and(|len| len > 0) {}
                        }));
                    }
                    for session in sessions {
                        session.await.unwrap();
                    }
                });
                for wave in 0..CLIENTS / AT_A_TIME {
                    let client = async |number: usize| {
                        let stream = TcpStream::connect(address).await.unwrap();
                        match (wave + number) % 3 {
                            0 => stream.set_linger(Some(Duration::ZERO)).unwrap(), // a reset
                            1 => assert!(stream.write(b"half a li").await.is_ok()),
                            _ => {}
                        }
                    };
                    future::join_all((0..AT_A_TIME).map(client)).await;
                }
                server.await.unwrap();
            })
            .unwrap();
        assert_eq!((open(), watched()), before);
    });
}
