package extract_test

import (
	"context"
	"testing"

	"nodest/internal/op"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/store/storetest"
)

// Recall returns the current version of a fact instead of the messages it came from.
func TestRecallReturnsTheCurrentFactInsteadOfItsSources(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		was := c.has("User lives in Paris", lang.KindProfile, nil)
		svc := c.remembering()
		ask := func(text string) []string {
			return c.ask(svc, recall.Query{Text: text})
		}
		c.equal("before", ask("Where do I live?"), []string{"User lives in Paris"})
		c.patch(was.ID, memory.Patch{Text: ptr("User lives in Rome")})
		c.equal("after", ask("Where do I live?"), []string{"User lives in Rome"})
		c.equal("about the old value", ask("Do you know Paris?"), []string{"User lives in Rome"})
		c.equal("of the past", ask("Where did I live before?"), []string{"User lives in Rome", "I told you: User lives in Paris"})
		cat := c.has("User has a cat called Ink", lang.KindProfile, nil)
		c.update(func(tx nodest.Tx) error {
			err := storetest.Memory(tx.Memory).Delete(context.Background(), &op.Call{Device: "phone"}, c.character, cat.ID, false)
			return err
		})
		c.equal("retired", ask("What is my cat called?"), []string{})
	})
}

// A purged fact's message does not come back in prompts, searches or extraction, from
// its own chat or another.
func TestTheMessageOfAPurgedFactDoesNotComeBack(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		said, _ := c.exchange("My secret garden is in Lyon.", "How nice!")
		c.model.facts = says(facts(statement("User has a secret garden in Lyon", "user", "profile", said.Seq)))
		c.readNow()
		c.exchange("My secret garden is in Lyon!", "You said so.")
		svc := c.remembering()
		ask := func(mode recall.Mode) []string {
			return c.ask(svc, recall.Query{Text: "Where is my secret garden?", Mode: mode})
		}
		if len(ask(recall.Prompt)) == 0 {
			t.Error("it is not found before")
		}
		c.update(func(tx nodest.Tx) error {
			return storetest.Memory(tx.Memory).Delete(context.Background(), &op.Call{Device: "phone"}, c.character, c.the("User has a secret garden in Lyon").ID, true)
		})
		for name, mode := range map[string]recall.Mode{"prompt": recall.Prompt, "search": recall.Search, "plain": recall.Ranked} {
			c.equal(name, ask(mode), []string{})
		}
		again, _ := c.exchange("My secret garden is in Lyon.", "Again?")
		c.model.facts = says(facts(statement("There is a garden in Lyon that the user keeps secret", "user", "profile", again.Seq)))
		c.readNow()
		c.equal("known", c.known(), []string{})
		c.equal("said again", ask(recall.Prompt), []string{})
	})
}

// A purged fact is not learned again from a reply that repeats it, in whatever words, but when the
// user says it anew.
func TestAPurgedFactIsNotLearnedFromItsEchoes(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		said, _ := c.exchange("I love jazz.", "How nice!")
		c.model.facts = says(facts(statement("User loves jazz", "user", "preference", said.Seq)))
		c.readNow()
		c.update(func(tx nodest.Tx) error {
			return storetest.Memory(tx.Memory).Delete(context.Background(), &op.Call{Device: "phone"}, c.character, c.the("User loves jazz").ID, true)
		})
		_, echo := c.exchange("Good evening!", "You told me that you love jazz music, so I booked a table.")
		yes, _ := c.exchange("Yes, thanks.", "Always.")
		c.model.facts = says(facts(statement("User likes jazz music", "user", "preference", echo.Seq, yes.Seq)))
		c.readNow()
		c.equal("learned from an echo", c.known(), []string{})
		anew, _ := c.exchange("By the way, these days I love jazz records.", "Do you?")
		c.model.facts = says(facts(statement("User loves jazz records", "user", "preference", anew.Seq)))
		c.readNow()
		c.equal("said anew", c.known(), []string{"User loves jazz records"})
	})
}
