package mock

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reprise/replay/mock/batch"
)

func TestRefusals(t *testing.T) {
	small := Config{Refuse: []string{"min_tokens"}, MaxBodyBytes: 2000, Models: []string{"a", "b"}}
	small.Engine = plain
	small.Engine.KVTokens = 100
	tests := []struct {
		path, body string
		status     int
		message    string
	}{
		{"chat/completions", `{"model":"x","messages":[]}`, 404, "The model `x` does not exist."},
		{"chat/completions", `{"messages":[`, 400, "not valid JSON"},
		{"chat/completions", `{"messages":[],"min_tokens":1}`, 400, "min_tokens"},
		{"chat/completions", `{"messages":[],"n":0}`, 400, "n: want 1 to 128"},
		{"chat/completions", `{"messages":[],"max_tokens":0}`, 400, "max_tokens must be at least 1, got 0."},
		{"chat/completions", `{"messages":[],"stream_options":{}}`, 400, "Stream options can only be defined when `stream=True`."},
		{"chat/completions", `{"messages":[],"max_tokens":101}`, 400, "maximum context length is 100 tokens"},
		{"chat/completions", `{"messages":[{"content":"a"}],"max_tokens":9223372036854775807,"ignore_eos":true}`, 400, "maximum context length is 100 tokens"},
		{"chat/completions", `{"messages":[],"mock_fault":"no"}`, 400, "want one of status, reset"},
		{"completions", `{"prompt":["a","b"]}`, 400, "one prompt per request"},
		{"completions", `{"prompt":"` + strings.Repeat("x", 2000) + `"}`, 413, "more than 2000 bytes"},
		{"responses", `{"input":"a","n":2}`, 400, "n: want 1 to 128"},
		{"messages", `{"messages":[]}`, 400, "max_tokens: field required"},
	}
	bubble(t, small, func(r *rig) {
		refused := 0
		for _, test := range tests {
			a := r.post("/v1/"+test.path, test.body)
			c := decode(t, a.body)
			if a.status != test.status || c.Error == nil || !strings.Contains(c.Error.Message, test.message) {
				t.Errorf("%.80s: status %d, %s; want %d, %s", test.body, a.status, a.body, test.status, test.message)
			}
			if test.status != 413 {
				refused++
				if test.path != "messages" && c.Error.Code != test.status {
					t.Errorf("%s: code %d in the body", test.body, c.Error.Code)
				}
			}
		}
		records, _ := r.server.Account()
		if len(records) != refused {
			t.Errorf("%d records of %d requests", len(records), refused)
		}
		for _, rec := range records {
			if rec.Outcome != OutcomeRefused || rec.Status < 400 || rec.SentTokens != 0 {
				t.Errorf("record %+v", rec)
			}
		}
		if load := r.server.Load(); load.QueriedTokens != 0 {
			t.Errorf("refused requests reached the cache: %+v", load)
		}
		time.Sleep(time.Second) // net/http lingers after a body that was too long
	})
}

func TestMinAboveMaxIsRefused(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		if a := r.post("/v1/completions", `{"prompt":"a","max_tokens":2,"min_tokens":3}`); a.status != 400 || !strings.Contains(a.body, "min_tokens") {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
}

func TestModelsAndHealth(t *testing.T) {
	bubble(t, Config{Models: []string{"a", "b"}}, func(r *rig) {
		var list struct {
			Data []struct {
				ID     string
				MaxLen int `json:"max_model_len"`
			}
		}
		if err := json.Unmarshal([]byte(r.get("/v1/models").body), &list); err != nil {
			t.Fatal(err)
		}
		if len(list.Data) != 2 || list.Data[0].ID != "a" || list.Data[1].ID != "b" || list.Data[0].MaxLen != batch.DefaultKVTokens {
			t.Errorf("models %+v", list)
		}
		if a := r.get("/health"); a.status != 200 || a.body != "" {
			t.Errorf("health %+v", a)
		}
		if a := r.post("/v1/completions", `{"model":"b","prompt":"x","max_tokens":1}`); a.status != 200 || decode(t, a.body).Model != "b" {
			t.Errorf("model b: %d %s", a.status, a.body)
		}
		if a := r.get("/v1/completions"); a.status != http.StatusMethodNotAllowed {
			t.Errorf("GET of an endpoint for POST: %d", a.status)
		}
	})
}

// series reads a page of metrics.
func series(t *testing.T, page string) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for lines := bufio.NewScanner(strings.NewReader(page)); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		name, value, _ := strings.Cut(lines.Text(), " ")
		var v float64
		if _, err := fmt.Sscan(value, &v); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		values[strings.ReplaceAll(strings.ReplaceAll(name, `model_name="mock"`, ""), "{}", "")] = v
	}
	return values
}

