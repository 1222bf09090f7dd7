//! What warm agents save (G5).

use std::time::Instant;

use real_agents::Sandbox;
use real_agents::models::{approved, challenges, planner};

use super::all_settings;

/// The wall time of a plan with three specs, by gemini and codex.
fn seconds(transport: &str) -> f64 {
    let script = challenges(planner(&["model", "store", "web"]), &[approved()]);
    Sandbox::enter_acp(script, |sandbox| {
        let acp =
            if transport == "acp" { all_settings(&["gemini", "codex"]) } else { String::new() };
        sandbox.set_up(&format!("[roles]\nplanner = \"gemini\"\nchallenger = \"codex\"\n{acp}"));
        let started = Instant::now();
        sandbox.plan(&["--auto"]).exits(0);
        assert_eq!(sandbox.state().llm_calls.len(), 11);
        started.elapsed().as_secs_f64()
    })
}

/// The same plan over CLI processes and over warm ACP processes, in turn, by models that answer at
/// once. The ratio of the medians is printed; it is held against 0.75 where `AGENTD_BARS` is set,
/// on a machine that does nothing else.
// contract G5
#[test]
fn heavy_a_plan_over_warm_agents_takes_less_time() {
    let rounds = if std::env::var_os("AGENTD_BARS").is_some() { 3 } else { 1 };
    let (mut cli, mut acp) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        cli.push(seconds("cli"));
        acp.push(seconds("acp"));
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (cli, acp) = (median(&mut cli), median(&mut acp));
    let ratio = acp / cli;
    eprintln!("cli {cli:.2} s, acp {acp:.2} s, ratio {ratio:.3}");
    assert!(ratio < 1.0, "{ratio}");
    if std::env::var_os("AGENTD_BARS").is_some() {
        assert!(ratio <= 0.75, "{ratio}");
    }
}
