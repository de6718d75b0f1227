package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/stream"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

func TestSettingsHaveVersions(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		e.view(func(tx nodest.Tx) error {
			s, err := tx.Characters.Settings()
			e.equal("settings", *s, character.UserSettings{})
			return err
		})
		s := &character.UserSettings{PersonaID: "p", UserName: "Ada <&>", Version: 1}
		s.Model = "m"
		e.refused(fault.PreconditionFailed, func(tx nodest.Tx) error { return tx.Characters.PutSettings(&character.UserSettings{Version: 2}) })
		e.update(func(tx nodest.Tx) error { return tx.Characters.PutSettings(s) })
		e.refused(fault.PreconditionFailed, func(tx nodest.Tx) error { return tx.Characters.PutSettings(s) })
		s.Version, s.GlobalRegexEnabled, s.CustomSetting = 2, true, []byte(`{ }`)
		e.update(func(tx nodest.Tx) error { return tx.Characters.PutSettings(s) })
		e.view(func(tx nodest.Tx) error {
			got, err := tx.Characters.Settings()
			e.equal("settings", got, s)
			return err
		})
	})
}

func TestAListOfUsageHasTheNewestDays(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		for range 2 {
			e.update(func(tx nodest.Tx) error {
				for n := range 2600 {
					if err := tx.AddUsage(nodest.UsageRow{Provider: "p", Model: fmt.Sprint(n), Requests: 1}); err != nil {
						return err
					}
				}
				return nil
			})
			e.clock.advance(24 * time.Hour)
		}
		e.view(func(tx nodest.Tx) error {
			got, err := tx.Usage("2026-03-14", "2026-03-15")
			if len(got) != 5000 || got[2399].Day != "2026-03-14" || got[2400].Day != "2026-03-15" {
				e.Errorf("%d rows", len(got))
			}
			return err
		})
	})
}

func TestUsageAddsUp(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for range 5 {
					for _, model := range []string{"b", "a"} {
						err := e.db.Update(context.Background(), e.user, func(tx nodest.Tx) error {
							for range 2 {
								if err := tx.AddUsage(nodest.UsageRow{Provider: "p", Model: model, Requests: 1, PromptTokens: 10, CostUSD: 0.25}); err != nil {
									return err
								}
							}
							return tx.Emit(&stream.Event{Type: "a"})
						})
						if err != nil {
							e.Error(err)
						}
					}
				}
			})
		}
		group.Wait()
		e.clock.advance(24 * time.Hour)
		e.update(func(tx nodest.Tx) error {
			if err := tx.AddUsage(nodest.UsageRow{Provider: "p", Model: "a", Requests: 1, CompletionTokens: 7}); err != nil {
				return err
			}
			got, err := tx.Usage("2026-03-14", "2026-03-15")
			e.equal("usage", got, []nodest.UsageRow{
				{Day: "2026-03-14", Provider: "p", Model: "a", Requests: 40, PromptTokens: 400, CostUSD: 10},
				{Day: "2026-03-14", Provider: "p", Model: "b", Requests: 40, PromptTokens: 400, CostUSD: 10},
				{Day: "2026-03-15", Provider: "p", Model: "a", Requests: 1, CompletionTokens: 7},
			})
			return err
		})
		e.view(func(tx nodest.Tx) error {
			got, err := tx.Usage("2026-03-15", "2026-03-15")
			e.equal("usage of a day", len(got), 1)
			return err
		})
		other := newUser(e)
		e.updateAs(other, func(tx nodest.Tx) error {
			return tx.AddUsage(nodest.UsageRow{Provider: "q", Model: "c", Requests: 2, CompletionTokens: 5, CostUSD: 0.5})
		})
		for from, want := range map[string]map[string]nodest.UserUsage{
			"2026-03-14": {
				e.user: {UserID: e.user, Requests: 81, PromptTokens: 800, CompletionTokens: 7, CostUSD: 20},
				other:  {UserID: other, Requests: 2, CompletionTokens: 5, CostUSD: 0.5},
			},
			"2026-03-16": {},
		} {
			byUser, next := map[string]nodest.UserUsage{}, ""
			for more := true; more; more = next != "" { // pages of one user
				var got []nodest.UserUsage
				var err error
				if got, next, err = e.db.UsageByUser(e.Context(), from, "2026-03-16", next, 1); err != nil {
					e.Fatal(err)
				}
				for _, u := range got {
					byUser[u.UserID] = u
				}
			}
			e.equal("usage by user since "+from, byUser, want)
		}
	})
}

