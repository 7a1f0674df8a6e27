package cluster

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"reprise/trace"
)

// Variables of a worker's environment.
const (
	EnvSeed    = "REPRISE_NATS_SEED"    // nkey seed of this worker's user
	EnvToken   = "REPRISE_NATS_TOKEN"   // token of the server, where it has one
	EnvHeaders = "REPRISE_HEADERS"      // lines 'Name: value', the headers that the plan names
	EnvOffset  = "REPRISE_CLOCK_OFFSET" // for tests: how wrong this worker's clock is set
)

// A Bus says how to reach a NATS server. Secrets come from files and from the
// environment, never from the command line.
type Bus struct {
	URL     string
	Creds   string // file with a JWT and a seed
	NKey    string // file with a seed
	CA      string // PEM: whom to trust with tls:// URLs
	Cert    string // PEM: this side's certificate, with Key
	Key     string
	Cluster string // name of the run's workers on a server that others use too; "" = DefaultCluster
}

// DefaultCluster is the name of a cluster that has none.
const DefaultCluster = "default"

// Check refuses what cannot be right, and secrets in the URL.
func (b *Bus) Check() error {
	for part := range strings.SplitSeq(b.URL, ",") {
		u, err := url.Parse(part)
		if err != nil || u.Host == "" {
			return trace.WithFix(errors.New("--nats: not a URL (not shown, it may hold a secret)"), "write it like nats://host:4222 or tls://host:4222")
		}
		if !slices.Contains(schemes, u.Scheme) {
			return trace.WithFix(fmt.Errorf("--nats %s://%s: %q is no scheme of NATS", u.Scheme, u.Host, u.Scheme), "write it like nats://host:4222 or tls://host:4222")
		}
		if port, err := strconv.Atoi(cmp.Or(u.Port(), "4222")); err != nil || port < 1 || port > 65535 {
			return trace.WithFix(fmt.Errorf("--nats %s://%s: %s is no port", u.Scheme, u.Host, u.Port()), "give one from 1 to 65535, such as 4222")
		}
		if u.User != nil {
			return trace.WithFix(fmt.Errorf("--nats %s://...@%s: a secret on the command line is seen by all", u.Scheme, u.Host), "use --nats-creds FILE, --nats-nkey FILE, or the variable "+EnvToken)
		}
	}
	if (b.Cert == "") != (b.Key == "") {
		return trace.WithFix(errors.New("--nats-cert and --nats-key belong together"), "name both")
	}
	if strings.ContainsAny(b.cluster(), ".*> \t") {
		return trace.WithFix(fmt.Errorf("--cluster %q: not a name", b.Cluster), "use letters, digits and dashes")
	}
	return nil
}

// schemes of the URLs of NATS servers.
var schemes = []string{"nats", "tls", "ws", "wss"}

// CheckName refuses what cannot be the name of a worker: it is a part of the subjects of
// its messages, and the name of a directory.
func CheckName(name string) error {
	other := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_'
	}
	if name == "" || strings.ContainsFunc(name, other) {
		return trace.WithFix(fmt.Errorf("--name %q: it is a part of NATS subjects, and the name of a directory", name), "use letters, digits, - and _, such as worker-1")
	}
	return nil
}

// CheckFiles looks whether the files are what the flags say, before anything is begun.
// Nothing that is in them is shown.
func (b *Bus) CheckFiles() error {
	for _, f := range []struct {
		flag, file, what, fix string
		is                    func([]byte) bool
	}{
		{"nats-ca", b.CA, "no certificate in PEM is in it", "name the PEM file of the authority that has signed the server's certificate", x509.NewCertPool().AppendCertsFromPEM},
		{"nats-creds", b.Creds, "no JWT and seed are in it", "name a file such as nsc generate creds writes", isCreds},
		{"nats-nkey", b.NKey, "no seed of a user is in it", "name a file such as nk -gen user writes; the seed begins with SU", isUserSeed},
	} {
		if f.file == "" {
			continue
		}
		text, err := os.ReadFile(f.file)
		if err != nil {
			return trace.WithFix(fmt.Errorf("--%s: %w", f.flag, err), f.fix)
		}
		if !f.is(text) {
			return trace.WithFix(fmt.Errorf("--%s %s: %s", f.flag, f.file, f.what), f.fix)
		}
	}
	return b.checkPair()
}

// checkPair looks at this side's certificate and its key.
func (b *Bus) checkPair() error {
	if b.Cert == "" {
		return nil
	}
	const fix = "name PEM files, of a certificate and of the key that it was made with"
	for flag, file := range map[string]string{"nats-cert": b.Cert, "nats-key": b.Key} {
		if f, err := os.Open(file); err != nil {
			return trace.WithFix(fmt.Errorf("--%s: %w", flag, err), fix)
		} else {
			f.Close()
		}
	}
	if _, err := tls.LoadX509KeyPair(b.Cert, b.Key); err != nil {
		return trace.WithFix(fmt.Errorf("--nats-cert %s --nats-key %s: %w", b.Cert, b.Key, err), fix)
	}
	return nil
}

func isCreds(text []byte) bool {
	jwt, err := nkeys.ParseDecoratedJWT(text)
	return err == nil && jwt != "" && isUserSeed(text)
}

