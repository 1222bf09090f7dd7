//! The official Rust SDK as the client.

use agentd_core::state::Choice;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, Implementation,
};
use rmcp::service::RequestContext;
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, ErrorData, RoleClient, ServiceExt as _};
use serde_json::json;

use super::{CHANGE, Servers as _, asking, plan, project};

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

/// A client that fills in each form with its first answer.
struct FirstAnswer;

impl ClientHandler for FirstAnswer {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        ClientConfig::new(capabilities, Implementation::new("sdk", "1"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { requested_schema, .. } = request else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        let schema = serde_json::to_value(requested_schema).unwrap();
        let first = &schema["properties"]["answer"]["enum"][0];
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"answer": first})))
    }
}

/// The forms are ones that the SDK reads.
// contract G6
#[test]
fn sdk_client_fills_in_a_form() {
    let project = asking::undecided();
    let command = project.server(&[]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let child = TokioChildProcess::new(tokio::process::Command::from(command)).unwrap();
        let client = FirstAnswer.serve(child).await.unwrap();
        let mut request = CallToolRequestParams::new("answer_questions");
        request.arguments = json!({"change_id": CHANGE}).as_object().cloned();
        let result = client.call_tool(request).await.unwrap();
        assert_eq!(result.is_error, Some(false), "{result:?}");
        client.cancel().await.unwrap();
    });
    assert_eq!(project.state().decisions[0].choice, Choice::Fix);
}
