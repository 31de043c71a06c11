//! Callbacks of descriptors that the user owns, over the real kernel (C139 to C149, O10, B28, B29). `sock.rs` has the `sock_*` functions.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use miniloop::net::{TcpListener, TcpStream};
use miniloop::{LoopHandle, VirtualClock, sock_recv, sock_sendall, spawn};

use super::{builder, check_quiet, event_loop, in_a_process_of_its_own, manual};
use crate::support::Trace;

/// A descriptor that is readable because its peer has written.
fn readable() -> (UnixStream, UnixStream) {
    let (mut peer, descriptor) = UnixStream::pair().unwrap();
    peer.write_all(b"x").unwrap();
    (peer, descriptor)
}

#[test]
fn a_second_reader_replaces_the_first_and_the_writer_is_independent_c139() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let (_peer, descriptor) = readable();
    let (owned, noting) = (trace.on_drop("first reader dropped"), trace.clone());
    handle
        .add_reader(&descriptor, move || {
            let _owned = &owned;
            noting.note("first reader");
        })
        .unwrap();
    handle.add_writer(&descriptor, trace.noting_each("writer")).unwrap();
    handle.add_reader(&descriptor, trace.noting_each("second reader")).unwrap();
    assert_eq!(trace.take(), ["first reader dropped"]);
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["second reader", "writer"]);
    assert!(handle.remove_reader(&descriptor));
    event_loop.run_once().unwrap();
    assert_eq!(trace.take(), ["writer"]);
    assert!(handle.remove_writer(&descriptor));
}

#[test]
fn removing_what_is_not_there_is_false_and_the_last_removal_unregisters_c140() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let (_peer, descriptor) = readable();
    let number = descriptor.as_raw_fd();
    assert!(!handle.remove_reader(&number) && !handle.remove_writer(&number) && !handle.remove_reader(&-1));
    handle.add_reader(&descriptor, trace.noting_each("reader")).unwrap();
    assert!(!handle.remove_writer(&number));
    check_quiet(&event_loop, false);
    assert!(handle.remove_reader(&number) && !handle.remove_reader(&number));
    check_quiet(&event_loop, true);
    event_loop.run_ready().unwrap();
    assert!(trace.take().is_empty());
}

#[test]
fn a_reader_removed_between_the_poll_and_its_turn_does_not_run_c141() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let (_peer, descriptor) = readable();
    let (inner, number) = (handle.clone(), descriptor.as_raw_fd());
    handle.add_reader(&descriptor, trace.noting_each("removed too late")).unwrap();
    handle.call_soon(move || assert!(inner.remove_reader(&number)));
    event_loop.run_once().unwrap();
    assert!(trace.take().is_empty());
    check_quiet(&event_loop, true);
}

#[test]
fn a_reader_runs_at_every_poll_while_something_is_unread_c142() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let (mut peer, descriptor) = readable();
    peer.write_all(b"yz").unwrap();
    let (noting, mut reading) = (trace.clone(), descriptor.try_clone().unwrap());
    handle
        .add_reader(&descriptor, move || {
            let mut byte = [0];
            reading.read_exact(&mut byte).unwrap();
            noting.note(char::from(byte[0]));
        })
        .unwrap();
    for _ in 0..5 {
        event_loop.run_ready().unwrap();
    }
    assert_eq!(trace.take(), ["x", "y", "z"]);
    assert!(handle.remove_reader(&descriptor));
}

#[test]
fn a_reader_that_breaks_is_removed_c140() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let (_peer, descriptor) = readable();
    let (noting, owned) = (trace.clone(), trace.on_drop("dropped"));
    handle
        .add_reader(&descriptor, move || {
            let _owned = &owned;
            noting.note("once");
            ControlFlow::Break(())
        })
        .unwrap();
    event_loop.run_ready().unwrap();
    event_loop.run_ready().unwrap();
    assert_eq!(trace.take(), ["once", "dropped"]);
    check_quiet(&event_loop, true);
    assert!(!handle.remove_reader(&descriptor));
}

#[test]
fn a_reader_that_puts_another_in_its_place_and_breaks_removes_only_itself_c139() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let (_peer, descriptor) = readable();
    let descriptor = Rc::new(descriptor);
    let (inner, noting, same) = (handle.clone(), trace.clone(), descriptor.clone());
    handle
        .add_reader(&descriptor, move || {
            noting.note("first");
            inner.add_reader(&same, noting.noting_each("second")).unwrap();
            ControlFlow::Break(())
        })
        .unwrap();
    event_loop.run_ready().unwrap();
    event_loop.run_ready().unwrap();
    assert_eq!(trace.take(), ["first", "second"]);
    assert!(handle.remove_reader(&descriptor));
}

#[test]
fn a_descriptor_of_an_io_object_takes_no_callback_but_its_duplicate_does_c143() {
    let (mut event_loop, _, trace) = manual();
    event_loop
        .run_until_complete(async {
            let handle = LoopHandle::current();
            let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let refused = handle.add_reader(&listener, || ()).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
            assert!(refused.to_string().contains("duplicate"), "{refused}");
            let duplicate: OwnedFd = listener.as_fd().try_clone_to_owned().unwrap();
            handle.add_reader(&duplicate, trace.noting_each("connection")).unwrap();
            let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let _server = listener.accept().await.unwrap();
            assert!(handle.remove_reader(&duplicate));
        })
        .unwrap();
    assert_eq!(trace.take()[0], "connection");
}

#[test]
fn what_cannot_be_watched_is_refused_and_its_callback_dropped_c140() {
    let (event_loop, _, trace) = manual();
    let file = File::open("/proc/self/exe").unwrap();
    let owned = trace.on_drop("dropped");
    let refused = event_loop.handle().add_reader(&file, move || {
        let _owned = &owned;
    });
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::PermissionDenied);
    assert_eq!(trace.take(), ["dropped"]);
}

