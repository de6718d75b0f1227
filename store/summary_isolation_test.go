package store_test

import (
	"maps"

	"nodest/chat"
	"nodest/nodest"
	"nodest/summary"
)

// kept is the summary that fill makes, of the only message.
func (x things) kept(m *chat.Message) *chat.KeptSummary {
	return &chat.KeptSummary{
		Summary: &summary.Summary{
			ID: x.summary, Text: "private", At: start, Count: 1, Generation: 1, Method: summary.MethodUser,
			Range: summary.Range{StartID: m.ID, EndID: m.ID, StartSeq: 1, EndSeq: 1},
		},
		ConversationID: x.conversation, MadeVersion: 1, HeadSeq: 1,
	}
}

// intruder is a summary of a conversation about the message of the other.
func (x things) intruder(conversationID string) *chat.KeptSummary {
	k := x.kept(&chat.Message{ID: x.message})
	k.ConversationID, k.Text, k.Generation = conversationID, "intruder", 2
	return k
}

func (x things) covered(conversationID string) chat.Covered {
	return chat.Covered{ConversationID: conversationID, StartSeq: 1, EndID: x.message, Since: 1}
}

func init() { maps.Copy(intrusions, summaryIntrusions) }

// ownChat is a conversation of the intruder's.
func ownChat(e *env, tx nodest.Tx) string {
	e.Helper()
	c := &chat.Conversation{ID: id()}
	if err := tx.Chats.InsertConversation(c); err != nil {
		e.Fatal(err)
	}
	return c.ID
}

var summaryIntrusions = map[string]func(e *env, tx nodest.Tx, x things) error{
	"InsertSummary": func(e *env, tx nodest.Tx, x things) error {
		if err := unknown(e, tx.Chats.InsertSummary(x.intruder(x.conversation))); err != nil {
			return err
		}
		return tx.Chats.InsertSummary(x.intruder(ownChat(e, tx)))
	},
	"UpdateSummary": func(e *env, tx nodest.Tx, x things) error {
		return unknown(e, tx.Chats.UpdateSummary(1, x.intruder("").Summary))
	},
	"Summary": func(e *env, tx nodest.Tx, x things) error {
		for _, version := range []int64{0, 1} {
			if _, err := tx.Chats.Summary(x.summary, version); unknown(e, err) != nil {
				return err
			}
		}
		return nil
	},
	"Summaries": func(e *env, tx nodest.Tx, x things) error {
		_, err := tx.Chats.Summaries(x.conversation)
		return unknown(e, err)
	},
	"SummariesOn": func(e *env, tx nodest.Tx, x things) error {
		if _, err := tx.Chats.SummariesOn(x.conversation, x.message); unknown(e, err) != nil {
			return err
		}
		refs, err := tx.Chats.SummariesOn(ownChat(e, tx), x.message)
		return nothing(e, len(refs) == 0, err)
	},
	"DeleteSummary": func(e *env, tx nodest.Tx, x things) error { return unknown(e, tx.Chats.DeleteSummary(x.summary, 1)) },
	"RestoreSummary": func(e *env, tx nodest.Tx, x things) error {
		return unknown(e, tx.Chats.RestoreSummary(x.summary, 1, 2))
	},
	"ChooseSummary": func(e *env, tx nodest.Tx, x things) error {
		return unknown(e, tx.Chats.ChooseSummary(&chat.Conversation{ID: x.conversation, SummaryID: x.summary, Version: 3}))
	},
	"LatestGeneration": func(e *env, tx nodest.Tx, x things) error {
		_, err := tx.Chats.LatestGeneration(x.conversation)
		return unknown(e, err)
	},
	"LastSummarised": func(e *env, tx nodest.Tx, x things) error {
		at, err := tx.Characters.LastSummarised(x.character)
		return nothing(e, at.IsZero(), err)
	},
	"Coverage": func(e *env, tx nodest.Tx, x things) error {
		for _, c := range []string{x.conversation, ownChat(e, tx)} {
			for _, version := range []int64{0, 1} {
				how, err := tx.Chats.Coverage(x.covered(c), x.message, version)
				if err := nothing(e, how == chat.CoverageOff, err); err != nil {
					return err
				}
			}
		}
		return nil
	},
	"DumpSummaries": func(e *env, tx nodest.Tx, x things) error {
		_, err := tx.Chats.DumpSummaries(x.conversation)
		return unknown(e, err)
	},
	"LoadSummaries": func(e *env, tx nodest.Tx, x things) error {
		dumped := func(k *chat.KeptSummary) []*chat.DumpedSummary {
			texts := []chat.SummaryText{{Version: 1, Summary: x.intruder("").Summary}, {Version: 2, Summary: k.Summary}}
			return []*chat.DumpedSummary{{Texts: texts}}
		}
		if err := unknown(e, tx.Chats.LoadSummaries(x.conversation, dumped(x.intruder("")))); err != nil {
			return err
		}
		// The other's name in the text of one's own.
		c, mine := ownChat(e, tx), x.intruder("")
		mine.ID = id()
		if err := tx.Chats.LoadSummaries(c, dumped(mine)); err != nil {
			return err
		}
		return tx.Chats.LoadSummaries(c, dumped(x.intruder("")))
	},
}
