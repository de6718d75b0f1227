package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"nodest/llm/llmtest"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/store"
)

// What a provider is asked for.
const (
	forReply     = "reply"
	forFacts     = "facts"
	forDecisions = "decisions"
	forSummary   = "summary"
	forVectors   = "vectors"
)

// notebook is a provider that answers whatever memory asks for. It can keep the
// next request of a kind waiting.
type notebook struct {
	*llmtest.Fake
	t *testing.T

	mu      sync.Mutex
	held    map[string]chan chan struct{} // by kind; gets what lets the request go
	asked   map[string]int
	inputs  map[string]int // texts that vectors were made for
	summary int
}

func newNotebook(t *testing.T) *notebook {
	n := &notebook{Fake: llmtest.NewOpenAI(t), t: t, held: map[string]chan chan struct{}{}, asked: map[string]int{}, inputs: map[string]int{}}
	n.Always(n.answer)
	return n
}

// hold keeps the next request of a kind waiting. It delivers what lets the request
// go when it is closed.
func (n *notebook) hold(kind string) <-chan chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.held[kind] = make(chan chan struct{}, 1)
	return n.held[kind]
}

func (n *notebook) answer(req llmtest.Request) llmtest.Reply {
	prompt := ""
	if len(req.Messages) > 0 {
		prompt = req.Messages[len(req.Messages)-1].Text
	}
	kind := forReply
	switch {
	case strings.HasSuffix(req.Path, "/embeddings"):
		kind = forVectors
	case strings.Contains(prompt, `{"facts":[`):
		kind = forFacts
	case strings.Contains(prompt, `{"memory":[`):
		kind = forDecisions
	case strings.Contains(prompt, "<transcript>"):
		kind = forSummary
	}
	reply := n.note(kind, req, prompt)
	n.mu.Lock()
	held := n.held[kind]
	delete(n.held, kind)
	n.mu.Unlock()
	if held != nil {
		gate := make(chan struct{})
		held <- gate
		select {
		case <-gate:
		case <-n.t.Context().Done():
		}
	}
	return reply
}

func (n *notebook) note(kind string, req llmtest.Request, prompt string) llmtest.Reply {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked[kind]++
	switch kind {
	case forFacts:
		return llmtest.Say(statements(prompt))
	case forDecisions:
		return llmtest.Say(allNew(prompt))
	case forSummary:
		n.summary++
		// Long enough for any range, and without numbers: nobody said them.
		return llmtest.Say(fmt.Sprintf("Notes %c%c: many a boat was named", 'a'+n.summary/26, 'a'+n.summary%26) +
			strings.Repeat(", one after the other, and nobody has chosen one yet", 5) + ".")
	case forVectors:
		var in struct{ Input []string }
		_ = json.Unmarshal(req.Body, &in) // the fake has accepted it
		for _, text := range in.Input {
			n.inputs[text]++
		}
	}
	return llmtest.Say("All is well.")
}

var (
	shownLine = regexp.MustCompile(`(?m)^\{"seq":(\d+),"who":"user".*"text":"(.*)"\}$`)
	newLine   = regexp.MustCompile(`(?m)^\{"new":(\d+),"text":"(.*)"`)
)

// statements are the facts of a prompt's messages: each of the user's, word for word.
func statements(prompt string) string {
	var facts []string
	for _, m := range shownLine.FindAllStringSubmatch(prompt, -1) {
		facts = append(facts, fmt.Sprintf(`{"text":"%s","subject":"user","kind":"other","importance":0.5,"event_time":null,"seqs":[%s]}`, m[2], m[1]))
	}
	return `{"facts":[` + strings.Join(facts, ",") + `]}`
}

// allNew says that nothing of a prompt was known before.
func allNew(prompt string) string {
	var added []string
	for _, m := range newLine.FindAllStringSubmatch(prompt, -1) {
		added = append(added, fmt.Sprintf(`{"new":%s,"id":null,"event":"ADD","text":"%s"}`, m[1], m[2]))
	}
	return `{"memory":[` + strings.Join(added, ",") + `]}`
}

// await returns what lets a held request go, once it has come.
func await(t *testing.T, what string, held <-chan chan struct{}) chan struct{} {
	t.Helper()
	select {
	case gate := <-held:
		return gate
	case <-time.After(patience):
		t.Fatalf("nobody has asked for %s", what)
		return nil
	}
}

// remembering is a server with one chat, over many processes.
type remembering struct {
	t            *testing.T
	inst         *installation
	p            *process
	character    string
	conversation string
	said         []string
}

func newRemembering(t *testing.T, url string, env ...string) *remembering {
	r := &remembering{t: t, inst: newInstallation(t, url, env...)}
	r.p = r.inst.start(t)
	r.character = sampleCharacter(t, r.p.client)
	r.conversation = newConversation(t, r.p.client, r.character)
	return r
}

