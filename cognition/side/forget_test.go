package side_test

import (
	"context"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/cognition"
	"nodest/llm"
	"nodest/nodest"
)

// forgets has the user forget the text of a message.
func (d *desk) forgets(m *chat.Message) {
	d.Helper()
	d.update(func(tx nodest.Tx) error { return tx.Memory.ForgetTexts(d.character, m.Chosen().RevisionID) })
}

// The branch that evaluates sees neither a text that was forgotten nor the query that it answers.
func TestAForgottenTextIsInNoEvaluation(t *testing.T) {
	eachDesk(t, func(d *desk) {
		goal := d.goal("Find the light.")
		d.forgets(d.say(chat.RoleUser, "My bees are secret."))
		d.looksUp("Where is the inn?", "inn.test")
		d.forgets(d.say(chat.RoleAssistant, "The bees are well."))
		d.update(func(tx nodest.Tx) error {
			e := cognition.New(d.chat, &cognition.Query{Sequence: 4, Query: "hives", Response: "The bees are well.", QueryID: "q", Sources: []cognition.Source{{ID: "hive", Content: "c"}}})
			conv, err := tx.Chats.Conversation(d.chat)
			if err != nil {
				return err
			}
			e.MessageID = conv.HeadID
			return cognition.LogQueries(tx.Cognition, d.chat, e)
		})
		seen := 0
		d.model.answers(func(_ context.Context, p llm.Prompt) (string, error) {
			seen += len(p.Messages)
			for _, m := range p.Messages {
				if strings.Contains(m.Text, "bees") {
					d.Errorf("the model sees %q", m.Text)
				}
			}
			return allHelpful(p), nil
		})
		d.ends(goal, cognition.GoalCompleted)
		d.works()
		if got := d.evaluations(); seen != 4 || len(got) != 1 || !strings.Contains(got[0], "inn.test") {
			d.Errorf("of %d messages: %q", seen, got)
		}
	})
}
