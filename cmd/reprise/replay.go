package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"reprise/analysis"
	"reprise/replay"
	"reprise/replay/protocol"
	"reprise/trace"
)

func replayCommand() *cli.Command {
	return &cli.Command{
		Name:      "replay",
		Usage:     "send a trace to an endpoint on its fixed schedule, open loop",
		ArgsUsage: "TRACE",
		Description: `Every request is sent at its recorded time, whatever became of the earlier
ones; how late this client was is in every record and leads the report. Literal
content is sent verbatim; lengths and block ids become text of exact length
whose prefixes repeat as the trace says. Keys are read from the environment.

Exit code 3: done, but the verdict is invalid, as when the client was much too
late; degraded is 0, with the reason in the report's first line.

` + sloHelp + `

Example:
   reprise mock --listen 127.0.0.1:8000 &
   reprise replay prod.parquet --url http://127.0.0.1:8000 --to 30s -o run/`,
		Flags: slices.Concat(selectionFlags(), loadFlags(), lawFlags(), targetFlags(), limitFlags(), besideFlags(), workersFlags(), lateFlags(), sloFlags(), ciFlags(), []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "run directory to write"},
			&cli.BoolFlag{Name: "force", Usage: "replace a run that is in the output directory"},
			&cli.BoolFlag{Name: "self-test", Usage: "measure this machine against a server of its own, on loopback: alone for some seconds, or up to 3 s before a run, which warns if the plan asks for more"},
			&cli.BoolFlag{Name: "dry-run", Usage: "print the plan and send nothing"},
			&cli.BoolFlag{Name: "json", Usage: "print the plan or the summary as one JSON object"},
			&cli.StringFlag{Name: "progress", Value: "auto", Usage: "auto (a dashboard on a terminal, else nothing), plain (a line a second), json (an object a second) or none; on standard error"},
			&cli.StringSliceFlag{Name: "label", Usage: "KEY=VALUE into run.json, such as hardware or server version (repeatable)"},
		}),
		Action: runReplay,
	}
}

func selectionFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "pace", Usage: "schedule: every request at its time, open loop; causal: also after those it comes after; think: by recorded waits, no due times after a session's start (default: schedule; causal with --users; think in a closed loop)"},
		&cli.StringFlag{Name: "history", Value: "recorded", Usage: "recorded or live: whose answers later turns of a conversation carry (live needs causal or think)"},
		&cli.DurationFlag{Name: "gap-cap", Usage: "longest wait after an earlier request (think)"},
		&cli.FloatFlag{Name: "speed", Value: 1, Usage: "time compression: 2 = twice as fast; changes nothing else"},
		&cli.DurationFlag{Name: "from", Usage: "leave out requests recorded before this time (start in); due times begin there"},
		&cli.DurationFlag{Name: "to", Usage: "leave out requests recorded at or after this time (end out)"},
		&cli.StringFlag{Name: "limit", Usage: "at most this many requests of the trace, such as 500 or 2k"},
		&cli.Uint64Flag{Name: "seed", Usage: "seed of prompt text and arrival laws (default: 0)"},
	}
}

