//! TLS on the loop: `futures-rustls` over a stream of ours, client and server, with a certificate that is made on the spot.
//!
//! `cargo run -p miniloop --example tls`. Next: `chat_server.rs`, with much of what came before

use std::error::Error;
use std::sync::Arc;

use futures_rustls::rustls::pki_types::{PrivateKeyDer, ServerName};
use futures_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use futures_rustls::{TlsAcceptor, TlsConnector};
use miniloop::io::{BufReader, BufWriter};
use miniloop::net::{TcpListener, TcpStream};
use miniloop::spawn;

fn main() -> Result<(), Box<dyn Error>> {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = certified.cert.der().clone();
    let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der())?;
    let server = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate.clone()], key)?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();

    miniloop::run(async {
        let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
        let address = listener.local_addr()?;
        let served = spawn(serve(listener, TlsAcceptor::from(Arc::new(server))));

        let stream = TcpStream::connect(address).await?;
        let stream = TlsConnector::from(Arc::new(client)).connect(ServerName::try_from("localhost")?, stream).await?;
        let mut stream = BufReader::new(stream);
        let mut writer = BufWriter::new(stream.get_mut());
        writer.write_all("hello\n").await?;
        writer.flush().await?;
        println!("{}", stream.read_line().await?.ok_or("the server said nothing")?);
        served.await??;
        Ok(())
    })?
}

/// Answers one line of one client.
async fn serve(listener: TcpListener, tls: TlsAcceptor) -> std::io::Result<()> {
    let (stream, _) = listener.accept().await?;
    let mut stream = BufReader::new(tls.accept(stream).await?);
    if let Some(line) = stream.read_line().await? {
        let mut writer = BufWriter::new(stream.get_mut());
        writer.write_all(format!("{}, and nobody has read it on the way\n", line.to_uppercase())).await?;
        writer.close().await?;
    }
    Ok(())
}
