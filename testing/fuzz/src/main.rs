//! `agentd-fuzz [--seconds N] [--seed N] [--input FILE] [target]...`: random
//! runs of fuzz targets, on any toolchain.
//!
//! Exits 1 at the first input that makes a target panic or take longer than
//! [`TOO_LONG`], after writing that input to a file and saying how to run it
//! again. Where the process itself dies, the input is `crashes/<target>-current`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::error::Error;
use std::fs;
use std::io;
use std::panic;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use std::time::Instant;

use agentd_fuzz::Mutator;
use agentd_fuzz::TARGETS;
use agentd_fuzz::Target;

/// An input of at most 64 kB that takes this long hangs, even unoptimized and on
/// a machine with other things to do.
const TOO_LONG: Duration = Duration::from_secs(10);

struct Options {
    seconds: f64,
    seed: u64,
    input: Option<PathBuf>,
    targets: Vec<&'static Target>,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let options = options(std::env::args().skip(1))?;
    for target in &options.targets {
        let found = match &options.input {
            Some(path) => {
                let input = fs::read(path)?;
                search(target, [input], Duration::MAX)?
            }
            None => random_run(target, &options)?,
        };
        if let Some((input, what)) = found {
            let path = keep(target, &input)?;
            println!("{}: {what}; the input is {}", target.name, path.display());
            println!("again: cargo xtask fuzz {} --input {}", target.name, path.display());
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options, Box<dyn Error>> {
    let mut options = Options { seconds: 3.0, seed: 1, input: None, targets: Vec::new() };
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--seconds" => options.seconds = value()?.parse()?,
            "--seed" => options.seed = value()?.parse()?,
            "--input" => options.input = Some(value()?.into()),
            name => {
                let target = agentd_fuzz::target(name);
                options.targets.push(target.ok_or_else(|| format!("no target {name:?}"))?);
            }
        }
    }
    if options.targets.is_empty() {
        options.targets.extend(TARGETS);
    }
    Ok(options)
}

fn random_run(target: &Target, options: &Options) -> io::Result<Option<(Vec<u8>, &'static str)>> {
    let corpus = target.corpus()?;
    let seeds = corpus.len();
    let mut mutator = Mutator::new(corpus.clone(), options.seed);
    let mut count = 0_u64;
    let inputs = corpus.into_iter().chain(std::iter::from_fn(|| Some(mutator.next_input())));
    let inputs = inputs.inspect(|_| count += 1);
    let found = search(target, inputs, Duration::from_secs_f64(options.seconds))?;
    println!("{}: {count} inputs from {seeds} seeds, random seed {}", target.name, options.seed);
    Ok(found)
}

/// Runs inputs until one goes wrong or the time is over. They run on a thread of
/// their own, so that one which hangs can be told.
fn search(
    target: &Target,
    inputs: impl IntoIterator<Item = Vec<u8>>,
    time: Duration,
) -> io::Result<Option<(Vec<u8>, &'static str)>> {
    let run = target.run;
    let trace = crashes()?.join(format!("{}-current", target.name));
    let (to_worker, work) = mpsc::sync_channel::<Vec<u8>>(0);
    let (to_us, results) = mpsc::channel::<bool>();
    let worker = thread::Builder::new().name(target.name.to_owned()).spawn(move || {
        for input in work {
            let fine = panic::catch_unwind(|| run(&input)).is_ok();
            if to_us.send(fine).is_err() {
                return;
            }
        }
    })?;
    let begun = Instant::now();
    for input in inputs {
        if begun.elapsed() >= time {
            break;
        }
        // A stack that overflows ends the process at once: leave a trace.
        fs::write(&trace, &input)?;
        let copy = input.clone();
        if to_worker.send(input).is_err() {
            break;
        }
        match results.recv_timeout(TOO_LONG) {
            Ok(true) => {}
            Ok(false) => return Ok(Some((copy, "panicked"))),
            Err(_) => return Ok(Some((copy, "did not end"))),
        }
    }
    fs::remove_file(&trace)?;
    drop(to_worker);
    let _ = worker.join();
    Ok(None)
}

/// Where inputs that went wrong are kept, out of commits by `.gitignore`.
fn crashes() -> io::Result<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("crashes");
    fs::create_dir_all(&directory)?;
    Ok(directory)
}

fn keep(target: &Target, input: &[u8]) -> io::Result<PathBuf> {
    let path = crashes()?.join(format!("{}-{:016x}", target.name, hash(input)));
    fs::write(&path, input)?;
    Ok(path)
}

/// FNV-1a: only a name for the file.
fn hash(input: &[u8]) -> u64 {
    input.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
