package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
	"github.com/rogpeppe/go-internal/testscript"
)

// natsServer KIND starts a NATS server, and sets BUS to its URL. Keys and certificates
// that it lets in, and others, are files in the directory of the script.
//
//	conf    the configuration of replay/cluster/deploy, with certificates of its own authority
//	verify  the same, where clients show certificates too
//	jwt     an operator, an account and users; no JetStream
func natsServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: nats-server conf|verify|jwt")
	}
	var opts *server.Options
	switch args[0] {
	case "conf":
		opts = confServer(ts, func(text string) string { return text })
	case "verify":
		opts = confServer(ts, func(text string) string { return strings.Replace(text, "verify: false", "verify: true", 1) })
	case "jwt":
		opts = jwtServer(ts)
	default:
		ts.Fatalf("nats-server %s", args[0])
	}
	opts.Host, opts.Port, opts.NoLog, opts.NoSigs = "127.0.0.1", server.RANDOM_PORT, true, true
	s, err := server.NewServer(opts)
	ts.Check(err)
	s.Start()
	ts.Defer(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(patience) {
		ts.Fatalf("the NATS server is not ready after %v", patience)
	}
	ts.Setenv("BUS", s.ClientURL())
}

// confServer has the configuration that users are given.
func confServer(ts *testscript.TestScript, change func(string) string) *server.Options {
	text, err := os.ReadFile(filepath.Join(ts.Getenv("TESTDATA"), "..", "replay", "cluster", "deploy", "nats.conf"))
	ts.Check(err)
	certificates(ts)
	pairs := []string{
		"$REPRISE_NATS_CERT", ts.MkAbs("server.pem"), "$REPRISE_NATS_KEY", ts.MkAbs("server-key.pem"), "$REPRISE_NATS_CA", ts.MkAbs("ca.pem"),
		"$REPRISE_NATS_STORE", ts.MkAbs("jetstream"),
	}
	for variable, file := range map[string]string{
		"$REPRISE_NKEY_COORDINATOR": "coordinator.nk", "$REPRISE_NKEY_1": "worker-1.nk", "$REPRISE_NKEY_2": "worker-2.nk", "$REPRISE_NKEY_3": "worker-3.nk", "$REPRISE_NKEY_4": "worker-4.nk",
	} {
		user, public := newKey(ts, nkeys.CreateUser)
		ts.Check(os.WriteFile(ts.MkAbs(file), seedOf(ts, user), 0o600))
		pairs = append(pairs, variable, public)
	}
	for i := 1; i < len(pairs); i += 2 {
		pairs[i] = `"` + pairs[i] + `"`
	}
	conf := ts.MkAbs("nats.conf")
	ts.Check(os.WriteFile(conf, []byte(strings.NewReplacer(pairs...).Replace(change(string(text)))), 0o600))
	opts, err := server.ProcessConfigFile(conf)
	ts.Check(err)
	return opts
}

func newKey(ts *testscript.TestScript, create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
	pair, err := create()
	ts.Check(err)
	public, err := pair.PublicKey()
	ts.Check(err)
	return pair, public
}

func seedOf(ts *testscript.TestScript, pair nkeys.KeyPair) []byte {
	seed, err := pair.Seed()
	ts.Check(err)
	return seed
}

// certificates writes those of an authority, a server and a client, and another authority.
func certificates(ts *testscript.TestScript) {
	ca, caKey := certify(ts, "ca", nil, nil)
	certify(ts, "other-ca", nil, nil)
	certify(ts, "server", ca, caKey)
	certify(ts, "client", ca, caKey)
}

// certify writes NAME.pem and NAME-key.pem, signed by an authority, or as one.
func certify(ts *testscript.TestScript, name string, ca *x509.Certificate, caKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ca == nil {
		c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true, x509.KeyUsageCertSign
		ca, caKey = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, ca, &key.PublicKey, caKey)
	ts.Check(err)
	keyDER, err := x509.MarshalECPrivateKey(key)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(name+"-key.pem"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), 0o600))
	signed, err := x509.ParseCertificate(der)
	ts.Check(err)
	return signed, key
}

// jwtServer has the users of the operator that nats.conf describes, in a resolver in
// memory: coordinator, worker-1 and worker-2 by a role with their names in its
// permissions; expired, short (2 s from now on), and mute, which may not say hello.
func jwtServer(ts *testscript.TestScript) *server.Options {
	operator, operatorID := newKey(ts, nkeys.CreateOperator)
	account, accountID := newKey(ts, nkeys.CreateAccount)
	_, systemID := newKey(ts, nkeys.CreateAccount)
	role, roleID := newKey(ts, nkeys.CreateAccount)
	scope := jwt.NewUserScope()
	scope.Key, scope.Role = roleID, "worker"
	scope.Template.Pub.Allow.Add("reprise.default.{{name()}}.*", "$JS.API.STREAM.INFO.*")
	scope.Template.Sub.Allow.Add("_INBOX.{{name()}}.>")
	claims := jwt.NewAccountClaims(accountID)
	claims.SigningKeys.AddScopedSigner(scope)
	resolver := &server.MemAccResolver{}
	for id, c := range map[string]*jwt.AccountClaims{accountID: claims, systemID: jwt.NewAccountClaims(systemID)} {
		token, err := c.Encode(operator)
		ts.Check(err)
		ts.Check(resolver.Store(id, token))
	}
	grant := func(name string, signer nkeys.KeyPair, change func(*jwt.UserClaims)) {
		user, id := newKey(ts, nkeys.CreateUser)
		u := jwt.NewUserClaims(id)
		u.Name, u.IssuerAccount = name, accountID
		if signer == role {
			u.SetScoped(true)
		}
		change(u)
		token, err := u.Encode(signer)
		ts.Check(err)
		text, err := jwt.FormatUserConfig(token, seedOf(ts, user))
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(name+".creds"), text, 0o600))
	}
	usual := func(*jwt.UserClaims) {}
	grant("worker-1", role, usual)
	grant("worker-2", role, usual)
	grant("short", role, func(u *jwt.UserClaims) { u.Expires = time.Now().Add(2 * time.Second).Unix() })
	grant("expired", role, func(u *jwt.UserClaims) { u.Expires = time.Now().Add(-time.Minute).Unix() })
	grant("mute", account, func(u *jwt.UserClaims) {
		u.Sub.Allow.Add("_INBOX.mute.>")
		u.Pub.Allow.Add("reprise.default.mute.beat")
	})
	grant("coordinator", account, func(u *jwt.UserClaims) {
		u.Pub.Allow.Add("_INBOX.>", "$JS.API.>", "$O.>")
		u.Sub.Allow.Add("reprise.default.*.*", "_INBOX.coordinator.>")
	})
	grant("deaf", account, func(u *jwt.UserClaims) {
		u.Pub.Allow.Add("_INBOX.>")
		u.Sub.Allow.Add("reprise.default.*.hello", "_INBOX.coordinator.>")
	})
	own := jwt.NewOperatorClaims(operatorID)
	own.SystemAccount = systemID
	return &server.Options{TrustedOperators: []*jwt.OperatorClaims{own}, AccountResolver: resolver, SystemAccount: systemID}
}
