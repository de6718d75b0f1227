package memory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/fault"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/nodest"
)

const (
	sunrise  = "I painted a sunrise over the lighthouse."
	windmill = "I painted a windmill beside the canal."
	learned  = "Ann painted the sunrise in oil."
)

// TestWhatIsNotShownIsNotRecalled hides a text, and a fact that rests on it, in every
// way there is, and brings them back.
func TestWhatIsNotShownIsNotRecalled(t *testing.T) {
	for _, c := range []struct {
		name    string
		hide    func(r *rig, m *chat.Message)
		instead []string // is found while it is hidden
		back    func(r *rig, m *chat.Message, version int64)
	}{
		{
			"an edit, and a restore before it",
			func(r *rig, m *chat.Message) { r.change(m.ID, editTo(windmill)) }, []string{windmill},
			func(r *rig, m *chat.Message, version int64) { r.rewind(m.ConversationID, version) },
		},
		{
			"another swipe, and the first one again",
			func(r *rig, m *chat.Message) { r.change(m.ID, swipeTo(windmill)) }, []string{windmill},
			func(r *rig, m *chat.Message, _ int64) { r.change(m.ID, func(m *chat.Message) { m.SwipeIndex = 0 }) },
		},
		{
			"a deletion that is undone",
			func(r *rig, m *chat.Message) { r.change(m.ID, func(m *chat.Message) { m.DeletedAt = &noon }) }, nil,
			func(r *rig, m *chat.Message, _ int64) {
				r.change(m.ID, func(m *chat.Message) { m.DeletedAt = nil })
			},
		},
		{
			"another branch",
			func(r *rig, m *chat.Message) { r.say(m.ConversationID, m.ParentID, "Ann: "+windmill) }, []string{windmill},
			func(r *rig, m *chat.Message, _ int64) { r.show(m.ConversationID, m.ID) },
		},
		{
			"the branch in front of it",
			func(r *rig, m *chat.Message) { r.show(m.ConversationID, m.ParentID) }, nil,
			func(r *rig, m *chat.Message, version int64) { r.rewind(m.ConversationID, version) },
		},
		{
			"the end of its conversation",
			func(r *rig, m *chat.Message) {
				r.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(m.ConversationID) })
			}, nil, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, memory.Options{})
			character := r.character()
			chat := r.conversation(character)
			hello := r.say(chat, "", "Reed: Good morning!")
			m := r.say(chat, hello.ID, "Ann: "+sunrise)
			r.learn(character, learned, nil, m)
			ask := memory.Ask{CharacterID: character, Text: "What did Ann paint, the sunrise or the windmill?"}
			facts, texts := ask, ask
			facts.Layers, texts.Layers = []memory.Layer{memory.Fact}, []memory.Layer{memory.Exchange}
			r.expect("before, with the fact instead of its source", ask, learned)
			r.expect("the text before", texts, sunrise)
			version := r.version(chat)
			c.hide(r, m)
			r.expect("hidden", ask, c.instead...)
			r.expect("the fact, hidden", facts)
			if c.back == nil {
				return
			}
			c.back(r, m, version)
			r.expect("the text again", texts, sunrise)
			r.expect("the fact again", facts, learned)
		})
	}
}

// TestTheBranchThatIsTalkedOnCounts asks from branches that are not shown, and as the
// chat was at a version.
func TestTheBranchThatIsTalkedOnCounts(t *testing.T) {
	r := newRig(t, memory.Options{})
	character := r.character()
	chat := r.conversation(character)
	root := r.say(chat, "", "Reed: What will you paint?")
	a := r.say(chat, root.ID, "Ann: "+sunrise)
	b := r.say(chat, root.ID, "Ann: "+windmill) // shown
	ask := func(head string, version int64) memory.Ask {
		return memory.Ask{
			CharacterID: character, Text: "sunrise windmill", Layers: []memory.Layer{memory.Exchange},
			Here: memory.Place{ConversationID: chat, HeadID: head, Version: version},
		}
	}
	r.expect("on a", ask(a.ID, 0), sunrise)
	r.expect("on b", ask(b.ID, 0), windmill)
	before := r.version(chat)
	r.change(a.ID, editTo("I painted a sunrise without a lighthouse."))
	r.expect("a as it was", ask(a.ID, before), sunrise)
	r.expect("a as it is", ask(a.ID, 0), "I painted a sunrise without a lighthouse.")
	r.expect("from another chat", memory.Ask{CharacterID: character, Text: "sunrise windmill", Here: memory.Place{ConversationID: r.conversation(character)}}, windmill)
}