// device returns the seq and the read marks of a device.
func (e *env) device(name string) (got []string) {
	e.Helper()
	rows, err := store.Query[struct {
		Seq       int64
		ReadMarks string
	}](e.db, "SELECT seq, read_marks FROM devices WHERE user_id = ? AND device = ?", e.user, name)
	if err != nil {
		e.Fatal(err)
	}
	for _, r := range rows {
		got = append(got, fmt.Sprint(r.Seq, " ", r.ReadMarks))
	}
	return got
}

func TestAnAckOnlyMovesForward(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ack := func(seq int64, read map[string]string) {
			e.update(func(tx nodest.Tx) error { return tx.Ack("phone", seq, read) })
		}
		ack(5, map[string]string{"c1": "m1", "c2": "m2"})
		ack(9, nil)
		ack(7, map[string]string{"c1": "m3"})
		e.equal("device", e.device("phone"), []string{`9 {"c1":"m3","c2":"m2"}`})
	})
}

// Concurrent first acknowledgements of a device keep each other's read marks.
func TestConcurrentFirstAcksKeepAllReadMarks(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		const writers = 6
		for round := range 3 {
			device := fmt.Sprintf("phone-%d", round)
			var open, group sync.WaitGroup
			open.Add(writers)
			for w := range writers {
				group.Go(func() {
					var once sync.Once
					err := e.db.Update(context.Background(), e.user, func(tx nodest.Tx) error {
						if store.OnPostgres(e.db) { // all transactions are open before one acknowledges
							once.Do(func() { open.Done(); open.Wait() })
						}
						chat := fmt.Sprintf("c%d", w)
						return tx.Ack(device, int64(10+w), map[string]string{chat: "m"})
					})
					if err != nil {
						e.Error(err)
					}
				})
			}
			group.Wait()
			e.equal("device", e.device(device), []string{`15 {"c0":"m","c1":"m","c2":"m","c3":"m","c4":"m","c5":"m"}`})
		}
		if store.OnPostgres(e.db) {
			e.equal("deadlocks", store.Deadlocks(e.db), 0)
		}
	})
}

func TestUsersAreStoredAndFoundByName(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ctx := context.Background()
		ada := &account.User{
			ID: id(), Username: "Ada 茶", Role: account.RoleOwner, PasswordHash: "$argon2id$x",
			Limits: account.Limits{TokensPerDay: 5, Generations: 2}, CreatedAt: start,
		}
		if err := e.db.InsertUser(ctx, ada); err != nil {
			e.Fatal(err)
		}
		e.code(fault.Conflict, e.db.InsertUser(ctx, &account.User{ID: id(), Username: "ADA 茶"}))
		got, err := e.db.UserByName(ctx, "aDA 茶")
		if err != nil {
			e.Fatal(err)
		}
		e.equal("user", got, ada)
		ada.Role, ada.Limits.Generations = account.RoleMember, 3
		changed, err := e.db.UpdateUser(ctx, ada.ID, func(u *account.User, all []*account.User) error {
			e.equal("users", len(all), 2)
			u.Role, u.Limits.Generations = account.RoleMember, 3
			return nil
		})
		if err != nil {
			e.Fatal(err)
		}
		e.equal("changed", changed, ada)
		refuse := func(u *account.User, _ []*account.User) error {
			u.Role = account.RoleOwner
			return fault.New(fault.Conflict, "no")
		}
		_, err = e.db.UpdateUser(ctx, ada.ID, refuse)
		e.code(fault.Conflict, err)
		err = e.db.DeleteUser(ctx, ada.ID, refuse, nil)
		e.code(fault.Conflict, err)
		got, err = e.db.User(ctx, ada.ID)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("user", got, ada)
		err = e.db.View(ctx, ada.ID, func(tx nodest.Tx) error {
			l, err := tx.Limits()
			e.equal("limits", l, nodest.UserLimits{TokensPerDay: 5, Generations: 3})
			return err
		})
		if err != nil {
			e.Fatal(err)
		}
		users, err := e.db.Users(ctx)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("users by name", []string{users[0].ID, users[1].ID}, []string{ada.ID, e.user})
		_, err = e.db.User(ctx, id())
		e.code(fault.NotFound, err)
		_, err = e.db.UserByName(ctx, "nobody\x00")
		e.code(fault.NotFound, err)
		_, err = e.db.UpdateUser(ctx, id(), anyUser)
		e.code(fault.NotFound, err)
		err = e.db.DeleteUser(ctx, id(), anyUser, nil)
		e.code(fault.NotFound, err)
		_, err = e.db.InsertToken(ctx, &account.Token{ID: id(), UserID: id(), Hash: []byte("h")})
		e.code(fault.NotFound, err)
	})
}

