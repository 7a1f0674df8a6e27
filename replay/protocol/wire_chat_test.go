package protocol

import "strings"

// chatCases: first event, tokens per event, framing, kinds of output.
var chatCases = []wireCase{
	{name: "S01 role-only first delta", body: `
@5   CH({"role":"assistant"})
@214 CH({"content":"Hi"})
@234 CH({"content":"!"})
@235 FIN(stop) USE(2) DONE`,
		outcome: "ok", chunks: "n0 c? c? n0", times: "214 214 |  | -", osl: "2 usage", finish: "stop", text: "Hi!"},
	{name: "S02 role with empty text", body: `
@5   CH({"role":"assistant","content":""})
@6   CH({"role":"assistant","content":null})
@100 CHU({"content":"A"},1)
@110 CHU({"content":"B"},2)
@111 FIN(stop) DONE`,
		outcome: "ok", chunks: "n0 n0 c1 c1 n0", times: "100 100 | 10 | 10", osl: "2 usage", finish: "stop"},
	{name: "S03 role and text together", body: `
@80  CHU({"role":"assistant","content":"A"},1)
@90  CHU({"content":"B"},2)
@91  FIN(stop) DONE`,
		outcome: "ok", chunks: "c1 c1 n0", times: "80 80 | 10 | 10", osl: "2 usage", finish: "stop"},
	{name: "S04 completions, empty first text", p: Completions{}, body: `
@40  data: {"choices":[{"index":0,"text":"","finish_reason":null}],"usage":{"prompt_tokens":9,"completion_tokens":0}}

@90  data: {"choices":[{"index":0,"text":" the","finish_reason":null}],"usage":{"prompt_tokens":9,"completion_tokens":1}}

@99  data: {"choices":[{"index":0,"text":"","finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":1}}

DONE`,
		outcome: "ok", chunks: "n0 c1 n0", times: "90 90 |  | -", osl: "1 usage", finish: "stop", text: " the"},
	{name: "S05 whole answer in one event", body: `
@300 data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"All of it."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":4}}

DONE`,
		outcome: "ok", chunks: "c4", times: "300 300 |  | -", osl: "4 usage", finish: "stop"},

	{name: "S07 several tokens in an event", body: `
@100 CHU({"content":"A"},1)
@120 CHU({"content":"B C D"},4)
@140 CHU({"content":"E F G"},7)
@150 CHU({"content":"H"},8)
@151 FIN(stop) DONE`,
		outcome: "ok", chunks: "c1 c3 c3 c1 n0", times: "100 100 | 6.667x3 6.667x3 10 | 7.143", osl: "8 usage", finish: "stop"},
	{name: "S08 first event bundled", body: `
@50  CH({"role":"assistant"})
@200 CHU({"content":"a b c d e f g h"},8)
@280 CHU({"content":"i j k l m n o p"},16)
@281 FIN(length) DONE`,
		outcome: "ok", chunks: "n0 c8 c8 n0", times: "200 200 | 10x8 | 10", osl: "16 usage", finish: "length"},
	{name: "S09 usage only at the end, null before", body: `
@100 data: {"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}],"usage":null}

@130 data: {"choices":[{"index":0,"delta":{"content":" there"},"finish_reason":null}],"usage":null}

@131 data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}

@132 USE(5) DONE`,
		outcome: "ok", chunks: "c? c? n0", times: "100 100 |  | -", osl: "5 usage", finish: "stop"},
	{name: "S10 running usage and a final usage", body: `
@100 CHU({"content":"a"},1)
@110 CHU({"content":"b"},2)
@120 CHU({"content":"c"},3)
@121 FIN(stop) USE(3) DONE`,
		outcome: "ok", chunks: "c1 c1 c1 n0", times: "100 100 | 10 10 | 10", osl: "3 usage", finish: "stop"},
	{name: "S11 usage in an event with empty text", p: Completions{}, body: `
@100 data: {"choices":[{"index":0,"text":" a","finish_reason":null}],"usage":null}

@120 data: {"choices":[{"index":0,"text":" b","finish_reason":null}],"usage":null}

@121 data: {"choices":[{"index":0,"text":"","finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}

DONE`,
		outcome: "ok", chunks: "c? c? n0", times: "100 100 |  | -", osl: "2 usage", finish: "stop"},
	{name: "S12 running usage starts at 0 with the role", body: `
@5   CHU({"role":"assistant","content":""},0)
@100 CHU({"content":"a"},1)
@110 CHU({"content":"b"},2)
@111 FIN(stop) DONE`,
		outcome: "ok", chunks: "n0 c1 c1 n0", times: "100 100 | 10 | 10", osl: "2 usage", finish: "stop"},
	{name: "S13 running count falls", body: `
@100 CHU({"content":"a"},1)
@110 CHU({"content":"b"},2)
@120 CHU({"content":"c"},3)
@121 FIN(stop) USE(2) DONE`,
		outcome: "ok", chunks: "c1 c1 c1 n0 n?", times: "100 100 |  | -", osl: "2 usage difference -1", finish: "stop",
		note: "running token count fell from 3 to 2"},
	{name: "S13 running count falls in mid-stream", body: `
@100 CHU({"content":"a"},2)
@110 CHU({"content":"b"},1)
@120 CHU({"content":"c"},3)
@121 FIN(stop) USE(3) DONE`,
		outcome: "ok", chunks: "c2 c? c? n?", times: "100 100 |  | -", osl: "3 usage difference 1", finish: "stop",
		note: "tokens were counted before their text was sent; running token count fell from 2 to 1"},
	{name: "S48 parser holds tokens back", body: `
@436 CHU({"content":"OK"},1)
@619 CHU({"tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"f","arguments":""}}]},17)
@802 CHU({"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1}"}}]},31)
@803 FIN(tool_calls) DONE`,
		outcome: "ok", chunks: "c1 t16 t14 n0", times: "436 436 | 11.44x16 13.07x14 | 12.2", osl: "31 usage", finish: "tool_calls",
		note: "tokens were counted before their text was sent", text: `OK{f {"a":1}}`},
	{name: "text held back while the count runs", body: `
@5   CHU({"role":"assistant","content":""},0)
@100 CHU({"content":""},1)
@110 CHU({"content":"abc"},3)
@120 data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":4}}

DONE`,
		outcome: "ok", chunks: "n0 c1 c2 c1", times: "100 100 | 5x2 10 | 6.667", osl: "4 usage", finish: "stop",
		note: "tokens were counted before their text was sent"},
	{name: "role counted before its text", body: `
@5   CHU({"role":"assistant","content":""},1)
@100 CHU({"content":"a"},1)
@110 CHU({"content":"b"},2)
@111 FIN(stop) DONE`,
		outcome: "ok", chunks: "n0 c1 c1 n0", times: "100 100 | 10 | 10", osl: "2 usage", finish: "stop"},
	{name: "usage of 0 on every event is not running", body: `
@100 CHU({"content":"a"},0)
@110 CHU({"content":"b"},0)
@111 FIN(stop) USE(7) DONE`,
		outcome: "ok", chunks: "c? c? n0", times: "100 100 |  | -", osl: "7 usage", finish: "stop"},
	{name: "S64 token ids in the event", p: Completions{}, body: `
@100 data: {"choices":[{"index":0,"token_ids":[11],"finish_reason":null}]}

@120 data: {"choices":[{"index":0,"token_ids":[12,13],"finish_reason":"length"}]}

DONE`,
		outcome: "ok", chunks: "c1 c2", times: "100 100 | 10x2 | 10", osl: "3 token_ids", finish: "length"},
	{name: "S64 log-probabilities in the event", body: `
@100 data: {"choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[{}]},"finish_reason":null}]}

@120 data: {"choices":[{"index":0,"delta":{"content":"b c"},"logprobs":{"content":[{},{}]},"finish_reason":"stop"}]}

DONE`,
		outcome: "ok", chunks: "c1 c2", times: "100 100 | 10x2 | 10", osl: "3 logprobs", finish: "stop"},
	{name: "S64 token ids over usage over log-probabilities", p: Completions{}, body: `
@100 data: {"choices":[{"index":0,"text":"ab","token_ids":[1],"logprobs":{"tokens":["a","b","c"]},"finish_reason":null}]}

@120 data: {"choices":[{"index":0,"text":"cd","logprobs":{"tokens":["a","b","c"]},"finish_reason":"stop"}],"usage":{"prompt_tokens":9.0,"completion_tokens":3.0,"total_tokens":0}}

DONE`,
		outcome: "ok", chunks: "c1 c2", times: "100 100 | 10x2 | 10", osl: "3 usage", finish: "stop"},

	{name: "S14 character split over two reads", body: `
@100 data: {"choices":[{"index":0,"delta":{"content":"\xE4\xBD
---
\xA0"},"finish_reason":null}]}

FIN(stop) DONE`,
		outcome: "ok", chunks: "c? n0", times: "100 100 |  | -", finish: "stop", text: "\u4f60"},
	{name: "S15 several events in one read", body: `
@100 CHU({"content":"a"},1) CHU({"content":"b"},2) CHU({"content":"c"},3)
@150 CHU({"content":"d"},4) FIN(stop) DONE`,
		outcome: "ok", chunks: "c1 c1 c1 c1 n0", times: "100 100 | 0 0 50 | 16.67", osl: "4 usage", finish: "stop"},
	{name: "S16 event split at awkward places", body: `
@100 data
---
:
---
 {"choices":[{"index":0,"delta":{"content":"a
---
 b"},"finish_reason":null}]}
---
@101 \n
---
\n
FIN(stop) DONE`,
		outcome: "ok", chunks: "c? n0", times: "101 101 |  | -", finish: "stop", text: "a b"},
	{name: "S17 CR and LF in different reads", body: `
@100 data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\r
---
\n\r\n
@110 data: [DONE]\r\n\r\n`,
		outcome: "ok", chunks: "c?", times: "100 100 |  | -", note: "no finish reason", text: "a"},
	{name: "S19 comments as keep-alive", body: `
@1000 :

@2000 : ping

@3000 : ping - 2026-01-01 00:00:03+00:00
@3500 : one line, no empty line after it
@4000 CHU({"content":"a"},1) FIN(stop) DONE`,
		outcome: "ok", chunks: "c1 n0", times: "4000 4000 |  | -", osl: "1 usage", finish: "stop"},
	{name: "S20 events without data", body: `
@10  event: ping

@20  id: 7

@30  retry: 3000

@40  

@50  data:

@60  data: 

@100 CHU({"content":"a"},1) FIN(stop) DONE`,
		outcome: "ok", chunks: "c1 n0", times: "100 100 |  | -", osl: "1 usage", finish: "stop"},
	{name: "S21 no blank, or two, after the colon", body: `
@100 data:{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}

@110 data:  {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}

@111 data:[DONE]

`,
		outcome: "ok", chunks: "c? c?", times: "100 100 |  | -", finish: "stop", text: "ab"},
	{name: "S22 data over several lines", body: `
@100 data: {"choices":[{"index":0,
data: "delta":{"content":"Hi"},
data: "finish_reason":"stop"}]}

DONE`,
		outcome: "ok", chunks: "c?", times: "100 100 |  | -", finish: "stop", text: "Hi"},
	{name: "S24 huge line", body: `
@100 data: {"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", 70_000) + `"},"finish_reason":null}]}

@200 data: {"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("y", 3_145_728) + `"},"finish_reason":"stop"}]}

