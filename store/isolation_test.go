package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/circle"
	"nodest/cognition"
	"nodest/internal/account"
	"nodest/internal/attachment"
	"nodest/internal/audit"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/internal/tavern"
	"nodest/knowledge"
	"nodest/memory"
	"nodest/memory/dream"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/nodest/app"
	"nodest/store"
	"nodest/store/storetest"
	"nodest/websearch"
	"nodest/websearch/research"
)

// fixture holds the ids of a user's rows, one of each kind.
type fixture struct {
	user, character, book, conversation, message, revision, generation, prompt, clientMsgID, key, save string
	fact, suggestion, summary, loading                                                                 string
	attachment, post, comment, turn, item, action                                                      string
	file, content, base, query, goal, research, play, folder, known                                    string

	job *jobs.Job // running
}

// noBranch is a branch without messages.
const noBranch = 99

// words is the range of the user's message.
func (x fixture) words() chat.TextRange {
	return chat.TextRange{ConversationID: x.conversation, Last: chat.WordRange - 1}
}

func newUser(e *env) string { return storetest.User(e.T, e.db) }

func lockVariables(tx nodest.Tx) error {
	_, err := tx.Characters.LockVariables()
	return err
}

// fill inserts a row in every table for a user.
func fill(e *env, user string) fixture {
	e.Helper()
	ctx := context.Background()
	x := fixture{
		user: user, character: id(), book: id(), conversation: id(), revision: id(),
		generation: id(), prompt: e.idNow(), clientMsgID: id(), key: id(), save: id(), fact: id(), suggestion: id(), summary: id(), loading: id(),
		attachment: id(), post: id(), comment: id(), turn: id(), item: id(), action: id(),
		file: id(), content: id(), base: id(), query: id(), goal: id(), research: id(), play: id(), folder: id(), known: id(),
	}
	must := func(err error) {
		e.Helper()
		if err != nil {
			e.Fatal(err)
		}
	}
	_, err := e.db.InsertToken(ctx, &account.Token{ID: id(), UserID: user, Hash: []byte(id())})
	must(err)
	must(e.db.InsertTicket(ctx, &account.Ticket{UserID: user, Hash: []byte(id()), ExpiresAt: start.Add(time.Hour)}))
	must(e.db.PutProviderKey(ctx, user, &account.SealedKey{Provider: "p", Sealed: []byte{1}}))
	must(e.db.Update(ctx, user, func(tx nodest.Tx) error {
		m := message(x.conversation, "", "private")
		m.ClientMsgID, m.Extra, m.Swipes[0].RevisionID, m.Swipes[0].GenerationID = x.clientMsgID, []byte(`"private"`), x.revision, x.generation
		m.Swipes[0].PlayID = x.play
		x.message = m.ID
		for _, err := range []error{
			tx.Characters.PutSettings(&character.UserSettings{UserName: "private", Version: 1}),
			tx.AddUsage(nodest.UsageRow{Provider: "p", Requests: 1}),
			tx.Ack("phone", 1, nil),
			answered(tx, x.key, `1`),
			tx.Characters.InsertCharacter(&character.Character{ID: x.character, Name: "private"}),
			tx.Characters.PutAvatar(x.character, &character.Avatar{Data: []byte("private")}),
			tx.Characters.InsertResource(&character.Resource{ID: x.book, Kind: character.WorldBook, Name: "private", BindAll: true, Characters: []string{x.character}}),
			tx.Chats.InsertConversation(&chat.Conversation{ID: x.conversation, CharacterID: x.character, Title: "private"}),
			tx.Chats.InsertPlay(&chat.Play{ID: x.play, ConversationID: x.conversation, Variables: []byte(`{"private":1}`)}),
			lockVariables(tx),
			tx.Characters.PutVariables([]byte(`{"private":1}`)),
			tx.Chats.InsertMessage(m),
			tx.Memory.PutUses(x.conversation, x.generation, "", []memory.Use{{ID: x.fact, Layer: recall.Exchange, Rank: 1}}),
			tx.Chats.PutWords(x.words(), []string{x.revision}, []byte("private")),
			tx.Chats.OpenLoad(chat.Load{ConversationID: x.conversation, Branch: noBranch}, 0),
			tx.Chats.InsertSummary(x.keptSummary(m)),
			tx.InsertGeneration(&chat.Generation{ID: x.generation, ConversationID: x.conversation, MessageID: x.message, Status: chat.GenStreaming, Lease: chat.Lease{LeaseOwner: "p"}}),
			tx.Chats.InsertSave(&chat.Save{ID: x.save, ConversationID: x.conversation, Version: 1, Description: "private",
				Pins: &character.Pins{Resources: []character.ResourceStamp{{Kind: character.WorldBook, ID: x.book, Version: 1}}}}),
			appKeys(tx).PutAppChat("app", x.conversation),
			appKeys(tx).PutAppCharacter("app", x.character),
			tx.PutPrompt(&nodest.StoredPrompt{ID: x.prompt, ConversationID: x.conversation, Body: []byte("private"), FileIDs: []string{id()}}),
			webPages(tx).PutWebPage(&websearch.Page{URL: pageURL, Title: "private", FetchedAt: start}),
			webPages(tx).PutBadHost(websearch.Host{Host: "private.test", Until: start.Add(time.Hour)}),
			tx.Emit(&stream.Event{Type: "private"}),
		} {
			if err != nil {
				return err
			}
		}
		return nil
	}))
	must(e.db.Update(ctx, user, func(tx nodest.Tx) error { // so that it has rows of states
		m, err := tx.Chats.Message(x.message)
		if err != nil {
			return err
		}
		m.Rev++
		return tx.Chats.UpdateMessage(m)
	}))
	must(e.db.Update(ctx, user, func(tx nodest.Tx) error { return errors.Join(fillMemory(tx, x), fillDreams(tx, x)) }))
	must(e.db.Update(ctx, user, func(tx nodest.Tx) error { return errors.Join(fillCircle(tx, x), fillCognition(tx, x)) }))
	must(e.db.Update(ctx, user, func(tx nodest.Tx) error {
		return errors.Join(fillKnowledge(e, tx, x), fillIndex(tx, x), fillResearch(tx, x), fillTavern(tx, x), store.Votes(tx).PutVotes(x.votes(x.fact, x.revision, x.file, x.file+".1.0", pageURL)...))
	}))
	must(e.db.Enqueue(ctx, jobs.Spec{Kind: "test.fill", UserID: user, Subject: x.conversation}))
	claimed, err := e.db.ClaimJobs(ctx, "p", time.Hour, []jobs.Want{{Kind: "test.fill", Free: 1, PerUser: 1}})
	must(err)
	x.job = claimed[0]
	must(e.db.Update(ctx, user, func(tx nodest.Tx) error {
		c, err := tx.Chats.LockConversation(x.conversation)
		if err != nil {
			return err
		}
		if _, _, err := tx.Chats.Rewind(c, 1, x.message); err != nil {
			return err
		}
		c.Version++
		return tx.Chats.UpdateConversation(c)
	}))
	return x
}

