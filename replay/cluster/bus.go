package cluster

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

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

// connect joins the server; seed is that of an nkey, instead of the bus's files.
func (b *Bus) connect(name, inbox, seed string) (*nats.Conn, error) {
	opts := []nats.Option{
		nats.Name("reprise " + name), nats.CustomInboxPrefix("_INBOX." + inbox), nats.MaxReconnects(-1),
		nats.ReconnectWait(200 * time.Millisecond), nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond), nats.Timeout(5 * time.Second),
		nats.PingInterval(2 * time.Second), nats.MaxPingsOutstanding(2),
		nats.ReconnectBufSize(-1), // a beat that waits for the network says nothing new
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
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
	if errors.Is(err, nats.ErrAuthorization) {
		return nil, trace.WithFix(fmt.Errorf("%s does not let this one in: %w", b.URL, err), "use --nats-creds FILE, --nats-nkey FILE, or the variable "+EnvToken)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.URL, err)
	}
	return nc, nil
}

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
