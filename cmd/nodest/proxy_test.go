package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// publicSite is where docs/proxy.md has the server.
const publicSite = "https://chat.example"

// largestUpload is the largest file that the server takes, in bytes.
const largestUpload = 100 << 20

// documentedConfig returns the configuration of docs/proxy.md in a language, with the given texts
// replaced; each must be there once.
func documentedConfig(t *testing.T, language string, replaced ...string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/proxy.md")
	if err != nil {
		t.Fatal(err)
	}
	_, config, found := strings.Cut(string(page), "\n```"+language+"\n")
	config, _, ended := strings.Cut(config, "\n```\n")
	if !found || !ended {
		t.Fatalf("docs/proxy.md has no %s configuration", language)
	}
	for i := 0; i < len(replaced); i += 2 {
		if got := strings.Count(config, replaced[i]); got != 1 {
			t.Fatalf("%q in the %s configuration: strings.Count(config, replaced[i]) is %d, want %d", replaced[i], language, got, 1)
		}
		config = strings.Replace(config, replaced[i], replaced[i+1], 1)
	}
	return config
}

// certificate makes one for chat.example: files, and the pool that trusts it.
func certificate(t *testing.T, dir string) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"chat.example"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(crand.Reader, about, about, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(cert, public, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600); err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	if !pool.AppendCertsFromPEM(public) {
		t.Fatal("pool.AppendCertsFromPEM(public) is false, want true")
	}
	return cert, key, pool
}

// freeAddress is an address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// proxied is a server behind a proxy, and a browser that reaches it there.
type proxied struct {
	t       *testing.T
	server  *process
	browser *http.Client // with cookies, at publicSite
	plain   string       // address for http; "" = none
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
	tls     *tls.Config
}

// behind starts a server, and in front of it the proxy that command starts with a configuration. config
// gets the folder of the proxy, its addresses, and what the configuration names.
func behind(t *testing.T, program string, config func(dir, plain, secure, server, cert, key string) (file, text string), args func(dir string) []string) *proxied {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("skipped: there is no %s on this machine", program)
	}
	inst := newInstallation(t, "", "NODEST_PUBLIC_URL="+publicSite, "NODEST_TRUSTED_PROXIES=127.0.0.1", "NODEST_OFFLINE_DELAY=200ms")
	p := &proxied{t: t, server: inst.start(t), plain: freeAddress(t)}
	if p.server.linkBase != publicSite {
		t.Fatalf("p.server.linkBase is %q, want %q", p.server.linkBase, publicSite)
	}
	dir, secure := t.TempDir(), freeAddress(t)
	cert, key, pool := certificate(t, dir)
	file, text := config(dir, p.plain, secure, strings.TrimPrefix(p.server.client.Base, "http://"), cert, key)
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := os.Create(filepath.Join(dir, "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), path, args(dir)...) // killed, nginx would leave its workers behind
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}, dir, said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(said.Name())
			t.Logf("%s:\n%s", program, text)
		}
	})
	p.dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, secure)
	}
	p.tls = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p.browser = &http.Client{Jar: jar, Transport: &http.Transport{DialContext: p.dial, TLSClientConfig: p.tls}}
	t.Cleanup(p.browser.CloseIdleConnections)
	eventually(t, program+" listens", func() error {
		conn, err := p.dial(t.Context(), "tcp", "")
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
	return p
}

// do makes a request as a page of the public site does; the answer must have the status.
func (p *proxied) do(method, path, kind string, body io.Reader, length int64, status int) *http.Response {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, publicSite+path, body)
	if err != nil {
		p.t.Fatal(err)
	}
	req.ContentLength = length
	req.Header.Set("Origin", publicSite)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if path != "/" && strings.HasSuffix(path, "/messages") {
		req.Header.Set("Accept", "text/event-stream")
	}
	res, err := p.browser.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = res.Body.Close() })
	if res.StatusCode != status {
		text, _ := io.ReadAll(res.Body)
		p.t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, text)
	}
	return res
}

func (p *proxied) json(method, path string, body any, status int, out any) {
	p.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	if body == nil {
		text = nil
	}
	res := p.do(method, path, "application/json", bytes.NewReader(text), int64(len(text)), status)
	if out != nil {
		if err := json.NewDecoder(res.Body).Decode(out); err != nil {
			p.t.Fatal(err)
		}
	}
}

