//! A network of loopback alone, for one thread and what it starts.

use std::fs;
use std::panic;

use rustix::io;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, send, socket};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// How the network is kept away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// There is only loopback: in a namespace of the thread's own, or because
    /// the whole machine or container is like that.
    LoopbackOnly,
    /// The machine does not allow a namespace; proxies that lead nowhere are
    /// put into the environment instead.
    DeadProxies,
}

/// Runs the body in a thread of its own, in a network namespace of its own
/// where the machine allows one.
///
/// A namespace belongs to a thread. Sockets that the thread opens, threads that
/// it starts and child processes that it spawns are all in it, so a server and
/// its clients meet on the same loopback, and every test has all ports.
pub fn isolated<T: Send>(body: impl FnOnce(Isolation) -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let isolation = leave_network();
            body(isolation)
        });
        thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic))
    })
}

/// Moves this thread into a new network namespace, if it may.
fn leave_network() -> Isolation {
    if has_only_loopback() {
        return Isolation::LoopbackOnly;
    }
    #[expect(unsafe_code, reason = "unsafe for the sake of UnshareFlags::FILES, which is not used")]
    // SAFETY: descriptors stay shared between the threads; only sockets and
    // processes made from now on are different.
    let moved = unsafe { unshare_unsafe(UnshareFlags::NEWNET) };
    if moved.is_err() {
        return Isolation::DeadProxies;
    }
    bring_loopback_up().expect("a new network namespace lets its loopback be brought up");
    Isolation::LoopbackOnly
}

/// Whether this thread sees no interface but loopback.
fn has_only_loopback() -> bool {
    let Ok(interfaces) = fs::read_to_string("/proc/thread-self/net/dev") else { return false };
    // Two lines of headings, then one line for each interface.
    interfaces.lines().skip(2).all(|line| line.trim_start().starts_with("lo:"))
}

/// Does what `ip link set lo up` does, without needing `ip`: sends the kernel
/// an `RTM_NEWLINK` that sets `IFF_UP` on interface 1.
fn bring_loopback_up() -> io::Result<()> {
    const RTM_NEWLINK: u16 = 16;
    const NLM_F_REQUEST_AND_ACK: u16 = 1 | 4;
    const IFF_UP: u32 = 1;
    const LOOPBACK_INDEX: i32 = 1;
    let mut message = Vec::new();
    // nlmsghdr: length, type, flags, sequence, port.
    message.extend(32_u32.to_ne_bytes());
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend(NLM_F_REQUEST_AND_ACK.to_ne_bytes());
    message.extend([0; 8]);
    // ifinfomsg: family and padding, type, index, flags, mask of changed flags.
    message.extend([0; 4]);
    message.extend(LOOPBACK_INDEX.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());
    message.extend(IFF_UP.to_ne_bytes());

    // No protocol is protocol 0, which is NETLINK_ROUTE.
    let route = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    send(&route, &message, SendFlags::empty())?;
    let mut answer = [0_u8; 64];
    recv(&route, &mut answer, RecvFlags::empty())?;
    // nlmsgerr: after the header comes the negated error, zero for none.
    let error = i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]);
    if error == 0 { Ok(()) } else { Err(io::Errno::from_raw_os_error(-error)) }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::process::Command;

    use super::*;

    #[test]
    fn a_namespace_has_loopback_and_nothing_else_for_threads_and_children() {
        isolated(|isolation| {
            if isolation == Isolation::DeadProxies {
                return;
            }
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(b"here").unwrap();
            });
            let mut text = String::new();
            TcpStream::connect(address).unwrap().read_to_string(&mut text).unwrap();
            server.join().unwrap();
            assert_eq!(text, "here");

            let child = Command::new("cat").arg("/proc/self/net/dev").output().unwrap();
            let interfaces = String::from_utf8(child.stdout).unwrap();
            assert_eq!(interfaces.lines().count(), 3, "{interfaces}");
            // 192.0.2.0/24 is for documentation; here there is no route at all.
            let error = TcpStream::connect("192.0.2.1:80").unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::NetworkUnreachable);
        });
    }

    #[test]
    fn the_thread_that_asked_keeps_its_network() {
        let before = fs::read_to_string("/proc/thread-self/net/dev").unwrap().lines().count();
        isolated(|_| ());
        let after = fs::read_to_string("/proc/thread-self/net/dev").unwrap().lines().count();
        assert_eq!(before, after);
    }

    #[test]
    #[should_panic(expected = "from inside")]
    fn a_panic_inside_is_a_panic_outside() {
        isolated(|_| panic!("from inside"));
    }
}
