//go:build !noserver

package cluster

import (
	"testing"

	"github.com/nats-io/nats.go"
)

// TestStrangersStayOut: whoever has no key of this run does not get in, and a worker
// can neither speak for another nor listen to it.
func TestStrangersStayOut(t *testing.T) {
	server, err := StartServer("", []string{"w0", "w1"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	bus := Bus{URL: server.URL}
	if nc, err := nats.Connect(server.URL); err == nil {
		nc.Close()
		t.Error("a stranger is let in")
	}
	other, _, err := newUser(nil)
	if err != nil {
		t.Fatal(err)
	}
	if nc, err := bus.connect("w0", "w0", other, nil); err == nil {
		nc.Close()
		t.Error("another key is let in")
	}
	own, err := bus.connect("coordinator", "coordinator", server.own, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	heard := make(chan string, 10)
	if _, err := own.Subscribe(bus.subject("*", "*"), func(m *nats.Msg) { heard <- m.Subject }); err != nil {
		t.Fatal(err)
	}
	own.Flush()
	w0, err := bus.connect("w0", "w0", server.Seeds["w0"], nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w0.Close()
	spied, err := w0.SubscribeSync("_INBOX.w1.>")
	if err != nil {
		t.Fatal(err)
	}
	w0.Publish(bus.subject("w1", "beat"), nil)
	w0.Publish(bus.subject("w0", "beat"), nil)
	w0.Flush()
	own.Publish("_INBOX.w1.answer", nil)
	own.Flush()
	w0.Flush()
	if first := <-heard; first != bus.subject("w0", "beat") {
		t.Errorf("w0 is heard as %s", first)
	}
	if n, _, _ := spied.Pending(); n > 0 {
		t.Error("w0 hears answers to w1")
	}
}
