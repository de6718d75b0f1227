package side_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"nodest/chat"
	"nodest/cognition"
	"nodest/cognition/side"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/lang"
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

// decides reviews the nth extraction.
func (k *talk) decides(n int, decision, edited string) error {
	k.Helper()
	_, err := k.svc.ReviewOne(k.Context(), k.call(), side.Review{
		ConversationID: k.chat, ExtractionID: k.pending()[n].ExtractionID, Decision: decision, EditedPayload: json.RawMessage(edited),
	})
	return err
}

func (k *talk) commits() *side.CommitReport {
	k.Helper()
	report, err := k.svc.Commit(k.Context(), k.call(), k.chat)
	k.must(err)
	return report
}

// A proposal that lost its words with a forgotten text can be discarded only, approved or edited before or not.
func TestAProposalOfAForgottenTextIsNeitherApprovedNorCommitted(t *testing.T) {
	eachTalk(t, extracts, func(k *talk) {
		said := k.say(chat.RoleUser, "The lamp is green. The door is red. The roof is flat.")
		k.reply(extractions("The lamp is green.", "The door is red.", "The roof is flat."))
		k.compress()
		k.must(k.decides(0, cognition.Approve, ""))
		k.must(k.decides(1, cognition.Edit, `{"content":"A red door."}`))
		k.forgets(said)
		report := k.commits()
		if len(report.Committed) != 0 || len(report.Failed) != 2 || !strings.Contains(report.Failed[0].Error, "forgotten") || len(k.memories()) != 0 {
			k.Errorf("the report is %+v, memories %q", report, k.memories())
		}
		for n := range 3 {
			if err := k.decides(n, cognition.Approve, ""); !fault.Is(err, fault.Conflict) {
				k.Errorf("approved %d: %v", n, err)
			}
			if err := k.decides(n, cognition.Edit, `{"content":"The lamp is green."}`); !fault.Is(err, fault.Conflict) {
				k.Errorf("edited %d: %v", n, err)
			}
			k.must(k.decides(n, cognition.Discard, ""))
		}
		if report := k.commits(); len(report.Skipped) != 3 {
			k.Errorf("the report is %+v", report)
		}
	})
}

// A memory rests on the messages that its extraction was made of, also if the user has edited it; one that was imported on none.
func TestACommitKeepsTheEvidence(t *testing.T) {
	eachTalk(t, extracts, func(k *talk) {
		lamp, door := k.say(chat.RoleUser, "The lamp is green."), k.say(chat.RoleUser, "The door is red.")
		k.reply(extractions("The lamp is green.", "The door is red."))
		k.compress()
		k.logs(&cognition.ExtractionPending{ExtractionID: "pending-1", Payload: json.RawMessage(`{"content":"The inn is closed."}`)})
		k.must(k.decides(0, cognition.Approve, ""))
		k.must(k.decides(1, cognition.Edit, `{"content":"Something else."}`))
		k.must(k.decides(2, cognition.Approve, ""))
		if report := k.commits(); len(report.Committed) != 3 {
			k.Fatalf("the report is %+v", report)
		}
		want := map[string]*chat.Message{"The lamp is green.": lamp, "Something else.": door, "The inn is closed.": nil}
		k.update(func(tx nodest.Tx) error {
			return memory.EachFact(tx.Memory, k.character, memory.Filter{}, func(m *memory.Memory) bool {
				of := want[m.Text]
				switch {
				case of == nil && len(m.Evidence) == 0 && m.ConversationID == "":
				case of != nil && m.ConversationID == k.chat && slices.Equal(m.Evidence, []memory.Evidence{
					{ConversationID: k.chat, MessageID: of.ID, RevisionID: of.Chosen().RevisionID, Seq: of.Seq},
				}):
				default:
					k.Errorf("%q rests on %+v of %q", m.Text, m.Evidence, m.ConversationID)
				}
				return true
			})
		})
	})
}

// A message that is shown no more keeps its proposals from becoming memories.
func TestWhatIsShownNoMoreIsNotCommitted(t *testing.T) {
	eachTalk(t, extracts, func(k *talk) {
		lamp := k.say(chat.RoleUser, "The lamp is green.")
		k.reply(extractions("The lamp is green."))
		k.compress()
		k.must(k.decides(0, cognition.Approve, ""))
		k.update(func(tx nodest.Tx) error {
			conv, err := tx.Chats.LockConversation(k.chat)
			if err != nil {
				return err
			}
			conv.HeadID = lamp.ParentID
			conv.Version++
			return tx.Chats.UpdateConversation(conv)
		})
		if report := k.commits(); len(report.Failed) != 1 || !strings.Contains(report.Failed[0].Error, "another branch") || len(k.memories()) != 0 {
			k.Errorf("the report is %+v, memories %q", report, k.memories())
		}
	})
}

// grave notes that the user had purged a statement.
func (k *talk) grave(text string) {
	k.Helper()
	k.update(func(tx nodest.Tx) error {
		return tx.Memory.PutTombstone(k.character, memory.Tombstone{ContentHash: lang.ContentHash(text), CreatedAt: tx.Now()})
	})
}

// A fact that was purged comes back neither by an approval nor by a commit of its own accord.
func TestAPurgedFactIsNotCommitted(t *testing.T) {
	eachTalk(t, commits, func(k *talk) {
		k.logs(&cognition.ExtractionPending{ExtractionID: "pending-1", Payload: json.RawMessage(`{"content":"The inn is closed."}`)})
		k.must(k.decides(0, cognition.Approve, ""))
		k.grave("The inn is closed.")
		k.grave("The ferry sails at nine.")
		if report := k.commits(); len(report.Failed) != 1 || !strings.Contains(report.Failed[0].Error, "purged") {
			k.Errorf("the report is %+v", report)
		}
		k.reply(extractions("The ferry sails at nine.", "Alice knows the harbour."))
		k.compress()
		if got := k.states(); !slices.Equal(got, []string{"The inn is closed. approved", "Alice knows the harbour. committed"}) || !slices.Equal(k.memories(), []string{"Alice knows the harbour."}) {
			k.Errorf("states %q, memories %q", got, k.memories())
		}
	})
}
