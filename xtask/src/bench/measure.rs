//! Time and memory of child processes.

use std::env;
use std::process::Command;
use std::process::ExitCode;
use std::process::ExitStatus;
use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use crate::Result;
use crate::process;

/// How often something was timed, and what came out, in milliseconds.
pub(super) struct Samples {
    sorted: Vec<f64>,
}

impl Samples {
    pub(super) fn new(durations: impl IntoIterator<Item = Duration>) -> Self {
        let mut sorted: Vec<f64> =
            durations.into_iter().map(|duration| duration.as_secs_f64() * 1000.0).collect();
        sorted.sort_by(f64::total_cmp);
        Self { sorted }
    }

    /// The middle one: half a dozen hiccups do not move it.
    pub(super) fn median(&self) -> f64 {
        match self.sorted.len() {
            0 => f64::NAN,
            count if count % 2 == 1 => self.sorted[count / 2],
            count => f64::midpoint(self.sorted[count / 2 - 1], self.sorted[count / 2]),
        }
    }

    /// The best one: nearest to what an idle machine would show.
    pub(super) fn best(&self) -> f64 {
        self.sorted.first().copied().unwrap_or(f64::NAN)
    }
}

/// Runs several commands in turn, `rounds` times after two rounds to warm up.
///
/// Output goes into a pipe that is read: a command may be lazy when its output
/// is thrown away (grep is), and a user reads it.
pub(super) fn alternate<const N: usize>(
    commands: [&dyn Fn() -> Command; N],
    rounds: usize,
    expected: impl Fn(ExitStatus) -> bool,
) -> Result<[Samples; N]> {
    const WARM_UP: usize = 2;
    let mut durations: [Vec<Duration>; N] = std::array::from_fn(|_| Vec::new());
    for round in 0..rounds + WARM_UP {
        for (make, durations) in commands.iter().zip(&mut durations) {
            let mut command = make();
            let begun = Instant::now();
            let output = command.output()?;
            let took = begun.elapsed();
            if !expected(output.status) {
                let program = command.get_program().display();
                return Err(format!("{program} ended with {}", output.status).into());
            }
            if round >= WARM_UP {
                durations.push(took);
            }
        }
    }
    Ok(durations.map(Samples::new))
}

/// The most memory that a command ever had resident, in megabytes.
///
/// The kernel reports to a process only the maximum over all children it has waited
/// for, so a fresh process (this program, with [`peak_rss_main`]) runs just it.
pub(super) fn peak_rss(command: &Command) -> Result<f64> {
    let directory = command.get_current_dir().ok_or("a command without a directory")?;
    let mut helper = process::command(env::current_exe()?, directory);
    helper.arg("__peak-rss").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => helper.env(name, value),
            None => helper.env_remove(name),
        };
    }
    let bytes: u32 = process::capture(&mut helper)?.trim().parse()?;
    Ok(f64::from(bytes) / 1000.0)
}

/// The processor time of a command and of what it has started and waited for, in milliseconds.
#[cfg(unix)]
pub(super) fn cpu_milliseconds(command: &mut Command) -> Result<f64> {
    let before = children_cpu()?;
    process::capture(command)?;
    Ok(children_cpu()? - before)
}

#[cfg(unix)]
fn children_cpu() -> Result<f64> {
    use nix::sys::resource::UsageWho;
    use nix::sys::resource::getrusage;
    use nix::sys::time::TimeValLike as _;

    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    #[expect(clippy::cast_precision_loss, reason = "there is no child that ran for centuries")]
    Ok(micros as f64 / 1000.0)
}

#[cfg(not(unix))]
pub(super) fn cpu_milliseconds(_: &mut Command) -> Result<f64> {
    Err("no way to ask on this platform".into())
}

/// `xtask __peak-rss <program> <argument>...`: prints the kilobytes.
pub(crate) fn peak_rss_main(mut args: lexopt::Parser) -> Result<ExitCode> {
    let mut words = args.raw_args()?;
    let program = words.next().ok_or("no program")?;
    let status = Command::new(program).args(words).stdout(Stdio::null()).status()?;
    if !status.success() {
        return Err(format!("ended with {status}").into());
    }
    println!("{}", children_peak_kilobytes()?);
    Ok(ExitCode::SUCCESS)
}

#[cfg(unix)]
fn children_peak_kilobytes() -> Result<i64> {
    use nix::sys::resource::UsageWho;
    use nix::sys::resource::getrusage;

    let peak = getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss();
    // Linux counts in units of 1024 bytes, macOS in bytes.
    Ok(if cfg!(target_os = "macos") { peak / 1000 } else { peak * 1024 / 1000 })
}

#[cfg(not(unix))]
fn children_peak_kilobytes() -> Result<i64> {
    Err("no way to ask on this platform".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_and_the_best_the_least() {
        let samples = |ms: &[u64]| Samples::new(ms.iter().map(|ms| Duration::from_millis(*ms)));
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} is not {b}");
        close(samples(&[9, 1, 500]).median(), 9.0);
        close(samples(&[4, 1, 2, 900]).median(), 3.0);
        close(samples(&[4, 1, 2, 900]).best(), 1.0);
        assert!(samples(&[]).median().is_nan());
    }
}
