//! The contents of a request to a model: the interface, the offered tools, and how far the conversation is.

use serde_json::{Map, Value, json};

use super::script::{Act, ModelScript};

/// The interfaces of model vendors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelApi {
    /// Anthropic Messages.
    Messages,
    /// `OpenAI` Responses.
    Responses,
    /// `OpenAI` Chat Completions.
    Chat,
    /// Gemini `generateContent`.
    Gemini,
}

impl ModelApi {
    /// The interface that a path belongs to.
    pub(super) fn of(path: &str) -> Option<Self> {
        if path.ends_with("/messages") {
            Some(Self::Messages)
        } else if path.ends_with("/responses") {
            Some(Self::Responses)
        } else if path.ends_with("/chat/completions") {
            Some(Self::Chat)
        } else if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") {
            Some(Self::Gemini)
        } else {
            None
        }
    }

    /// Its name in the record of requests.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Gemini => "gemini",
        }
    }
}

/// A tool that an agent offers, with the JSON schema of its arguments.
#[derive(Debug, Clone)]
pub(super) struct Tool {
    pub(super) name: String,
    /// The group that it is offered in; empty if it is in none.
    namespace: String,
    schema: Value,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolCall {
    pub(super) name: String,
    /// The group of the tool; empty if it is in none.
    pub(super) namespace: String,
    pub(super) arguments: Value,
}

/// A request, read.
#[derive(Debug)]
pub(super) struct ModelRequest {
    pub(super) api: ModelApi,
    pub(super) model: String,
    pub(super) is_streaming: bool,
    pub(super) tools: Vec<Tool>,
    /// The text that holds the script, and the script.
    pub(super) script: Option<(String, Result<ModelScript, String>)>,
    /// How many tools have been called in this conversation.
    pub(super) calls: usize,
    /// The schema that the answer has to fit, if the agent asks for data instead of work.
    pub(super) answer_schema: Option<Value>,
}

impl ModelRequest {
    /// Reads a request to this path.
    pub(super) fn read(api: ModelApi, path: &str, body: &Value) -> Self {
        let conversation = match api {
            ModelApi::Messages | ModelApi::Chat => &body["messages"],
            ModelApi::Responses => &body["input"],
            ModelApi::Gemini => &body["contents"],
        };
        let model = match api {
            // …/models/<model>:generateContent
            ModelApi::Gemini => {
                let end = path.rsplit('/').next().unwrap_or_default();
                end.split(':').next().unwrap_or_default().to_owned()
            }
            _ => body["model"].as_str().unwrap_or_default().to_owned(),
        };
        let is_streaming = match api {
            ModelApi::Gemini => path.ends_with(":streamGenerateContent"),
            _ => body["stream"].as_bool().unwrap_or_default(),
        };
        let mut tools = Vec::new();
        offered_tools(&body["tools"], "", &mut tools);
        let config = &body["generationConfig"];
        let answer_schema = [&config["responseJsonSchema"], &config["responseSchema"]]
            .into_iter()
            .find(|schema| schema.is_object());
        Self {
            api,
            model,
            is_streaming,
            tools,
            script: find_script(conversation),
            calls: count_calls(conversation),
            answer_schema: answer_schema.cloned(),
        }
    }

    /// The call by which the agent does this; none if it offers no tool for it.
    pub(super) fn call(&self, act: &Act) -> Option<ToolCall> {
        if let Act::Tool { name, arguments } = act {
            let tool = self.tools.iter().find(|tool| tool.name.ends_with(name.as_str()))?;
            let (name, namespace) = (tool.name.clone(), tool.namespace.clone());
            let arguments = serde_json::from_str(arguments).ok()?;
            return Some(ToolCall { name, namespace, arguments });
        }
        if let Act::Write { path, text } = act
            && let Some(tool) = self.tool(WRITE_TOOLS, PATH_KEYS).filter(|tool| !tool.is_absolute())
        {
            return Some(tool.call(&|key| match key {
                _ if PATH_KEYS.contains(&key) => Some(path.clone()),
                _ if TEXT_KEYS.contains(&key) => Some(text.clone()),
                _ => None,
            }));
        }
        let command = match act {
            Act::Shell(command) => command.clone(),
            Act::Tool { .. } => return None,
            Act::Write { path, text } => {
                format!("cat > '{path}' <<'END_OF_FILE'\n{text}END_OF_FILE")
            }
        };
        let tool = self.tool(SHELL_TOOLS, COMMAND_KEYS)?;
        Some(tool.call(&|key| COMMAND_KEYS.contains(&key).then(|| command.clone())))
    }

