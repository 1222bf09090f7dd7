//! One call of an agent, from the request to the outcome: prepare its files, run it
//! under supervision, decode and record what it prints, and try again where that
//! can help.

mod capture;
mod channel;
mod error;
mod not_begun;
mod output;
mod retry;
mod spending;

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentd_core::agent::Transport;
use agentd_core::carried::CarriedStep;
use agentd_core::event::AgentEvent;
use agentd_core::layout::ChangeFile;
use agentd_core::outcome::{AgentOutcome, Exit, Failure, FailureKind};
use agentd_core::provider::classify::not_installed;
use agentd_core::provider::sessions::ListOutput;
use agentd_core::provider::{AgentRequest, CommandSpec, Gemini, Provider};
use agentd_core::run_format::{RUN_VERSION, RunEnd, RunHeader};
use agentd_core::text::Line;

use crate::agents::files::{AgentFiles, FilesError};
use crate::agents::redact::Redactor;
use crate::agents::run_record::{RecordLimits, RunWriter};
use crate::agents::warm::WarmAgents;
use crate::agents::work_tree::WorkTree;
use crate::carrier::{Beating, Carrier, CarrierError};
use crate::git::GitTool;
use crate::guard::calls::Claim;
use crate::guard::git_files::{self, GitGuard, GuardError, Homes, TamperedFile};
use crate::guard::project_files::check_repository;
use crate::guard::sandbox::{Sandbox, SandboxUser};
use crate::process::{Cancel, Limits, ProcessEnd, ProcessError, Program, Supervisor, run};
use crate::store::Change;
use capture::Capture;
use not_begun::not_begun;
use output::OutputHandler;
use retry::{for_retry, was_moved};

pub use error::RunError;
pub use retry::Retry;
pub use spending::Spending;

/// Runs agents. Everything that it needs of the world is given to it.
#[derive(Debug, Clone)]
pub struct Runner {
    /// How to start the supervisor of a child.
    pub supervisor: Supervisor,
    /// The user's own environment, which every agent gets.
    pub environment: Vec<(OsString, OsString)>,
    /// When to try again.
    pub retry: Retry,
    /// How much a run file may hold.
    pub record: RecordLimits,
    /// Set when the run should stop.
    pub cancel: Cancel,
    /// What programs may do; none lets them do whatever the user may.
    pub sandbox: Option<Sandbox>,
    /// What a call may use.
    pub spending: Spending,
    /// Processes that were kept from earlier calls.
    pub warm: Arc<WarmAgents>,
    /// What a call is expected to cost.
    pub estimate_usd: Option<f64>,
    /// Carries the change to where others can continue it; none where it stays here.
    pub carrier: Option<Carrier>,
}

/// One attempt at a call.
#[derive(Debug)]
pub struct Attempt {
    /// What came of it.
    pub outcome: AgentOutcome,
    /// Its run file.
    pub run_file: PathBuf,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// How long it took.
    pub duration: Duration,
    /// How many processes it has left behind, which were ended for it.
    pub left_behind: u32,
    /// What it was expected to cost.
    pub estimate_usd: Option<f64>,
    /// What it has left for git to run; all of it is gone again, as far as it says so.
    pub tampered: Vec<TamperedFile>,
    /// Why it could not be made, watched or recorded to its end. What it has used until then
    /// is in the outcome all the same.
    pub error: Option<RunError>,
}

/// What came of a call. Every attempt has used tokens and belongs in `llm_calls`.
#[derive(Debug)]
pub struct CallReport {
    /// The attempts, at least one.
    pub attempts: Vec<Attempt>,
}

impl CallReport {
    /// The last attempt: the one that counts.
    pub fn last(&self) -> Option<&Attempt> {
        self.attempts.last()
    }

    /// The outcome of the call.
    pub fn outcome(&self) -> Option<&AgentOutcome> {
        self.last().map(|attempt| &attempt.outcome)
    }
}

/// What differs between the attempts of a call.
struct Call<'c> {
    request: &'c AgentRequest,
    /// From 1.
    number: u32,
    spending: Spending,
}

/// What is there while a program runs.
struct Ready {
    claim: Claim,
    guard: Option<GitGuard>,
    files: AgentFiles,
    beating: Option<Beating>,
}

/// Sees the events of a call as they happen.
pub(crate) type Observer<'o> = dyn FnMut(&AgentEvent<'_>) + 'o;

