package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"nodest/llm"
	"nodest/llm/llmtest"
)

// longModel is a model with a context, which refuses what is longer, as servers do. It writes replies of some 600
// characters with their number, and summaries.
type longModel struct {
	mu        sync.Mutex
	context   int // tokens; 0 = it takes everything
	replies   int
	summaries int
	refused   int
	last      []llmtest.Message // those of the newest request for a reply
}

const saidOften = "The tide went out past the old pier, and the gulls walked where the boats had been. "

func line(who string, n int) string {
	return fmt.Sprintf("[%s %d] %s", who, n, strings.Repeat(saidOften, 7))
}

func (m *longModel) reply(r llmtest.Request) llmtest.Reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	tokens := 0
	for _, said := range r.Messages {
		tokens += llm.EstimateTokens(said.Text) + 4
	}
	switch {
	case m.context > 0 && tokens > m.context:
		m.refused++
		return llmtest.Reply{Status: 400, Message: "This model's maximum context length is exceeded."}
	case len(r.Messages) == 1 && strings.Contains(r.Messages[0].Text, "<transcript>"):
		m.summaries++
		return llmtest.Say(strings.Repeat("They walked along the pier, watched the gulls and talked about the tide and the boats. ", 3))
	case len(r.Messages) == 1:
		return llmtest.Say("{}")
	}
	m.replies++
	m.last = r.Messages
	return llmtest.Say(line("reply", m.replies))
}

// sent is how many lines the newest request for a reply has word for word, and its tokens.
func (m *longModel) sent() (verbatim, tokens int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, said := range m.last {
		verbatim += len(lineNumber.FindAllString(said.Text, -1))
		tokens += llm.EstimateTokens(said.Text) + 4
	}
	return verbatim, tokens
}

var lineNumber = regexp.MustCompile(`\[(?:said|reply) \d+\]`)

// TestLongContextsAreUsed chats for 60 turns with models of several contexts. A long one gets the chat word for word,
// and pays for no summary; with a short one, summaries come in time, and no request is too long. Where the context
// is not known, the length of the settings counts.
func TestLongContextsAreUsed(t *testing.T) {
	t.Parallel()
	const turns = 60
	for _, tt := range []struct {
		context    int
		settings   string
		verbatim   [2]int // messages of the last request that are word for word, from and to
		summarised bool
	}{
		{128_000, `{}`, [2]int{119, 119}, false},
		{128_000, `{"memory":{"summaryTokens":8000}}`, [2]int{20, 80}, true},
		{128_000, `{"memory":{"summaryThreshold":60000}}`, [2]int{6, 90}, true},
		{32_768, `{}`, [2]int{40, 110}, true},
		{8192, `{}`, [2]int{6, 40}, true},
		{0, `{}`, [2]int{6, 20}, true},
	} {
		t.Run(fmt.Sprint(tt.context, tt.settings), func(t *testing.T) {
			t.Parallel()
			fake, model := llmtest.NewOpenAI(t), &longModel{context: tt.context}
			fake.SetModels("m")
			fake.SetContext(tt.context)
			fake.Always(model.reply)
			inst := newInstallation(t, "", "NODEST_PROVIDER=openai", "NODEST_MODEL=m", "OPENAI_BASE_URL="+fake.URL, "NODEST_EMBEDDINGS=offline")
			p := inst.start(t)
			character := sampleCharacter(t, p.client)
			if err := p.client.Call(t.Context(), http.MethodPut, "/api/v1/characters/"+character+"/settings", json.RawMessage(tt.settings), nil); err != nil {
				t.Fatal(err)
			}
			conversation := newConversation(t, p.client, character)
			phone, summarised := connectWS(t, p.client, "phone"), make(chan bool, 1)
			go func() { // until the server stops, which waits for those who read
				for f, err := phone.next(); err == nil; f, err = phone.next() {
					if f.Ev == "memory.summary" {
						select {
						case summarised <- true:
						default:
						}
					}
				}
			}()
			say := func(n int) {
				body := map[string]any{"text": line("said", n)}
				if err := p.client.Call(t.Context(), http.MethodPost, "/api/v1/conversations/"+conversation+"/messages", body, nil); err != nil {
					t.Fatalf("turn %d: %v", n, err)
				}
			}
			for n := range turns {
				say(n + 1)
			}
			if tt.summarised {
				<-summarised
				eventually(t, "a summary is in force", func() error { // its job may be later than the turns
					if said, _ := model.sent(); said <= tt.verbatim[1] {
						return nil
					}
					say(turns + 1)
					return errNotYet
				})
			}
			p.stop(t)
			verbatim, tokens := model.sent()
			t.Logf("context %d %s: %d of 119 messages word for word at turn 60, %d tokens, %d summary calls, %d requests refused",
				tt.context, tt.settings, verbatim, tokens, model.summaries, model.refused)
			if verbatim < tt.verbatim[0] || verbatim > tt.verbatim[1] {
				t.Errorf("%d messages word for word, want %v", verbatim, tt.verbatim)
			}
			if model.refused > 0 || (model.summaries > 0) != tt.summarised {
				t.Errorf("%d requests refused, %d summary calls", model.refused, model.summaries)
			}
		})
	}
}