    /// The first offered tool of these names whose arguments have one of these keys.
    fn tool(&self, names: &[&str], keys: &[&str]) -> Option<&Tool> {
        let fits = |tool: &&Tool| {
            let properties = tool.schema["properties"].as_object();
            properties
                .is_some_and(|properties| keys.iter().any(|key| properties.contains_key(*key)))
        };
        names.iter().find_map(|name| {
            self.tools.iter().filter(|tool| tool.name.eq_ignore_ascii_case(name)).find(fits)
        })
    }
}

/// The names that agents give to the tool that runs a command.
const SHELL_TOOLS: &[&str] = &[
    "bash",
    "exec_command",
    "shell_command",
    "shell",
    "run_shell_command",
    "developer__shell",
    "execute_command",
    "run_commands",
    "run_command",
];

/// The names that agents give to the tool that writes a whole file.
const WRITE_TOOLS: &[&str] =
    &["write", "write_file", "write_to_file", "developer__write", "create"];

const COMMAND_KEYS: &[&str] = &["command", "cmd", "commands"];
const PATH_KEYS: &[&str] = &["file_path", "filePath", "path", "absolutePath"];
const TEXT_KEYS: &[&str] = &["content", "file_text", "contents", "text"];

impl Tool {
    /// Whether it wants absolute paths, which a script cannot know.
    fn is_absolute(&self) -> bool {
        PATH_KEYS.iter().any(|key| {
            let description = self.schema["properties"][*key]["description"].as_str();
            description.is_some_and(|text| text.contains("absolute path"))
        })
    }

    fn call(&self, given: &dyn Fn(&str) -> Option<String>) -> ToolCall {
        let required: Vec<&str> = self.schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let mut arguments = Map::new();
        for (key, schema) in self.schema["properties"].as_object().into_iter().flatten() {
            let value = match given(key) {
                Some(text) if is_type(schema, "array") && key == "command" => {
                    json!(["bash", "-c", text])
                }
                Some(text) if is_type(schema, "array") => json!([text]),
                Some(text) => json!(text),
                None if required.contains(&key.as_str()) => example_of(schema),
                None => continue,
            };
            arguments.insert(key.clone(), value);
        }
        let (name, namespace) = (self.name.clone(), self.namespace.clone());
        ToolCall { name, namespace, arguments: Value::Object(arguments) }
    }
}

fn is_type(schema: &Value, name: &str) -> bool {
    match &schema["type"] {
        Value::String(only) => only.eq_ignore_ascii_case(name),
        Value::Array(several) => several.iter().any(|one| one == name),
        _ => false,
    }
}

/// A value that fits a schema.
pub(super) fn example_of(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    if is_type(schema, "object") {
        let properties = schema["properties"].as_object().into_iter().flatten();
        return properties
            .map(|(key, schema)| (key.clone(), example_of(schema)))
            .collect::<Map<_, _>>()
            .into();
    }
    if is_type(schema, "array") {
        json!([])
    } else if is_type(schema, "boolean") {
        json!(false)
    } else if is_type(schema, "integer") || is_type(schema, "number") {
        json!(60_000)
    } else {
        json!("As the script says")
    }
}

/// The tools in the lists of all vendors: a schema beside a name, at whatever depth it stands.
fn offered_tools(value: &Value, namespace: &str, tools: &mut Vec<Tool>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| offered_tools(item, namespace, tools)),
        Value::Object(fields) => {
            let schema = ["input_schema", "parameters", "parametersJsonSchema"]
                .iter()
                .find_map(|key| fields.get(*key));
            if let (Some(name), Some(schema)) = (value["name"].as_str(), schema) {
                let (name, namespace) = (name.to_owned(), namespace.to_owned());
                tools.push(Tool { name, namespace, schema: schema.clone() });
            } else {
                let is_group = value["type"] == "namespace";
                let group = value["name"].as_str().filter(|_| is_group).unwrap_or_default();
                for key in ["function", "functionDeclarations", "tools"] {
                    offered_tools(&value[key], group, tools);
                }
            }
        }
        _ => {}
    }
}

/// The first text of a conversation that holds a script.
fn find_script(value: &Value) -> Option<(String, Result<ModelScript, String>)> {
    match value {
        Value::String(text) => ModelScript::find(text).map(|script| (text.clone(), script)),
        Value::Array(items) => items.iter().find_map(find_script),
        Value::Object(fields) => fields.values().find_map(find_script),
        _ => None,
    }
}

