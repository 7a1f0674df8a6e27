//go:build !noserver

package cluster

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// A Server is a NATS server within this process, on loopback, that lets in this
// process and the workers that it starts, and nobody else.
type Server struct {
	URL   string
	Seeds map[string]string // of each worker, by name
	own   string            // the coordinator's
	s     *server.Server
}

// StartServer starts a server for workers of these names. Each has a key of its
// own, made for this run: with it a worker may send its own requests and read the
// answers to them, and nothing else.
func StartServer(cluster string, workers []string) (*Server, error) {
	b := Bus{Cluster: cluster}
	out := &Server{Seeds: map[string]string{}}
	own, user, err := newUser(&server.Permissions{
		Publish:   &server.SubjectPermission{Allow: []string{"_INBOX.>"}},
		Subscribe: &server.SubjectPermission{Allow: []string{b.subject("*", "*")}},
	})
	if err != nil {
		return nil, err
	}
	out.own = own
	users := []*server.NkeyUser{user}
	for _, name := range workers {
		seed, user, err := newUser(&server.Permissions{
			Publish:   &server.SubjectPermission{Allow: []string{b.subject(name, "*")}},
			Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX." + name + ".>"}},
		})
		if err != nil {
			return nil, err
		}
		out.Seeds[name] = seed
		users = append(users, user)
	}
	out.s, err = server.NewServer(&server.Options{
		ServerName: "reprise", Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
		Nkeys: users, MaxPayload: server.MAX_PAYLOAD_SIZE, DontListen: false,
	})
	if err != nil {
		return nil, fmt.Errorf("nats-server: %w", err)
	}
	out.s.Start()
	if !out.s.ReadyForConnections(10 * time.Second) {
		out.s.Shutdown()
		return nil, errors.New("nats-server: not ready after 10 s")
	}
	out.URL = out.s.ClientURL()
	return out, nil
}

func newUser(p *server.Permissions) (seed string, user *server.NkeyUser, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", nil, err
	}
	text, err := pair.Seed()
	if err != nil {
		return "", nil, err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return "", nil, err
	}
	return string(text), &server.NkeyUser{Nkey: public, Permissions: p}, nil
}

// Close ends the server.
func (s *Server) Close() {
	s.s.Shutdown()
	s.s.WaitForShutdown()
}
