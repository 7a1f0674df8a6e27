package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLab: a host reaches the bus and the target of the hub over a link each, which goes
// down alone; nothing of it is seen on this machine, nor left.
func TestLab(t *testing.T) {
	before := interfaces(t)
	hub, err := newHost()
	if err != nil {
		t.Skipf("no network namespaces: %v", err)
	}
	defer hub.close()
	l, err := newLab(hub, 2)
	if err != nil {
		t.Skipf("no links between network namespaces: %v", err)
	}
	defer l.close()
	dial := func(address string, within time.Duration) error {
		return l.hosts[1].do(func() error {
			c, err := net.DialTimeout("tcp", address, within)
			if err == nil {
				c.Close()
			}
			return err
		})
	}
	var addresses []string
	for _, at := range []string{hubBus, hubTarget} {
		ln, err := l.listen(at)
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		addresses = append(addresses, ln.Addr().String())
		if err := dial(ln.Addr().String(), time.Minute); err != nil {
			t.Error(err)
		}
		if c, err := net.DialTimeout("tcp", ln.Addr().String(), 300*time.Millisecond); err == nil {
			c.Close()
			t.Error("the hub is reached from outside of its namespace")
		}
	}
	if err := l.setBus(1, "down"); err != nil {
		t.Fatal(err)
	}
	if dial(addresses[0], 300*time.Millisecond) == nil {
		t.Error("the bus is reached over a link that is down")
	}
	if err := dial(addresses[1], time.Minute); err != nil {
		t.Errorf("the target, whose link is up: %v", err)
	}
	if err := l.setBus(1, "up"); err != nil {
		t.Fatal(err)
	}
	if err := dial(addresses[0], time.Minute); err != nil {
		t.Errorf("the bus, over a link that is up again: %v", err)
	}
	if after := interfaces(t, append(l.hosts, hub)...); after != before {
		t.Errorf("interfaces of this machine are %s, were %s", after, before)
	}
}

// interfaces are those of this machine that are called like links of a lab, namespaces
// that threads of this process are in, and names of the hosts' own. Others may come and
// go: this is not the only program here.
func interfaces(t *testing.T, hosts ...*host) string {
	list, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range list {
		if strings.HasPrefix(i.Name, "bus") || strings.HasPrefix(i.Name, "load") {
			names = append(names, i.Name)
		}
	}
	threads, _ := filepath.Glob("/proc/self/task/*/ns/net")
	for _, path := range threads {
		if ns, err := os.Readlink(path); err == nil && !strings.Contains(strings.Join(names, " "), ns) {
			names = append(names, ns)
		}
	}
	named, _ := filepath.Glob("/run/netns/*")
	for _, path := range named {
		for _, h := range hosts {
			here, err := os.Stat(path)
			own, ownErr := h.ns.Stat()
			if err == nil && ownErr == nil && os.SameFile(here, own) {
				names = append(names, path)
			}
		}
	}
	return strings.Join(names, " ")
}