// says sends messages that nobody answers.
func (r *remembering) says(texts ...string) {
	r.t.Helper()
	for _, text := range texts {
		r.post("/conversations/"+r.conversation+"/messages", map[string]any{"text": text, "reply": false})
		r.said = append(r.said, text)
	}
}

func (r *remembering) post(path string, body any) {
	r.t.Helper()
	require.NoError(r.t, r.p.client.call(r.t.Context(), http.MethodPost, "/api/v1"+path, body, nil), path)
}

// killed ends the server as a power cut does, lets go what it was asking for, and
// starts it again.
func (r *remembering) killed(gate chan struct{}) {
	r.t.Helper()
	r.p.kill(r.t)
	close(gate)
	r.p = r.inst.start(r.t)
}

// rest waits until no work about the character is left that is due.
func (r *remembering) rest() {
	r.t.Helper()
	eventually(r.t, "the work in the background", func() error {
		for _, j := range dueJobs(r.t, r.p.client, r.character, 20*time.Second) { // not those that wait for a rest
			return fmt.Errorf("%s is %s: %w", j.Kind, j.State, errNotYet)
		}
		return nil
	})
}

type wireJobs struct {
	Kind, State, Subject string
	Attempt              int
	NotBefore            *time.Time
	Error                json.RawMessage
}

// dueJobs are those about a character that run or are due soon.
func dueJobs(t *testing.T, c *client, character string, soon time.Duration) []wireJobs {
	t.Helper()
	var page pageOf[wireJobs]
	require.NoError(t, c.call(t.Context(), http.MethodGet, "/api/v1/characters/"+character+"/memory/jobs?limit=60", nil, &page))
	return slices.DeleteFunc(page.Items, func(j wireJobs) bool {
		later := j.NotBefore != nil && time.Until(*j.NotBefore) > soon
		return j.State != "running" && (j.State != "queued" || later)
	})
}

// verify looks whether every message is there once and, when facts are wanted,
// every fact.
func (r *remembering) verify(facts bool) {
	r.t.Helper()
	r.rest()
	var texts []string
	for _, m := range history(r.t, r.p.client, r.conversation) {
		if m.Role == "user" {
			texts = append(texts, m.Text)
		}
	}
	require.Equal(r.t, r.said, texts, "the chat")
	memories, err := all[struct{ Text, Status string }](r.t.Context(), r.p.client, "/api/v1/characters/"+r.character+"/memories?status=any")
	require.NoError(r.t, err)
	var known []string
	for _, m := range memories {
		require.Equal(r.t, "active", m.Status, m.Text)
		known = append(known, m.Text)
	}
	if facts {
		require.ElementsMatch(r.t, r.said, known, "what is remembered")
	}
}

// boats are statements of which none follows from another.
func boats(from, n int) []string {
	names := []string{"Albatross", "Barnacle", "Cormorant", "Dolphin", "Egret", "Fulmar", "Gannet", "Heron", "Ibis", "Jackdaw", "Kestrel", "Lapwing"}
	out := make([]string, n)
	for i := range out {
		k := from + i
		out[i] = fmt.Sprintf("My %s boat number %d is called %s.", []string{"red", "blue", "green", "old"}[k%4], 100+k, names[k%len(names)])
	}
	return out
}

// TestKillDuringExtraction kills the server while a model reads a chat, at each of
// its calls and right after the last answer. What was said is read again, and every
// fact is there once.
func TestKillDuringExtraction(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		cycles := long(t, 1, 20)
		model := newNotebook(t)
		r := newRemembering(t, url, "NODEST_PROVIDER=openai", "NODEST_MODEL=fake", "OPENAI_BASE_URL="+model.URL, "NODEST_EMBEDDINGS=offline")
		r.extract(boats(0, 3)) // something is known: the model is asked twice from now on
		for cycle := range cycles {
			for i, kill := range []struct {
				at    string
				after bool // the answer
			}{{forFacts, false}, {forDecisions, false}, {forFacts, true}, {forDecisions, true}} {
				r.says(boats(3+3*(4*cycle+i), 3)...)
				held := model.hold(kill.at)
				r.post("/conversations/"+r.conversation+"/memory/extract", nil)
				gate := await(t, kill.at, held)
				if kill.after {
					close(gate)
					gate = make(chan struct{})
				}
				r.killed(gate)
				r.verify(true)
			}
		}
		r.p.stop(t)
	})
}

// extract says something and waits until it is remembered.
func (r *remembering) extract(texts []string) {
	r.t.Helper()
	r.says(texts...)
	r.post("/conversations/"+r.conversation+"/memory/extract", nil)
	r.verify(true)
}

