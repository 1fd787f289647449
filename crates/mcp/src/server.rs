//! The protocol: each request of a client and the tool or resource that answers it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gt_core::MessageId;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ErrorCode, Implementation, InitializeRequestParams, InitializeResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource,
    ResourceContents, ResourceTemplate, ResourceUpdatedNotificationParam, ServerCapabilities,
    ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool, ToolAnnotations,
    UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::answers::ToolFailure;
use crate::arguments::ToolArguments;
use crate::caller::{McpCaller, McpRole};
use crate::catalog::{ToolDefinition, tools_of};
use crate::resources::{self, ResourceAddress, ResourceKind};
use crate::subscriptions::{Subscriptions, follower_from_now};
use crate::worker_tools::ToolStep;
use crate::{operator_tools, worker_tools};

/// How often the store is asked whether a person has answered.
const ANSWER_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A session of a client.
#[derive(Debug, Clone)]
pub struct McpServer {
    /// The client of a session over standard input. Over HTTP each request brings its own.
    fixed: Option<McpCaller>,
    subscriptions: Subscriptions,
    is_following: Arc<AtomicBool>,
}

impl McpServer {
    /// A session of this client.
    pub(crate) fn of(caller: McpCaller) -> Self {
        Self { fixed: Some(caller), ..Self::over_http() }
    }

    /// A session whose requests carry their client.
    pub(crate) fn over_http() -> Self {
        Self {
            fixed: None,
            subscriptions: Subscriptions::default(),
            is_following: Arc::new(AtomicBool::new(false)),
        }
    }

    /// The client of a request.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<McpCaller, ErrorData> {
        let of_request = || {
            let parts = context.extensions.get::<http::request::Parts>()?;
            parts.extensions.get::<McpCaller>().cloned()
        };
        let caller = self.fixed.clone().or_else(of_request);
        caller.ok_or_else(|| ErrorData::invalid_request("this request has no token", None))
    }

    /// Follows the log for this session, once.
    fn start_following(
        &self,
        caller: McpCaller,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), ToolFailure> {
        if self.is_following.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        let follower = follower_from_now(&caller)?;
        let (subscriptions, peer) = (self.subscriptions.clone(), context.peer.clone());
        tokio::spawn(async move {
            let closed = peer.clone();
            let tell = |address: ResourceAddress| {
                let peer = peer.clone();
                async move {
                    let update = ResourceUpdatedNotificationParam::new(address.to_string());
                    peer.notify_resource_updated(update).await.is_ok()
                }
            };
            let is_over = move || closed.is_transport_closed();
            subscriptions.follow(&caller, follower, tell, is_over).await;
        });
        Ok(())
    }
}

/// Does something that may wait for the store, on a thread that may.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ErrorData> {
    tokio::task::spawn_blocking(work).await.map_err(|_| {
        ErrorData::internal_error("something went wrong here that should not have", None)
    })
}

/// Refuses what cannot be read or followed.
fn no_resource(failure: &ToolFailure) -> ErrorData {
    ErrorData::resource_not_found(failure.to_string(), None)
}

/// The methods of this server that have parameters, with those that must be there.
const METHODS_WITH_PARAMETERS: [(&str, &str); 5] = [
    ("initialize", "protocolVersion, capabilities and clientInfo"),
    ("tools/call", "name, a text, and arguments, an object"),
    ("resources/read", "uri, a text"),
    ("resources/subscribe", "uri, a text"),
    ("resources/unsubscribe", "uri, a text"),
];

/// Refuses a request that the library could not read as one of its own: its method is unknown, or its parameters are wrong.
fn unreadable(method: &str) -> ErrorData {
    let known = METHODS_WITH_PARAMETERS.iter().find(|(name, _)| *name == method);
    if let Some((name, needed)) = known {
        let told = format!("the params of {name} cannot be read; they are {needed}");
        return ErrorData::invalid_params(told, None);
    }
    let shown: String = method.chars().take(80).collect();
    let told = format!("there is no method {}", shown.escape_debug());
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, told, None)
}

fn answered(answer: Result<String, ToolFailure>) -> CallToolResponse {
    match answer {
        Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]).into(),
        Err(failure) => CallToolResult::error(vec![ContentBlock::text(failure.to_string())]).into(),
    }
}

/// The tool of this name, or why this role does not have it.
fn require_tool(role: McpRole, name: &str) -> Result<(), ErrorData> {
    let has = |role: McpRole| tools_of(role).iter().any(|tool| tool.name == name);
    if has(role) {
        return Ok(());
    }
    let other = match role {
        McpRole::Worker => McpRole::Operator,
        McpRole::Operator => McpRole::Worker,
    };
    let shown: String = name.chars().take(80).collect();
    let (role, shown) = (role.as_str(), shown.escape_debug());
    Err(ErrorData::invalid_params(
        if has(other) {
            let other = other.as_str();
            format!(
                "the tool {shown} is for the {other}, and this is the {role}; tools/list names its tools"
            )
        } else {
            format!("there is no tool {shown}; tools/list names those of the {role}")
        },
        None,
    ))
}