impl Runner {
    /// Makes a call, again where it failed for a reason that passes. `limits` are
    /// those of the agent; each attempt has them for itself.
    pub fn call(
        &self,
        provider: &dyn Provider,
        request: &AgentRequest,
        change: &Change,
        limits: Limits,
        observer: &mut Observer<'_>,
    ) -> Result<CallReport, RunError> {
        let mut request = Cow::Borrowed(request);
        let mut attempts = Vec::new();
        let mut spending = self.spending.clone();
        loop {
            let number = u32::try_from(attempts.len()).unwrap_or(u32::MAX).saturating_add(1);
            let call = Call { request: &request, number, spending: spending.clone() };
            let attempt = self.attempt(provider, call, change, limits, observer)?;
            spending = spending.after(&attempt.outcome);
            let failure = attempt.outcome.failure.as_ref().filter(|_| attempt.error.is_none());
            let moved = failure.filter(|failure| was_moved(failure.kind, &request.session));
            let again = moved.or_else(|| {
                failure.filter(|failure| failure.is_transient() && number <= self.retry.retries)
            });
            let wait = again.map(|failure| match moved {
                Some(_) => Duration::ZERO,
                None => self.retry.wait(number, failure.retry_after_ms),
            });
            let reason = again.map(|failure| failure.message.clone());
            attempts.push(attempt);
            let (Some(wait), Some(reason)) = (wait, reason) else { break };
            let delay_ms = u64::try_from(wait.as_millis()).ok();
            observer(&AgentEvent::Retry { attempt: number, delay_ms, reason: reason.into() });
            if self.cancel.sleep(wait) {
                if let Some(last) = attempts.last_mut() {
                    let interrupted = Failure::new(FailureKind::Cancelled, "interrupted");
                    last.outcome.failure = Some(interrupted);
                }
                break;
            }
            request.to_mut().session = for_retry(&request.session);
        }
        Ok(CallReport { attempts })
    }

    /// Makes a call once. An error means that nothing was begun; whatever goes wrong later is
    /// in the attempt, so that nothing that was used is lost.
    fn attempt(
        &self,
        provider: &dyn Provider,
        call: Call<'_>,
        change: &Change,
        limits: Limits,
        observer: &mut Observer<'_>,
    ) -> Result<Attempt, RunError> {
        let Call { request, number, spending } = call;
        let spec = provider.command(request);
        let who = SandboxUser::Agent(request.role, &spec);
        let environment = self.environment_for(who, &spec.env);
        check_repository(&spec, &request.project_root, &environment)?;
        let started_at = jiff::Timestamp::now().to_string();
        let estimate_usd = self.estimate_usd;
        let header = header(provider, request, &spec, number, &started_at, estimate_usd);
        let unrecorded = |source| RunError::Record { change_dir: change.path().to_owned(), source };
        let redactor = Redactor::new(&environment);
        let record = RunWriter::create(change, &header, redactor.clone(), self.record)
            .map_err(unrecorded)?;
        let run_file = record.path().to_owned();
        let started = Instant::now();
        let tree = request.role.edits_the_work_tree().then(|| {
            WorkTree::look(&request.project_root, spec.merge.as_ref().map(|merge| merge.path))
        });
        let ready = match self.get_ready(provider, request, &spec, &environment, change) {
            Ok(ready) => ready,
            Err(error) => return Ok(not_begun(record, started_at, error)),
        };
        let Ready { claim, guard, files, beating } = ready;
        let cage = self.sandbox.as_ref().map(|sandbox| sandbox.cage(who));
        let channel = match self.channel(provider, request, &spec, environment, cage, limits) {
            Ok(channel) => channel,
            Err(error) => return Ok(not_begun(record, started_at, error)),
        };
        let mut watching = OutputHandler {
            decoder: channel.decoder(provider, request),
            is_dialogue: spec.is_dialogue,
            record,
            observer,
            failed: false,
            tree,
            spending,
            model: request.model.clone(),
            used_up: false,
        };
        let ended = self.perform(channel, &spec, &request.project_root, limits, &mut watching);
        drop((files, beating));
        // Before anything else: nobody may call git until this is done.
        let checked = guard.map(|guard| guard.check(&claim)).transpose();
        let (tampered, mut error) = match checked {
            Ok(tampered) => (tampered.unwrap_or_default(), None),
            Err(error) => (Vec::new(), Some(RunError::from(error))),
        };
        error = error.or(self.lost(request));
        let OutputHandler { decoder, mut record, observer, mut failed, mut tree, used_up, .. } =
            watching;
        record.files(&tree.as_mut().map(WorkTree::changes).unwrap_or_default());
        record.files(&git_files::edits(&tampered));
        let mut left_behind = 0;
        let (exit, mut outcome) = match ended {
            Ok(ended) => {
                left_behind = ended.stragglers;
                note_oddities(&ended, &mut record);
                let mut exit = ended.exit();
                // Before it is cut: half of a key would not be known for one.
                exit.stderr_tail = redactor.redact_text(&exit.stderr_tail);
                let outcome = decoder.finish(&exit);
                (exit, outcome)
            }
            Err(ProcessError::Start { program, source }) => {
                let failure = not_installed(provider.kind(), &program, &source.to_string());
                let mut outcome = decoder.finish(&Exit::default());
                outcome.failure = Some(failure);
                (Exit::default(), outcome)
            }
            Err(lost) => {
                error = error.or(Some(lost.into()));
                (Exit::default(), decoder.finish(&Exit::default()))
            }
        };
        if let Some(failure) = own_failure(used_up, error.as_ref(), &tampered) {
            outcome.failure = Some(failure);
            failed = false;
        }
        redactor.redact_outcome(&mut outcome);
        if let Some(failure) = outcome.failure.as_ref().filter(|_| !failed) {
            let event = AgentEvent::Failed { failure: failure.clone() };
            record.event(&event);
            observer(&event);
        }
        let duration = started.elapsed();
        let end = RunEnd {
            exit_code: exit.code,
            signal: exit.signal,
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            outcome: outcome.clone(),
        };
        let recorded = record.end(&end).map_err(unrecorded);
        error = error.or(recorded.err());
        Ok(Attempt {
            outcome,
            run_file,
            started_at,
            duration,
            left_behind,
            estimate_usd,
            tampered,
            error,
        })
    }

