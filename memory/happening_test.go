package memory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/store/storetest"
)

func onBothDatabases(t *testing.T, test func(r *fixture)) {
	storetest.Each(t, func(t *testing.T, open storetest.Opener) { test(newFixtureOn(t, memory.Options{}, open)) })
}

// happens stores a happening of the character, and returns its source.
func (r *fixture) happens(character, text string) (source string) {
	r.Helper()
	source = newID()
	r.update(func(tx nodest.Tx) error {
		return memory.AddHappenings(tx.Memory, memory.Happening{CharacterID: character, Text: text, At: r.now, Source: source})
	})
	return source
}

// facts are those of a character in every status.
func (r *fixture) facts(character string) (facts []memory.Memory) {
	r.Helper()
	r.update(func(tx nodest.Tx) (err error) {
		facts, _, err = tx.Memory.Facts(character, memory.Filter{Status: memory.AnyStatus}, "", 500)
		return err
	})
	return facts
}

func (r *fixture) wantFacts(what, character string, want ...string) {
	r.Helper()
	var texts []string
	for _, m := range r.facts(character) {
		texts = append(texts, m.Text)
	}
	if slices.Sort(texts); !slices.Equal(texts, want) {
		r.Errorf("%s: %q, want %q", what, texts, want)
	}
}

func (r *fixture) remove(source string) {
	r.Helper()
	r.update(func(tx nodest.Tx) error { return memory.RemoveHappenings(tx.Memory, source) })
}

const (
	lantern = `User commented in the circle on Reed's post "The lantern burns again": "I painted its roof"`
	gulls   = `Reed posted in the circle: "The gulls stole my lunch"`
)

func TestAHappeningIsAFactOfItsCharacterAlone(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(r *fixture) {
		reed, wren := r.character(), r.character()
		source := r.happens(reed, lantern)
		r.wantFacts("of another character", wren)
		m := r.facts(reed)[0]
		if m.Origin != memory.ByCircle || m.Kind != lang.KindEvent || m.Source != source || !m.EventTime.Equal(noon) || len(m.Evidence) > 0 || memory.ForProfile(&m) {
			r.Errorf("stored %+v", m)
		}
		ask := asked{memory.Ask{CharacterID: reed}, recall.Query{Text: "What did I paint yesterday?", Now: noon.AddDate(0, 0, 1)}}
		r.wantRecall("of yesterday", ask, lantern)
		ask.CharacterID = wren
		r.wantRecall("by another character", ask)
		stranger := r.asUser(storetest.User(r, r.db))
		err := r.db.Update(context.Background(), stranger.user, func(tx nodest.Tx) error {
			return memory.AddHappenings(tx.Memory, memory.Happening{CharacterID: reed, Text: gulls, At: noon, Source: newID()})
		})
		if !fault.Is(err, fault.NotFound) {
			r.Errorf("of another user's character: %v", err)
		}
		stranger.remove(source)
		r.wantFacts("after another user removed the source", reed, lantern)
	})
}

func TestEqualHappeningsAreOneFact(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(r *fixture) {
		reed := r.character()
		first := r.happens(reed, gulls)
		second := r.happens(reed, strings.ToUpper(gulls))
		r.wantFacts("said twice", reed, gulls)
		r.remove(second)
		r.wantFacts("without the second", reed, gulls)
		r.remove(first)
		r.wantFacts("without both", reed)
		r.happens(reed, gulls)
		r.wantFacts("again after the deletion", reed, gulls)
		both := newID()
		r.update(func(tx nodest.Tx) error {
			h := memory.Happening{CharacterID: reed, Text: lantern, At: noon, Source: both}
			return memory.AddHappenings(tx.Memory, h, h)
		})
		r.wantFacts("twice in one call", reed, gulls, lantern)

		svc := func(tx nodest.Tx) *memory.Service { return storetest.Memory(tx.Memory) }
		for _, m := range r.facts(reed) {
			r.update(func(tx nodest.Tx) error {
				return svc(tx).Delete(context.Background(), &op.Call{Device: "test"}, reed, m.ID, m.Text == lantern)
			})
		}
		r.happens(reed, gulls)
		r.happens(reed, lantern)
		if all := r.facts(reed); len(all) != 1 || all[0].Status != memory.Retired {
			r.Errorf("after one was archived and one purged: %+v", all)
		}
	})
}

