package extract_test

import (
	"strings"
	"testing"
	"time"

	"nodest/memory"
	"nodest/nodest"
)

// A chat neither changes nor ends what happened in the circle, and its model is not shown it.
func TestExtractionLeavesTheCircleAlone(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(c *chatter) {
		const comment = `User commented in the circle on Reed's post "Homes": "I live in Lisbon"`
		c.update(func(tx nodest.Tx) error {
			return memory.AddHappenings(tx.Memory, memory.Happening{CharacterID: c.character, Text: comment, At: tx.Now(), Source: newUUID()})
		})
		before := *c.the(comment)
		for _, model := range []*scriptedModel{c.model, nil} {
			if c.model = model; model != nil {
				model.facts = says(facts(statement("User lives in Porto", "user", "profile", 1)))
			}
			c.exchange("I live in Porto, not in Lisbon.", "Oh!")
			c.smallTalk(4)
			c.pass(time.Minute)
			c.readNow()
			if after := c.the(comment); after.Status != memory.Active || after.SeenCount != 1 || !after.UpdatedAt.Equal(before.UpdatedAt) || after.Text != comment {
				c.Errorf("the happening is now %+v", after)
			}
			if model != nil && len(model.prompts) == 0 {
				c.Error("the model was not asked")
			}
			if model != nil && strings.Contains(strings.Join(model.prompts, "\n"), "in the circle") {
				c.Errorf("the model was shown %q", model.prompts)
			}
		}
		porto := c.the("User lives in Porto")
		c.equal("the new fact", []any{porto.Version, len(c.suggestions())}, []any{1, 0})
		c.equal("facts", len(c.known()), 2)
	})
}
