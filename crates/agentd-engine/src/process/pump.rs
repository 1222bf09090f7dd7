//! The loop that feeds a program, reads it and watches the clock.

use std::time::Instant;

use agentd_core::outcome::Stopped;

use super::control::command;
use super::running::{KILL_WAIT, Running};
use super::{
    Cancel, CancelReason, Flow, Limits, Line, ProcessEnd, ProcessError, Program, Supervisor,
    Watcher,
};

/// Runs a program to its end, and returns when nothing of it is left.
pub fn run(
    supervisor: &Supervisor,
    program: Program<'_>,
    limits: Limits,
    cancel: &Cancel,
    watcher: &mut dyn Watcher,
) -> Result<ProcessEnd, ProcessError> {
    let mut running = Running::start(supervisor, program, limits)?;
    // A watcher that is over ends nothing here: the program is to end by itself.
    match running.talk(limits, cancel, watcher)? {
        Talk::Ended(end) => Ok(end),
        Talk::Over { .. } => Ok(running.end()),
    }
}

/// How a talk with a program went.
#[derive(Debug)]
pub enum Talk {
    /// The watcher has what it wanted, or the program was asked to stop and did; it still runs.
    Over {
        /// Why it was asked to stop, if it was.
        stopped: Option<Stopped>,
    },
    /// The program has ended, and nothing of it is left.
    Ended(ProcessEnd),
}

/// How far stopping has got.
#[derive(Debug, Clone, Copy)]
enum Stopping {
    Asked { kill_at: Instant },
    Killed { give_up_at: Instant },
}

/// What is known about one talk.
struct Turn<'a> {
    limits: Limits,
    began: Instant,
    stop_wanted: bool,
    stopped: Option<Stopped>,
    stopping: Option<Stopping>,
    cancel: &'a Cancel,
}

impl Running {
    /// Feeds it and reads it until it has ended, or until the watcher says that it is over. The
    /// limits count from now.
    pub fn talk(
        &mut self,
        limits: Limits,
        cancel: &Cancel,
        watcher: &mut dyn Watcher,
    ) -> Result<Talk, ProcessError> {
        let began = Instant::now();
        self.last_output = began;
        let mut turn =
            Turn { limits, began, stop_wanted: false, stopped: None, stopping: None, cancel };
        loop {
            let said = watcher.input();
            if !said.is_empty() {
                self.write(&said);
            }
            if watcher.is_over() {
                watcher.pause();
                return Ok(Talk::Over { stopped: turn.stopped });
            }
            let deadline = turn.next_deadline(self, watcher);
            let waits_for_cancel = turn.stopped.is_none() && self.ending.is_none();
            let cancel = waits_for_cancel.then_some(cancel);
            let flow = self.wait(deadline, cancel, watcher).map_err(|source| {
                ProcessError::System { program: self.name().to_owned(), source }
            })?;
            turn.stop_wanted |= flow == Flow::Stop;
            if let Some(error) = self.start_error() {
                self.finish();
                return Err(error);
            }
            if self.supervisor_gone && self.ending.is_none() {
                self.kill_group();
                return Err(ProcessError::SupervisorLost { program: self.name().to_owned() });
            }
            if turn.is_done(self) {
                break;
            }
            if let Some(silence) = watcher.wants_silence()
                && self.last_output.elapsed() >= silence
            {
                watcher.silence();
            }
            if !turn.keep_limits(self, watcher) {
                self.finish();
                return Err(ProcessError::Unkillable { program: self.name().to_owned() });
            }
        }
        self.end_of_output(watcher);
        self.finish();
        Ok(Talk::Ended(self.ended(turn.stopped)))
    }

    /// Why it could not be started, if it could not.
    fn start_error(&mut self) -> Option<ProcessError> {
        let program = self.name().to_owned();
        if let Some(source) = self.failed_to_start.take() {
            return Some(ProcessError::Start { program, source });
        }
        let (step, source) = self.cage_failed.take()?;
        Some(ProcessError::Cage { program, step: cage_step(step), source })
    }
}

impl Turn<'_> {
    fn next_deadline(&self, running: &Running, watcher: &dyn Watcher) -> Instant {
        let stopping = match self.stopping {
            Some(Stopping::Asked { kill_at }) => kill_at,
            Some(Stopping::Killed { give_up_at }) => give_up_at,
            None => self.whole_limit(watcher).min(running.last_output + self.limits.idle),
        };
        let silence = watcher.wants_silence().map(|silence| running.last_output + silence);
        let drained = running.ended_at.map(|at| at + self.limits.drain);
        [silence, drained].into_iter().flatten().fold(stopping, Instant::min)
    }

    /// The end of the whole call. Time in which a person was waited for does not count.
    fn whole_limit(&self, watcher: &dyn Watcher) -> Instant {
        self.began + self.limits.whole + watcher.waited()
    }

    fn is_done(&self, running: &Running) -> bool {
        running
            .ended_at
            .is_some_and(|at| running.is_drained() || Instant::now() >= at + self.limits.drain)
    }

    /// Asks the program to stop when it has to. False: it cannot even be killed.
    fn keep_limits(&mut self, running: &Running, watcher: &mut dyn Watcher) -> bool {
        if running.ending.is_some() {
            return true;
        }
        let now = Instant::now();
        match self.stopping {
            Some(Stopping::Asked { kill_at }) if now >= kill_at => {
                running.send(command::KILL);
                self.stopping = Some(Stopping::Killed { give_up_at: now + KILL_WAIT });
            }
            Some(Stopping::Killed { give_up_at }) => return now < give_up_at,
            Some(Stopping::Asked { .. }) => {}
            None => {
                let cause = match self.cancel.reason() {
                    Some(reason) => Some((Stopped::Cancelled, Some(reason))),
                    None if self.stop_wanted => Some((Stopped::Cancelled, None)),
                    None if now >= self.whole_limit(watcher) => Some((Stopped::TimeLimit, None)),
                    None if now >= running.last_output + self.limits.idle => {
                        Some((Stopped::IdleLimit, None))
                    }
                    None => None,
                };
                if let Some((stopped, reason)) = cause {
                    self.stopped = Some(stopped);
                    // A program that can be told to stop its turn gets no signal for it.
                    if !watcher.stop() {
                        let interrupted = reason == Some(CancelReason::Interrupt);
                        running.send(if interrupted {
                            command::INTERRUPT
                        } else {
                            command::TERMINATE
                        });
                    }
                    self.stopping = Some(Stopping::Asked { kill_at: now + self.limits.grace });
                }
            }
        }
        true
    }
}

/// Nobody listens to what a program says on its way out.
pub(super) struct Unheard;

impl Watcher for Unheard {
    fn line(&mut self, _line: Line<'_>) -> Flow {
        Flow::Continue
    }

    fn stderr(&mut self, _bytes: &[u8]) {}

    fn pause(&mut self) {}
}

/// What was being done when a cage could not be made.
fn cage_step(step: i32) -> &'static str {
    #[cfg(target_os = "linux")]
    return super::cage::namespaces::Step::words(step);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = step;
        "set it up"
    }
}
