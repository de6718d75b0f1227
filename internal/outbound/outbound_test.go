package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nodest/internal/outbound"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// public stands for any public address.
const public = "203.0.113.7"

// site is a guard in front of a server on loopback, which it takes for a public one.
// names maps hosts to addresses; a host that is not listed cannot be resolved.
type site struct {
	*outbound.Guard
	dialled []string
}

func newSite(t *testing.T, names map[string]string, h http.HandlerFunc, allow ...string) *site {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	s := &site{}
	guard, err := outbound.New(outbound.Options{
		Allow: allow,
		Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
			list, ok := names[host]
			if !ok {
				return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			}
			var addrs []netip.Addr
			for a := range strings.FieldsSeq(list) {
				addrs = append(addrs, netip.MustParseAddr(a))
			}
			return addrs, nil
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			s.dialled = append(s.dialled, address)
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Guard = guard
	return s
}

// get returns the body, or the error of the request.
func (s *site) get(t *testing.T, use outbound.Use, url string) (string, error) {
	t.Helper()
	client := s.Client(use)
	t.Cleanup(client.CloseIdleConnections)
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func hello(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }

func TestOnlyPublicAddressesAreReached(t *testing.T) {
	for addr, reached := range map[string]bool{
		public: true, "8.8.8.8": true, "1.1.1.1": true, "172.15.0.1": true, "172.32.0.1": true,
		"100.63.0.1": true, "100.128.0.1": true, "169.253.0.1": true, "2606:4700::1111": true, "2a00::1": true,
		"127.0.0.1": false, "127.1.2.3": false, "0.0.0.0": false, "0.1.2.3": false,
		"10.0.0.1": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.64.0.1": false, "100.127.255.255": false, "192.0.0.1": false,
		"192.88.99.1": false, "198.18.0.1": false, "198.19.255.255": false, "224.0.0.1": false,
		"239.1.2.3": false, "240.0.0.1": false, "255.255.255.255": false,
		"::": false, "::1": false, "::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false,
		"::127.0.0.1": false, "64:ff9b::a00:1": false, "64:ff9b::808:808": false, "64:ff9b:1::1": false,
		"fc00::1": false, "fd12::1": false, "fe80::1": false, "fec0::1": false, "ff02::1": false,
		"2001::1": false, "2001:0:4136:e378::1": false, "2002:7f00:1::": false, "2001:db8::1": false,
		"3fff::1": false, "4000::1": false, "100::1": false,
	} {
		t.Run(addr, func(t *testing.T) {
			s := newSite(t, map[string]string{"a.test": addr}, hello)
			host := addr
			if strings.Contains(addr, ":") {
				host = "[" + addr + "]"
			}
			for _, url := range []string{"http://a.test/", "http://" + host + "/"} {
				_, err := s.get(t, outbound.Use{}, url)
				if reached && err != nil {
					t.Errorf("%s: %v", url, err)
				}
				if !reached && !errors.Is(err, outbound.ErrRefused) {
					t.Errorf("%s: got %v, want a refusal", url, err)
				}
			}
			if !reached && len(s.dialled) > 0 {
				t.Errorf("dialled %v", s.dialled)
			}
		})
	}
}

func TestAMappedAddressIsRefusedInAURLAndCheckedAsIPv4FromAResolver(t *testing.T) {
	s := newSite(t, map[string]string{"a.test": "::ffff:" + public}, hello)
	if _, err := s.get(t, outbound.Use{}, "http://a.test/"); err != nil {
		t.Error(err)
	}
	if _, err := s.get(t, outbound.Use{}, "http://[::ffff:"+public+"]/"); !errors.Is(err, outbound.ErrRefused) {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestAHostWithAPrivateAddressAmongPublicOnesIsRefused(t *testing.T) {
	for _, addrs := range []string{public + " 10.0.0.1", "127.0.0.1 " + public, public + " ::1", public + " 8.8.8.8 169.254.169.254"} {
		s := newSite(t, map[string]string{"mixed.test": addrs}, hello)
		if _, err := s.get(t, outbound.Use{}, "http://mixed.test/"); !errors.Is(err, outbound.ErrRefused) || len(s.dialled) > 0 {
			t.Errorf("%s: got %v, dialled %v", addrs, err, s.dialled)
		}
	}
}

func TestAnAnswerThatChangesHasNoEffect(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(hello))
	defer server.Close()
	var lookups atomic.Int32
	var dialled []string
	guard, err := outbound.New(outbound.Options{
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			if lookups.Add(1) == 1 {
				return []netip.Addr{netip.MustParseAddr(public)}, nil
			}
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled = append(dialled, address)
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	client := guard.Client(outbound.Use{})
	defer client.CloseIdleConnections()
	get := func() error {
		resp, err := client.Get("http://rebind.test/")
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		return err
	}
	if err := get(); err != nil {
		t.Fatal(err)
	}
	client.CloseIdleConnections()
	if err := get(); !errors.Is(err, outbound.ErrRefused) {
		t.Errorf("got %v, want a refusal", err)
	}
	if len(dialled) != 1 || dialled[0] != public+":80" {
		t.Errorf("dialled %v, want only the address that was checked", dialled)
	}
}

func TestEveryRedirectIsChecked(t *testing.T) {
	names := map[string]string{"a.test": public, "b.test": public, "lan.test": "192.168.0.1", "localhost": "127.0.0.1"}
	for to, refused := range map[string]bool{
		"http://b.test/end":                         false,
		"http://lan.test/":                          true,
		"http://localhost:8080/":                    true,
		"http://169.254.169.254/latest/meta-data/":  true,
		"http://[::1]/":                             true,
		"http://b.test:22/":                         true,
		"http://user:secret@b.test/":                true,
		"http://[64:ff9b::7f00:1]/":                 true,
		"https://127.0.0.1/":                        true,
		"//lan.test/":                               true,
		"/again?to=http%3A%2F%2F10.0.0.1%2F":        true,
		"/again?to=http%3A%2F%2Fb.test%2Fend":       false,
		"http://b.test/again?to=http%3A%2F%2F[::]/": true,
	} {
		t.Run(to, func(t *testing.T) {
			s := newSite(t, names, func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/":
					http.Redirect(w, r, to, http.StatusFound)
				case "/again":
					http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusTemporaryRedirect)
				default:
					hello(w, r)
				}
			})
			body, err := s.get(t, outbound.Use{Redirects: 5}, "http://a.test/")
			if refused != errors.Is(err, outbound.ErrRefused) || !refused && body != "hello" {
				t.Errorf("got %q, %v", body, err)
			}
			for _, address := range s.dialled {
				if address != public+":80" {
					t.Errorf("dialled %s", address)
				}
			}
		})
	}
}

func TestRedirectsAreCountedAndKeepToHTTP(t *testing.T) {
	s := newSite(t, map[string]string{"a.test": public}, func(w http.ResponseWriter, r *http.Request) {
		to := r.URL.Path + "x"
		if r.URL.Path == "/file" {
			to = "file:///etc/hostname"
		}
		http.Redirect(w, r, to, http.StatusFound)
	})
	if _, err := s.get(t, outbound.Use{Redirects: 3}, "http://a.test/"); !errors.Is(err, outbound.ErrRedirects) {
		t.Errorf("got %v, want too many redirects", err)
	}
	if _, err := s.get(t, outbound.Use{Redirects: 3}, "http://a.test/file"); err == nil || errors.Is(err, outbound.ErrRefused) {
		t.Errorf("got %v, want an error about the scheme", err)
	}
	if _, err := s.get(t, outbound.Use{}, "http://a.test/"); err != nil {
		t.Errorf("without redirects, the redirect is the response: %v", err)
	}
}

func TestPortsAndUserInfo(t *testing.T) {
	for url, ok := range map[string]bool{
		"http://a.test/": true, "http://a.test:80/": true, "http://a.test:443/": true,
		"http://a.test:8080/": true, "http://a.test:8443/": true,
		"http://a.test:22/": false, "http://a.test:6379/": false, "http://a.test:81/": false,
		"http://a.test:11434/": false, "http://user@a.test/": false, "http://user:pass@a.test/": false,
	} {
		s := newSite(t, map[string]string{"a.test": public}, hello)
		if _, err := s.get(t, outbound.Use{}, url); ok != (err == nil) || !ok && !errors.Is(err, outbound.ErrRefused) {
			t.Errorf("%s: got %v", url, err)
		}
	}
}

func TestAllowLiftsAddressAndPortOfWhatItNames(t *testing.T) {
	names := map[string]string{"models.lan": "192.168.0.5", "other.lan": "10.1.2.3", "third.lan": "172.16.0.1", "a.test": public}
	for url, ok := range map[string]bool{
		"http://models.lan/": true, "http://models.lan:11434/": true, "http://MODELS.lan.:9/": true,
		"http://192.168.0.5/":    false, // the host is named, not its address
		"http://other.lan:9000/": true, "http://10.1.9.9:22/": true, "http://[fd00::1]:1234/": true,
		"http://third.lan/": false, "http://a.test:22/": false, "http://user@models.lan/": false,
	} {
		s := newSite(t, withDot(names), hello, "Models.lan", "10.1.0.0/16", " fd00::1 ")
		if _, err := s.get(t, outbound.Use{}, url); ok != (err == nil) || !ok && !errors.Is(err, outbound.ErrRefused) {
			t.Errorf("%s: got %v", url, err)
		}
	}
	for _, entry := range []string{"", "http://a.test", "a.test:80", "10.0.0.0/99", "*.lan", "user@host"} {
		if _, err := outbound.New(outbound.Options{Allow: []string{entry}}); err == nil {
			t.Errorf("%q was accepted", entry)
		}
	}
}

func withDot(names map[string]string) map[string]string {
	all := map[string]string{"MODELS.lan.": names["models.lan"]}
	for k, v := range names {
		all[k] = v
	}
	return all
}

func TestErrorsTellWhichHostButNotItsAddresses(t *testing.T) {
	s := newSite(t, map[string]string{"lan.test": "192.168.77.1"}, hello)
	_, err := s.get(t, outbound.Use{}, "http://lan.test/")
	if err == nil || !strings.Contains(err.Error(), "lan.test") || strings.Contains(err.Error(), "192.168") {
		t.Errorf("got %v", err)
	}
	var dns *net.DNSError
	if _, err := s.get(t, outbound.Use{}, "http://unknown.test/"); !errors.As(err, &dns) {
		t.Errorf("got %v, want the error of the resolver", err)
	}
}

func TestTheNextAddressIsTriedWhenOneDoesNotAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(hello))
	defer server.Close()
	guard, err := outbound.New(outbound.Options{
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("2a00::1"), netip.MustParseAddr(public)}, nil
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "[2a00") {
				return nil, errors.New("unreachable")
			}
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	client := guard.Client(outbound.Use{})
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://two.test/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

func TestTheEnvironmentsProxyIsIgnored(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	s := newSite(t, map[string]string{"a.test": public}, hello)
	if body, err := s.get(t, outbound.Use{}, "http://a.test/"); err != nil || body != "hello" {
		t.Errorf("got %q, %v", body, err)
	}
}

func TestHeadersAreBounded(t *testing.T) {
	s := newSite(t, map[string]string{"a.test": public}, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 200 {
			w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 1000))
		}
	})
	if _, err := s.get(t, outbound.Use{}, "http://a.test/"); err == nil {
		t.Error("200 KB of headers were read")
	}
}

