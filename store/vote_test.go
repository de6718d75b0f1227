package store_test

import (
	"slices"
	"testing"
	"time"

	"nodest/internal/fault"
	"nodest/internal/feedback"
	"nodest/knowledge"
	"nodest/memory"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/store"
)

func init() {
	addIntrusions(map[string]func(e *env, tx nodest.Tx, x fixture) error{
		"PutVotes": func(e *env, tx nodest.Tx, x fixture) error {
			put := func(v feedback.Evaluation) error {
				v.Status = feedback.Harmful
				return store.Votes(tx).PutVotes(v)
			}
			for _, source := range []string{x.fact, x.revision, x.file, x.file + ".1.0"} { // they are not there for the intruder
				if err := put(feedback.Evaluation{Source: source}); err != nil {
					return err
				}
			}
			n, err := store.QueryIn[int64](tx, "SELECT COUNT(*) FROM source_votes WHERE user_id = ?", tx.UserID())
			if err := wantEmpty(e, n[0] == 0, err); err != nil {
				return err
			}
			if err := wantNotFound(e, put(feedback.Evaluation{Source: pageURL, CharacterID: x.character})); err != nil {
				return err
			}
			return wantNotFound(e, put(feedback.Evaluation{Source: pageURL, ConversationID: x.conversation}))
		},
		"Votes": func(e *env, tx nodest.Tx, x fixture) error {
			chunks, err := store.Votes(tx).Votes("", feedback.Chunk, x.file+".1.0")
			if err := wantEmpty(e, len(chunks) == 0, err); err != nil {
				return err
			}
			hosts, err := store.Votes(tx).Votes(x.character, feedback.Host, "private.test")
			return wantEmpty(e, len(hosts) == 0, err)
		},
		"Records": func(e *env, tx nodest.Tx, x fixture) error {
			of, err := tx.Memory.Records(ownCharacter(e, tx), x.fact, x.revision)
			if err := wantEmpty(e, len(of) == 0, err); err != nil {
				return err
			}
			_, err = tx.Memory.Records(x.character, x.fact)
			return wantNotFound(e, err)
		},
	})
}

// votes puts a vote on each source, with a chat.
func (x fixture) votes(sources ...string) (all []feedback.Evaluation) {
	for _, s := range sources {
		all = append(all, feedback.Evaluation{Source: s, CharacterID: x.character, ConversationID: x.conversation, Vote: feedback.Vote{Status: feedback.Helpful}})
	}
	return all
}

func (e *env) vote(all ...feedback.Evaluation) {
	e.Helper()
	e.update(func(tx nodest.Tx) error { return store.Votes(tx).PutVotes(all...) })
}

// statuses are the votes on sources, by time; with those of a whole file.
func (e *env) statuses(character string, kind feedback.Kind, source string) (list []string) {
	e.Helper()
	e.view(func(tx nodest.Tx) error {
		of, err := store.Votes(tx).Votes(character, kind, source, "another")
		list = statusesOf(of[source])
		return err
	})
	return list
}

func statusesOf(votes []feedback.Vote) (list []string) {
	slices.SortFunc(votes, func(a, b feedback.Vote) int { return a.At.Compare(b.At) })
	for _, v := range votes {
		list = append(list, string(v.Status))
	}
	return list
}

func (e *env) record(character, unit string) (r feedback.Record) {
	e.Helper()
	e.view(func(tx nodest.Tx) error {
		of, err := tx.Memory.Records(character, unit)
		r = of[unit]
		return err
	})
	return r
}

// A text is known as used when a prompt has had it, a fact too; votes do not say so.
func TestARecordTellsVotesAndUse(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		conv := e.chat(character)
		said := e.say(conv, "", "the cellar floods in March")
		text, f := said.Swipes[0].RevisionID, fact("likes plums")
		e.update(func(tx nodest.Tx) error { return tx.Memory.InsertFacts(character, f) })
		for _, unit := range []string{text, f.ID} {
			e.equal("before", e.record(character, unit), feedback.Record{})
			at := e.clock.now().Add(-time.Hour)
			e.vote(feedback.Evaluation{Source: unit, ConversationID: conv, CharacterID: character, Vote: feedback.Vote{Status: feedback.Harmful, At: at}})
			e.vote(feedback.Evaluation{Source: unit, ConversationID: conv, Vote: feedback.Vote{Status: feedback.Helpful}})
			r := e.record(character, unit)
			e.equal("votes", statusesOf(r.Votes), []string{"harmful", "helpful"})
			e.equal("time of the first", r.Votes[0].At.Equal(at), true)
			e.equal("shown", r.Shown, false)
		}
		e.reply(conv, said.ID, "", memory.Use{ID: text, Layer: recall.Exchange, Rank: 1}, memory.Use{ID: f.ID, Layer: recall.Fact, Rank: 2})
		e.equal("text", e.record(character, text).Shown, true)
		e.equal("fact", e.record(character, f.ID).Shown, true)
	})
}

