//! Progress while agents work: on a terminal one line that lives at the bottom, elsewhere a
//! line at the start and one at the end of each step, nothing with `--json`.
//!
//! The line is drawn by a few lines of our own rather than by a library: there is one step at
//! a time, a line is a pure function of what is known, and the cursor is never hidden, so that
//! nothing has to be put right when agentd is killed. A frame is one write without clearing
//! first, hence no flicker; a thread redraws it a few times a second, and events of agents
//! only leave a note in memory, so that a stream is not slowed down by being watched.

mod activity;
mod line;

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use agentd_core::event::AgentEvent;
use agentd_core::text::printable;
use agentd_engine::workflow::Progress;
use anstream::{AutoStream, ColorChoice};

use self::line::{Running, StepEnd};
use super::WARN;

/// Between two frames of the spinner.
const TICK: Duration = Duration::from_millis(125);

/// Whether a live line is on the screen of this process; a panic takes it away first.
static LIVE: AtomicBool = AtomicBool::new(false);

/// Shows the progress of a workflow on stderr.
#[derive(Debug)]
pub(crate) struct ProgressUi {
    how: How,
}

#[derive(Debug)]
enum How {
    /// A line at the start and one at the end of each step.
    Plain,
    /// A line that lives.
    Live(Live),
}

#[derive(Debug)]
struct Live {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    screen: Mutex<Screen>,
    changed: Condvar,
}

#[derive(Debug)]
struct Screen {
    color: bool,
    step: Option<(Running, Instant)>,
    frame: usize,
    /// What is on the screen, and how many columns it took.
    drawn: Option<(String, usize)>,
    ended: bool,
}

impl ProgressUi {
    /// Progress as the terminal wants it, with `--json` too: the document is on stdout.
    pub(crate) fn new() -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        let how =
            if io::stderr().is_terminal() && !dumb { How::Live(Live::new()) } else { How::Plain };
        Self { how }
    }

    /// Takes note of what a workflow reports.
    pub(crate) fn watch(&mut self, progress: &Progress<'_>) {
        match &mut self.how {
            How::Plain => plain(progress),
            How::Live(live) => live.watch(progress),
        }
    }
}

impl Live {
    fn new() -> Self {
        let color = AutoStream::choice(&io::stderr()) != ColorChoice::Never;
        let screen = Screen { color, step: None, frame: 0, drawn: None, ended: false };
        let shared = Arc::new(Shared { screen: Mutex::new(screen), changed: Condvar::new() });
        Self { shared, thread: None }
    }

    fn watch(&mut self, progress: &Progress<'_>) {
        let mut screen = self.shared.lock();
        let end = match progress {
            Progress::Agent(event) => return screen.note(event),
            Progress::Started { label, agent, resumed, .. } => {
                let (label, agent) = ((*label).to_owned(), agent.name());
                let running = Running { label, agent, resumed: *resumed, ..Running::default() };
                screen.step = Some((running, Instant::now()));
                screen.draw();
                drop(screen);
                self.shared.changed.notify_one();
                return self.animate();
            }
            Progress::Note(text) => return screen.print(&printable(text)),
            Progress::Warning(text) => {
                let style = if screen.color { WARN } else { anstyle::Style::new() };
                return screen.print(&format!("{style}warning{style:#}: {}", printable(text)));
            }
            Progress::Done { .. } | Progress::Failed { .. } | Progress::Skipped { .. } => {
                ended(progress)
            }
        };
        if let Some((label, end)) = end {
            screen.step = None;
            let line = line::ended(label, end, screen.color);
            screen.print(&line);
        }
    }

