//! A process that runs out of descriptors goes on serving, and says so once. Alone in its process: the limit is the process's.

use std::cell::RefCell;
use std::fs::File;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;

use miniloop::net::{TcpListener, TcpStream};
use miniloop::{ReportKind, VirtualClock, sleep, spawn};
use rustix::process::{Resource, Rlimit, setrlimit};

use super::{builder, in_a_process_of_its_own};

#[test]
fn a_listener_without_descriptors_reports_once_rests_and_recovers_c151() {
    in_a_process_of_its_own(module_path!(), "a_listener_without_descriptors_reports_once_rests_and_recovers_c151", || {
        setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: Some(64) }).unwrap();
        let mut event_loop = builder().clock(VirtualClock::jumping()).build().unwrap();
        let handle = event_loop.handle();
        let reports = Rc::new(RefCell::new(Vec::new()));
        let seen = reports.clone();
        handle.on_error(move |report| {
            seen.borrow_mut().push((report.kind(), report.to_string()));
            ControlFlow::Continue(())
        });
        event_loop
            .run_until_complete(async {
                let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
                let address = listener.local_addr().unwrap();
                for _ in 0..2 {
                    let client = TcpStream::connect(address).await.unwrap();
                    let mut hoard = Vec::new();
                    hoard.extend(std::iter::from_fn(|| File::open("/dev/null").ok()));
                    let start = miniloop::now();
                    let release = spawn(async move {
                        sleep(Duration::from_millis(3_500)).await;
                        drop(hoard);
                    });
                    let (_server, peer) = listener.accept().await.unwrap();
                    assert_eq!(peer, client.local_addr().unwrap());
                    assert_eq!(miniloop::now() - start, Duration::from_secs(4), "it tries once a second");
                    release.await.unwrap();
                }
            })
            .unwrap();
        let reports = reports.take();
        assert_eq!(reports.len(), 2, "once each time: {reports:?}");
        for (kind, text) in reports {
            assert_eq!(kind, ReportKind::Degraded);
            assert!(text.contains("listener of 127.0.0.1") && text.contains("Too many open files"), "{text}");
        }
    });
}
