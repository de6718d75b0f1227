package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// frame is anything that the server sends over a WebSocket: a reply or an event.
type frame struct {
	ID     string          `json:"id"`
	OK     *bool           `json:"ok"`
	Error  *problem        `json:"error"`
	Replay bool            `json:"replay"`
	Ev     string          `json:"ev"`
	Seq    int64           `json:"seq"`
	Conv   string          `json:"conversationId"`
	Msg    string          `json:"messageId"`
	Gen    string          `json:"generationId"`
	Off    int             `json:"off"`
	By     string          `json:"by"`
	Now    int64           `json:"now"`
	Data   json.RawMessage `json:"data"`
}

// field returns the value at a path of the data of a frame, the zero value if there
// is none.
func field[T any](t testing.TB, f *frame, path string) T {
	t.Helper()
	var v any
	if err := json.Unmarshal(f.Data, &v); err != nil {
		t.Fatalf("data of %+v: %v", f, err)
	}
	for name := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '.' }) {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	out, _ := v.(T)
	return out
}

// wsClient is a client with a real socket. It collects all frames; tests wait for the
// ones they need.
type wsClient struct {
	t  testing.TB
	ws *websocket.Conn

	mu      sync.Mutex
	frames  []*frame
	raw     []int // number of objects in each WebSocket frame
	closed  error
	updated chan struct{} // closed and replaced at each change
	ids     int
	write   sync.Mutex
	checker wsChecker // validates all frames against asyncapi.yaml
}

// dialOptions says how a client connects.
type dialOptions struct {
	token        string // "" = none
	query        string
	header       http.Header
	dial         func(ctx context.Context, network, addr string) (net.Conn, error)
	mayFail      bool // return a failed handshake instead of ending the test
	noRead       bool // do not read frames: the test does, or nobody
	subprotocols []string
}

func (h *testServer) dial(d dialOptions) (*wsClient, *http.Response, error) {
	h.t.Helper()
	header := d.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if d.token != "" {
		header.Set("Authorization", "Bearer "+d.token)
	}
	dialer := websocket.Dialer{HandshakeTimeout: testTimeout, NetDialContext: d.dial, Subprotocols: d.subprotocols}
	url := "ws" + strings.TrimPrefix(h.http.URL, "http") + "/api/v1/ws" + d.query
	ws, res, err := dialer.DialContext(context.Background(), url, header)
	if err != nil {
		if !d.mayFail {
			h.t.Fatalf("dial: %v", err)
		}
		return nil, res, err
	}
	p := &wsClient{t: h.t, ws: ws, updated: make(chan struct{})}
	h.t.Cleanup(func() { ws.Close() })
	if !d.noRead {
		go p.read()
	}
	return p, res, nil
}

// connect dials with the user's token and sends hello.
func (h *testServer) connect(hello map[string]any) (*wsClient, *frame) {
	h.t.Helper()
	p, _, _ := h.dial(dialOptions{token: h.token})
	if hello == nil {
		hello = map[string]any{}
	}
	if hello["protocol"] == nil {
		hello["protocol"] = 1
	}
	f := p.do("hello", "", hello)
	if f.OK == nil || !*f.OK {
		h.t.Fatalf("hello: %+v", f.Error)
	}
	return p, f
}

func (p *wsClient) read() {
	for {
		_, data, err := p.ws.ReadMessage()
		if err != nil {
			p.mu.Lock()
			p.closed = err
			p.changed()
			p.mu.Unlock()
			return
		}
		p.checker.checkReceived(p.t, data)
		frames, err := framesOf(data)
		p.mu.Lock()
		if err != nil {
			p.closed = err
		}
		p.frames = append(p.frames, frames...)
		p.raw = append(p.raw, len(frames))
		p.changed()
		p.mu.Unlock()
	}
}

func framesOf(data []byte) ([]*frame, error) {
	if data[0] == '[' {
		var list []*frame
		err := json.Unmarshal(data, &list)
		return list, err
	}
	f := &frame{}
	return []*frame{f}, json.Unmarshal(data, f)
}

func (p *wsClient) changed() {
	close(p.updated)
	p.updated = make(chan struct{})
}

