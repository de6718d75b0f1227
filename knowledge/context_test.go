package knowledge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"nodest/internal/fault"
	"nodest/knowledge"
	"nodest/knowledge/knowledgetest"
	"nodest/knowledge/search"
	"nodest/llm"
)

// writer is a model that writes context lines; it can fail as a test says.
type writer struct {
	fail func(call int) error // nil = it never fails
	hold func()               // is called first, by each call at the same time; may be nil
	say  func(n int) []string // for n passages; nil = a line with the word that no document has
	mu   sync.Mutex
	seen []string // prompts
}

// unsaid is a word of context lines that no document has.
const unsaid = "Wolkenkuckucksheim"

func (w *writer) Ask(_ context.Context, p llm.Prompt) (string, error) {
	if w.hold != nil {
		w.hold()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	prompt := p.Messages[len(p.Messages)-1].Text
	w.seen = append(w.seen, prompt)
	if w.fail != nil {
		if err := w.fail(len(w.seen)); err != nil {
			return "", err
		}
	}
	n := strings.Count(prompt, "<passage ")
	lines := make([]string, n)
	for i := range lines {
		lines[i] = fmt.Sprint("Passage ", i+1, " is about ", unsaid)
	}
	if w.say != nil {
		lines = w.say(n)
	}
	text, err := json.Marshal(lines)
	return "```json\n" + string(text) + "\n```", err
}

func (w *writer) calls() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen)
}

// onContexts runs a test with a knowledge base whose chunks get context lines.
func onContexts(t *testing.T, test func(p *pipe, w *writer, base string)) {
	t.Helper()
	w := &writer{}
	change := func(o *knowledge.Options) {
		o.Model = func(context.Context, string) (*knowledge.Model, error) {
			return &knowledge.Model{Asker: w, Provider: "test", Name: "writer"}, nil
		}
	}
	onPipes(t, change, func(p *pipe) {
		*w = writer{}
		on := true
		name := "Harbour"
		b, err := p.Svc.CreateBase(context.Background(), p.Call(), knowledge.NewBase{Name: &name, ContextLines: &on})
		p.Must(err)
		test(p, w, b.ID)
	})
}

func TestContextLinesAreSearchedAndNeverShown(t *testing.T) {
	t.Parallel()
	onContexts(t, func(p *pipe, w *writer, base string) {
		f := p.UploadTo(base, "places.md", harbour(append(places, "mill", "quay")...))
		p.drain()
		f = p.isReady(f.ID)
		p.Equal("warnings", len(f.Warnings), 0)
		p.Equal("calls for nine chunks", w.calls(), 2)
		if !strings.Contains(w.seen[0], `<document name="places.md"`) || !strings.Contains(w.seen[0], "The lighthouse stands") {
			p.Errorf("the model was shown %.300s", w.seen[0])
		}
		for _, mode := range []string{search.Lexical, search.Hybrid, search.Vector} {
			r := p.search(knowledge.SearchRequest{Query: unsaid, Mode: mode})
			if len(r.Chunks) == 0 {
				p.Fatalf("%s: what the line says is not found", mode)
			}
			if seen := fmt.Sprintf("%+v", r); strings.Contains(seen, unsaid) {
				p.Errorf("%s: the line is shown: %s", mode, seen)
			}
		}
		if !slices.ContainsFunc(p.embeds.made, func(text string) bool {
			return strings.HasPrefix(text, "places.md › The lighthouse\nPassage 1 is about "+unsaid+"\n# The lighthouse")
		}) {
			p.Errorf("what was embedded: %.300q", p.embeds.made)
		}
	})
}

func TestNoContextLineIsPaidForTwice(t *testing.T) {
	t.Parallel()
	onContexts(t, func(p *pipe, w *writer, base string) {
		words := append(slices.Clone(places), "mill", "quay", "dock", "crane", "rope", "anchor", "barrel", "sail", "mast", "hull") // 17 chunks, three calls
		for n := 1; ; n++ {
			before := w.calls()
			f := p.UploadTo(base, fmt.Sprint("places", n, ".md"), harbour(append(words, fmt.Sprint("pier", n))...))
			p.killAt = n
			p.drain()
			p.isReady(f.ID)
			p.Equal("rows of lines", p.rows("knowledge_contexts", f.ID), len(words)+1)
			if paid := w.calls() - before; paid > 3+3 { // the answers that were not stored
				p.Errorf("killed at %d: %d calls", n, paid)
			}
			if p.killAt > 0 { // it was not killed any more
				p.killAt = 0
				break
			}
		}

		f := p.UploadTo(base, "again.md", harbour(words...))
		p.drain()
		before := w.calls()
		_, err := p.Svc.Replace(context.Background(), p.Call(), f.ID, 0, knowledgetest.NewFile("again.md", harbour(append(words, "lantern")...)))
		p.Must(err)
		p.drain()
		p.isReady(f.ID)
		p.Equal("calls for one new chunk", w.calls()-before, 1)
		p.Equal("rows of lines", p.rows("knowledge_contexts", f.ID), len(words)+1)

		p.Must(p.Svc.DeleteFile(context.Background(), p.Call(), f.ID))
		p.drain()
		p.Equal("rows of lines of a deleted file", p.rows("knowledge_contexts", f.ID), 0)
	})
}

