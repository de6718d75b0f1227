package extract

import (
	"context"
	"slices"

	"nodest/llm"
	"nodest/llm/offline"
	"nodest/memory"
)

// factState is the state of the facts of a scope with the texts that are shown.
type factState struct {
	current []memory.Memory // facts that count, one version of each, the oldest first; as active
	hidden  []memory.Memory // active versions that do not: their texts are not shown, or they come from the circle
	over    []memory.Memory // the others: replaced, or retired

	rows   map[string]*memory.Memory // all versions as they are stored, by id
	newest map[string]*memory.Memory // the newest of them, by root
}

func readFacts(tx memory.Tx, characterID string) (*factState, error) {
	st := &factState{rows: map[string]*memory.Memory{}, newest: map[string]*memory.Memory{}}
	versions := map[string][]memory.Memory{}
	var roots []string
	var texts []memory.Evidence
	err := memory.EachFact(tx, characterID, memory.Filter{Status: memory.AnyStatus}, func(m *memory.Memory) bool {
		st.rows[m.ID] = m
		if versions[m.RootID] == nil {
			roots = append(roots, m.RootID)
		}
		versions[m.RootID] = append(versions[m.RootID], *m)
		texts = append(append(texts, m.Evidence...), m.EndedBy...)
		return true
	})
	if err != nil {
		return nil, err
	}
	answers, err := tx.Shown(nil, texts)
	if err != nil {
		return nil, err
	}
	shown := make(map[string]bool, len(texts))
	for i, e := range texts {
		shown[e.RevisionID] = answers[i]
	}
	slices.Reverse(roots)
	for _, root := range roots {
		st.place(versions[root], func(e memory.Evidence) bool { return shown[e.RevisionID] })
	}
	return st, nil
}

// place sorts the versions of one fact.
func (st *factState) place(versions []memory.Memory, shown func(memory.Evidence) bool) {
	slices.SortFunc(versions, func(a, b memory.Memory) int { return a.Version - b.Version })
	last := &versions[len(versions)-1]
	st.newest[last.RootID] = st.rows[last.ID]
	counts := memory.Current(versions, shown)
	for i := range versions {
		m := &versions[i]
		switch {
		case m == counts && m.Origin != memory.ByCircle: // chats change nothing that happened in the circle
			active := *m
			active.Status = memory.Active
			st.current = append(st.current, active)
		case m.Status == memory.Active:
			st.hidden = append(st.hidden, *m)
		default:
			st.over = append(st.over, *m)
		}
	}
}

// alsoEndedBy adds texts any of which retires a fact.
func alsoEndedBy(old, more []memory.Evidence) []memory.Evidence {
	if len(old) == 0 {
		return more
	}
	joined, _ := memory.WithSighting(old, more)
	return joined
}

// newSimilarity compares vectors of the offline embedder, each of which it computes once. It
// returns 0 once the context has ended: the run will not be stored.
func newSimilarity(ctx context.Context) similarity {
	vectors := map[string][]float32{}
	vector := func(text string) []float32 {
		if vectors[text] == nil {
			e, err := offline.Embedder{}.Embed(ctx, llm.Similarity, []string{text})
			if err != nil {
				return nil
			}
			vectors[text] = e.Vectors[0]
		}
		return vectors[text]
	}
	return func(a, b string) float64 {
		x, y := vector(a), vector(b)
		sum := float32(0)
		for i := range min(len(x), len(y)) {
			sum += x[i] * y[i]
		}
		return float64(sum)
	}
}