DONE`,
		outcome: "ok", chunks: "c? c?", times: "100 100 |  | -", finish: "stop"},
	{name: "S42 thinking first, both key names", body: `
@500   CHU({"reasoning_content":"Let me"},2)
@600   CHU({"reasoning":" see"},3)
@12000 CHU({"content":"Yes"},4)
@12001 FIN(stop) DONE`,
		outcome: "ok", chunks: "r2 r1 c1 n0", times: "500 1.2e+04 | 100 1.14e+04 | 5750", osl: "4 usage reasoning 3", finish: "stop", text: "Yes<Let me see>"},
	{name: "S42 both key names in one event", body: `
@500 CHU({"reasoning_content":"Hm","reasoning":"Hm","content":null},1)
@600 CHU({"content":"Yes"},2)
@601 FIN(stop)
data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":1}}}

DONE`,
		outcome: "ok", chunks: "r1 c1 n0", times: "500 600 | 100 | 100", osl: "2 usage reasoning 1", finish: "stop", text: "Yes<Hm>"},
	{name: "reasoning and content in one event", body: `
@100 CHU({"reasoning_content":"a"},1)
@120 CHU({"reasoning_content":"b","content":"c d"},5)
@130 CHU({"content":"e"},6)
@131 FIN(stop) DONE`,
		outcome: "ok", chunks: "r1 r? c4 c1 n0", times: "100 120 | 5x4 10 | 6", osl: "6 usage", finish: "stop", text: "c de<ab>"},
	{name: "S45 thinking inside content", body: `
