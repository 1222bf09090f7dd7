//! Runs a command in a cage, to try things by hand: `caged [--writable DIR].. [--no-network]
//! [--makes-mounts] [--no-namespaces] [--landlock N] [--no-cage] -- <command>`. Its own `/tmp` is
//! removed afterwards.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "it is for people")]

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use agentd_engine::process::{
    Cage, Cancel, Flow, Limits, Line, Program, SUPERVISE, Supervisor, Watcher, run, supervise,
};

struct Shown;

impl Watcher for Shown {
    fn line(&mut self, line: Line<'_>) -> Flow {
        println!("{}", String::from_utf8_lossy(line.bytes));
        Flow::Continue
    }
    fn stderr(&mut self, bytes: &[u8]) {
        let _ = std::io::stderr().write_all(bytes);
    }
    fn pause(&mut self) {}
}

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let mut cage = Cage::default();
    let mut words: Vec<String> = Vec::new();
    let mut is_caged = true;
    while let Some(word) = args.next() {
        match word.to_str() {
            Some(SUPERVISE) => return supervise(args),
            Some("--writable") => cage.writable.extend(args.next().map(PathBuf::from)),
            Some("--no-network") => cage.network = false,
            Some("--no-cage") => is_caged = false,
            Some("--makes-mounts") => cage.makes_mounts = true,
            Some("--no-namespaces") => cage.layers.namespaces = false,
            Some("--landlock") => {
                let number = args.next().and_then(|number| number.to_str()?.parse().ok());
                cage.layers.landlock = number.unwrap_or(0);
            }
            Some("--") => break,
            _ => return ExitCode::from(2),
        }
    }
    words.extend(args.map(|word| word.to_string_lossy().into_owned()));
    match start(is_caged.then_some(cage), &words) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("caged: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start(mut cage: Option<Cage>, words: &[String]) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let (program, args) = words.split_first().ok_or("no command")?;
    let tmp = PathBuf::from(format!("/var/tmp/caged-{}", std::process::id()));
    std::fs::create_dir_all(tmp.join("tmp"))?;
    let cwd = std::env::current_dir()?;
    if let Some(cage) = &mut cage {
        cage.tmp = Some(tmp.join("tmp"));
        cage.visible = vec![cwd.clone()];
    }
    let env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let program = Program {
        program,
        args,
        env: &env,
        cwd: &cwd,
        stdin: b"",
        keeps_input_open: false,
        cage: cage.as_ref(),
    };
    let supervisor = Supervisor::this_program()?;
    let ended = run(&supervisor, program, Limits::default(), &Cancel::new()?, &mut Shown);
    std::fs::remove_dir_all(&tmp)?;
    let ended = ended?;
    eprintln!("caged: {:?} {:?}", ended.code, ended.confined);
    Ok(ExitCode::from(ended.code.and_then(|code| u8::try_from(code).ok()).unwrap_or(255)))
}
