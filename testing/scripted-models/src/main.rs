//! The scripted models as a program, for tests that are not written in Rust.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use scripted_models::{Script, ScriptedModels};

const USAGE: &str = "usage: scripted-models --script FILE --port-file FILE [--log FILE]";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "this is how a program says what is wrong")]
            {
                eprintln!("scripted-models: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let (mut script, mut port_file, mut log) = (None, None, None);
    let mut arguments = std::env::args_os().skip(1);
    while let Some(flag) = arguments.next() {
        let place = match flag.to_str() {
            Some("--script") => &mut script,
            Some("--port-file") => &mut port_file,
            Some("--log") => &mut log,
            _ => return Err(USAGE.into()),
        };
        *place = Some(PathBuf::from(arguments.next().ok_or(USAGE)?));
    }
    let script = std::fs::read_to_string(script.ok_or(USAGE)?)?;
    let models = ScriptedModels::start_with_log(Script::from_json(&script)?, log.as_deref())?;
    announce(&port_file.ok_or(USAGE)?, models.port())?;
    models.wait();
    Ok(())
}

/// Writes the port by rename, so that a process that waits for the file reads all of it.
fn announce(port_file: &Path, port: u16) -> std::io::Result<()> {
    let unfinished = port_file.with_extension("unfinished");
    std::fs::write(&unfinished, port.to_string())?;
    std::fs::rename(unfinished, port_file)
}