/// Waits for the answer of a person, without a thread that waits.
async fn await_answer(
    caller: McpCaller,
    question: MessageId,
    at_most: Duration,
    context: &RequestContext<RoleServer>,
) -> Result<Result<String, ToolFailure>, ErrorData> {
    let until = Instant::now() + at_most;
    loop {
        let asking = caller.clone();
        match blocking(move || worker_tools::answer_to(&asking, question)).await? {
            Ok(Some(answer)) => return Ok(Ok(answer)),
            Ok(None) => {}
            Err(failure) => return Ok(Err(failure)),
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || context.ct.is_cancelled() {
            return Ok(Ok(worker_tools::unanswered(question)));
        }
        tokio::time::sleep(left.min(ANSWER_POLL_INTERVAL)).await;
    }
}

fn tool_of(definition: ToolDefinition) -> Tool {
    let annotations = ToolAnnotations::new()
        .read_only(definition.is_read_only)
        .destructive(false)
        .open_world(false);
    let mut tool = Tool::new(definition.name, definition.description, definition.schema);
    tool.annotations = Some(annotations);
    tool
}

/// What a caller reads of its role before it asks for the tools.
fn instructions(role: McpRole) -> &'static str {
    match role {
        McpRole::Worker => {
            "You are the worker of one run. Call next first, and done when your work is finished."
        }
        McpRole::Operator => {
            "Work for coding agents: find, plan, sling and launch it; inbox says what needs a decision."
        }
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        let version = env!("CARGO_PKG_VERSION");
        let role = self.fixed.as_ref().map_or(McpRole::Operator, |caller| caller.role);
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("gt", version))
            .with_instructions(instructions(role))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        // Over HTTP, the token of the request says who calls.
        let caller = self.caller(&context)?;
        let negotiated = self.negotiate_initialize(&request)?;
        context.peer.set_peer_info(request);
        Ok(negotiated.with_instructions(instructions(caller.role)))
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unreadable(&request.method))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller(&context)?;
        let tools = tools_of(caller.role).into_iter().map(tool_of).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(&context)?;
        require_tool(caller.role, &request.name)?;
        let (name, arguments) = (request.name, ToolArguments::new(request.arguments));
        if caller.role == McpRole::Operator {
            let answer = blocking(move || operator_tools::call(&caller, &name, arguments)).await?;
            return Ok(answered(answer));
        }
        let worker = caller.clone();
        match blocking(move || worker_tools::call(&worker, &name, arguments)).await? {
            Ok(ToolStep::Answer(text)) => Ok(answered(Ok(text))),
            Ok(ToolStep::AwaitAnswer(question, at_most)) => {
                Ok(answered(await_answer(caller, question, at_most, &context).await?))
            }
            Err(failure) => Ok(answered(Err(failure))),
        }
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let caller = self.caller(&context)?;
        let listed = blocking(move || resources::list(&caller)).await?;
        let listed =
            listed.map_err(|failure| ErrorData::internal_error(failure.to_string(), None))?;
        let resource = |listed: resources::ListedResource| {
            Resource::new(listed.address.to_string(), listed.address.name)
                .with_title(listed.title)
                .with_mime_type("application/json")
        };
        Ok(ListResourcesResult::with_all_items(listed.into_iter().map(resource).collect()))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = |kind: ResourceKind| {
            ResourceTemplate::new(format!("gt://{}/{{id}}", kind.path()), kind.path())
                .with_description(kind.description())
                .with_mime_type("application/json")
        };
        let templates = ResourceKind::ALL.into_iter().map(template).collect();
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = self.caller(&context)?;
        let address = ResourceAddress::parse(&request.uri).map_err(|wrong| no_resource(&wrong))?;
        let text = blocking(move || resources::read(&caller, &address)).await?;
        let text = text.map_err(|failure| no_resource(&failure))?;
        let contents = ResourceContents::text(text, request.uri).with_mime_type("application/json");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.caller(&context)?;
        let address = ResourceAddress::parse(&request.uri).map_err(|wrong| no_resource(&wrong))?;
        self.start_following(caller.clone(), &context).map_err(|wrong| no_resource(&wrong))?;
        let subscriptions = self.subscriptions.clone();
        let added = blocking(move || subscriptions.add(&caller, address)).await?;
        added.map_err(|failure| no_resource(&failure))
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let address = ResourceAddress::parse(&request.uri).map_err(|wrong| no_resource(&wrong))?;
        self.subscriptions.remove(&address);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let known = |uri: &&String| ResourceAddress::parse(uri).is_ok();
        let uris = requested.resource_subscriptions.iter().flatten().filter(known).cloned();
        Some(SubscriptionFilter::builder().resource_subscriptions(uris).build())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let caller = self.caller(context.request_context())?;
        let uris = context.accepted().resource_subscriptions.clone().unwrap_or_default();
        let subscriptions = Subscriptions::default();
        let follower = follower_from_now(&caller).map_err(|wrong| no_resource(&wrong))?;
        let (own, adding) = (subscriptions.clone(), caller.clone());
        blocking(move || {
            for address in uris.iter().filter_map(|uri| ResourceAddress::parse(uri).ok()) {
                own.add(&adding, address)?;
            }
            Ok(())
        })
        .await?
        .map_err(|failure| no_resource(&failure))?;
        let sink = context.sink();
        let tell = |address: ResourceAddress| {
            let sink = sink.clone();
            async move { sink.notify_resource_updated(address.to_string()).await.is_ok() }
        };
        tokio::select! {
            () = context.cancelled() => {}
            () = subscriptions.follow(&caller, follower, tell, || false) => {}
        }
        Ok(())
    }
}