func TestMetrics(t *testing.T) {
	c := Config{Engine: plain}
	c.Engine.MaxBatch = 1
	c.Engine.KVTokens = 1000
	bubble(t, c, func(r *rig) {
		go r.post("/v1/chat/completions", chat(prompt(100, 100, ""), 5, "")) // 20, 30, 40, 50, 60 ms
		time.Sleep(ms)
		go r.post("/v1/chat/completions", chat(prompt(100, 100, ""), 5, "")) // from 60 ms: 0.4 of prefill
		time.Sleep(34 * ms)
		check := func(want map[string]float64) {
			t.Helper()
			got := series(t, r.get("/metrics").body)
			for name, v := range want {
				if d := got["vllm:"+name] - v; d > 1e-9 || d < -1e-9 {
					t.Errorf("%s is %v, want %v", name, got["vllm:"+name], v)
				}
				if _, ok := got["vllm:"+name]; !ok {
					t.Errorf("no %s", name)
				}
			}
		}
		check(map[string]float64{
			"num_requests_running": 1, "num_requests_waiting": 1, "kv_cache_usage_perc": 0.105,
			"prompt_tokens_total": 100, "generation_tokens_total": 2,
			"prefix_cache_queries_total": 200, "prefix_cache_hits_total": 96,
			"time_to_first_token_seconds_count": 1, "inter_token_latency_seconds_count": 1,
		})
		time.Sleep(time.Second)
		synctest.Wait()
		check(map[string]float64{
			"num_requests_running": 0, "num_requests_waiting": 0, "kv_cache_usage_perc": 0,
			"prompt_tokens_total": 200, "generation_tokens_total": 10,
			`request_success_total{,finished_reason="length"}`: 2, `request_success_total{,finished_reason="abort"}`: 0,
			"time_to_first_token_seconds_sum":                0.020 + 0.0694,
			`time_to_first_token_seconds_bucket{,le="0.02"}`: 1, `time_to_first_token_seconds_bucket{,le="+Inf"}`: 2,
			"inter_token_latency_seconds_sum": 0.080, "inter_token_latency_seconds_count": 8,
			`inter_token_latency_seconds_bucket{,le="0.01"}`: 8,
			"e2e_request_latency_seconds_sum":                0.060 + 0.1094,
		})
	})
}

func TestStatusFault(t *testing.T) {
	c := Config{Faults: []Fault{{Kind: FaultStatus, Status: 429, RetryAfter: 1500 * ms, Every: 2}}}
	bubble(t, c, func(r *rig) {
		for i := range 6 {
			a := r.post("/v1/chat/completions", chat("a", 2, ""))
			if i%2 == 0 {
				if a.status != 200 {
					t.Errorf("request %d: %d", i, a.status)
				}
				continue
			}
			if a.status != 429 || a.header.Get("Retry-After") != "2" || decode(t, a.body).Error.Type != "RateLimitError" {
				t.Errorf("request %d: %d %v %s", i, a.status, a.header, a.body)
			}
		}
		if load := r.server.Load(); load.QueriedTokens != 3 {
			t.Errorf("the engine saw %d prompt tokens, want 3", load.QueriedTokens)
		}
	})
}