#[test]
fn a_removed_and_closed_descriptor_with_a_duplicate_is_not_heard_of_b28() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let (mut peer, descriptor) = UnixStream::pair().unwrap();
    handle.add_reader(&descriptor, trace.noting_each("reader")).unwrap();
    let _duplicate = descriptor.try_clone().unwrap();
    handle.remove_reader(&descriptor);
    drop(descriptor);
    peer.write_all(b"x").unwrap();
    check_quiet(&event_loop, true); // it would wake the loop for ever
    event_loop.run_ready().unwrap();
    assert!(trace.take().is_empty());
}

#[test]
fn closing_a_watched_descriptor_neither_fails_nor_spins_c149() {
    let (mut event_loop, _, trace) = manual();
    let handle = event_loop.handle();
    let (_peer, descriptor) = readable();
    let number = descriptor.as_raw_fd();
    handle.add_reader(&descriptor, trace.noting_each("reader")).unwrap();
    drop(descriptor);
    check_quiet(&event_loop, true);
    event_loop.run_ready().unwrap();
    handle.remove_reader(&number);
    event_loop.close();
    assert!(trace.take().is_empty());
}

#[test]
fn a_new_file_of_a_watched_number_can_be_watched_and_inherits_no_callback_c149_b29() {
    // Another test starts a process, which has every file of this one until it becomes its own program: closed files would live on in it.
    in_a_process_of_its_own(module_path!(), "a_new_file_of_a_watched_number_can_be_watched_and_inherits_no_callback_c149_b29", || {
        #[track_caller]
        fn check(use_again: impl FnOnce(&LoopHandle, &OwnedFd, &Trace), seen: &[&str]) {
            let (mut event_loop, _, trace) = manual();
            let handle = event_loop.handle();
            let (_peer, old) = UnixStream::pair().unwrap();
            handle.add_reader(&old, trace.noting_each("old reader")).unwrap();
            let owned = trace.on_drop("old writer dropped");
            handle.add_writer(&old, move || assert!(size_of_val(&owned) == 0, "the old writer runs")).unwrap();
            // Closes the old file and gives its number to the new one, in one step: other tests of this process open descriptors, too.
            let (_other_peer, new) = readable();
            let mut number = OwnedFd::from(old);
            rustix::io::dup3(&new, &mut number, rustix::io::DupFlags::CLOEXEC).unwrap();
            use_again(&handle, &number, &trace);
            assert_eq!(trace.take(), ["old writer dropped"]);
            event_loop.run_ready().unwrap();
            assert_eq!(trace.take(), seen);
            assert!(handle.remove_reader(&number) != seen.is_empty());
            check_quiet(&event_loop, true);
        }
        check(|handle, number, trace| handle.add_reader(number, trace.noting_each("new reader")).unwrap(), &["new reader"]);
        check(
            |handle, number, _| {
                let _entered = handle.enter();
                let mut cx = Context::from_waker(Waker::noop());
                assert!(pin!(sock_recv(number, &mut [0; 4])).poll(&mut cx).is_ready());
                assert!(pin!(sock_recv(number, &mut [0])).poll(&mut cx).is_pending());
            },
            &[],
        );
    });
}

#[test]
fn a_peer_that_has_much_to_say_does_not_stop_the_loop_o10() {
    let (mut event_loop, _, trace) = manual();
    event_loop
        .run_until_complete(async {
            let (peer, descriptor) = UnixStream::pair().unwrap();
            sock_sendall(&peer, &[0; 200]).await.unwrap();
            let read = Rc::new(RefCell::new(0));
            let (count, noting) = (read.clone(), trace.clone());
            let reader = spawn(async move {
                for _ in 0..200 {
                    sock_recv(&descriptor, &mut [0]).await.unwrap();
                    *count.borrow_mut() += 1;
                }
            });
            let handle = LoopHandle::current();
            observe(handle, read, noting);
            reader.await.unwrap();
        })
        .unwrap();
    assert_eq!(trace.take(), ["64", "128", "192", "200"], "what a callback in the same rounds sees");
}

/// Notes in each round how many operations have succeeded by then, until all have.
fn observe(handle: LoopHandle, read: Rc<RefCell<usize>>, trace: Trace) {
    handle.clone().call_soon(move || {
        trace.note(read.borrow());
        if *read.borrow() < 200 {
            observe(handle, read, trace);
        }
    });
}

#[test]
fn a_loop_opens_its_descriptors_once_and_leaves_none_behind_c040() {
    in_a_process_of_its_own(module_path!(), "a_loop_opens_its_descriptors_once_and_leaves_none_behind_c040", || {
        let open = || fs::read_dir("/proc/self/fd").unwrap().count();
        let before = open();
        for _ in 0..10 {
            let clock = VirtualClock::jumping();
            let mut event_loop = builder().clock(&clock).build().unwrap();
            let with_a_loop = open();
            event_loop
                .run_until_complete(async {
                    let (_peer, descriptor) = readable();
                    LoopHandle::current().add_reader(&descriptor, || ControlFlow::Break(())).unwrap();
                    let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
                    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
                    let server = listener.accept().await.unwrap();
                    miniloop::sleep(Duration::from_millis(1)).await;
                    drop((client, server));
                })
                .unwrap();
            assert_eq!(open(), with_a_loop, "turning a loop opens nothing");
            event_loop.close();
            assert_eq!(open(), before + 1, "the doorbell, which other threads may still ring, goes with the last handle");
        }
        drop(event_loop());
        assert_eq!(open(), before);
    });
}
