package main

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
)

// Addresses of the hub: of the bus and of the target, each of which a host reaches over
// a link of its own. They are of the range for benchmarks of networks (RFC 2544).
const (
	hubBus    = "198.18.254.1"
	hubTarget = "198.18.255.1"
)

// A lab is load hosts, and the hub with the bus, the coordinator and the target. The
// hosts are network namespaces, with two links each to the hub, or, where those are not
// allowed, no more than names: all is then on loopback.
type lab struct {
	hub   *host // nil: this process is in it
	hosts []*host
	plain bool
}

// plainLab has hosts that are all this one.
func plainLab(n int) *lab { return &lab{hosts: make([]*host, n), plain: true} }

// newLab makes hosts of their own, linked to the hub. Nothing of it has a name outside
// of this process: the kernel takes it away with the process, however that ends.
func newLab(hub *host, n int) (*lab, error) {
	l := &lab{hub: hub}
	if _, err := exec.LookPath("ip"); err != nil {
		return nil, err
	}
	if err := hub.ip("link", "set", "lo", "up"); err != nil {
		return nil, err
	}
	for _, address := range []string{hubBus, hubTarget} {
		if err := hub.ip("address", "add", address+"/32", "dev", "lo"); err != nil {
			return nil, err
		}
	}
	for i := range n {
		h, err := newHost()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("network namespace: %w", err), l.close())
		}
		l.hosts = append(l.hosts, h)
		if err := errors.Join(h.ip("link", "set", "lo", "up"), l.join(i, "bus", hubBus, 0), l.join(i, "load", hubTarget, 1)); err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	return l, nil
}

// join makes a link between host i and the hub, over which it reaches an address there.
func (l *lab) join(i int, name, to string, third int) error {
	h, far := l.hosts[i], linkName(name, i)
	here, there := fmt.Sprintf("198.18.%d.%d", third, 4*i+2), fmt.Sprintf("198.18.%d.%d", third, 4*i+1)
	for _, step := range []struct {
		on   *host
		args []string
	}{
		{l.hub, []string{"link", "add", far, "type", "veth", "peer", "name", name, "netns", h.path()}},
		{l.hub, []string{"address", "add", there + "/30", "dev", far}},
		{l.hub, []string{"link", "set", far, "up"}},
		{h, []string{"address", "add", here + "/30", "dev", name}},
		{h, []string{"link", "set", name, "up"}},
		{h, []string{"route", "add", to + "/32", "via", there, "src", here}},
	} {
		if err := step.on.ip(step.args...); err != nil {
			return err
		}
	}
	return nil
}

func linkName(name string, i int) string { return fmt.Sprintf("%s%d", name, i) }

// setBus takes the link of host i to the bus down, or up again.
func (l *lab) setBus(i int, state string) error {
	return l.hub.ip("link", "set", linkName("bus", i), state)
}

// listen listens in the hub.
func (l *lab) listen(address string) (ln net.Listener, err error) {
	if l.plain {
		address = "127.0.0.1"
	}
	err = l.hub.do(func() error {
		ln, err = net.Listen("tcp", net.JoinHostPort(address, "0"))
		return err
	})
	return ln, err
}

// busHost is where a NATS server in the hub listens.
func (l *lab) busHost() string {
	if l.plain {
		return "127.0.0.1"
	}
	return hubBus
}

func (l *lab) close() error {
	var errs []error
	for _, h := range l.hosts {
		errs = append(errs, h.close())
	}
	return errors.Join(errs...)
}

// ip runs the tool of that name on a host.
func (h *host) ip(args ...string) error {
	var said []byte
	err := h.do(func() (err error) {
		said, err = exec.Command("ip", args...).CombinedOutput()
		return err
	})
	if err != nil {
		return fmt.Errorf("ip %q: %w: %s", args, err, said)
	}
	return nil
}