// signIn signs the browser in with the link of the server, and opens the page.
func (p *proxied) signIn() (conversation string) {
	p.t.Helper()
	page := p.do("GET", "/", "", nil, 0, 200)
	if got := page.Header.Get("Content-Security-Policy"); !strings.Contains(got, "wss://chat.example") {
		p.t.Fatalf("got %q, want it with %q", got, "wss://chat.example")
	}
	text, err := json.Marshal(map[string]string{"link": p.server.link})
	if err != nil {
		p.t.Fatal(err)
	}
	in := p.do("POST", "/api/v1/auth/signin", "application/json", bytes.NewReader(text), int64(len(text)), 200)
	cookie, err := http.ParseSetCookie(in.Header.Get("Set-Cookie"))
	if err != nil {
		p.t.Fatal(err)
	}
	if !cookie.Secure || !cookie.HttpOnly {
		p.t.Fatal(in.Header.Get("Set-Cookie"))
	}
	var made struct{ Character struct{ ID string } }
	p.json("POST", "/api/v1/characters/sample", nil, 201, &made)
	var chat struct{ ID string }
	p.json("POST", "/api/v1/conversations", map[string]any{"characterId": made.Character.ID}, 201, &chat)
	return chat.ID
}

// cancel cancels a generation, which must still be running: what has arrived was not held back.
func (p *proxied) cancel(generation string) {
	p.t.Helper()
	var state struct{ Status string }
	p.json("POST", "/api/v1/generations/"+generation+"/cancel", nil, 200, &state)
	if state.Status != "cancelled" {
		p.t.Fatalf("the first words came when the reply had ended: state.Status is %q, want %q", state.Status, "cancelled")
	}
}

// streams reads a reply as server-sent events.
func (p *proxied) streams(conversation string) {
	p.t.Helper()
	body := `{"text":"Tell me a long story about the sea."}`
	res := p.do("POST", "/api/v1/conversations/"+conversation+"/messages", "application/json", strings.NewReader(body), int64(len(body)), 200)
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		p.t.Fatalf("got %q, want %q", got, "text/event-stream")
	}
	var deltas, ends int
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		f := &frame{}
		if err := json.Unmarshal([]byte(data), f); err != nil {
			p.t.Fatal(err)
		}
		switch f.Ev {
		case "gen.delta":
			if deltas++; deltas == 1 {
				p.cancel(f.Gen)
			}
		case "gen.done":
			ends++
		}
	}
	if err := lines.Err(); err != nil {
		p.t.Fatal(err)
	}
	if deltas <= 0 || ends != 1 {
		p.t.Fatalf("%d deltas and %d ends", deltas, ends)
	}
}

// talks sends a message over a WebSocket and reads the reply.
func (p *proxied) talks(conversation string) {
	p.t.Helper()
	dialer := websocket.Dialer{HandshakeTimeout: testTimeout, NetDialContext: p.dial, TLSClientConfig: p.tls, Jar: p.browser.Jar}
	address := "wss" + strings.TrimPrefix(publicSite, "https") + "/api/v1/ws"
	_, res, err := dialer.DialContext(p.t.Context(), address, http.Header{"Origin": {"https://evil.example"}})
	if err == nil {
		p.t.Fatal("got no error, want one")
	}
	if res.StatusCode != http.StatusForbidden {
		p.t.Fatalf("the WebSocket of another site: res.StatusCode is %d, want %d", res.StatusCode, http.StatusForbidden)
	}
	ws, _, err := dialer.DialContext(p.t.Context(), address, http.Header{"Origin": {publicSite}})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = ws.Close() })
	c := &wsClient{t: p.t, ws: ws}
	f, err := c.answer(c.send("hello", "", map[string]any{"protocol": 1, "deviceId": "browser"}))
	if err != nil {
		p.t.Fatal(err)
	}
	if !(*f.OK) {
		p.t.Fatal(f.Error)
	}
	c.send("chat.send", "a-key", map[string]any{"conversationId": conversation, "text": "And another one."})
	for deltas := 0; ; {
		f, err := c.next()
		if err != nil {
			p.t.Fatal(err)
		}
		if len(f.Error) != 0 {
			p.t.Fatalf("f.Error is %q, want none", f.Error)
		}
		switch f.Ev {
		case "gen.delta":
			if deltas++; deltas == 1 {
				p.cancel(f.Gen)
			}
		case "gen.done":
			if deltas <= 0 {
				p.t.Fatalf("deltas is %d, want more than 0", deltas)
			}
			return
		}
	}
}

