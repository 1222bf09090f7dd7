//! `agentd-fuzz [--seconds N] [--seed N] [--input FILE] [target]...`: random
//! runs of fuzz targets, on any toolchain.
//!
//! Targets run side by side, one on each core. Exits 1 if an input makes one panic or take longer
//! than [`TOO_LONG`], after writing that input to a file and saying how to run it
//! again. Where the process itself dies, the input is `crashes/<target>-current`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool")]

use std::error::Error;
use std::fs;
use std::fs::File;
use std::io;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::panic;
use std::path::Path;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
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
    // Each core takes the next target; what they are given does not depend on it.
    let next = AtomicUsize::new(0);
    let worker = || -> io::Result<bool> {
        while let Some(target) = options.targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            if goes_wrong(target, &options)? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let cores = thread::available_parallelism()?.get();
    let results: Vec<io::Result<bool>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        let ended = workers.into_iter().map(thread::ScopedJoinHandle::join);
        ended
            .map(|result| result.unwrap_or_else(|_| Err(io::Error::other("a worker died"))))
            .collect()
    });
    let mut wrong = false;
    for result in results {
        wrong |= result?;
    }
    Ok(if wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Runs a target, and says how to run the input again that went wrong, if one did.
fn goes_wrong(target: &Target, options: &Options) -> io::Result<bool> {
    let found = match &options.input {
        Some(path) => {
            let input = fs::read(path)?;
            search(target, std::iter::once(input), Duration::MAX)?.1
        }
        None => random_run(target, options)?,
    };
    if let Some((input, what)) = &found {
        let path = keep(target, input)?;
        println!("{}: {what}; the input is {}", target.name, path.display());
        println!("again: cargo xtask fuzz {} --input {}", target.name, path.display());
    }
    Ok(found.is_some())
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

fn random_run(target: &Target, options: &Options) -> io::Result<Option<Crash>> {
    let corpus = target.corpus()?;
    let seeds = corpus.len();
    let mut mutator = Mutator::new(corpus.clone(), options.seed);
    let inputs = corpus.into_iter().chain(std::iter::from_fn(move || Some(mutator.next_input())));
    let (count, found) = search(target, inputs, Duration::from_secs_f64(options.seconds))?;
    println!("{}: {count} inputs from {seeds} seeds, random seed {}", target.name, options.seed);
    Ok(found)
}

/// An input that went wrong, and how.
type Crash = (Vec<u8>, &'static str);

/// Runs inputs until one goes wrong or the time is over; counts them. They run
/// on a separate thread, so that one that hangs can be detected.
fn search(
    target: &Target,
    inputs: impl Iterator<Item = Vec<u8>> + Send + 'static,
    time: Duration,
) -> io::Result<(u64, Option<Crash>)> {
    let run = target.run;
    let path = crashes()?.join(format!("{}-current", target.name));
    let mut trace = Trace { file: File::create(&path)?, len: 0 };
    let count = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&count);
    let worker = thread::Builder::new().name(target.name.to_owned()).spawn(
        move || -> io::Result<Option<Crash>> {
            let begun = Instant::now();
            for input in inputs.take_while(|_| begun.elapsed() < time) {
                counter.fetch_add(1, Ordering::Relaxed);
                trace.write(&input)?;
                if panic::catch_unwind(|| run(&input)).is_err() {
                    return Ok(Some((input, "panicked")));
                }
            }
            Ok(None)
        },
    )?;
    let mut last = (0, Instant::now());
    while !worker.is_finished() {
        thread::sleep(Duration::from_millis(10));
        let now = count.load(Ordering::Relaxed);
        if now != last.0 {
            last = (now, Instant::now());
        } else if last.1.elapsed() > TOO_LONG {
            return Ok((now, Some((fs::read(path)?, "did not end"))));
        }
    }
    let found = worker.join().map_err(|_| io::Error::other("no input could be made"))??;
    fs::remove_file(path)?;
    Ok((count.load(Ordering::Relaxed), found))
}

/// The file with the current input: where the stack overflows, the process ends
/// at once, and only this file shows which input it was.
struct Trace {
    file: File,
    len: usize,
}

impl Trace {
    fn write(&mut self, input: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(input)?;
        if input.len() < self.len {
            self.file.set_len(input.len() as u64)?;
        }
        self.len = input.len();
        Ok(())
    }
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
