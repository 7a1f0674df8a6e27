package cloud

import "testing"

func TestNames(t *testing.T) {
	for name, want := range map[string]struct {
		local  string
		remote bool
		base   string
	}{
		"file:///a/b%20c.csv":          {"/a/b c.csv", false, ""},
		"file://localhost/a.csv":       {"/a.csv", false, ""},
		"file://host/a.csv":            {"file://host/a.csv", true, "a.csv"},
		"/a/b.csv":                     {"/a/b.csv", false, ""},
		"a.csv":                        {"a.csv", false, ""},
		`c://a`:                        {`c://a`, false, ""},
		"dir/x://y":                    {"dir/x://y", false, ""},
		"s3://bucket/a/b.csv?region=x": {"s3://bucket/a/b.csv?region=x", true, "b.csv"},
		"gs://bucket/b.csv":            {"gs://bucket/b.csv", true, "b.csv"},
		"-":                            {"-", false, ""},
	} {
		if got := Local(name); got != want.local {
			t.Errorf("%s: local %s, want %s", name, got, want.local)
		}
		if got := IsRemote(name); got != want.remote {
			t.Errorf("%s: remote %v", name, got)
		}
		if want.remote && Base(name) != want.base {
			t.Errorf("%s: base %s", name, Base(name))
		}
	}
	if got := Join("s3://b/a?region=x", ".rejects"); got != "s3://b/a.rejects?region=x" {
		t.Error(got)
	}
}
