package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"nodest/circle"
	"nodest/fault"
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

// scriptedAsker is a model that does what models do: it mostly answers as it was asked,
// often repeats itself, now and then says something useless, and sometimes fails.
func scriptedAsker(seed uint64) llm.Asker {
	rnd := rand.New(rand.NewPCG(seed, 99))
	return llm.AskerFunc(func(_ context.Context, p llm.Prompt) (string, error) {
		n := rnd.IntN(1000)
		if n < 10 {
			return "", fault.New(fault.UpstreamDown, "the model is overloaded")
		}
		reply := scriptedReply(rnd, p)
		if n < 30 {
			reply = "I would rather not answer as JSON today."
		}
		used(p, p.Messages, reply)
		return reply, nil
	})
}

var (
	scriptSubjects = strings.Split("the kettle|an old map|the harbour bell|a letter without a stamp|the neighbour's cat|fresh bread|a broken umbrella|"+
		"the first swallow|a borrowed book|the tram at midnight|salt on the window|a quiet street|two left gloves|the tide table|a song from next door|"+
		"the last pear|a bench in the sun|the smell of varnish|a list of names|the wrong key", "|")
	scriptVerbs = strings.Split("kept me awake|made the morning better|is not what I remembered|taught me patience|deserves a better place|"+
		"turned up again|has changed my plans|will be missed|needs a second look|was worth the walk|followed me home|came at the right time", "|")
	scriptTails = strings.Split("Who else has noticed?|I may tell more tomorrow.|So it goes.|It took an hour.|That is enough for one day.|"+
		"I kept the note.|Nobody asked, I know.|Now it rains.|I laughed out loud.|The rest can wait.", "|")
)

// scriptedReply is an answer in the wanted shape. One of four texts is of a small stock, so
// that there is something to refuse.
func scriptedReply(rnd *rand.Rand, p llm.Prompt) string {
	pick := func(list []string) string { return list[rnd.IntN(len(list))] }
	subject := pick(scriptSubjects)
	text := fmt.Sprintf("%s%s %s. Then %s %s, and %s %s. %s", strings.ToUpper(subject[:1]), subject[1:], pick(scriptVerbs),
		pick(scriptSubjects), pick(scriptVerbs), pick(scriptSubjects), pick(scriptVerbs), pick(scriptTails))
	if rnd.IntN(4) == 0 {
		text = pick(scriptTails)
	}
	wanted := ""
	if len(p.Messages) > 0 {
		wanted = p.Messages[len(p.Messages)-1].Text
	}
	emotion := map[string]any{"type": []string{"positive", "neutral", "negative", "jubilant"}[rnd.IntN(4)], "intensity": rnd.Float64() * 1.2}
	answer := map[string]any{"thoughts": "I think of " + subject + ".", "emotion": emotion}
	switch {
	case strings.Contains(wanted, `"post"`):
		answer["post"] = text
	case strings.Contains(wanted, `"response"`):
		answer["response"] = text
	default:
		action := map[string]any{"like": rnd.IntN(2) == 0}
		if rnd.IntN(4) > 0 {
			action["comment"] = text
		}
		answer["action"] = action
		answer["end"] = rnd.IntN(8) == 0
	}
	body, err := json.Marshal(answer)
	if err != nil {
		panic(err) // strings and numbers can always be encoded
	}
	return string(body)
}
