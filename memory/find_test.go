package memory_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/memory/recall"
	"nodest/nodest"
)

const (
	sunrise     = "I painted a sunrise over the lighthouse."
	windmill    = "I painted a windmill beside the canal."
	sunriseFact = "Ann painted the sunrise in oil."
)

// A text that is no longer shown, and a fact based on it, are not recalled, however
// it was hidden; they are recalled again once it is shown.
func TestHiddenTextsAreNotRecalled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		hide    func(r *fixture, m *chat.Message)
		instead []string // found while it is hidden
		back    func(r *fixture, m *chat.Message, version int64)
	}{
		{
			"an edit, and a restore before it",
			func(r *fixture, m *chat.Message) { r.changeMessage(m.ID, editTo(windmill)) }, []string{windmill},
			func(r *fixture, m *chat.Message, version int64) { r.rewind(m.ConversationID, version) },
		},
		{
			"another swipe, and the first one again",
			func(r *fixture, m *chat.Message) { r.changeMessage(m.ID, swipeTo(windmill)) }, []string{windmill},
			func(r *fixture, m *chat.Message, _ int64) {
				r.changeMessage(m.ID, func(m *chat.Message) { m.SwipeIndex = 0 })
			},
		},
		{
			"a deletion that is undone",
			func(r *fixture, m *chat.Message) {
				r.changeMessage(m.ID, func(m *chat.Message) { m.DeletedAt = &noon })
			}, nil,
			func(r *fixture, m *chat.Message, _ int64) {
				r.changeMessage(m.ID, func(m *chat.Message) { m.DeletedAt = nil })
			},
		},
		{
			"another branch",
			func(r *fixture, m *chat.Message) { r.addMessage(m.ConversationID, m.ParentID, "Ann: "+windmill) }, []string{windmill},
			func(r *fixture, m *chat.Message, _ int64) { r.setHead(m.ConversationID, m.ID) },
		},
		{
			"the branch in front of it",
			func(r *fixture, m *chat.Message) { r.setHead(m.ConversationID, m.ParentID) }, nil,
			func(r *fixture, m *chat.Message, version int64) { r.rewind(m.ConversationID, version) },
		},
		{
			"the end of its conversation",
			func(r *fixture, m *chat.Message) {
				r.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(m.ConversationID) })
			}, nil, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newFixture(t, memory.Options{})
			character := r.character()
			chat := r.conversation(character)
			hello := r.addMessage(chat, "", "Reed: Good morning!")
			m := r.addMessage(chat, hello.ID, "Ann: "+sunrise)
			r.addFact(character, sunriseFact, nil, m)
			ask := asked{memory.Ask{CharacterID: character}, recall.Query{Text: "What did Ann paint, the sunrise or the windmill?"}}
			facts, texts := ask, ask
			facts.Only.Layers, texts.Only.Layers = []recall.Layer{recall.Fact}, []recall.Layer{recall.Exchange}
			r.wantRecall("before, with the fact instead of its source", ask, sunriseFact)
			r.wantRecall("the text before", texts, sunrise)
			version := r.version(chat)
			c.hide(r, m)
			r.wantRecall("hidden", ask, c.instead...)
			r.wantRecall("the fact, hidden", facts)
			if c.back == nil {
				return
			}
			c.back(r, m, version)
			r.wantRecall("the text again", texts, sunrise)
			r.wantRecall("the fact again", facts, sunriseFact)
		})
	}
}

// Recall uses the branch and the version that the request names, also if another
// branch is shown.
func TestRecallUsesTheBranchOfTheRequest(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{})
	character := r.character()
	chat := r.conversation(character)
	root := r.addMessage(chat, "", "Reed: What will you paint?")
	a := r.addMessage(chat, root.ID, "Ann: "+sunrise)
	b := r.addMessage(chat, root.ID, "Ann: "+windmill) // shown
	ask := func(head string, version int64) asked {
		return asked{memory.Ask{CharacterID: character, Here: memory.Place{ConversationID: chat, HeadID: head, Version: version}}, recall.Query{Text: "sunrise windmill", Only: recall.Filter{Layers: []recall.Layer{recall.Exchange}}}}
	}
	r.wantRecall("on a", ask(a.ID, 0), sunrise)
	r.wantRecall("on b", ask(b.ID, 0), windmill)
	before := r.version(chat)
	r.changeMessage(a.ID, editTo("I painted a sunrise without a lighthouse."))
	r.wantRecall("a as it was", ask(a.ID, before), sunrise)
	r.wantRecall("a as it is", ask(a.ID, 0), "I painted a sunrise without a lighthouse.")
	r.wantRecall("from another chat", asked{memory.Ask{CharacterID: character, Here: memory.Place{ConversationID: r.conversation(character)}}, recall.Query{Text: "sunrise windmill"}}, windmill)
}

