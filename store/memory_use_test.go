package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/memory"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/store"
)

// reply stores a reply of a generation in which units were recalled, behind what was for continued.
func (e *env) reply(conversation, parent, continued string, uses ...memory.Use) *chat.Message {
	e.Helper()
	m := message(conversation, parent, "a reply")
	m.Role, m.Swipes[0].GenerationID = chat.RoleAssistant, e.idNow()
	e.knowUnits(conversation, uses)
	g := &chat.Generation{ID: m.Swipes[0].GenerationID, ConversationID: conversation, MessageID: m.ID, Kind: chat.KindReply, Status: chat.GenWaiting}
	e.update(func(tx nodest.Tx) error {
		ended := *g
		ended.Status, ended.EndedAt = chat.GenDone, new(tx.Now())
		return errors.Join(tx.InsertGeneration(g), tx.Memory.PutUses(conversation, g.ID, continued, uses),
			tx.Chats.InsertMessage(m), tx.UpdateGeneration(&ended))
	})
	return m
}

// knowUnits stores a fact for each unit that is not there.
func (e *env) knowUnits(conversation string, uses []memory.Use) {
	e.Helper()
	e.update(func(tx nodest.Tx) error {
		c, err := tx.Chats.Conversation(conversation)
		for i := 0; err == nil && i < len(uses); i++ {
			if _, missing := tx.Memory.Fact(c.CharacterID, uses[i].ID); fault.Is(missing, fault.NotFound) {
				unit := fact("unit " + uses[i].ID)
				unit.ID, unit.RootID = uses[i].ID, uses[i].ID
				err = tx.Memory.InsertFacts(c.CharacterID, unit)
			}
		}
		return err
	})
}

func (e *env) usesOf(m *chat.Message) (uses []memory.Use) {
	e.Helper()
	e.view(func(tx nodest.Tx) (err error) { uses, err = tx.Memory.Uses(m.ID); return err })
	return uses
}

// memoryIDs are those of the first text of a message.
func (e *env) memoryIDs(messageID string) []string {
	e.Helper()
	return e.firstText(messageID).MemoryIDs
}

// usedProfile reports whether the first text of a message was written with facts of the profile.
func (e *env) usedProfile(messageID string) bool {
	e.Helper()
	return e.firstText(messageID).UsedProfile
}

func (e *env) firstText(messageID string) (s chat.Swipe) {
	e.Helper()
	e.view(func(tx nodest.Tx) error {
		m, err := tx.Chats.Message(messageID)
		if err == nil {
			s = m.Swipes[0]
		}
		return err
	})
	return s
}

func exchange(rank int) memory.Use {
	return memory.Use{ID: id(), Layer: recall.Exchange, Rank: rank, Score: 0.75, Signals: map[string]float64{"near": 0.25, "words": 0.5}}
}

func profile(rank int) memory.Use {
	return memory.Use{ID: id(), Layer: recall.Fact, Rank: rank, Score: 1, Signals: map[string]float64{"profile": 1}}
}

// Memory ids are what was found for a text; uses have the facts of the profile too. An edited text keeps them.
func TestATextKnowsWhatWasRecalledForIt(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		uses := []memory.Use{exchange(1), exchange(2), profile(3)}
		m := e.reply(e.chat(e.character()), "", "", uses...)
		for range 2 {
			e.equal("uses", e.usesOf(m), uses)
			e.equal("memory ids", e.memoryIDs(m.ID), []string{uses[0].ID, uses[1].ID})
			e.equal("used the profile", e.usedProfile(m.ID), true)
			e.change(m.ID, edit("edited"))
		}
		e.change(m.ID, reswipe("without memories"))
		e.equal("uses of another swipe", e.usesOf(m), []memory.Use(nil))
		e.change(m.ID, func(m *chat.Message) { m.SwipeIndex = 0 })
		e.equal("uses of the first one", e.usesOf(m), uses)
	})
}

// SQL reads which units were recalled, how high they came, and why.
func TestUsesAreReadInSQL(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		e.reply(e.chat(e.character()), "", "", exchange(1), profile(2))
		words := "json_extract(signals, '$[0]')"
		if store.OnPostgres(e.db) {
			words = "CAST(CAST(signals AS JSON) ->> 0 AS BIGINT)"
		}
		got, err := store.Query[struct{ Rank, Score, Words int64 }](e.db, "SELECT rank, score, "+words+" AS words FROM memory_uses WHERE layer = 'e' AND user_id = ?", e.user)
		e.equal("rank, score and a signal", []any{got, err}, []any{[]struct{ Rank, Score, Words int64 }{{1, 7500, 5000}}, nil})
	})
}

// Each signal has its place in the stored array; one that has none is an error, not lost.
func TestEverySignalIsStored(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conv := e.chat(e.character())
		for i, name := range memory.SignalNames {
			use := memory.Use{ID: id(), Layer: recall.Fact, Rank: 1, Score: 0.5, Signals: map[string]float64{name: 0.5}}
			e.equal(name, e.usesOf(e.reply(conv, "", "", use)), []memory.Use{use})
			e.equal("its place", e.queryInts("SELECT COUNT(*) FROM memory_uses WHERE signals = ?", "["+strings.Repeat("0,", i)+"5000]"), []int64{1})
		}
		err := e.db.Update(t.Context(), e.user, func(tx nodest.Tx) error {
			return tx.Memory.PutUses(conv, id(), "", []memory.Use{{ID: id(), Layer: recall.Fact, Signals: map[string]float64{"other": 1}}})
		})
		e.equal("an unknown one is refused", err != nil, true)
	})
}

