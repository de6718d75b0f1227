package server

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nodest/op"
)

// twin is one thing that is asked over both transports. In path and data, {name}
// stands for what an earlier case kept under that name.
type twin struct {
	name    string
	command string
	data    map[string]any
	method  string
	path    string
	body    string            // of REST; "" = none
	status  int               // of REST
	code    string            // of the error; "" = success
	keeps   map[string]string // name -> path in the answer
}

// twins are played in order, once over REST and once over the WebSocket, each on
// a server of its own.
var twins = []twin{
	{
		name: "create a conversation", command: "chat.create", data: map[string]any{"characterId": "{character}", "title": "Tea"},
		method: "POST", path: "/conversations", body: `{"characterId":"{character}","title":"Tea"}`, status: 201,
		keeps: map[string]string{"chat": "id", "greeting": "headId"},
	}, {
		name: "of a character that is not there", command: "chat.create", data: map[string]any{"characterId": "{nobody}"},
		method: "POST", path: "/conversations", body: `{"characterId":"{nobody}"}`, status: 404, code: "not_found",
	}, {
		name: "with a member that is unknown", command: "chat.create", data: map[string]any{"characterId": "{character}", "colour": "red"},
		method: "POST", path: "/conversations", body: `{"characterId":"{character}","colour":"red"}`, status: 400, code: "invalid_field",
	}, {
		name: "with a title that is no string", command: "chat.create", data: map[string]any{"characterId": "{character}", "title": 7},
		method: "POST", path: "/conversations", body: `{"characterId":"{character}","title":7}`, status: 400, code: "invalid_field",
	}, {
		name: "a message without a reply", command: "chat.send",
		data:   map[string]any{"conversationId": "{chat}", "text": "Hello", "clientMsgId": "mine", "reply": false},
		method: "POST", path: "/conversations/{chat}/messages", body: `{"text":"Hello","clientMsgId":"mine","reply":false}`, status: 200,
		keeps: map[string]string{"said": "userMessage.id"},
	}, {
		name: "a message of nothing", command: "chat.send", data: map[string]any{"conversationId": "{chat}", "text": ""},
		method: "POST", path: "/conversations/{chat}/messages", body: `{"text":""}`, status: 400, code: "invalid_field",
	}, {
		name: "a message that is too long", command: "chat.send", data: map[string]any{"conversationId": "{chat}", "text": longText},
		method: "POST", path: "/conversations/{chat}/messages", body: `{"text":"` + longText + `"}`, status: 413, code: "too_large",
	}, {
		name: "a temperature out of range", command: "chat.send",
		data:   map[string]any{"conversationId": "{chat}", "text": "Hi", "options": map[string]any{"temperature": 7}},
		method: "POST", path: "/conversations/{chat}/messages", body: `{"text":"Hi","options":{"temperature":7}}`, status: 400, code: "invalid_field",
	}, {
		name: "a message to nobody", command: "chat.send", data: map[string]any{"conversationId": "{nobody}", "text": "Hi"},
		method: "POST", path: "/conversations/{nobody}/messages", body: `{"text":"Hi"}`, status: 404, code: "not_found",
	}, {
		name: "edit", command: "message.edit", data: map[string]any{"messageId": "{said}", "text": "Hello there"},
		method: "PATCH", path: "/messages/{said}", body: `{"text":"Hello there"}`, status: 200,
	}, {
		name: "edit what has changed since", command: "message.edit", data: map[string]any{"messageId": "{said}", "text": "Late", "ifRev": 1},
		method: "PATCH", path: "/messages/{said}", body: `{"text":"Late","ifRev":1}`, status: 409, code: "conflict",
	}, {
		name: "a mode that is unknown", command: "message.edit", data: map[string]any{"messageId": "{said}", "text": "x", "mode": "odd"},
		method: "PATCH", path: "/messages/{said}", body: `{"text":"x","mode":"odd"}`, status: 400, code: "invalid_field",
	}, {
		name: "edit on a branch", command: "message.edit", data: map[string]any{"messageId": "{said}", "text": "Other words", "mode": "branch"},
		method: "PATCH", path: "/messages/{said}", body: `{"text":"Other words","mode":"branch"}`, status: 200,
		keeps: map[string]string{"other": "message.id"},
	}, {
		name: "answer what the character said", command: "message.edit",
		data:   map[string]any{"messageId": "{greeting}", "text": "Well met", "regenerate": true},
		method: "PATCH", path: "/messages/{greeting}", body: `{"text":"Well met","regenerate":true}`, status: 400, code: "invalid_field",
	}, {
		name: "the branches", command: "chat.branches", data: map[string]any{"conversationId": "{chat}"},
		method: "GET", path: "/conversations/{chat}/branches", status: 200,
	}, {
		name: "the branches of nothing", command: "chat.branches", data: map[string]any{"conversationId": "{nobody}"},
		method: "GET", path: "/conversations/{nobody}/branches", status: 404, code: "not_found",
	}, {
		name: "the head of before", command: "chat.head", data: map[string]any{"conversationId": "{chat}", "messageId": "{said}"},
		method: "PUT", path: "/conversations/{chat}/head", body: `{"messageId":"{said}"}`, status: 200,
	}, {
		name: "a head that is not there", command: "chat.head", data: map[string]any{"conversationId": "{chat}", "messageId": "{nobody}"},
		method: "PUT", path: "/conversations/{chat}/head", body: `{"messageId":"{nobody}"}`, status: 404, code: "not_found",
	}, {
		name: "history", command: "chat.history", data: map[string]any{"conversationId": "{chat}", "limit": 1},
		method: "GET", path: "/conversations/{chat}/messages?limit=1", status: 200,
	}, {
		name: "history without end", command: "chat.history", data: map[string]any{"conversationId": "{chat}", "limit": 201},
		method: "GET", path: "/conversations/{chat}/messages?limit=201", status: 400, code: "invalid_field",
	}, {
		name: "history before a message", command: "chat.history", data: map[string]any{"conversationId": "{chat}", "before": "{said}"},
		method: "GET", path: "/conversations/{chat}/messages?before={said}", status: 200,
	}, {
		name: "the next swipe where there is none", command: "message.swipe", data: map[string]any{"messageId": "{greeting}", "swipe": "nonsense"},
		method: "POST", path: "/messages/{greeting}/swipe", body: `{"swipe":"nonsense"}`, status: 404, code: "not_found",
	}, {
		name: "rename", command: "chat.update", data: map[string]any{"conversationId": "{chat}", "title": "Coffee"},
		method: "PATCH", path: "/conversations/{chat}", body: `{"title":"Coffee"}`, status: 200,
	}, {
		name: "rename what has changed since", command: "chat.update", data: map[string]any{"conversationId": "{chat}", "title": "Late", "ifVersion": 1},
		method: "PATCH", path: "/conversations/{chat}", body: `{"title":"Late","ifVersion":1}`, status: 412, code: "precondition_failed",
	}, {
		name: "delete a message", command: "message.delete", data: map[string]any{"messageId": "{said}", "scope": "one"},
		method: "DELETE", path: "/messages/{said}?scope=one", status: 200,
	}, {
		name: "in an odd scope", command: "message.delete", data: map[string]any{"messageId": "{said}", "scope": "all"},
		method: "DELETE", path: "/messages/{said}?scope=all", status: 400, code: "invalid_field",
	}, {
		name: "bring it back", command: "message.restore", data: map[string]any{"messageId": "{said}"},
		method: "POST", path: "/messages/{said}/restore", status: 200,
	}, {
		name: "the prompt that would be sent", command: "prompt.preview", data: map[string]any{"conversationId": "{chat}", "text": "Well?"},
		method: "POST", path: "/conversations/{chat}/prompt", body: `{"text":"Well?"}`, status: 200,
	}, {
		name: "a prompt that was never sent", command: "prompt.get", data: map[string]any{"promptId": "{nobody}"},
		method: "GET", path: "/prompts/{nobody}", status: 404, code: "not_found",
	}, {
		name: "the difference to nothing", command: "prompt.diff", data: map[string]any{"promptId": "{nobody}"},
		method: "GET", path: "/prompts/{nobody}/diff", status: 400, code: "invalid_field",
	}, {
		name: "fork a branch", command: "chat.fork", data: map[string]any{"conversationId": "{chat}", "messageId": "{other}", "title": "Tea with milk"},
		method: "POST", path: "/conversations/{chat}/fork", body: `{"messageId":"{other}","title":"Tea with milk"}`, status: 201,
		keeps: map[string]string{"fork": "id", "forked": "headId"},
	}, {
		name: "fork at a message of another conversation", command: "chat.fork", data: map[string]any{"conversationId": "{fork}", "messageId": "{said}"},
		method: "POST", path: "/conversations/{fork}/fork", body: `{"messageId":"{said}"}`, status: 404, code: "not_found",
	}, {
		name: "find words", command: "chat.search", data: map[string]any{"q": "other WORDS", "conversationId": "{fork}"},
		method: "GET", path: "/messages/search?q=other+WORDS&conversationId={fork}", status: 200,
	}, {
		name: "find nothing in particular", command: "chat.search", data: map[string]any{"q": " "},
		method: "GET", path: "/messages/search?q=+", status: 400, code: "invalid_field",
	}, {
		name: "find too many", command: "chat.search", data: map[string]any{"q": "tea", "limit": 201},
		method: "GET", path: "/messages/search?q=tea&limit=201", status: 400, code: "invalid_field",
	}, {
		name: "save", command: "save.create", data: map[string]any{"conversationId": "{fork}", "description": "before the milk"},
		method: "POST", path: "/conversations/{fork}/saves", body: `{"description":"before the milk"}`, status: 201,
		keeps: map[string]string{"save": "id"},
	}, {
		name: "save nothing", command: "save.create", data: map[string]any{"conversationId": "{nobody}", "description": "x"},
		method: "POST", path: "/conversations/{nobody}/saves", body: `{"description":"x"}`, status: 404, code: "not_found",
	}, {
		name: "a description that is no string", command: "save.create", data: map[string]any{"conversationId": "{fork}", "description": 1},
		method: "POST", path: "/conversations/{fork}/saves", body: `{"description":1}`, status: 400, code: "invalid_field",
	}, {
		name: "begin again", command: "chat.reset", data: map[string]any{"conversationId": "{fork}"},
		method: "POST", path: "/conversations/{fork}/reset", status: 200,
	}, {
		name: "begin nothing again", command: "chat.reset", data: map[string]any{"conversationId": "{nobody}"},
		method: "POST", path: "/conversations/{nobody}/reset", status: 404, code: "not_found",
	}, {
		name: "read the save point", command: "save.get", data: map[string]any{"saveId": "{save}"},
		method: "GET", path: "/saves/{save}", status: 200,
	}, {
		name: "read the end of it", command: "save.get", data: map[string]any{"saveId": "{save}", "limit": 1},
		method: "GET", path: "/saves/{save}?limit=1", status: 200,
	}, {
		name: "read what is before its end", command: "save.get", data: map[string]any{"saveId": "{save}", "before": "{forked}", "limit": 5},
		method: "GET", path: "/saves/{save}?before={forked}&limit=5", status: 200,
	}, {
		name: "read none of it", command: "save.get", data: map[string]any{"saveId": "{save}", "limit": 0},
		method: "GET", path: "/saves/{save}?limit=0", status: 400, code: "invalid_field",
	}, {
		name: "the prompt of then", command: "save.preview", data: map[string]any{"saveId": "{save}", "text": "Well?"},
		method: "POST", path: "/saves/{save}/prompt", body: `{"text":"Well?"}`, status: 200,
	}, {
		name: "the prompt of never", command: "save.preview", data: map[string]any{"saveId": "{nobody}"},
		method: "POST", path: "/saves/{nobody}/prompt", status: 404, code: "not_found",
	}, {
		name: "restore", command: "save.restore", data: map[string]any{"saveId": "{save}"},
		method: "POST", path: "/saves/{save}/restore", status: 200,
		keeps: map[string]string{"automatic": "before.id"},
	}, {
		name: "restore what is not there", command: "save.restore", data: map[string]any{"saveId": "{nobody}"},
		method: "POST", path: "/saves/{nobody}/restore", status: 404, code: "not_found",
	}, {
		name: "save points", command: "save.list", data: map[string]any{"conversationId": "{fork}"},
		method: "GET", path: "/conversations/{fork}/saves", status: 200,
	}, {
		name: "save points, automatic ones too", command: "save.list", data: map[string]any{"conversationId": "{fork}", "automatic": true},
		method: "GET", path: "/conversations/{fork}/saves?automatic=true", status: 200,
	}, {
		name: "save points of nothing", command: "save.list", data: map[string]any{"conversationId": "{nobody}"},
		method: "GET", path: "/conversations/{nobody}/saves", status: 404, code: "not_found",
	}, {
		name: "delete a save point", command: "save.delete", data: map[string]any{"saveId": "{save}"},
		method: "DELETE", path: "/saves/{save}", status: 204,
	}, {
		name: "delete it again", command: "save.delete", data: map[string]any{"saveId": "{save}"},
		method: "DELETE", path: "/saves/{save}", status: 404, code: "not_found",
	}, {
		name: "read what was deleted", command: "save.get", data: map[string]any{"saveId": "{save}"},
		method: "GET", path: "/saves/{save}", status: 404, code: "not_found",
	}, {
		name: "look at a card", command: "card.lint", data: map[string]any{"name": "Alice", "first_mes": "Hi"},
		method: "POST", path: "/lint", body: `{"first_mes":"Hi","name":"Alice"}`, status: 200,
	}, {
		name: "cancel what is not there", command: "gen.cancel", data: map[string]any{"generationId": "{nobody}"},
		method: "POST", path: "/generations/{nobody}/cancel", status: 404, code: "not_found",
	}, {
		name: "attach to what is not there", command: "gen.attach", data: map[string]any{"generationId": "{nobody}", "off": 0},
		method: "GET", path: "/generations/{nobody}?off=0", status: 404, code: "not_found",
	}, {
		name: "read up to here", command: "ack", data: map[string]any{"seq": 3, "read": map[string]any{"{chat}": "{said}"}},
		method: "PUT", path: "/devices/d-twin/ack", body: `{"seq":3,"read":{"{chat}":"{said}"}}`, status: 200,
	}, {
		name: "delete", command: "chat.delete", data: map[string]any{"conversationId": "{chat}"},
		method: "DELETE", path: "/conversations/{chat}", status: 204,
	}, {
		name: "delete again", command: "chat.delete", data: map[string]any{"conversationId": "{chat}"},
		method: "DELETE", path: "/conversations/{chat}", status: 404, code: "not_found",
	},
}