// A fact from a model or the user is recalled in place of its source; a fact found by
// rule is recalled beside it.
func TestFactsReplaceTheirSourcesInRecall(t *testing.T) {
	t.Parallel()
	for _, by := range []memory.Origin{memory.ByRule, memory.ByModel, memory.ByUser} {
		r := newFixture(t, memory.Options{})
		character := r.character()
		m := r.addMessage(r.conversation(character), "", "Ann: "+sunrise)
		r.addFact(character, sunriseFact, func(m *memory.Memory) { m.Origin = by }, m)
		want := []string{sunriseFact}
		if by == memory.ByRule {
			want = append(want, sunrise)
		}
		r.wantRecall("by "+string(by), asked{memory.Ask{CharacterID: character}, recall.Query{Text: "What did Ann paint, the sunrise or the windmill?"}}, want...)
	}
}

// A fact corrected or ended on one branch keeps its old version on the others.
func TestRecallUsesTheFactVersionOfTheBranch(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{})
	character := r.character()
	chat := r.conversation(character)
	root := r.addMessage(chat, "", "Ann: I live in Bergen and keep two goats.")
	a := r.addMessage(chat, root.ID, "Reed: How nice for you.")
	b := r.addMessage(chat, root.ID, "Ann: I moved from Bergen to Oslo, without the goats.")
	old := r.addFact(character, "Ann lives in Bergen.", nil, root)
	goats := r.addFact(character, "Ann keeps two goats.", nil, root)
	byHand := r.addFact(character, "Ann likes Bergen in spring.", func(m *memory.Memory) { m.Origin = memory.ByUser })
	next := r.addFact(character, "Ann lives in Oslo, no longer in Bergen.", func(m *memory.Memory) {
		m.RootID, m.Version, m.Status = old.ID, 2, memory.Superseded
	}, b)
	r.updateFact(character, old, func(m *memory.Memory) { m.Status, m.SupersededBy = memory.Superseded, next.ID })
	r.updateFact(character, next, func(m *memory.Memory) { m.Status = memory.Active })
	r.updateFact(character, goats, func(m *memory.Memory) { m.Status, m.EndedBy = memory.Retired, evidenceOf(b) })
	on := func(head string) asked {
		return asked{memory.Ask{CharacterID: character, Here: memory.Place{ConversationID: chat, HeadID: head}}, recall.Query{Text: "Does Ann live in Bergen with goats?", Only: recall.Filter{Layers: []recall.Layer{recall.Fact}}}}
	}
	r.wantRecall("where nothing has changed", on(a.ID), old.Text, goats.Text, byHand.Text)
	r.wantRecall("where she has moved", on(b.ID), next.Text, byHand.Text)
	r.updateFact(character, byHand, func(m *memory.Memory) { m.Status = memory.Retired })
	r.wantRecall("what the user retired", on(a.ID), old.Text, goats.Text)
}

func TestManyHiddenTextsDoNotDisplaceAShownOne(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{})
	character := r.character()
	conv := r.conversation(character)
	m := r.addMessage(conv, "", "Reed: The lantern of the lighthouse is lit.")
	r.changeMessage(m.ID, func(m *chat.Message) { // all match better than the shown text, and none is shown
		for i := range 300 {
			swipeTo(fmt.Sprintf("Lantern, lighthouse: take %d.", i))(m)
		}
	})
	r.addMessage(conv, m.ID, "Ann: There once was a lighthouse, and many other things which I do not remember any more today.")
	r.changeMessage(m.ID, swipeTo("Hm."))
	r.wantRecall("the one that counts", asked{memory.Ask{CharacterID: character}, recall.Query{Text: "lantern of the lighthouse", Mode: recall.Search}}, "There once was a lighthouse, and many other things which I do not remember any more today.")
}

