package nodest_test

import (
	"context"
	"testing"

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