func TestRemovingAHappeningRemovesItsVersionsEverywhere(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(r *fixture) {
		reed, wren := r.character(), r.character()
		source := newID()
		r.update(func(tx nodest.Tx) error {
			return memory.AddHappenings(tx.Memory, memory.Happening{CharacterID: wren, Text: lantern, At: noon, Source: source},
				memory.Happening{CharacterID: reed, Text: lantern, At: noon, Source: source})
		})
		kept := r.happens(wren, gulls)
		known := r.facts(reed)[0].ID
		r.update(func(tx nodest.Tx) error {
			_, err := storetest.Memory(tx.Memory).Edit(context.Background(), &op.Call{Device: "test"}, reed, known, memory.Patch{Text: new("User painted the roof")})
			return err
		})
		r.remove("")
		r.wantFacts("before", reed, lantern, "User painted the roof")
		r.remove(source)
		r.wantFacts("of one", reed)
		r.wantFacts("of the other", wren, gulls)
		r.wantRecall("after the deletion", asked{memory.Ask{CharacterID: wren}, recall.Query{Text: "Who painted the roof?"}})
		r.remove(kept)
		r.wantFacts("of the other without any", wren)
	})
}

// A quote in the first person in a happening is not about the user: their own older statement
// about where they live still counts.
func TestAQuoteOfAnotherIsNotAboutTheUser(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{})
	reed := r.character()
	r.addFact(reed, "User lives in Oslo", nil)
	r.now = r.now.AddDate(0, 0, 3)
	r.happens(reed, `Wren commented in the circle on Reed's post "Rain": "I live in Bergen now"`)
	hits := r.hits(asked{memory.Ask{CharacterID: reed}, recall.Query{Text: "Where do I live?"}})
	if len(hits) == 0 || hits[0].Text != "User lives in Oslo" {
		t.Errorf("found %+v", hits)
	}
}

