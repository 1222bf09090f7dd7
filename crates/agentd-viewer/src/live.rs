//! Following the runs of a change while they happen, and the board. Everything is read from
//! files, so that runs that were started elsewhere are followed as well.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentd_core::layout::{ChangeFile, RunName};
use agentd_core::rel_path::RelPath;
use agentd_engine::agents::redact::Redactor;
use agentd_engine::agents::run_record::LONGEST_LINE;
use agentd_engine::store::{Change, LockName, LockState, Project, StoreError, lock_state};
use agentd_engine::workflow::background::{self, BackgroundOutcome};
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::Stream;
use serde_json::{Value, json};

use super::App;
use super::board::Board;
use super::html::visible;
use super::transcript::{self, Earlier, Item};

/// How often the files are checked: a line is on the page within 300 ms.
const PAUSE: Duration = Duration::from_millis(100);

/// The documents are checked once per this many checks of the runs.
const DOCUMENTS_EVERY: u32 = 3;

/// How often the board is checked.
const BOARD_PAUSE: Duration = Duration::from_millis(500);

/// The pause after a check of the board is at least this many times as long as the check, so
/// that an open page of a large project uses a small part of one processor.
const BOARD_REST: u32 = 25;

/// How much is read at a time, of all runs together: it stays in memory until the page has
/// read it.
const CHUNK: u64 = 256 << 10;

/// What a page of a change shows: its runs up to a place, and its documents as they had a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Position {
    pub(super) run: u32,
    pub(super) offset: u64,
    /// The [`fingerprint`] of the documents; none if nothing is known of them.
    pub(super) mark: Option<u64>,
}

impl Position {
    /// How far a change has got.
    pub(super) fn of(projects: &[Project; 2], change: &Change) -> Self {
        let mark = Some(fingerprint(projects, change));
        let runs = change.runs().map(|runs| runs.ids).unwrap_or_default();
        let Some(last) = runs.last() else { return Self { run: 1, offset: 0, mark } };
        let path = ChangeFile::Run(last.clone()).path();
        let length = change.dir().open_file(&path).map_or(0, |(_, length)| length);
        Self { run: last.number(), offset: length, mark }
    }

    /// Reads `3:1200:00c0ffee`, or `3:1200`; anything else is the beginning.
    pub(super) fn parse(text: &str) -> Self {
        let mut parts = text.splitn(3, ':');
        let mut next = || parts.next();
        let runs = (|| Some((next()?.parse().ok()?, next()?.parse().ok()?)))();
        let Some((run, offset)) = runs else { return Self::default() };
        let mark = next().and_then(|mark| u64::from_str_radix(mark, 16).ok());
        Self { run, offset, mark }
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.run, self.offset)?;
        self.mark.map_or(Ok(()), |mark| write!(f, ":{mark:016x}"))
    }
}

/// How far a run file has been read.
#[derive(Debug, Default)]
struct Tail {
    offset: u64,
    ended: bool,
}

/// What is sent to the page.
#[derive(Debug, PartialEq)]
enum Message {
    /// More of a run, up to a place.
    Run(Position, Value),
    /// Documents or the state have changed; the runs have been sent up to this place.
    Documents(Position),
    /// The board has changed, and has this mark now.
    Board(u64),
    /// What was followed is not there anymore: the change is archived, renamed or discarded.
    Gone,
}

struct Follower {
    /// The project of the viewer, and the one that the change lives in.
    projects: [Project; 2],
    change: Change,
    from: Position,
    /// What the page shows by now.
    sent: Position,
    redactor: Redactor,
    tails: BTreeMap<u32, Tail>,
    checks: u32,
}

/// The result of one check.
#[derive(Debug, Default, PartialEq)]
struct Update {
    messages: Vec<Message>,
    /// Whether there is more to read right away.
    more: bool,
}

impl Follower {
    fn new(projects: [Project; 2], change: Change, from: Position, redactor: Redactor) -> Self {
        Self { projects, change, from, sent: from, redactor, tails: BTreeMap::new(), checks: 0 }
    }