func targetFlags() []cli.Flag {
	var names []string
	for _, p := range protocol.All {
		names = append(names, p.Name())
	}
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "url", Usage: "endpoint, such as http://staging:8000 (repeatable; requests go to them in turn)"},
		&cli.StringFlag{Name: "protocol", Value: replay.DefaultProtocol, Usage: strings.Join(names, ", ") + ", template"},
		&cli.StringFlag{Name: "template", Usage: "JSON file that describes another API: path, body, and where text, usage and end are"},
		&cli.StringSliceFlag{Name: "model", Usage: "NAME for all requests, or OLD=NEW for those that recorded OLD (repeatable; default: the one model served)"},
		&cli.StringSliceFlag{Name: "header", Aliases: []string{"H"}, Usage: "'Name: value' to send (repeatable, never split at commas); its value is not stored"},
		&cli.StringFlag{Name: "extra-body", Usage: "JSON object whose members are set in every request body"},
		&cli.StringFlag{Name: "api-key-env", Usage: "name of the environment variable that holds the API key"},
		&cli.StringFlag{Name: "stream", Value: "on", Usage: "on, off or recorded: whether to ask for streams; without one there is no TTFT"},
		&cli.StringFlag{Name: "output-length", Value: replay.DefaultOutput, Usage: "exact (min_tokens, ignore_eos), cap (max_tokens) or free: how many tokens to ask for"},
		&cli.BoolFlag{Name: "realtime", Value: true, Usage: "send from a thread that goes before all others, where the system allows it (Linux: root, CAP_SYS_NICE or a limit of RTPRIO); --realtime=false leaves that out"},
		&cli.BoolFlag{Name: "probe", Value: true, Usage: "ask the endpoint with a few small requests first: fields it takes, tokens its template adds; --probe=false leaves them out"},
		&cli.StringFlag{Name: "cache-salt", Value: "none", Usage: "none, run or session: a marker of 6 tokens at the head of each prompt, by seed, against caches that earlier runs have warmed"},
		&cli.StringFlag{Name: "flush", Usage: "URL to post to before the run, so that the server empties its prefix cache"},
		&cli.StringFlag{Name: "tokenizer", Usage: "tokenizer.json of the model: counts chunks and literal prompts for which nobody sends a count, and checks the words of made prompts"},
		&cli.StringFlag{Name: "ca-file", Usage: "PEM file with certificate authorities to trust beside the system's"},
		&cli.StringFlag{Name: "cert", Usage: "PEM file with the client's certificate, for servers that ask for one; with --key"},
		&cli.StringFlag{Name: "key", Usage: "PEM file with the private key of --cert"},
		&cli.StringFlag{Name: "unix-socket", Usage: "path of a Unix socket that all connections go to, whatever the host in --url"},
		&cli.StringFlag{Name: "proxy", Usage: "URL of an HTTP proxy, or none (default: as HTTP_PROXY, HTTPS_PROXY and NO_PROXY say)"},
		&cli.BoolFlag{Name: "http2", Usage: "speak HTTP/2 instead of HTTP/1.1, also with http URLs (h2c): answers share connections, so time stamps are less exact"},
		&cli.IntFlag{Name: "h2-conns", Usage: fmt.Sprintf("connections for each URL with --http2; more are opened when the server takes no more streams on them (default: %d)", replay.DefaultH2Conns)},
		&cli.BoolFlag{Name: "insecure", Usage: "do not check the server's certificate"},
	}
}

func limitFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "cancel", Value: "none", Usage: "requests to give up on purpose: none, recorded (as the trace says), after=2s or share=5%,after=2s"},
		&cli.IntFlag{Name: "max-in-flight", Usage: "cap on requests in flight; waits are counted and the run is labelled capped (default: none)"},
		&cli.DurationFlag{Name: "timeout", Value: replay.DefaultTimeout, Usage: "longest a request may take from sent; 0 = no limit"},
		&cli.DurationFlag{Name: "idle-timeout", Usage: "longest wait for a byte of an answer (default: no limit)"},
		&cli.DurationFlag{Name: "token-timeout", Usage: "longest wait for a token (default: no limit)"},
		&cli.StringFlag{Name: "abort-if", Usage: "end the run, with exit code 1 and everything written, once 50 requests have ended and this holds: error_rate>20%"},
		&cli.DurationFlag{Name: "grace", Usage: "how long requests in flight may go on after sending has stopped (default: their own limits; 30s after an interrupt)"},
	}
}

