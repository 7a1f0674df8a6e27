package instant_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"reprise/formats/instant"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"2023-11-16 18:17:03.9799600":         "2023-11-16T18:17:03.9799600Z no zone",
		"2024-05-10 00:00:00.009930+00:00":    "2024-05-10T00:00:00.009930Z",
		"2024-05-12 00:00:00+00:00":           "2024-05-12T00:00:00Z",
		"2024-10-15T12:00:00.269Z":            "2024-10-15T12:00:00.269Z",
		"2024-02-29T23:59:59.123456789+05:30": "2024-02-29T18:29:59.123456789Z",
		"2024-03-01 00:00:00-0800":            "2024-03-01T08:00:00Z",
		"1999-12-31 23:59:59 UTC":             "1999-12-31T23:59:59Z",
		"1969-12-31T23:59:59.5Z":              "1969-12-31T23:59:59.5Z",
		"2024-10-15T12:00:00+08":              "2024-10-15T04:00:00Z",
	} {
		s, err := instant.Parse([]byte(text))
		got := fmt.Sprintf("%sZ", time.Unix(0, s.NS).UTC().Format("2006-01-02T15:04:05."+"000000000"[:s.Digits]))
		if s.Digits == 0 {
			got = time.Unix(0, s.NS).UTC().Format("2006-01-02T15:04:05Z")
		}
		if !s.Zoned {
			got += " no zone"
		}
		if err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "2023-11-16", "2023-11-16 18:17", "2023-13-16 18:17:03", "2023-02-29 18:17:03", "2023-11-16 24:00:00", "2023-11-16 18:17:03.",
		"2023-11-16 18:17:03.1234567891", "2023-11-16 18:17:03 MEZ", "2023-11-16 18:17:03+", "2023-11-16 18:17:03+1:00", "2023-11-16_18:17:03", "0001-01-01 00:00:00", "2400-01-01 00:00:00"} {
		if s, err := instant.Parse([]byte(text)); err == nil {
			t.Errorf("%q was read as %v", text, s)
		}
	}
}

// Every day from 1678 to 2261 is where the standard library has it.
func TestCalendar(t *testing.T) {
	for day := time.Date(1678, 1, 1, 1, 2, 3, 4, time.UTC); day.Year() < 2262; day = day.AddDate(0, 0, 1) {
		s, err := instant.Parse([]byte(day.Format("2006-01-02T15:04:05.999999999Z")))
		if err != nil || s.NS != day.UnixNano() {
			t.Fatalf("%v: %d, %v", day, s.NS, err)
		}
	}
}

func TestUnits(t *testing.T) {
	for _, c := range []struct {
		text string
		unit time.Duration
		want int64
	}{
		{"3435.948056", time.Second, 3435948056000}, {"0.0", time.Second, 0}, {"-1.5", time.Millisecond, -1500000}, {"1700000000.123456789", time.Second, 1700000000123456789},
		{"1.7e9", time.Second, 1700000000e9}, {"1e-9", time.Second, 1}, {"4e-10", time.Second, 0}, {"5e-10", time.Second, 1}, {"-5e-10", time.Second, -1},
		{"1760587666509217", time.Microsecond, 1760587666509217000}, {"12.0000000000000000000001", time.Nanosecond, 12}, {".5", time.Second, 5e8}, {"7.", time.Second, 7e9},
		{"0e999999", time.Second, 0}, {"1e-999999", time.Second, 0},
	} {
		if got, err := instant.Units([]byte(c.text), c.unit); err != nil || int64(got) != c.want {
			t.Errorf("%s of %v: %d, %v", c.text, c.unit, got, err)
		}
	}
	for _, text := range []string{"", "-", ".", "e5", "1e", "1.2.3", "NaN", "inf", "0x10", "1_000", "1e99", "99999999999999999999"} {
		if got, err := instant.Units([]byte(text), time.Second); err == nil {
			t.Errorf("%q was read as %d", text, got)
		}
	}
}

func FuzzUnits(f *testing.F) {
	f.Add("3435.948056")
	f.Add("-1e-7")
	f.Fuzz(func(t *testing.T, text string) {
		ns, err := instant.Units([]byte(text), time.Second)
		if err != nil {
			return
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil && v == 0 {
			t.Fatalf("%q was read as %d", text, ns)
		}
		if diff := math.Abs(v*1e9 - float64(ns)); diff > math.Max(1, math.Abs(v*1e9)*1e-12) {
			t.Errorf("%q: %d", text, ns)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("2023-11-16 18:17:03.9799600")
	f.Add("2024-10-15T12:00:00.269Z")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := instant.Parse([]byte(text))
		if err != nil {
			return
		}
		again, err := instant.Parse([]byte(time.Unix(0, s.NS).UTC().Format(time.RFC3339Nano)))
		if year := time.Unix(0, s.NS).UTC().Year(); year >= 1678 && year <= 2261 && (err != nil || again.NS != s.NS) {
			t.Errorf("%q: %d, again %d, %v", text, s.NS, again.NS, err)
		}
	})
}
