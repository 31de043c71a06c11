//! Others' crates on the loop: hyper in virtual time and with HTTP/2, and code that wants tokio's I/O traits.

#![cfg(all(feature = "hyper", feature = "tokio-io"))]

mod support;

use std::cell::Cell;
use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use miniloop::io::{BufReader, write_all};
use miniloop::net::UnixStream;
use miniloop::sync::channel::channel;
use miniloop::{Abandoned, now, promise, spawn, testing, timeout};
use support::panic_of;

mod http {
    use http_body_util::{BodyExt, Full};
    use hyper::body::{Bytes, Incoming};
    use hyper::rt::Timer;
    use hyper::service::service_fn;
    use hyper::{Request, Response, client, server};
    use miniloop::hyper::{HyperExecutor, HyperIo, HyperTimer};

    use super::*;

    async fn shout(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
        let body = request.into_body().collect().await?.to_bytes();
        Ok(Response::new(Full::new(body.to_ascii_uppercase().into())))
    }

    #[test]
    fn a_client_that_says_nothing_is_cut_off_in_virtual_time() {
        testing::run(async {
            let (ours, _theirs) = UnixStream::pair().unwrap();
            let mut server = server::conn::http1::Builder::new();
            server.timer(HyperTimer::new()).header_read_timeout(Duration::from_secs(30));
            let start = now();
            let error = server.serve_connection(HyperIo::new(ours), service_fn(shout)).await.unwrap_err();
            assert!(error.is_timeout(), "{error}");
            assert_eq!(now() - start, Duration::from_secs(30));
        });
    }

    #[test]
    fn many_requests_of_http_2_share_one_connection() {
        testing::run(async {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let served = spawn(async move {
                let mut server = server::conn::http2::Builder::new(HyperExecutor);
                server.timer(HyperTimer::new()).serve_connection(HyperIo::new(ours), service_fn(shout)).await
            });
            let (sender, connection) = client::conn::http2::handshake(HyperExecutor, HyperIo::new(theirs)).await.unwrap();
            let connection = spawn(connection);
            // Larger than the windows of HTTP/2, so that both sides have to wait for each other.
            let answers = miniloop::join_all((0..20).map(|n: usize| {
                let mut sender = sender.clone();
                async move {
                    let body = vec![b'a' + n as u8; 200_000];
                    let request = Request::post("http://localhost/").body(Full::new(Bytes::from(body))).unwrap();
                    let response = sender.send_request(request).await.unwrap();
                    response.into_body().collect().await.unwrap().to_bytes()
                }
            }));
            for (n, answer) in answers.await.into_iter().enumerate() {
                assert!(answer.len() == 200_000 && answer.iter().all(|byte| *byte == b'A' + n as u8));
            }
            drop(sender);
            connection.await.unwrap().unwrap();
            served.await.unwrap().unwrap();
        });
    }

    #[test]
    fn a_request_of_http_2_ends_with_its_connection() {
        testing::run(async {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let (resolver, dropped) = promise::<(), Abandoned>();
            let resolver = Cell::new(Some(resolver));
            let (begun, mut begins) = channel(1);
            let answer_never = service_fn(move |_: Request<Incoming>| {
                let (resolver, begun) = (resolver.take(), begun.clone());
                async move {
                    begun.send(()).await.unwrap();
                    pending::<()>().await;
                    drop(resolver);
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
                }
            });
            let served = spawn(server::conn::http2::Builder::new(HyperExecutor).serve_connection(HyperIo::new(ours), answer_never));
            let (mut sender, connection) = client::conn::http2::handshake(HyperExecutor, HyperIo::new(theirs)).await.unwrap();
            let _connection = spawn(connection);
            let _asking = spawn(sender.send_request(Request::get("http://localhost/").body(Full::new(Bytes::new())).unwrap()));
            begins.recv().await.unwrap();
            served.abort();
            assert_eq!(dropped.await, Err(Abandoned));
        });
    }

    #[test]
    fn a_panic_while_a_request_of_http_2_is_answered_is_reported() {
        let (message, _) = panic_of(|| {
            testing::run(async {
                let (ours, theirs) = UnixStream::pair().unwrap();
                let answer = service_fn(async |_: Request<Incoming>| -> Result<Response<Full<Bytes>>, Infallible> { panic!("no answer") });
                let _served = spawn(server::conn::http2::Builder::new(HyperExecutor).serve_connection(HyperIo::new(ours), answer));
                let (mut sender, connection) = client::conn::http2::handshake(HyperExecutor, HyperIo::new(theirs)).await.unwrap();
                let _connection = spawn(connection);
                sender.send_request(Request::get("http://localhost/").body(Full::new(Bytes::new())).unwrap()).await.unwrap();
            });
        });
        assert!(message.contains("hyper") && message.contains("no answer"), "{message}");
    }