// uploads sends the largest file that the server takes.
func (p *proxied) uploads() {
	p.t.Helper()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	_, err := w.CreateFormFile("file", "largest.txt")
	if err != nil {
		p.t.Fatal(err)
	}
	head := bytes.Clone(form.Bytes())
	form.Reset()
	if err := w.Close(); err != nil {
		p.t.Fatal(err)
	}
	body := io.MultiReader(bytes.NewReader(head), io.LimitReader(zeros{}, largestUpload), &form)
	res := p.do("POST", "/api/v1/files", w.FormDataContentType(), body, int64(len(head)+largestUpload+form.Len()), 202)
	var stored struct{ File struct{ Size int64 } }
	if err := json.NewDecoder(res.Body).Decode(&stored); err != nil {
		p.t.Fatal(err)
	}
	if stored.File.Size != largestUpload {
		p.t.Fatalf("stored.File.Size is %d, want %d", stored.File.Size, largestUpload)
	}
}

// zeros reads the digit 0 without an end.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '0'
	}
	return len(b), nil
}

// ends stops the server, which must not have had a reason to warn of its proxy.
func (p *proxied) ends() {
	p.t.Helper()
	p.server.kill(p.t)
	if got := p.server.stderr.String(); strings.Contains(got, "NODEST_TRUSTED_PROXIES") {
		p.t.Fatalf("p.server.stderr.String() is %q, want it without %q", got, "NODEST_TRUSTED_PROXIES")
	}
}

// behindNginx starts nginx with the configuration of docs/proxy.md, in which replaced is replaced.
func behindNginx(t *testing.T, replaced ...string) *proxied {
	t.Helper()
	return behind(t, "nginx", func(dir, plain, secure, server, cert, key string) (file, text string) {
		site := documentedConfig(t, "nginx", append([]string{
			"listen 80;", "listen " + plain + ";", "listen 443 ssl", "listen " + secure + " ssl", "http://127.0.0.1:8080;", "http://" + server + ";",
			"/etc/letsencrypt/live/chat.example/fullchain.pem", cert, "/etc/letsencrypt/live/chat.example/privkey.pem", key,
		}, replaced...)...)
		temp := ""
		for _, of := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
			temp += of + "_temp_path " + filepath.Join(dir, of) + ";\n"
		}
		user := ""
		if os.Getuid() == 0 { // the workers read the folder of the test
			user = "user root;\n"
		}
		return "nginx.conf", user + "daemon off;\npid " + filepath.Join(dir, "pid") + ";\nevents {}\nhttp {\naccess_log off;\n" + temp + site + "\n}\n"
	}, func(dir string) []string {
		return []string{"-p", dir, "-c", filepath.Join(dir, "nginx.conf"), "-e", "stderr", "-g", "error_log stderr;"}
	})
}

// The nginx configuration of docs/proxy.md serves sign-in, WebSockets, streams and uploads.
func TestTheDocumentedNginxServesTheServer(t *testing.T) {
	t.Parallel()
	p := behindNginx(t)
	chat := p.signIn()
	p.streams(chat)
	p.talks(chat)
	p.uploads()

	plain := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.plain+"/signin", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "chat.example"
	res, err := plain.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if got := res.Header.Get("Location"); got != publicSite+"/signin" {
		t.Fatalf("got %q, want %q", got, publicSite+"/signin")
	}
	p.ends()
}

// A proxy that sends a Host of its own, as nginx does by default, and says nothing about TLS:
// the public URL is enough to sign in and to open WebSockets.
func TestNginxWithItsDefaultHostServesTheServer(t *testing.T) {
	t.Parallel()
	p := behindNginx(t, "proxy_set_header   Host              $http_host;", "", "proxy_set_header   X-Forwarded-Proto $scheme;", "")
	p.talks(p.signIn())
	p.ends()
}

// The Caddyfile of docs/proxy.md serves the same.
func TestTheDocumentedCaddyServesTheServer(t *testing.T) {
	t.Parallel()
	p := behind(t, "caddy", func(_, plain, secure, server, cert, key string) (file, text string) {
		_, port, _ := net.SplitHostPort(secure)
		site := documentedConfig(t, "caddy", "chat.example {", publicSite+":"+port+" {\n\tbind 127.0.0.1\n\ttls "+cert+" "+key, "127.0.0.1:8080", server)
		return "Caddyfile", "{\n\tadmin off\n\tauto_https disable_redirects\n}\n" + site + "\n"
	}, func(dir string) []string {
		return []string{"run", "--adapter", "caddyfile", "--config", filepath.Join(dir, "Caddyfile")}
	})
	chat := p.signIn()
	p.streams(chat)
	p.talks(chat)
	p.uploads()
	p.ends()
}