func runReplay(ctx context.Context, c *cli.Command) error {
	switch {
	case c.Bool("scenario-schema"):
		return writeJSON(c.Root().Writer, scenarioSchema())
	case c.String("file") != "":
		return replayScenario(ctx, c)
	}
	if c.Bool("self-test") && c.Args().Len() == 0 {
		return selfTestAlone(ctx, c)
	}
	config, err := replayConfig(c)
	if err != nil {
		return err
	}
	if err := config.Check(); err != nil {
		return misused{err, trace.Fix(err)}
	}
	if n := c.Int("repeat"); n < 1 {
		return misuse("give a number such as 3", "--repeat %d: must be above 0", n)
	}
	b, err := besideOf(c)
	if err != nil {
		return err
	}
	several, err := shared(c, config)
	if err != nil {
		return err
	}
	done, err := traceOf(ctx, c, config)
	if err != nil {
		return err
	}
	defer done()
	if c.Bool("self-test") && c.Bool("dry-run") {
		return misuse("leave one out: the test measures, the plan does not", "--self-test and --dry-run exclude each other")
	}
	if c.Bool("dry-run") {
		survey, err := replay.Look(ctx, config)
		if err != nil {
			return err
		}
		return printPlan(c, config, survey)
	}
	if len(config.URLs) == 0 {
		return misuse("name one with --url, such as --url http://localhost:8000; try it on the built-in server: reprise mock", "no target to replay against")
	}
	if err := b.listen(c); err != nil {
		return err
	}
	defer b.close()
	if several {
		return replayShared(ctx, c, config, b)
	}
	if n := c.Int("repeat"); n > 1 {
		return replayRepeated(ctx, c, config, n, b)
	}
	if err := prepareDir(c); err != nil {
		return err
	}
	if c.Bool("self-test") {
		if err := selfTestBefore(ctx, c, config); err != nil {
			return errors.Join(err, dropEmptyDir(c.String("output")))
		}
	}
	config.Dir = c.String("output")
	b.attach(c, config)
	config.Begin = func() error { return beginRun(c, config.Trace, config.Dir) }
	run, err := replay.Run(ctx, *config)
	b.close()
	if run == nil || run.Ended == nil {
		return errors.Join(err, dropEmptyDir(config.Dir))
	}
	return errors.Join(err, conclude(ctx, c, config.Dir, run))
}

// beginRun makes the run directory in the place of what was there.
func beginRun(c *cli.Command, trace, dir string) error {
	err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755))
	if err == nil && c.Args().Len() == 0 {
		err = keepWorkload(trace, dir)
	}
	return err
}

// traceOf finds or makes the trace of a run; done takes away what was made.
func traceOf(ctx context.Context, c *cli.Command, config *replay.Config) (done func(), err error) {
	done = func() {}
	if c.Args().Len() == 0 {
		if config.Trace, err = madeTrace(ctx, c, config); err != nil {
			return nil, err
		}
		return func() { os.RemoveAll(filepath.Dir(config.Trace)) }, nil
	}
	for _, f := range lawFlags() {
		if name := f.Names()[0]; c.IsSet(name) {
			return nil, misuse("leave one of them out", "--%s describes requests without a trace, but there is one", name)
		}
	}
	path, err := oneArg(c, "trace")
	if err != nil {
		return nil, err
	}
	if config.Trace, err = onDisk(c, path); err != nil {
		return nil, err
	}
	if config.Trace != path {
		done = func() { os.Remove(config.Trace) }
	}
	return done, nil
}

