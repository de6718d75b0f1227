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

// frame is whatever the server sends over a WebSocket.
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

// member of the data of a frame; the zero value where there is none.
func field[T any](t testing.TB, f *frame, path string) T {
	t.Helper()
	var v any
	if err := json.Unmarshal(f.Data, &v); err != nil {
		t.Fatalf("data of %+v: %v", f, err)
	}
	for _, name := range strings.Split(path, ".") {
		object, _ := v.(map[string]any)
		v = object[name]
	}
	out, _ := v.(T)
	return out
}

// phone is a client over a real socket. It collects every frame; tests wait for
// those they want.
type phone struct {
	t  testing.TB
	ws *websocket.Conn

	mu     sync.Mutex
	frames []*frame
	raw    []int // number of objects of each WebSocket frame
	closed error
	news   chan struct{} // closed and made anew at each change
	ids    int
	write  sync.Mutex
	talk   talk // everything is held against asyncapi.yaml
}

// dialed is how a phone connects.
type dialed struct {
	token  string // "" = none
	query  string
	header http.Header
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)
	quiet  bool // a failed handshake is returned, not fatal
	still  bool // do not read: the test does, or nobody
	protos []string
}

func (h *house) dial(d dialed) (*phone, *http.Response, error) {
	h.t.Helper()
	header := d.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if d.token != "" {
		header.Set("Authorization", "Bearer "+d.token)
	}
	dialer := websocket.Dialer{HandshakeTimeout: patience, NetDialContext: d.dial, Subprotocols: d.protos}
	url := "ws" + strings.TrimPrefix(h.http.URL, "http") + "/api/v1/ws" + d.query
	ws, res, err := dialer.DialContext(context.Background(), url, header)
	if err != nil {
		if !d.quiet {
			h.t.Fatalf("dial: %v", err)
		}
		return nil, res, err
	}
	p := &phone{t: h.t, ws: ws, news: make(chan struct{})}
	h.t.Cleanup(func() { ws.Close() })
	if !d.still {
		go p.read()
	}
	return p, res, nil
}

// phone connects with the house's token and says hello.
func (h *house) phone(hello map[string]any) (*phone, *frame) {
	h.t.Helper()
	p, _, _ := h.dial(dialed{token: h.token})
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

func (p *phone) read() {
	for {
		_, data, err := p.ws.ReadMessage()
		if err != nil {
			p.mu.Lock()
			p.closed = err
			p.changed()
			p.mu.Unlock()
			return
		}
		p.talk.hear(p.t, data)
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

func (p *phone) changed() {
	close(p.news)
	p.news = make(chan struct{})
}

// wait returns what find returns as soon as that is not nil. find sees all
// frames so far.
func wait[T any](p *phone, what string, find func(frames []*frame) *T) *T {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		got, news, closed := find(p.frames), p.news, p.closed
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
			p.t.Fatalf("%s never came; there were %s", what, p.heard())
		}
	}
}

// heard lists the last frames so far.
func (p *phone) heard() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	for _, f := range p.frames[max(0, len(p.frames)-50):] {
		fmt.Fprintf(&b, "%s%s(%d) ", f.Ev, f.ID, f.Seq)
	}
	return b.String()
}

// event waits for an event of a type, about a generation where that is named.
func (p *phone) event(kind, generationID string) *frame {
	p.t.Helper()
	return wait(p, kind, func(frames []*frame) *frame {
		for _, f := range frames {
			if f.Ev == kind && (generationID == "" || f.Gen == generationID) {
				return f
			}
		}
		return nil
	})
}

// since waits for an event with at least this seq, so that all before are there.
func (p *phone) reach(seq int64) {
	p.t.Helper()
	wait(p, fmt.Sprintf("event %d", seq), func(frames []*frame) *frame {
		for _, f := range frames {
			if f.Ev != "" && f.Seq >= seq {
				return f
			}
		}
		return nil
	})
}

func (p *phone) all() []*frame {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*frame(nil), p.frames...)
}

// text sends a frame as it is.
func (p *phone) text(s string) {
	p.write.Lock()
	defer p.write.Unlock()
	p.talk.say([]byte(s))
	_ = p.ws.WriteMessage(websocket.TextMessage, []byte(s)) // a closed connection shows in the answer
}

// send sends a command and returns its id.
func (p *phone) send(cmd, key string, data any) string {
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
	p.text(string(b))
	return id
}

// answer waits for the reply to a command.
func (p *phone) answer(id string) *frame {
	p.t.Helper()
	return wait(p, "reply "+id, func(frames []*frame) *frame {
		for _, f := range frames {
			if f.ID == id && f.OK != nil {
				return f
			}
		}
		return nil
	})
}

// do sends a command and returns its reply.
func (p *phone) do(cmd, key string, data any) *frame {
	p.t.Helper()
	return p.answer(p.send(cmd, key, data))
}

// ok is do for a command that must succeed.
func (p *phone) ok(cmd, key string, data any) *frame {
	p.t.Helper()
	f := p.do(cmd, key, data)
	if !*f.OK {
		p.t.Fatalf("%s: %+v", cmd, f.Error)
	}
	return f
}

// fails is do for a command that must fail with a code.
func (p *phone) fails(code, cmd, key string, data any) *frame {
	p.t.Helper()
	f := p.do(cmd, key, data)
	if *f.OK || string(f.Error.Code) != code {
		p.t.Fatalf("%s: ok %v, error %+v; want %s", cmd, *f.OK, f.Error, code)
	}
	return f
}

// goodbye waits for the connection to be closed and returns code and reason.
func (p *phone) goodbye() (int, string) {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		closed, news := p.closed, p.news
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

// ends checks the close code.
func (p *phone) ends(code int) {
	p.t.Helper()
	if got, reason := p.goodbye(); got != code {
		p.t.Fatalf("closed with %d %q, want %d", got, reason, code)
	}
}