// TestKillWhileEmbeddingAnew changes the model of the vectors and kills the server
// between two batches. Every text has one vector in the end, of the new model; no
// more than a batch was made twice; and meanwhile texts are found.
func TestKillWhileEmbeddingAnew(t *testing.T) {
	t.Parallel()
	model := newNotebook(t)
	texts := long(t, 150, 600)
	r := newRemembering(t, "")
	r.says(boats(0, texts)...)
	r.rest()
	r.p.stop(t)

	held := model.hold(forVectors)
	r.inst.env = append(r.inst.env, "NODEST_EMBEDDINGS=openai", "NODEST_EMBEDDING_MODEL=fake-embedding", "OPENAI_BASE_URL="+model.URL)
	r.p = r.inst.start(t)
	kills := 0
	for ; kills < 2; kills++ { // before the first batch is stored, and before the second
		gate := await(t, "vectors", held)
		held = model.hold(forVectors)
		if kills == 1 {
			close(gate)
			gate = await(t, "vectors", held)
			held = model.hold(forVectors)
		}
		r.killed(gate)
	}
	close(await(t, "vectors", held))
	r.finds("boat number 105", boats(5, 1)[0])
	r.verify(false)
	r.finds("boat number 105", boats(5, 1)[0])
	r.p.stop(t)

	model.mu.Lock()
	made := 0
	for text, times := range model.inputs {
		made += times
		require.LessOrEqual(t, times, 1+kills+2, text) // what was looked for is embedded too
	}
	model.mu.Unlock()
	require.LessOrEqual(t, made, texts+(kills+1)*64+8, "texts that vectors were made for")
	r.vectors("openai:fake-embedding", texts)
}

// finds searches for what was said. The vectors mean nothing, so it may stand anywhere
// in the list.
func (r *remembering) finds(query, want string) {
	r.t.Helper()
	var page pageOf[struct{ Text string }]
	path := "/api/v1/characters/" + r.character + "/memories?mode=recall&q=" + strings.ReplaceAll(query, " ", "+")
	require.NoError(r.t, r.p.client.call(r.t.Context(), http.MethodGet, path, nil, &page))
	var texts []string
	for _, hit := range page.Items {
		texts = append(texts, hit.Text)
	}
	require.Contains(r.t, texts, want)
}

// vectors looks into the database of a server that has stopped.
func (r *remembering) vectors(model string, texts int) {
	r.t.Helper()
	db, err := store.Open(r.t.Context(), store.Options{Dir: filepath.Join(r.inst.dir, "data")})
	require.NoError(r.t, err)
	defer func() { require.NoError(r.t, db.Close()) }()
	left, err := db.Memory().Unembedded(r.t.Context(), model, memory.Scope{}, 10)
	require.NoError(r.t, err)
	require.Empty(r.t, left, "characters without vectors")
	users, err := db.Users(r.t.Context())
	require.NoError(r.t, err)
	require.NoError(r.t, db.Memory().View(r.t.Context(), users[0].ID, func(tx memory.Tx) error {
		all, err := tx.MemoryChanges(r.character, 0)
		if err != nil {
			return err
		}
		said := 0
		for i := range all.Units {
			u := &all.Units[i]
			require.Len(r.t, u.Vectors, 1, u.Text)
			require.Equal(r.t, model, u.Vectors[0].Model, u.Text)
			if u.Speaker == lang.RoleUser {
				said++
			}
		}
		require.Equal(r.t, texts, said, "texts of the user")
		return nil
	}))
}

// TestKillDuringASummary kills the server while a model writes a summary, and right
// after it has. The summary is there once and in force, each time the next
// generation, and no message is lost.
func TestKillDuringASummary(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, url string) {
		cycles := 2 * long(t, 1, 15)
		model := newNotebook(t)
		r := newRemembering(t, url, "NODEST_PROVIDER=openai", "NODEST_MODEL=fake", "OPENAI_BASE_URL="+model.URL, "NODEST_EMBEDDINGS=offline")
		next := 0
		for cycle := range cycles {
			for _, text := range boats(next, 10) {
				r.says(text + strings.Repeat(" It sails well, and far.", 20))
			}
			next += 10
			held := model.hold(forSummary)
			r.post("/conversations/"+r.conversation+"/summaries", nil)
			gate := await(t, "a summary", held)
			if cycle%2 == 1 {
				close(gate)
				gate = make(chan struct{})
			}
			r.killed(gate)
			r.summarised(cycle + 1)
			r.verify(false)
		}
		r.p.stop(t)
	})
}

// summarised waits for a generation of summaries and compares it with what there is.
func (r *remembering) summarised(generation int) {
	r.t.Helper()
	var list pageOf[struct {
		Summary    string
		Generation int
		Active     bool
	}]
	eventually(r.t, "the summary", func() error {
		path := "/api/v1/conversations/" + r.conversation + "/summaries"
		require.NoError(r.t, r.p.client.call(r.t.Context(), http.MethodGet, path, nil, &list))
		if len(list.Items) < generation {
			return errNotYet
		}
		return nil
	})
	require.Len(r.t, list.Items, generation)
	for i, s := range list.Items {
		require.Equal(r.t, generation-i, s.Generation)
		require.Equal(r.t, i == 0, s.Active, "summary %d in force", s.Generation)
		require.True(r.t, strings.HasPrefix(s.Summary, "Notes "), s.Summary)
	}
}
