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
	"github.com/stretchr/testify/require"
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
	require.NoError(t, err)
	_, config, found := strings.Cut(string(page), "\n```"+language+"\n")
	config, _, ended := strings.Cut(config, "\n```\n")
	require.True(t, found && ended, "docs/proxy.md has no %s configuration", language)
	for i := 0; i < len(replaced); i += 2 {
		require.Equal(t, 1, strings.Count(config, replaced[i]), "%q in the %s configuration", replaced[i], language)
		config = strings.Replace(config, replaced[i], replaced[i+1], 1)
	}
	return config
}

// certificate makes one for chat.example: files, and the pool that trusts it.
func certificate(t *testing.T, dir string) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	require.NoError(t, err)
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"chat.example"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(crand.Reader, about, about, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(cert, public, 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	pool = x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(public))
	return cert, key, pool
}

// freeAddress is an address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
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
	require.Equal(t, publicSite, p.server.linkBase)
	dir, secure := t.TempDir(), freeAddress(t)
	cert, key, pool := certificate(t, dir)
	file, text := config(dir, p.plain, secure, strings.TrimPrefix(p.server.client.Base, "http://"), cert, key)
	require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
	said, err := os.Create(filepath.Join(dir, "said"))
	require.NoError(t, err)
	defer said.Close()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), path, args(dir)...) // killed, nginx would leave its workers behind
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}, dir, said, said
	require.NoError(t, cmd.Start())
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
	require.NoError(t, err)
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
	require.NoError(p.t, err)
	req.ContentLength = length
	req.Header.Set("Origin", publicSite)
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if path != "/" && strings.HasSuffix(path, "/messages") {
		req.Header.Set("Accept", "text/event-stream")
	}
	res, err := p.browser.Do(req)
	require.NoError(p.t, err)
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
	require.NoError(p.t, err)
	if body == nil {
		text = nil
	}
	res := p.do(method, path, "application/json", bytes.NewReader(text), int64(len(text)), status)
	if out != nil {
		require.NoError(p.t, json.NewDecoder(res.Body).Decode(out))
	}
}

// signIn signs the browser in with the link of the server, and opens the page.
func (p *proxied) signIn() (conversation string) {
	p.t.Helper()
	page := p.do("GET", "/", "", nil, 0, 200)
	require.Contains(p.t, page.Header.Get("Content-Security-Policy"), "wss://chat.example")
	text, err := json.Marshal(map[string]string{"link": p.server.link})
	require.NoError(p.t, err)
	in := p.do("POST", "/api/v1/auth/signin", "application/json", bytes.NewReader(text), int64(len(text)), 200)
	cookie, err := http.ParseSetCookie(in.Header.Get("Set-Cookie"))
	require.NoError(p.t, err)
	require.True(p.t, cookie.Secure && cookie.HttpOnly, in.Header.Get("Set-Cookie"))
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
	require.Equal(p.t, "cancelled", state.Status, "the first words came when the reply had ended")
}

// streams reads a reply as server-sent events.
func (p *proxied) streams(conversation string) {
	p.t.Helper()
	body := `{"text":"Tell me a long story about the sea."}`
	res := p.do("POST", "/api/v1/conversations/"+conversation+"/messages", "application/json", strings.NewReader(body), int64(len(body)), 200)
	require.Equal(p.t, "text/event-stream", res.Header.Get("Content-Type"))
	var deltas, ends int
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		f := &frame{}
		require.NoError(p.t, json.Unmarshal([]byte(data), f))
		switch f.Ev {
		case "gen.delta":
			if deltas++; deltas == 1 {
				p.cancel(f.Gen)
			}
		case "gen.done":
			ends++
		}
	}
	require.NoError(p.t, lines.Err())
	require.True(p.t, deltas > 0 && ends == 1, "%d deltas and %d ends", deltas, ends)
}

// talks sends a message over a WebSocket and reads the reply.
func (p *proxied) talks(conversation string) {
	p.t.Helper()
	dialer := websocket.Dialer{HandshakeTimeout: testTimeout, NetDialContext: p.dial, TLSClientConfig: p.tls, Jar: p.browser.Jar}
	address := "wss" + strings.TrimPrefix(publicSite, "https") + "/api/v1/ws"
	_, res, err := dialer.DialContext(p.t.Context(), address, http.Header{"Origin": {"https://evil.example"}})
	require.Error(p.t, err)
	require.Equal(p.t, http.StatusForbidden, res.StatusCode, "the WebSocket of another site")
	ws, _, err := dialer.DialContext(p.t.Context(), address, http.Header{"Origin": {publicSite}})
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = ws.Close() })
	c := &wsClient{t: p.t, ws: ws}
	f, err := c.answer(c.send("hello", "", map[string]any{"protocol": 1, "deviceId": "browser"}))
	require.NoError(p.t, err)
	require.True(p.t, *f.OK, "%s", f.Error)
	c.send("chat.send", "a-key", map[string]any{"conversationId": conversation, "text": "And another one."})
	for deltas := 0; ; {
		f, err := c.next()
		require.NoError(p.t, err)
		require.Empty(p.t, f.Error)
		switch f.Ev {
		case "gen.delta":
			if deltas++; deltas == 1 {
				p.cancel(f.Gen)
			}
		case "gen.done":
			require.Positive(p.t, deltas)
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
	require.NoError(p.t, err)
	head := bytes.Clone(form.Bytes())
	form.Reset()
	require.NoError(p.t, w.Close())
	body := io.MultiReader(bytes.NewReader(head), io.LimitReader(zeros{}, largestUpload), &form)
	res := p.do("POST", "/api/v1/files", w.FormDataContentType(), body, int64(len(head)+largestUpload+form.Len()), 202)
	var stored struct{ File struct{ Size int64 } }
	require.NoError(p.t, json.NewDecoder(res.Body).Decode(&stored))
	require.EqualValues(p.t, largestUpload, stored.File.Size)
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
	require.NotContains(p.t, p.server.stderr.String(), "NODEST_TRUSTED_PROXIES")
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
	require.NoError(t, err)
	req.Host = "chat.example"
	res, err := plain.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, publicSite+"/signin", res.Header.Get("Location"))
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