func TestChatsRecallTheCircleUnlessItIsSwitchedOff(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{})
	reed := r.character()
	r.happens(reed, lantern)
	for _, off := range []bool{false, true} {
		ask := asked{memory.Ask{CharacterID: reed, Scene: &sharing}, recall.Query{Text: "What did I paint?", Now: noon.AddDate(0, 0, 1), Only: recall.Filter{NoCircle: off}}}
		hits, _, err := r.svc.Turn(t.Context(), r.user, ask.Ask, ask.Query, func([]memory.Memory) []string { return nil })
		if err != nil || (len(hits) == 0) != off {
			t.Errorf("off %v: %d hits, %v", off, len(hits), err)
		}
		for _, h := range hits {
			if got, want := memory.LineOf(&h, sharing.Names), lantern+" (2023-05-10)"; got != want {
				t.Errorf("the line is %q, want %q", got, want)
			}
		}
	}
	pinned := r.facts(reed)[0]
	r.updateFact(reed, &pinned, func(m *memory.Memory) { m.Pinned = true })
	for off, want := range map[bool]int{false: 1, true: 0} {
		_, _, err := r.svc.Turn(t.Context(), r.user, memory.Ask{CharacterID: reed, Scene: &sharing}, recall.Query{Only: recall.Filter{NoCircle: off}}, func(facts []memory.Memory) []string {
			if len(facts) != want {
				t.Errorf("off %v: %d pinned happenings are in the profile, want %d", off, len(facts), want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func TestOnlyWhatIsMarkedAndCountsIsShareable(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(r *fixture) {
		reed := r.character()
		said := r.addMessage(r.conversation(reed), "", "Ann: I keep bees.")
		r.addFact(reed, "User fears the sea", nil)
		old := r.addFact(reed, "User keeps bees", func(m *memory.Memory) { m.Shareable = true }, said)
		r.addFact(reed, "User paints lighthouses", func(m *memory.Memory) { m.Shareable = true })
		r.happens(reed, gulls)
		want := func(what string, limit int, want ...string) {
			r.Helper()
			var texts []string
			r.update(func(tx nodest.Tx) error {
				facts, err := memory.Shareable(tx.Memory, reed, limit)
				for _, m := range facts {
					texts = append(texts, m.Text)
				}
				return err
			})
			if !slices.Equal(texts, want) {
				r.Errorf("%s: %q, want %q", what, texts, want)
			}
		}
		want("all", 5, "User paints lighthouses", "User keeps bees")
		want("one", 1, "User paints lighthouses")
		r.changeMessage(said.ID, editTo("I keep goats."))
		want("after an edit of the message", 5, "User paints lighthouses")
		r.update(func(tx nodest.Tx) error {
			_, err := storetest.Memory(tx.Memory).Edit(context.Background(), &op.Call{Device: "test"}, reed, old.ID,
				memory.Patch{Text: new("User keeps goats"), Shareable: new(false)})
			return err
		})
		for _, m := range r.facts(reed) {
			if m.RootID == old.ID && m.Shareable {
				r.Errorf("version %d is still shareable", m.Version)
			}
		}
	})
}

// A text that a chat has suggested was said in private: the mark of the old text does not cover it.
func TestAnAcceptedSuggestionIsNotShareable(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{})
	reed := r.character()
	bees := r.addFact(reed, "User keeps bees", func(m *memory.Memory) { m.Shareable, m.Locked = true, true })
	s := &memory.Suggested{ID: newID(), State: memory.SuggestionOpen, Suggestion: memory.Suggestion{
		MemoryID: bees.ID, Event: memory.EventUpdate, Text: "User keeps bees and hides the money there", Reason: "newer",
	}}
	r.update(func(tx nodest.Tx) error {
		if err := tx.Memory.InsertSuggestion(reed, s); err != nil {
			return err
		}
		_, err := storetest.Memory(tx.Memory).Decide(context.Background(), &op.Call{Device: "test"}, reed, s.ID, memory.AcceptSuggestion)
		return err
	})
	r.wantRecall("in the circle", asked{memory.Ask{CharacterID: reed}, recall.Query{Text: "bees", Only: recall.Filter{Public: true}}})
	r.wantRecall("in a chat", asked{memory.Ask{CharacterID: reed}, recall.Query{Text: "Who keeps bees?"}}, s.Text)
}

// Whatever is asked, in whatever mode, a public recall returns only what happened in the circle
// or may be told there.
func TestPublicRecallNeverReturnsWhatIsPrivate(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{})
	reed := r.character()
	chat := r.conversation(reed)
	random := rand.New(rand.NewPCG(13, 7))
	topics := strings.Fields("lantern roof harbour gulls bees sea Oslo sister storm bread")
	topic := func() string { return topics[random.IntN(len(topics))] }
	parent := ""
	for i := range 60 {
		said := r.addMessage(chat, parent, fmt.Sprintf("Ann: My secret %d about the %s and the %s.", i, topic(), topic()))
		parent = said.ID
		private := fmt.Sprintf("User has the secret %d of the %s", i, topic())
		switch i % 6 {
		case 0:
			r.addFact(reed, private, nil, said)
		case 1:
			r.addFact(reed, private, asProfile)
		case 2:
			r.addFact(reed, private, func(m *memory.Memory) { m.Pinned, m.Origin = true, memory.ByUser })
		case 3:
			r.addFact(reed, fmt.Sprintf("User's name is Secret%d", i), asProfile)
		case 4:
			r.addFact(reed, fmt.Sprintf("User told everybody %d about the %s", i, topic()), func(m *memory.Memory) { m.Shareable = true }, said)
		case 5:
			r.happens(reed, fmt.Sprintf("User posted in the circle %d: everybody knows the %s", i, topic()))
		}
	}
	public := 0
	check := func(hits []recall.Hit) {
		t.Helper()
		for _, h := range hits {
			public++
			if h.Layer != recall.Fact || strings.Contains(strings.ToLower(h.Text), "secret") || len(h.Sources) > 0 {
				t.Errorf("found %q with the sources %v", h.Text, h.Sources)
			}
		}
	}
	for i := range 200 {
		ask := asked{memory.Ask{CharacterID: reed, Scene: &sharing, Hidden: random.IntN(3) == 0, Lexical: random.IntN(3) == 0}, recall.Query{
			Text: []string{"Who am I?", "What is my name?", "the secret", "What is the secret of the " + topic() + "?", "A post about the " + topic() + " and my " + topic()}[random.IntN(5)],
			Mode: []recall.Mode{recall.Prompt, recall.Search, recall.Related, recall.Ranked}[random.IntN(4)],
			Only: recall.Filter{Public: true}, Limit: 1 + random.IntN(20), Now: r.now,
		}}
		if random.IntN(2) == 0 {
			ask.Ask.Here = memory.Place{ConversationID: chat, HeadID: parent}
		}
		if random.IntN(4) == 0 {
			ask.Before, ask.Only.Conversation = []string{"the secret", "the lantern"}, chat
		}
		if random.IntN(4) == 0 {
			ask.Only.Layers = []recall.Layer{recall.Exchange, recall.Fact}[random.IntN(2):]
		}
		hits := r.hits(ask)
		if check(hits); len(hits) > ask.Limit {
			t.Errorf("query %d: %d hits, limit %d", i, len(hits), ask.Limit)
		}
		hits, _, err := r.svc.Turn(t.Context(), r.user, ask.Ask, ask.Query, func(facts []memory.Memory) []string {
			for _, m := range facts {
				if !m.Shareable && m.Origin != memory.ByCircle {
					t.Errorf("the profile has %q", m.Text)
				}
			}
			return nil
		})
		if check(hits); err != nil {
			t.Fatal(err)
		}
	}
	if public < 200 {
		t.Errorf("only %d public memories were found", public)
	}
}

func TestOneTellingWordRecallsInTheCircle(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{})
	reed := r.character()
	const bread, fog, noodles = `Reed posted in the circle: "Baked rye bread this morning"`, `Reed posted in the circle: "The ferry was late because of the fog"`, "Reed在朋友圈发布：“今天吃了重庆小面”"
	for _, text := range []string{bread, fog, noodles} {
		r.happens(reed, text)
	}
	for post, want := range map[string][]string{
		"Finally had time for baking: a sourdough loaf, and the whole house smells of it": {bread},
		"The fog is back!":             {fog},
		"谁推荐一家好吃的小面":                   {noodles},
		"Good morning everybody!":      {},
		"What a lovely evening it was": {},
		"早上好":                          {},
	} {
		r.wantRecall(post, asked{memory.Ask{CharacterID: reed}, recall.Query{Text: post, Only: recall.Filter{Public: true}}}, want...)
	}
}

func TestHappeningsGetVectors(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(r *fixture) {
		reed := r.character()
		r.happens(reed, lantern)
		var list int
		r.update(func(tx nodest.Tx) error {
			jobs, _, err := tx.Memory.MemoryJobs(reed, "", 10)
			list = len(jobs)
			return err
		})
		if list != 1 {
			r.Errorf("%d embedding jobs, want 1", list)
		}
	})
}

func TestAHappeningMustBeComplete(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{})
	reed := r.character()
	for what, h := range map[string]memory.Happening{
		"blank":               {CharacterID: reed, Text: " \n", At: noon, Source: newID()},
		"of an unknown thing": {CharacterID: reed, Text: gulls, At: noon, Source: "post\x00"},
		"at no time":          {CharacterID: reed, Text: gulls, At: time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC), Source: newID()},
	} {
		err := r.db.Update(t.Context(), r.user, func(tx nodest.Tx) error { return memory.AddHappenings(tx.Memory, h) })
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	r.wantFacts("after errors", reed)
}
