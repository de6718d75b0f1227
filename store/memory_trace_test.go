package store_test

import (
	"testing"

	"nodest/memory"
	"nodest/nodest"
)

func (e *env) suggestionTexts(character string) (texts []string) {
	e.Helper()
	e.view(func(tx nodest.Tx) error {
		items, _, err := tx.Memory.Suggestions(character, "", "", 100)
		for _, s := range items {
			texts = append(texts, s.Text)
		}
		return err
	})
	return texts
}

// Removing facts or texts also removes the suggestions and the stored replies that
// quote them, and no others.
func TestSuggestionsAndStoredRepliesAreRemovedWithTheirSources(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		remove    func(tx nodest.Tx, r *rememberedChat) error
		suggested []string
		answers   []string // stored replies: of a version, of a suggestion, of something else
	}{
		{"a purged fact", func(tx nodest.Tx, r *rememberedChat) error { return tx.Memory.PurgeFacts(r.character, r.first.ID) },
			[]string{"from the text"}, []string{"gone", "kept", "kept"}},
		{"a forgotten text", func(tx nodest.Tx, r *rememberedChat) error {
			return tx.Memory.ForgetTexts(r.character, r.messages[0].Swipes[0].RevisionID)
		}, []string{"mine new", "mine suggested"}, []string{"kept", "gone", "kept"}},
		{"everything", func(tx nodest.Tx, r *rememberedChat) error {
			return tx.Memory.PurgeScope(r.character)
		}, nil, []string{"gone", "gone", "kept"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			onBothDatabases(t, func(e *env) {
				r, other := e.remember("mine"), e.remember("other")
				same := memory.Suggestion{Event: memory.EventAdd, Text: "mine new"}
				made := memory.Suggested{ID: id(), State: memory.SuggestionOpen, Suggestion: memory.Suggestion{
					Event: memory.EventAdd, Text: "from the text", Evidence: []memory.Evidence{evidenceOf(r.messages[0])}}}
				e.update(func(tx nodest.Tx) error {
					for _, err := range []error{
						tx.Memory.InsertSuggestion(r.character, &memory.Suggested{ID: id(), State: memory.SuggestionOpen, Suggestion: same}),
						tx.Memory.InsertSuggestion(r.character, &made),
						answered(tx, "0", `{"id":"`+r.second.ID+`","rootId":"`+r.first.ID+`"}`),
						answered(tx, "1", `{"id":"`+made.ID+`","memoryId":""}`),
						answered(tx, "2", `{"id":"`+other.first.ID+`","rootId":"`+other.first.ID+`"}`),
					} {
						if err != nil {
							return err
						}
					}
					return nil
				})
				e.update(func(tx nodest.Tx) error { return tt.remove(tx, r) })
				left := map[string]bool{}
				for _, text := range e.suggestionTexts(r.character) {
					left[text] = true
				}
				want := map[string]bool{}
				for _, text := range tt.suggested {
					want[text] = true
				}
				e.equal("suggestions", left, want)
				e.equal("of the other", e.suggestionTexts(other.character), []string{"other suggested"})
				var answers []string
				e.view(func(tx nodest.Tx) error {
					for _, key := range []string{"0", "1", "2"} {
						record, err := tx.Key(key)
						if err != nil {
							return err
						}
						state := "kept"
						if record.JSON == nil {
							state = "gone"
						}
						answers = append(answers, state)
					}
					return nil
				})
				e.equal("answers", answers, tt.answers)
			})
		})
	}
}
