//! A process that runs out of descriptors says so, loses nothing, and goes on once there are some again. Each test is alone in its process:
//! the limit is the process's.

use std::cell::RefCell;
use std::fs::File;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::Duration;

use futures_util::AsyncWriteExt;
use miniloop::io::pipe;
use miniloop::net::{TcpListener, TcpStream};
use miniloop::{DriverKind, ReportKind, VirtualClock, sleep, spawn, yield_now};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, setrlimit};

use super::{DRIVER, builder, event_loop, in_a_process_of_its_own, on_a_loop};

fn limit_descriptors(current: u64) {
    setrlimit(Resource::Nofile, Rlimit { current: Some(current), maximum: Some(1_024) }).unwrap();
}

/// Takes all descriptors but so many.
fn hoard_all_but(left: usize) -> Vec<File> {
    let mut hoard = Vec::from_iter(std::iter::from_fn(|| File::open("/dev/null").ok()));
    hoard.truncate(hoard.len() - left);
    hoard
}

#[test]
fn a_pipe_needs_two_descriptors_to_be_made_and_to_be_closed_and_none_to_be_dropped() {
    in_a_process_of_its_own(module_path!(), "a_pipe_needs_two_descriptors_to_be_made_and_to_be_closed_and_none_to_be_dropped", || {
        on_a_loop(async |_| {
            limit_descriptors(64);
            let (reader, mut writer) = pipe().unwrap();
            let (other_reader, other_writer) = pipe().unwrap();
            for left in [0, 1] {
                let hoard = hoard_all_but(left);
                assert_eq!(pipe().unwrap_err().raw_os_error(), Some(Errno::MFILE.raw_os_error()));
                let error = writer.close().await.unwrap_err().to_string();
                assert!(error.contains("drop it instead (Too many open files"), "{error}");
                assert_eq!(Vec::from_iter(std::iter::from_fn(|| File::open("/dev/null").ok())).len(), left, "nothing is lost");
                drop(hoard);
            }
            let hoard = hoard_all_but(0);
            writer.write(b"still open").await.unwrap();
            drop(other_writer);
            assert_eq!(other_reader.read(&mut [0; 16]).await.unwrap(), 0);
            drop(hoard);
            writer.close().await.unwrap();
            assert_eq!(reader.read(&mut [0; 16]).await.unwrap(), 10);
            assert_eq!(reader.read(&mut [0; 16]).await.unwrap(), 0);
        });
    });
}

#[test]
fn a_limit_below_what_is_watched_is_a_clear_error_or_none_and_the_loop_goes_on_once_it_is_raised() {
    in_a_process_of_its_own(
        module_path!(),
        "a_limit_below_what_is_watched_is_a_clear_error_or_none_and_the_loop_goes_on_once_it_is_raised",
        || {
            let mut event_loop = event_loop();
            let _loop_is_current = event_loop.handle().enter();
            let pipes = Vec::from_iter((0..20).map(|_| pipe().unwrap()));
            // Each is watched from the moment at which it has found nothing.
            pipes.iter().for_each(|(reader, _)| assert!(reader.try_read(&mut [0]).is_err()));
            limit_descriptors(16);
            let turned = event_loop.run_until_complete(yield_now());
            match DRIVER {
                DriverKind::Poll => {
                    let error = turned.unwrap_err().to_string();
                    assert!(error.contains("refuses to watch 21 descriptors") && error.contains("`ulimit -n`"), "{error}");
                }
                _ => turned.unwrap(),
            }
            limit_descriptors(64);
            let (reader, writer) = &pipes[19];
            let talk = async {
                writer.write(b"hello").await.unwrap();
                reader.read(&mut [0; 16]).await.unwrap()
            };
            assert_eq!(event_loop.run_until_complete(talk).unwrap(), 5);
        },
    );
}

#[test]
fn a_listener_without_descriptors_reports_once_rests_and_recovers_c151() {
    in_a_process_of_its_own(module_path!(), "a_listener_without_descriptors_reports_once_rests_and_recovers_c151", || {
        limit_descriptors(64);
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
                    assert_eq!(listener.try_accept().unwrap_err().raw_os_error(), Some(Errno::MFILE.raw_os_error()), "without a rest");
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