// What a rule has read stands beside its source, what a model or the user says of it
// stands for it.
func TestWhoseFactsStandForTheirSources(t *testing.T) {
	for _, by := range []memory.Origin{memory.ByRule, memory.ByModel, memory.ByUser} {
		r := newRig(t, memory.Options{})
		character := r.character()
		m := r.say(r.conversation(character), "", "Ann: "+sunrise)
		r.learn(character, learned, func(m *memory.Memory) { m.Origin = by }, m)
		want := []string{learned}
		if by == memory.ByRule {
			want = append(want, sunrise)
		}
		r.expect("by "+string(by), memory.Ask{CharacterID: character, Text: "What did Ann paint, the sunrise or the windmill?"}, want...)
	}
}

// TestAFactCountsInTheVersionOfItsBranch corrects a fact on one branch and ends
// another one there.
func TestAFactCountsInTheVersionOfItsBranch(t *testing.T) {
	r := newRig(t, memory.Options{})
	character := r.character()
	chat := r.conversation(character)
	root := r.say(chat, "", "Ann: I live in Bergen and keep two goats.")
	a := r.say(chat, root.ID, "Reed: How nice for you.")
	b := r.say(chat, root.ID, "Ann: I moved from Bergen to Oslo, without the goats.")
	old := r.learn(character, "Ann lives in Bergen.", nil, root)
	goats := r.learn(character, "Ann keeps two goats.", nil, root)
	byHand := r.learn(character, "Ann likes Bergen in spring.", func(m *memory.Memory) { m.Origin = memory.ByUser })
	next := r.learn(character, "Ann lives in Oslo, no longer in Bergen.", func(m *memory.Memory) {
		m.RootID, m.Version, m.Status = old.ID, 2, memory.Superseded
	}, b)
	r.updateFact(character, old, func(m *memory.Memory) { m.Status, m.SupersededBy = memory.Superseded, next.ID })
	r.updateFact(character, next, func(m *memory.Memory) { m.Status = memory.Active })
	r.updateFact(character, goats, func(m *memory.Memory) { m.Status, m.EndedBy = memory.Retired, evidenceOf(b) })
	on := func(head string) memory.Ask {
		return memory.Ask{
			CharacterID: character, Text: "Does Ann live in Bergen with goats?", Layers: []memory.Layer{memory.Fact},
			Here: memory.Place{ConversationID: chat, HeadID: head},
		}
	}
	r.expect("where nothing has changed", on(a.ID), old.Text, goats.Text, byHand.Text)
	r.expect("where she has moved", on(b.ID), next.Text, byHand.Text)
	r.updateFact(character, byHand, func(m *memory.Memory) { m.Status = memory.Retired })
	r.expect("what the user retired", on(a.ID), old.Text, goats.Text)
}

func TestAHiddenMajorityDoesNotHideTheRest(t *testing.T) {
	r := newRig(t, memory.Options{})
	character := r.character()
	conv := r.conversation(character)
	m := r.say(conv, "", "Reed: The lantern of the lighthouse is lit.")
	r.change(m.ID, func(m *chat.Message) { // all better than the one that is shown, and none of them shown
		for i := range 300 {
			swipeTo(fmt.Sprintf("Lantern, lighthouse: take %d.", i))(m)
		}
	})
	r.say(conv, m.ID, "Ann: There once was a lighthouse, and many other things which I do not remember any more today.")
	r.change(m.ID, swipeTo("Hm."))
	r.expect("the one that counts", memory.Ask{CharacterID: character, Text: "lantern of the lighthouse", Search: true}, "There once was a lighthouse, and many other things which I do not remember any more today.")
}

