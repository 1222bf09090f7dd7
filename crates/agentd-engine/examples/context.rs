//! Builds the context of a change over and over, for measurements: `context PROJECT CHANGE`
//! prints the best of ten times in milliseconds, and the size of the text in bytes.
#![expect(clippy::print_stdout, reason = "that is what it is for")]

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use agentd_core::config::Config;
use agentd_core::ids::ChangeId;
use agentd_engine::agents::context::{self, ContextKind};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, root, id] = args.as_slice() else {
        return Err("usage: context PROJECT CHANGE".into());
    };
    let project = agentd_engine::opening::open_within_call(
        Path::new(root),
        agentd_engine::store::UserDirs::from_env(),
    )?;
    let documents = project.change(&ChangeId::new(id)?)?.snapshot()?.documents;
    let budget = Config::default().workflow.context_bytes;
    let mut best = Duration::MAX;
    let mut bytes = 0;
    for _ in 0..10 {
        let start = Instant::now();
        let context =
            context::build(&documents, &project, ContextKind::Planner, "measure", budget)?;
        best = best.min(start.elapsed());
        bytes = context.text.len();
    }
    println!("{:.3} {bytes}", best.as_secs_f64() * 1000.0);
    Ok(())
}
