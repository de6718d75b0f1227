package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"nodest/internal/cli"
)

// frame is anything that the server sends over a WebSocket: a reply or an event.
type frame struct {
	ID     string          `json:"id"`
	OK     *bool           `json:"ok"`
	Replay bool            `json:"replay"`
	Error  json.RawMessage `json:"error"`
	Ev     string          `json:"ev"`
	Seq    int64           `json:"seq"`
	Conv   string          `json:"conversationId"`
	Msg    string          `json:"messageId"`
	Gen    string          `json:"generationId"`
	Off    int             `json:"off"`
	Data   json.RawMessage `json:"data"`
}

// into decodes the data of a frame.
func (f *frame) into(t *testing.T, out any) {
	t.Helper()
	if err := json.Unmarshal(f.Data, out); err != nil {
		t.Fatalf("data of %s%s: %s: %v", f.Ev, f.ID, f.Data, err)
	}
}

// wsClient is a client on one WebSocket. It has no goroutine: it reads only when
// called.
type wsClient struct {
	t     *testing.T
	ws    *websocket.Conn
	batch []*frame // frames received but not returned yet
	ids   int
}

// dialWS connects to a server; dial may be nil.
func dialWS(t *testing.T, c *cli.Client, dial func(ctx context.Context, network, addr string) (net.Conn, error)) (*wsClient, error) {
	dialer := websocket.Dialer{HandshakeTimeout: testTimeout, NetDialContext: dial}
	header := map[string][]string{"Authorization": {"Bearer " + c.Token}}
	ws, res, err := dialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(c.Base, "http")+"/api/v1/ws", header)
	if err != nil {
		if res != nil {
			return nil, fmt.Errorf("%w: %s", err, res.Status)
		}
		return nil, err
	}
	t.Cleanup(func() { _ = ws.Close() })
	return &wsClient{t: t, ws: ws}, nil
}

// connectWS connects and sends hello.
func connectWS(t *testing.T, c *cli.Client, device string) *wsClient {
	t.Helper()
	p, err := dialWS(t, c, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := p.answer(p.send("hello", "", map[string]any{"protocol": 1, "deviceId": device}))
	if err != nil {
		t.Fatal(err)
	}
	if !(*f.OK) {
		t.Fatal(f.Error)
	}
	return p
}

// send writes a command and returns its id. A closed connection shows when the answer
// is read.
func (p *wsClient) send(cmd, key string, data any) string {
	p.t.Helper()
	p.ids++
	id := fmt.Sprintf("c%d", p.ids)
	object := map[string]any{"id": id, "cmd": cmd, "data": data}
	if key != "" {
		object["key"] = key
	}
	text, err := json.Marshal(object)
	if err != nil {
		p.t.Fatal(err)
	}
	_ = p.ws.WriteMessage(websocket.TextMessage, text)
	return id
}

// next reads one frame; an error means that the connection has ended.
func (p *wsClient) next() (*frame, error) {
	if len(p.batch) == 0 {
		_ = p.ws.SetReadDeadline(time.Now().Add(testTimeout))
		_, text, err := p.ws.ReadMessage()
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			p.t.Fatalf("no more frames")
		}
		if err != nil {
			return nil, err
		}
		if text[0] == '[' {
			err = json.Unmarshal(text, &p.batch)
		} else {
			p.batch = []*frame{{}}
			err = json.Unmarshal(text, p.batch[0])
		}
		if err != nil {
			p.t.Fatalf("%s: %v", text, err)
		}
	}
	f := p.batch[0]
	p.batch = p.batch[1:]
	return f, nil
}

// answer reads until the reply to a command comes.
func (p *wsClient) answer(id string) (*frame, error) {
	for {
		f, err := p.next()
		if err != nil || f.ID == id {
			return f, err
		}
	}
}
