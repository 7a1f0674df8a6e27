package protocol

// otherCases: protocols other than chat completions and completions.
var otherCases = []wireCase{
	{name: "S54 Anthropic messages", p: Messages{}, body: `
@40  event: message_start
data: {"type":"message_start","message":{"id":"m1","role":"assistant","content":[],"usage":{"input_tokens":25,"output_tokens":1}}}

@41  event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

@60  event: ping
data: {"type":"ping"}

@100 event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}

@120 event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" you"}}

@130 event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":15}}

@131 event: message_stop
data: {"type":"message_stop"}

`,
		outcome: "ok", chunks: "n0 c? c? n0", times: "100 100 |  | -", osl: "15 usage", input: "25", finish: "end_turn", text: "Hello you"},
	{name: "S54 several message_delta, prompt counted late", p: Messages{}, body: `
@40  data: {"type":"message_start","message":{"usage":{"input_tokens":0,"output_tokens":1}}}

@100 data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}

@110 data: {"type":"message_delta","delta":{"stop_reason":null},"usage":{"output_tokens":7}}

@130 data: {"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"input_tokens":5,"cache_read_input_tokens":20,"output_tokens":15}}

@131 data: {"type":"message_stop"}

`,
		outcome: "ok", chunks: "c? n0 n0", times: "100 100 |  | -", osl: "15 usage", input: "25 cached 20", finish: "max_tokens"},
	{name: "S55 Anthropic thinking, signature and tool input", p: Messages{}, body: `
@100 event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}

@300 event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"AAAA"}}

@400 event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}

@410 event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"1}"}}

@430 event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":15}}

@431 event: message_stop
data: {"type":"message_stop"}

`,
		outcome: "ok", chunks: "r? n0 t? t? n0", times: "100 400 |  | -", osl: "15 usage", finish: "tool_use", text: `<Hm>{ {"a":1}}`},
	{name: "S56 Anthropic error in mid-stream", p: Messages{}, body: `
@100 event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"He"}}

@500 event: error
data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}

@501 event: message_stop
data: {"type":"message_stop"}

`,
		outcome: "failed: overloaded_error: Overloaded", chunks: "c?", times: "100 100 |  | -"},
	{name: "Anthropic stream cut", p: Messages{}, body: `
@40  data: {"type":"message_start","message":{"usage":{"input_tokens":25,"output_tokens":1}}}

@100 data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"He"}}

`,
		outcome: "truncated: stream ended without a terminal signal", chunks: "c?", times: "100 100 |  | -", input: "25"},
	{name: "Anthropic not streamed", p: Messages{}, whole: true, content: "application/json", body: `
@900 {"id":"m","type":"message","role":"assistant","content":[{"type":"thinking","thinking":"Hm","signature":"A"},{"type":"text","text":"Hi"},{"type":"tool_use","id":"t","name":"f","input":{"a":1}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":9}}`,
		outcome: "not_streamed", times: "- - |  | -", osl: "9 usage", input: "3", finish: "tool_use", text: `Hi<Hm>{f {"a":1}}`, note: "not streamed, although a stream was asked for"},

	{name: "S57 OpenAI responses", p: Responses{}, body: `
@20  event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"r1","status":"in_progress"}}

@100 event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":4,"delta":"Hi"}

@120 event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":5,"delta":" you"}

@121 event: response.output_text.done
data: {"type":"response.output_text.done","text":"Hi you"}

@122 event: response.completed
data: {"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":9,"output_tokens":3,"total_tokens":12,"output_tokens_details":{"reasoning_tokens":0}}}}

`,
		outcome: "ok", chunks: "c? c? n0", times: "100 100 |  | -", osl: "3 usage reasoning 0", input: "9", finish: "completed", text: "Hi you"},
	{name: "responses, reasoning and a call, incomplete", p: Responses{}, body: `
@50  data: {"type":"response.reasoning_summary_text.delta","output_index":0,"delta":"Hm"}

@100 data: {"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c","name":"f","arguments":""}}

@120 data: {"type":"response.function_call_arguments.delta","output_index":1,"delta":"{}"}

@130 data: {"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"reasoning","summary":[{"text":"Hm"}]},{"type":"function_call","name":"f","arguments":"{}"}],"usage":{"input_tokens":9,"output_tokens":8}}}

`,
		outcome: "ok", chunks: "r? t? t? n0", times: "50 100 |  | -", osl: "8 usage", input: "9", finish: "max_output_tokens", text: "<Hm>{f {}}"},
	{name: "responses, failed", p: Responses{}, body: `
@100 data: {"type":"response.output_text.delta","delta":"Hi"}

@130 data: {"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"boom"},"usage":null}}

`,
		outcome: "failed: server_error: boom", chunks: "c?", times: "100 100 |  | -"},
	{name: "responses, error event", p: Responses{}, body: `
@130 data: {"type":"error","code":"server_error","message":"boom","param":null}

`,
		outcome: "failed: server_error: boom", times: "- - |  | -"},
	{name: "responses, clean end in mid-answer", p: Responses{}, body: `
@100 data: {"type":"response.output_text.delta","delta":"Hi"}

`,
		outcome: "truncated: stream ended without a terminal signal", chunks: "c?", times: "100 100 |  | -"},
	{name: "responses not streamed", p: Responses{}, whole: true, content: "application/json", body: `
@900 {"object":"response","status":"completed","error":null,"incomplete_details":null,"output":[{"type":"reasoning","content":[{"type":"reasoning_text","text":"Hm"}]},{"type":"message","content":[{"type":"output_text","text":"Hi"}]}],"usage":{"input_tokens":3,"output_tokens":2,"input_tokens_details":{"cached_tokens":1}}}`,
		outcome: "not_streamed", times: "- - |  | -", osl: "2 usage", input: "3 cached 1", finish: "completed", text: "Hi<Hm>", note: "not streamed, although a stream was asked for"},

	{name: "S59 TGI native stream", p: TGI{}, body: `
@100 data:{"index":1,"token":{"id":264,"text":" a","logprob":-0.3,"special":false},"generated_text":null,"details":null}

@110 data:{"index":2,"token":{"id":2,"text":"</s>","logprob":-0.1,"special":true},"generated_text":" a","details":{"finish_reason":"eos_token","generated_tokens":2,"seed":null}}

`,
		outcome: "ok", chunks: "c1 c1", times: "100 100 | 10 | 10", osl: "2 usage", finish: "eos_token", text: " a"},
	{name: "S35 TGI error", p: TGI{}, body: `
@100 data:{"index":1,"token":{"id":264,"text":" a","special":false}}

@300 data:{"error":"Request failed during generation","error_type":"generation"}

`,
		outcome: "failed: generation: Request failed during generation", chunks: "c1", times: "100 100 |  | -", osl: "1 format"},

	{name: "S60 cumulative text", p: SGLang{}, body: `
@100 data: {"text":" A","meta_info":{"prompt_tokens":9,"completion_tokens":1}}

@110 data: {"text":" A B C","meta_info":{"prompt_tokens":9,"completion_tokens":3}}

@111 data: [DONE]

`,
		outcome: "ok", chunks: "c1 c2", times: "100 100 | 5x2 | 5", osl: "3 usage", input: "9", text: " A B C", note: "no finish reason"},
	{name: "SGLang finish reasons", p: SGLang{}, body: `
@100 data: {"text":" A","meta_info":{"prompt_tokens":9,"completion_tokens":1,"cached_tokens":4,"finish_reason":null}}

@110 data: {"text":" A","meta_info":{"prompt_tokens":9,"completion_tokens":2,"finish_reason":{"type":"length","length":2}}}

DONE`,
		outcome: "ok", chunks: "c1 c1", times: "100 100 | 10 | 10", osl: "2 usage", input: "9 cached 4", finish: "length", text: " A"},
	{name: "SGLang abort", p: SGLang{}, body: `
@100 data: {"text":"","meta_info":{"completion_tokens":0,"finish_reason":{"type":"abort","message":"no room"}}}

DONE`,
		outcome: "failed: abort: no room", chunks: "n0", times: "- - |  | -", osl: "0 usage", finish: "abort"},

	{name: "S62 Ollama native", p: Ollama{}, whole: true, content: "application/x-ndjson", body: `
@100 {"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"Hi"},"done":false}
@110 {"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":2,"eval_duration":12000000}`,
		outcome: "ok", chunks: "c? n0", times: "100 100 |  | -", osl: "2 usage", input: "9", finish: "stop", text: "Hi"},
	{name: "Ollama thinking and a call", p: Ollama{}, whole: true, content: "application/x-ndjson", body: `
@100 {"message":{"role":"assistant","content":"","thinking":"Hm"},"done":false}
@120 {"message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]},"done":false}
@121 {"message":{"role":"assistant","content":""},"done":true,"done_reason":"stop","eval_count":8}`,
		outcome: "ok", chunks: "r? t? n0", times: "100 120 |  | -", osl: "8 usage", finish: "stop", text: `<Hm>{f {"a":1}}`},
	{name: "Ollama error in mid-stream", p: Ollama{}, whole: true, content: "application/x-ndjson", body: `
@100 {"message":{"role":"assistant","content":"Hi"},"done":false}
@110 {"error":"out of memory"}`,
		outcome: "failed: out of memory", chunks: "c?", times: "100 100 |  | -"},
	{name: "Ollama clean end in mid-answer", p: Ollama{}, whole: true, content: "application/x-ndjson", body: `
@100 {"message":{"role":"assistant","content":"Hi"},"done":false}
@110 {"message":{"role":"assi`,
		outcome: `truncated: stream ended without a terminal signal; event 1 is malformed: "{\"message\":{\"role\":\"assi"`, chunks: "c?", times: "100 100 |  | -",
		note: `event 1 is malformed: "{\"message\":{\"role\":\"assi"`},
	{name: "embeddings", p: Embeddings{}, whole: true, content: "application/json", body: `
@50 {"object":"list","data":[{"embedding":[0.1,0.2],"index":0}],"usage":{"prompt_tokens":7,"total_tokens":7,"completion_tokens":0}}`,
		outcome: "ok", times: "- - |  | -", input: "7"},
	{name: "embeddings, error", p: Embeddings{}, whole: true, content: "application/json", body: `
@50 {"error":{"message":"too long"}}`,
		outcome: "failed: too long", times: "- - |  | -"},
}
