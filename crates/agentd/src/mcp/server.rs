//! The protocol: what clients ask, turned into actions, and back.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agentd_core::agent::{AgentKind, Role};
use agentd_core::ids::ChangeId;
use agentd_core::receipt::ReceiptKey;
use agentd_core::recording::NOW;
use agentd_core::stamp::Stamp;
use agentd_core::step_name::StepName;
use agentd_core::text::{Line, excerpt, head};
use agentd_engine::change::documents;
use agentd_engine::store::{Holder, Project, Waiting};
use agentd_engine::tools::{self, ActionError, Session, Tool, Toolset};
use jiff::Timestamp;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, Implementation, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ServerCapabilities, ServerConfig,
    Tool as Description,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task;

use super::stdio::ClientGone;
use super::tools::{describe, result};
use super::transport::unfit;
use super::{McpOptions, answering, resources};

/// How often a call that waits for others says so.
const NOTICE: Duration = Duration::from_secs(1);

/// The server of one project, perhaps bound to a change and a role.
pub(super) struct Server {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) project: Project,
    pub(super) change: Option<ChangeId>,
    toolset: Toolset,
    agent: Option<AgentKind>,
    step: Option<StepName>,
    receipt: Option<ReceiptKey>,
    replaying: bool,
    /// Once it is, nobody waits for anything any more.
    pub(super) hung_up: ClientGone,
    /// Held while the person at the client is asked something.
    pub(super) asking: Mutex<()>,
    /// Writers queue here, in the order in which they came, so that of one
    /// process only the first contends with other processes for a lock.
    queue: Mutex<()>,
}

impl Server {
    pub(super) fn new(project: Project, options: McpOptions, hung_up: ClientGone) -> Self {
        let McpOptions { change, toolset, step, agent, replaying, receipt, .. } = options;
        // Without its key a review is written, and does not count.
        let receipt = receipt.and_then(|path| std::fs::read_to_string(path).ok());
        let receipt = receipt.as_deref().and_then(ReceiptKey::parse);
        let (asking, queue) = (Mutex::new(()), Mutex::new(()));
        let inner = Inner {
            project,
            change,
            toolset,
            agent,
            step,
            receipt,
            replaying,
            hung_up,
            asking,
            queue,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Whether the person at the client can be asked something.
    fn asks(&self, context: &RequestContext<RoleServer>) -> bool {
        answering::is_offered(self.inner.toolset, context.peer.peer_info().as_deref())
    }

    /// Does blocking work off the thread that talks to the client. Work that
    /// panics is an error of one call and not the end of the server.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, ErrorData> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let inner = Arc::clone(&self.inner);
        match task::spawn_blocking(move || work(&inner)).await {
            Ok(result) => result,
            Err(error) => Err(ErrorData::internal_error(format!("agentd failed: {error}"), None)),
        }
    }
}

impl Inner {
    /// Waits until the writers that came before are done.
    pub(super) async fn turn(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<MutexGuard<'_, ()>, ErrorData> {
        let start = Instant::now();
        let mut notice = tokio::time::interval(NOTICE);
        notice.tick().await;
        // Begun once, so that the place in the queue is kept.
        tokio::pin! {
            let turn = self.queue.lock();
            let hung_up = self.hung_up.and_waited();
        }
        loop {
            tokio::select! {
                biased;
                turn = &mut turn => return Ok(turn),
                () = context.ct.cancelled() => return Err(cancelled()),
                () = &mut hung_up => return Err(cancelled()),
                _ = notice.tick() => {
                    let message = "waiting for earlier calls".to_owned();
                    if let Some(progress) = progress(context, start.elapsed(), message) {
                        // A client that does not listen misses it.
                        let _ = context.peer.notify_progress(progress).await;
                    }
                }
            }
        }
    }

    /// Who signs: the agent that plays the role, or the client's own name.
    pub(super) fn actor(&self, client: Option<Implementation>) -> Line {
        if let Some(agent) = self.agent {
            return Line::new(agent.name());
        }
        if let Some(role) = self.toolset.role()
            && let Ok(config) = documents::load_config(&self.project)
        {
            return Line::new(config.roles.agent(role).name());
        }
        let name = client.map(|client| Line::new(head(&client.name, 100)));
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| Line::new("agent"))
    }

    /// The time that is written into documents: the clock's, or that of the recording.
    fn now(&self, context: &RequestContext<RoleServer>) -> Stamp {
        let given = || context.meta.get(NOW)?.as_str()?.parse().ok();
        let recorded = if self.replaying { given() } else { None };
        recorded.unwrap_or_else(|| Stamp::new(Timestamp::now()))
    }

    fn holder(&self, tool: &Tool, now: Timestamp) -> Holder {
        let name = tool.name;
        let command = match &self.change {
            Some(change) => format!("agentd mcp --change {change}: {name}"),
            None => format!("agentd mcp: {name}"),
        };
        Holder::this_process(&command, now)
    }

    /// The project that the change of a call lives in, where the server is for all changes. What a
    /// name means that is none is for the tool to say.
    fn home_of(&self, arguments: &rmcp::model::JsonObject) -> Option<Project> {
        if self.change.is_some() {
            return None;
        }
        let id = ChangeId::new(arguments.get("change_id")?.as_str()?).ok()?;
        Some(self.project.home_of(&id))
    }

