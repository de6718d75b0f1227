package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/gorilla/websocket"

	"nodest/llm/sse"
)

// Floor is a minimal Go proxy between an app and a model, which NodeST's cost is
// compared with: each frame of a WebSocket is a prompt for the model at upstream, and
// each token of the answer a JSON frame. It stores nothing and has no users. It runs
// until ctx ends.
func Floor(ctx context.Context, out io.Writer, upstream string) error {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	f := &floor{upstream: upstream + "/chat/completions", http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}}}
	server := &http.Server{Handler: http.HandlerFunc(f.serve), ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	fmt.Fprintf(out, "the floor listens on http://%s\n", ln.Addr())
	if err := server.Serve(ln); ctx.Err() == nil {
		return err
	}
	return nil
}

type floor struct {
	upstream string
	http     *http.Client
	up       websocket.Upgrader
}

// floorFrame is a frame that the floor sends.
type floorFrame struct {
	Ev   string `json:"ev"`
	Seq  int    `json:"seq"`
	Text string `json:"text"`
}

func (f *floor) serve(w http.ResponseWriter, r *http.Request) {
	ws, err := f.up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = ws.Close() }()
	for {
		_, prompt, err := ws.ReadMessage()
		if err != nil {
			return
		}
		seq := 0
		err = f.ask(r.Context(), string(prompt), func(text string) error {
			seq++
			return ws.WriteJSON(floorFrame{"gen.delta", seq, text})
		})
		if err != nil {
			return // the app sees the connection end
		}
		if ws.WriteJSON(floorFrame{Ev: "gen.done"}) != nil {
			return
		}
	}
}

// ask streams one completion.
func (f *floor) ask(ctx context.Context, prompt string, each func(string) error) error {
	body, err := json.Marshal(map[string]any{"model": "bench", "stream": true, "messages": []any{map[string]string{"role": "user", "content": prompt}}})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.upstream, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := f.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	events := sse.NewReader(res.Body, 64<<10)
	for {
		data, err := events.Next()
		if errors.Is(err, io.EOF) || err == nil && bytes.Equal(data, []byte("[DONE]")) {
			return nil
		}
		if err != nil {
			return err
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
			} `json:"choices"`
		}
		if err := json.Unmarshal(data, &chunk); err != nil {
			return err
		}
		if len(chunk.Choices) == 0 || chunk.Choices[0].Delta.Content == "" {
			continue
		}
		if err := each(chunk.Choices[0].Delta.Content); err != nil {
			return err
		}
	}
}