    /// Starts the thread that redraws the line, unless it runs already.
    fn animate(&mut self) {
        if self.thread.is_some() {
            return;
        }
        clear_before_panics();
        let shared = Arc::clone(&self.shared);
        let animate = move || {
            let mut screen = shared.lock();
            while !screen.ended {
                screen = if screen.step.is_some() {
                    let waited = shared.changed.wait_timeout(screen, TICK);
                    let (mut screen, waited) = waited.unwrap_or_else(PoisonError::into_inner);
                    if waited.timed_out() {
                        screen.frame = screen.frame.wrapping_add(1);
                        screen.draw();
                    }
                    screen
                } else {
                    shared.changed.wait(screen).unwrap_or_else(PoisonError::into_inner)
                };
            }
        };
        // Without the thread the line still changes with each step.
        self.thread = std::thread::Builder::new().name("progress".into()).spawn(animate).ok();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let mut screen = self.shared.lock();
        screen.step = None;
        screen.ended = true;
        screen.print_raw("");
        drop(screen);
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Screen> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Screen {
    fn note(&mut self, event: &AgentEvent<'_>) {
        if let Some((step, _)) = &mut self.step {
            activity::note(step, event);
        }
    }

    /// Prints a line that stays, above the one that lives.
    fn print(&mut self, line: &str) {
        self.print_raw(&format!("{line}\n"));
        self.draw();
    }

    /// Prints something where the live line was.
    fn print_raw(&mut self, text: &str) {
        let mut out = self.erase(columns());
        out.push_str(text);
        self.drawn = None;
        LIVE.store(false, Ordering::SeqCst);
        write(&out);
    }

    /// What takes the live line off the screen. A terminal that has become narrower has
    /// broken it into several.
    fn erase(&self, columns: usize) -> String {
        match &self.drawn {
            None => String::new(),
            Some((_, took)) => match took.saturating_sub(1) / columns {
                0 => "\r\u{1b}[K".to_owned(),
                up => format!("\r\u{1b}[{up}A\u{1b}[J"),
            },
        }
    }

    fn draw(&mut self) {
        let Some((step, since)) = self.step.as_ref() else { return };
        if self.drawn.is_some() && !LIVE.load(Ordering::SeqCst) {
            // A panic has removed it, and is being reported.
            return;
        }
        let columns = columns();
        // The last column is left free: some terminals go to the next line when it is filled.
        let room = columns.saturating_sub(1);
        let shown = line::running(step, since.elapsed(), self.frame, room, self.color);
        let broken = self.drawn.as_ref().is_some_and(|(_, took)| *took > columns);
        if !broken && self.drawn.as_ref().is_some_and(|(text, _)| *text == shown.text) {
            return;
        }
        let before = if broken { self.erase(columns) } else { "\r".to_owned() };
        // Not wrapped, also where the terminal counts columns in another way than we do.
        write(&format!("{before}\u{1b}[?7l{}\u{1b}[K\u{1b}[?7h", shown.text));
        self.drawn = Some((shown.text, shown.columns));
        LIVE.store(true, Ordering::SeqCst);
    }
}

/// One write, so that nothing comes in between. If it fails, there is no place to report it.
fn write(text: &str) {
    if !text.is_empty() {
        let mut err = io::stderr().lock();
        let _ = err.write_all(text.as_bytes());
        let _ = err.flush();
    }
}

/// A message of a panic begins on a line of its own, and is not drawn over.
fn clear_before_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if LIVE.swap(false, Ordering::SeqCst) {
                write("\r\u{1b}[K");
            }
            before(info);
        }));
    });
}

/// The width of the terminal now.
fn columns() -> usize {
    super::columns().max(1)
}

fn plain(progress: &Progress<'_>) {
    let line = match progress {
        Progress::Started { label, agent, resumed, .. } => {
            line::plain_start(label, agent.name(), *resumed)
        }
        Progress::Agent(_) => return,
        Progress::Note(text) => printable(text).into_owned(),
        Progress::Warning(text) => format!("warning: {}", printable(text)),
        Progress::Done { .. } | Progress::Failed { .. } | Progress::Skipped { .. } => {
            match ended(progress) {
                Some((label, end)) => line::plain_end(label, end),
                None => return,
            }
        }
    };
    write(&format!("{line}\n"));
}

fn ended<'a>(progress: &Progress<'a>) -> Option<(&'a str, StepEnd<'a>)> {
    match *progress {
        Progress::Done { label, summary, usage, cost_usd, duration, .. } => {
            Some((label, StepEnd::Done { summary, usage, cost_usd, time: duration }))
        }
        Progress::Failed { label, message, duration, .. } => {
            Some((label, StepEnd::Failed { message, time: duration }))
        }
        Progress::Skipped { label, why, .. } => Some((label, StepEnd::Skipped { why })),
        Progress::Started { .. }
        | Progress::Agent(_)
        | Progress::Note(_)
        | Progress::Warning(_) => None,
    }
}

#[cfg(test)]
mod tests;
