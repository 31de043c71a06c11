//! A descriptor number that the user closed without removing its reader, and that an I/O object then gets. Alone in its process, because
//! the system gives the lowest free number to whoever asks first.

use std::cell::Cell;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;

use miniloop::net::TcpListener;

use super::{in_a_process_of_its_own, on_a_loop};

#[test]
fn the_reader_of_a_closed_number_is_dropped_when_the_number_is_taken_over_b29() {
    in_a_process_of_its_own(module_path!(), "the_reader_of_a_closed_number_is_dropped_when_the_number_is_taken_over_b29", || {
        on_a_loop(async |handle| {
            let owned = Rc::new(Cell::new(0));
            let (closed, _peer) = UnixStream::pair().unwrap();
            let number = closed.as_raw_fd();
            let held = owned.clone();
            handle.add_reader(&closed, move || held.set(held.get() + 1)).unwrap();
            drop(closed);
            assert_eq!(Rc::strong_count(&owned), 2);

            let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            assert_eq!(listener.as_raw_fd(), number);
            assert_eq!((Rc::strong_count(&owned), owned.get()), (1, 0));
            assert!(!handle.remove_reader(&number));
        });
    });
}