func TestVisibleTextsAreNotRecalled(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{})
	character := r.character()
	chat := r.conversation(character)
	m := r.addMessage(chat, "", "Ann: "+sunrise)
	r.addMessage(chat, m.ID, "Ann: The sunrise had a red sun behind the lighthouse.")
	r.addFact(character, sunriseFact, nil, m)
	r.addFact(character, "Sunrise with a lighthouse is what Ann sold.", nil)
	in := recall.VisibleIn([]recall.Shown{
		{ID: m.Chosen().RevisionID, Text: sunrise},
		{Text: "Then, with a laugh, she said: a sunrise with a lighthouse is what Ann sold yesterday!"},
	})
	ask := asked{memory.Ask{CharacterID: character}, recall.Query{Text: "sunrise lighthouse", Visible: in}}
	r.wantRecall("in sight", ask, "The sunrise had a red sun behind the lighthouse.")
	ask.Mode = recall.Ranked
	r.wantRecall("in sight of a search", ask, "The sunrise had a red sun behind the lighthouse.")
}

// Without sharing, only memories of the same conversation and those of the user are
// recalled.
func TestRecallWithoutSharing(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{})
	character := r.character()
	here, there := r.conversation(character), r.conversation(character)
	a := r.addMessage(here, "", "Ann: My boat is called Petrel.")
	b := r.addMessage(there, "", "Ann: The boat called Heron was sold.")
	r.addFact(character, "The boat Petrel belongs to Ann.", nil, a)
	r.addFact(character, "The boat Heron was Ann's.", nil, b)
	r.addFact(character, "Ann paints her boat white.", func(m *memory.Memory) { m.Origin = memory.ByUser })
	alone := sharing
	alone.Share = false
	ask := asked{memory.Ask{CharacterID: character, Scene: &alone, Here: memory.Place{ConversationID: here, HeadID: a.ID}}, recall.Query{Text: "Which boat does she paint, Petrel or Heron?"}}
	r.wantRecall("not shared", ask, "The boat Petrel belongs to Ann.", "Ann paints her boat white.")
	ask.Ask.Here = memory.Place{}
	ask.Only.Conversation = there
	r.wantRecall("a search in one chat", ask, "The boat Heron was Ann's.", "Ann paints her boat white.")
	ask.Only.Conversation, ask.Only.Layers = "", []recall.Layer{recall.Exchange}
	r.wantRecall("all texts", ask, "My boat is called Petrel.", "The boat called Heron was sold.")
}

// The neighbour of a matching text is not recalled once that text is deleted.
func TestNeighboursOfAHiddenTextAreNotRecalled(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{})
	r.interval = time.Minute
	character := r.character()
	conv := r.conversation(character)
	m := r.addMessage(conv, r.addMessage(conv, "", "Ann: Good morning!").ID, "Ann: "+sunrise)
	ask := asked{memory.Ask{CharacterID: character}, recall.Query{Text: "the sunrise over the lighthouse", Mode: recall.Search}}
	r.wantRecall("with its neighbour", ask, sunrise, "Good morning!")
	r.changeMessage(m.ID, func(m *chat.Message) { m.DeletedAt = &noon })
	r.wantRecall("deleted", ask)
}

func TestIrrelevantQuestionsRecallNothing(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{})
	character := r.character()
	r.wantRecall("nothing was said", asked{memory.Ask{CharacterID: character}, recall.Query{Text: "tea"}})
	chat := r.conversation(character)
	r.addMessage(chat, "", "Ann: "+sunrise)
	for _, text := range []string{"quantum chromodynamics", "", "？！", "火山喷发"} {
		r.wantRecall(text, asked{memory.Ask{CharacterID: character}, recall.Query{Text: text}})
	}
	r.update(func(tx nodest.Tx) error { return tx.Characters.DeleteCharacter(character) })
	for _, id := range []string{character, newID(), ""} {
		if _, err := r.svc.Recall(t.Context(), r.user, memory.Ask{CharacterID: id}, recall.Query{Text: "sunrise"}); !fault.Is(err, fault.NotFound) {
			t.Errorf("a character that is not there: %v", err)
		}
	}
}

// The database has the signals of a use by their places.
func TestSignalsKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	want := "words near around session answer speaker day kind length vector spelling recency importance profile feedback exploration"
	if got := strings.Join(memory.SignalNames, " "); got != want {
		t.Errorf("the places are %s, want %s", got, want)
	}
}

