package memory

import (
	"context"
	"slices"

	"nodest/internal/fault"
	"nodest/internal/index"
	"nodest/memory/lang"
	"nodest/memory/recall"
)

// Forgotten is what "forget everything about X" would remove, or has removed.
type Forgotten struct {
	DryRun    bool         `json:"dryRun"`
	Memories  []ForgetItem `json:"memories"`
	Echoes    []Echo       `json:"echoes"`    // at most 50 lines that say the same as the facts among them
	Truncated bool         `json:"truncated"` // there is more: ask again
}

// Stored is the answer without the removed texts.
func (f *Forgotten) Stored() any {
	stored := *f
	stored.Memories = slices.Clone(f.Memories)
	for i := range stored.Memories {
		stored.Memories[i].Text = ""
	}
	stored.Echoes = slices.Clone(f.Echoes)
	for i := range stored.Echoes {
		stored.Echoes[i].Text = ""
	}
	return &stored
}

type ForgetItem struct {
	ID    string       `json:"id"`
	Layer recall.Layer `json:"layer"`
	Text  string       `json:"text"`
	Score float64      `json:"score"`
}

// purgeOne removes a memory with all its versions and everything made of it, and leaves a
// tombstone, so that it is not extracted again from the same words or texts. If id is that of a
// text (layer exchange), that text is forgotten. It cannot be undone.
func purgeOne(tx Tx, by, characterID, id string) error {
	gone, err := purge(tx, by, characterID, []string{id})
	if err == nil && gone == 0 {
		return fault.New(fault.NotFound, "no memory %q", id)
	}
	return err
}

// purge removes facts and texts by id, and returns how many there were.
func purge(tx Tx, by, characterID string, ids []string) (gone int, err error) {
	if err := tx.LockMemory(characterID); err != nil {
		return 0, err
	}
	var roots, others []string
	for _, id := range ids {
		m, err := tx.Fact(characterID, id)
		switch {
		case fault.Is(err, fault.NotFound):
			others = append(others, id)
		case err != nil:
			return 0, err
		case !slices.Contains(roots, m.RootID):
			roots = append(roots, m.RootID)
		}
	}
	said, err := tx.SaidByID(characterID, others...)
	if err != nil {
		return 0, err
	}
	var texts []string
	for _, t := range said {
		texts = append(texts, t.RevisionID)
	}
	if err := bury(tx, characterID, roots); err != nil {
		return 0, err
	}
	if len(texts) > 0 {
		if err := tx.ForgetTexts(characterID, texts...); err != nil {
			return 0, err
		}
	}
	all := slices.Concat(roots, texts)
	return len(all), EmitWritten(tx, by, characterID, opPurged, all...)
}

// bury removes facts with all their versions and leaves tombstones: the words and the gist of each
// version, with all that supported any of them, and the words of those texts.
func bury(tx Tx, characterID string, roots []string) error {
	for some := range slices.Chunk(roots, PageOfFacts) {
		versions, err := tx.FactVersions(characterID, some...)
		if err != nil {
			return err
		}
		sources := map[string][]Evidence{}
		for _, m := range versions {
			for _, e := range m.Evidence {
				e.Sighting = 0
				if !slices.Contains(sources[m.RootID], e) {
					sources[m.RootID] = append(sources[m.RootID], e)
				}
			}
		}
		for _, m := range versions {
			gist := lang.GistOf(m.Text, m.Subject)
			t := Tombstone{ContentHash: HashOf(&m), Evidence: sources[m.RootID], Gist: &gist, CreatedAt: tx.Now()}
			if err := tx.PutTombstone(characterID, t); err != nil {
				return err
			}
		}
		for _, root := range some {
			if err := burySources(tx, characterID, sources[root]); err != nil {
				return err
			}
		}
		if err := tx.PurgeFacts(characterID, some...); err != nil {
			return err
		}
	}
	return nil
}

// burySources leaves a tombstone for each text that states something: a "yes" may be said again.
func burySources(tx Tx, characterID string, sources []Evidence) error {
	texts, err := saidIn(tx, characterID, sources)
	if err != nil {
		return err
	}
	for _, said := range texts {
		if lang.OnlyAsks(said.Text) {
			continue
		}
		t := Tombstone{ContentHash: lang.ContentHash(said.Text), Evidence: []Evidence{said.Evidence}, CreatedAt: tx.Now()}
		if err := tx.PutTombstone(characterID, t); err != nil {
			return err
		}
	}
	return nil
}

// saidIn returns the texts that evidence names, as far as they are of the scope.
func saidIn(tx Tx, characterID string, evidence []Evidence) ([]Text, error) {
	ids := make([]string, len(evidence))
	for i, e := range evidence {
		ids[i] = e.RevisionID
	}
	return tx.SaidByID(characterID, ids...)
}

// WithCopies adds to tombstones the texts that repeat their words, from which nothing is extracted,
// and those in which the user has said anew what was forgotten.
func WithCopies(tombstones []Tombstone, texts []Text, people lang.Names) []Tombstone {
	told := make([]*lang.Telling, len(texts))
	for i := range tombstones {
		t := &tombstones[i]
		for j, said := range texts {
			if len(t.Evidence) > 0 && lang.ContentHash(said.Text) == t.ContentHash {
				t.Evidence = append(slices.Clip(t.Evidence), said.Evidence)
			}
			if t.Gist == nil || said.Role != lang.RoleUser || !said.At.After(t.CreatedAt) {
				continue
			}
			if told[j] == nil {
				told[j] = lang.Tell(said.Line(), people)
			}
			if len(t.Gist.In(told[j])) > 0 {
				t.Anew = append(t.Anew, said.RevisionID)
			}
		}
	}
	return tombstones
}

// findRetired returns the facts retired by the user that fit a query by their words, best first.
// They are not recalled, but can be forgotten.
func (s *Service) findRetired(ctx context.Context, userID, characterID string, q recall.Query) ([]recall.Hit, error) {
	var rows []index.Row
	err := s.store.View(ctx, userID, func(tx Tx) error {
		rows = nil
		return EachFact(tx, characterID, Filter{Status: Retired}, func(m *Memory) bool {
			if len(m.EndedBy) == 0 { // else it is searched with the others
				u := m.unit()
				u.Terms = index.Join(m.Text)
				rows = append(rows, u.Row())
			}
			return true
		})
	})
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	x := index.New()
	if err := x.Apply(ctx, rows, nil); err != nil {
		return nil, err
	}
	hits, _, err := recall.Find(ctx, x, &q, recall.Vectors{}, nil)
	return hits, err
}