func TestWhatIsInSightIsNotRecalled(t *testing.T) {
	r := newRig(t, memory.Options{})
	character := r.character()
	chat := r.conversation(character)
	m := r.say(chat, "", "Ann: "+sunrise)
	r.say(chat, m.ID, "Ann: The sunrise had a red sun behind the lighthouse.")
	r.learn(character, learned, nil, m)
	r.learn(character, "Sunrise with a lighthouse is what Ann sold.", nil)
	in := memory.VisibleIn([]memory.Message{
		{Evidence: evidenceOf(m)[0], Text: sunrise},
		{Text: "Then, with a laugh, she said: a sunrise with a lighthouse is what Ann sold yesterday!"},
	})
	ask := memory.Ask{CharacterID: character, Text: "sunrise lighthouse", Visible: in}
	r.expect("in sight", ask, "The sunrise had a red sun behind the lighthouse.")
	ask.Everything = true
	r.expect("in sight of a search", ask, "The sunrise had a red sun behind the lighthouse.")
}

func TestASceneThatDoesNotShare(t *testing.T) {
	r := newRig(t, memory.Options{})
	character := r.character()
	here, there := r.conversation(character), r.conversation(character)
	a := r.say(here, "", "Ann: My boat is called Petrel.")
	b := r.say(there, "", "Ann: The boat called Heron was sold.")
	r.learn(character, "The boat Petrel belongs to Ann.", nil, a)
	r.learn(character, "The boat Heron was Ann's.", nil, b)
	r.learn(character, "Ann paints her boat white.", func(m *memory.Memory) { m.Origin = memory.ByUser })
	alone := sharing
	alone.Share = false
	ask := memory.Ask{CharacterID: character, Text: "Which boat does she paint, Petrel or Heron?", Scene: &alone, Here: memory.Place{ConversationID: here, HeadID: a.ID}}
	r.expect("not shared", ask, "The boat Petrel belongs to Ann.", "Ann paints her boat white.")
	ask.Here = memory.Place{}
	ask.Conversation = there
	r.expect("a search in one chat", ask, "The boat Heron was Ann's.", "Ann paints her boat white.")
	ask.Conversation, ask.Layers = "", []memory.Layer{memory.Exchange}
	r.expect("all texts", ask, "My boat is called Petrel.", "The boat called Heron was sold.")
}

// TestWhatStoodBesideAHiddenTextStaysAway asks for a deleted text: what stood beside it
// is no answer without it.
func TestWhatStoodBesideAHiddenTextStaysAway(t *testing.T) {
	r := newRig(t, memory.Options{})
	r.pause = time.Minute
	character := r.character()
	conv := r.conversation(character)
	m := r.say(conv, r.say(conv, "", "Ann: Good morning!").ID, "Ann: "+sunrise)
	ask := memory.Ask{CharacterID: character, Text: "the sunrise over the lighthouse", Search: true}
	r.expect("with its neighbour", ask, sunrise, "Good morning!")
	r.change(m.ID, func(m *chat.Message) { m.DeletedAt = &noon })
	r.expect("deleted", ask)
}

func TestNothingRelevantIsNothing(t *testing.T) {
	r := newRig(t, memory.Options{})
	character := r.character()
	r.expect("nothing was said", memory.Ask{CharacterID: character, Text: "tea"})
	chat := r.conversation(character)
	r.say(chat, "", "Ann: "+sunrise)
	for _, text := range []string{"quantum chromodynamics", "", "？！", "火山喷发"} {
		r.expect(text, memory.Ask{CharacterID: character, Text: text})
	}
	r.update(func(tx nodest.Tx) error { return tx.Characters.DeleteCharacter(character) })
	for _, id := range []string{character, newID(), ""} {
		if _, err := r.svc.Recall(t.Context(), r.user, memory.Ask{CharacterID: id, Text: "sunrise"}); !fault.Is(err, fault.NotFound) {
			t.Errorf("a character that is not there: %v", err)
		}
	}
}

