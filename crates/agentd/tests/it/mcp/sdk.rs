//! The official Rust SDK as the client.

use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::transport::TokioChildProcess;

use super::{CHANGE, Servers as _, plan, project};

#[test]
fn sdk_client() {
    let project = project();
    let command = project.server(&["--change", CHANGE, "--role", "planner"]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let child = TokioChildProcess::new(tokio::process::Command::from(command)).unwrap();
        let client = ().serve(child).await.unwrap();
        assert_eq!(client.list_all_tools().await.unwrap().len(), 9);
        for (name, arguments) in
            [("create_proposal", plan::proposal()), ("create_spec", plan::spec("auth-flow"))]
        {
            let mut request = CallToolRequestParams::new(name);
            request.arguments = arguments.as_object().cloned();
            let result = client.call_tool(request).await.unwrap();
            assert_eq!(result.is_error, Some(false), "{result:?}");
            assert!(result.structured_content.unwrap()["sha256"].is_string());
        }
        let resources = client.list_all_resources().await.unwrap();
        assert_eq!(resources.len(), 2);
        client.cancel().await.unwrap();
    });
    let text = project.read("proposal.md");
    assert_eq!(text.lines().find(|line| line.starts_with("# ")), Some("# Change: add-oauth"));
}
