package circle

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"nodest/circle"
	"nodest/circle/rules"
	"nodest/framework"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/offline"
)

// watchedModel counts what a model is asked and looks for private text in it.
type watchedModel struct {
	name  string
	asker llm.Asker

	mu      sync.Mutex
	secrets []string
	calls   int64
	leaks   int64
	leaked  string // the first prompt with private text
}

// of is circle.Options.Model.
func (m *watchedModel) of(context.Context, string) (*circle.Model, error) {
	return &circle.Model{Asker: m, Provider: m.name, Name: m.name}, nil
}

// Ask passes a prompt on.
func (m *watchedModel) Ask(ctx context.Context, p llm.Prompt) (string, error) {
	text := p.Text
	for _, message := range p.Messages {
		text += "\n" + message.Text
	}
	m.mu.Lock()
	m.calls++
	for _, s := range m.secrets {
		if strings.Contains(text, s) {
			if m.leaks++; m.leaks == 1 {
				m.leaked = text
			}
			break
		}
	}
	m.mu.Unlock()
	return m.asker.Ask(ctx, p)
}

// offlineAsker asks the model that is built in.
func offlineAsker() llm.Asker {
	gen := offline.New(offline.Options{})
	return llm.AskerFunc(func(ctx context.Context, p llm.Prompt) (string, error) {
		req := llm.Request{
			Model: offline.Model, Messages: p.Messages, Task: p.Task, CharName: p.CharName, UserName: p.UserName, Variant: p.Variant, JSON: p.JSON,
		}
		if len(p.Messages) == 0 {
			req.Messages = []llm.Message{{Role: llm.User, Text: p.Text}}
		}
		var reply strings.Builder
		for c, err := range gen.Stream(ctx, req) {
			if err != nil {
				return "", err
			}
			reply.WriteString(c.Text)
		}
		used(p, req.Messages, reply.String())
		return reply.String(), nil
	})
}

// used reports the cost of a request.
func used(p llm.Prompt, messages []llm.Message, reply string) {
	if p.Used != nil {
		p.Used(llm.Usage{PromptTokens: llm.EstimatePrompt(messages), CompletionTokens: llm.EstimateTokens(reply)})
	}
}

// scripted is a model that does what models do: it mostly answers as it was asked, now and
// then repeats itself, says something useless or speaks of others, and sometimes fails.
type scripted struct {
	mu   sync.Mutex
	rnd  *rand.Rand
	said []said // so far, oldest first
}

func newScripted(seed uint64) *scripted { return &scripted{rnd: rand.New(rand.NewPCG(seed, 99))} }

// Ask answers a prompt.
func (m *scripted) Ask(_ context.Context, p llm.Prompt) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.rnd.IntN(1000)
	if n < 10 {
		return "", fault.New(fault.UpstreamDown, "the model is overloaded")
	}
	reply := "I would rather not answer as JSON today."
	if n >= 30 {
		reply = m.reply(p)
	}
	used(p, p.Messages, reply)
	return reply, nil
}

// reply is an answer in the wanted shape.
func (m *scripted) reply(p llm.Prompt) string {
	wanted := p.Messages[len(p.Messages)-1].Text
	if strings.Contains(wanted, "关系更新:") {
		return fmt.Sprintf("关系更新:\nr1-%+d", m.rnd.IntN(13)-4)
	}
	emotion := map[string]any{"type": []string{"positive", "neutral", "negative", "jubilant"}[m.rnd.IntN(4)], "intensity": m.rnd.Float64() * 1.2}
	answer := map[string]any{"thoughts": "I keep that to myself.", "emotion": emotion, "evidence": []string{}}
	post := strings.Contains(wanted, `"post"`)
	text := m.text(p.CharName, wanted, post)
	if about := rules.Mentions(p.Messages[0].Text, circleNames); len(about) > 0 && m.rnd.IntN(12) == 0 {
		text += " (" + about[m.rnd.IntN(len(about))] + "!)"
		if m.rnd.IntN(2) == 0 {
			answer["evidence"] = []string{"p1", "c1"}
		}
	}
	if post {
		answer["post"] = text
	} else {
		action := map[string]any{"like": m.rnd.IntN(2) == 0}
		if m.rnd.IntN(4) > 0 {
			action["comment"] = text
		}
		answer["action"] = action
		answer["end"] = m.rnd.IntN(8) == 0
	}
	body, err := json.Marshal(answer)
	if err != nil {
		panic(err) // strings and numbers can always be encoded
	}
	return string(body)
}

// text is what a character says. One of eight texts was said before, by the same character
// or by another one, word for word or with two words changed.
func (m *scripted) text(character, wanted string, post bool) string {
	s, language := scriptEN, framework.English
	if chinese(character) {
		s, language = scriptZH, framework.Chinese
	}
	kind := rules.Kind("")
	for k := range s.openings {
		if post && strings.Contains(wanted, k.Words(language)) {
			kind = k
		}
	}
	text := s.compose(m.rnd, character, kind)
	if m.rnd.IntN(8) == 0 {
		if earlier := m.earlier(character); earlier != "" && m.rnd.IntN(2) == 0 {
			text = earlier
		} else if earlier != "" {
			text = twist(m.rnd, earlier)
		}
	}
	m.said = append(m.said, said{author: character, text: text})
	return text
}

// earlier is one of the latest 40 texts of a character, or of the latest 300 of all that
// speak its language; "" = there is none.
func (m *scripted) earlier(character string) string {
	own, most := m.rnd.IntN(2) == 0, 300
	if own {
		most = 40
	}
	var from []string
	for _, s := range slices.Backward(m.said) {
		if len(from) < most && (s.author == character || !own && chinese(s.text) == chinese(character)) {
			from = append(from, s.text)
		}
	}
	if len(from) == 0 {
		return ""
	}
	return from[m.rnd.IntN(len(from))]
}
