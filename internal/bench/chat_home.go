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
	"time"

	"github.com/google/uuid"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/account"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/store"
)

// guest is a user of a measured server.
type guest struct {
	token string
	chats []filledChat
}

// filledChat is a chat with messages.
type filledChat struct{ id, character, middle string } // middle is a message

// home makes a data folder with n users, each with a token and, for each of lengths, a
// chat with that many messages behind the greeting. The first user is the owner.
func (r *run) home(ctx context.Context, n int, lengths ...int) (dir string, list []*guest, err error) {
	return r.homeOf(ctx, n, func(int) []chatScript { return rainyChats(lengths) })
}

// homeOf is home with chats of its own for each user.
func (r *run) homeOf(ctx context.Context, n int, chats func(user int) []chatScript) (dir string, list []*guest, err error) {
	if dir, err = os.MkdirTemp(r.dir, "data-"); err != nil {
		return "", nil, err
	}
	db, err := store.Open(ctx, store.Options{Dir: dir, URL: r.Database, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	secret, err := account.Secret(dir, "")
	if err != nil {
		return "", nil, err
	}
	accounts, err := account.New(db, secret, account.Options{})
	if err != nil {
		return "", nil, err
	}
	list = make([]*guest, n)
	return dir, list, each(n, 64, func(i int) error {
		u := &account.User{ID: op.NewID(), Username: fmt.Sprintf("guest-%d", i), Role: account.RoleMember}
		if i == 0 {
			u.Role = account.RoleOwner
		}
		if err := db.InsertUser(ctx, u); err != nil {
			return err
		}
		token, _, err := accounts.CreateToken(ctx, &account.Identity{User: u}, "bench", 0)
		if err != nil {
			return err
		}
		list[i] = &guest{token: token}
		list[i].chats, err = fillChats(ctx, db, &op.Call{UserID: u.ID}, chats(i))
		return err
	})
}

var mara = json.RawMessage(`{"name": "Mara", "description": "Captain of the salvage ship Kestrel, grey-eyed and patient.",
	"personality": "dry humour", "scenario": "Deep space.", "first_mes": "Welcome aboard, {{user}}."}`)

// chatScript is what a chat is filled with.
type chatScript struct {
	length int // messages
	line   func(i int) line
}

// line is a message of a filled chat.
type line struct {
	role, name, text string
	at               time.Time // zero = now
}

// rainyChats are chats of some lengths in which the user says the same again and again.
func rainyChats(lengths []int) []chatScript {
	list := make([]chatScript, len(lengths))
	for i, length := range lengths {
		list[i] = chatScript{length, func(i int) line {
			text := "The tea is almost ready, and the rain has not stopped since noon."
			if i == 0 {
				text = "Remember " + rareWord + "."
			}
			return line{role: chat.RoleUser, name: "Ada", text: text}
		}}
	}
	return list
}

// fillChats makes a character and a chat with it for each script.
func fillChats(ctx context.Context, db *store.DB, call *op.Call, scripts []chatScript) (all []filledChat, err error) {
	characters := character.New(db.Characters(), character.Options{})
	ch, err := characters.Create(ctx, call, character.Input{RoleCard: mara})
	if err != nil {
		return nil, err
	}
	chats := chat.New(db.Chats(), characters, chat.Options{Log: slog.New(slog.DiscardHandler)})
	for _, s := range scripts {
		conv, err := chats.CreateConversation(ctx, call, chat.ConversationInput{CharacterID: ch.ID})
		if err != nil {
			return nil, err
		}
		f := filledChat{id: conv.ID, character: ch.ID}
		for from := 0; from < s.length; from += 1000 {
			err := db.Update(ctx, call.UserID, func(tx nodest.Tx) error { return f.fill(tx, s, from, min(from+1000, s.length)) })
			if err != nil {
				return nil, err
			}
		}
		all = append(all, f)
	}
	return all, nil
}

// rareWord is in the first message of a filled chat only.
const rareWord = "zanzibar"

// fill appends the messages of a script from one number up to another.
func (f *filledChat) fill(tx nodest.Tx, s chatScript, from, to int) error {
	conv, err := tx.Chats.LockConversation(f.id)
	if err != nil {
		return err
	}
	conv.Version++
	for i := from; i < to; i++ {
		l := s.line(i)
		if l.at.IsZero() {
			l.at = tx.Now()
		}
		m := &chat.Message{
			ID: op.NewID(), ConversationID: conv.ID, ParentID: conv.HeadID, Role: l.role, Name: l.name, Status: chat.StatusComplete, Rev: 1,
			Swipes: []chat.Swipe{{ID: op.NewID(), RevisionID: op.NewID(), Rev: 1, Text: l.text, CreatedAt: l.at}},
			Dates:  chat.Dates{CreatedAt: l.at},
		}
		if err := tx.Chats.InsertMessage(m); err != nil {
			return err
		}
		if i == s.length/2 {
			f.middle = m.ID
		}
		conv.HeadID = m.ID
	}
	return tx.Chats.UpdateConversation(conv)
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
