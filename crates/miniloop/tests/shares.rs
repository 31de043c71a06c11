//! What can be ready for ever gives way after its share, also when there is nothing to wait for and nobody to ask (O10). Streams and
//! sockets are in `on_every_driver`, what `sync` has in `sync/common.rs`.

mod support;

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;

use futures_util::{AsyncReadExt, AsyncWriteExt};
use miniloop::io::{BufReader, BufWriter, write_all};
use miniloop::process::Command;
use miniloop::{Abandoned, fs, net, promise, spawn, yield_now};

/// One task does `operation` again and again, and never waits: others have their turn after 64.
#[track_caller]
fn check_share<S: 'static>(what: &str, start: impl Future<Output = S> + 'static, operation: impl AsyncFn(&mut S) + 'static) {
    let count = Rc::new(Cell::new(0));
    let counted = count.clone();
    miniloop::run(async move {
        let mut on = start.await;
        let task = spawn(async move {
            loop {
                operation(&mut on).await;
                counted.set(counted.get() + 1);
                assert!(counted.get() < 1_000, "nobody else has run");
            }
        });
        yield_now().await;
        task.abort();
    })
    .unwrap();
    assert_eq!(count.get(), 64, "{what}");
}

#[test]
fn buffered_readers_and_writers_give_way_also_when_the_stream_is_not_asked_o10() {
    let reader = || async { BufReader::new(&b"hello\n"[..]) };
    check_share("nothing, exactly", reader(), async |reader| drop(reader.read_exact(0).await.unwrap()));
    check_share("no room", reader(), async |reader| assert_eq!(reader.read(&mut []).await.unwrap(), 0));
    check_share("no room, as a trait", reader(), async |reader| assert_eq!(AsyncReadExt::read(reader, &mut []).await.unwrap(), 0));
    check_share("a look", reader(), async |reader| assert!(!reader.fill_buf().await.unwrap().is_empty()));
    check_share("too much", reader(), async |reader| assert!(reader.read_to_end(1).await.is_err()));
    check_share("the end", async { BufReader::new(&b""[..]) }, async |reader| assert!(reader.read_line().await.unwrap().is_none()));
    let writer = || async { BufWriter::new(Vec::new()) };
    check_share("nothing queued", writer(), async |writer| writer.flush().await.unwrap());
    check_share("nothing to drain", writer(), async |writer| writer.drain().await.unwrap());
    check_share("a queue with room", writer(), async |writer| writer.write_all("x").await.unwrap());
    check_share("closed", writer(), async |writer| writer.close().await.unwrap());
    check_share("closed, as a trait", writer(), async |writer| AsyncWriteExt::close(writer).await.unwrap());
    check_share("no bytes", async { Vec::new() }, async |stream| write_all(stream, b"").await.unwrap());
}

#[test]
fn files_and_folders_give_way_also_when_no_thread_is_asked_o10() {
    let file = || async { fs::File::create("/dev/null").await.unwrap() };
    check_share("no room", file(), async |file| assert_eq!(file.read(&mut []).await.unwrap(), 0));
    check_share("no bytes", file(), async |file| assert_eq!(file.write(b"").await.unwrap(), 0));
    check_share("nothing written", file(), async |file| file.flush().await.unwrap());
    let ended = async {
        let mut folder = fs::read_dir("/proc/self/ns").await.unwrap();
        while folder.next_entry().await.unwrap().is_some() {}
        folder
    };
    check_share("the end of a folder", ended, async |folder| assert!(folder.next_entry().await.unwrap().is_none()));
    let entry = async { fs::read_dir("/").await.unwrap().next_entry().await.unwrap().unwrap() };
    check_share("what is known of an entry", entry, async |entry| assert!(entry.file_type().await.is_ok()));
}

#[test]
fn what_has_happened_once_and_for_all_gives_way_o10() {
    let child = async {
        let child = Command::new("true").spawn().unwrap();
        child.wait().await.unwrap();
        child
    };
    check_share("a process that has ended", child, async |child| assert!(child.wait().await.unwrap().success()));
    check_share("a literal address", async {}, async |()| assert_eq!(net::resolve("::1", 1).await.unwrap().len(), 1));
    let shared = async { [spawn(async {}).shared()] };
    check_share("a shared result", shared, async |[shared]| drop(shared.clone().await));
    let resolver = async { promise::<(), Abandoned>().0 };
    check_share("the end of a promise", resolver, async |resolver| resolver.cancelled().await);
}