func TestVotesCountForTheirCharacterOrForAll(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		a, b := e.character(), e.character()
		e.vote(
			feedback.Evaluation{Source: "https://www.good.test/page", CharacterID: a, Vote: feedback.Vote{Status: feedback.Helpful, At: start}},
			feedback.Evaluation{Source: "http://good.test/", CharacterID: b, Vote: feedback.Vote{Status: feedback.Harmful, At: start.Add(1)}},
			feedback.Evaluation{Source: "https://good.test/other", Vote: feedback.Vote{Status: feedback.Unused, At: start.Add(time.Minute)}},
			feedback.Evaluation{Source: "no source", Vote: feedback.Vote{Status: feedback.Helpful}},
			feedback.Evaluation{Source: "https://", Vote: feedback.Vote{Status: feedback.Helpful}},
		)
		e.equal("of a", e.statuses(a, feedback.Host, "good.test"), []string{"helpful", "unused"})
		e.equal("of b", e.statuses(b, feedback.Host, "good.test"), []string{"harmful", "unused"})
		e.equal("of all", len(e.statuses("", feedback.Host, "good.test")), 3)
		e.equal("of another host", len(e.statuses("", feedback.Host, "bad.test")), 0)
		e.equal("rows", e.userRows("source_votes"), int64(3))
		e.refused(fault.Invalid, func(tx nodest.Tx) error {
			return store.Votes(tx).PutVotes(feedback.Evaluation{Source: "https://a.test", Vote: feedback.Vote{Status: "great"}})
		})
	})
}

// A chat into which the log of another one was imported repeats its votes, which count once, also when one of the two is gone.
func TestVotesThatASecondChatRepeatsCountOnce(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		first, second := e.chat(character), e.chat(character)
		text := e.say(first, "", "the cellar floods in March").Swipes[0].RevisionID
		for _, conv := range []string{first, second} {
			for _, source := range []string{"https://good.test/page", text} {
				vote := feedback.Evaluation{Source: source, CharacterID: character, ConversationID: conv, Vote: feedback.Vote{Status: feedback.Helpful, At: start}}
				e.vote(vote, vote) // votes of two queries, evaluated at once
				vote.Status = feedback.Unused
				e.vote(vote)
			}
		}
		want := []string{"helpful", "helpful", "unused"}
		e.equal("a host", e.statuses(character, feedback.Host, "good.test"), want)
		e.equal("a text", statusesOf(e.record(character, text).Votes), want)
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(second) })
		e.equal("with one chat", e.statuses(character, feedback.Host, "good.test"), want)
	})
}

func TestOnlyTheNewestVotesOfASourceAreKept(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		f := e.knows(e.user).upload("", "a.md", "# text")
		for _, source := range []string{"https://a.test/", f.ID + ".1.0"} {
			kind, name := feedback.Chunk, source
			if source[:4] == "http" {
				kind, name = feedback.Host, "a.test"
			}
			for i := range feedback.Kept + 5 {
				status := feedback.Helpful
				if i < 5 {
					status = feedback.Harmful
				}
				e.vote(feedback.Evaluation{Source: source, Vote: feedback.Vote{Status: status, At: start.Add(time.Duration(i) * time.Minute)}})
			}
			e.equal(source, e.statuses("", kind, name), slices.Repeat([]string{"helpful"}, feedback.Kept))
		}
	})
}