func anyUser(*account.User, []*account.User) error { return nil }

// A condition on all users holds also when several are changed and deleted at once.
func TestChangesOfUsersExcludeEachOther(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ctx := context.Background()
		ids := []string{e.user}
		for range 7 {
			ids = append(ids, newUser(e))
		}
		var group sync.WaitGroup
		for i, id := range ids {
			group.Go(func() {
				_, _ = e.db.UpdateUser(ctx, id, func(u *account.User, _ []*account.User) error { u.Limits.Generations += i; return nil })
			})
			group.Go(func() {
				_, _ = e.db.UpdateUser(ctx, id, func(u *account.User, _ []*account.User) error {
					u.Limits.TokensPerDay, u.Role = 9, account.RoleOwner
					return nil
				})
			})
		}
		group.Wait()
		users, err := e.db.Users(ctx)
		if err != nil {
			e.Fatal(err)
		}
		generations := 0
		for _, u := range users {
			e.equal("a change beside another", u.Limits.TokensPerDay, 9)
			generations += u.Limits.Generations
		}
		e.equal("the other changes", generations, 0+1+2+3+4+5+6+7)
		for _, id := range ids {
			group.Go(func() {
				_ = e.db.DeleteUser(ctx, id, func(_ *account.User, all []*account.User) error {
					owners := 0
					for _, u := range all {
						if u.Role == account.RoleOwner {
							owners++
						}
					}
					if owners == 1 {
						return fault.New(fault.Conflict, "the last owner")
					}
					return nil
				}, nil)
			})
		}
		group.Wait()
		if users, err = e.db.Users(ctx); err != nil || len(users) != 1 {
			e.Errorf("%d users are left, %v", len(users), err)
		}
	})
}

func TestOnlyOneFirstUserIsStored(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ctx := context.Background()
		if err := e.db.DeleteUser(ctx, e.user, anyUser, nil); err != nil {
			e.Fatal(err)
		}
		var stored atomic.Int64
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				ok, err := e.db.InsertFirstUser(ctx, &account.User{ID: id(), Username: fmt.Sprint("u", i)})
				if err != nil {
					e.Error(err)
				}
				if ok {
					stored.Add(1)
				}
			})
		}
		group.Wait()
		e.equal("users stored", stored.Load(), 1)
	})
}

// A token that is being removed leaves no token that was made with it, of whatever user and
// also by way of others.
func TestATokenEndsWithAllThatWereMadeWithIt(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ctx := context.Background()
		other := newUser(e)
		must := func(err error) {
			if err != nil {
				e.Fatal(err)
			}
		}
		made := func(user, parent string) (*account.Token, error) {
			t := &account.Token{ID: id(), UserID: user, Hash: []byte(id()), ParentID: parent, CreatedAt: start}
			_, err := e.db.InsertToken(ctx, t)
			return t, err
		}
		root, err := made(e.user, "")
		must(err)
		child, err := made(other, root.ID)
		must(err)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for err := error(nil); err == nil; {
					if _, err = made(e.user, child.ID); err != nil {
						e.code(fault.NotFound, err)
					}
				}
			})
		}
		deleted, err := e.db.DeleteToken(ctx, e.user, root.ID)
		must(err)
		e.equal("the first and the other user's", len(deleted) >= 2, true)
		group.Wait()
		for _, user := range []string{e.user, other} {
			left, err := e.db.Tokens(ctx, user)
			must(err)
			e.equal("tokens that are left", len(left), 0)
		}
	})
}

