package replay_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"reprise/analysis/prefix"
	"reprise/formats"
	"reprise/formats/mooncake"
	"reprise/formats/source"
	"reprise/replay"
	"reprise/replay/mock"
	"reprise/replay/mock/batch"
	"reprise/replay/protocol"
	"reprise/trace"
	"reprise/trace/results"
)

// shared returns a file of the public traces, or skips.
func shared(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("REPRISE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("public traces are not here (set REPRISE_SHARED): %v", err)
	}
	return path
}

func importMooncake(t *testing.T, path string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "t.parquet")
	f, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	refuse := func(e *trace.RowError) error { return e }
	if _, err := formats.Import(t.Context(), &mooncake.Importer{}, []*source.Source{source.New(path, nil)}, f, 0, trace.Step{}, refuse); err != nil {
		t.Fatal(err)
	}
	return out
}

func rowsOf(t *testing.T, path string) map[int64]trace.Request {
	t.Helper()
	r, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rows := map[int64]trace.Request{}
	for row, err := range r.Rows() {
		if err != nil {
			t.Fatal(err)
		}
		rows[row.ID] = row
	}
	return rows
}

// Times of the client and of the mock are of one clock in one process. What the
// client reads is later than what the mock wrote, by what the loopback and two
// busy cores take: half of all requests within typicalLag, none beyond worstLag.
const (
	typicalLag = 250 * time.Millisecond
	worstLag   = 10 * time.Second
)

// The main job on a real trace: three recorded minutes in 18 s.
func TestConversationTraceAccountsAgree(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 18 s of real time")
	}
	t.Parallel()
	path := importMooncake(t, shared(t, "data/mooncake/conversation_trace.jsonl"))
	rows := rowsOf(t, path)

	server := mock.New(mock.Config{
		Engine:         batch.Config{PrefillRate: 5e6, StepBase: 6 * time.Millisecond, StepPerSequence: -1, MaxBatch: 10_000, KVTokens: 1 << 40, BlockTokens: 512, PrefillChunk: 1 << 30},
		TokensPerChunk: 3, // so that a chunk is not a token
		AccountChunks:  4_000_000,
	})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, ln) }()
	dir := t.TempDir()
	const part = 3 * time.Minute
	run, err := replay.Run(t.Context(), replay.Config{
		Trace: path, Dir: dir, URLs: []string{"http://" + ln.Addr().String()}, Protocol: protocol.Completions{},
		Selection: replay.Selection{Speed: 10, To: part},
	})
	stop()
	<-served
	if err != nil {
		t.Fatal(err)
	}
	var want int64
	for _, r := range rows {
		if r.Arrival.Value < part {
			want++
		}
	}
	if run.Ended.Sent != want || run.Ended.Unsent != 0 {
		t.Errorf("sent %d, unsent %d of %d", run.Ended.Sent, run.Ended.Unsent, want)
	}
	got := resultsOf(t, dir, want)
	records, dropped := server.Account()
	if dropped != 0 {
		t.Fatalf("the mock dropped %d records", dropped)
	}
	compareAccounts(t, rows, got, records)
	comparePrefixHits(t, rows, records)
}