func TestHitsAsTheyAreShownAndStored(t *testing.T) {
	r := newRig(t, memory.Options{})
	character := r.character()
	chat := r.conversation(character)
	m := r.say(chat, "", "Ann: "+sunrise)
	ask := memory.Ask{CharacterID: character, Text: "sunrise", Now: noon.In(time.FixedZone("", 14*3600))}
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
	if u := uses[0]; u.ID != m.Chosen().RevisionID || u.Layer != memory.Exchange || u.Rank != 1 || u.Score != hits[0].Score || max(sum-u.Score, u.Score-sum) > 1e-4 {
		t.Errorf("the use is %+v, its signals make %v", u, sum)
	}
	r.learn(character, "用户画了日出。", nil, m)
	ask.Text = "日出"
	hits = r.hits(ask)
	if got := memory.LineOf(&hits[0], names); got != "用户画了日出。 (2023-05-11)" {
		t.Errorf("a fact reads %q", got)
	}
}

// shyEmbedder is a model that knows one word, or fails.
type shyEmbedder struct {
	offline.Embedder
	err   error
	asked func(ctx context.Context, task llm.EmbedTask, texts []string) error
}

func (e shyEmbedder) ModelID() string { return "shy" }

func (e shyEmbedder) Embed(ctx context.Context, task llm.EmbedTask, texts []string) (llm.Embeddings, error) {
	if e.asked != nil {
		if err := e.asked(ctx, task, texts); err != nil {
			return llm.Embeddings{}, err
		}
	}
	if e.err != nil {
		return llm.Embeddings{}, e.err
	}
	out := llm.Embeddings{Model: "shy", Dim: 2}
	for _, text := range texts {
		v := []float32{0, 1}
		if strings.Contains(text, "aurora") || strings.Contains(text, "lights of the north") {
			v = []float32{1, 0}
		}
		out.Vectors = append(out.Vectors, v)
	}
	return out, nil
}

func TestAModelAddsWhatWordsMissAndMayFail(t *testing.T) {
	var e shyEmbedder
	calls := 0
	e.asked = func(ctx context.Context, _ llm.EmbedTask, _ []string) error {
		calls++
		outer, _ := t.Context().Deadline()
		if until, ok := ctx.Deadline(); !ok || !outer.IsZero() && !until.Before(outer) {
			return errors.New("the model has no deadline of its own")
		}
		return nil
	}
	r := newRig(t, memory.Options{Embedder: func(context.Context, string) (llm.Embedder, error) { return e, nil }})
	character := r.character()
	chat := r.conversation(character)
	at := ""
	for _, line := range append(lines(20), "Ann: We saw the lights of the north.") {
		at = r.say(chat, at, line).ID
	}
	ask := memory.Ask{CharacterID: character, Text: "Was there an aurora?"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	find := func(what string, a memory.Ask, want ...string) {
		t.Helper()
		hits, err := r.svc.Recall(ctx, r.user, a)
		if err != nil {
			t.Fatal(err)
		}
		if got := foundTexts(hits); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	find("not embedded yet", ask)
	r.update(func(tx nodest.Tx) error {
		lacking, err := tx.Memory.WithoutVector(character, "shy", 100)
		if err != nil {
			return err
		}
		vectors := map[string][]float32{}
		for _, c := range lacking {
			v, err := e.Embed(ctx, llm.Passage, []string{c.Text})
			if err != nil {
				return err
			}
			vectors[c.Hash] = v.Vectors[0]
		}
		return tx.Memory.PutVectors(character, "shy", vectors)
	})
	calls = 0
	find("embedded", ask, "We saw the lights of the north.")
	if calls != 1 {
		t.Errorf("the model was asked %d times", calls)
	}
	lexical := ask
	lexical.Lexical = true
	find("by words alone", lexical)
	e.err = errors.New("no")
	ask.Text = "the lights of the aurora"
	find("without the model", ask, "We saw the lights of the north.")
}

func foundTexts(hits []memory.Hit) []string {
	var all []string
	for _, h := range hits {
		all = append(all, h.Text)
	}
	return all
}
