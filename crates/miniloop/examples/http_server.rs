//! An HTTP server: hyper on the loop. `GET /` says hello, `POST /shout` answers in capitals, everything else is not found.
//!
//! `cargo run -p miniloop --features hyper --example http_server`, then `curl localhost:PORT/`; Ctrl-C lets the requests under way end.
//! Next: `tls.rs`

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use futures_util::{FutureExt, select};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use miniloop::hyper::{HyperIo, HyperTimer};
use miniloop::net::{TcpListener, TcpStream};
use miniloop::{catch, signal, task_group, timeout};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    miniloop::run(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
        println!("listening on http://{}", listener.local_addr()?);
        let mut interrupted = Box::pin(signal::ctrl_c().fuse());
        // The connections are members of a group: it ends when the last of them has.
        task_group(async |connections| {
            loop {
                select! {
                    accepted = listener.accept() => {
                        let (stream, address) = accepted?;
                        connections.spawn(serve(stream)).named(format!("http {address}")).isolate();
                    }
                    interrupt = interrupted => {
                        println!("bye");
                        connections.cancel();
                        return interrupt;
                    }
                }
            }
        })
        .await?;
        Ok(())
    })?
}

async fn serve(stream: TcpStream) -> std::io::Result<()> {
    let mut server = http1::Builder::new();
    server.timer(HyperTimer::new()).header_read_timeout(HEAD_LIMIT);
    let mut connection = pin!(server.serve_connection(HyperIo::new(stream), service_fn(answer)));
    let result = match catch(connection.as_mut()).await {
        Ok(result) => result,
        Err(cleanup) => {
            // The request that is under way is answered, in the grace that the loop gives. There is no next one.
            connection.as_mut().graceful_shutdown();
            let result = connection.await;
            cleanup.finish();
            result
        }
    };
    result.map_err(std::io::Error::other)
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/") => (StatusCode::OK, "hello\n".to_owned()),
        // A body has a limit in length and in time, as the head has: else one client could hold what it likes for as long as it likes.
        (&Method::POST, "/shout") => match timeout(BODY_LIMIT, Limited::new(request.into_body(), BODY_LEN_MAX).collect()).await {
            Ok(Ok(body)) => (StatusCode::OK, String::from_utf8_lossy(&body.to_bytes()).to_uppercase()),
            Ok(Err(error)) => (StatusCode::BAD_REQUEST, format!("{error}\n")),
            Err(elapsed) => (StatusCode::REQUEST_TIMEOUT, format!("{elapsed}\n")),
        },
        _ => (StatusCode::NOT_FOUND, "there is nothing here\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    Ok(response)
}

const HEAD_LIMIT: Duration = Duration::from_secs(10);
const BODY_LIMIT: Duration = Duration::from_secs(30);
const BODY_LEN_MAX: usize = 64 * 1_024;