// A session that makes room for another one is not the one that the other is made with: the other would
// outlive its maker.
func TestANewSessionDoesNotEndItsMaker(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ctx := context.Background()
		insert := func(parent string) (*account.Token, []*account.Token) {
			e.clock.advance(time.Second)
			token := &account.Token{ID: id(), UserID: e.user, Hash: []byte(id()), Session: true, ParentID: parent, CreatedAt: e.clock.now()}
			ended, err := e.db.InsertToken(ctx, token)
			if err != nil {
				e.Fatal(err)
			}
			return token, ended
		}
		root, _ := insert("")
		maker, _ := insert(root.ID)
		oldest, _ := insert("")
		for range account.MaxTokens - 3 {
			insert("")
		}
		_, ended := insert(maker.ID)
		if len(ended) != 1 || ended[0].ID != oldest.ID {
			e.Fatalf("ended %v, want the oldest session that did not make the new one", ended)
		}
		ended, err := e.db.DeleteToken(ctx, e.user, root.ID)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("what ends with the first one", len(ended), 3)
	})
}

func TestTokensAndTickets(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ctx := context.Background()
		over := start.Add(time.Hour)
		want := &account.Token{ID: id(), UserID: e.user, Name: "phone", Hash: []byte{0, 1, 0xff}, Session: true, CreatedAt: start, ExpiresAt: &over}
		if _, err := e.db.InsertToken(ctx, want); err != nil {
			e.Fatal(err)
		}
		if _, err := e.db.InsertToken(ctx, &account.Token{ID: id(), UserID: e.user, Hash: []byte{2}, CreatedAt: over}); err != nil {
			e.Fatal(err)
		}
		if err := e.db.TouchToken(ctx, want.UserID, want.ID, start.Add(time.Minute)); err != nil {
			e.Fatal(err)
		}
		got, user, err := e.db.TokenByHash(ctx, want.Hash)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("user", user.ID, e.user)
		e.equal("used and over", []time.Time{*got.LastUsedAt, *got.ExpiresAt}, []time.Time{start.Add(time.Minute), over})
		got.LastUsedAt, got.ExpiresAt, want.ExpiresAt = nil, nil, nil
		e.equal("token", got, want)
		all, err := e.db.Tokens(ctx, e.user)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("tokens, newest first", []any{len(all), all[1].ID}, []any{2, want.ID})
		first, next, err := e.db.TokenPage(ctx, e.user, "", 1)
		if err != nil {
			e.Fatal(err)
		}
		second, end, err := e.db.TokenPage(ctx, e.user, next, 1)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("pages of tokens", []any{len(first), first[0].ID, len(second), second[0].ID, end}, []any{1, all[0].ID, 1, want.ID, ""})
		_, err = e.db.DeleteToken(ctx, id(), want.ID)
		e.code(fault.NotFound, err)
		if _, err := e.db.DeleteToken(ctx, e.user, want.ID); err != nil {
			e.Fatal(err)
		}
		_, _, err = e.db.TokenByHash(ctx, want.Hash)
		e.code(fault.NotFound, err)
		_, _, err = e.db.TokenByHash(ctx, nil)
		e.code(fault.NotFound, err)

		ticket := &account.Ticket{Hash: []byte{7}, Purpose: "ws", UserID: e.user, ExpiresAt: over}
		if err := e.db.InsertTicket(ctx, ticket); err != nil {
			e.Fatal(err)
		}
		_, err = e.db.TakeTicket(ctx, "signin", ticket.Hash, start)
		e.code(fault.NotFound, err)
		read, err := e.db.Ticket(ctx, "ws", ticket.Hash, start)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("a ticket that is not taken", read, ticket)
		_, err = e.db.Ticket(ctx, "ws", ticket.Hash, over)
		e.code(fault.NotFound, err)
		var taken atomic.Int64
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				got, err := e.db.TakeTicket(ctx, "ws", ticket.Hash, start)
				if err == nil {
					e.equal("ticket", got, ticket)
					taken.Add(1)
				} else if !fault.Is(err, fault.NotFound) {
					e.Error(err)
				}
			})
		}
		group.Wait()
		e.equal("times taken", taken.Load(), 1)
		if err := e.db.InsertTicket(ctx, ticket); err != nil {
			e.Fatal(err)
		}
		_, err = e.db.TakeTicket(ctx, "ws", ticket.Hash, over)
		e.code(fault.NotFound, err)
	})
}

