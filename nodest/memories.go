package nodest

import (
	"context"
	"slices"
	"time"

	"nodest/chat"
	"nodest/framework"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/memory/recall"
	"nodest/nodest/record"
)

// Memories is the source that recalls memories and reads the user's profile.
func Memories(m *memory.Service, limit time.Duration) Source {
	return Source{
		Name: "memory", Limit: limit,
		Warning: framework.Warning{Code: "memory_unavailable", Detail: "memories could not be searched"},
		Wanted:  func(q *Question) bool { return remembers(q.Setup) },
		Find:    func(ctx context.Context, q *Question) (Findings, error) { return remembered(ctx, m, q) },
		Stored: func(userID string, s *chat.Setup) {
			if remembers(s) {
				m.Changed(userID, s.Docs.CharacterID)
			}
		},
	}
}

// remembers reports whether turns recall memories.
func remembers(s *chat.Setup) bool {
	on := s.Options.Memory
	return s.Docs.Settings.Retrieval.Enabled && (on == nil || *on)
}

// remembered finds the memories for a turn. The profile is there also where the search fails.
func remembered(ctx context.Context, m *memory.Service, q *Question) (f Findings, err error) {
	scene := q.Setup.MemoryScene()
	ask := memory.Ask{CharacterID: q.Setup.Docs.CharacterID, Here: q.Here, Scene: &scene}
	query := recall.Query{
		Text: q.Text, Now: q.Now, Before: q.Before, Only: recall.Filter{NoCircle: !q.Setup.Docs.Settings.Retrieval.IncludeCircle},
	}
	if query.Text != "" {
		query.Visible = q.visible()
	}
	hits, whole, err := m.Turn(ctx, q.UserID, ask, query, func(facts []memory.Memory) (known []string) {
		f.Profile = memory.ProfileOf(facts, q.Setup.Docs.Language)
		for _, fact := range f.Profile.Facts {
			known = append(known, fact.ID)
		}
		return known
	})
	if err != nil {
		return f, err
	}
	if !whole {
		f.Warnings = append(f.Warnings, framework.Warning{
			Code: "memory_incomplete", Detail: "the memory is still being loaded; only a part of it was searched",
		})
	}
	for i := range hits {
		m := framework.Memory{ID: hits[i].ID, Text: memory.LineOf(&hits[i], scene.Names)}
		if hits[i].Layer == recall.Exchange && !hits[i].Cleaned {
			f.Recalled = append(f.Recalled, record.Recalled{RevisionID: m.ID, Text: hits[i].Text, Pieces: lang.Pieces(hits[i].Shown())})
		}
		f.Memories = append(f.Memories, m)
	}
	f.Uses = append(memory.UsesOf(hits), memory.ProfileUses(f.Profile)...)
	return f, nil
}

// shownShare is the part of the room for the chat in which its newest messages
// are sure to be shown: the frame of the prompt takes some of the room, and
// tokens are estimated here.
const shownShare = 0.7

// readWords is how many of the newest messages are compared word by word with
// what was recalled; older ones are by their names. Their words are analysed in
// every turn, which at 40 messages took longer than the recall itself.
const readWords = 8

// visible is what the prompt contains without memories: as many of the newest messages
// as certainly fit, and always the newest.
func (q *Question) visible() recall.Visible {
	room := int(float64(q.room) * shownShare)
	shown := []recall.Shown{{Text: q.extra}, {Text: q.summary}}
	for n, m := range slices.Backward(q.shown) {
		s := m.Chosen()
		if s == nil || m.Hidden {
			continue
		}
		back := len(q.shown) - n // from 1
		if room -= llm.EstimateTokens(s.Text); room < 0 && back > 1 {
			break
		}
		one := recall.Shown{ID: s.RevisionID}
		if back <= readWords {
			one.Text = s.Text
		}
		shown = append(shown, one)
	}
	return recall.VisibleIn(shown)
}

// used are the memories that are in the prompt: there may have been no room for
// some.
func (t *turn) used() []memory.Use {
	in := map[string]bool{}
	for _, en := range t.prompt.Entries {
		if en.Source == framework.SourceMemory || en.Source == framework.SourceProfile {
			in[en.ID] = true
		}
	}
	return ranked(slices.DeleteFunc(slices.Clone(t.found.uses), func(u memory.Use) bool { return !in[u.ID] }))
}

// ranked numbers uses in their order, from 1.
func ranked(uses []memory.Use) []memory.Use {
	for i := range uses {
		uses[i].Rank = i + 1
	}
	return uses
}

// RecalledFor returns what was recalled for the shown text of a reply, by rank, and
// then the facts of the profile (signal "profile").
// What was purged since is left out.
func (e *Engine) RecalledFor(ctx context.Context, userID, messageID string) ([]memory.Found, error) {
	return op.Read(ctx, e.store, userID, func(tx Tx) ([]memory.Found, error) {
		m, err := chat.LiveMessage(tx.Chats, messageID)
		if err != nil {
			return nil, err
		}
		uses, err := tx.Memory.Uses(m.ID)
		if err != nil || len(uses) == 0 {
			return []memory.Found{}, err
		}
		characterID, err := speakerOf(tx, m)
		if err != nil {
			return nil, err
		}
		return memory.ReadFound(tx.Memory, characterID, uses)
	})
}

// speakerOf is the character that wrote the shown text of a reply: the
// conversation's, or the one that its generation was asked of.
func speakerOf(tx Tx, m *chat.Message) (characterID string, err error) {
	if s := m.Chosen(); s != nil && s.GenerationID != "" {
		g, err := tx.Generation(s.GenerationID)
		if err == nil && g.Options.CharacterID != "" {
			return g.Options.CharacterID, nil
		}
		if err != nil && !fault.Is(err, fault.NotFound) {
			return "", err
		}
	}
	conv, err := tx.Chats.Conversation(m.ConversationID)
	if err != nil {
		return "", err
	}
	return conv.CharacterID, nil
}