var longText = strings.Repeat("a", 32_001)

// TestTwins plays the table over REST and over the WebSocket and compares every
// answer: the same results, the same errors, the same states.
func TestTwins(t *testing.T) {
	rest, ws := build(t, nil), build(t, nil)
	phone, _ := ws.phone(map[string]any{"deviceId": "d-twin"})
	restNames := map[string]string{"character": rest.character(), "nobody": op.NewID()}
	wsNames := map[string]string{"character": ws.character(), "nobody": op.NewID()}
	for i, c := range twins {
		t.Run(c.name, func(t *testing.T) {
			key := fmt.Sprint("twin-", i)
			a := rest.rest(c.method, fill(c.path, restNames), fill(c.body, restNames), "Idempotency-Key: "+key, "X-Device-Id: d-twin")
			if a.status != c.status {
				t.Fatalf("REST: %d %s; want %d", a.status, a.body, c.status)
			}
			data, err := json.Marshal(c.data)
			ws.must(err)
			f := phone.do(c.command, key, json.RawMessage(fill(string(data), wsNames)))
			if c.code != "" {
				sameProblem(t, a, f, c)
				return
			}
			if !*f.OK {
				t.Fatalf("WebSocket: %+v", f.Error)
			}
			left, right := map[string]any{}, map[string]any{}
			if a.status != 204 {
				left = a.object(t)
			}
			if err := json.Unmarshal(f.Data, &right); err != nil {
				t.Fatal(err)
			}
			keep(t, c.keeps, left, restNames)
			keep(t, c.keeps, right, wsNames)
			if diff := cmp.Diff(steady(left), steady(right)); diff != "" {
				t.Errorf("REST and WebSocket differ:\n%s", diff)
			}
		})
	}
}