// count returns the number of the user's rows in every table with a user_id.
func count(e *env, user string) map[string]int64 {
	e.Helper()
	rows := map[string]int64{}
	for table, columns := range tables(e.T, e.db) {
		if table == "jobs" || !slices.ContainsFunc(columns, func(c string) bool { return c == "user_id" }) {
			continue
		}
		n, err := store.Query[int64](e.db, "SELECT COUNT(*) FROM "+table+" WHERE user_id = ?", user)
		if err != nil {
			e.Fatal(err)
		}
		rows[table] = n[0]
	}
	return rows
}

// intrusions try another user's ids on every method of nodest.Tx. A method must return
// fault.NotFound, return nothing, or change only the acting user's rows: ids are
// unique per user, so the same id under another user is another row.
var intrusions = map[string]func(e *env, tx nodest.Tx, x fixture) error{
	"WebPage": func(e *env, tx nodest.Tx, _ fixture) error {
		p, err := webPages(tx).WebPage(pageURL)
		return wantEmpty(e, p == nil, err)
	},
	"GoodPageBytes": func(e *env, tx nodest.Tx, _ fixture) error {
		n, err := webPages(tx).GoodPageBytes(pageURL, start)
		return wantEmpty(e, n == 0, err)
	},
	"PutWebPage": func(_ *env, tx nodest.Tx, _ fixture) error {
		return webPages(tx).PutWebPage(&websearch.Page{URL: pageURL, Title: "intruder", FetchedAt: start})
	},
	"BadHosts": func(e *env, tx nodest.Tx, _ fixture) error {
		hosts, err := webPages(tx).BadHosts([]string{"private.test"})
		return wantEmpty(e, len(hosts) == 0, err)
	},
	"PutBadHost": func(_ *env, tx nodest.Tx, _ fixture) error {
		return webPages(tx).PutBadHost(websearch.Host{Host: "private.test", Until: start})
	},
	"UserID": nil, // no ids
	"Now":    nil,
	"Emit": func(e *env, tx nodest.Tx, x fixture) error {
		return tx.Emit(&stream.Event{UserID: x.user, Type: "intruder", ConversationID: x.conversation})
	},
	"Key": func(e *env, tx nodest.Tx, x fixture) error {
		r, err := tx.Key(x.key)
		return wantEmpty(e, r == nil, err)
	},
	"ClaimKey": func(e *env, tx nodest.Tx, x fixture) error {
		r, err := tx.ClaimKey(x.key, "intruder")
		return wantEmpty(e, r == nil, err)
	},
	"KeepReply": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.KeepReply(x.key, op.Reply{JSON: []byte(`"intruder"`)}))
	},
	"Audit": func(e *env, tx nodest.Tx, x fixture) error { // the intruder is the actor, whatever is given
		return tx.Audit(audit.Entry{Action: audit.Exported, ActorID: x.user})
	},
	"Settings": func(e *env, tx nodest.Tx, x fixture) error {
		s, err := tx.Characters.Settings()
		return wantEmpty(e, s.UserName == "", err)
	},
	"PutSettings": func(e *env, tx nodest.Tx, x fixture) error {
		return tx.Characters.PutSettings(&character.UserSettings{UserName: "intruder", Version: 1})
	},
	"PutDeviceZone": func(e *env, tx nodest.Tx, x fixture) error {
		return tx.Characters.PutDeviceZone("Asia/Tokyo")
	},
	"AddUsage": func(e *env, tx nodest.Tx, x fixture) error {
		return tx.AddUsage(nodest.UsageRow{Provider: "p", Requests: 100})
	},
	"Usage": func(e *env, tx nodest.Tx, x fixture) error {
		u, err := tx.Usage("2000-01-01", "2100-01-01")
		return wantEmpty(e, len(u) == 0, err)
	},
	"NoteWarned": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.NoteWarned("intruder")
		return err
	},
	"Limits": nil, "LockLimits": nil,
	"Ack": func(e *env, tx nodest.Tx, x fixture) error {
		return tx.Ack("phone", 99, map[string]string{"c": "intruder"})
	},

	"InsertCharacter": func(e *env, tx nodest.Tx, x fixture) error {
		return tx.Characters.InsertCharacter(&character.Character{ID: x.character, Name: "intruder"})
	},
	"Character": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Characters.Character(x.character)
		return wantNotFound(e, err)
	},
	"CharacterCard": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Characters.CharacterCard(x.character)
		return wantNotFound(e, err)
	},
	"CharacterSource": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Characters.CharacterSource(x.character, 1)
		return wantNotFound(e, err)
	},
	"CharacterVersion": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Characters.CharacterVersion(x.character, 1)
		return wantNotFound(e, err)
	},
	"Characters": func(e *env, tx nodest.Tx, x fixture) error {
		items, _, err := tx.Characters.Characters(character.Filter{}, "", 50)
		return wantEmpty(e, len(items) == 0, err)
	},
	"UpdateCharacter": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Characters.UpdateCharacter(&character.Character{ID: x.character, Name: "intruder", Version: 2}))
	},
	"UpdateLabels": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Characters.UpdateLabels(&character.Character{ID: x.character, Tags: []string{"intruder"}, Archived: true, Version: 2, DocumentsVersion: 1}))
	},
	"DeleteCharacter": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Characters.DeleteCharacter(x.character))
	},
	"HideCharacter": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Characters.HideCharacter(x.character, true))
	},
	"PutAvatar": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Characters.PutAvatar(x.character, &character.Avatar{Data: []byte("intruder")}))
	},
	"AvatarTag": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Characters.AvatarTag(x.character)
		return wantNotFound(e, err)
	},
	"Avatar": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Characters.Avatar(x.character)
		return wantNotFound(e, err)
	},

	"InsertResource": func(e *env, tx nodest.Tx, x fixture) error {
		return tx.Characters.InsertResource(&character.Resource{ID: x.book, Kind: character.WorldBook, Name: "intruder"})
	},
	"Resource": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Characters.Resource(character.WorldBook, x.book)
		return wantNotFound(e, err)
	},
	"ResourceVersion": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Characters.ResourceVersion(character.WorldBook, x.book, 1)
		return wantNotFound(e, err)
	},
	"Resources": func(e *env, tx nodest.Tx, x fixture) error {
		items, _, err := tx.Characters.Resources(character.WorldBook, "", 50)
		return wantEmpty(e, len(items) == 0, err)
	},
	"BoundResources": func(e *env, tx nodest.Tx, x fixture) error {
		items, err := tx.Characters.BoundResources(character.WorldBook, x.character)
		return wantEmpty(e, len(items) == 0, err)
	},
	"UpdateResource": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Characters.UpdateResource(&character.Resource{ID: x.book, Kind: character.WorldBook, Name: "intruder", Version: 2}))
	},
	"DeleteResource": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Characters.DeleteResource(character.WorldBook, x.book))
	},
	"Stamps": func(e *env, tx nodest.Tx, x fixture) error {
		s, err := tx.Characters.Stamps(x.character, x.book)
		return wantEmpty(e, s.Character == 0 && len(s.Resources) == 0, err)
	},

	"InsertConversation": func(e *env, tx nodest.Tx, x fixture) error {
		return tx.Chats.InsertConversation(&chat.Conversation{ID: x.conversation, Title: "intruder"})
	},
	"Conversation": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.Conversation(x.conversation)
		return wantNotFound(e, err)
	},
	"LockConversation": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.LockConversation(x.conversation)
		return wantNotFound(e, err)
	},
	"Conversations": func(e *env, tx nodest.Tx, x fixture) error {
		items, _, err := tx.Chats.Conversations(chat.ConversationFilter{CharacterID: x.character}, "", 50)
		return wantEmpty(e, len(items) == 0, err)
	},
	"UpdateConversation": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Chats.UpdateConversation(&chat.Conversation{ID: x.conversation, Title: "intruder", Version: 3}))
	},
	"DeleteConversation": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Chats.DeleteConversation(x.conversation))
	},

	"InsertMessage": func(e *env, tx nodest.Tx, x fixture) error {
		own := ownChat(e, tx)
		// Another user's message as parent, in one's own conversation.
		if err := wantNotFound(e, tx.Chats.InsertMessage(message(own, x.message, "intruder"))); err != nil {
			return err
		}
		return wantNotFound(e, tx.Chats.InsertMessage(message(x.conversation, "", "intruder")))
	},
	"Message": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.Message(x.message)
		return wantNotFound(e, err)
	},
	"MessageByClientID": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.MessageByClientID(x.conversation, x.clientMsgID)
		return wantNotFound(e, err)
	},
	"UpdateMessage": func(e *env, tx nodest.Tx, x fixture) error {
		m := message(x.conversation, "", "intruder")
		m.ID, m.Rev = x.message, 2
		return wantNotFound(e, tx.Chats.UpdateMessage(m))
	},
	"Path": func(e *env, tx nodest.Tx, x fixture) error {
		own := ownChat(e, tx)
		for _, c := range []string{own, x.conversation} {
			if _, _, err := tx.Chats.Path(c, x.message, "", 5); wantNotFound(e, err) != nil {
				return err
			}
			if _, _, err := tx.Chats.Path(c, "", x.message, 5); wantNotFound(e, err) != nil {
				return err
			}
		}
		return nil
	},
	"SetDeleted": func(e *env, tx nodest.Tx, x fixture) error {
		now := tx.Now()
		return wantNotFound(e, tx.Chats.SetDeleted(&now, &chat.Message{ID: x.message, ConversationID: x.conversation}))
	},
	"Below": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.Below(&chat.Message{ID: x.message, ConversationID: x.conversation}, 0)
		return wantNotFound(e, err)
	},
	"Children": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.Children(x.conversation, "")
		return wantNotFound(e, err)
	},
	"Revision": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.Revision(x.revision)
		return wantNotFound(e, err)
	},
	"Revisions": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.Revisions(x.message)
		return wantNotFound(e, err)
	},

	"StateAt": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.StateAt(x.conversation, 1)
		return wantNotFound(e, err)
	},
	"PathAt": func(e *env, tx nodest.Tx, x fixture) error {
		own := ownChat(e, tx)
		for _, c := range []string{own, x.conversation} {
			if _, _, err := tx.Chats.PathAt(c, 1, x.message, "", 5); wantNotFound(e, err) != nil {
				return err
			}
			if _, _, err := tx.Chats.PathAt(c, 1, "", x.message, 5); wantNotFound(e, err) != nil {
				return err
			}
		}
		return nil
	},
	"PathAtAfter": func(e *env, tx nodest.Tx, x fixture) error {
		own := ownChat(e, tx)
		for _, c := range []string{own, x.conversation} {
			if _, _, err := tx.Chats.PathAtAfter(c, 1, x.message, "", 5); wantNotFound(e, err) != nil {
				return err
			}
		}
		return nil
	},
	"MessagesAt": func(e *env, tx nodest.Tx, x fixture) error {
		own := ownChat(e, tx)
		items, err := tx.Chats.MessagesAt(own, 1, []string{x.message})
		if err != nil {
			return err
		}
		e.equal("foreign messages", len(items), 0)
		_, err = tx.Chats.MessagesAt(x.conversation, 1, []string{x.message})
		return wantNotFound(e, err)
	},
	"Rewind": func(e *env, tx nodest.Tx, x fixture) error {
		own := &chat.Conversation{ID: id()}
		if err := tx.Chats.InsertConversation(own); err != nil {
			return err
		}
		if _, _, err := tx.Chats.Rewind(own, 1, x.message); wantNotFound(e, err) != nil {
			return err
		}
		_, _, err := tx.Chats.Rewind(&chat.Conversation{ID: x.conversation, Version: 1}, 1, x.message)
		return wantNotFound(e, err)
	},
	"Rewinds": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.Rewinds(x.conversation)
		return wantNotFound(e, err)
	},
	"DeletedIn": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.DeletedIn(x.message)
		return wantNotFound(e, err)
	},
	"Born": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.Born(x.message)
		return wantNotFound(e, err)
	},
	"Count": func(e *env, tx nodest.Tx, x fixture) error {
		own := ownChat(e, tx)
		for _, c := range []string{own, x.conversation} {
			if _, err := tx.Chats.Count(c, x.message); wantNotFound(e, err) != nil {
				return err
			}
		}
		_, err := tx.Chats.Count(x.conversation, "")
		return wantNotFound(e, err)
	},
	"CountHidden": func(e *env, tx nodest.Tx, x fixture) error {
		own := ownChat(e, tx)
		for _, c := range []string{own, x.conversation} {
			if _, err := tx.Chats.CountHidden(c, x.message); wantNotFound(e, err) != nil {
				return err
			}
		}
		_, err := tx.Chats.CountHidden(x.conversation, "")
		return wantNotFound(e, err)
	},
	"InsertSave": func(e *env, tx nodest.Tx, x fixture) error {
		own := ownChat(e, tx)
		if err := wantNotFound(e, tx.Chats.InsertSave(&chat.Save{ID: id(), ConversationID: x.conversation})); err != nil {
			return err
		}
		return tx.Chats.InsertSave(&chat.Save{ID: x.save, ConversationID: own})
	},
	"Save": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.Save(x.save)
		return wantNotFound(e, err)
	},
	"DeleteSave": func(e *env, tx nodest.Tx, x fixture) error { return wantNotFound(e, tx.Chats.DeleteSave(x.save)) },
	"Saves": func(e *env, tx nodest.Tx, x fixture) error {
		_, _, err := tx.Chats.Saves(x.conversation, true, "", 5)
		return wantNotFound(e, err)
	},

	"CopyPath": func(e *env, tx nodest.Tx, x fixture) error {
		own, fork := &chat.Conversation{ID: id()}, &chat.Conversation{ID: id()}
		if err := errors.Join(tx.Chats.InsertConversation(own), tx.Chats.BeginLoad(fork)); err != nil {
			return err
		}
		for _, source := range []string{own.ID, x.conversation} {
			_, _, err := tx.Chats.CopyPath(chat.ForkSource{ConversationID: source, MessageID: x.message, Version: 9}, fork.ID, 5)
			if err := wantNotFound(e, err); err != nil {
				return err
			}
		}
		_, _, err := tx.Chats.CopyPath(chat.ForkSource{ConversationID: own.ID, MessageID: x.message, Version: 9}, x.loading, 5)
		return wantNotFound(e, err)
	},
	"CopyOf": nil, // only computes
	"Loading": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.Loading(x.loading)
		return wantNotFound(e, err)
	},
	"Tips": func(e *env, tx nodest.Tx, x fixture) error {
		_, _, err := tx.Chats.Tips(x.conversation, "", 5)
		return wantNotFound(e, err)
	},
	"PathAfter": func(e *env, tx nodest.Tx, x fixture) error {
		own := ownChat(e, tx)
		for _, c := range []string{own, x.conversation} {
			if _, _, err := tx.Chats.PathAfter(c, x.message, x.message, 5); wantNotFound(e, err) != nil {
				return err
			}
		}
		return nil
	},
	"OnPath": func(e *env, tx nodest.Tx, x fixture) error {
		own := ownChat(e, tx)
		for _, c := range []string{own, x.conversation} {
			if _, err := tx.Chats.OnPath(c, x.message, []string{x.message}); wantNotFound(e, err) != nil {
				return err
			}
		}
		return nil
	},
	"Leaf": func(e *env, tx nodest.Tx, x fixture) error {
		own := ownChat(e, tx)
		for _, c := range []string{own, x.conversation} {
			if _, err := tx.Chats.Leaf(c, x.message); wantNotFound(e, err) != nil {
				return err
			}
		}
		return nil
	},
	"Tree": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.Tree(x.conversation, 5)
		return wantNotFound(e, err)
	},
	"TextRanges": func(e *env, tx nodest.Tx, x fixture) error {
		for _, f := range []chat.TextFilter{{ConversationID: x.conversation}, {CharacterID: x.character}} {
			if _, err := tx.Chats.TextRanges(f); wantNotFound(e, err) != nil {
				return err
			}
		}
		ranges, err := tx.Chats.TextRanges(chat.TextFilter{})
		return wantEmpty(e, len(ranges) == 0, err)
	},
	"RangeWords": func(e *env, tx nodest.Tx, x fixture) error {
		words, err := tx.Chats.RangeWords(x.words())
		return wantEmpty(e, len(words) == 1 && words[0] == nil, err)
	},
	"RangeTexts": func(e *env, tx nodest.Tx, x fixture) error {
		n := 0
		err := tx.Chats.RangeTexts(x.words(), func(*chat.ShownText) { n++ })
		return wantEmpty(e, n == 0, err)
	},
	"MessagesByID": func(e *env, tx nodest.Tx, x fixture) error {
		items, err := tx.Chats.MessagesByID([]string{x.message})
		return wantEmpty(e, len(items) == 0, err)
	},
	"WordsDue": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.WordsDue(x.conversation)
		return wantNotFound(e, err)
	},
	"RangeRevisions": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Chats.RangeRevisions(x.words(), func(string, string) error { return nil }))
	},
	"PutWords": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Chats.PutWords(x.words(), []string{x.revision}, []byte("intruder")))
	},
	"DropWords": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Chats.DropWords(x.words()))
	},
	"AppChat": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := appKeys(tx).AppChat("app")
		return wantNotFound(e, err)
	},
	"PutAppChat": func(e *env, tx nodest.Tx, x fixture) error {
		if err := wantNotFound(e, appKeys(tx).PutAppChat("app", x.conversation)); err != nil {
			return err
		}
		own := ownChat(e, tx)
		return appKeys(tx).PutAppChat("app", own)
	},
	"AppCharacter": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := appKeys(tx).AppCharacter("app")
		return wantNotFound(e, err)
	},
	"PutAppCharacter": func(e *env, tx nodest.Tx, x fixture) error {
		if err := wantNotFound(e, appKeys(tx).PutAppCharacter("app", x.character)); err != nil {
			return err
		}
		return appKeys(tx).PutAppCharacter("app", ownCharacter(e, tx))
	},
	"Dump": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Chats.Dump(x.conversation, 0, 5)
		return wantNotFound(e, err)
	},
	"Line": func(e *env, tx nodest.Tx, x fixture) error {
		line, err := tx.Chats.Line(x.message)
		return wantEmpty(e, line == nil, err)
	},
	"FileLines": func(e *env, tx nodest.Tx, x fixture) error {
		found := 0
		err := tx.Chats.FileLines([]string{x.message}, func(string, json.RawMessage) error { found++; return nil })
		return wantEmpty(e, found == 0, err)
	},
	"FilesAt": func(e *env, tx nodest.Tx, x fixture) error {
		all, err := tx.Chats.FilesAt([]string{x.keptImage().Path})
		return wantEmpty(e, len(all) == 0, err)
	},
	"NearTexts": func(e *env, tx nodest.Tx, x fixture) error {
		tx.Chats.NearTexts()
		_, _, err := tx.Chats.Path(x.conversation, x.message, "", 5)
		return wantNotFound(e, err)
	},
	"BeginLoad": func(e *env, tx nodest.Tx, x fixture) error {
		return tx.Chats.BeginLoad(&chat.Conversation{ID: x.conversation})
	},
	"OpenLoad": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Chats.OpenLoad(chat.Load{ConversationID: x.conversation, Branch: 7}, 0))
	},
	"TouchLoad": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Chats.TouchLoad(chat.Load{ConversationID: x.conversation, Branch: noBranch}))
	},
	"CloseLoad": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Chats.CloseLoad(chat.Load{ConversationID: x.conversation, Branch: noBranch}))
	},
	"DropLoad": func(e *env, tx nodest.Tx, x fixture) error {
		left, err := tx.Chats.DropLoad(chat.Load{ConversationID: x.conversation, Branch: noBranch}, 5)
		return wantEmpty(e, !left, err)
	},
	"Load": func(e *env, tx nodest.Tx, x fixture) error {
		m := &chat.DumpedMessage{Message: message(x.conversation, "", "intruder")}
		return wantNotFound(e, tx.Chats.Load(x.conversation, []*chat.DumpedMessage{m}))
	},
	"FinishLoad": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.Chats.FinishLoad(&chat.Conversation{ID: x.conversation, Version: 2}, nil, nil))
	},

	"Enqueue": func(e *env, tx nodest.Tx, x fixture) error {
		return tx.Jobs.Enqueue(jobs.Spec{Kind: x.job.Kind, UserID: x.user, Subject: x.job.Subject})
	},
	"NoteJob": func(e *env, tx nodest.Tx, x fixture) error {
		return wantConflict(e, tx.Jobs.NoteJob(x.job, "intruder"))
	},
	"FinishJob":  func(e *env, tx nodest.Tx, x fixture) error { return wantConflict(e, tx.Jobs.FinishJob(x.job)) },
	"CancelJobs": func(e *env, tx nodest.Tx, x fixture) error { return tx.Jobs.CancelJobs(x.job.Subject) },
	"Job": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Jobs.Job(x.job.ID)
		return wantNotFound(e, err)
	},
	"Jobs": func(e *env, tx nodest.Tx, x fixture) error {
		for _, f := range []jobs.Filter{{}, {Subject: x.job.Subject}, {Kind: x.job.Kind, Open: true}} {
			items, _, err := tx.Jobs.Jobs(f, "", 5)
			if err := wantEmpty(e, len(items) == 0, err); err != nil {
				return err
			}
		}
		return nil
	},

	"InsertGeneration": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.InsertGeneration(&chat.Generation{ID: id(), ConversationID: x.conversation}))
	},
	"Generation": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Generation(x.generation)
		return wantNotFound(e, err)
	},
	"UpdateGeneration": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.UpdateGeneration(&chat.Generation{ID: x.generation, Writing: chat.Writing{Text: "intruder"}}))
	},
	"Running": func(e *env, tx nodest.Tx, x fixture) error {
		for _, c := range []string{"", x.conversation} {
			items, err := tx.Chats.Running(c)
			if err := wantEmpty(e, len(items) == 0, err); err != nil {
				return err
			}
		}
		return nil
	},
	"PutPrompt": func(e *env, tx nodest.Tx, x fixture) error {
		return wantNotFound(e, tx.PutPrompt(&nodest.StoredPrompt{ID: id(), ConversationID: x.conversation}))
	},
	"Prompt": func(e *env, tx nodest.Tx, x fixture) error {
		_, err := tx.Prompt(x.prompt)
		return wantNotFound(e, err)
	},
	"LastPrompt": func(e *env, tx nodest.Tx, x fixture) error {
		last, err := tx.LastPrompt(x.conversation)
		return wantEmpty(e, last == "", err)
	},
}

