//! A TCP proxy that can swallow what the other side answers, with all connections left open.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A proxy in threads of its own; it ends with the test.
pub struct Proxy {
    port: u16,
    swallows: Arc<AtomicBool>,
}

impl Proxy {
    /// A proxy to a port of this machine.
    pub fn to(port: u16) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let own = listener.local_addr().expect("an address").port();
        let swallows = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&swallows);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                let halves = (client.try_clone(), server.try_clone());
                let (Ok(client_too), Ok(server_too)) = halves else { continue };
                thread::spawn(move || pass(client_too, server, None));
                let flag = Arc::clone(&flag);
                thread::spawn(move || pass(server_too, client, Some(&flag)));
            }
        });
        Proxy { port: own, swallows }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether answers are swallowed from now on.
    pub fn swallow(&self, swallows: bool) {
        self.swallows.store(swallows, Ordering::SeqCst);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, swallows: Option<&AtomicBool>) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        if swallows.is_some_and(|it| it.load(Ordering::SeqCst)) {
            continue;
        }
        if to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    // Fails only if the other side has closed already.
    let _ = to.shutdown(Shutdown::Both);
}
