package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"

	"github.com/google/uuid"

	"nodest/account"
	"nodest/chat"
	"nodest/nodest"
	"nodest/store"
)

// guest is a user of a measured server.
type guest struct {
	id, token    string
	conversation string
}

// guests makes a data folder with n users, each with a token. The first one is
// the owner.
func guests(ctx context.Context, dir string, n int) ([]*guest, error) {
	db, err := store.Open(ctx, store.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	secret, err := account.Secret(dir, "")
	if err != nil {
		return nil, err
	}
	accounts, err := account.New(db, secret, account.Options{})
	if err != nil {
		return nil, err
	}
	list := make([]*guest, n)
	err = each(n, 64, func(i int) error {
		u := &account.User{ID: uuid.Must(uuid.NewV7()).String(), Username: fmt.Sprintf("guest-%d", i), Role: account.RoleMember}
		if i == 0 {
			u.Role = account.RoleOwner
		}
		if err := db.InsertUser(ctx, u); err != nil {
			return err
		}
		token, _, err := accounts.CreateToken(ctx, u.ID, "bench", 0)
		list[i] = &guest{id: u.ID, token: token}
		return err
	})
	return list, err
}

// fill appends n messages to a conversation of a server that does not run, and
// returns their ids.
func fill(ctx context.Context, dir string, g *guest, conversation string, n int) ([]string, error) {
	db, err := store.Open(ctx, store.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	var ids []string
	for len(ids) < n {
		var added []string
		err := db.Update(ctx, g.id, func(tx nodest.Tx) (err error) {
			added, err = fillSome(tx, conversation, min(1000, n-len(ids)))
			return err
		})
		if err != nil {
			return nil, err
		}
		ids = append(ids, added...)
	}
	return ids, nil
}

func fillSome(tx nodest.Tx, conversation string, n int) ([]string, error) {
	conv, err := tx.Chats.LockConversation(conversation)
	if err != nil {
		return nil, err
	}
	conv.Version++
	ids := make([]string, n)
	for i := range ids {
		ids[i] = uuid.Must(uuid.NewV7()).String()
		m := &chat.Message{
			ID: ids[i], ConversationID: conv.ID, ParentID: conv.HeadID, Role: chat.RoleUser, Name: "Ada", Status: chat.StatusComplete, Rev: 1,
			Swipes: []chat.Swipe{{
				ID: uuid.Must(uuid.NewV7()).String(), RevisionID: uuid.Must(uuid.NewV7()).String(), Rev: 1,
				Text: "The tea is almost ready, and the rain has not stopped since noon.", CreatedAt: tx.Now(),
			}},
			CreatedAt: tx.Now(),
		}
		if err := tx.Chats.InsertMessage(m); err != nil {
			return nil, err
		}
		conv.HeadID = m.ID
	}
	return ids, tx.Chats.UpdateConversation(conv)
}

// each runs f for 0 to n-1, at most width at a time, and returns the errors.
func each(n, width int, f func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	room := make(chan struct{}, width)
	for i := range n {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			errs[i] = f(i)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// restClient keeps a connection for each of many clients.
var restClient = &http.Client{Transport: &http.Transport{MaxIdleConns: 1000, MaxIdleConnsPerHost: 1000}}

// rest sends one request of a guest; out may be nil.
func (g *guest) rest(ctx context.Context, method, url string, body, out any) error {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, content)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+g.token)
	req.Header.Set("Content-Type", "application/json")
	if method != http.MethodGet {
		req.Header.Set("Idempotency-Key", uuid.NewString())
	}
	res, err := restClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", method, url, res.Status, text)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// settle creates for a guest a character and a conversation.
func (g *guest) settle(ctx context.Context, base string) error {
	var character, conversation struct{ ID string }
	card := map[string]any{"roleCard": map[string]any{
		"name": "Mara", "description": "Captain of the salvage ship Kestrel, grey-eyed and patient.",
		"personality": "dry humour", "scenario": "Deep space.", "first_mes": "Welcome aboard, {{user}}.",
	}}
	if err := g.rest(ctx, http.MethodPost, base+"/api/v1/characters", card, &character); err != nil {
		return err
	}
	err := g.rest(ctx, http.MethodPost, base+"/api/v1/conversations", map[string]any{"characterId": character.ID}, &conversation)
	g.conversation = conversation.ID
	return err
}

// house is a running server with guests who have a conversation each.
func (c *chatRun) house(ctx context.Context, name string, n int, models string) (*child, []*guest, error) {
	dir := c.folder(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, err
	}
	list, err := guests(ctx, dir, n)
	if err != nil {
		return nil, nil, err
	}
	s, err := c.server(ctx, dir, models)
	if err != nil {
		return nil, nil, err
	}
	if err := each(n, 16, func(i int) error { return list[i].settle(ctx, s.base) }); err != nil {
		return nil, nil, errors.Join(err, s.stop())
	}
	return s, list, nil
}