    fn call(
        &self,
        tool: &Tool,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        on_wait: &dyn Fn(&Waiting) -> ControlFlow<()>,
    ) -> Result<CallToolResult, ErrorData> {
        let now = Timestamp::now();
        let arguments = request.arguments.unwrap_or_default();
        let home = self.home_of(&arguments);
        let session = Session {
            project: home.as_ref().unwrap_or(&self.project),
            actor: self.actor(context.client_info()),
            holder: self.holder(tool, now),
            now: self.now(context),
            names_change: self.change.is_some(),
            step: self.step.clone(),
            receipt: self.receipt.clone(),
            on_wait,
        };
        match tool.call(&session, self.change.as_ref(), arguments) {
            Ok(answer) => Ok(result(answer)),
            Err(ActionError::Refused(refusal)) => {
                Ok(CallToolResult::error(vec![ContentBlock::text(refusal.to_string())]))
            }
            Err(ActionError::Cancelled) => Err(cancelled()),
            Err(ActionError::Internal(message)) => {
                super::log(&format!("{}: {message}", tool.name));
                Err(ErrorData::internal_error(message, None))
            }
        }
    }
}

/// Nobody hears this: the answer to a cancelled request is dropped.
pub(super) fn cancelled() -> ErrorData {
    ErrorData::internal_error("cancelled; nothing was written", None)
}

fn store_error(error: &agentd_engine::store::StoreError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let mut config = ServerConfig::new(capabilities)
            .with_instructions(instructions(self.inner.change.as_ref(), self.inner.toolset));
        config.server_info = Implementation::new("agentd", env!("CARGO_PKG_VERSION"));
        config
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let change = self.inner.change.as_ref();
        let tools = tools::of(self.inner.toolset).map(|tool| describe(tool, change));
        let asks = self.asks(&context).then(answering::describe);
        Ok(ListToolsResult::with_all_items(tools.chain(asks).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Description> {
        let tool = tools::find(self.inner.toolset, name)?;
        Some(describe(tool, self.inner.change.as_ref()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name == answering::NAME && self.asks(&context) {
            let arguments = request.arguments.unwrap_or_default();
            return Ok(self.answer_questions(arguments, context).await?.into());
        }
        let Some(tool) = tools::find(self.inner.toolset, &request.name) else {
            let known: Vec<&str> = tools::of(self.inner.toolset).map(|tool| tool.name).collect();
            let shown = excerpt(&request.name, 60);
            let message =
                format!("There is no tool `{shown}` here; there are {}.", known.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        let _turn = if tool.read_only { None } else { Some(self.inner.turn(&context).await?) };
        let runtime = tokio::runtime::Handle::current();
        let result = self
            .blocking(move |inner| {
                let on_wait = |waiting: &Waiting| {
                    if context.ct.is_cancelled() || inner.hung_up.is_set() {
                        return ControlFlow::Break(());
                    }
                    let holder = waiting.holder.as_ref().map(ToString::to_string);
                    let holder = holder.unwrap_or_else(|| "another process".to_owned());
                    let message = format!("waiting for {}, held by {holder}", waiting.name);
                    if let Some(progress) = progress(&context, waiting.waited, message) {
                        let peer = context.peer.clone();
                        runtime.spawn(async move { peer.notify_progress(progress).await });
                    }
                    ControlFlow::Continue(())
                };
                inner.call(tool, request, &context, &on_wait)
            })
            .await?;
        Ok(result.into())
    }

    /// What rmcp knows by no other name. A method of the protocol comes here when its
    /// parameters do not fit.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unfit(&request.method))
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let list = |inner: &Inner| {
            resources::list(&inner.project, inner.change.as_ref()).map_err(|e| store_error(&e))
        };
        Ok(ListResourcesResult::with_all_items(self.blocking(list).await?))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(resources::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = self
            .blocking(move |inner| {
                resources::read(&inner.project, inner.change.as_ref(), &request.uri)
                    .map_err(|e| store_error(&e))?
                    .ok_or_else(|| {
                        let shown = excerpt(&request.uri, 200);
                        ErrorData::resource_not_found(format!("there is no `{shown}`"), None)
                    })
            })
            .await?;
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}

/// The progress message about a wait, for a client that asked for it.
fn progress(
    context: &RequestContext<RoleServer>,
    waited: Duration,
    message: String,
) -> Option<ProgressNotificationParam> {
    let token = context.meta.get_progress_token()?;
    Some(ProgressNotificationParam::new(token, waited.as_secs_f64()).with_message(message))
}

/// The instructions that every client gets at the start.
fn instructions(change: Option<&ChangeId>, toolset: Toolset) -> String {
    let about = match change {
        Some(id) => format!(
            "You work on the change `{id}`; its documents are in agentd/changes/{id}/. Pass \
             change_id \"{id}\" to every tool."
        ),
        None => "Every tool takes the change_id of an open change, whose documents are in \
                 agentd/changes/<change_id>/."
            .to_owned(),
    };
    let task = match toolset {
        Toolset::Role(Role::Planner) | Toolset::Step(Role::Planner) => {
            " Order: create_proposal, then create_spec for every affected spec, then create_tasks. \
             Fix a document with edit_file."
        }
        Toolset::Role(Role::Challenger) | Toolset::Step(Role::Challenger) => {
            " Read proposal.md, specs/*.md and tasks.md, then give one verdict with append_review."
        }
        Toolset::Role(Role::Implementer) | Toolset::Step(Role::Implementer) => {
            " Do the tasks of tasks.md in order of their dependencies, and call complete_task after \
             each."
        }
        Toolset::Role(Role::Reviewer) | Toolset::Step(Role::Reviewer) => {
            " Compare the code with specs/*.md and tasks.md, then give one verdict with \
             create_review."
        }
        Toolset::Clarify => {
            " Look at the project, then ask what the plan depends on with propose_questions, once."
        }
        Toolset::All => "",
    };
    format!(
        "agentd keeps the plan of a change: proposal.md, specs/<spec>.md, tasks.md. {about}{task} \
         Documents are written with these tools only. A call that is refused has changed nothing \
         and says what to correct; warnings in an answer are worth fixing."
    )
}