    /// Prepares what has to be there before the program starts. What was prepared is taken back if
    /// something fails.
    fn get_ready(
        &self,
        provider: &dyn Provider,
        request: &AgentRequest,
        spec: &CommandSpec,
        environment: &[(OsString, OsString)],
        change: &Change,
    ) -> Result<Ready, RunError> {
        let claim = Claim::of(&request.private_dir).map_err(FilesError::from)?;
        let guard = Self::guard(provider, spec, request, environment, change, &claim)?;
        let files = AgentFiles::prepare(spec, &request.project_root, &request.private_dir)?;
        // The last thing before it costs anything: who takes over knows that it was made.
        let beating = self.announce(request, provider)?;
        Ok(Ready { claim, guard, files, beating })
    }

    /// Says on the remote that a call is made, where the change is carried.
    fn announce(
        &self,
        request: &AgentRequest,
        provider: &dyn Provider,
    ) -> Result<Option<Beating>, CarrierError> {
        let Some(carrier) = &self.carrier else { return Ok(None) };
        let step = CarriedStep {
            step: Line::new(&request.step.to_string()),
            agent: Some(Line::new(provider.kind().name())),
            estimate_usd: self.estimate_usd.unwrap_or(0.0),
        };
        carrier.claim(step, &self.cancel).map(Some)
    }

    /// The error where somebody else has taken over the change meanwhile.
    fn lost(&self, request: &AgentRequest) -> Option<RunError> {
        let lost = self.carrier.as_ref().is_some_and(Carrier::is_lost);
        lost.then(|| CarrierError::Lost { change: request.change.clone() }.into())
    }

    /// Guards what others run and obey from agents that may write to it.
    fn guard(
        provider: &dyn Provider,
        spec: &CommandSpec,
        request: &AgentRequest,
        environment: &[(OsString, OsString)],
        change: &Change,
        claim: &Claim,
    ) -> Result<Option<GitGuard>, GuardError> {
        // The tools of a CLI are chosen by role. An agent that only speaks a protocol has all of its tools
        // in every role, and could write to its own settings.
        if !request.role.edits_the_work_tree() && !spec.is_dialogue {
            return Ok(None);
        }
        let tool = GitTool { env: environment.to_vec(), ..GitTool::default() };
        let planned = planned_files(change);
        let homes = Homes::Of(provider.kind());
        GitGuard::take(&tool, &request.project_root, homes, &planned, claim).map(Some)
    }

    /// Runs `gemini --list-sessions` in the project (E2.4), with the environment and
    /// the settings of a call. What the output means is the business of
    /// [`agentd_core::provider::sessions`].
    pub fn list_sessions(
        &self,
        request: &AgentRequest,
        limits: Limits,
    ) -> Result<ListOutput, RunError> {
        let mut spec = Gemini.command(request);
        spec.args = vec!["--list-sessions".to_owned()];
        spec.stdin.clear();
        let who = SandboxUser::Agent(request.role, &spec);
        let environment = self.environment_for(who, &spec.env);
        check_repository(&spec, &request.project_root, &environment)?;
        let _claim = Claim::of(&request.private_dir).map_err(FilesError::from)?;
        let _files = AgentFiles::prepare(&spec, &request.project_root, &request.private_dir)?;
        self.captured(who, &spec, &request.project_root, limits, Capture::default())
    }