func TestFaultShareIsSeeded(t *testing.T) {
	c := Config{Seed: 3, Faults: []Fault{{Kind: FaultReset, Share: 0.3}}}
	hit := func() (n int, which string) {
		for i := range uint64(10_000) {
			f, err := c.fault(i, "")
			if err != nil {
				t.Fatal(err)
			}
			if f != nil {
				n++
				which += fmt.Sprint(i, " ")
			}
		}
		return n, which
	}
	n, one := hit()
	if _, two := hit(); one != two {
		t.Error("two draws of one seed differ")
	}
	if n < 2860 || n > 3140 { // 3 standard deviations
		t.Errorf("%d of 10000, want 3000", n)
	}
	c.Seed = 4
	if _, other := hit(); one == other {
		t.Error("another seed took the same requests")
	}
}

func TestErrorObjectAndMalformedEvent(t *testing.T) {
	for _, by := range []string{"header", "field"} {
		t.Run(by, func(t *testing.T) {
			bubble(t, Config{}, func(r *rig) {
				ask := func(fault string) []string {
					if by == "header" {
						return r.post("/v1/chat/completions", chat("a", 3, ""), FaultHeader, fault).texts()
					}
					return r.post("/v1/chat/completions", chat("a", 3, `,"mock_fault":"`+fault+`"`)).texts()
				}
				got := ask("error,after=2") // role, 2 tokens, error, end marker
				if len(got) != 5 || got[3] != `{"error":{"message":"injected fault","type":"InternalServerError","param":null,"code":500}}` || got[4] != "[DONE]" {
					t.Errorf("events %q", got)
				}
				got = ask("malformed") // role, 1 token, broken, 2 tokens, finish, end marker
				if len(got) != 7 || json.Valid([]byte(got[2])) || got[6] != "[DONE]" {
					t.Errorf("events %q", got)
				}
			})
		})
	}
	bubble(t, Config{Faults: []Fault{{Kind: FaultError}}}, func(r *rig) {
		got := r.post("/v1/messages", `{"messages":[],"max_tokens":3,"stream":true}`).texts()
		if last := got[len(got)-1]; last != `{"type":"error","error":{"type":"api_error","message":"injected fault"}}` {
			t.Errorf("messages ended with %s", last)
		}
		got = r.post("/v1/responses", `{"input":"a","stream":true}`).texts()
		if last := got[len(got)-1]; !strings.HasPrefix(last, `{"type":"error","sequence_number":`) {
			t.Errorf("responses ended with %s", last)
		}
	})
}

func TestFaultsInWholeAnswers(t *testing.T) {
	const body = `{"prompt":"a","max_tokens":20,"ignore_eos":true}`
	const made = 200*ms + 100*time.Microsecond
	tests := []struct {
		fault   string
		end     time.Duration
		valid   bool
		broken  bool
		outcome string
	}{
		{"truncate", made, false, false, OutcomeFault},
		{"malformed", made, false, false, OutcomeCompleted},
		{"error", made, true, false, OutcomeFault},
		{"stall,delay=30ms", made + 30*ms, true, false, OutcomeCompleted},
		{"cut", made, false, true, OutcomeFault},
		{"slow-headers,delay=1s", time.Second, true, false, OutcomeCompleted},
	}
	for _, test := range tests {
		t.Run(test.fault, func(t *testing.T) {
			bubble(t, Config{}, func(r *rig) {
				a := r.post("/v1/completions", body, FaultHeader, test.fault)
				if a.end != test.end || json.Valid([]byte(a.body)) != test.valid || (a.err != nil) != test.broken {
					t.Errorf("end %v, error %v, body %q", a.end, a.err, a.body)
				}
				synctest.Wait()
				if got := r.record().Outcome; got != test.outcome {
					t.Errorf("outcome %s, want %s", got, test.outcome)
				}
			})
		})
	}
}