func wantEmpty(e *env, empty bool, err error) error {
	e.Helper()
	if !empty {
		e.Error("another user's rows were returned")
	}
	return err
}

func wantNotFound(e *env, err error) error {
	e.Helper()
	if !fault.Is(err, fault.NotFound) {
		e.Errorf("error is %v, want not_found", err)
	}
	return nil
}

// wantConflict: another user's job is treated like one that another process holds.
func wantConflict(e *env, err error) error {
	e.Helper()
	if !fault.Is(err, fault.Conflict) {
		e.Errorf("error is %v, want conflict", err)
	}
	return err
}

// addIntrusions adds those of a subject. A name that two subjects use would leave one method untried.
func addIntrusions(of map[string]func(e *env, tx nodest.Tx, x fixture) error) {
	for name, try := range of {
		if _, taken := intrusions[name]; taken {
			panic("two intrusions try " + name)
		}
		intrusions[name] = try
	}
}

// partsOf returns the interfaces of the transactions of all subjects, each once.
func partsOf() (parts []reflect.Type) {
	var add func(reflect.Type)
	add = func(tx reflect.Type) {
		if tx.Kind() == reflect.Interface && !slices.Contains(parts, tx) {
			parts = append(parts, tx)
		}
		if tx.Kind() == reflect.Struct {
			for field := range tx.Fields() {
				add(field.Type)
			}
		}
	}
	for _, tx := range []reflect.Type{reflect.TypeFor[nodest.Tx](), reflect.TypeFor[app.Tx](), reflect.TypeFor[websearch.Tx](),
		reflect.TypeFor[circle.Tx](), reflect.TypeFor[cognition.Tx](), reflect.TypeFor[dream.Tx](), reflect.TypeFor[attachment.Tx](), reflect.TypeFor[knowledge.Tx](), reflect.TypeFor[research.Tx](), reflect.TypeFor[tavern.Tx]()} {
		add(tx)
	}
	return parts
}

