//! Says back what it hears, with tokio-tungstenite.

use futures_util::{SinkExt, StreamExt};
use tokio::net::{TcpListener, TcpStream};

async fn echo(stream: TcpStream) {
    let Ok(socket) = tokio_tungstenite::accept_async(stream).await else { return };
    let (mut sink, mut stream) = socket.split();
    while let Some(Ok(message)) = stream.next().await {
        if (message.is_text() || message.is_binary()) && sink.send(message).await.is_err() {
            return;
        }
    }
}

#[tokio::main]
async fn main() {
    let port = std::env::args().nth(1).expect("usage: tungstenite-peer PORT");
    let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await.expect("the port is free");
    println!("up");
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(echo(stream));
    }
}
