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
	delta, done  []byte // how the frames are known that it waits for
	failed       []byte
}

// turnTimes tell of one turn.
type turnTimes struct {
	n           int
	sent, first time.Time // first delta
}

func dial(ctx context.Context, base, path, token string) (*websocket.Conn, error) {
	header := http.Header{}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	d := websocket.Dialer{HandshakeTimeout: 30 * time.Second, ReadBufferSize: 1024, WriteBufferSize: 1024}
	ws, res, err := d.DialContext(ctx, "ws"+strings.TrimPrefix(base, "http")+path, header)
	if res != nil {
		_ = res.Body.Close()
	}
	if err != nil && res != nil {
		return nil, fmt.Errorf("%w: %s", err, res.Status)
	}
	return ws, err
}

// greet connects a guest and says hello.
func greet(ctx context.Context, base string, g *guest, device string) (*websocket.Conn, error) {
	ws, err := dial(ctx, base, "/api/v1/ws", g.token)
	if err != nil {
		return nil, err
	}
	err = ws.WriteMessage(websocket.TextMessage, []byte(`{"id":"h","cmd":"hello","data":{"protocol":1,"deviceId":"`+device+`"}}`))
	if err == nil {
		var frame []byte
		_, frame, err = ws.ReadMessage()
		if err == nil && !bytes.Contains(frame, []byte(`"ok":true`)) {
			err = fmt.Errorf("hello: %s", frame)
		}
	}
	if err != nil {
		_ = ws.Close()
		return nil, err
	}
	return ws, nil
}

// talkers connects an app to NodeST for each guest.
func talkers(ctx context.Context, base string, list []*guest) ([]*talker, error) {
	all := make([]*talker, len(list))
	err := each(len(list), 16, func(i int) error {
		ws, err := greet(ctx, base, list[i], "bench")
		all[i] = &talker{
			ws: ws, conversation: list[i].conversation,
			delta: []byte(`"ev":"gen.delta"`), done: []byte(`"ev":"gen.done"`), failed: []byte(`"ev":"gen.failed"`),
		}
		return err
	})
	return all, err
}

// floorTalkers connects n apps to the floor.
func floorTalkers(ctx context.Context, base string, n int) ([]*talker, error) {
	all := make([]*talker, n)
	err := each(n, 16, func(i int) error {
		ws, err := dial(ctx, base, "/ws", "")
		all[i] = &talker{ws: ws, delta: []byte(`"type":"delta"`), done: []byte(`"type":"done"`), failed: []byte(`"type":"failed"`)}
		return err
	})
	return all, err
}

func hangUp(all []*talker) {
	for _, t := range all {
		if t != nil && t.ws != nil {
			_ = t.ws.Close()
		}
	}
}

// turn says something and reads the whole reply. That a token is missing is an
// error: a figure about a reply that is not whole would be worth nothing.
func (t *talker) turn(n, tokens int) (turnTimes, error) {
	frame := []byte(tagged(n))
	if t.conversation != "" {
		frame = fmt.Appendf(nil, `{"id":"c%d","cmd":"chat.send","key":"k%d-%s","data":{"conversationId":%q,"text":%q}}`, n, n, t.conversation[24:], t.conversation, tagged(n))
	}
	times := turnTimes{n: n, sent: time.Now()}
	if err := t.ws.WriteMessage(websocket.TextMessage, frame); err != nil {
		return times, err
	}
	for got := 0; ; {
		_, frame, err := t.ws.ReadMessage()
		switch {
		case err != nil:
			return times, err
		case bytes.Contains(frame, t.delta):
			if got == 0 {
				times.first = time.Now()
			}
			got += bytes.Count(frame, []byte("tok"))
		case bytes.Contains(frame, t.done):
			if got != tokens {
				return times, fmt.Errorf("%d of %d tokens arrived", got, tokens)
			}
			return times, nil
		case bytes.Contains(frame, t.failed), bytes.Contains(frame, []byte(`"ok":false`)):
			return times, fmt.Errorf("the turn failed: %s", frame)
		}
	}
}