// A vote on a whole document counts for each of its chunks, one on a chunk for that one alone.
func TestVotesOnDocuments(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		f := e.knows(e.user).upload("", "a.md", "# text")
		e.vote(
			feedback.Evaluation{Source: f.ID, Vote: feedback.Vote{Status: feedback.Neutral, At: start}},
			feedback.Evaluation{Source: f.ID + ".1.0", Vote: feedback.Vote{Status: feedback.Helpful, At: start.Add(time.Minute)}},
			feedback.Evaluation{Source: f.ID + ".2.0", Vote: feedback.Vote{Status: feedback.Harmful, At: start.Add(time.Minute)}},
		)
		e.equal("a chunk", e.statuses("", feedback.Chunk, f.ID+".1.0"), []string{"neutral", "helpful"})
		e.equal("of another edition", e.statuses("", feedback.Chunk, f.ID+".2.0"), []string{"neutral", "harmful"})
		e.equal("another chunk", e.statuses("", feedback.Chunk, f.ID+".1.7"), []string{"neutral"})
	})
}

// A removed source takes its votes along, of whichever user, and no later vote brings them back.
func TestVotesGoWithWhatTheyAreAbout(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		conv := e.chat(character)
		text, f, other := e.say(conv, "", "the cellar floods in March").Swipes[0].RevisionID, fact("likes plums"), fact("likes pears")
		e.update(func(tx nodest.Tx) error { return tx.Memory.InsertFacts(character, f, other) })
		u := e.knows(e.user)
		base, err := u.svc.CreateBase(e.Context(), u.call(), knowledge.NewBase{Name: new("shared")})
		u.must(err)
		reader := newUser(e)
		_, err = u.svc.PutGrant(e.Context(), u.call(), base.ID, reader, knowledge.AccessRead)
		u.must(err)
		file := u.upload(base.ID, "a.md", "# text")
		votes := func() {
			for _, source := range []string{text, f.ID, other.ID, file.ID + ".1.0", "https://a.test/"} {
				e.vote(feedback.Evaluation{Source: source, CharacterID: character, Vote: feedback.Vote{Status: feedback.Helpful}})
			}
		}
		votes()
		e.updateAs(reader, func(tx nodest.Tx) error {
			return store.Votes(tx).PutVotes(feedback.Evaluation{Source: file.ID + ".1.0", Vote: feedback.Vote{Status: feedback.Helpful}})
		})
		e.equal("votes", e.rowsOf("source_votes"), int64(6))

		e.update(func(tx nodest.Tx) error { return tx.Memory.PurgeFacts(character, f.ID) })
		e.equal("without the fact", e.rowsOf("source_votes"), int64(5))
		e.update(func(tx nodest.Tx) error { return tx.Memory.ForgetTexts(character, text) })
		e.equal("without the text", e.rowsOf("source_votes"), int64(4))
		u.must(u.svc.DeleteFile(e.Context(), u.call(), file.ID))
		e.equal("without the document", e.rowsOf("source_votes"), int64(2))
		votes()
		e.equal("votes of what is left", e.rowsOf("source_votes"), int64(4))
		e.update(func(tx nodest.Tx) error { return tx.Memory.PurgeScope(character) })
		e.equal("without the memory", e.rowsOf("source_votes"), int64(2))
	})
}

func TestVotesGoWithTheirChatAndTheirCharacter(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		character := e.character()
		gone, kept := e.chat(character), e.chat(e.character())
		for _, conv := range []string{gone, kept} {
			e.vote(feedback.Evaluation{Source: "https://a.test/", ConversationID: conv, Vote: feedback.Vote{Status: feedback.Helpful}})
		}
		e.vote(feedback.Evaluation{Source: "https://a.test/", CharacterID: character, Vote: feedback.Vote{Status: feedback.Helpful}})
		e.update(func(tx nodest.Tx) error { return tx.Chats.DeleteConversation(gone) })
		e.equal("at once", e.userRows("source_votes"), int64(2))
		e.refused(fault.NotFound, func(tx nodest.Tx) error {
			return store.Votes(tx).PutVotes(feedback.Evaluation{Source: "https://a.test/", ConversationID: gone, Vote: feedback.Vote{Status: feedback.Helpful}})
		})
		e.update(func(tx nodest.Tx) error { return tx.Characters.DeleteCharacter(character) })
		e.clock.advance(31 * day)
		e.maintain()
		e.equal("of the other chat", e.userRows("source_votes"), int64(1))
	})
}
