//! Progress while agents work: on a terminal a few lines that live at the bottom, elsewhere a line
//! at the start and one at the end of each step, and for programs lines of JSON.
//!
//! The view is drawn by a few lines of our own rather than by a library: there is one step at a
//! time, a frame is a pure function of what is known, and the cursor is never hidden, so that
//! nothing has to be put right when agentd is killed. A frame is one write without clearing first,
//! hence no flicker; a thread redraws it a few times a second, and events of agents only leave a
//! note in memory, so that a stream is not slowed down by being watched.

pub(crate) mod activity;
pub(in crate::ui) mod json;
mod view;

use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use agentd_core::document::review_block::Issue;
use agentd_core::event::AgentEvent;
use agentd_core::text::printable;
use agentd_engine::process::{Cancel, set_last_words};
use agentd_engine::workflow::Progress;
use anstream::{AutoStream, ColorChoice};

use self::activity::Roots;
pub(crate) use self::activity::described;
use self::view::{Paint, Running, Size, StepEnd};
use super::WARN;
use super::measure::wrap;
use super::region::{Frame, Region};

/// Between two frames of the spinner.
const TICK: Duration = Duration::from_millis(125);

/// Whether a live view is on the screen of this process; a panic takes it away first.
static LIVE: AtomicBool = AtomicBool::new(false);

/// How progress is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgressMode {
    /// A view that lives, on a terminal.
    Live,
    /// Lines of text.
    Plain,
    /// Lines of JSON.
    Json,
    /// Only warnings.
    Silent,
}

impl ProgressMode {
    /// What suits stderr as it is: with `--json`, programs get lines of JSON.
    pub(crate) fn auto(json: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        match io::stderr().is_terminal() {
            true if !dumb => Self::Live,
            false if json => Self::Json,
            _ => Self::Plain,
        }
    }
}

/// Shows the progress of a workflow on stderr.
#[derive(Debug)]
pub(crate) struct ProgressUi {
    how: How,
    roots: Roots,
    /// The summary and the issues that were shown last.
    found: Option<Found>,
}

/// What a review found: its summary and its issues.
pub(crate) type Found = (String, Vec<Issue>);

#[derive(Debug)]
enum How {
    Plain,
    Json,
    Silent,
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

/// Where the view is written.
struct Out(Box<dyn io::Write + Send>);

impl fmt::Debug for Out {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Out")
    }
}

impl Out {
    /// One write, so that nothing comes in between. If it fails, there is no place to report it.
    fn write(&mut self, text: &str) {
        if !text.is_empty() {
            let _ = self.0.write_all(text.as_bytes());
            let _ = self.0.flush();
        }
    }
}

#[derive(Debug)]
struct Screen {
    out: Out,
    /// The command that continues after a kill.
    again: Option<String>,
    paint: Paint,
    step: Option<(Running, Instant)>,
    frame: usize,
    region: Region,
    /// Steps that need not be done, and why: they are reported together.
    skipped: Option<(Vec<String>, String)>,
    cancel: Option<Cancel>,
    ended: bool,
}

impl ProgressUi {
    /// Progress in a mode; `cancel` is the request to stop that Ctrl-C makes.
    pub(crate) fn new(mode: ProgressMode, roots: Roots, cancel: Option<Cancel>) -> Self {
        let how = match mode {
            ProgressMode::Live => How::Live(Live::new(cancel)),
            ProgressMode::Plain => How::Plain,
            ProgressMode::Json => How::Json,
            ProgressMode::Silent => How::Silent,
        };
        Self { how, roots, found: None }
    }

    /// Says by which command one continues if agentd is killed meanwhile.
    pub(crate) fn continued_by(self, command: &str) -> Self {
        if let How::Live(live) = &self.how {
            live.shared.lock().again = Some(command.to_owned());
        }
        self
    }

    /// What was shown last of what reviews found.
    pub(crate) fn found(&mut self) -> Option<Found> {
        self.found.take()
    }

    /// Takes note of what a workflow reports.
    pub(crate) fn watch(&mut self, progress: &Progress<'_>) {
        if let Progress::Findings { summary, issues } = progress
            && !matches!(self.how, How::Silent)
        {
            self.found = Some(((*summary).to_owned(), issues.to_vec()));
        }
        match &mut self.how {
            How::Plain => plain(progress),
            How::Json => {
                if let Some(line) = json::line(progress, &self.roots) {
                    write(&format!("{line}\n"));
                }
            }
            How::Silent => {
                if let Progress::Warning(_) = progress {
                    plain(progress);
                }
            }
            How::Live(live) => live.watch(progress, &self.roots),
        }
    }
}

