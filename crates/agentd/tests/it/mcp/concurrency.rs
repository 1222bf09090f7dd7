//! Four clients at once on one change.

use std::collections::BTreeSet;
use std::thread;

use serde_json::{Value, json};

use super::{CHANGE, Servers as _, plan, planned};

/// 200 calls from 4 processes, 50 in flight in each.
#[test]
fn heavy_parallel_writes_are_all_kept() {
    const CLIENTS: usize = 4;
    const CALLS: usize = 50;
    let project = planned();
    thread::scope(|scope| {
        for c in 0..CLIENTS {
            let project = &project;
            scope.spawn(move || {
                // Half of them plan, and half of them review.
                let plans = c % 2 == 0;
                let mut client =
                    if plans { project.free_client() } else { project.client("challenger") };
                let mut open = BTreeSet::new();
                for n in 0..CALLS {
                    let (name, arguments) = if plans {
                        ("create_spec", plan::spec(&format!("spec-{c}-{n}")))
                    } else {
                        let title = format!("Issue {c}-{n}");
                        (
                            "append_review",
                            json!({"change_id": CHANGE, "verdict": "NEEDS_REVISION", "summary": "S",
                            "issues": [{"severity": "low", "title": title, "description": "D"}]}),
                        )
                    };
                    open.insert(
                        client.request("tools/call", json!({"name": name, "arguments": arguments})),
                    );
                }
                while !open.is_empty() {
                    let answer = client.receive();
                    if let Some(id) = answer["id"].as_u64() {
                        assert!(open.remove(&id), "{answer}");
                        assert_eq!(answer["result"]["isError"], false, "{answer}");
                    }
                }
                let (rest, stderr) = client.finish();
                assert!(rest.is_empty() && stderr.is_empty(), "{rest:?} {stderr}");
            });
        }
    });

    let proposal = project.read("proposal.md");
    for c in 0..CLIENTS {
        for n in 0..CALLS {
            if c % 2 == 0 {
                let text = project.read(&format!("specs/spec-{c}-{n}.md"));
                assert!(text.starts_with("---\nid: ") && text.ends_with("```\n"), "torn: {text}");
            } else {
                assert_eq!(proposal.matches(&format!(": Issue {c}-{n}\n")).count(), 1);
            }
        }
    }
    let parsed = agentd_core::document::proposal::parse(&proposal);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let rounds: Vec<u32> = parsed.value.reviews.iter().map(|review| review.iteration).collect();
    let expected: Vec<u32> = (1..=u32::try_from(CLIENTS / 2 * CALLS).unwrap()).collect();
    assert_eq!(rounds, expected, "each review has seen those before it");
    let challenge = project.read("CHALLENGE.md");
    assert_eq!(challenge.matches(&format!("## Review {}", expected.len())).count(), 1);
    let left: Vec<String> =
        project.names().into_iter().filter(|name| name.contains("agentd-tmp")).collect();
    assert_eq!(left, [""; 0]);
}

#[test]
fn calls_are_answered_in_any_order() {
    let project = planned();
    let mut client = project.client("planner");
    let mut ids = BTreeSet::new();
    for i in 0..20 {
        ids.insert(
            client.request("tools/call", json!({"name": "read_file", "arguments": plan::read()})),
        );
        ids.insert(client.request(
            "tools/call",
            json!({"name": "create_spec", "arguments": plan::spec(&format!("s-{i}"))}),
        ));
    }
    for _ in 0..40 {
        let answer: Value = client.receive();
        assert!(ids.remove(&answer["id"].as_u64().unwrap()));
        assert_eq!(answer["result"]["isError"], false);
    }
}
