//go:build noserver

package cluster

import (
	"errors"

	"reprise/trace"
)

// A Server is what a build without an embedded NATS server lacks.
type Server struct {
	URL   string
	Seeds map[string]string
	own   string
}

// StartServer says so.
func StartServer(string, []string) (*Server, error) {
	return nil, trace.WithFix(errors.New("this reprise is built without a NATS server of its own (-tags noserver)"), "name a server with --nats, or use the usual build")
}

// Close does nothing.
func (s *Server) Close() {}