func isUserSeed(text []byte) bool {
	_, err := nkeys.ParseDecoratedUserNKey(text)
	return err == nil
}

func (b *Bus) cluster() string {
	if b.Cluster == "" {
		return DefaultCluster
	}
	return b.Cluster
}

// subject of one of a worker's requests. A worker's permissions end at its name.
func (b *Bus) subject(worker, what string) string {
	return "reprise." + b.cluster() + "." + worker + "." + what
}

// connect joins the server; seed is that of an nkey, instead of the bus's files. denied,
// if it is not nil, hears what the server does not allow later on.
func (b *Bus) connect(name, inbox, seed string, denied func(error)) (*nats.Conn, error) {
	opts := []nats.Option{
		nats.Name("reprise " + name), nats.CustomInboxPrefix("_INBOX." + inbox), nats.MaxReconnects(-1),
		nats.ReconnectWait(200 * time.Millisecond), nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond), nats.Timeout(5 * time.Second),
		nats.PingInterval(2 * time.Second), nats.MaxPingsOutstanding(2),
		nats.ReconnectBufSize(-1),   // a beat that waits for the network says nothing new
		nats.IgnoreAuthErrorAbort(), // the files are read anew with each try: credentials that have run out can be renewed
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if err = accessError(err); err != nil && denied != nil {
				denied(err)
			}
		}),
	}
	if b.CA != "" {
		opts = append(opts, nats.RootCAs(b.CA))
	}
	if b.Cert != "" {
		opts = append(opts, nats.ClientCert(b.Cert, b.Key))
	}
	switch token := os.Getenv(EnvToken); {
	case seed != "":
		opt, err := seedOption(seed)
		if err != nil {
			return nil, err
		}
		opts = append(opts, opt)
	case b.Creds != "":
		opts = append(opts, nats.UserCredentials(b.Creds))
	case b.NKey != "":
		opt, err := nats.NkeyOptionFromSeed(b.NKey)
		if err != nil {
			return nil, fmt.Errorf("--nats-nkey %s: %w", b.NKey, err)
		}
		opts = append(opts, opt)
	case token != "":
		opts = append(opts, nats.Token(token))
	}
	nc, err := nats.Connect(b.URL, opts...)
	if err != nil {
		return nil, b.refusal(err)
	}
	return nc, nil
}

const fixAccess = "use --nats-creds FILE, --nats-nkey FILE, or the variable " + EnvToken

// refusal says why a server is not reached, and the way out.
func (b *Bus) refusal(err error) error {
	said := fmt.Errorf("%s: %w", b.URL, err)
	text := err.Error()
	switch {
	case errors.Is(err, nats.ErrAuthorization):
		return trace.WithFix(fmt.Errorf("%s does not let this one in: %w", b.URL, err), fixAccess+"; it may also have run out, or its user may be bound to other hosts")
	case errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired):
		return trace.WithFix(fmt.Errorf("%s does not let this one in: %w", b.URL, err), "renew the credentials")
	case strings.Contains(text, "certificate required"), strings.Contains(text, "bad certificate"), strings.Contains(text, "after TLS handshake"):
		return trace.WithFix(said, "a server that closes after the handshake asks for a certificate that it trusts: --nats-cert FILE --nats-key FILE")
	case strings.Contains(text, "x509:"):
		return trace.WithFix(said, "name the authority that has signed the server's certificate, for the host that --nats names: --nats-ca FILE")
	case errors.Is(err, nats.ErrSecureConnRequired):
		return trace.WithFix(said, "write the URL with tls://")
	case errors.Is(err, nats.ErrNoServers):
		return trace.WithFix(fmt.Errorf("%s: no NATS server answers there", b.URL), fixServer)
	}
	return trace.WithFix(said, fixServer)
}

const fixServer = "start a NATS server there (nats-server), or set --nats right: host, and the port that it listens on for clients, mostly 4222"

// deniedSubject is how a server names what it does not allow.
var deniedSubject = regexp.MustCompile(`(?i)permissions violation for (publish|subscription) to "([^"]+)"`)

// accessError is what a server says of a user's rights after it has let it in; nil for
// anything else.
func accessError(err error) error {
	switch m := deniedSubject.FindStringSubmatch(err.Error()); {
	case m != nil && strings.EqualFold(m[1], "publish"):
		return trace.WithFix(fmt.Errorf("the NATS server does not let this user publish to %s", m[2]), fixRights)
	case m != nil:
		return trace.WithFix(fmt.Errorf("the NATS server does not let this user subscribe to %s", m[2]), fixRights)
	case errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked), errors.Is(err, nats.ErrAccountAuthExpired), errors.Is(err, nats.ErrAuthorization):
		return trace.WithFix(fmt.Errorf("the NATS server lets this user in no more: %w", err), "renew the credentials; their file is read anew with each try")
	}
	return nil
}

const fixRights = "give it the permissions of its role, as in replay/cluster/deploy/nats.conf; a worker's --name and --cluster are part of its subjects"

func seedOption(seed string) (nats.Option, error) {
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", EnvSeed, err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", EnvSeed, err)
	}
	return nats.Nkey(public, pair.Sign), nil
}
