package circle_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"nodest/character"
	"nodest/circle"
	"nodest/internal/fault"
)

// chats are the private chats of a fixture.
type chats struct {
	wrote  time.Time
	newest map[string]string
	sent   []string // conversations in which a character wrote
	times  []time.Time
	keys   []string
	err    error
}

// silent is a fixture whose user has chats and wants to be written to.
func silent(t *testing.T, names ...string) (*fixture, *chats, []string) {
	f := newFixture(t)
	c := &chats{wrote: noon, newest: map[string]string{}}
	var ids []string
	for _, name := range names {
		id := f.member(name)
		c.newest[id] = "chat with " + name
		ids = append(ids, id)
	}
	f.svc = circle.New(f.db.Circle(), circle.Options{
		Characters: character.New(f.db.Characters(), character.Options{}), Memory: f.memory, Model: f.model,
		LastChats: func(context.Context, string) (time.Time, map[string]string, error) { return c.wrote, c.newest, nil },
		Greet: func(_ context.Context, _, conversationID, key string) error {
			if c.err != nil {
				return c.err
			}
			c.sent, c.times, c.keys = append(c.sent, conversationID), append(c.times, f.now()), append(c.keys, key)
			return nil
		},
	})
	f.settings(func(s *circle.Settings) { s.Proactive, s.SleepAfter, s.SilentHours = true, 365, 10 })
	for _, id := range ids {
		f.set(id, map[string]any{"postsPerDay": 0})
	}
	return f, c, ids
}

func TestCharactersWriteToASilentUserLessAndLess(t *testing.T) {
	t.Parallel()
	f, c, ids := silent(t, "Bea", "Carl", "Dora")
	f.update(func(tx circle.Tx) error {
		return tx.PutRelation(&circle.Relation{CharacterID: ids[1], TargetID: circle.Me, Strength: 50, Type: "friend"})
	})
	f.live(30*24*time.Hour, 10*time.Minute)
	if len(c.sent) != 3 || c.sent[0] != "chat with Carl" {
		t.Fatalf("messages in %q; each character writes once", c.sent)
	}
	for i, after := range []time.Duration{10 * time.Hour, 20 * time.Hour, 40 * time.Hour} {
		if waited := c.times[i].Sub(noon); waited < after || waited > after+9*time.Hour {
			t.Errorf("message %d after %s", i, waited)
		}
		if h := c.times[i].Hour(); h < 7 || h >= 23 {
			t.Errorf("message %d in the quiet hours, at %s", i, c.times[i])
		}
	}
	if s := f.turns(circle.TurnFilter{State: circle.TurnDone}); len(s) != 3 || s[0].Calls != 1 {
		t.Errorf("turns %+v", s)
	}
	c.wrote = f.now() // the user answers, and is silent again
	f.live(15*time.Hour, 10*time.Minute)
	if len(c.sent) != 4 || c.sent[3] != "chat with Carl" {
		t.Errorf("messages in %q", c.sent)
	}
}

func TestNoMoreMessagesADayThanAllowed(t *testing.T) {
	t.Parallel()
	f, c, _ := silent(t, "Bea", "Carl", "Dora", "Emil")
	f.settings(func(s *circle.Settings) { s.SilentHours, s.ProactiveADay, s.QuietFrom = 1, 2, s.QuietUntil })
	f.live(11*time.Hour, 10*time.Minute)
	if len(c.sent) != 2 {
		t.Errorf("%d messages", len(c.sent))
	}
	slices.Sort(c.keys)
	if len(slices.Compact(c.keys)) != len(c.sent) {
		t.Errorf("keys %q", c.keys)
	}
}

func TestNobodyWritesUnlessTheUserWantsItAndIsSilent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(f *fixture, c *chats)
		want   int
	}{
		{"silent", func(*fixture, *chats) {}, 1},
		{"off", func(f *fixture, _ *chats) { f.settings(func(s *circle.Settings) { s.Proactive = false }) }, 0},
		{"writing every day", func(f *fixture, c *chats) { c.wrote = noon.Add(8 * time.Hour) }, 0},
		{"without chats", func(_ *fixture, c *chats) { c.newest = nil }, 0},
		{"who never wrote", func(_ *fixture, c *chats) { c.wrote = time.Time{} }, 0},
		{"without a budget", func(f *fixture, _ *chats) { f.settings(func(s *circle.Settings) { s.CallsPerDay = 0 }) }, 0},
		{"without a provider", func(_ *fixture, c *chats) { c.err = fault.New(fault.NotConfigured, "no provider") }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, chats, _ := silent(t, "Bea")
			c.change(f, chats)
			f.live(11*time.Hour, 30*time.Minute)
			if len(chats.sent) != c.want {
				t.Errorf("%d messages", len(chats.sent))
			}
		})
	}
}

func TestAMessageThatFailsIsTriedAgainAndVisible(t *testing.T) {
	t.Parallel()
	f, c, _ := silent(t, "Bea")
	c.err = fault.New(fault.Busy, "a reply is being written")
	f.live(10*time.Hour+2*time.Minute, time.Minute)
	if n := len(f.eventsOf("circle.failed")); n == 0 || len(c.sent) != 0 {
		t.Errorf("%d failures, %d messages", n, len(c.sent))
	}
	c.err = nil
	f.live(10*time.Minute, time.Minute)
	if len(c.sent) != 1 {
		t.Errorf("%d messages", len(c.sent))
	}
}
