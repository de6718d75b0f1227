package store_test

import (
	"errors"
	"fmt"
	"testing"

	"nodest/internal/account"
	"nodest/internal/audit"
	"nodest/internal/fault"
)

func TestModelServersBelongToNobody(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		put := func(s account.ModelServer, moved bool) {
			e.Helper()
			s.UpdatedAt = e.db.Now()
			change := func(*account.ModelServer) (bool, error) { return moved, nil }
			if err := e.db.PutModelServer(e.Context(), &s, change, &audit.Entry{Action: audit.ServerAdded, Object: s.Name}); err != nil {
				e.Fatal(err)
			}
		}
		servers := func() (all []string) {
			e.Helper()
			list, err := e.db.ModelServers(e.Context())
			if err != nil {
				e.Fatal(err)
			}
			for _, s := range list {
				all = append(all, fmt.Sprintf("%s %s %s %v", s.Name, s.BaseURL, s.Model, s.Sealed))
			}
			return all
		}
		other := newUser(e)
		key := func(user, provider string) {
			e.Helper()
			if err := e.db.PutProviderKey(e.Context(), user, &account.SealedKey{Provider: provider, Sealed: []byte{1}}); err != nil {
				e.Fatal(err)
			}
		}
		keys := func() (n int) {
			e.Helper()
			for _, user := range []string{e.user, other} {
				list, err := e.db.ProviderKeys(e.Context(), user)
				if err != nil {
					e.Fatal(err)
				}
				n += len(list)
			}
			return n
		}
		put(account.ModelServer{Name: "vllm", BaseURL: "http://a"}, true)
		put(account.ModelServer{Name: "ollama", BaseURL: "http://b", Model: "m", Sealed: []byte{7, 0}}, true)
		e.equal("stored", servers(), []string{"ollama http://b m [7 0]", "vllm http://a  []"})

		key(e.user, "ollama")
		key(other, "ollama")
		key(other, "vllm")
		put(account.ModelServer{Name: "ollama", BaseURL: "http://b/v1"}, false)
		e.equal("changed", servers(), []string{"ollama http://b/v1  []", "vllm http://a  []"})
		e.equal("keys of a server that stays", keys(), 3)
		put(account.ModelServer{Name: "ollama", BaseURL: "http://c"}, true)
		e.equal("keys of a server that moved", keys(), 1)

		failed := errors.New("refused")
		err := e.db.PutModelServer(e.Context(), &account.ModelServer{Name: "vllm"}, func(before *account.ModelServer) (bool, error) {
			e.equal("before", before.BaseURL, "http://a")
			return false, failed
		}, &audit.Entry{Action: audit.ServerChanged})
		if !errors.Is(err, failed) {
			e.Errorf("%v", err)
		}
		if err := e.db.DeleteUser(e.Context(), e.user, func(*account.User, []*account.User) error { return nil }, func([]*account.Token) {}); err != nil {
			e.Fatal(err)
		}
		e.equal("after a user is gone", len(servers()), 2)
		if err := e.db.DeleteModelServer(e.Context(), "vllm", &audit.Entry{Action: audit.ServerRemoved}); err != nil {
			e.Fatal(err)
		}
		e.equal("keys of a server that is gone", keys(), 0)
		if err := e.db.DeleteModelServer(e.Context(), "vllm", &audit.Entry{Action: audit.ServerRemoved}); !fault.Is(err, fault.NotFound) {
			e.Errorf("%v", err)
		}
		e.equal("noted", len(audited(e, audit.Filter{Action: audit.ServerAdded})), 4)
		e.equal("not noted", len(audited(e, audit.Filter{Action: audit.ServerChanged})), 0)
		e.equal("noted once", len(audited(e, audit.Filter{Action: audit.ServerRemoved})), 1)
	})
}