func TestLinesAndUsesOfHits(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{})
	character := r.character()
	chat := r.conversation(character)
	m := r.addMessage(chat, "", "Ann: "+sunrise)
	ask := asked{memory.Ask{CharacterID: character}, recall.Query{Text: "sunrise", Now: noon.In(time.FixedZone("", 14*3600))}}
	names := lang.Names{User: "Ada", Character: "Reed"}
	hits := r.hits(ask)
	if got, want := memory.LineOf(&hits[0], names), "Ann: "+sunrise+" (2023-05-11)"; got != want {
		t.Errorf("a text reads %q, want %q", got, want)
	}
	hits[0].Name = ""
	if got := memory.LineOf(&hits[0], names); !strings.HasPrefix(got, "Ada: ") {
		t.Errorf("a text without a name reads %q", got)
	}
	uses := memory.UsesOf(hits)
	sum := 0.0
	for _, x := range uses[0].Signals {
		sum += x
	}
	if u := uses[0]; u.ID != m.Chosen().RevisionID || u.Layer != recall.Exchange || u.Rank != 1 || math.Abs(u.Score-hits[0].Score) > 1e-3 || math.Abs(sum-u.Score) > 1e-9 {
		t.Errorf("the use is %+v, its signals make %v", u, sum)
	}
	r.addFact(character, "用户画了日出。", nil, m)
	ask.Text = "日出"
	hits = r.hits(ask)
	if got := memory.LineOf(&hits[0], names); got != "用户画了日出。 (2023-05-11)" {
		t.Errorf("a fact reads %q", got)
	}
}

// keywordEmbedder is an embedder that knows a single word, or fails.
type keywordEmbedder struct {
	offline.Embedder
	err     error
	onEmbed func(ctx context.Context, task llm.EmbedTask, texts []string) error
}

func (e keywordEmbedder) ModelID() string { return "keyword" }

func (e keywordEmbedder) Embed(ctx context.Context, task llm.EmbedTask, texts []string) (llm.Embeddings, error) {
	if e.onEmbed != nil {
		if err := e.onEmbed(ctx, task, texts); err != nil {
			return llm.Embeddings{}, err
		}
	}
	if e.err != nil {
		return llm.Embeddings{}, e.err
	}
	out := llm.Embeddings{Model: "keyword", Dim: 2}
	for _, text := range texts {
		v := []float32{0, 1}
		if strings.Contains(text, "aurora") || strings.Contains(text, "lights of the north") {
			v = []float32{1, 0}
		}
		out.Vectors = append(out.Vectors, v)
	}
	return out, nil
}

func TestAnEmbedderAddsHitsAndMayFail(t *testing.T) {
	t.Parallel()
	var e keywordEmbedder
	calls := 0
	e.onEmbed = func(ctx context.Context, _ llm.EmbedTask, _ []string) error {
		calls++
		outer, _ := t.Context().Deadline()
		if until, ok := ctx.Deadline(); !ok || !outer.IsZero() && !until.Before(outer) {
			return errors.New("the model has no deadline of its own")
		}
		return nil
	}
	r := newFixture(t, memory.Options{Embedder: func(context.Context, string) (llm.Embedder, error) { return e, nil }})
	character := r.character()
	chat := r.conversation(character)
	at := ""
	for _, line := range append(harbourLines(20), "Ann: We saw the lights of the north.") {
		at = r.addMessage(chat, at, line).ID
	}
	ask := asked{memory.Ask{CharacterID: character}, recall.Query{Text: "Was there an aurora?"}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	find := func(what string, a asked, want ...string) {
		t.Helper()
		hits, err := r.svc.Recall(ctx, r.user, a.Ask, a.Query)
		if err != nil {
			t.Fatal(err)
		}
		if got := hitTexts(hits); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	find("not embedded yet", ask)
	r.update(func(tx nodest.Tx) error {
		lacking, err := tx.Memory.WithoutVector(character, "keyword", 0, 100)
		if err != nil {
			return err
		}
		vectors := map[string][]float32{}
		for _, c := range lacking {
			v, err := e.Embed(ctx, llm.Passage, []string{c.Text})
			if err != nil {
				return err
			}
			vectors[c.IDs[0]] = v.Vectors[0]
		}
		return tx.Memory.PutVectors(character, "keyword", vectors)
	})
	calls = 0
	find("embedded", ask, "We saw the lights of the north.")
	if calls != 1 {
		t.Errorf("the model was asked %d times", calls)
	}
	calls = 0
	lexical := ask
	lexical.Lexical = true
	find("by words alone", lexical)
	if calls > 0 {
		t.Error("the model was asked for a search by words alone")
	}
	e.err = errors.New("no")
	ask.Text = "the lights of the aurora"
	find("without the model", ask, "We saw the lights of the north.")
}