func TestEachMethodOfATransactionHasANameOfItsOwn(t *testing.T) {
	t.Parallel()
	in := map[string]reflect.Type{}
	for _, part := range partsOf() {
		if part.NumMethod() > 30 {
			t.Errorf("%s has %d methods", part, part.NumMethod())
		}
		for method := range part.Methods() {
			if other := in[method.Name]; other != nil {
				t.Errorf("%s is in %s and in %s", method.Name, other, part)
			}
			in[method.Name] = part
		}
	}
}

func TestAnotherUsersRowsAreNotFound(t *testing.T) {
	t.Parallel()
	for _, part := range partsOf() {
		for method := range part.Methods() {
			if _, ok := intrusions[method.Name]; !ok {
				t.Errorf("no intrusion tries %s of %s", method.Name, part)
			}
		}
	}
	onBothDatabases(t, func(e *env) {
		victim := fill(e, newUser(e))
		e.updateAs(victim.user, func(tx nodest.Tx) error {
			return tx.Chats.BeginLoad(&chat.Conversation{ID: victim.loading, CharacterID: victim.character, Title: "private"})
		})
		before := snapshot(e, victim.user)
		for name, try := range intrusions {
			if try == nil {
				continue
			}
			intruder := newUser(e)
			err := e.db.Update(context.Background(), intruder, func(tx nodest.Tx) error { return try(e, tx, victim) })
			if err != nil && !fault.Is(err, fault.Conflict) {
				e.Errorf("%s: %v", name, err)
			}
		}
		after := snapshot(e, victim.user)
		for table, rows := range before {
			e.equal("rows of "+table, after[table], rows)
		}
		g := &chat.Generation{ID: victim.generation, UserID: e.user, Lease: chat.Lease{LeaseOwner: "p"}, Writing: chat.Writing{Text: "intruder"}}
		e.code(fault.Conflict, e.db.Checkpoint(context.Background(), g, time.Minute))
		events, err := e.db.Events(context.Background(), victim.user, 0, 50)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("events of the other", len(events), 1)
		_, err = e.db.TakeTicket(context.Background(), "ws", []byte("x"), start)
		e.code(fault.NotFound, err)
	})
}

