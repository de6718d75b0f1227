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
	"github.com/stretchr/testify/require"
)

// frame is whatever the server sends over a WebSocket.
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
	require.NoError(t, json.Unmarshal(f.Data, out), "data of %s%s: %s", f.Ev, f.ID, f.Data)
}

// phone is an app on one WebSocket. It has no goroutine: it reads when it is
// asked to.
type phone struct {
	t       *testing.T
	ws      *websocket.Conn
	waiting []*frame // of a batch, not used yet
	ids     int
}

// dialPhone connects through any address; base names the server.
func dialPhone(t *testing.T, c *client, dial func(ctx context.Context, network, addr string) (net.Conn, error)) (*phone, error) {
	dialer := websocket.Dialer{HandshakeTimeout: patience, NetDialContext: dial}
	header := map[string][]string{"Authorization": {"Bearer " + c.token}}
	ws, res, err := dialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(c.base, "http")+"/api/v1/ws", header)
	if err != nil {
		if res != nil {
			return nil, fmt.Errorf("%w: %s", err, res.Status)
		}
		return nil, err
	}
	t.Cleanup(func() { _ = ws.Close() })
	return &phone{t: t, ws: ws}, nil
}

// newPhone connects and says hello.
func newPhone(t *testing.T, c *client, device string) *phone {
	t.Helper()
	p, err := dialPhone(t, c, nil)
	require.NoError(t, err)
	f, err := p.answer(p.send("hello", "", map[string]any{"protocol": 1, "deviceId": device}))
	require.NoError(t, err)
	require.True(t, *f.OK, "%s", f.Error)
	return p
}

// send writes a command and returns its id. That the connection has ended shows
// when the answer is read.
func (p *phone) send(cmd, key string, data any) string {
	p.t.Helper()
	p.ids++
	id := fmt.Sprintf("c%d", p.ids)
	object := map[string]any{"id": id, "cmd": cmd, "data": data}
	if key != "" {
		object["key"] = key
	}
	text, err := json.Marshal(object)
	require.NoError(p.t, err)
	_ = p.ws.WriteMessage(websocket.TextMessage, text)
	return id
}

// next reads one frame; an error means that the connection has ended.
func (p *phone) next() (*frame, error) {
	if len(p.waiting) == 0 {
		_ = p.ws.SetReadDeadline(time.Now().Add(patience))
		_, text, err := p.ws.ReadMessage()
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			p.t.Fatalf("nothing comes any more")
		}
		if err != nil {
			return nil, err
		}
		if text[0] == '[' {
			err = json.Unmarshal(text, &p.waiting)
		} else {
			p.waiting = []*frame{{}}
			err = json.Unmarshal(text, p.waiting[0])
		}
		require.NoError(p.t, err, "%s", text)
	}
	f := p.waiting[0]
	p.waiting = p.waiting[1:]
	return f, nil
}

// answer reads until the reply to a command comes.
func (p *phone) answer(id string) (*frame, error) {
	for {
		f, err := p.next()
		if err != nil || f.ID == id {
			return f, err
		}
	}
}
