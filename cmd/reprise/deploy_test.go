package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/urfave/cli/v3"

	"reprise/replay/cluster"
)

// deployFile reads a file of replay/cluster/deploy.
func deployFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "replay", "cluster", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// takes holds arguments of reprise against its commands: each flag exists and takes its
// value, and a bus is one.
func takes(t *testing.T, args []string, env map[string]bool) {
	t.Helper()
	ran := false
	check := func(_ context.Context, c *cli.Command) error {
		ran = true
		bus := busOf(c)
		if err := bus.Check(); err != nil {
			return err
		}
		if key := c.String("api-key-env"); key != "" && !env[key] {
			return fmt.Errorf("--api-key-env %s, which the environment does not have", key)
		}
		if c.Name == "worker" && c.Args().Len() > 0 || c.Name == "replay" && c.Args().Len() != 1 {
			return fmt.Errorf("arguments %q", c.Args().Slice())
		}
		return nil
	}
	for _, c := range []*cli.Command{workerCommand(), replayCommand()} {
		if c.Name != args[0] {
			continue
		}
		c.Action = check
		prepare(c, nil, io.Discard, io.Discard)
		if err := c.Run(t.Context(), args); err != nil {
			t.Errorf("reprise %s: %v", strings.Join(args, " "), err)
		}
	}
	if !ran {
		t.Errorf("reprise %s: not run", strings.Join(args, " "))
	}
}

// ours are words that look like variables of Reprise.
var ours = regexp.MustCompile(`\bREPRISE_[A-Z_0-9]+`)

// TestDeployVariables: what the files call a variable is one, of the program or of the
// server's configuration; flags that comments name exist.
func TestDeployVariables(t *testing.T) {
	known := []string{cluster.EnvSeed, cluster.EnvToken, cluster.EnvHeaders}
	of := regexp.MustCompile(`(?m)^[^#\n]*(?:: |_)\$(REPRISE_[A-Z_0-9]+)`)
	for _, m := range of.FindAllStringSubmatch(deployFile(t, "nats.conf"), -1) {
		known = append(known, m[1])
	}
	for _, name := range []string{"nats.conf", "compose.yaml", "kubernetes.yaml", "reprise-worker.service", "Dockerfile"} {
		text := deployFile(t, name)
		for _, word := range ours.FindAllString(text, -1) {
			if !slices.Contains(known, word) {
				t.Errorf("%s: %s is no variable of reprise or of nats.conf", name, word)
			}
		}
		for _, m := range regexp.MustCompile(`(?m)^#\s+reprise ((?:worker|replay).*)$`).FindAllStringSubmatch(text, -1) {
			takes(t, strings.Fields(strings.Replace(m[1], "...", "t.parquet", 1)), nil)
		}
	}
}

// A manifest is what this test reads of Kubernetes' objects.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Spec     struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Args []string
					Env  []struct {
						Name      string
						ValueFrom struct{ FieldRef struct{ FieldPath string } }
					}
					VolumeMounts []struct{ Name, SubPathExpr string }
				}
				Volumes []struct{ Name string }
			}
		}
	}
}

func TestDeployKubernetes(t *testing.T) {
	documents := strings.Split(deployFile(t, "kubernetes.yaml"), "\n---\n")
	for _, text := range documents {
		var m manifest
		if err := yaml.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		if m.Kind != "Job" {
			continue
		}
		spec := m.Spec.Template.Spec
		for _, c := range spec.Containers {
			env, expand := map[string]bool{}, []string{}
			for _, e := range c.Env {
				env[e.Name] = true
				expand = append(expand, "$("+e.Name+")", "7")
			}
			args := strings.Split(strings.NewReplacer(expand...).Replace(strings.Join(c.Args, "\n")), "\n")
			if strings.Contains(strings.Join(args, " "), "$(") {
				t.Errorf("%s: %q: a variable that the container does not have", m.Metadata.Name, args)
			}
			takes(t, args, env)
			for _, mount := range c.VolumeMounts {
				if !slices.ContainsFunc(spec.Volumes, func(v struct{ Name string }) bool { return v.Name == mount.Name }) {
					t.Errorf("%s: no volume %s", m.Metadata.Name, mount.Name)
				}
			}
		}
		decodes(t, text)
	}
}

