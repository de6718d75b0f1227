package nodest_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"nodest/character"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/llmtest"
	"nodest/llm/offline"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

// The circle's model is the user's: it gets whole prompts, tells what each has cost, and
// may be the offline model.
func TestTheModelOfTheCircle(t *testing.T) {
	t.Parallel()
	s, fake := withProvider(t)
	fake.Always(func(llmtest.Request) llmtest.Reply { return llmtest.Say(`{"post":"Hi"}`) })
	s.RealModel.Key, s.RealModel.Sees = "openai/ann", func(context.Context) bool { return true }
	model, err := s.CircleModel(t.Context(), nodesttest.Ann)
	s.Must(err)
	if model.Provider != s.RealModel.Provider || model.Name != s.RealModel.Name || model.Key != "openai/ann" || !model.Sees {
		t.Errorf("%+v, want the user's model", model)
	}
	var used []llm.Usage
	prompt := llm.Prompt{
		Messages: []llm.Message{{Role: llm.System, Text: "The circle."}, {Role: llm.User, Text: "Post.", Images: []llm.Image{{ContentType: "image/png", Data: []byte("cat")}}}},
		JSON:     true, Task: llm.Circle, Used: func(u llm.Usage) { used = append(used, u) },
	}
	if text, err := model.Ask(t.Context(), prompt); text != `{"post":"Hi"}` || err != nil {
		t.Errorf("reply = %q, %v", text, err)
	}
	got := fake.Requests()[0].Messages
	if len(got) != 2 || got[0].Text != "The circle." || len(got[1].Images) != 1 {
		t.Errorf("asked with %+v", got)
	}
	fake.Always(func(llmtest.Request) llmtest.Reply { return llmtest.Fail(503) })
	if _, err := model.Ask(t.Context(), prompt); !fault.Is(err, fault.UpstreamDown) {
		t.Errorf("error = %v", err)
	}
	if len(used) != 2 || used[0].PromptTokens == 0 || used[1] != (llm.Usage{}) {
		t.Errorf("used %+v, want once for each request, nothing for the one that was refused", used)
	}
	s.RealModel = &nodest.Model{Generator: offline.New(offline.Options{}), Provider: offline.Name, Name: offline.Model, Offline: true}
	model, err = s.CircleModel(t.Context(), nodesttest.Ann)
	if err != nil || model == nil || model.Provider != offline.Name || model.Key != "" || model.Sees {
		t.Errorf("with the offline demo: %+v, %v", model, err)
	}
	s.Options.TokensPerDay = 1
	s.Engine = s.AnotherEngine()
	if model, err := s.CircleModel(t.Context(), nodesttest.Ann); model != nil || err != nil {
		t.Errorf("when the day's tokens are used up: %+v, %v; want none", model, err)
	}
}

// An offered tool takes the place of the JSON mode, for models that call tools and users who want them called; where it leads
// to no answer, the model is asked without it.
func TestAnOfferIsMadeToModelsThatCallTools(t *testing.T) {
	t.Parallel()
	off := false
	const item, inWords = `{"text":"a"}`, `{"items":[]}`
	calls := llmtest.Reply{Parts: []llmtest.Part{{Text: "I save it."}, {Call: &llmtest.Call{ID: "c", Name: "save", Args: item}}}}
	for name, tt := range map[string]struct {
		options character.TurnOptions
		calls   func(context.Context) bool
		replies []llmtest.Reply
		reply   string // "" = an error
		asked   string
	}{
		"it calls the tool":                   {replies: []llmtest.Reply{calls}, reply: `{"items":[{"text":"a"}]}`, asked: "tool"},
		"it answers in words":                 {replies: []llmtest.Reply{llmtest.Say(inWords)}, reply: inWords, asked: "tool"},
		"it says nothing":                     {replies: []llmtest.Reply{llmtest.Say(), llmtest.Say(inWords)}, reply: inWords, asked: "tool json"},
		"its provider refuses tools":          {replies: []llmtest.Reply{{Status: 400, Message: "tools are not supported"}, llmtest.Say(inWords)}, reply: inWords, asked: "tool json"},
		"its provider refuses them otherwise": {replies: []llmtest.Reply{{Status: 422, Message: "no"}, llmtest.Say(inWords)}, reply: inWords, asked: "tool json"},
		"its provider is away":                {replies: []llmtest.Reply{llmtest.Fail(503)}, asked: "tool"},
		"it is known to call none":            {calls: func(context.Context) bool { return false }, replies: []llmtest.Reply{llmtest.Say(inWords)}, reply: inWords, asked: "json"},
		"the user wants none":                 {options: character.TurnOptions{UseToolCalls: &off}, replies: []llmtest.Reply{llmtest.Say(inWords)}, reply: inWords, asked: "json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, fake := withProvider(t)
			s.RealModel.Calls = tt.calls
			_, err := s.Characters.PutUserSettings(t.Context(), s.Call(), character.UserSettings{TurnOptions: tt.options}, 0)
			s.Must(err)
			fake.Script(tt.replies...)
			model, err := s.CircleModel(t.Context(), nodesttest.Ann)
			s.Must(err)
			told := 0
			reply, err := model.Ask(t.Context(), llm.Prompt{
				Text: "Which items?", JSON: true, Used: func(llm.Usage) { told++ },
				Offer: &llm.Offer{List: "items", Tool: llm.Tool{Name: "save", Parameters: json.RawMessage(`{"type":"object"}`)}},
			})
			if reply != tt.reply || (err == nil) != (tt.reply != "") || told != 1 {
				t.Errorf("the reply is %q, %v; the cost was told %d times", reply, err, told)
			}
			var asked []string
			for _, r := range fake.Requests() {
				switch json := strings.Contains(string(r.Body), `"response_format"`); {
				case len(r.Tools) > 0 && !json:
					asked = append(asked, "tool")
				case json:
					asked = append(asked, "json")
				}
			}
			if !slices.Equal(asked, strings.Fields(tt.asked)) {
				t.Errorf("asked %q, want %q", asked, tt.asked)
			}
		})
	}
}
