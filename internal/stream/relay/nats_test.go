package relay_test

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"nodest/internal/stream"
	"nodest/internal/stream/relay"
)

// serve starts a NATS server within the test; port -1 = any.
func serve(t *testing.T, port int) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, NoLog: true, NoSigs: true, Username: "nodest", Password: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.Shutdown)
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatal("NATS does not start")
	}
	return s
}

// join returns the relay of one process, and what it hears.
func join(t *testing.T, s *server.Server, installation string) (*relay.NATS, chan stream.Message) {
	t.Helper()
	n, err := relay.NewNATS(relay.Options{URL: "nats://nodest:secret@" + s.Addr().String(), Installation: installation, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Close() })
	heard := make(chan stream.Message, 100)
	n.Receive(func(m stream.Message) { heard <- m })
	return n, heard
}

// eventually sends until something is heard: a subscription takes a moment to reach the server.
func eventually(t *testing.T, from *relay.NATS, m stream.Message, heard chan stream.Message) stream.Message {
	t.Helper()
	end := time.After(20 * time.Second)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		from.Send(m)
		select {
		case got := <-heard:
			return got
		case <-again.C:
		case <-end:
			t.Fatalf("%+v is not heard", m)
		}
	}
}

func TestAFollowedUserIsHeardAndNobodyElse(t *testing.T) {
	t.Parallel()
	s := serve(t, server.RANDOM_PORT)
	a, own := join(t, s, "x")
	b, heard := join(t, s, "x")
	_, stranger := join(t, s, "y")
	stop := b.Follow("ann")
	defer stop()
	defer a.Follow("ann")() // a process does not hear itself

	delta := &stream.Event{UserID: "ann", ConversationID: "c", MessageID: "m", GenerationID: "g", Off: 7, At: time.UnixMilli(1700000000123).UTC(), By: "phone"}
	delta.Say("Grüße \"𝄞\"", "text")
	got := eventually(t, a, stream.Message{UserID: "ann", Event: delta}, heard)
	if got.UserID != "ann" || string(got.Event.Frame()) != string(delta.Frame()) || *got.Event.Delta() != *delta.Delta() || got.Event.Off != 7 || !got.Event.At.Equal(delta.At) {
		t.Errorf("heard %+v: %s", got, got.Event.Frame())
	}
	a.Send(stream.Message{UserID: "bob", Seq: 3})
	a.Send(stream.Message{UserID: "ann", Ask: true})
	a.Send(stream.Message{UserID: "ann", Seq: 9})
	for got = <-heard; got.Event != nil; got = <-heard { // the delta may have come twice
	}
	if !got.Ask || got.UserID != "ann" {
		t.Errorf("heard %+v, want the question", got)
	}
	if got = <-heard; got.Seq != 9 || got.Ask || got.UserID != "ann" {
		t.Errorf("heard %+v, want the position", got)
	}
	if len(own)+len(stranger) > 0 {
		t.Error("the sender or another installation hears it")
	}
}

// The subject of a message tells nobody whose it is.
func TestSubjectsHaveNoNamesOfUsers(t *testing.T) {
	t.Parallel()
	s := serve(t, server.RANDOM_PORT)
	a, _ := join(t, s, "x")
	conn, err := nats.Connect("nats://nodest:secret@" + s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	sub, err := conn.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	heard := make(chan stream.Message, 1)
	go func() {
		m, err := sub.NextMsg(20 * time.Second)
		if err != nil {
			t.Error(err)
		} else if len(m.Subject) != len("nodest.")+20+1+20 {
			t.Errorf("subject %q", m.Subject)
		}
		heard <- stream.Message{}
	}()
	eventually(t, a, stream.Message{UserID: "ann@example.org", Seq: 1}, heard)
}

// A relay that was away is back by itself, with all that it followed.
func TestARelayComesBackByItself(t *testing.T) {
	t.Parallel()
	s := serve(t, server.RANDOM_PORT)
	a, _ := join(t, s, "x")
	b, heard := join(t, s, "x")
	defer b.Follow("ann")()
	eventually(t, a, stream.Message{UserID: "ann", Seq: 1}, heard)
	port := s.Addr().(interface{ AddrPort() netip.AddrPort }).AddrPort().Port()
	s.Shutdown()
	s.WaitForShutdown()
	a.Send(stream.Message{UserID: "ann", Seq: 2}) // does not block, and is lost
	serve(t, int(port))
	if m := eventually(t, a, stream.Message{UserID: "ann", Seq: 3}, heard); m.Seq == 2 {
		t.Error("what was sent while NATS was away is heard later")
	}
}

func TestBadAddressesAreRefused(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]relay.Options{
		"credentials": {URL: "nats://127.0.0.1:1", Credentials: "/nowhere"},
		"CA":          {URL: "tls://127.0.0.1:1", CA: "/nowhere"},
		"URL":         {URL: "nats://user:pass word@\x7f"},
	} {
		o.Log = slog.New(slog.DiscardHandler)
		if n, err := relay.NewNATS(o); err == nil {
			_ = n.Close()
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), "pass word") {
			t.Errorf("%s: the error has the password: %v", name, err)
		}
	}
}