func TestParseFault(t *testing.T) {
	good := map[string]Fault{
		"status,code=429,retry=2s,share=10%": {Kind: FaultStatus, Status: 429, RetryAfter: 2 * time.Second, Share: 0.1},
		"stall,after=3,delay=500ms,every=7":  {Kind: FaultStall, After: 3, Delay: 500 * ms, Every: 7},
		"cut,after=0":                        {Kind: FaultCut, After: -1},
		"reset,share=0.5":                    {Kind: FaultReset, Share: 0.5},
	}
	for text, want := range good {
		got, err := ParseFault(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
	}
	bad := map[string]string{
		"":                   `fault "": want one of status, reset, slow-headers, stall, cut, truncate, error, malformed`,
		"stall,delay=5":      `fault stall: delay: want a duration such as 250ms, got "5"`,
		"reset,share=120%":   `fault reset: share: want a share such as 10% or 0.1, got "120%"`,
		"status,code=200":    `fault status: code: want a number from 400 to 599, got "200"`,
		"status,colour=blue": `fault status: colour: want share, every, code, retry, after or delay`,
	}
	for text, want := range bad {
		if _, err := ParseFault(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzParseFault(f *testing.F) {
	for _, s := range []string{"status,code=429,retry=2s,share=10%", "stall,after=0,delay=500ms", "reset,every=7", "cut,", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		fault, err := ParseFault(s)
		if err != nil {
			return
		}
		if again, err := ParseFault(fault.String()); err != nil || again != fault {
			t.Fatalf("%q gave %+v, written as %q gave %+v, %v", s, fault, fault.String(), again, err)
		}
	})
}

func TestAccountIsBounded(t *testing.T) {
	bubble(t, Config{AccountRecords: 2, AccountChunks: 5}, func(r *rig) {
		for range 3 {
			r.post("/v1/chat/completions", chat("a", 4, ""))
		}
		records, dropped := r.server.Account()
		if len(records) != 2 || dropped != 1 {
			t.Fatalf("%d records, %d dropped", len(records), dropped)
		}
		if len(records[0].Chunks) != 4 || records[0].ChunksDropped || records[1].Chunks != nil || !records[1].ChunksDropped {
			t.Errorf("records %+v", records)
		}
	})
	bubble(t, Config{AccountRecords: -1}, func(r *rig) {
		r.post("/v1/chat/completions", chat("a", 4, ""))
		if records, dropped := r.server.Account(); len(records) != 0 || dropped != 1 {
			t.Errorf("%d records, %d dropped with the account off", len(records), dropped)
		}
	})
}

func TestAccountOverHTTP(t *testing.T) {
	bubble(t, Config{}, func(r *rig) {
		r.post("/v1/chat/completions", chat("a b", 2, ""), "X-Request-Id", "x")
		r.post("/v1/completions", `{"prompt":"a","max_tokens":3}`)
		a := r.get("/mock/account")
		var got []Record
		for line := range strings.Lines(a.body) {
			var rec Record
			if err := json.Unmarshal([]byte(line), &rec); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			got = append(got, rec)
		}
		want, _ := r.server.Account()
		if !reflect.DeepEqual(got, want) || len(got) != 2 {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if a.header.Get(accountHeader) != "0" || a.header.Get(startHeader) != fmt.Sprint(r.server.Start().UnixNano()) {
			t.Errorf("headers %v", a.header)
		}
	})
}

// TestSameSeedSameBytes runs a mixed load twice.
func TestSameSeedSameBytes(t *testing.T) {
	c := Config{Seed: 9, Engine: batch.Config{Speculation: []float64{2, 1}}, Faults: []Fault{{Kind: FaultTruncate, Share: 0.3}}}
	var runs [2][]string
	for i := range runs {
		bubble(t, c, func(r *rig) {
			for j := range 20 {
				a := r.post("/v1/chat/completions", chat(prompt(30+j, 20, "x"), 5+j, `,"stream_options":{"include_usage":true}`))
				for _, e := range a.events {
					runs[i] = append(runs[i], fmt.Sprint(e.at, e.text))
				}
			}
		})
	}
	if !slices.Equal(runs[0], runs[1]) {
		t.Error("two runs of one seed differ")
	}
	if len(runs[0]) < 100 {
		t.Errorf("only %d events", len(runs[0]))
	}
}
