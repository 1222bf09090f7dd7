//! Who is let in by which name, and for how long.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::{Viewer, project};

/// Attack L1: a number has more than one spelling.
#[test]
fn host_port_is_compared_exactly() {
    let project = project();
    let viewer = Viewer::start(&project);
    for port in [format!("+{}", viewer.port), format!("0{}", viewer.port), String::new()] {
        let mut headers = viewer.signed_in();
        headers[0].1 = format!("127.0.0.1:{port}");
        assert_eq!(viewer.send("GET", "/", &headers, "").status, 421, "{port}");
    }
}

/// Attack L1: half a request is not kept, and many of them do not keep others out for long.
#[test]
fn heavy_half_requests_time_out() {
    let project = project();
    let viewer = Viewer::start(&project);
    let mut halves: Vec<TcpStream> = (0..80)
        .map(|_| {
            let mut stream = TcpStream::connect(("127.0.0.1", viewer.port)).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(25))).unwrap();
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nA: ").unwrap();
            stream
        })
        .collect();
    let begun = Instant::now();
    // Waits for a place, of which there are 64.
    assert_eq!(viewer.get("/").status, 200);
    let mut rest = Vec::new();
    halves[0].read_to_end(&mut rest).unwrap();
    let took = begun.elapsed();
    assert!(took > Duration::from_secs(5) && took < Duration::from_secs(20), "{took:?}");
}