func replayConfig(c *cli.Command) (*replay.Config, error) {
	bad := func(flag string, err error) error {
		return misused{fmt.Errorf("--%s: %w", flag, err), trace.Fix(err)}
	}
	if _, err := judgingOf(c); err != nil {
		return nil, err
	}
	if err := checkJUnit(c); err != nil {
		return nil, err
	}
	config := &replay.Config{
		URLs: c.StringSlice("url"), Output: c.String("output-length"), MaxInFlight: c.Int("max-in-flight"),
		BytesTimeout: c.Duration("idle-timeout"), TokenTimeout: c.Duration("token-timeout"), Timeout: c.Duration("timeout"), Grace: c.Duration("grace"),
		TLS: replay.TLS{CAFile: c.String("ca-file"), CertFile: c.String("cert"), KeyFile: c.String("key"), Insecure: c.Bool("insecure")}, UnixSocket: c.String("unix-socket"), HTTP2: c.Bool("http2"), H2Conns: c.Int("h2-conns"), Proxy: c.String("proxy"), Version: version, Flags: publicFlags(c),
		Selection: replay.Selection{Speed: c.Float("speed"), From: c.Duration("from"), To: c.Duration("to"), Seed: c.Uint64("seed")},
	}
	for _, name := range []string{"timeout", "idle-timeout", "token-timeout", "grace", "gap-cap"} {
		if d := c.Duration(name); d < 0 {
			return nil, misuse("give a time such as 30s", "--%s %v: must not be below 0", name, d)
		}
	}
	if err := checkProgress(c); err != nil {
		return nil, err
	}
	if c.IsSet("grace") && config.Grace == 0 {
		config.Grace = -1
	}
	if config.Timeout == 0 {
		config.Timeout = -1
	}
	if config.Selection.Speed <= 0 {
		return nil, bad("speed", fmt.Errorf("%v: must be above 0", config.Selection.Speed))
	}
	if text := c.String("abort-if"); text != "" {
		list, err := analysis.ParseConditions(text)
		if err != nil || len(list) != 1 || list[0].Name != "error_rate" || list[0].Op != ">" || list[0].Change || list[0].Time || !(list[0].Value > 0 && list[0].Value < 1) {
			return nil, misuse("write it like 'error_rate>20%'", "--abort-if %q", text)
		}
		config.AbortErrorRate = list[0].Value
	}
	if (c.String("cert") == "") != (c.String("key") == "") {
		return nil, misuse("name both", "--cert and --key belong together")
	}
	var cerr error
	if config.Cancel, cerr = replay.ParseCancel(c.String("cancel")); cerr != nil {
		return nil, bad("cancel", cerr)
	}
	if config.GapCap = c.Duration("gap-cap"); c.IsSet("pace") {
		config.Pace = c.String("pace")
	}
	var err error
	if config.Protocol, err = protocolFlag(c); err != nil {
		return nil, bad("protocol", err)
	}
	if text := c.String("limit"); text != "" {
		if config.Selection.Limit, err = parseCount(text); err != nil {
			return nil, bad("limit", err)
		}
	}
	if err := loadConfig(c, config); err != nil {
		return nil, err
	}
	switch h := c.String("history"); h {
	case "recorded":
	case "live":
		config.History = replay.HistoryLive
	default:
		return nil, misuse("use recorded or live", "--history %q", h)
	}
	switch s := c.String("stream"); s {
	case "on":
	case "off", "recorded":
		config.Stream = replay.StreamMode(s)
	default:
		return nil, misuse("use on, off or recorded", "--stream %q", s)
	}
	if err := tokenizerFlag(c, config); err != nil {
		return nil, err
	}
	if err := contentFlags(c, config); err != nil {
		return nil, err
	}
	config.Flush = c.String("flush")
	if salt := c.String("cache-salt"); salt != "none" {
		config.Salt = replay.Salt(salt)
	}
	config.NoProbe, config.NoRealtime = !c.Bool("probe"), !c.Bool("realtime")
	config.Progress = progressTo(c)
	return config, nil
}

// protocolFlag returns the protocol by its name, or the one that --template
// describes.
func protocolFlag(c *cli.Command) (protocol.Protocol, error) {
	path, name := c.String("template"), c.String("protocol")
	switch {
	case path == "" && name == "template":
		return nil, trace.WithFix(errors.New("template needs a description"), "name it with --template FILE")
	case path == "":
		return protocol.ByName(name)
	case c.IsSet("protocol") && name != "template":
		return nil, trace.WithFix(fmt.Errorf("%s, but --template describes another", name), "leave one of them out")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t, err := protocol.ParseTemplate(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func tokenizerFlag(c *cli.Command, config *replay.Config) error {
	t, _, err := loadTokenizer(c)
	if t != nil {
		config.Tokenizer = func(text []byte) int { return t.Count(string(text)) }
	}
	return err
}

// contentFlags reads models, headers, key, extra body and labels.
func contentFlags(c *cli.Command, config *replay.Config) error {
	for _, text := range c.StringSlice("model") {
		from, to, mapped := strings.Cut(text, "=")
		switch {
		case mapped && to != "":
			if config.Models == nil {
				config.Models = map[string]string{}
			}
			config.Models[from] = to
		case mapped || text == "":
			return misuse("write NAME or OLD=NEW", "--model %q", text)
		case config.Model != "":
			return misuse("map them apart: --model OLD=NEW", "--model names two models for all requests: %s and %s", config.Model, text)
		default:
			config.Model = text
		}
	}
	for _, text := range c.StringSlice("header") {
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			return misuse("write it as 'Name: value'", "--header: a value without a colon (not shown, it may be a secret)")
		}
		config.Headers = append(config.Headers, protocol.Header{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)})
	}
	if text := c.String("extra-body"); text != "" {
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &members); err != nil {
			return misuse(`write it like '{"temperature": 0}'`, "--extra-body is no JSON object: %v", err)
		}
		config.ExtraBody = [][]byte{[]byte(text)}
	}
	if name := c.String("api-key-env"); name != "" {
		if config.APIKey = strings.TrimSpace(os.Getenv(name)); config.APIKey == "" {
			if !isName.MatchString(name) {
				return misuse("put the key in a variable and give the variable's name", "--api-key-env: not the name of a variable (not shown, it may be a secret)")
			}
			return misuse("export it in the shell that starts reprise", "--api-key-env %s: the variable is not set", name)
		}
	}
	for _, text := range c.StringSlice("label") {
		k, v, ok := strings.Cut(text, "=")
		if !ok || k == "" {
			return misuse("write it as KEY=VALUE", "--label %q", text)
		}
		if config.Labels == nil {
			config.Labels = map[string]string{}
		}
		config.Labels[k] = v
	}
	return nil
}

