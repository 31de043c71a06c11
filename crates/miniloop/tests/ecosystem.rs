//! Others' crates on the loop: hyper in virtual time and with HTTP/2, and code that wants tokio's I/O traits.

#![cfg(all(feature = "hyper", feature = "tokio-io"))]

use std::convert::Infallible;
use std::time::Duration;

use miniloop::net::UnixStream;
use miniloop::{now, spawn, testing};

mod http {
    use http_body_util::{BodyExt, Full};
    use hyper::body::{Bytes, Incoming};
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
    fn a_broken_client_ends_its_own_connection() {
        testing::run(async {
            let (ours, theirs) = UnixStream::pair().unwrap();
            miniloop::io::write_all(&mut &theirs, b"no such thing\r\n\r\n").await.unwrap();
            let greet = service_fn(async |_| Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("never")))));
            assert!(server::conn::http1::Builder::new().serve_connection(HyperIo::new(ours), greet).await.unwrap_err().is_parse());
        });
    }
}

mod tokio_traits {
    use miniloop::tokio_io::TokioIo;
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

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
}