// waitFor calls find with all frames so far, at each new frame, until it returns
// something.
func waitFor[T any](p *wsClient, what string, find func(frames []*frame) *T) *T {
	p.t.Helper()
	deadline := time.After(testTimeout)
	for {
		p.mu.Lock()
		got, news, closed := find(p.frames), p.updated, p.closed
		p.mu.Unlock()
		if got != nil {
			return got
		}
		if closed != nil {
			p.t.Fatalf("%s: the connection was closed before: %v", what, closed)
		}
		select {
		case <-news:
		case <-deadline:
			p.t.Fatalf("%s never came; got %s", what, p.recentFrames())
		}
	}
}

// recentFrames lists the latest frames, for error messages.
func (p *wsClient) recentFrames() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, f := range p.frames[max(0, len(p.frames)-50):] {
		fmt.Fprintf(&b, "%s%s(%d) ", f.Ev, f.ID, f.Seq)
	}
	return b.String()
}

// event waits for an event of a type, of a generation if one is given.
func (p *wsClient) event(kind, generationID string) *frame {
	p.t.Helper()
	return waitFor(p, kind, func(frames []*frame) *frame {
		for _, f := range frames {
			if f.Ev == kind && (generationID == "" || f.Gen == generationID) {
				return f
			}
		}
		return nil
	})
}

// waitSeq waits for an event with at least this seq, so that all earlier ones are there.
func (p *wsClient) waitSeq(seq int64) {
	p.t.Helper()
	waitFor(p, fmt.Sprintf("event %d", seq), func(frames []*frame) *frame {
		for _, f := range frames {
			if f.Ev != "" && f.Seq >= seq {
				return f
			}
		}
		return nil
	})
}

func (p *wsClient) all() []*frame {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*frame(nil), p.frames...)
}

// sendText sends raw text as a frame.
func (p *wsClient) sendText(s string) {
	p.write.Lock()
	defer p.write.Unlock()
	p.checker.recordSent([]byte(s))
	_ = p.ws.WriteMessage(websocket.TextMessage, []byte(s)) // a closed connection shows when waiting for the answer
}

// send sends a command and returns its id.
func (p *wsClient) send(cmd, key string, data any) string {
	p.t.Helper()
	p.mu.Lock()
	p.ids++
	id := fmt.Sprintf("c%d", p.ids)
	p.mu.Unlock()
	object := map[string]any{"id": id, "cmd": cmd}
	if key != "" {
		object["key"] = key
	}
	if data != nil {
		object["data"] = data
	}
	b, err := json.Marshal(object)
	if err != nil {
		p.t.Fatal(err)
	}
	p.sendText(string(b))
	return id
}

// answer waits for the reply to a command.
func (p *wsClient) answer(id string) *frame {
	p.t.Helper()
	return waitFor(p, "reply "+id, func(frames []*frame) *frame {
		for _, f := range frames {
			if f.ID == id && f.OK != nil {
				return f
			}
		}
		return nil
	})
}

// do sends a command and returns its reply.
func (p *wsClient) do(cmd, key string, data any) *frame {
	p.t.Helper()
	return p.answer(p.send(cmd, key, data))
}

// ok is do for a command that must succeed.
func (p *wsClient) ok(cmd, key string, data any) *frame {
	p.t.Helper()
	f := p.do(cmd, key, data)
	if !*f.OK {
		p.t.Fatalf("%s: %+v", cmd, f.Error)
	}
	return f
}

// fails is do for a command that must fail with this code.
func (p *wsClient) fails(code, cmd, key string, data any) *frame {
	p.t.Helper()
	f := p.do(cmd, key, data)
	if *f.OK || string(f.Error.Code) != code {
		p.t.Fatalf("%s: ok %v, error %+v; want %s", cmd, *f.OK, f.Error, code)
	}
	return f
}

// closeError waits until the connection is closed, and returns code and reason.
func (p *wsClient) closeError() (int, string) {
	p.t.Helper()
	deadline := time.After(testTimeout)
	for {
		p.mu.Lock()
		closed, news := p.closed, p.updated
		p.mu.Unlock()
		var e *websocket.CloseError
		if errors.As(closed, &e) {
			return e.Code, e.Text
		}
		if closed != nil {
			return 0, closed.Error()
		}
		select {
		case <-news:
		case <-deadline:
			p.t.Fatal("the connection was never closed")
		}
	}
}

// wantClose waits until the connection is closed, and checks the code.
func (p *wsClient) wantClose(code int) {
	p.t.Helper()
	if got, reason := p.closeError(); got != code {
		p.t.Fatalf("closed with %d %q, want %d", got, reason, code)
	}
}
