package memory_test

import (
	"testing"
	"time"

	"nodest/memory"
)

func TestAModelReadsFiveExchanges(t *testing.T) {
	onBoth(t, func(c *chatter) {
		c.model.facts = says(facts(statement("User lives in Paris", "user", "profile", 1)))
		c.exchange("I live in Paris.", "How nice!")
		c.chats(3)
		c.pass(50 * time.Second)
		c.read()
		c.equal("calls before the fifth exchange", len(c.model.prompts), 0)
		c.chats(1)
		c.pass(10 * time.Second)
		done := c.read()
		c.equal("known", c.known(), []string{"User lives in Paris"})
		c.equal("calls", len(c.model.prompts), 1)
		c.equal("unread", c.unread(), 0)
		c.equal("events", c.events.take(), []string{"memory.written added by server"})
		if len(done) == 0 {
			c.Fatal("no job was done")
		}
		p := progress(t, done[len(done)-1])
		c.equal("progress", []any{p["method"], p["exchanges"], p["calls"], p["added"]}, []any{"llm", 5, 1, 1})
		m := c.the("User lives in Paris")
		c.equal("fact", []any{m.Origin, m.Version, m.RootID == m.ID, m.ConversationID == c.chat, len(m.Evidence)}, []any{memory.ByModel, 1, true, true, 1})
	})
}