func TestTheWholeExchangeHasATimeLimit(t *testing.T) {
	s := newSite(t, map[string]string{"a.test": public}, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	_, err := s.get(t, outbound.Use{Timeout: 50 * time.Millisecond}, "http://a.test/")
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("got %v, want a timeout", err)
	}
}

func TestAStreamIsPostedAndReadPieceByPiece(t *testing.T) {
	next := make(chan string)
	s := newSite(t, map[string]string{"a.test": public}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		next <- string(body) // the client waits for the header meanwhile
		for piece := range next {
			fmt.Fprint(w, piece)
			w.(http.Flusher).Flush()
		}
	})
	client := s.Client(outbound.Use{Patient: true})
	defer client.CloseIdleConnections()
	go func() {
		if got := <-next; got != "question" {
			t.Errorf("posted %q", got)
		}
		next <- "one "
	}()
	resp, err := client.Post("http://a.test/", "text/plain", strings.NewReader("question"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buf := make([]byte, 16)
	for _, want := range []string{"one ", "two "} {
		if n, err := io.ReadFull(resp.Body, buf[:len(want)]); err != nil || string(buf[:n]) != want {
			t.Fatalf("got %q, %v", buf[:n], err)
		}
		if want == "one " {
			next <- "two "
		}
	}
	close(next)
}

func TestAHandshakeIsMadeWithTheNameOfTheHost(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(hello))
	defer server.Close()
	guard, err := outbound.New(outbound.Options{
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr(public)}, nil
		},
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	client := guard.Client(outbound.Use{})
	defer client.CloseIdleConnections()
	_, err = client.Get("https://bank.test/")
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v, want an error about the certificate", err)
	}
}