// The units of a text come before those of its continuation, each once.
func TestAContinuationAddsToWhatWasRecalled(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conv := e.chat(e.character())
		a, b, c := exchange(1), profile(2), exchange(2)
		first := e.reply(conv, "", "", a, b)
		again := a
		again.Rank, again.Score = 1, 0.125
		longer := e.reply(conv, first.ID, first.Swipes[0].GenerationID, again, c)
		c.Rank = 3
		e.equal("uses", e.usesOf(longer), []memory.Use{a, b, c})
		e.equal("memory ids", e.memoryIDs(longer.ID), []string{a.ID, c.ID})
		e.equal("used the profile", e.usedProfile(longer.ID), true)
		e.equal("uses of the first text", e.usesOf(first), []memory.Use{a, b})
	})
}

func TestAFactIsUsedWhenItIsRecalled(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		used, other := e.learn(character, fact("used")), e.learn(character, fact("other"))
		e.clock.advance(time.Minute)
		e.reply(e.chat(character), "", "", memory.Use{ID: used.ID, Layer: recall.Fact, Rank: 1})
		e.view(func(tx nodest.Tx) error {
			a, err := tx.Memory.Fact(character, used.ID)
			b, err2 := tx.Memory.Fact(character, other.ID)
			e.equal("last used", []any{a.LastUsedAt.Equal(start.Add(time.Minute)), b.LastUsedAt == nil}, []any{true, true})
			return errors.Join(err, err2)
		})
	})
}

// A fork knows which units its texts were written with, each fact of the profile too, and loses them on its
// own. How others were found is told where they were.
func TestAForkKnowsWhatWasRecalled(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		conv := e.chat(character)
		uses := []memory.Use{exchange(1), exchange(2), profile(3), profile(4)}
		m := e.reply(conv, e.say(conv, "", "hm").ID, "", uses...)
		copies := slices.Clone(uses)
		for i := range copies[:2] {
			copies[i].Score, copies[i].Signals = 0, nil
		}
		for from, of := conv, m; from == conv || of.ConversationID == from; {
			fork := &chat.Conversation{ID: id(), CharacterID: character}
			e.forkTo(fork, from, of.ID)
			copied := &chat.Message{ID: fork.HeadID, ConversationID: fork.ID}
			e.equal("memory ids", e.memoryIDs(copied.ID), []string{uses[0].ID, uses[1].ID})
			e.equal("used the profile", e.usedProfile(copied.ID), true)
			e.equal("uses", e.usesOf(copied), copies)
			if from != conv { // a fork of a fork
				break
			}
			from, of = fork.ID, copied
		}
		e.equal("rows", e.userRows("memory_uses"), int64(4+4+4))
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(conv) })
		e.clock.advance(31 * day)
		e.maintain()
		e.equal("rows of the forks", e.userRows("memory_uses"), int64(4+4))
	})
}

// Signals go 90 days after the generation; rank and score stay as long as the text.
func TestSignalsAreDroppedAfter90Days(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conv := e.chat(e.character())
		kept := exchange(1)
		m := e.reply(conv, "", "", kept)
		spoken := e.idNow()
		failed := &chat.Generation{ID: e.idNow(), ConversationID: conv, MessageID: m.ID, Kind: chat.KindRegenerate, Status: chat.GenWaiting}
		e.update(func(tx nodest.Tx) error {
			ended := *failed
			ended.Status, ended.EndedAt = chat.GenFailed, new(tx.Now())
			other := ended
			other.ID, other.Options.CharacterID = spoken, id() // this one stays
			m := message(conv, m.ID, "of another character")
			m.Swipes[0].GenerationID, other.MessageID = spoken, m.ID
			return errors.Join(tx.InsertGeneration(failed), tx.InsertGeneration(&other), tx.Chats.InsertMessage(m),
				tx.Memory.PutUses(conv, failed.ID, "", []memory.Use{exchange(1)}), tx.Memory.PutUses(conv, spoken, "", []memory.Use{exchange(1)}),
				tx.UpdateGeneration(&ended))
		})
		e.clock.advance(89 * day)
		e.maintain()
		e.equal("uses after 89 days", e.usesOf(m), []memory.Use{kept})
		e.clock.advance(2 * day)
		e.equal("generations that maintenance changed", e.maintain()["generations"], 3)
		kept.Signals = nil
		e.equal("uses after 91 days", e.usesOf(m), []memory.Use{kept})
		e.equal("rows, and those with signals", []int64{e.userRows("memory_uses"), e.queryInts("SELECT COUNT(signals) FROM memory_uses WHERE user_id = ?", e.user)[0]}, []int64{2, 0})
		e.equal("generations", e.userRows("generations"), int64(1))
		e.equal("generations that the next maintenance changed", e.maintain()["generations"], 0)
	})
}

func TestUsesGoWithTheirText(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		conv := e.chat(e.character())
		gone := e.reply(conv, "", "", exchange(1))
		kept := e.reply(conv, "", "", exchange(1))
		e.change(gone.ID, deleteMessage)
		e.clock.advance(31 * day)
		e.maintain()
		e.equal("rows", e.userRows("memory_uses"), int64(1))
		e.equal("rows of the other text", e.queryInts("SELECT COUNT(*) FROM memory_uses WHERE user_id = ? AND generation_id = ?", e.user, kept.Chosen().GenerationID), []int64{1})
	})
}