func TestAModelThatFailsLeavesTheFileWithoutLines(t *testing.T) {
	t.Parallel()
	onContexts(t, func(p *pipe, w *writer, base string) {
		w.fail = func(int) error { return llm.Upstream("test", fault.UpstreamAuth, 401, nil) }
		f := p.UploadTo(base, "places.md", harbour(places...))
		p.drain()
		f = p.isReady(f.ID)
		p.Equal("warnings", f.Warnings, []string{"7_chunks_without_context"})
		p.Equal("calls", w.calls(), 1)

		w.fail = func(call int) error {
			if call == 2 { // this call belongs to the second attempt
				return llm.Upstream("test", fault.UpstreamDown, 503, nil)
			}
			return nil
		}
		_, err := p.Svc.Reindex(context.Background(), p.Call(), base)
		p.Must(err)
		p.drain()
		f = p.isReady(f.ID)
		p.Equal("warnings after another try", len(f.Warnings), 0)
		p.Equal("chunks found by their line", len(p.search(knowledge.SearchRequest{Query: unsaid, Mode: search.Lexical}).Chunks) > 0, true)
	})
}

func TestAnswersOfAnotherFormAreNotUsed(t *testing.T) {
	t.Parallel()
	onContexts(t, func(p *pipe, w *writer, base string) {
		w.say = func(n int) []string { return make([]string, n+1) }
		f := p.UploadTo(base, "places.md", harbour(places...))
		p.drain()
		p.Equal("warnings", p.isReady(f.ID).Warnings, []string{"7_chunks_without_context"})
		p.Equal("calls", w.calls(), 3)
	})
}

func TestAModelThatNeverAnswersInFormIsGivenUp(t *testing.T) {
	t.Parallel()
	onContexts(t, func(p *pipe, w *writer, base string) {
		w.say = func(n int) []string { return make([]string, n+1) }
		words := make([]string, 200) // 25 requests, three tries each
		for i := range words {
			words[i] = fmt.Sprint("pier", i)
		}
		f := p.UploadTo(base, "places.md", harbour(words...))
		p.drain()
		p.isReady(f.ID)
		if most := (4 + 3) * 3; w.calls() > most { // and those that were under way
			p.Errorf("%d calls, want at most %d", w.calls(), most)
		}
	})
}

// A model that thinks has no answer the first time: then it gets more room.
func TestAnEmptyAnswerIsAskedForAgain(t *testing.T) {
	t.Parallel()
	onContexts(t, func(p *pipe, w *writer, base string) {
		w.fail = func(call int) error {
			if call == 1 {
				return fault.New(fault.EmptyReply, "reasoning used up the token limit")
			}
			return nil
		}
		f := p.UploadTo(base, "places.md", harbour(places...))
		p.drain()
		p.Equal("warnings", len(p.isReady(f.ID).Warnings), 0)
	})
}

func TestSwitchingContextLinesOffRemovesThem(t *testing.T) {
	t.Parallel()
	onContexts(t, func(p *pipe, w *writer, base string) {
		f := p.UploadTo(base, "places.md", harbour(places...))
		p.drain()
		off := false
		_, err := p.Svc.UpdateBase(context.Background(), p.Call(), base, 0, knowledge.NewBase{ContextLines: &off})
		p.Must(err)
		_, err = p.Svc.Reindex(context.Background(), p.Call(), base)
		p.Must(err)
		p.drain()
		p.isReady(f.ID)
		p.Equal("rows of lines", p.rows("knowledge_contexts", f.ID), 0)
		p.Equal("chunks found", len(p.search(knowledge.SearchRequest{Query: unsaid, Mode: search.Lexical}).Chunks), 0)
	})
}

// Lines for the files of others would be paid for by these.
func TestContextLinesAreOnlyForFilesOfTheOwner(t *testing.T) {
	t.Parallel()
	onContexts(t, func(p *pipe, w *writer, base string) {
		owner := p.User
		guest := p.other()
		_, err := p.Svc.PutGrant(context.Background(), p.Call(), base, guest.User, knowledge.AccessWrite)
		p.Must(err)
		p.User = guest.User
		f := p.UploadTo(base, "places.md", harbour(places...))
		p.drain()
		p.isReady(f.ID)
		p.User = owner
		p.Equal("calls", w.calls(), 0)
	})
}

// Two files that wait for a model would be all that a process works on.
func TestFilesThatWaitForAModelHoldNobodyUp(t *testing.T) {
	t.Parallel()
	onContexts(t, func(p *pipe, w *writer, base string) {
		asked, answer := make(chan bool, 100), make(chan bool)
		w.hold = func() { asked <- true; <-answer }
		slow := []string{p.UploadTo(base, "a.md", harbour(places...)).ID, p.UploadTo(base, "b.md", harbour("mill", "quay")).ID}
		var running sync.WaitGroup
		for range slow {
			j := p.claim(2)
			running.Go(func() { p.run(context.Background(), j) })
		}
		<-asked
		<-asked
		guest := p.other()
		owner := p.User
		p.User = guest.User
		f := p.Upload("notes.md", harbour("dock"))
		p.drain()
		p.isReady(f.ID)
		p.User = owner
		close(answer)
		running.Wait()
		p.drain()
		for _, id := range slow {
			p.Equal("warnings", len(p.isReady(id).Warnings), 0)
		}
	})
}
