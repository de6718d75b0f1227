package store_test

import (
	"nodest/chat"
	"nodest/internal/summary"
	"nodest/nodest"
)

// keptSummary is the summary that fill inserts, of the only message.
func (x fixture) keptSummary(m *chat.Message) *chat.KeptSummary {
	return &chat.KeptSummary{
		Summary: &summary.Summary{
			ID: x.summary, Text: "private", At: start, Count: 1, Generation: 1, Method: summary.MethodUser,
			Range: summary.Range{StartID: m.ID, EndID: m.ID, StartSeq: 1, EndSeq: 1},
		},
		ConversationID: x.conversation, MadeVersion: 1, HeadSeq: 1,
	}
}

// intruderSummary is a summary in a conversation that covers another user's message.
func (x fixture) intruderSummary(conversationID string) *chat.KeptSummary {
	k := x.keptSummary(&chat.Message{ID: x.message})
	k.ConversationID, k.Text, k.Generation = conversationID, "intruder", 2
	return k
}

func (x fixture) covered(conversationID string) chat.Covered {
	return chat.Covered{ConversationID: conversationID, StartSeq: 1, EndID: x.message, Since: 1}
}

func init() { addIntrusions(summaryIntrusions) }

// ownChat stores a conversation of the intruder.
func ownChat(e *env, tx nodest.Tx) string {
	e.Helper()
	c := &chat.Conversation{ID: id()}
	if err := tx.Chats.InsertConversation(c); err != nil {
		e.Fatal(err)
	}
	return c.ID
}

var summaryIntrusions = map[string]func(e *env, tx nodest.Tx, x fixture) error{
	"InsertSummary": func(e *env, tx nodest.Tx, x fixture) error {
		if err := wantNotFound(e, tx.Chats.InsertSummary(x.intruderSummary(x.conversation))); err != nil {
			return err
		}
		return tx.Chats.InsertSummary(x.intruderSummary(ownChat(e, tx)))
	},
	"UpdateSummary": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Chats.UpdateSummary(1, x.intruderSummary("").Summary))
	},
	"Summary": func(e *env, tx nodest.Tx, x fixture) error {
		for _, version := range []int64{0, 1} {
			if _, err := tx.Chats.Summary(x.summary, version); wantNotFound(e, err) != nil {
				return err
			}
		}
		return nil
	},
	"SummaryText": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.SummaryText(x.summary, 1)
		return wantNotFound(e, err)
	},
	"Summaries": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.Summaries(x.conversation)
		return wantNotFound(e, err)
	},
	"SummariesOn": func(e *env, tx nodest.Tx, x fixture) error {
		if _, err := tx.Chats.SummariesOn(x.conversation, x.message); wantNotFound(e, err) != nil {
			return err
		}
		refs, err := tx.Chats.SummariesOn(ownChat(e, tx), x.message)
		return wantEmpty(e, len(refs) == 0, err)
	},
	"DeleteSummary": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Chats.DeleteSummary(x.summary, 1))
	},
	"RestoreSummary": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Chats.RestoreSummary(x.summary, 1, 2))
	},
	"ChooseSummary": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Chats.ChooseSummary(&chat.Conversation{ID: x.conversation, SummaryID: x.summary, Version: 3}))
	},
	"LatestGeneration": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.LatestGeneration(x.conversation)
		return wantNotFound(e, err)
	},
	"LastSummarised": func(e *env, tx nodest.Tx, x fixture) error {
		at, err := tx.Characters.LastSummarised(x.character)
		return wantEmpty(e, at.IsZero(), err)
	},
	"Coverage": func(e *env, tx nodest.Tx, x fixture) error {
		for _, c := range []string{x.conversation, ownChat(e, tx)} {
			for _, version := range []int64{0, 1} {
				how, err := tx.Chats.Coverage(x.covered(c), x.message, version)
				if err := wantEmpty(e, how == chat.CoverageOff, err); err != nil {
					return err
				}
			}
		}
		return nil
	},
	"DumpSummaries": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.DumpSummaries(x.conversation)
		return wantNotFound(e, err)
	},
	"LoadSummaries": func(e *env, tx nodest.Tx, x fixture) error {
		dumped := func(k *chat.KeptSummary) []*chat.DumpedSummary {
			texts := []chat.SummaryText{{Version: 1, Summary: x.intruderSummary("").Summary}, {Version: 2, Summary: k.Summary}}
			return []*chat.DumpedSummary{{Texts: texts}}
		}
		if err := wantNotFound(e, tx.Chats.LoadSummaries(x.conversation, dumped(x.intruderSummary("")))); err != nil {
			return err
		}
		// Another user's summary id in a text of one's own summary.
		c, mine := ownChat(e, tx), x.intruderSummary("")
		mine.ID = id()
		if err := tx.Chats.LoadSummaries(c, dumped(mine)); err != nil {
			return err
		}
		return tx.Chats.LoadSummaries(c, dumped(x.intruderSummary("")))
	},
}