// isName tells the name of an environment variable from a key typed in its place.
var isName = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)

// publicFlags are the flags as given, for run.json. Values of headers and of
// extra bodies stay out: they may be secrets.
func publicFlags(c *cli.Command) map[string]string {
	out := map[string]string{}
	for _, name := range c.FlagNames() {
		switch name {
		case "header", "H":
			var names []string
			for _, h := range c.StringSlice("header") {
				n, _, _ := strings.Cut(h, ":")
				names = append(names, strings.TrimSpace(n))
			}
			out["header"] = strings.Join(names, ", ")
		case "extra-body":
			var members map[string]json.RawMessage
			if json.Unmarshal([]byte(c.String(name)), &members) == nil {
				out[name] = strings.Join(slices.Sorted(maps.Keys(members)), ", ")
			}
		case "proxy": // it may hold a password
			out[name] = "given"
		case "scrape":
			out[name] = strings.Join(publicPages(c), ", ")
		case "o", "output", "force", "json", "progress", "metrics-listen", "url", "label":
		default:
			out[name] = fmt.Sprint(c.Value(name))
		}
	}
	return out
}

// parseCount reads a whole number such as 500, 2k or 1.5M.
func parseCount(s string) (int64, error) {
	text, unit := s, 1.0
	for suffix, n := range map[string]float64{"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9} {
		if rest, ok := strings.CutSuffix(s, suffix); ok {
			text, unit = rest, n
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if n := v * unit; err != nil || !(n >= 1) || n > 1<<53 || n != float64(int64(n)) {
		return 0, trace.WithFix(fmt.Errorf("%q is no whole number above 0", s), "use a count such as 500, 2k or 1M")
	}
	return int64(v * unit), nil
}

// onDisk returns a path for the trace; standard input is copied to a file,
// since it is read more than once.
func onDisk(c *cli.Command, path string) (string, error) {
	if path != "-" {
		return path, nil
	}
	f, err := os.CreateTemp("", "reprise-stdin-*.parquet")
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := io.Copy(f, c.Root().Reader); err != nil {
		os.Remove(f.Name())
		return "", fmt.Errorf("standard input: %w", err)
	}
	return f.Name(), nil
}

// prepareDir makes the run directory. One that holds a run is refused without
// --force, one that holds anything else always.
func prepareDir(c *cli.Command) error {
	dir := c.String("output")
	if dir == "" {
		return misuse("name one with -o, such as -o run/", "no run directory to write")
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.MkdirAll(dir, 0o755)
	case err != nil:
		return err
	case len(entries) == 0:
		return nil
	}
	if !holdsRun(dir) && holdsNoFile(dir) { // of a start that was killed
		return errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755))
	}
	if !holdsRun(dir) {
		return trace.WithFix(fmt.Errorf("%s: not empty, and not a run directory", dir), "name another directory")
	}
	if !c.Bool("force") {
		return trace.WithFix(fmt.Errorf("%s: holds a run already", dir), "name another directory, or replace it with --force")
	}
	return nil // the old run goes when the new one begins
}

// holdsNoFile tells that there are directories in dir, and nothing in them.
func holdsNoFile(dir string) bool {
	return filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			return fs.ErrExist
		}
		return err
	}) == nil
}

// dropEmptyDir takes away the directory of a run that did not begin.
func dropEmptyDir(dir string) error {
	if holdsRun(dir) {
		return nil
	}
	os.Remove(filepath.Join(dir, "parts"))
	os.Remove(dir) // only if it is empty
	return nil
}