/// How many tool calls a conversation has, in the words of any vendor.
fn count_calls(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count_calls).sum(),
        Value::Object(fields) => {
            let is_call = matches!(
                value["type"].as_str(),
                Some("tool_use" | "function_call" | "custom_tool_call" | "local_shell_call")
            ) || fields.contains_key("functionCall");
            let listed = value["tool_calls"].as_array().map_or(0, Vec::len);
            let inside = |key: &str| fields.get(key).map_or(0, count_calls);
            usize::from(is_call) + listed + inside("content") + inside("parts")
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = "Do it.\nfake-model:\nshell ls\nsay Done\nend of script";

    fn shell() -> Act {
        Act::Shell("ls".to_owned())
    }

    #[test]
    fn the_conversation_of_each_vendor_is_understood() {
        for (path, body) in [
            (
                "/v1/messages",
                json!({
                    "model": "m", "stream": true,
                    "tools": [{"name": "Bash", "input_schema": {"properties": {"command": {"type": "string"}}}}],
                    "messages": [
                        {"role": "user", "content": [{"type": "text", "text": PROMPT}]},
                        {"role": "assistant", "content": [{"type": "tool_use", "name": "Bash", "input": {}}]},
                        {"role": "user", "content": [{"type": "tool_result", "content": PROMPT}]},
                    ],
                }),
            ),
            (
                "/v1/responses",
                json!({
                    "model": "m", "stream": true,
                    "tools": [{"type": "function", "name": "exec_command",
                        "parameters": {"properties": {"cmd": {"type": "string"}}}}],
                    "input": [
                        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": PROMPT}]},
                        {"type": "function_call", "name": "exec_command", "arguments": "{}"},
                        {"type": "function_call_output", "output": "x"},
                    ],
                }),
            ),
            (
                "/v1/chat/completions",
                json!({
                    "model": "m", "stream": true,
                    "tools": [{"type": "function", "function": {"name": "bash",
                        "parameters": {"properties": {"command": {"type": "string"}}}}}],
                    "messages": [
                        {"role": "user", "content": PROMPT},
                        {"role": "assistant", "content": null, "tool_calls": [{"id": "1"}]},
                        {"role": "tool", "content": "x"},
                    ],
                }),
            ),
            (
                "/v1beta/models/m:streamGenerateContent",
                json!({
                    "tools": [{"functionDeclarations": [{"name": "run_shell_command",
                        "parametersJsonSchema": {"properties": {"command": {"type": "string"}}}}]}],
                    "contents": [
                        {"role": "user", "parts": [{"text": PROMPT}]},
                        {"role": "model", "parts": [{"functionCall": {"name": "run_shell_command"}}]},
                        {"role": "user", "parts": [{"functionResponse": {}}]},
                    ],
                }),
            ),
        ] {
            let read = ModelRequest::read(ModelApi::of(path).unwrap(), path, &body);
            assert_eq!(
                (read.model.as_str(), read.is_streaming, read.calls),
                ("m", true, 1),
                "{path}"
            );
            let (text, script) = read.script.as_ref().unwrap();
            assert_eq!(
                (text.as_str(), script.as_ref().unwrap().turn(0, 0).act),
                (PROMPT, Some(shell()))
            );
            let call = read.call(&shell()).unwrap();
            let command = call.arguments.as_object().unwrap().values().next().unwrap();
            assert_eq!((call.name, command), (read.tools[0].name.clone(), &json!("ls")));
        }
    }

    #[test]
    fn required_arguments_are_filled_in_and_others_left_out() {
        let schema = json!({
            "properties": {
                "command": {"type": "array"}, "mode": {"enum": ["sync", "async"]},
                "wait": {"type": "number"}, "more": {"type": "string"},
            },
            "required": ["command", "mode", "wait"],
        });
        let call = Tool { name: "shell".to_owned(), namespace: String::new(), schema }
            .call(&|key| (key == "command").then(|| "ls".to_owned()));
        assert_eq!(
            call.arguments,
            json!({"command": ["bash", "-c", "ls"], "mode": "sync", "wait": 60_000})
        );
    }

    #[test]
    fn a_tool_is_called_by_the_end_of_its_name_and_with_its_group() {
        let done = json!({"type": "function", "name": "done", "parameters": {"type": "object"}});
        let body = json!({"tools": [{"type": "namespace", "name": "mcp__gt", "tools": [done]}]});
        let read = ModelRequest::read(ModelApi::Responses, "/v1/responses", &body);
        let act = |name: &str| Act::Tool { name: name.to_owned(), arguments: "{}".to_owned() };
        let call = read.call(&act("done")).unwrap();
        assert_eq!((call.name.as_str(), call.namespace.as_str()), ("done", "mcp__gt"));
        assert_eq!(read.call(&act("fly")), None);
    }

    #[test]
    fn a_file_is_written_by_the_shell_where_no_tool_does_it() {
        let body = json!({
            "tools": [{"name": "Bash", "input_schema": {"properties": {"command": {"type": "string"}}}}],
        });
        let read = ModelRequest::read(ModelApi::Messages, "/v1/messages", &body);
        let act = Act::Write { path: "a.txt".to_owned(), text: "one\n".to_owned() };
        let command = read.call(&act).unwrap().arguments["command"].as_str().unwrap().to_owned();
        assert!(command.starts_with("cat > 'a.txt'"), "{command}");
    }
}
