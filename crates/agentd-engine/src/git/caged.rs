//! Git in the sandbox, where it may run hooks and filters that are files of the working tree: an
//! agent may have written them.

use std::ffi::OsString;

use agentd_core::outcome::Stopped;

use super::error::GitError;
use super::tool::{Call, DRAIN, GRACE, GitOutput, KEPT_ERRORS};
use crate::guard::sandbox::{Sandbox, SandboxUser};
use crate::process::child::shell_code;
use crate::process::{Cancel, Flow, Limits, Line, Program, Supervisor, Watcher, run};

/// What it takes to run git in the sandbox.
#[derive(Debug, Clone)]
pub struct GitSandbox {
    /// The sandbox.
    pub sandbox: Sandbox,
    /// How children are supervised.
    pub supervisor: Supervisor,
    /// The request to stop.
    pub cancel: Cancel,
}

impl GitSandbox {
    pub(super) fn run(&self, call: &Call<'_>, what: &str) -> Result<GitOutput, GitError> {
        let program = call.program()?.to_string_lossy().into_owned();
        let args: Vec<String> =
            call.words().iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        let set = self.sandbox.variables(SandboxUser::Git);
        let set = set.into_iter().map(|(name, value)| (name, Some(value)));
        for (name, value) in call.variables().into_iter().chain(set) {
            env.retain(|(have, _)| *have != name);
            env.extend(value.map(|value| (name, value)));
        }
        let cage = self.sandbox.cage(SandboxUser::Git);
        let program = Program {
            program: &program,
            args: &args,
            env: &env,
            cwd: call.dir,
            stdin: &call.input,
            keeps_input_open: false,
            cage: Some(&cage),
        };
        let limits = Limits {
            whole: call.limit,
            idle: call.limit,
            grace: GRACE,
            drain: DRAIN,
            stderr_bytes: KEPT_ERRORS,
            ..Limits::default()
        };
        let mut kept = CappedOutput { bytes: Vec::new(), most: call.kept };
        let ended = run(&self.supervisor, program, limits, &self.cancel, &mut kept)
            .map_err(|error| GitError::Sandbox { what: what.to_owned(), source: error })?;
        match ended.stopped {
            // It was stopped because it printed too much.
            Some(Stopped::Cancelled) if kept.bytes.len() > kept.most => {}
            Some(Stopped::Cancelled) => {
                return Err(GitError::Interrupted { what: what.to_owned() });
            }
            Some(Stopped::TimeLimit | Stopped::IdleLimit) => {
                return Err(GitError::TimedOut { what: what.to_owned(), limit: call.limit });
            }
            None => {}
        }
        let cut = kept.bytes.len() > kept.most;
        kept.bytes.truncate(kept.most);
        Ok(GitOutput {
            code: shell_code(ended.code, ended.signal),
            stdout: kept.bytes,
            cut,
            stderr: ended.stderr_tail,
        })
    }
}

/// Keeps what git prints, up to one byte more than the cap.
struct CappedOutput {
    bytes: Vec<u8>,
    most: usize,
}

impl Watcher for CappedOutput {
    fn line(&mut self, _: Line<'_>) -> Flow {
        Flow::Continue
    }

    fn raw(&mut self, bytes: &[u8]) -> Option<Flow> {
        let room = (self.most + 1).saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Some(if self.bytes.len() > self.most { Flow::Stop } else { Flow::Continue })
    }

    fn stderr(&mut self, _: &[u8]) {}

    fn pause(&mut self) {}
}