    fn check(&mut self) -> Result<Update, StoreError> {
        let mut messages = Vec::new();
        let mut left = CHUNK;
        if self.checks.is_multiple_of(DOCUMENTS_EVERY) {
            // The directory that is held open moves with the change.
            self.projects[1].change(self.change.id())?;
            let now = fingerprint(&self.projects, &self.change);
            if self.sent.mark.replace(now).is_some_and(|before| before != now) {
                messages.push(Message::Documents(self.sent));
            }
        }
        self.checks = self.checks.wrapping_add(1);
        for run in self.change.runs()?.ids.into_iter().filter(|run| run.number() >= self.from.run) {
            let number = run.number();
            let begin = if number == self.from.run { self.from.offset } else { 0 };
            let tail =
                self.tails.entry(number).or_insert_with(|| Tail { offset: begin, ended: false });
            if tail.ended {
                continue;
            }
            let before = tail.offset;
            let found = more(&self.change, &run, tail, &self.redactor, left)?;
            if let Some((items, cut)) = found {
                left = left.saturating_sub(tail.offset - before);
                self.sent = Position { run: number, offset: tail.offset, ..self.sent };
                messages.push(Message::Run(
                    self.sent,
                    json!({ "run": run.to_string(), "items": items }),
                ));
                if cut || left == 0 {
                    return Ok(Update { messages, more: true });
                }
            }
        }
        Ok(Update { messages, more: false })
    }
}

/// What was added to a run file since the last check, in whole lines, and whether there is more:
/// not much more than `most` bytes are read.
fn more(
    change: &Change,
    run: &RunName,
    tail: &mut Tail,
    redactor: &Redactor,
    most: u64,
) -> Result<Option<(Vec<Value>, bool)>, StoreError> {
    let path = ChangeFile::Run(run.clone()).path();
    let (mut file, length) = change.dir().open_file(&path)?;
    if length <= tail.offset {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let ends = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte == b'\n');
    if file.seek(SeekFrom::Start(tail.offset)).is_err() {
        return Ok(None);
    }
    let mut read = |most, bytes: &mut Vec<u8>| (&mut file).take(most).read_to_end(bytes).is_ok();
    if !read(most, &mut bytes) {
        return Ok(None);
    }
    let cut = bytes.len() as u64 >= most;
    // A line longer than that is read on its own.
    if ends(&bytes).is_none() && !read(LONGEST_LINE, &mut bytes) {
        return Ok(None);
    }
    let Some(end) = ends(&bytes) else {
        // agentd never writes a line of this length: skip it, piece by piece.
        if bytes.len() as u64 >= LONGEST_LINE {
            tail.offset += bytes.len() as u64;
        }
        return Ok(None);
    };
    bytes.truncate(end + 1);
    tail.offset += bytes.len() as u64;
    let bytes = redactor.redact_run(&bytes).unwrap_or(bytes);
    let mut items: Vec<Value> = Vec::new();
    let mut writing = String::new();
    // What files were before is shown once the call has ended, on its page.
    let earlier = Earlier::new();
    for line in String::from_utf8_lossy(&bytes).lines() {
        let (item, last) = transcript::item(line, &earlier);
        tail.ended |= last;
        let item = match item {
            Some(Item::Delta(text)) => {
                writing.push_str(&text);
                continue;
            }
            Some(Item::Entry(entry)) => json!({ "html": visible(entry) }),
            Some(Item::Call { id, t, summary, arguments }) => {
                let call = transcript::call(&id, t, &summary, &arguments, None);
                json!({ "html": visible(call) })
            }
            Some(Item::Answer { call, html, ok }) => {
                let alone = visible(transcript::lost_answer(&html, ok));
                json!({ "answer": visible(html), "call": call, "ok": ok, "alone": alone })
            }
            None => continue,
        };
        if !writing.is_empty() {
            items.push(json!({ "delta": std::mem::take(&mut writing) }));
        }
        items.push(item);
    }
    if !writing.is_empty() {
        items.push(json!({ "delta": writing }));
    }
    Ok(Some((items, cut)))
}

