package baseten_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"reprise/formats/baseten"
	"reprise/trace"
)

// TestSessionColumn follows the rule of the format, and says what its older
// rule would have chosen.
func TestSessionColumn(t *testing.T) {
	rows := []cells{ // provided never repeats, poor man does
		base(1, cells{"provided_session_id": "a", "poor_man_session_id": int64(1), "tier": "t"}),
		base(2, cells{"provided_session_id": "b", "poor_man_session_id": int64(1), "tier": ""}),
		base(3, cells{"poor_man_session_id": int64(2), "tier": "t"}),
	}
	without := func(names ...string) []arrow.Field {
		return slices.DeleteFunc(plainTypes(), func(f arrow.Field) bool { return slices.Contains(names, f.Name) })
	}
	for _, c := range []struct {
		name, flag string
		fields     []arrow.Field
		want       string // sessions, - for none
		evidence   string
	}{
		{"both", "", plainTypes(), "a b -", "the column is there; by values that repeat it would be poor_man_session_id; 2 of 3 rows have a session"},
		{"poor man only", "", without("provided_session_id"), "1 1 2", "provided_session_id is not there; 3 of 3 rows have a session"},
		{"neither", "", without("provided_session_id", "poor_man_session_id"), "- - -", "no session column is there; 0 of 3 rows have a session"},
		{"given", "poor_man_session_id", plainTypes(), "1 1 2", "given; 3 of 3 rows have a session"},
		{"given none", "none", plainTypes(), "- - -", "given; by values that repeat it would be poor_man_session_id; 0 of 3 rows have a session"},
		{"another column", "tier", plainTypes(), "t - t", "given; by values that repeat it would be poor_man_session_id; 2 of 3 rows have a session"},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := asParquet(t, record(t, c.fields, rows))
			in := mustImport(t, &baseten.Importer{SessionColumn: c.flag}, "x.parquet", data)
			var got []string
			for _, r := range in.rows {
				got = append(got, r.Session.Or("-"))
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("sessions %v, want %s", got, c.want)
			}
			if g := in.meta.Guesses[0]; g.Evidence != c.evidence || g.Flag != "--session-column" {
				t.Errorf("guess %+v, want %s", g, c.evidence)
			}
			sameContent(t, exported(t, in), data)
		})
	}
	_, err := tryImport(t, &baseten.Importer{SessionColumn: "user"}, save(t, "x.parquet", asParquet(t, record(t, only(plainTypes(), required...), rows))))
	if err == nil || !strings.HasSuffix(err.Error(), "x.parquet: no column user, which --session-column names; the table has timestamp_start_unix_ms, prompt, input_tokens, output_tokens") {
		t.Errorf("error %v", err)
	}
}

func sameContent(t *testing.T, got, want []byte) {
	t.Helper()
	a, b := content(t, got), content(t, want)
	if len(a) != len(b) {
		t.Fatalf("%d rows, want %d", len(a), len(b))
	}
	for i := range a {
		for k := range b[i] {
			if x, y := trimmed(a[i][k]), trimmed(b[i][k]); x != y {
				t.Errorf("row %d: %s is %v, want %v", i, k, x, y)
			}
		}
		if len(a[i]) != len(b[i]) {
			t.Errorf("row %d: %v, want %v", i, a[i], b[i])
		}
	}
}

func trimmed(v any) string { return strings.TrimSpace(lineOf(v)) }

// TestTurns orders turns by arrival over files, and derives think times.
func TestTurns(t *testing.T) {
	s := func(at, e2e int64) cells {
		row := base(at, cells{"provided_session_id": "s"})
		if e2e >= 0 {
			row["duration_e2e_ms"] = e2e
		}
		return row
	}
	late := asParquet(t, record(t, plainTypes(), []cells{s(9000, 10), s(5000, -1), base(1500, nil)}))
	early := asArrow(t, record(t, field("provided_session_id", arrow.BinaryTypes.LargeString), []cells{s(2000, 2500), s(1000, 400)}))
	in, err := tryImport(t, &baseten.Importer{}, save(t, "late.parquet", late), save(t, "early.arrow", early))
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		at    int64
		turn  trace.Optional[int32]
		after int64
		delay trace.Optional[time.Duration]
	}
	unknown := trace.Optional[time.Duration]{}
	for i, want := range []row{
		{0, trace.Some(int32(0)), -1, unknown},
		{500, trace.Optional[int32]{}, -1, unknown},
		{1000, trace.Some(int32(1)), 4, trace.Some(600 * time.Millisecond)},
		{4000, trace.Some(int32(2)), 3, trace.Some(500 * time.Millisecond)},
		{8000, trace.Some(int32(3)), 1, unknown}, // the turn before has no duration
	} {
		r := in.rows[i]
		got := row{r.Arrival.Value.Milliseconds(), r.Turn, -1, r.Delay}
		if len(r.After) == 1 && r.After[0].Kind == trace.AfterTurn {
			got.after = r.After[0].ID
		}
		if got != want {
			t.Errorf("row %d is %+v, want %+v", i, got, want)
		}
	}
	if in.meta.Dialect != "Parquet and Arrow IPC file" {
		t.Errorf("dialect %q", in.meta.Dialect)
	}
}

// TestOverlap has a turn that began before the one before it ended.
func TestOverlap(t *testing.T) {
	in := mustImport(t, &baseten.Importer{}, "x.parquet", asParquet(t, record(t, plainTypes(), []cells{
		base(0, cells{"provided_session_id": "s", "duration_e2e_ms": int64(5000)}), base(1000, cells{"provided_session_id": "s"}),
	})))
	if got := in.rows[1].Delay; got != trace.Some(time.Duration(0)) {
		t.Errorf("delay %v, want 0", got)
	}
}
