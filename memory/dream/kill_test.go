package dream_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/cognition"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory/dream"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

var errCut = errors.New("the process was killed")

// dying is a store whose process dies before or after one of its commits.
type dying struct {
	dream.Store
	at    int // of the commits; 0 = it lives
	after bool
	dead  bool
}

func (d *dying) Update(ctx context.Context, userID string, fn func(dream.Tx) error) error {
	if d.at--; d.dead || d.at == 0 && !d.after {
		d.dead = true
		return errCut
	}
	err := d.Store.Update(ctx, userID, fn)
	if d.at == 0 && err == nil {
		d.dead, err = true, errCut
	}
	return err
}

// Wherever a run is killed, the next attempt goes on: no message is reflected on twice, none is left out,
// and each reflection is worked in once.
func TestARunThatIsKilledGoesOn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, open storetest.Opener) { killRuns(t, open(t, store.Options{})) })
}

func killRuns(t *testing.T, db *store.DB) {
	t.Helper()
	kills := 0
	for _, after := range []bool{false, true} {
		for at := 1; ; at++ {
			s := newSleeper(t, db)
			cut := &dying{Store: db.Dreams(), at: at, after: after}
			if !s.run(t, cut) { // it was not killed any more
				break
			}
			kills++
			s.run(t, &dying{Store: db.Dreams()})
			s.check(t, fmt.Sprintf("killed at commit %d (after it: %v)", at, after))
		}
	}
	if kills < 8 {
		t.Errorf("only %d kills", kills)
	}
	t.Logf("%d kills", kills)
}

// sleeper is a character with a chat of six things that the user says.
type sleeper struct {
	db              *store.DB
	user, character string
	chat            string
	job             *jobs.Job
}

func newSleeper(t *testing.T, db *store.DB) *sleeper {
	t.Helper()
	s := &sleeper{db: db, user: storetest.User(t, db)}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	characters := character.New(db.Characters(), character.Options{})
	ch, err := characters.Create(t.Context(), &op.Call{UserID: s.user}, character.Input{RoleCard: []byte(`{"name":"Alice"}`)})
	must(err)
	conv, err := chat.New(db.Chats(), characters, chat.Options{Memory: true}).CreateConversation(t.Context(), &op.Call{UserID: s.user}, chat.ConversationInput{CharacterID: ch.ID})
	must(err)
	s.character, s.chat = ch.ID, conv.ID
	for _, thing := range []string{"bicycle", "kettle", "canoe", "lamp", "sofa", "kite"} {
		must(db.Update(t.Context(), s.user, func(tx nodest.Tx) error {
			conv, err := tx.Chats.LockConversation(s.chat)
			if err != nil {
				return err
			}
			conv.Version++
			m := &chat.Message{
				ID: op.NewID(), ConversationID: conv.ID, ParentID: conv.HeadID, Role: chat.RoleUser, Status: chat.StatusComplete, Rev: 1, Dates: chat.Dates{CreatedAt: tx.Now()},
				Swipes: []chat.Swipe{{ID: op.NewID(), RevisionID: op.NewID(), Rev: 1, Text: "I bought a red " + thing + ". " + strings.Repeat("It rains a lot here. ", 400), CreatedAt: tx.Now()}},
			}
			if err := tx.Chats.InsertMessage(m); err != nil {
				return err
			}
			conv.HeadID = m.ID
			return tx.Chats.UpdateConversation(conv)
		}))
	}
	_, err = s.service(db.Dreams()).Start(t.Context(), &op.Call{UserID: s.user}, s.character, dream.Order{Force: true})
	must(err)
	for s.job == nil {
		claimed, err := db.ClaimJobs(t.Context(), "p", time.Hour, []jobs.Want{{Kind: dream.JobDream, Free: 100, PerUser: 100}})
		must(err)
		at := slices.IndexFunc(claimed, func(j *jobs.Job) bool { return j.UserID == s.user })
		if at < 0 {
			t.Fatal("the job is not due")
		}
		s.job = claimed[at]
	}
	return s
}

func (s *sleeper) service(of dream.Store) *dream.Service {
	return dream.New(of, dream.Options{
		Scenes: func(context.Context, string, string) (dream.Scene, error) {
			return dream.Scene{Mode: dream.Full, At: "04:00", Least: 1, Zone: time.UTC}, nil
		},
		Model: func(context.Context, string, string) (llm.Asker, error) { return llm.AskerFunc(s.ask), nil },
	})
}

func (s *sleeper) ask(_ context.Context, p llm.Prompt) (string, error) {
	if strings.Contains(p.Text, `{"updates":`) {
		return `{"updates":[{"path":"user.md","do":"add","text":"User bought a red kettle.","notes":[1,2,3]}]}`, nil
	}
	notes := ""
	for seq, thing := range map[int]string{1: "bicycle", 2: "kettle", 3: "canoe"} {
		notes += fmt.Sprintf(`,{"text":"User bought a red %s.","seqs":[%d]}`, thing, seq)
	}
	return `{"notes":[` + notes[1:] + `]}`, nil
}

// run works until the end, and reports whether the process was killed.
func (s *sleeper) run(t *testing.T, of *dying) (killed bool) {
	t.Helper()
	runs, err := s.service(of).Runs(t.Context(), s.user, s.character, "", 1)
	if err != nil {
		t.Fatal(err)
	}
	if runs.Items[0].State == dream.Done {
		return false
	}
	err = s.service(of).Kinds()[0].Run(t.Context(), s.job)
	if err != nil && !errors.Is(err, errCut) {
		t.Fatal(err)
	}
	return err != nil
}

func (s *sleeper) check(t *testing.T, what string) {
	t.Helper()
	err := s.db.Dreams().View(t.Context(), s.user, func(tx dream.Tx) error {
		events, err := tx.Log.Events(s.chat, 0, 100, cognition.TypeReflection)
		if err != nil {
			return err
		}
		next := int64(1)
		for _, e := range events {
			var r cognition.Reflection
			if err := cognition.Read(e, &r); err != nil {
				return err
			}
			if r.SequenceRange[0] != next || r.ConsumedAt == "" {
				t.Errorf("%s: range %v behind %d, consumed %q", what, r.SequenceRange, next-1, r.ConsumedAt)
			}
			next = r.SequenceRange[1] + 1
		}
		behind, err := tx.TracesBehind(s.character, 5)
		if err != nil || len(behind) != 0 || next < 7 {
			t.Errorf("%s: reflected up to %d, and %+v is left, %v", what, next-1, behind, err)
		}
		versions, err := tx.VersionsOfDocuments(s.character)
		if err == nil && len(versions) != 1 {
			t.Errorf("%s: %d versions", what, len(versions))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	runs, err := s.service(s.db.Dreams()).Runs(t.Context(), s.user, s.character, "", 1)
	if err != nil || runs.Items[0].State != dream.Done {
		t.Errorf("%s: %+v, %v", what, runs, err)
	}
}