func (h *house) character() string {
	h.t.Helper()
	a := h.rest("POST", "/characters", `{"roleCard":`+alicesCard+`}`)
	if a.status != 201 {
		h.t.Fatalf("%d %s", a.status, a.body)
	}
	return a.object(h.t)["id"].(string)
}

func sameProblem(t *testing.T, a *restAnswer, f *frame, c twin) {
	t.Helper()
	if *f.OK {
		t.Fatalf("the WebSocket succeeds: %s", f.Data)
	}
	var p problem
	if err := json.Unmarshal(a.body, &p); err != nil {
		t.Fatal(err)
	}
	if string(p.Code) != c.code || p.Status != c.status || p.Type != "urn:nodest:error:"+c.code || p.RequestID == "" {
		t.Errorf("REST: %s", a.body)
	}
	p.Type, p.RequestID = "", ""
	other := *f.Error
	other.RequestID = ""
	if diff := cmp.Diff(steady(p), steady(other)); diff != "" {
		t.Errorf("REST and WebSocket differ:\n%s", diff)
	}
}

// fill puts what was kept in the place of {name}.
func fill(s string, names map[string]string) string {
	for name, value := range names {
		s = strings.ReplaceAll(s, "{"+name+"}", value)
	}
	return s
}

func keep(t *testing.T, keeps map[string]string, answer map[string]any, names map[string]string) {
	t.Helper()
	for name, path := range keeps {
		var v any = answer
		for _, member := range strings.Split(path, ".") {
			object, _ := v.(map[string]any)
			v = object[member]
		}
		id, ok := v.(string)
		if !ok || id == "" {
			t.Fatalf("no %s in %v", path, answer)
		}
		names[name] = id
	}
}

var (
	anID   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	aTime  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
	anAge  = regexp.MustCompile(`"timestamp": ?\d{13}`)
	aPrint = regexp.MustCompile(`"(hash|digest)": ?"[0-9a-f]+"`)
)

// steady is an answer without what must differ between two servers: ids, times
// and hashes of ids.
func steady(v any) string {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	s := anID.ReplaceAllString(string(b), "ID")
	s = anAge.ReplaceAllString(s, `"$1":"MS"`)
	return aPrint.ReplaceAllString(aTime.ReplaceAllString(s, "TIME"), `"hash":"HASH"`)
}
