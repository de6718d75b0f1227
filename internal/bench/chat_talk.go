package bench

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/websocket"
)

// talker is a client on one WebSocket, of NodeST or of the floor.
type talker struct {
	ws           *websocket.Conn
	conversation string // "" = of the floor
}

// turnTimes are the times of one turn.
type turnTimes struct {
	n           int
	sent, first time.Time // first text of the reply
}

func dial(ctx context.Context, url, token string) (*talker, error) {
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	d := websocket.Dialer{HandshakeTimeout: 30 * time.Second, ReadBufferSize: 1024, WriteBufferSize: 1024}
	ws, res, err := d.DialContext(ctx, "ws"+strings.TrimPrefix(url, "http"), header)
	if res != nil {
		_ = res.Body.Close()
	}
	if err != nil && res != nil {
		err = fmt.Errorf("%w: %s", err, res.Status)
	}
	return &talker{ws: ws}, err
}

// greet connects a guest and says hello.
func greet(ctx context.Context, base string, g *guest, device string) (*talker, error) {
	t, err := dial(ctx, base+"/api/v1/ws", g.token)
	if err != nil {
		return t, err
	}
	if len(g.chats) > 0 {
		t.conversation = g.chats[0].id
	}
	err = t.ws.WriteMessage(websocket.TextMessage, []byte(`{"id":"h","cmd":"hello","data":{"protocol":1,"deviceId":"`+device+`"}}`))
	if err != nil {
		return t, err
	}
	_, frame, err := t.ws.ReadMessage()
	if err == nil && !bytes.Contains(frame, []byte(`"ok":true`)) {
		err = fmt.Errorf("hello: %s", frame)
	}
	return t, err
}

// connect opens n connections. They need hangUp, also after an error.
func connect(n int, open func(i int) (*talker, error)) ([]*talker, error) {
	all := make([]*talker, n)
	err := each(n, 64, func(i int) (err error) {
		all[i], err = open(i)
		return err
	})
	return all, err
}

func hangUp(all []*talker) {
	for _, t := range all {
		if t.ws != nil {
			_ = t.ws.Close()
		}
	}
}

// The frames that a talker waits for; the floor has the same.
var (
	deltaFrame  = []byte(`"ev":"gen.delta"`)
	wholeFrame  = []byte(`"ev":"message.updated"`)
	doneFrame   = []byte(`"ev":"gen.done"`)
	failedFrame = []byte(`"ev":"gen.failed"`)
	refused     = []byte(`"ok":false`)
)

// turn says something and reads the whole reply. A missing token is an error: a figure
// about an incomplete reply would be worth nothing.
func (t *talker) turn(n, tokens int) (turnTimes, error) {
	got := 0
	times, err := t.say(n, tagged(n), func(delta []byte) { got += bytes.Count(delta, []byte("tok")) })
	if err == nil && got != tokens {
		err = fmt.Errorf("%d of %d tokens arrived", got, tokens)
	}
	return times, err
}

// say sends a text with the tag of turn n, passes the frames of the reply to delta, and returns
// when the reply is stored. A reply that ends while older events are still being sent has no
// deltas, only the whole message.
func (t *talker) say(n int, text string, delta func(frame []byte)) (turnTimes, error) {
	frame := []byte(text)
	if t.conversation != "" {
		frame = fmt.Appendf(nil, `{"id":"c%d","cmd":"chat.send","key":"k%d-%s","data":{"conversationId":%q,"text":%q}}`, n, n, t.conversation[24:], t.conversation, text)
	}
	times := turnTimes{n: n, sent: time.Now()}
	if err := t.ws.WriteMessage(websocket.TextMessage, frame); err != nil {
		return times, err
	}
	for {
		_, frame, err := t.ws.ReadMessage()
		switch {
		case err != nil:
			return times, err
		case bytes.Contains(frame, deltaFrame), bytes.Contains(frame, wholeFrame) && times.first.IsZero():
			if times.first.IsZero() {
				times.first = time.Now()
			}
			delta(frame)
		case bytes.Contains(frame, doneFrame):
			return times, nil
		case bytes.Contains(frame, failedFrame), bytes.Contains(frame, refused):
			return times, fmt.Errorf("the turn failed: %s", frame)
		}
	}
}
