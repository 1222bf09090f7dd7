//! Asking a running call to stop, from another thread or from a signal.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Why a call should stop. It decides which signal the agent gets first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelReason {
    /// Ctrl-C: the agent gets SIGINT.
    Interrupt,
    /// Anything else: the agent gets SIGTERM.
    Terminate,
}

/// A request to stop that can be waited for together with the output of a child: it
/// is a flag and a descriptor that becomes readable. Clones share the request.
#[derive(Debug, Clone)]
pub struct Cancel(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    flag: Arc<AtomicUsize>,
    /// Whether the next signal has its usual effect at once.
    deadly: Arc<AtomicBool>,
    wake: UnixStream,
    woken: UnixStream,
}

const INTERRUPT: usize = 1;
const TERMINATE: usize = 2;

/// The exit code of a process that was told what to say before it is killed.
const KILLED: i32 = 130;

/// What is said before a second signal ends this process.
pub type LastWords = Box<dyn FnOnce() + Send>;

static LAST_WORDS: Mutex<Option<LastWords>> = Mutex::new(None);

/// Sets what is said before a second signal ends this process, on a thread of its own: what is on the
/// screen is taken away. It then ends with 130.
pub fn set_last_words(words: Option<LastWords>) {
    *LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner) = words;
}

impl Cancel {
    /// A request that has not been made yet.
    pub fn new() -> io::Result<Self> {
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        woken.set_nonblocking(true)?;
        Ok(Self(Arc::new(Inner {
            flag: Arc::new(AtomicUsize::new(0)),
            deadly: Arc::new(AtomicBool::new(false)),
            wake,
            woken,
        })))
    }

    /// Makes the request on SIGINT, SIGTERM and SIGHUP of this process. A second signal ends the
    /// process, after [its last words](set_last_words) if it has some; children are then stopped by
    /// their supervisor.
    pub fn on_signals(&self) -> io::Result<()> {
        let (mut signals, sender) = UnixStream::pair()?;
        for (signal, value) in [(SIGINT, INTERRUPT), (SIGTERM, TERMINATE), (SIGHUP, TERMINATE)] {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&self.0.deadly))?;
            signal_hook::flag::register_usize(signal, Arc::clone(&self.0.flag), value)?;
            signal_hook::low_level::pipe::register(signal, self.0.wake.try_clone()?)?;
            signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
        }
        let request = self.clone();
        let wait_for_the_second = move || {
            if signals.read_exact(&mut [0; 2]).is_ok() {
                request.end();
            }
        };
        std::thread::Builder::new().name("signals".into()).spawn(wait_for_the_second)?;
        Ok(())
    }

    /// Ends this process.
    fn end(&self) {
        // Should the last words take long, the next signal waits for nothing.
        self.0.deadly.store(true, Ordering::SeqCst);
        let words = LAST_WORDS.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(words) = words {
            words();
            std::process::exit(KILLED);
        }
        let signal = if self.reason() == Some(CancelReason::Interrupt) { SIGINT } else { SIGTERM };
        let _ = signal_hook::low_level::emulate_default_handler(signal);
    }

    /// Waits for something that does not check the request, such as a person's answer:
    /// meanwhile the first signal already has its usual effect.
    pub fn while_waiting<T>(&self, wait: impl FnOnce() -> T) -> T {
        let before = self.0.deadly.swap(true, Ordering::SeqCst);
        let result = wait();
        self.0.deadly.store(before, Ordering::SeqCst);
        result
    }

    /// Makes the request.
    pub fn cancel(&self, reason: CancelReason) {
        let value = match reason {
            CancelReason::Interrupt => INTERRUPT,
            CancelReason::Terminate => TERMINATE,
        };
        self.0.flag.store(value, Ordering::SeqCst);
        // A full buffer means that it is readable already.
        let _ = (&self.0.wake).write(&[1]);
    }

    /// The reason, once the request is made.
    pub fn reason(&self) -> Option<CancelReason> {
        match self.0.flag.load(Ordering::SeqCst) {
            INTERRUPT => Some(CancelReason::Interrupt),
            TERMINATE => Some(CancelReason::Terminate),
            _ => None,
        }
    }

    /// Sleeps for this long, or until the request is made. Returns whether it was made.
    pub fn sleep(&self, time: Duration) -> bool {
        let until = std::time::Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(std::time::Instant::now());
            if self.reason().is_some() || left.is_zero() {
                return self.reason().is_some();
            }
            let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
            let _ = poll(&mut [PollFd::new(&self.0.woken, PollFlags::IN)], Some(&left));
        }
    }
}

impl AsFd for Cancel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.woken.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_wakes_when_it_is_cancelled() {
        let cancel = Cancel::new().unwrap();
        assert!(!cancel.sleep(Duration::from_millis(1)));
        let other = cancel.clone();
        let thread = std::thread::spawn(move || other.cancel(CancelReason::Interrupt));
        assert!(cancel.sleep(Duration::from_mins(1)));
        thread.join().unwrap();
        assert_eq!(cancel.reason(), Some(CancelReason::Interrupt));
    }
}
