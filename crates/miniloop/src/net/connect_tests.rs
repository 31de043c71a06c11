//! The race of several addresses, in virtual time, with attempts that the test decides.

use std::cell::RefCell;
use std::future::pending;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use super::{in_turns, joined, race};
use crate::config::CONNECT_ATTEMPTS;
use crate::net::resolve::Place;
use crate::{EventLoop, VirtualClock, now, sleep};

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
    texts.iter().map(|text| address(text)).collect()
}

/// What an address does after some milliseconds.
#[derive(Clone, Copy)]
enum Fate {
    Answers(u64),
    Refuses(u64),
    Hangs,
}

use Fate::{Answers, Hangs, Refuses};

/// Races these, and returns the steps with their times in milliseconds, and the winner.
fn run(fates: &[Fate]) -> (Vec<String>, Option<usize>) {
    let steps = Rc::new(RefCell::new(Vec::new()));
    let note = |what: &str, number: usize| {
        steps.borrow_mut().push(format!("{} {what} {number}", now().as_nanos() / 1_000_000));
    };
    struct OnDrop<F: Fn()>(F);
    impl<F: Fn()> Drop for OnDrop<F> {
        fn drop(&mut self) {
            (self.0)();
        }
    }
    let all = (0..fates.len()).map(|number| SocketAddr::from(([127, 0, 0, 1], number as u16))).collect();
    let mut event_loop = EventLoop::builder().clock(VirtualClock::jumping()).build().unwrap();
    let winner = event_loop.run_until_complete(async {
        race(all, |address| {
            let number = usize::from(address.port());
            let fate = fates[number];
            note("begin", number);
            let end = OnDrop(move || note("end", number));
            async move {
                let _end = end;
                match fate {
                    Answers(ms) => sleep(Duration::from_millis(ms)).await,
                    Refuses(ms) => {
                        sleep(Duration::from_millis(ms)).await;
                        return Err(io::Error::from(ErrorKind::ConnectionRefused));
                    }
                    Hangs => pending().await,
                }
                Ok(number)
            }
        })
        .await
        .ok()
    });
    let steps = steps.take();
    (steps, winner.unwrap())
}

#[track_caller]
fn check(fates: &[Fate], steps: &[&str], winner: Option<usize>) {
    let (taken, won) = run(fates);
    assert_eq!((taken.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), won), (steps, winner));
}

#[test]
fn addresses_are_tried_in_order_every_250_ms_and_the_first_connection_ends_the_others_c152() {
    check(&[Answers(10), Answers(0)], &["0 begin 0", "10 end 0"], Some(0));
    check(
        &[Hangs, Hangs, Answers(20), Answers(0)],
        &["0 begin 0", "250 begin 1", "500 begin 2", "520 end 2", "520 end 0", "520 end 1"],
        Some(2),
    );
    check(&[Answers(260), Hangs, Answers(0)], &["0 begin 0", "250 begin 1", "260 end 0", "260 end 1"], Some(0));
}

#[test]
fn a_failure_lets_the_next_one_begin_at_once_c152() {
    check(&[Refuses(5), Refuses(5), Answers(5)], &["0 begin 0", "5 end 0", "5 begin 1", "10 end 1", "10 begin 2", "15 end 2"], Some(2));
    check(&[Hangs, Refuses(5), Answers(5)], &["0 begin 0", "250 begin 1", "255 end 1", "255 begin 2", "260 end 2", "260 end 0"], Some(2));
    check(&[Refuses(0), Refuses(400)], &["0 begin 0", "0 end 0", "0 begin 1", "400 end 1"], None);
    check(&[], &[], None);
}

#[test]
fn at_most_eight_attempts_run_at_a_time() {
    let mut fates = vec![Hangs; CONNECT_ATTEMPTS - 1];
    fates.extend([Refuses(10_000), Answers(1)]);
    let (steps, winner) = run(&fates);
    assert_eq!((CONNECT_ATTEMPTS, winner), (8, Some(8)));
    assert_eq!(steps[7..11], ["1750 begin 7", "11750 end 7", "11750 begin 8", "11751 end 8"]);
}

#[test]
fn families_take_turns_and_keep_their_order() {
    let mixed = addresses(&["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1"]);
    assert_eq!(in_turns(mixed), addresses(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"]));
    assert_eq!(in_turns(addresses(&["1.1.1.1:1", "[::1]:1"])), addresses(&["1.1.1.1:1", "[::1]:1"]));
    assert_eq!(in_turns(Vec::new()), []);
}

#[test]
fn the_error_tells_of_each_address_c152() {
    let place = Place::Name { host: "relay".into(), port: 80 };
    let failure = |text, kind: ErrorKind| (address(text), io::Error::from(kind));
    let refused = failure("[::1]:80", ErrorKind::ConnectionRefused);
    let error = joined(&place, &[refused, failure("1.1.1.1:80", ErrorKind::ConnectionRefused)]);
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(error.to_string(), "cannot connect to `relay:80`: [::1]:80: connection refused; 1.1.1.1:80: connection refused");
    let other = [failure("[::1]:80", ErrorKind::ConnectionRefused), failure("1.1.1.1:80", ErrorKind::TimedOut)];
    assert_eq!(joined(&place, &other).kind(), ErrorKind::Other);
}