// Rows that signing in and reading leave behind are bounded: the oldest goes, but a token that somebody made
// on purpose is not lost to another one.
func TestTokensTicketsAndDevicesAreBounded(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ctx := context.Background()
		insert := func(session bool, expires *time.Time) (string, []string, error) {
			e.clock.advance(time.Second)
			token := &account.Token{ID: id(), UserID: e.user, Hash: []byte(id()), Session: session, CreatedAt: e.clock.now(), ExpiresAt: expires}
			gone, err := e.db.InsertToken(ctx, token)
			var ended []string
			for _, t := range gone {
				ended = append(ended, t.ID)
			}
			return token.ID, ended, err
		}
		var sessions []string
		soon := e.clock.now().Add(time.Hour)
		for i := range account.MaxTokens {
			expires := &soon
			if i > 0 {
				expires = nil
			}
			session, ended, err := insert(true, nil)
			if err != nil || ended != nil {
				e.Fatal(ended, err)
			}
			sessions = append(sessions, session)
			if _, _, err := insert(false, expires); err != nil {
				e.Fatal(err)
			}
			e.update(func(tx nodest.Tx) error { return tx.Ack(fmt.Sprint("device ", i), 1, nil) })
			if err := e.db.InsertTicket(ctx, &account.Ticket{Hash: []byte(id()), Purpose: "ws", UserID: e.user, ExpiresAt: e.clock.now()}); err != nil {
				e.Fatal(err)
			}
		}
		if err := e.db.TouchToken(ctx, e.user, sessions[0], e.clock.now()); err != nil {
			e.Fatal(err)
		}
		_, ended, err := insert(true, nil)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("what a further session ends", ended, sessions[1:2])
		// The next ones to go are those that this one is made with.
		e.update(func(tx nodest.Tx) error {
			return store.Exec(tx, "UPDATE tokens SET parent_id = ? WHERE user_id = ? AND id = ?", sessions[2], e.user, sessions[3])
		})
		e.clock.advance(time.Second)
		child := &account.Token{ID: id(), UserID: e.user, Hash: []byte(id()), Session: true, CreatedAt: e.clock.now(), ParentID: sessions[3]}
		gone, err := e.db.InsertToken(ctx, child)
		if err != nil || len(gone) != 1 {
			e.Fatal(len(gone), err)
		}
		e.equal("what a session of a session ends", gone[0].ID, sessions[4])
		e.update(func(tx nodest.Tx) error { // each is made with another
			return store.Exec(tx, "UPDATE tokens SET parent_id = (SELECT p.id FROM tokens p WHERE p.is_session AND p.id < tokens.id ORDER BY p.id DESC LIMIT 1) WHERE is_session")
		})
		last, err := store.Query[string](e.db, "SELECT id FROM tokens WHERE is_session ORDER BY id DESC LIMIT 1")
		if err != nil {
			e.Fatal(err)
		}
		_, err = e.db.InsertToken(ctx, &account.Token{ID: id(), UserID: e.user, Hash: []byte(id()), Session: true, CreatedAt: e.clock.now(), ParentID: last[0]})
		e.code(fault.QuotaExceeded, err)
		_, _, err = insert(false, nil)
		e.code(fault.QuotaExceeded, err)
		e.clock.advance(time.Hour)
		if _, _, err := insert(false, nil); err != nil {
			e.Errorf("refused although one has expired: %v", err)
		}
		e.update(func(tx nodest.Tx) error { return tx.Ack("one more", 1, nil) })
		devices, err := store.Query[string](e.db, "SELECT device FROM devices WHERE user_id = ?", e.user)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("devices, the first one, the new one", []any{len(devices), slices.Contains(devices, "device 0"), slices.Contains(devices, "one more")}, []any{200, false, true})
		tickets, err := store.Query[int64](e.db, "SELECT COUNT(*) FROM tickets WHERE user_id = ?", e.user)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("tickets", tickets, []int64{account.MaxTickets})
	})
}