const pageURL = "https://private.test/"

// webPages returns the part of a transaction that stores pages of the web.
func webPages(tx nodest.Tx) websearch.PageTx { return store.Web(tx).PageTx }

// appKeys returns the part of a transaction that maps the app's keys to conversations.
func appKeys(tx nodest.Tx) app.KeyTx { return store.AppKeys(tx) }

// snapshot returns all of a user's rows as texts.
func snapshot(e *env, user string) map[string][]string {
	e.Helper()
	all := map[string][]string{}
	for table, columns := range tables(e.T, e.db) {
		if !slices.Contains(columns, "user_id") {
			continue
		}
		expr := ""
		for i, c := range columns {
			if i > 0 {
				expr += " || '|' || "
			}
			if c == "data" || c == "hash" || c == "body" || c == "sealed" || c == "vector" {
				expr += "COALESCE(CAST(LENGTH(CAST(" + c + " AS TEXT)) AS TEXT), '-')"
			} else {
				expr += "COALESCE(CAST(" + c + " AS TEXT), '-')"
			}
		}
		rows, err := store.Query[string](e.db, "SELECT "+expr+" FROM "+table+" WHERE user_id = ? ORDER BY 1", user)
		if err != nil {
			e.Fatal(err)
		}
		all[table] = rows
	}
	return all
}