func resultsOf(t *testing.T, dir string, want int64) map[int64]results.Result {
	t.Helper()
	o, err := results.OpenRun(dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[int64]results.Result{}
	for r, err := range o.Results() {
		if err != nil {
			t.Fatal(err)
		}
		if _, twice := got[r.ID]; twice {
			t.Errorf("id %d recorded twice", r.ID)
		}
		got[r.ID] = r
	}
	if int64(len(got)) != want {
		t.Errorf("%d results, want %d", len(got), want)
	}
	return got
}

func compareAccounts(t *testing.T, rows map[int64]trace.Request, got map[int64]results.Result, records []mock.Record) {
	t.Helper()
	var lags []time.Duration
	seen := map[int64]bool{}
	for _, m := range records {
		var id int64
		if _, err := fmt.Sscanf(m.RequestID, "reprise-%d", &id); err != nil {
			continue // the probe
		}
		r, row := got[id], rows[id]
		seen[id] = true
		sum, known := results.LedgerTokens(r.Ledger)
		switch {
		case r.Outcome != results.OutcomeOK:
			t.Errorf("id %d: %s %s", id, r.Outcome, r.Cause.Value)
		case !known || sum != r.OutputTokens.Value || r.LedgerDifference.Or(-1) != 0:
			t.Errorf("id %d: ledger sum %d (known %v), usage %d, difference %v", id, sum, known, r.OutputTokens.Value, r.LedgerDifference)
		case int64(m.SentTokens) != r.OutputTokens.Value || r.OutputTokens.Value != max(1, row.OutputTokens.Value):
			t.Errorf("id %d: mock sent %d tokens, client booked %d, trace says %d", id, m.SentTokens, r.OutputTokens.Value, row.OutputTokens.Value)
		case int64(m.PromptTokens) != r.CountedInputTokens.Value || r.CountedInputTokens.Value != row.InputTokens.Value:
			t.Errorf("id %d: mock counted %d prompt tokens, client booked %d, trace says %d", id, m.PromptTokens, r.CountedInputTokens.Value, row.InputTokens.Value)
		case int64(m.CachedTokens) != r.CachedTokens.Value:
			t.Errorf("id %d: mock cached %d, client booked %d", id, m.CachedTokens, r.CachedTokens.Value)
		}
		i := 0
		for c := range results.Chunks(r.Ledger) {
			if !c.HasTokens() {
				continue
			}
			if i < len(m.Chunks) && c.Tokens != trace.Some(m.Chunks[i].Tokens) {
				t.Errorf("id %d chunk %d: mock wrote %d tokens, client booked %d", id, i, m.Chunks[i].Tokens, c.Tokens.Value)
			}
			i++
		}
		if i != len(m.Chunks) {
			t.Errorf("id %d: mock wrote %d chunks, client booked %d", id, len(m.Chunks), i)
			continue
		}
		// From the arrival at the mock to its last chunk, against sent to last token.
		lag := (r.LastToken.Value - r.Sent.Value) - (m.Chunks[i-1].At - m.Arrival)
		if lag < -time.Millisecond || lag > worstLag {
			t.Errorf("id %d: the client saw the last token %v later than the mock wrote it", id, lag)
		}
		lags = append(lags, lag)
	}
	if len(seen) != len(got) {
		t.Errorf("the mock saw %d requests, the client recorded %d", len(seen), len(got))
	}
	slices.Sort(lags)
	if len(lags) > 0 {
		t.Logf("client behind mock at the last token: p50 %v, p99 %v, max %v (n %d)", lags[len(lags)/2], lags[len(lags)*99/100], lags[len(lags)-1], len(lags))
		if lags[len(lags)/2] > typicalLag {
			t.Errorf("half of the requests were read over %v late", typicalLag)
		}
	}
}

// comparePrefixHits computes the hits from block ids in the order in which the
// mock saw the requests. The mock caches whole blocks only.
func comparePrefixHits(t *testing.T, rows map[int64]trace.Request, records []mock.Record) {
	t.Helper()
	slices.SortFunc(records, func(a, b mock.Record) int { return int(a.Ordinal - b.Ordinal) })
	var cache prefix.Infinite
	var sum prefix.Hits
	for _, m := range records {
		var id int64
		if _, err := fmt.Sscanf(m.RequestID, "reprise-%d", &id); err != nil {
			continue
		}
		row := rows[id]
		whole := row.InputTokens.Value / 512
		h := cache.Observe("", row.Blocks[:whole], 512, -1)
		if int64(m.HitBlocks) != h.HitBlocks {
			t.Errorf("id %d: the mock hit %d blocks, block ids say %d of %d", id, m.HitBlocks, h.HitBlocks, whole)
		}
		sum.Add(h)
	}
	t.Logf("prefix hits: %d of %d whole blocks", sum.HitBlocks, sum.Blocks)
	if sum.HitBlocks == 0 {
		t.Error("no hit at all: the trace is known to share prefixes")
	}
}
