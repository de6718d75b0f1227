package server

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"nodest/llm/llmtest"
)

// keeper is a server whose provider proposes knowledge when a goal ends.
type keeper struct {
	*testServer
	chat  string
	fake  *llmtest.Fake
	goals int
}

// newKeeper starts a chat whose character has knowledge proposed. proposes answers the requests for it; what is said gets a
// reply without tools.
func newKeeper(t *testing.T, proposes llmtest.Server) *keeper {
	t.Helper()
	k := &keeper{}
	fake, model := newProvider(t, func(r llmtest.Request) llmtest.Reply {
		if isReflection(r) {
			return proposes(r)
		}
		return llmtest.Say("It sails at nine.")
	})
	k.fake, k.testServer = fake, newTestServerOf(t, parts{models: alone(model)}, nil)
	k.chat = k.newChat()
	k.rest("PUT", "/characters/"+k.characterOf(k.chat)+"/settings", `{"cognition":{"extract":true}}`).wants(t, 200)
	return k
}

func isReflection(r llmtest.Request) bool {
	return len(r.Messages) > 0 && strings.Contains(r.Messages[len(r.Messages)-1].Text, "knowledge_save_pending")
}

// reflects says something, ends a goal and waits until as many extractions are pending as are wanted. It returns what they say.
func (k *keeper) reflects(want int) (contents []string) {
	k.t.Helper()
	p, _ := k.connect(map[string]any{"deviceId": "phone"})
	k.goals++
	k.reply(p, k.chat, fmt.Sprintf("When does ferry %d sail?", k.goals), nil)
	goal := stringAt(k.rest("POST", "/conversations/"+k.chat+"/goals", `{"description":"Travel."}`).wants(k.t, 201), "id")
	k.rest("PATCH", "/goals/"+goal, `{"status":"completed"}`).wants(k.t, 200)
	eventually(k.t, "the knowledge is proposed", func() bool { return len(k.logOf(k.chat, "?type=extraction_pending")) >= want })
	for _, x := range k.rest("GET", "/conversations/"+k.chat+"/extractions?state=pending", "").wants(k.t, 200)["items"].([]any) {
		contents = append(contents, stringAt(x.(map[string]any), "payload.content"))
	}
	return contents
}

// asked are the requests for knowledge: "tool" where the tool was offered, "json" where the answer was to be JSON.
func (k *keeper) asked() (all []string) {
	for _, r := range k.fake.Requests() {
		switch {
		case !isReflection(r):
		case len(r.Tools) > 0:
			all = append(all, "tool")
		case strings.Contains(string(r.Body), `"response_format"`):
			all = append(all, "json")
		default:
			all = append(all, "text")
		}
	}
	return all
}

func saves(arguments ...string) llmtest.Reply {
	r := llmtest.Say()
	for i, a := range arguments {
		r.Parts = append(r.Parts, llmtest.Part{Call: &llmtest.Call{ID: fmt.Sprint("call", i), Name: "knowledge_save_pending", Args: a}})
	}
	return r
}

// A model that calls tools proposes knowledge by calls of knowledge_save_pending, each of which is an extraction to review.
func TestKnowledgeIsProposedByCalls(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, func(llmtest.Request) llmtest.Reply {
		return saves(`{"content":"The ferry sails at nine.","task":"travel","types":["fact"],"score":4}`, `{"content":"Alice knows the harbour."}`)
	})
	if got := k.reflects(2); !slices.Equal(got, []string{"The ferry sails at nine.", "Alice knows the harbour."}) || !slices.Equal(k.asked(), []string{"tool"}) {
		t.Errorf("pending %q, asked %v", got, k.asked())
	}
	for _, r := range k.fake.Requests() {
		if isReflection(r) && (r.Tools[0].Name != "knowledge_save_pending" || !strings.Contains(string(r.Tools[0].Parameters), `"required":["content"]`)) {
			t.Errorf("the tool is %s", r.Tools[0].Parameters)
		}
	}
	first := k.logOf(k.chat, "?type=extraction_pending")[0].(map[string]any)
	if stringAt(first, "payload.task") != "travel" || stringAt(first, "payload.source_category") != "exp" {
		t.Errorf("the proposal is %v", first)
	}
}

// A model that calls tools may also write the answer, as it does when nothing is worth keeping.
func TestKnowledgeIsProposedInWordsInPlaceOfCalls(t *testing.T) {
	t.Parallel()
	k := newKeeper(t, func(llmtest.Request) llmtest.Reply {
		return llmtest.Say(`{"extractions":[{"content":"The ferry sails at nine."}]}`)
	})
	if got := k.reflects(1); !slices.Equal(got, []string{"The ferry sails at nine."}) || !slices.Equal(k.asked(), []string{"tool"}) {
		t.Errorf("pending %q, asked %v", got, k.asked())
	}
}

// A model whose provider refuses tools gives one JSON answer, and is not asked with the tool again.
func TestKnowledgeIsProposedWithoutTools(t *testing.T) {
	t.Parallel()
	var answers atomic.Int64
	k := newKeeper(t, func(r llmtest.Request) llmtest.Reply {
		if len(r.Tools) > 0 {
			return llmtest.Reply{Status: 400, Message: "this model does not support tools"}
		}
		return llmtest.Say(fmt.Sprintf(`{"extractions":[{"content":"Ferry %d sails at nine."}]}`, answers.Add(1)))
	})
	k.reflects(1)
	if got := k.reflects(2); !slices.Equal(got, []string{"Ferry 1 sails at nine.", "Ferry 2 sails at nine."}) || !slices.Equal(k.asked(), []string{"tool", "json", "json"}) {
		t.Errorf("pending %q, asked %v", got, k.asked())
	}
}

// Calls that cannot be read are left out one by one; if none can, the model is asked for the JSON answer.
func TestBrokenCallsAreLeftOut(t *testing.T) {
	t.Parallel()
	broken := `{"content":"The ferry sa`
	k := newKeeper(t, func(r llmtest.Request) llmtest.Reply {
		switch {
		case len(r.Tools) == 0:
			return llmtest.Say(`{"extractions":[{"content":"The lamp is green."}]}`)
		case strings.Contains(string(r.Body), "ferry 2"):
			return saves(broken)
		}
		return saves(broken, `{"content":"Alice knows the harbour."}`, `{"content":["x"]}`, `{"task":"nothing"}`, `{"content":"The inn is closed.","score":"high"}`)
	})
	if got := k.reflects(2); !slices.Equal(got, []string{"Alice knows the harbour.", "The inn is closed."}) || !slices.Equal(k.asked(), []string{"tool"}) {
		t.Errorf("pending %q, asked %v", got, k.asked())
	}
	if got := k.reflects(3); len(got) != 3 || got[2] != "The lamp is green." || !slices.Equal(k.asked(), []string{"tool", "tool", "json"}) {
		t.Errorf("pending %q, asked %v", got, k.asked())
	}
}
