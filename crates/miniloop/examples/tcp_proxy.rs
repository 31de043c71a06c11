//! A TCP proxy: what one side sends the other gets, and each direction ends by itself (half-close), as both sides expect of a connection.
//!
//! `cargo run -p miniloop --example tcp_proxy -- 127.0.0.1:8000`, then `nc` to the port that it prints. Next: `fan_out.rs`

use std::env;
use std::net::SocketAddr;

use miniloop::io::copy_bidirectional;
use miniloop::net::{TcpListener, TcpStream};
use miniloop::spawn;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server: SocketAddr = env::args().nth(1).ok_or("which server? tcp_proxy ADDRESS:PORT")?.parse()?;
    miniloop::run(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
        println!("listening on {}", listener.local_addr()?);
        loop {
            let (client, address) = listener.accept().await?;
            spawn(pass_on(client, server)).named(format!("proxy for {address}")).detach();
        }
    })?
}

async fn pass_on(client: TcpStream, server: SocketAddr) -> std::io::Result<()> {
    let server = TcpStream::connect(server).await?;
    let (up, down) = copy_bidirectional(&client, &server).await?;
    println!("{up} bytes up, {down} bytes down");
    Ok(())
}