// decodes has kubectl read an object into its types, without a server, and looks for
// fields that it does not know: those are gone.
func decodes(t *testing.T, text string) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("no kubectl to read the manifest with")
	}
	cmd := exec.Command(kubectl, "set", "image", "--local", "-f", "-", "-o", "json", "*=reprise:checked")
	cmd.Stdin = strings.NewReader(text)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kubectl: %v\n%s", err, &stderr)
	}
	var wrote, read any
	if err := yaml.Unmarshal([]byte(text), &wrote); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &read); err != nil {
		t.Fatal(err)
	}
	within(t, "", wrote, read)
}

// within tells which fields of a are not in b.
func within(t *testing.T, at string, a, b any) {
	switch a := a.(type) {
	case map[string]any:
		have, _ := b.(map[string]any)
		for key, value := range a {
			if _, there := have[key]; !there {
				t.Errorf("kubectl does not know %s.%s", at, key)
				continue
			}
			within(t, at+"."+key, value, have[key])
		}
	case []any:
		have, _ := b.([]any)
		if len(have) != len(a) {
			t.Errorf("%s: %d of %d", at, len(have), len(a))
			return
		}
		for i := range a {
			within(t, fmt.Sprintf("%s[%d]", at, i), a[i], have[i])
		}
	}
}

// A composition is what compose.yaml may hold, by the Compose specification; an unknown
// key is an error.
type composition struct {
	Services map[string]struct {
		Image       string   `yaml:"image"`
		Command     []string `yaml:"command"`
		Environment []string `yaml:"environment"`
		Configs     []struct {
			Source string `yaml:"source"`
			Target string `yaml:"target"`
		} `yaml:"configs"`
		Volumes     []string `yaml:"volumes"`
		Tmpfs       []string `yaml:"tmpfs"`
		Healthcheck struct {
			Test     []string `yaml:"test"`
			Interval string   `yaml:"interval"`
			Retries  int      `yaml:"retries"`
		} `yaml:"healthcheck"`
		DependsOn map[string]struct {
			Condition string `yaml:"condition"`
		} `yaml:"depends_on"`
		Ulimits map[string]int `yaml:"ulimits"`
	} `yaml:"services"`
	Volumes map[string]struct{} `yaml:"volumes"`
	Configs map[string]struct {
		Content string `yaml:"content"`
	} `yaml:"configs"`
}

func TestDeployCompose(t *testing.T) {
	var c composition
	if err := yaml.UnmarshalWithOptions([]byte(deployFile(t, "compose.yaml")), &c, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	for name, s := range c.Services {
		for other := range s.DependsOn {
			if len(c.Services[other].Healthcheck.Test) == 0 {
				t.Errorf("%s waits until %s is healthy, which says nothing of it", name, other)
			}
		}
		if strings.Contains(strings.Join(s.Command, " "), "TOKEN") {
			t.Errorf("%s: a secret on the command line: %q", name, s.Command)
		}
		if name != "nats" {
			takes(t, s.Command, nil)
		}
	}
	t.Setenv(cluster.EnvToken, "t0123456789abcdef")
	conf := filepath.Join(t.TempDir(), "reprise.conf")
	if err := os.WriteFile(conf, []byte(strings.ReplaceAll(c.Configs["nats"].Content, "$$", "$")), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := server.ProcessConfigFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	if opts.Authorization != os.Getenv(cluster.EnvToken) || !opts.JetStream || opts.HTTPPort != 8222 {
		t.Errorf("the server's configuration is %+v", opts)
	}
}

func TestDeploySystemd(t *testing.T) {
	text := deployFile(t, "reprise-worker.service")
	start := regexp.MustCompile(`(?m)^ExecStart=\S*/reprise (.*)$`).FindStringSubmatch(text)
	if start == nil {
		t.Fatal("no ExecStart")
	}
	takes(t, strings.Fields(strings.NewReplacer("${NATS}", "tls://nats.example:4222", "%d", "/run/credentials", "%l", "host").Replace(start[1])), nil)
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze to verify the unit with")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "reprise-worker.service")
	if err := os.WriteFile(unit, []byte(strings.Replace(text, "/usr/local/bin/reprise", program, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(verify, "verify", unit).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "reprise-worker") {
			t.Errorf("systemd-analyze verify: %v: %s", err, line)
		}
	}
}
