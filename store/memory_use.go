package store

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"nodest/chat"
	"nodest/memory"
	"nodest/memory/recall"
	"nodest/store/sqldb"
)

// useRow says that a unit was sent with the prompt of a generation.
type useRow struct {
	UserID, ConversationID, GenerationID, UnitID string
	Rank                                         int     // from 1
	Layer                                        string  // the first letter of a recall.Layer, or inProfile
	Score                                        *int64  // in parts of memory.SignalStep; nil = the row is a copy in a fork
	Signals                                      []int64 // in parts of memory.SignalStep, by memory.SignalNames; zeros at the end can be missing
}

// inProfile is the layer of a fact that was not found for the message: the profile had it.
const inProfile = "p"

// PutUses stores what the prompt of a generation contains, and that its facts were used now. That is no
// change of a scope.
func (t *textTx) PutUses(conversationID, generationID, continued string, uses []memory.Use) error {
	err := t.chats.owns(conversationID)
	var rows []useRow
	if err == nil && continued != "" {
		rows, err = sqldb.All[useRow](t, "SELECT * FROM memory_uses WHERE user_id = ? AND conversation_id = ? AND generation_id = ? ORDER BY rank",
			t.userID, conversationID, continued)
	}
	if err != nil {
		return err
	}
	var facts, texts, found []string
	for i := range uses {
		u := &uses[i]
		parts, err := partsOf(u.Signals)
		if err != nil {
			return err
		}
		row := useRow{UnitID: u.ID, Layer: string(u.Layer[:1]), Score: new(partOf(u.Score)), Signals: parts}
		if u.Recalled() {
			found = append(found, u.ID)
		} else {
			row.Layer = inProfile
		}
		if u.Layer == recall.Fact {
			facts = append(facts, u.ID)
		} else {
			texts = append(texts, u.ID)
		}
		if !slices.ContainsFunc(rows, func(r useRow) bool { return r.UnitID == u.ID }) {
			rows = append(rows, row)
		}
	}
	for i := range rows {
		r := &rows[i]
		r.UserID, r.ConversationID, r.GenerationID, r.Rank = t.userID, conversationID, generationID, i+1
	}
	if continued == "" {
		t.found = map[string][]string{generationID: found}
	}
	// SQLite keeps the rows in the order of their key: its pages are filled in order.
	slices.SortFunc(rows, func(a, b useRow) int { return strings.Compare(a.UnitID, b.UnitID) })
	if err := t.Insert("memory_uses", rows); err != nil {
		return err
	}
	if len(facts) > 0 {
		err = t.Run("UPDATE memories SET last_used_at = ? WHERE user_id = ? AND id IN (?)", t.Now(), t.userID, facts)
	}
	if err == nil && len(texts) > 0 {
		err = t.Run("UPDATE memory_texts SET is_used = TRUE WHERE user_id = ? AND revision_id IN (?) AND NOT is_used", t.userID, texts)
	}
	return err
}

// Uses returns what was sent with the prompt of a message's chosen text, as far as it is still there.
func (t *textTx) Uses(messageID string) ([]memory.Use, error) {
	return sqldb.Map(t.messages.with(messageID), func(r *useRow) memory.Use {
		layer := recall.Fact
		if r.Layer == string(recall.Exchange[:1]) {
			layer = recall.Exchange
		}
		u := memory.Use{ID: r.UnitID, Layer: layer, Rank: r.Rank, Signals: signalsOf(r.Signals)}
		switch {
		case r.Score != nil:
			u.Score = float64(*r.Score) / memory.SignalStep
		case r.Layer == inProfile: // a fork has no score of it, but it is always the same
			u = memory.ProfileUse(r.UnitID, r.Rank)
		}
		return u
	}, `SELECT u.* FROM messages m
		JOIN revisions r ON r.user_id = m.user_id AND r.message_id = m.id AND r.position = m.swipe_index AND r.is_shown
		JOIN memory_uses u ON u.user_id = m.user_id AND u.conversation_id = m.conversation_id AND u.generation_id = r.generation_id
		WHERE m.user_id = ? AND m.id = ?
			AND (EXISTS (SELECT 1 FROM memory_texts x WHERE x.user_id = u.user_id AND x.revision_id = u.unit_id AND NOT x.is_forgotten)
				OR EXISTS (SELECT 1 FROM memories f WHERE f.user_id = u.user_id AND f.id = u.unit_id))
		ORDER BY u.rank`, t.userID, messageID)
}

func partOf(x float64) int64 { return int64(math.Round(x * memory.SignalStep)) }

// partsOf is signals as they are stored.
func partsOf(signals map[string]float64) ([]int64, error) {
	var parts []int64
	for name, x := range signals {
		at := slices.Index(memory.SignalNames, name)
		if at < 0 {
			return nil, fmt.Errorf("store: no signal is called %q", name)
		}
		parts = append(parts, make([]int64, max(0, at+1-len(parts)))...)
		parts[at] = partOf(x)
	}
	return parts, nil
}

// signalsOf is the reverse.
func signalsOf(parts []int64) map[string]float64 {
	if parts == nil {
		return nil
	}
	signals := map[string]float64{}
	for i, n := range parts {
		if n != 0 {
			signals[memory.SignalNames[i]] = float64(n) / memory.SignalStep
		}
	}
	return signals
}

const selectRecalled = "SELECT conversation_id, generation_id, unit_id, layer FROM memory_uses WHERE user_id = ? AND conversation_id IN (?) AND generation_id IN (?) ORDER BY rank"

func (t *textTx) Recalled(conversationID, generationID string) (found []string, profile bool, err error) {
	err = sqldb.Each(t, func(r *useRow) error {
		r.addTo(&found, &profile)
		return nil
	}, selectRecalled, t.userID, []string{conversationID}, []string{generationID})
	return found, profile, err
}

// addTo adds the unit to those that were found, or notes that the profile was used.
func (r *useRow) addTo(found *[]string, profile *bool) {
	if r.Layer == inProfile {
		*profile = true
		return
	}
	*found = append(*found, r.UnitID)
}

// fillRecalled gives swipes the units that were found for them, and notes which had facts of the profile.
func (t *textTx) fillRecalled(swipes []*swipeText) error {
	byPlace := map[[2]string][]*chat.Swipe{}
	var chats, generations []string
	for _, s := range swipes {
		if s.GenerationID != "" {
			place := [2]string{s.ConversationID, s.GenerationID}
			byPlace[place] = append(byPlace[place], &s.Swipe)
			chats, generations = append(chats, s.ConversationID), append(generations, s.GenerationID)
		}
	}
	if len(generations) == 0 {
		return nil
	}
	slices.Sort(chats)
	return sqldb.Each(t, func(r *useRow) error {
		for _, s := range byPlace[[2]string{r.ConversationID, r.GenerationID}] {
			r.addTo(&s.MemoryIDs, &s.UsedProfile)
		}
		return nil
	}, selectRecalled, t.userID, slices.Compact(chats), generations)
}

// dropUsesFor removes what was sent for texts that are removed: for the revisions whose column has one of
// some values.
func (s *session) dropUsesFor(userID, column string, values []string) error {
	return s.Run("DELETE FROM memory_uses WHERE (user_id, conversation_id, generation_id) IN (SELECT r.user_id, m.conversation_id, r.generation_id"+
		" FROM revisions r JOIN messages m ON m.user_id = r.user_id AND m.id = r.message_id WHERE r.user_id = ? AND r."+column+" IN (?))", userID, values)
}
