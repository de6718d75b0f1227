package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"nodest/internal/account"
	"nodest/internal/audit"
	"nodest/internal/fault"
	"nodest/nodest"
	"nodest/store"
)

// from returns a context of requests from an address.
func from(e *env, address string) context.Context {
	return audit.With(e.Context(), func() audit.Origin {
		return audit.Origin{Address: address, Agent: "curl\n/8" + strings.Repeat("x", 300)}
	})
}

// audited returns the newest entries of the audit log.
func audited(e *env, f audit.Filter) []*audit.Record {
	e.Helper()
	items, _, err := e.db.AuditPage(e.Context(), f, "", 200)
	if err != nil {
		e.Fatal(err)
	}
	return items
}

func TestAnEntryIsStoredWithWhatItTells(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		user := newUser(e)
		token := &account.Token{ID: id(), UserID: user, Hash: []byte(id())}
		note := &audit.Entry{Action: audit.TokenCreated, ActorID: user, SubjectID: user, Object: token.ID}
		if _, err := e.db.InsertToken(from(e, "1.2.3.4"), token, note); err != nil {
			e.Fatal(err)
		}
		got := audited(e, audit.Filter{UserID: user})
		if len(got) != 1 || got[0].Entry != *note || got[0].Address != "1.2.3.4" || got[0].ActorName == "" || got[0].Count != 1 {
			e.Fatalf("%+v", got)
		}
		if agent := got[0].Agent; len(agent) != 199 || agent[:6] != "curl/8" {
			e.Errorf("agent %q of %d bytes", agent, len(agent))
		}
		// The same token again is refused, and so is the entry.
		if _, err := e.db.InsertToken(from(e, "1.2.3.4"), token, note); err == nil {
			e.Error("a token was stored twice")
		}
		if _, err := e.db.DeleteToken(e.Context(), user, id(), note); !fault.Is(err, fault.NotFound) {
			e.Error(err)
		}
		failed := fmt.Errorf("later")
		if err := e.db.Update(e.Context(), user, func(tx nodest.Tx) error {
			if err := tx.Audit(audit.Entry{Action: audit.Exported}); err != nil {
				return err
			}
			return failed
		}); err != failed { //nolint:errorlint // it comes back as it is
			e.Error(err)
		}
		if got := audited(e, audit.Filter{}); len(got) != 1 {
			e.Errorf("%d entries, want 1: %+v", len(got), got)
		}
	})
}

func TestFailedAttemptsAreCountedInOneRow(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		user := newUser(e)
		fail := func(address, subject string) {
			e.Helper()
			if err := e.db.Audit(from(e, address), &audit.Entry{Action: audit.SignInFailed, SubjectID: subject, Detail: "password"}); err != nil {
				e.Fatal(err)
			}
		}
		for range 5 {
			fail("1.2.3.4", user)
		}
		fail("1.2.3.4", "")
		fail("5.6.7.8", user)
		rows := audited(e, audit.Filter{Action: audit.SignInFailed})
		total := int64(0)
		for _, r := range rows {
			total += r.Count
		}
		if len(rows) != 3 || total != 7 {
			e.Errorf("%d rows for %d attempts, want 3 for 7", len(rows), total)
		}
		for i := range store.MostAudited + 50 {
			fail(fmt.Sprintf("10.0.%d.%d", i/250, i%250), "")
		}
		count, err := store.Query[int64](e.db, "SELECT COUNT(*) FROM audit_log")
		if err != nil || count[0] != store.MostAudited+1 {
			e.Errorf("%v rows, want %d; %v", count, store.MostAudited+1, err)
		}
		folded, err := store.Query[int64](e.db, "SELECT entries FROM audit_log WHERE address = ''")
		if err != nil {
			e.Fatal(err)
		}
		e.equal("attempts beyond", folded, []int64{53}) // three rows were there before
	})
}

func TestTheAuditLogIsReadInPagesAndByUser(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ann, bob := newUser(e), newUser(e)
		for range 3 {
			for _, note := range []*audit.Entry{
				{Action: audit.SignedIn, ActorID: ann, SubjectID: ann}, {Action: audit.LimitsChanged, ActorID: ann, SubjectID: bob}, {Action: audit.SignedIn, ActorID: bob, SubjectID: bob},
			} {
				if err := e.db.Audit(e.Context(), note); err != nil {
					e.Fatal(err)
				}
			}
		}
		for _, c := range []struct {
			filter audit.Filter
			want   int
		}{
			{audit.Filter{}, 9}, {audit.Filter{UserID: ann}, 6}, {audit.Filter{UserID: bob}, 6}, {audit.Filter{Action: audit.SignedIn}, 6},
			{audit.Filter{UserID: bob, Action: audit.SignedIn}, 3}, {audit.Filter{UserID: id()}, 0},
		} {
			seen, cursor := map[string]bool{}, ""
			for {
				items, next, err := e.db.AuditPage(e.Context(), c.filter, cursor, 2)
				if err != nil {
					e.Fatal(err)
				}
				for _, r := range items {
					seen[r.ID] = true
				}
				if cursor = next; cursor == "" {
					break
				}
			}
			if len(seen) != c.want {
				e.Errorf("%+v: %d entries, want %d", c.filter, len(seen), c.want)
			}
		}
	})
}

func TestTheAuditLogOutlivesItsUsersButNotItsTime(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		note := &audit.Entry{Action: audit.UserDeleted, SubjectID: e.user}
		if err := e.db.DeleteUser(e.Context(), e.user, func(*account.User, []*account.User) error { return nil }, nil, note); err != nil {
			e.Fatal(err)
		}
		e.clock.advance(179 * day)
		e.maintain()
		if got := audited(e, audit.Filter{UserID: e.user}); len(got) != 1 || got[0].SubjectID != e.user || got[0].SubjectName != "" {
			e.Fatalf("%+v", got)
		}
		e.clock.advance(2 * day)
		e.equal("removed entries", e.maintain()["audit"], 1)
		e.equal("entries", len(audited(e, audit.Filter{})), 0)
	})
}