impl Live {
    fn new(cancel: Option<Cancel>) -> Self {
        let paint = Paint(AutoStream::choice(&io::stderr()) != ColorChoice::Never);
        let screen = Screen {
            out: Out(Box::new(io::stderr())),
            again: None,
            paint,
            step: None,
            frame: 0,
            region: Region::default(),
            skipped: None,
            cancel,
            ended: false,
        };
        let shared = Arc::new(Shared { screen: Mutex::new(screen), changed: Condvar::new() });
        Self { shared, thread: None }
    }

    fn watch(&mut self, progress: &Progress<'_>, roots: &Roots) {
        let mut screen = self.shared.lock();
        if let Progress::Agent(event) = progress {
            return screen.note(event, roots);
        }
        if let Progress::Skipped { label, why, .. } = progress {
            return screen.skip(label, why);
        }
        let columns = size().columns;
        let (paint, room) = (screen.paint, columns.saturating_sub(1));
        let begun = match progress {
            Progress::Started { label, agent, resumed, outlook, .. } => Running {
                label: (*label).to_owned(),
                agent: agent.to_string(),
                resumed: *resumed,
                outlook: (*outlook).clone(),
                ..Running::default()
            },
            Progress::TestsStarted { command } => Running {
                label: "Tests".to_owned(),
                doing: (*command).to_owned(),
                ..Running::default()
            },
            other => {
                if ends(other) {
                    screen.step = None;
                }
                let text = match other {
                    Progress::Note(text) => wrap(text, room).join("\n"),
                    Progress::Warning(text) => warning(text, room, paint),
                    Progress::Findings { summary, issues } => {
                        view::findings(summary, issues, Some(room), paint)
                    }
                    Progress::TestsEnded(run) => view::tests(run, Some(room), paint),
                    other => match ended(other) {
                        Some((label, end)) => view::ended(label, end, room, paint),
                        None => return,
                    },
                };
                return screen.print(&text);
            }
        };
        screen.step = Some((begun, Instant::now()));
        screen.draw();
        drop(screen);
        self.shared.changed.notify_one();
        self.animate();
    }

    /// Starts the thread that redraws the view, unless it runs already.
    fn animate(&mut self) {
        if self.thread.is_some() {
            return;
        }
        clear_before_panics();
        let shared = Arc::clone(&self.shared);
        set_last_words(Some(Box::new(move || shared.lock().killed())));
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
        // Without the thread the view still changes with each step.
        self.thread = std::thread::Builder::new().name("progress".into()).spawn(animate).ok();
    }
}

/// A warning in lines that fit.
fn warning(text: &str, columns: usize, paint: Paint) -> String {
    let lines = wrap(text, columns.saturating_sub("warning: ".len()).max(10));
    format!("{}: {}", paint.in_style(WARN, "warning"), lines.join("\n         "))
}

