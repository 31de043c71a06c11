//! Signals of this process. Each test has a signal of its own, because all tests are one process.

use std::task::{Context, Poll, Waker};

use futures_util::stream::FusedStream;
use futures_util::{StreamExt, poll};
use miniloop::signal::{Signal, Signals};
use miniloop::{EventLoop, run, spawn, yield_now};
use rustix::process::{Signal as Named, getpid, kill_process};

fn raise(signal: Named) {
    kill_process(getpid(), signal).unwrap();
}

#[test]
fn a_signal_wakes_a_blocked_loop_c171() {
    run(async {
        let mut signals = Signals::new([Signal::USER1]).unwrap();
        // Pending first, so that the loop blocks until the signal comes from another thread.
        let heard = spawn(async move { signals.recv().await });
        yield_now().await;
        let thread = std::thread::Builder::new().spawn(|| raise(Named::USR1)).unwrap();
        assert_eq!(heard.await.unwrap().unwrap(), Signal::USER1);
        thread.join().unwrap();
    })
    .unwrap();
}

#[test]
fn every_stream_of_every_loop_hears_every_signal() {
    let listen = || {
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().spawn(move || {
            run(async {
                let (mut a, mut b) = (Signals::new([Signal::USER2]).unwrap(), Signals::new([Signal::USER2]).unwrap());
                sender.send(()).unwrap();
                (a.recv().await.unwrap(), b.recv().await.unwrap())
            })
        });
        receiver.recv().unwrap();
        thread.unwrap()
    };
    let listeners = [listen(), listen()];
    raise(Named::USR2);
    for listener in listeners {
        assert_eq!(listener.join().unwrap().unwrap(), (Signal::USER2, Signal::USER2));
    }
}

#[test]
fn signals_that_wait_come_once_each_lowest_number_first() {
    run(async {
        let mut signals = Signals::new([Signal::WINDOW_CHANGE, Signal::HANGUP]).unwrap();
        let mut witness = Signals::new([Signal::WINDOW_CHANGE, Signal::HANGUP]).unwrap();
        for signal in [Named::WINCH, Named::HUP] {
            raise(signal);
            // A signal may be delivered on another thread, at another time. Actions run in order of installation: what the second stream
            // has seen, the first one has.
            witness.recv().await.unwrap();
        }
        assert_eq!(signals.next().await, Some(Signal::HANGUP));
        assert_eq!(signals.next().await, Some(Signal::WINDOW_CHANGE));
        assert_eq!(poll!(signals.next()), Poll::Pending);
    })
    .unwrap();
}

#[test]
fn a_signal_that_nobody_listens_to_any_more_is_ignored_c173() {
    run(async {
        drop(Signals::new([Signal::QUIT]).unwrap());
        // The default would end this process with a core dump.
        raise(Named::QUIT);
        let mut later = Signals::new([Signal::QUIT]).unwrap();
        raise(Named::QUIT);
        assert_eq!(later.recv().await.unwrap(), Signal::QUIT);
    })
    .unwrap();
}

#[test]
fn a_stream_ends_with_its_loop() {
    let mut event_loop = EventLoop::new().unwrap();
    let mut signals = event_loop.run_until_complete(async { Signals::new([Signal::CHILD]) }).unwrap().unwrap();
    assert!(!signals.is_terminated());
    event_loop.close();
    assert!(signals.is_terminated());
    assert_eq!(signals.poll_next_unpin(&mut Context::from_waker(Waker::noop())), Poll::Ready(None));
}

#[test]
fn a_signal_that_no_program_can_handle_is_refused_c172() {
    #[track_caller]
    fn check(number: i32, why: &str) {
        let error = Signal::from_raw(number).unwrap_err();
        assert_eq!(error.to_string(), format!("signal {number} cannot be handled: {why}"));
    }
    for number in [0, -1, 65, i32::MAX] {
        check(number, "signals have the numbers 1 to 64");
    }
    for signal in [Named::KILL, Named::STOP] {
        check(signal.as_raw(), "no program can catch it");
    }
    for signal in [Named::SEGV, Named::ILL, Named::FPE, Named::BUS] {
        check(signal.as_raw(), "it reports a fault of an instruction of this program, which a handler cannot mend");
    }
    assert_eq!(Signal::from_raw(Named::TERM.as_raw()).unwrap(), Signal::TERMINATE);
    run(async {
        let reserved = Signal::from_raw(32).unwrap();
        assert!(Signals::new([reserved]).is_err(), "the C library keeps it for itself");
        assert!(Signals::new([Signal::from_raw(64).unwrap()]).is_ok());
    })
    .unwrap();
}
