package memory

import (
	"context"
	"slices"
	"time"

	"nodest/internal/fault"
	"nodest/memory/lang"
	"nodest/memory/recall"
)

// Echo is a line of a chat that says what a forgotten fact says. The line stays in the chat, and
// is not recalled for the fact any more.
type Echo struct {
	ID             string    `json:"id"` // the id of the text, by which it can be forgotten too
	ConversationID string    `json:"conversationId"`
	MessageID      string    `json:"messageId"`
	Role           lang.Role `json:"role"`
	Name           string    `json:"name,omitempty"`
	Text           string    `json:"text"` // the sentences that say it
	At             time.Time `json:"at"`
}

// Limits of a search for echoes.
const (
	echoFacts  = 20 // versions of facts that are looked for
	echoLines  = 50 // lines that are looked at for each of them
	mostEchoes = 50 // that are listed
)

// findEchoes returns the lines that say what these facts say, but for those that the facts were taken
// from, the best first. The facts are found by id, of any version; other ids are ignored.
func (s *Service) findEchoes(ctx context.Context, userID, characterID string, ids []string) (echoes []Echo, err error) {
	facts, err := s.versionsAt(ctx, userID, characterID, ids)
	if err != nil || len(facts) == 0 {
		return nil, err
	}
	a := Ask{CharacterID: characterID, Hidden: true, Lexical: true}
	scene, err := s.scene(ctx, userID, &a)
	if err != nil {
		return nil, err
	}
	a.Scene = &scene
	seen := map[string]bool{}
	for i := range facts {
		for _, e := range facts[i].Evidence {
			seen[e.RevisionID] = true
		}
	}
	for i := range facts {
		gist := lang.GistOf(facts[i].Text, facts[i].Subject)
		hits, err := s.Recall(ctx, userID, a, recall.Query{
			Text: facts[i].Text, Mode: recall.Related, Limit: echoLines, Only: recall.Filter{Layers: []recall.Layer{recall.Exchange}},
		})
		if err != nil {
			return nil, err
		}
		for j := range hits {
			h := &hits[j]
			told := lang.Tell(lang.Line{Role: h.Speaker, Text: h.Text}, scene.Names)
			at := gist.In(told)
			if len(at) == 0 || seen[h.ID] || len(echoes) == mostEchoes {
				continue
			}
			seen[h.ID] = true
			echoes = append(echoes, Echo{h.ID, h.Conversation, h.Message, h.Speaker, h.Name, told.Only(at), h.At})
		}
	}
	return echoes, nil
}

// versionsAt reads the newest versions of facts, all of each, by the ids of any.
func (s *Service) versionsAt(ctx context.Context, userID, characterID string, ids []string) (facts []Memory, err error) {
	err = s.store.View(ctx, userID, func(tx Tx) error {
		facts = nil
		roots := map[string]bool{}
		for _, id := range ids {
			versions, err := history(tx, characterID, id)
			switch {
			case fault.Is(err, fault.NotFound):
				continue
			case err != nil:
				return err
			}
			if root := versions[0].RootID; !roots[root] && len(facts) < echoFacts {
				roots[root] = true
				slices.Reverse(versions)
				facts = append(facts, versions[:min(len(versions), echoFacts-len(facts))]...)
			}
		}
		return nil
	})
	return facts, err
}
