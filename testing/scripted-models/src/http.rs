//! As much of HTTP/1.1 as the CLIs need.
//!
//! Connections are kept, as those of real providers are: after an answer with
//! `connection: close`, clients take a cut stream for one that is over.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::net::TcpStream;

/// A request, read whole.
#[derive(Clone, Debug)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    /// The path without the query.
    pub(crate) path: String,
    /// By lower-case name.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// Reads the next request; `None` when the client closed without sending one.
pub(crate) fn read_request(
    stream: &TcpStream,
    reader: &mut impl BufRead,
) -> io::Result<Option<HttpRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(invalid("bad request line"));
    };
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let mut request = HttpRequest {
        method: method.to_owned(),
        path: path.to_owned(),
        headers: read_headers(reader)?,
        body: Vec::new(),
    };
    if request.headers.get("expect").is_some_and(|value| value == "100-continue") {
        let mut stream = stream;
        stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    request.body = if is_chunked(&request.headers) {
        read_chunks(reader)?
    } else {
        let length = request.headers.get("content-length").map_or(Ok(0), |text| text.parse());
        let mut body = vec![0; length.map_err(|_| invalid("bad content-length"))?];
        reader.read_exact(&mut body)?;
        body
    };
    Ok(Some(request))
}

fn is_chunked(headers: &BTreeMap<String, String>) -> bool {
    headers.get("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"))
}

fn read_headers(reader: &mut impl BufRead) -> io::Result<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        if line.is_empty() {
            return Ok(headers);
        }
        let (name, value) = line.split_once(':').ok_or_else(|| invalid("bad header"))?;
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
}

fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| invalid("bad chunk size"))?;
        let read = reader.take(size).read_to_end(&mut body)?;
        if read as u64 != size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if size == 0 {
            read_headers(reader)?;
            return Ok(body);
        }
        reader.read_line(&mut String::new())?;
    }
}

fn invalid(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Sends a whole answer.
pub(crate) fn write_response(
    mut stream: &TcpStream,
    status: u16,
    headers: &BTreeMap<String, String>,
    content_type: &str,
    body: &[u8],
) -> io::Result<()> {
    let head = head(status, content_type, headers);
    write!(stream, "{head}content-length: {}\r\n\r\n", body.len())?;
    stream.write_all(body)?;
    stream.flush()
}

/// Sends the head of a stream of events. It is chunked, so that a client can
/// distinguish a cut stream from a complete one.
pub(crate) fn begin_events(mut stream: &TcpStream) -> io::Result<()> {
    let mut head = head(200, "text/event-stream", &BTreeMap::new());
    head.push_str("cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n");
    stream.write_all(head.as_bytes())
}

/// Sends a piece of a stream.
pub(crate) fn write_chunk(mut stream: &TcpStream, text: &str) -> io::Result<()> {
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())?;
    stream.flush()
}

/// Ends a stream as it should end.
pub(crate) fn end_events(mut stream: &TcpStream) -> io::Result<()> {
    stream.write_all(b"0\r\n\r\n")?;
    stream.flush()
}

fn head(status: u16, content_type: &str, headers: &BTreeMap<String, String>) -> String {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        404 => "Not Found",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Scripted",
    };
    let headers = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    let headers: String = headers.collect();
    format!("HTTP/1.1 {status} {reason}\r\ncontent-type: {content_type}\r\n{headers}")
}