/// A number that changes when a document or the state of a change does, or when somebody begins or
/// ends to work on it.
fn fingerprint([project, home]: &[Project; 2], change: &Change) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    let lock = lock_state(home.dir(), &LockName::Run(change.id().clone()));
    matches!(lock, Ok(LockState::Held(_))).hash(&mut hasher);
    let started = background::last(project, change.id()).ok().flatten();
    started.is_some_and(|run| run.outcome == BackgroundOutcome::Running).hash(&mut hasher);
    for dir in [RelPath::root().as_str(), "specs"] {
        let Ok(dir) = RelPath::new(dir) else { continue };
        for entry in change.dir().list_dir(&dir).unwrap_or_default() {
            let Ok(name) = RelPath::new(&entry.name) else { continue };
            (entry.name, change.dir().stamp(&dir.join(&name)).ok()).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// A stream of events for a page.
type Events<S> = Sse<axum::response::sse::KeepAliveStream<S>>;

/// The stream of events for the pages of a change.
pub(super) fn change(
    projects: [Project; 2],
    change: Change,
    from: Position,
    redactor: Redactor,
) -> Events<impl Stream<Item = Result<Event, Infallible>> + use<>> {
    let mut follower = Follower::new(projects, change, from, redactor);
    stream(PAUSE, 1, move || follower.check())
}

/// The stream of events for the pages of a change that is not open anymore.
pub(super) fn gone() -> Events<impl Stream<Item = Result<Event, Infallible>>> {
    let events = futures_util::stream::once(async { Ok(event(Message::Gone)) });
    Sse::new(events).keep_alive(KeepAlive::default())
}

/// The stream of events for the board; `from` is the mark of the one that is shown.
pub(super) fn board(
    app: Arc<App>,
    from: Option<u64>,
) -> Events<impl Stream<Item = Result<Event, Infallible>> + use<>> {
    let mut seen = from;
    stream(BOARD_PAUSE, BOARD_REST, move || {
        let mark = Board::load(&app)?.mark;
        let is_new = seen.replace(mark) != Some(mark);
        let messages = if is_new { vec![Message::Board(mark)] } else { Vec::new() };
        Ok(Update { messages, more: false })
    })
}

/// Checks again and again, and sends what is new. The pause after a check is at least `rest`
/// times as long as the check took.
fn stream<L>(
    pause: Duration,
    rest: u32,
    check: L,
) -> Events<impl Stream<Item = Result<Event, Infallible>> + use<L>>
where
    L: FnMut() -> Result<Update, StoreError> + Send + 'static,
{
    struct Now<L> {
        check: L,
        waiting: VecDeque<Event>,
        /// How long to wait before the next check; not at all before the first.
        pause: Duration,
        ended: bool,
    }
    let now = Now { check, waiting: VecDeque::new(), pause: Duration::ZERO, ended: false };
    let events = futures_util::stream::unfold(now, move |mut now| async move {
        loop {
            if let Some(event) = now.waiting.pop_front() {
                return Some((Ok(event), now));
            }
            if now.ended {
                return None;
            }
            tokio::time::sleep(now.pause).await;
            let mut check = now.check;
            let checking = move || {
                let begun = Instant::now();
                let update = check();
                (check, update, begun.elapsed())
            };
            let (check, update, took) = tokio::task::spawn_blocking(checking).await.ok()?;
            let ended = update.is_err();
            let gone = |_| Update { messages: vec![Message::Gone], more: false };
            let Update { messages, more } = update.unwrap_or_else(gone);
            let waiting = messages.into_iter().map(event).collect();
            let pause = if more { Duration::ZERO } else { pause.max(took * rest) };
            now = Now { check, waiting, pause, ended };
        }
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}

fn event(message: Message) -> Event {
    match message {
        Message::Run(position, value) => {
            Event::default().event("run").id(position.to_string()).data(value.to_string())
        }
        Message::Documents(position) => {
            Event::default().event("documents").id(position.to_string()).data("{}")
        }
        Message::Board(mark) => {
            Event::default().event("documents").id(format!("{mark:016x}")).data("{}")
        }
        Message::Gone => Event::default().event("gone").data("{}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use agentd_core::ids::ChangeId;

    use super::*;

    #[test]
    fn lines_are_sent_once_and_only_when_complete() {
        let dir = tempfile::tempdir().unwrap();
        let runs = dir.path().join("agentd/changes/a/runs");
        fs::create_dir_all(&runs).unwrap();
        fs::write(runs.with_file_name("proposal.md"), "").unwrap();
        let project = agentd_engine::opening::open_within_call(
            dir.path(),
            agentd_engine::store::UserDirs::from_env(),
        )
        .unwrap();
        let change = project.change(&ChangeId::new("a").unwrap()).unwrap();
        fs::write(runs.join("0001-x.jsonl"), "{\"t\":1,\"note\":\"old\"}\n").unwrap();
        let mut follower = Follower::new(
            [project.clone(), project],
            change,
            Position::parse("2:0"),
            Redactor::new(&[]),
        );
        assert_eq!(follower.check().unwrap(), Update::default());
        let path = runs.join("0002-y.jsonl");
        let mut file = fs::File::create(&path).unwrap();
        write!(file, "{{\"t\":1,\"note\":\"one\"}}\n{{\"t\":2,\"no").unwrap();
        let [Message::Run(position, value)] = &follower.check().unwrap().messages[..] else {
            panic!()
        };
        assert_eq!((position.run, position.offset), (2, 21));
        assert_eq!(
            value["items"][0]["html"],
            "<div class=\"entry note\"><span class=\"t\">0:00</span><div class=\"said\">one</div></div>"
        );
        assert_eq!(follower.check().unwrap(), Update::default());
        writeln!(file, "te\":\"two\"}}").unwrap();
        let [Message::Run(_, value)] = &follower.check().unwrap().messages[..] else { panic!() };
        assert_eq!(
            value["items"][0]["html"],
            "<div class=\"entry note\"><span class=\"t\">0:00</span><div class=\"said\">two</div></div>"
        );
    }

    /// Attack L1: 50 streams that nobody read held 710 MB of a run of 10 MB.
    #[test]
    fn a_long_run_is_sent_in_pieces_and_completely() {
        let dir = tempfile::tempdir().unwrap();
        let runs = dir.path().join("agentd/changes/a/runs");
        fs::create_dir_all(&runs).unwrap();
        fs::write(runs.with_file_name("proposal.md"), "").unwrap();
        let project = agentd_engine::opening::open_within_call(
            dir.path(),
            agentd_engine::store::UserDirs::from_env(),
        )
        .unwrap();
        let change = project.change(&ChangeId::new("a").unwrap()).unwrap();
        let long = "x".repeat(700 << 10);
        let line = |text: &str| format!("{{\"t\":1,\"note\":\"{text}\"}}\n");
        let text = line(&"y".repeat(1000)).repeat(1000) + &line(&long) + &line("end");
        fs::write(runs.join("0001-x.jsonl"), &text).unwrap();
        fs::write(runs.join("0002-y.jsonl"), line("next")).unwrap();
        let mut follower = Follower::new(
            [project.clone(), project],
            change,
            Position::default(),
            Redactor::new(&[]),
        );
        let (mut sent, mut checks) = (0, 0);
        loop {
            let found = follower.check().unwrap();
            checks += 1;
            let mut size = 0;
            for message in &found.messages {
                let Message::Run(_, value) = message else { continue };
                sent += value["items"].as_array().unwrap().len();
                size += value.to_string().len();
            }
            assert!(size < 900 << 10, "{size} at once");
            if !found.more {
                break;
            }
        }
        assert_eq!(sent, 1003, "in {checks} checks");
        assert!(checks >= 5, "{checks}");
    }
}