/// Whether a step is over with this.
fn ends(progress: &Progress<'_>) -> bool {
    match progress {
        Progress::Done { .. } | Progress::Failed { .. } | Progress::TestsEnded(_) => true,
        Progress::Started { .. }
        | Progress::Agent(_)
        | Progress::Skipped { .. }
        | Progress::Findings { .. }
        | Progress::TestsStarted { .. }
        | Progress::Note(_)
        | Progress::Warning(_) => false,
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let mut screen = self.shared.lock();
        screen.step = None;
        screen.ended = true;
        screen.finish();
        drop(screen);
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            set_last_words(None);
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
    fn note(&mut self, event: &AgentEvent<'_>, roots: &Roots) {
        if let Some((step, _)) = &mut self.step {
            activity::note(step, event, roots);
        }
    }

    /// Keeps a step that need not be done, until something else happens.
    fn skip(&mut self, label: &str, why: &str) {
        match &mut self.skipped {
            Some((labels, known)) if known == why => labels.push(label.to_owned()),
            _ => {
                self.finish_skipped();
                self.skipped = Some((vec![label.to_owned()], why.to_owned()));
            }
        }
    }

    fn finish_skipped(&mut self) {
        if let Some((labels, why)) = self.skipped.take() {
            let room = size().columns.saturating_sub(1);
            self.print(&view::skipped(&labels, &why, room, self.paint));
        }
    }

    /// Prints lines that stay, above those that live: one write, with the next frame.
    fn print(&mut self, text: &str) {
        self.finish_skipped();
        let size = size();
        let mut out = self.region.erase(size.columns);
        out.push_str(text);
        out.push('\n');
        if let Some(frame) = self.next_frame(size) {
            out.push_str(&self.region.draw(frame, size.columns));
        }
        LIVE.store(self.region.is_drawn(), Ordering::SeqCst);
        self.out.write(&out);
    }

    /// Takes the view off the screen, and says what becomes of what ran.
    fn killed(&mut self) {
        self.step = None;
        self.ended = true;
        let again = self.again.as_ref().map(|again| format!("; continue: {again}"));
        self.print(&format!("killed{}", again.unwrap_or_default()));
    }

    /// Takes the view off the screen.
    fn finish(&mut self) {
        self.finish_skipped();
        let out = self.region.erase(size().columns);
        LIVE.store(false, Ordering::SeqCst);
        self.out.write(&out);
    }

    fn next_frame(&mut self, size: Size) -> Option<Frame> {
        let (step, since) = self.step.as_mut()?;
        step.stopping = self.cancel.as_ref().is_some_and(|cancel| cancel.reason().is_some());
        // The last column is left free: some terminals go to the next line when it is filled.
        let size = Size { columns: size.columns.saturating_sub(1), ..size };
        Some(view::live(step, since.elapsed(), self.frame, size, self.paint))
    }

    fn draw(&mut self) {
        if self.region.is_drawn() && !LIVE.load(Ordering::SeqCst) {
            // A panic has removed it, and is being reported.
            return;
        }
        self.finish_skipped();
        self.draw_at(size());
    }

    fn draw_at(&mut self, size: Size) {
        let Some(frame) = self.next_frame(size) else { return };
        let text = self.region.draw(frame, size.columns);
        self.out.write(&text);
        LIVE.store(true, Ordering::SeqCst);
    }
}

/// One write to stderr.
fn write(text: &str) {
    Out(Box::new(io::stderr())).write(text);
}

/// A message of a panic begins on a line of its own, and is not drawn over.
fn clear_before_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if LIVE.swap(false, Ordering::SeqCst) {
                write("\r\u{1b}[J");
            }
            before(info);
        }));
    });
}

/// The size of the terminal now.
fn size() -> Size {
    let size = rustix::termios::tcgetwinsize(io::stderr());
    let rows = size.map_or(0, |size| usize::from(size.ws_row));
    Size { columns: super::columns().max(1), rows: if rows == 0 { 24 } else { rows } }
}

fn plain(progress: &Progress<'_>) {
    let paint = Paint(false);
    let line = match progress {
        Progress::Started { label, agent, resumed, .. } => {
            view::plain_start(label, agent.name(), *resumed)
        }
        Progress::Agent(_) => return,
        Progress::Note(text) => printable(text).into_owned(),
        Progress::Warning(text) => format!("warning: {}", printable(text)),
        Progress::Findings { summary, issues } => view::findings(summary, issues, None, paint),
        Progress::TestsStarted { command } => {
            format!("running the tests: {}", printable(command))
        }
        Progress::TestsEnded(run) => view::tests(run, None, paint),
        Progress::Done { .. } | Progress::Failed { .. } | Progress::Skipped { .. } => {
            match ended(progress) {
                Some((label, end)) => view::plain_end(label, end),
                None => return,
            }
        }
    };
    if !line.is_empty() {
        write(&format!("{line}\n"));
    }
}

fn ended<'a>(progress: &Progress<'a>) -> Option<(&'a str, StepEnd<'a>)> {
    match *progress {
        Progress::Done { label, summary, verdict, usage, cost_usd, duration, .. } => {
            Some((label, StepEnd::Done { summary, verdict, usage, cost_usd, time: duration }))
        }
        Progress::Failed { label, message, duration, .. } => {
            Some((label, StepEnd::Failed { message, time: duration }))
        }
        Progress::Skipped { label, why, .. } => Some((label, StepEnd::Skipped { why })),
        Progress::Started { .. }
        | Progress::Agent(_)
        | Progress::Findings { .. }
        | Progress::TestsStarted { .. }
        | Progress::TestsEnded(_)
        | Progress::Note(_)
        | Progress::Warning(_) => None,
    }
}

#[cfg(test)]
mod tests;