    #[test]
    fn an_upgrade_gives_the_stream_back_with_what_has_come_for_it() {
        testing::run(async {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let request = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: shout\r\n\r\nearly\n";
            write_all(&theirs, request).await.unwrap();
            let switch = service_fn(async |_| {
                let answer = Response::builder().status(101).header("connection", "upgrade").header("upgrade", "shout");
                Ok::<_, Infallible>(answer.body(Full::new(Bytes::new())).unwrap())
            });
            let parts = server::conn::http1::Builder::new().serve_connection(HyperIo::new(ours), switch).without_shutdown().await.unwrap();
            assert_eq!(parts.read_buf, "early\n");
            write_all(&parts.io.into_inner(), b"EARLY\n").await.unwrap();
            let mut heard = BufReader::new(theirs);
            assert_eq!(heard.read_line().await.unwrap().as_deref(), Some("HTTP/1.1 101 Switching Protocols"));
            while heard.read_line().await.unwrap().unwrap() != "" {}
            assert_eq!(heard.read_line().await.unwrap().as_deref(), Some("EARLY"));
        });
    }

    #[test]
    fn a_time_limit_that_is_set_anew_ends_at_its_new_time() {
        testing::run(async {
            let (timer, start) = (HyperTimer::new(), now());
            let mut limit = timer.sleep(Duration::from_secs(10));
            assert!(timeout(Duration::from_secs(4), &mut limit).await.is_err());
            timer.reset(&mut limit, timer.now() + Duration::from_secs(10));
            limit.await;
            assert_eq!(now() - start, Duration::from_secs(14));
            timer.sleep_until(timer.now() - Duration::from_secs(20)).await;
            assert_eq!(now() - start, Duration::from_secs(14));
        });
    }

    #[test]
    fn a_time_limit_of_another_loop_says_so() {
        let mut limit = None;
        testing::run(async {
            let limit = limit.insert(HyperTimer::new().sleep(Duration::MAX));
            assert!(timeout(Duration::from_secs(1), limit).await.is_err());
        });
        let (message, _) = panic_of(|| testing::run(async { limit.as_mut().unwrap().await }));
        assert!(message.contains("time limit of hyper belongs to event loop"), "{message}");
    }

    #[test]
    fn a_broken_client_ends_its_own_connection() {
        testing::run(async {
            let (ours, theirs) = UnixStream::pair().unwrap();
            miniloop::io::write_all(&theirs, b"no such thing\r\n\r\n").await.unwrap();
            let greet = service_fn(async |_| Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("never")))));
            assert!(server::conn::http1::Builder::new().serve_connection(HyperIo::new(ours), greet).await.unwrap_err().is_parse());
        });
    }
}

mod tokio_traits {
    use miniloop::tokio_io::TokioIo;
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

    use super::*;

    #[test]
    fn tokios_own_readers_and_writers_work_on_our_streams() {
        testing::run(async {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let writing = spawn(async move {
                let mut stream = TokioIo::new(theirs);
                stream.write_all(b"a line\n").await?;
                stream.write_all(&vec![7; 1_000_000]).await?;
                stream.shutdown().await // only our direction
            });
            let mut reader = BufReader::new(TokioIo::new(ours));
            let (mut line, mut rest) = (String::new(), Vec::new());
            reader.read_line(&mut line).await.unwrap();
            reader.read_to_end(&mut rest).await.unwrap();
            assert_eq!((line.as_str(), rest.len()), ("a line\n", 1_000_000));
            writing.await.unwrap().unwrap();
        });
    }

    #[test]
    fn a_buffer_is_filled_behind_what_it_has() {
        testing::run(async {
            let (ours, theirs) = UnixStream::pair().unwrap();
            write_all(&theirs, b"hello ").await.unwrap();
            let rest = spawn(async move { write_all(&theirs, b"world").await });
            let mut buffer = [0; 11];
            TokioIo::new(&ours).read_exact(&mut buffer).await.unwrap();
            assert_eq!(&buffer, b"hello world");
            rest.await.unwrap().unwrap();
        });
    }

    #[test]
    fn a_stream_that_says_that_it_filled_more_than_it_was_given_is_not_believed() {
        struct Boaster;
        impl futures_util::AsyncRead for Boaster {
            fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
                Poll::Ready(Ok(buffer.len() + 1))
            }
        }
        testing::run(async {
            assert_eq!(TokioIo::new(Boaster).read(&mut [0; 10]).await.unwrap(), 10);
            let (mut stream, mut bytes) = (miniloop::hyper::HyperIo::new(Boaster), [0; 10]);
            let mut buffer = hyper::rt::ReadBuf::new(&mut bytes);
            poll_fn(|cx| hyper::rt::Read::poll_read(Pin::new(&mut stream), cx, buffer.unfilled())).await.unwrap();
            assert_eq!(buffer.filled().len(), 10);
        });
    }

    #[test]
    fn several_slices_are_one_write() {
        testing::run(async {
            let (ours, _theirs) = UnixStream::pair().unwrap();
            let slices = [b"head".as_slice(), b"body"].map(IoSlice::new);
            let mut stream = TokioIo::new(&ours);
            assert!(stream.is_write_vectored());
            assert_eq!(stream.write_vectored(&slices).await.unwrap(), 8);
            let mut stream = miniloop::hyper::HyperIo::new(&ours);
            assert!(hyper::rt::Write::is_write_vectored(&stream));
            let writing = poll_fn(|cx| hyper::rt::Write::poll_write_vectored(Pin::new(&mut stream), cx, &slices));
            assert_eq!(writing.await.unwrap(), 8);
        });
    }
}
