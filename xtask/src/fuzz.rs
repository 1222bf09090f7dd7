//! `cargo xtask fuzz`: the targets of `testing/fuzz`, guided by coverage where
//! that can be built, at random otherwise.

use std::env;
use std::process::ExitCode;

use lexopt::Arg;
use lexopt::ValueExt;

use crate::Result;
use crate::process;
use crate::workspace::Workspace;

/// What cargo-fuzz passes too, less the address sanitizer: that one needs a
/// nightly compiler, and finds nothing in safe code. So stable will do.
const COVERAGE: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions=on",
    "-Coverflow-checks=on",
];

#[derive(Default)]
struct Options {
    seconds: Option<String>,
    seed: Option<String>,
    input: Option<String>,
    random: bool,
    targets: Vec<String>,
}

/// `cargo xtask fuzz [target]... [--seconds N] [--seed N] [--input FILE] [--random]`.
pub(crate) fn main(workspace: &Workspace, mut args: lexopt::Parser) -> Result<ExitCode> {
    let mut options = Options::default();
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("seconds") => options.seconds = Some(args.value()?.string()?),
            Arg::Long("seed") => options.seed = Some(args.value()?.string()?),
            Arg::Long("input") => options.input = Some(absolute(&args.value()?.string()?)?),
            Arg::Long("random") => options.random = true,
            Arg::Value(target) => options.targets.push(target.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    // One input needs no guide, and one target at a time can have one.
    let guided = !options.random && options.input.is_none();
    if guided && let [target] = options.targets.as_slice() {
        match build_guided(workspace) {
            Ok(()) => {
                run_guided(workspace, target, &options)?;
                return Ok(ExitCode::SUCCESS);
            }
            Err(why) => println!("at random, because libFuzzer does not build ({why})"),
        }
    } else if guided {
        println!("at random; name one target to be guided by coverage");
    }
    run_random(workspace, &options)?;
    Ok(ExitCode::SUCCESS)
}

/// The short run of `cargo xtask test`: every target, for a few seconds.
pub(crate) fn short_run(workspace: &Workspace) -> Result<()> {
    let mut cargo = process::command("cargo", &workspace.root);
    // All of the workspace: with the same features as the tests had, the
    // dependencies are not built once more.
    cargo.args(["build", "--quiet", "--locked", "--workspace", "--bin", "agentd-fuzz"]);
    process::run(&mut cargo)?;
    let program =
        workspace.target.join("debug").join(format!("agentd-fuzz{}", env::consts::EXE_SUFFIX));
    let seconds = env::var("AGENTD_FUZZ_SECONDS").unwrap_or_else(|_| "3".to_owned());
    process::run(process::command(program, &workspace.root).args(["--seconds", &seconds]))
}

fn run_random(workspace: &Workspace, options: &Options) -> Result<()> {
    let mut cargo = process::command("cargo", &workspace.root);
    cargo.args(["run", "--quiet", "--release", "--locked", "--package", "agentd-fuzz"]);
    cargo.args(["--bin", "agentd-fuzz", "--"]);
    for (name, value) in
        [("--seconds", &options.seconds), ("--seed", &options.seed), ("--input", &options.input)]
    {
        if let Some(value) = value {
            cargo.args([name, value]);
        }
    }
    cargo.args(&options.targets);
    // The product's release build has other flags; neither should replace the other.
    cargo.env("CARGO_TARGET_DIR", workspace.target.join("fuzz-random"));
    cargo.env("RUSTFLAGS", "-Cdebug-assertions=on -Coverflow-checks=on");
    process::run(&mut cargo)
}

fn host() -> Result<String> {
    let mut rustc = process::command("rustc", std::path::Path::new("."));
    let version = process::capture(rustc.arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.ok_or("rustc names no host")?.to_owned())
}

fn build_guided(workspace: &Workspace) -> Result<()> {
    let mut cargo = process::command("cargo", &workspace.root);
    cargo
        .args(["build", "--release", "--locked", "--package", "agentd-fuzz"])
        .args(["--features", "libfuzzer", "--bin", "agentd-libfuzzer"])
        // With a target named, build scripts and macros are built without the flags.
        .args(["--target", &host()?])
        .env("CARGO_TARGET_DIR", workspace.target.join("fuzz"))
        .env("RUSTFLAGS", COVERAGE.join(" "))
        // Names in backtraces.
        .env("CARGO_PROFILE_RELEASE_STRIP", "false");
    process::run(&mut cargo)
}

fn run_guided(workspace: &Workspace, target: &str, options: &Options) -> Result<()> {
    let fuzz = workspace.root.join("testing/fuzz");
    let (corpus, found) = (fuzz.join("corpus").join(target), fuzz.join("found").join(target));
    let crashes = fuzz.join("crashes");
    for directory in [&corpus, &found, &crashes] {
        std::fs::create_dir_all(directory)?;
    }
    let program = workspace.target.join("fuzz").join(host()?).join("release/agentd-libfuzzer");
    let mut libfuzzer = process::command(program, &fuzz);
    libfuzzer.env("AGENTD_FUZZ_TARGET", target);
    libfuzzer.arg(format!("-max_total_time={}", options.seconds.as_deref().unwrap_or("60")));
    libfuzzer.arg(format!("-artifact_prefix={}/{target}-", crashes.display()));
    libfuzzer.args(["-timeout=10", "-max_len=65536", "-rss_limit_mb=1024", "-print_final_stats=1"]);
    if let Some(seed) = &options.seed {
        libfuzzer.arg(format!("-seed={seed}"));
    }
    // New inputs go to the first directory, and the second is only read.
    libfuzzer.arg(found).arg(corpus);
    process::run(&mut libfuzzer)
}

fn absolute(path: &str) -> Result<String> {
    Ok(std::path::absolute(path)?.to_string_lossy().into_owned())
}