    /// Runs the tests of a project. They may print a lot, of which the end matters.
    pub fn run_tests(
        &self,
        spec: &CommandSpec,
        cwd: &Path,
        limits: Limits,
    ) -> Result<ListOutput, RunError> {
        let capture = Capture { keep_end: true, ..Capture::default() };
        self.captured(SandboxUser::Tests, spec, cwd, limits, capture)
    }

    fn captured(
        &self,
        who: SandboxUser<'_>,
        spec: &CommandSpec,
        cwd: &Path,
        limits: Limits,
        mut capture: Capture,
    ) -> Result<ListOutput, RunError> {
        let environment = self.environment_for(who, &spec.env);
        let cage = self.sandbox.as_ref().map(|sandbox| sandbox.cage(who));
        let program = Program {
            program: &spec.program,
            args: &spec.args,
            env: &environment,
            cwd,
            stdin: spec.stdin.as_bytes(),
            keeps_input_open: false,
            cage: cage.as_ref(),
        };
        let ended = run(&self.supervisor, program, limits, &self.cancel, &mut capture)?;
        let redactor = Redactor::new(&environment);
        Ok(ListOutput {
            code: ended.code,
            timed_out: ended.stopped.is_some(),
            stdout: redactor.redact_text(&capture.text),
            stderr: redactor.redact_text(&ended.stderr_tail),
        })
    }

    /// The user's environment with what the sandbox sets and what the command asks for.
    fn environment_for(
        &self,
        who: SandboxUser<'_>,
        added: &[(String, String)],
    ) -> Vec<(OsString, OsString)> {
        let mut environment = self.environment.clone();
        let mut set = |name: OsString, value: OsString| {
            environment.retain(|(have, _)| *have != name);
            environment.push((name, value));
        };
        for (name, value) in self.sandbox.iter().flat_map(|sandbox| sandbox.variables(who)) {
            set(name, value);
        }
        for (name, value) in added {
            set(name.into(), value.into());
        }
        environment
    }
}

fn header(
    provider: &dyn Provider,
    request: &AgentRequest,
    spec: &CommandSpec,
    attempt: u32,
    started_at: &str,
    estimate_usd: Option<f64>,
) -> RunHeader {
    let mut argv = vec![spec.program.clone()];
    argv.extend(spec.args.iter().cloned());
    RunHeader {
        run: RUN_VERSION,
        step: request.step.clone(),
        change: request.change.clone(),
        agent: provider.kind(),
        transport: if spec.is_dialogue { Transport::Acp } else { Transport::Cli },
        role: request.role,
        attempt,
        argv,
        env: spec.env.iter().map(|(name, _)| name.clone()).collect(),
        cwd: request.project_root.to_string_lossy().into_owned(),
        prompt: spec.stdin.clone(),
        started_at: started_at.to_owned(),
        estimate_usd,
    }
}

/// What agentd itself has found wrong with a call, which outweighs what the CLI says of it.
fn own_failure(
    used_up: bool,
    error: Option<&RunError>,
    tampered: &[TamperedFile],
) -> Option<Failure> {
    if !tampered.is_empty() {
        let message = format!("what is not its own was changed: {}", git_files::list(tampered));
        return Some(Failure::new(FailureKind::Tampered, message));
    }
    if let Some(error) = error {
        return Some(Failure::new(FailureKind::Other, error.to_string()));
    }
    let message = "the budget of the change is used up, and the call was ended";
    used_up.then(|| Failure::new(FailureKind::Budget, message))
}

/// The files that the plan of a change names: a task may be to change settings.
pub(crate) fn planned_files(change: &Change) -> Vec<String> {
    let text = change.read(&ChangeFile::Tasks).unwrap_or_default();
    let tasks = agentd_core::document::tasks::parse(&text).value.tasks;
    tasks.iter().filter_map(|task| task.file.as_ref()).map(ToString::to_string).collect()
}

fn note_oddities(ended: &ProcessEnd, record: &mut RunWriter) {
    if ended.confined.is_some_and(|held| !held.files) {
        record.note("this system cannot keep commands of the agent to the working tree");
    }
    if ended.undrained {
        record.note("a process that the agent left behind held its output open");
    }
    if ended.stragglers > 0 {
        record.note(&format!("processes left behind and ended: {}", ended.stragglers));
    }
    if let Some(unread) = ended.exit().stdin_unread {
        record.note(&format!("the agent has left {unread} bytes of its input unread"));
    }
}
