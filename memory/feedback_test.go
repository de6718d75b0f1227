package memory_test

import (
	"testing"
	"time"

	"nodest/internal/feedback"
	"nodest/knowledge"
	"nodest/memory"
	"nodest/memory/recall"
)

// Votes that are stored move a recall of their user and character, and of nobody else, unless the scene says no.
func TestStoredVotesMoveARecall(t *testing.T) {
	t.Parallel()
	r := newFixture(t, memory.Options{})
	character := r.character()
	conv := r.conversation(character)
	parent := ""
	for _, line := range []string{"Ann: I like plums with cinnamon.", "Reed: Noted.", "Ann: I like plums with almonds too.", "Reed: Noted as well.", "Ann: I like plums with honey as well."} {
		parent = r.addMessage(conv, parent, line).ID
	}
	on := sharing
	on.Feedback = true
	ask := func(scene memory.Scene) []recall.Hit {
		t.Helper()
		hits, err := r.svc.Recall(t.Context(), r.user, memory.Ask{CharacterID: character, Scene: &scene}, recall.Query{Text: "How do I like my plums?", Now: r.now})
		if err != nil || len(hits) != 3 {
			t.Fatalf("%d hits, %v", len(hits), err)
		}
		return hits
	}
	plain := ask(sharing)
	if with := ask(on); with[0].ID != plain[0].ID || with[0].Score != plain[0].Score {
		t.Errorf("without votes %v, off %v", with[0], plain[0])
	}
	weaker, better := plain[0], plain[1]
	err := r.db.Knowledge().Update(t.Context(), r.user, func(tx knowledge.Tx) error {
		for i := range 8 {
			for id, status := range map[string]feedback.Status{weaker.ID: feedback.Helpful, better.ID: feedback.Harmful} {
				err := tx.Feedback.PutVotes(feedback.Evaluation{Source: id, CharacterID: character, ConversationID: conv, Vote: feedback.Vote{Status: status, At: r.now.Add(-time.Duration(i) * time.Minute)}})
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if off := ask(sharing); off[0].ID != plain[0].ID {
		t.Error("a scene without feedback was moved")
	}
	scores, uses := map[string]float64{}, memory.UsesOf(ask(on))
	for i := range uses {
		scores[uses[i].ID] = uses[i].Score
		if f := uses[i].Parts().Feedback; uses[i].ID == weaker.ID && f <= 0 || uses[i].ID == better.ID && f >= 0 {
			t.Errorf("the use does not tell: %+v", uses[i])
		}
	}
	if weaker.Score >= better.Score || scores[weaker.ID] <= scores[better.ID] {
		t.Errorf("scores %v, before %v and %v", scores, plain[0].Score, plain[1].Score)
	}
}