func TestProviderKeys(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ctx := context.Background()
		for _, k := range []account.SealedKey{{Provider: "openai", Sealed: []byte{1}}, {Provider: "gemini", Sealed: []byte{2}}, {Provider: "openai", Sealed: []byte{3, 0}}} {
			k.UpdatedAt = start
			if err := e.db.PutProviderKey(ctx, e.user, &k); err != nil {
				e.Fatal(err)
			}
		}
		keys, err := e.db.ProviderKeys(ctx, e.user)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("keys", []any{len(keys), *keys[0], *keys[1]}, []any{2,
			account.SealedKey{Provider: "gemini", Sealed: []byte{2}, UpdatedAt: start},
			account.SealedKey{Provider: "openai", Sealed: []byte{3, 0}, UpdatedAt: start}})
		if err := e.db.DeleteProviderKey(ctx, e.user, "openai"); err != nil {
			e.Fatal(err)
		}
		e.code(fault.NotFound, e.db.DeleteProviderKey(ctx, e.user, "openai"))
	})
}

func TestNothingIsLeftOfADeletedUser(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ctx := context.Background()
		kept := fill(e, e.user)
		gone := newUser(e)
		fill(e, gone)
		if err := e.db.DeleteUser(ctx, gone, anyUser, nil); err != nil {
			e.Fatal(err)
		}
		for table, n := range count(e, gone) {
			if n != 0 {
				e.Errorf("%d rows are left in %s", n, table)
			}
		}
		for table, columns := range tables(e.T, e.db) { // such as members of shared knowledge bases
			for _, column := range columns {
				if column != "id" && !strings.HasSuffix(column, "_id") {
					continue
				}
				n, err := store.Query[int64](e.db, "SELECT COUNT(*) FROM "+table+" WHERE "+column+" = ?", gone)
				if err != nil || n[0] != 0 {
					e.Errorf("%d rows of %s name the user as %s: %v", n, table, column, err)
				}
			}
		}
		for table, n := range count(e, e.user) {
			if n == 0 {
				e.Errorf("the other user's rows in %s are missing, or the test inserts none", table)
			}
		}
		orphans, err := store.Query[int64](e.db, "SELECT COUNT(*) FROM revisions WHERE message_id <> ?", kept.message)
		if err != nil {
			e.Fatal(err)
		}
		e.equal("texts of others", orphans, []int64{0})
		err = e.db.Update(ctx, gone, func(tx nodest.Tx) error { return tx.Chats.InsertConversation(&chat.Conversation{ID: id()}) })
		e.code(fault.NotFound, err)
		err = e.db.Update(ctx, gone, func(tx nodest.Tx) error { return tx.Emit(&stream.Event{Type: "a"}) })
		e.code(fault.NotFound, err)
	})
}

// A table that is left to the foreign keys is emptied in one transaction, while others wait. Only a few
// rows of a user are in the tables that are named here, or as many as of another one that is not.
func TestWhatADeletedUserHadGoesInSmallTransactions(t *testing.T) {
	t.Parallel()
	few := strings.Fields(`users user_variables streams settings quotas tokens tickets devices provider_keys usage_days loads app_characters app_chats
		avatars attachments circle_images circle_states circle_spends circle_plans circle_actions memory_scopes memory_readings
		memory_segments resource_bindings save_resources rewinds web_hosts knowledge_bases knowledge_base_files knowledge_grants
		knowledge_spaces character_files character_bases`)
	for _, table := range query(t, storetest.Open(t), "SELECT t.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c WHERE t.type = 'table' AND c.name = 'user_id'") {
		if !slices.Contains(few, table) && !slices.Contains(store.TablesOfUsers(), table) {
			t.Errorf("the rows of %s are left to the foreign keys", table)
		}
	}
}

// A table that is left to the foreign keys is emptied in one transaction, while others wait.
func TestADeletedUsersDocumentsGoInSmallTransactions(t *testing.T) {
	t.Parallel()
	for _, table := range store.TablesOfEditions() {
		if !slices.Contains(store.TablesOfUsers(), table) {
			t.Errorf("the rows of %s are left to the foreign keys", table)
		}
	}
}
