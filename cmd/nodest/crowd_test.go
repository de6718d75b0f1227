package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"nodest/llm/llmtest"
)

// TestManyRepliesAtOnceShareTheirFrames lets 20 replies be written at once. The first text of each
// comes at once; from then on they are read at common beats, so that there are fewer frames than
// pieces. Nothing is missing, and nothing comes twice.
func TestManyRepliesAtOnceShareTheirFrames(t *testing.T) {
	t.Parallel()
	const replies, pieces = 20, 50
	fake := llmtest.NewOpenAI(t)
	said := make([]string, pieces)
	for i := range said {
		said[i] = fmt.Sprintf("piece %d, ", i)
	}
	whole := strings.TrimSpace(strings.Join(said, ""))
	gates := make(chan chan struct{}, replies)
	fake.Always(func(r llmtest.Request) llmtest.Reply {
		if len(r.Messages) <= 1 { // in the background, about the memory, or for the list of models
			return llmtest.Say("{}")
		}
		reply, gate := llmtest.Say(said...), make(chan struct{})
		reply.Gate = gate
		gates <- gate
		return reply
	})
	inst := newInstallation(t, "", "NODEST_PROVIDER=openai", "NODEST_MODEL=fake", "OPENAI_BASE_URL="+fake.URL, fmt.Sprintf("NODEST_GENERATIONS=%d", replies))
	p := inst.start(t)
	ws := connectWS(t, p.client, "reader")
	character := sampleCharacter(t, p.client)
	answered := make(chan error, replies)
	for range replies {
		path := "/api/v1/conversations/" + newConversation(t, p.client, character) + "/messages"
		go func() {
			answered <- p.client.Call(t.Context(), http.MethodPost, path, map[string]any{"text": "Count."}, nil)
		}()
	}
	var waiting []chan struct{}
	for range replies {
		gate := <-gates
		gate <- struct{}{}
		waiting = append(waiting, gate)
	}
	texts, frames, done := map[string]string{}, 0, 0
	for done < replies {
		f, err := ws.next()
		if err != nil {
			t.Fatal(err)
		}
		switch f.Ev {
		case "gen.delta":
			var d struct{ Text string }
			f.into(t, &d)
			if texts[f.Gen] += d.Text; len(texts) == replies && waiting != nil { // all have begun
				for _, gate := range waiting {
					close(gate)
				}
				waiting = nil
			}
			frames++
		case "gen.done":
			done++
			if got := strings.TrimSpace(texts[f.Gen]); got != whole {
				t.Fatalf("strings.TrimSpace(texts[f.Gen]) is %q, want %q", got, whole)
			}
		case "gen.failed":
			t.Fatalf("a reply failed: %s", f.Data)
		}
	}
	for range replies {
		if <-answered != nil {
			t.Fatal(<-answered)
		}
	}
	if frames >= replies*pieces/2 {
		t.Fatalf("frames is %d, want less than %d", frames, replies*pieces/2)
	}
	t.Logf("%d frames for %d pieces", frames, replies*pieces)
	p.stop(t)
}