@500 CHU({"content":"<thi"},1)
@510 CHU({"content":"nk>a</th"},3)
@520 CHU({"content":"ink>Yes"},5)
@521 FIN(stop) DONE`,
		outcome: "ok", chunks: "c1 c2 c2 n0", times: "500 500 | 5x2 5x2 | 5", osl: "5 usage", finish: "stop", text: "<think>a</think>Yes"},
	{name: "S46 tool call in fragments", body: `
@200 CHU({"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"get","arguments":""}}]},3)
@220 CHU({"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]},5)
@230 CHU({"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]},7)
@231 FIN(tool_calls) DONE`,
		outcome: "ok", chunks: "t3 t2 t2 n0", times: "200 200 | 10x2 5x2 | 7.5", osl: "7 usage", finish: "tool_calls", text: `{get {"a":1}}`},
	{name: "S47 tool call in one piece, no index", body: `
@800 data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"t1","type":"function","function":{"name":"get","arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}]}

DONE`,
		outcome: "ok", chunks: "t?", times: "800 800 |  | -", finish: "tool_calls", text: `{get {"a":1}}`},
	{name: "S50 two choices in one stream", choices: 2, body: `
@100 data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}

@105 data: {"choices":[{"index":1,"delta":{"content":"x"},"finish_reason":null}]}

@110 data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"},{"index":1,"delta":{"content":"y"},"finish_reason":null}]}

@120 data: {"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}

@121 USE(4) DONE`,
		outcome: "ok", chunks: "c? c?/1 c? c?/1 n0/1", times: "100 100 |  | -", osl: "4 usage", finish: "stop,length", text: "ab / xy"},
	{name: "S51 filter results before the answer", body: `
@30  data: {"id":"","choices":[],"created":0,"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}

@100 CH({"content":"a"})
@141 FIN(stop) DONE`,
		outcome: "ok", chunks: "c? n0", times: "100 100 |  | -", finish: "stop"},
	{name: "S52 refusal", body: `
@100 CHU({"role":"assistant","refusal":"I can"},2)
@110 CHU({"refusal":"not."},3)
@111 FIN(stop) DONE`,
		outcome: "ok", chunks: "x2 x1 n0", times: "100 100 | 10 | 10", osl: "3 usage", finish: "stop", text: "[I cannot.]"},
	{name: "S60 cumulative text in a delta stream", body: `
@100 CHU({"content":"A"},1)
@110 CHU({"content":"A B"},2)
@120 CHU({"content":"A B C"},3)
@121 FIN(stop) DONE`,
		outcome: "ok", chunks: "c1 c1 c1 n0", times: "100 100 | 10 10 | 10", osl: "3 usage", finish: "stop",
		note: "text may be cumulative: an event starts with all text so far"},
	{name: "S60 last event repeats all text", body: `
@100 CHU({"content":"A"},1)
@110 CHU({"content":" B"},2)
@120 CHU({"content":"A B"},2)
@121 FIN(stop) DONE`,
		outcome: "ok", chunks: "c1 c1 c0 n0", times: "100 100 | 10 | 10", osl: "2 usage", finish: "stop",
		note: "text may be cumulative: an event starts with all text so far"},
	{name: "S63 unasked usage and timings", body: `
@100 CH({"role":"assistant","content":null})
@150 CH({"content":"Hi"})
@160 FIN(stop)
@161 data: {"choices":[],"usage":{"completion_tokens":2,"prompt_tokens":9,"total_tokens":11},"timings":{"prompt_n":9,"prompt_ms":48.1,"predicted_n":2,"predicted_ms":11.9,"draft_n":0,"draft_n_accepted":0}}

DONE`,
		outcome: "ok", chunks: "n0 c? n0", times: "150 150 |  | -", osl: "2 usage", finish: "stop"},
}
