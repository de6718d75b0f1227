package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"nodest/character"
	"nodest/circle"
	"nodest/circle/rules"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/store"
	"nodest/store/storetest"
)

// inCircle changes the circle a second after the last change.
func (e *env) inCircle(fn func(tx circle.Tx) error) {
	e.Helper()
	e.clock.advance(time.Second)
	e.update(func(tx nodest.Tx) error { return fn(store.Circle(tx)) })
}

func (e *env) viewCircle(fn func(tx circle.Tx) error) {
	e.Helper()
	e.view(func(tx nodest.Tx) error { return fn(store.Circle(tx)) })
}

// member stores a character.
func (e *env) member(settings string) string {
	e.Helper()
	ch := &character.Character{ID: id(), Name: "Ada", Settings: []byte(settings)}
	e.update(func(tx nodest.Tx) error { return tx.Characters.InsertCharacter(ch) })
	return ch.ID
}

// post stores a post.
func (e *env) post(author string, images ...string) *circle.Post {
	e.Helper()
	p := &circle.Post{ID: id(), AuthorID: author, AuthorName: "Ada", Text: "tea"}
	for _, image := range images {
		p.Images = append(p.Images, circle.Image{ID: image})
	}
	e.inCircle(func(tx circle.Tx) error { return tx.InsertPost(p) })
	return p
}

// comment stores a comment or a reply.
func (e *env) comment(p *circle.Post, author, replyTo string) *circle.Comment {
	e.Helper()
	c := &circle.Comment{ID: id(), PostID: p.ID, AuthorID: author, ReplyTo: replyTo, Depth: 1, Text: "so"}
	e.inCircle(func(tx circle.Tx) error { return tx.InsertComment(c) })
	return c
}

func (e *env) deleteComment(c *circle.Comment) {
	e.Helper()
	now := e.clock.now()
	c.DeletedAt = &now
	e.inCircle(func(tx circle.Tx) error { return tx.UpdateComment(c) })
}

// comments are the ids that Comments returns.
func (e *env) comments(latest int, posts ...string) []string {
	e.Helper()
	ids := []string{}
	e.viewCircle(func(tx circle.Tx) error {
		comments, err := tx.Comments(latest, posts...)
		for _, c := range comments {
			ids = append(ids, c.ID)
		}
		return err
	})
	return ids
}

func postIDs(posts []*circle.Post) (ids []string) {
	for _, p := range posts {
		ids = append(ids, p.ID)
	}
	return ids
}

func TestATurnIsPlannedOnce(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ada, eve := e.member(""), e.member("")
		for i, tt := range []struct {
			turn circle.Turn
			want bool
		}{
			{circle.Turn{CharacterID: ada, PostID: named("p")}, true},
			{circle.Turn{CharacterID: ada, PostID: named("p")}, false},
			{circle.Turn{CharacterID: eve, PostID: named("p")}, true},
			{circle.Turn{CharacterID: ada, PostID: named("p"), CommentID: named("c")}, true},
			{circle.Turn{CharacterID: ada, PostID: named("p"), CommentID: named("c")}, false},
			{circle.Turn{CharacterID: ada, Day: "2026-03-14", Slot: "09:00"}, true},
			{circle.Turn{CharacterID: ada, Day: "2026-03-14", Slot: "09:00"}, false},
			{circle.Turn{CharacterID: ada, Day: "2026-03-15", Slot: "09:00"}, true},
			{circle.Turn{CharacterID: eve, Day: "2026-03-14", Slot: "09:00"}, true},
		} {
			tt.turn.ID, tt.turn.DueAt = id(), start
			e.inCircle(func(tx circle.Tx) error {
				added, err := tx.InsertTurn(&tt.turn)
				e.equal(fmt.Sprint("added ", i), added, tt.want)
				return err
			})
		}
	})
}

func TestOfTwoTransactionsThatPlanATurnOneWins(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ada := e.member("")
		var added atomic.Int64
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				var won bool
				err := e.db.Circle().Update(context.Background(), e.user, func(tx circle.Tx) (err error) {
					if won, err = tx.InsertTurn(&circle.Turn{ID: id(), CharacterID: ada, Day: "2026-03-14", Slot: "1", DueAt: start}); err != nil || !won {
						return err
					}
					return tx.Jobs.Enqueue(jobs.Spec{Kind: circle.JobPost, Subject: "turn"})
				})
				if err != nil {
					e.Error(err)
				} else if won {
					added.Add(1)
				}
			})
		}
		group.Wait()
		e.equal("transactions that planned it", added.Load(), 1)
	})
}

func TestTurnsAreFiltered(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ada, eve := e.member(""), e.member("")
		turns := map[string]*circle.Turn{
			"react":  {CharacterID: ada, PostID: named("p")},
			"answer": {CharacterID: ada, PostID: named("p"), CommentID: named("c"), State: circle.TurnPlanned},
			"slot":   {CharacterID: eve, Day: "2026-03-14", Slot: "09:00", State: circle.TurnPlanned},
			"late":   {CharacterID: eve, PostID: named("q"), State: circle.TurnPlanned},
		}
		names := map[string]string{}
		for _, name := range []string{"react", "answer", "slot", "late"} {
			turn := turns[name]
			turn.ID, turn.DueAt = id(), start
			names[turn.ID] = name
			e.inCircle(func(tx circle.Tx) error { return errOf(tx.InsertTurn(turn)) })
		}
		for _, name := range []string{"late", "react"} { // ends in another order
			turn := turns[name]
			ended := e.clock.now().Truncate(time.Millisecond).UTC()
			turn.State, turn.EndedAt, turn.Calls, turn.Tokens, turn.Note = circle.TurnFailed, &ended, 2, 30, rules.NoteNoModel
			turn.Error = &op.Failure{Code: fault.UpstreamDown}
			e.inCircle(func(tx circle.Tx) error { return tx.UpdateTurn(turn) })
		}
		e.viewCircle(func(tx circle.Tx) error {
			for _, tt := range []struct {
				f    circle.TurnFilter
				want string
			}{
				{circle.TurnFilter{}, "late slot answer react"},
				{circle.TurnFilter{CharacterID: ada}, "answer react"},
				{circle.TurnFilter{PostID: named("p")}, "answer react"},
				{circle.TurnFilter{State: circle.TurnPlanned}, "slot answer"},
				{circle.TurnFilter{State: circle.TurnFailed}, "late react"},
				{circle.TurnFilter{Reactions: true}, "late answer react"},
				{circle.TurnFilter{Slots: true}, "slot"},
				{circle.TurnFilter{Day: "2026-03-14"}, "slot"},
				{circle.TurnFilter{Since: start}, "react late"},
				{circle.TurnFilter{Since: *turns["react"].EndedAt}, "react"},
			} {
				var got []string
				for cursor, first := "", true; first || cursor != ""; first = false {
					items, next, err := tx.Turns(tt.f, cursor, 1)
					if err != nil {
						return err
					}
					for _, turn := range items {
						got = append(got, names[turn.ID])
					}
					cursor = next
				}
				e.equal(fmt.Sprintf("%+v", tt.f), strings.Join(got, " "), tt.want)
			}
			got, err := tx.Turn(turns["late"].ID)
			if err != nil {
				return err
			}
			e.equal("error", got.Error.Code, fault.UpstreamDown)
			e.equal("ended", got.EndedAt.Equal(*turns["late"].EndedAt), true)
			e.equal("cost", []int64{got.Calls, got.Tokens}, []int64{2, 30})
			return nil
		})
		e.inCircle(func(tx circle.Tx) error { return tx.CancelTurns(named("p"), named("another")) })
		e.inCircle(func(tx circle.Tx) error { return tx.CancelTurns(named("p"), "") })
		e.viewCircle(func(tx circle.Tx) error {
			for name, want := range map[string]circle.TurnState{"react": circle.TurnFailed, "answer": circle.TurnLeftOut, "slot": circle.TurnPlanned} {
				got, err := tx.Turn(turns[name].ID)
				if err != nil {
					return err
				}
				e.equal(name, got.State, want)
			}
			return nil
		})
	})
}

func TestConcurrentChangesOfARelationAreAllCounted(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ada, eve := e.member(""), e.member("")
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				err := e.db.Circle().Update(context.Background(), e.user, func(tx circle.Tx) error {
					r, err := tx.Relation(ada, eve)
					if err != nil {
						return err
					}
					r.Strength++
					return tx.PutRelation(r)
				})
				if err != nil {
					e.Error(err)
				}
			})
		}
		group.Wait()
		e.inCircle(func(tx circle.Tx) error {
			return tx.PutRelation(&circle.Relation{CharacterID: ada, TargetID: circle.Me, Type: "crush", Kept: true})
		})
		e.viewCircle(func(tx circle.Tx) error {
			for what, of := range map[string]string{"of the character": ada, "of all": ""} {
				all, err := tx.Relations(of)
				if err != nil {
					return err
				}
				e.equal(what, len(all), 2)
				e.equal("the user first", all[0].Type, "crush")
				e.equal("strength", all[1].Strength, 8)
			}
			unmet, err := tx.Relation(eve, ada)
			e.equal("those who have not met", *unmet, circle.Relation{CharacterID: eve, TargetID: ada, Type: "stranger"})
			return err
		})
	})
}

func TestAMessageBoxKeepsTheNewest(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ada := e.member("")
		var ids []string
		for range circle.MaxBox + 2 {
			ids = append(ids, id())
			e.inCircle(func(tx circle.Tx) error {
				return tx.PutItem(&circle.Item{ID: ids[len(ids)-1], CharacterID: ada, Type: "like"})
			})
		}
		e.inCircle(func(tx circle.Tx) error { return tx.ReadItems(ada, ids[len(ids)-1], ids[0]) })
		e.viewCircle(func(tx circle.Tx) error {
			all, err := tx.Items(ada, false)
			if err != nil {
				return err
			}
			e.equal("items", len(all), circle.MaxBox)
			e.equal("newest", all[0].ID, ids[len(ids)-1])
			e.equal("oldest", all[len(all)-1].ID, ids[2])
			e.equal("read", all[0].ReadAt.Equal(e.clock.now()), true)
			unread, err := tx.Items(ada, true)
			e.equal("unread", len(unread), circle.MaxBox-1)
			return err
		})
	})
}

func TestActionsAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ada, eve := e.member(""), e.member("")
		var ids []string
		for _, by := range []string{ada, eve, ada} {
			ids = append(ids, id())
			a := &circle.Action{ID: ids[len(ids)-1], CharacterID: by, Type: "gift", State: "pending", ExpiresAt: start}
			e.inCircle(func(tx circle.Tx) error { return tx.InsertAction(a) })
		}
		e.inCircle(func(tx circle.Tx) error {
			a, err := tx.Action(ids[0])
			if err != nil {
				return err
			}
			ended := tx.Now()
			a.State, a.EndedAt = "accepted", &ended
			return tx.UpdateAction(a)
		})
		e.viewCircle(func(tx circle.Tx) error {
			all, next, err := tx.Actions("", "", 2)
			if err != nil {
				return err
			}
			e.equal("newest", []string{all[0].ID, all[1].ID}, []string{ids[2], ids[1]})
			all, next, err = tx.Actions("", next, 2)
			e.equal("next", next, "")
			e.equal("oldest", all[0].State+" "+all[0].CharacterID, "accepted "+ada)
			if err != nil {
				return err
			}
			own, _, err := tx.Actions(ada, "", 5)
			e.equal("of one", len(own), 2)
			return err
		})
	})
}

func TestMembersAreThoseWhoTakePart(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		e.member("")
		e.member(`{"circle":{"enabled":false}}`)
		in, gone := e.member(`{"circle":{"enabled":true,"postsPerDay":3}}`), e.member(`{"circle":{"enabled":true}}`)
		also := e.member(`{"circle":{"enabled":true}}`)
		archived := e.member(`{"circle":{"enabled":true}}`)
		e.update(func(tx nodest.Tx) error {
			ch, err := tx.Characters.Character(archived)
			if err != nil {
				return err
			}
			ch.Archived, ch.Version = true, ch.Version+1
			return errors.Join(tx.Characters.UpdateLabels(ch), tx.Characters.DeleteCharacter(gone))
		})
		e.viewCircle(func(tx circle.Tx) error {
			all, err := tx.Members()
			if err != nil {
				return err
			}
			e.equal("number of members", len(all), 2)
			e.equal("members", []string{all[0].ID, all[len(all)-1].ID}, []string{in, also})
			set, err := all[0].ParseSettings()
			e.equal("posts per day", set.Circle.PostsPerDay, 3)
			return err
		})
	})
}

func TestSpendingIsLocked(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				err := e.db.Circle().Update(context.Background(), e.user, func(tx circle.Tx) error {
					s, err := tx.LockSpend("2026-03-14")
					if err != nil {
						return err
					}
					s.Calls, s.Tokens, s.LeftOut = s.Calls+1, s.Tokens+10, s.LeftOut+2
					return tx.PutSpend(s)
				})
				if err != nil {
					e.Error(err)
				}
			})
		}
		group.Wait()
		e.inCircle(func(tx circle.Tx) error { return tx.PutSpend(&circle.Spend{Day: "2026-03-16", Calls: 1}) })
		e.inCircle(func(tx circle.Tx) error { return tx.PutSpend(&circle.Spend{Day: "2026-03-15", Calls: 1}) })
		e.viewCircle(func(tx circle.Tx) error {
			days, err := tx.Spends("2026-03-14", "2026-03-15")
			if err != nil {
				return err
			}
			e.equal("days", len(days), 2)
			e.equal("the first", *days[0], circle.Spend{Day: "2026-03-14", Calls: 8, Tokens: 80, LeftOut: 16})
			if _, err := tx.LockSpend("2026-03-14"); err == nil {
				e.Error("a day was locked on a snapshot")
			}
			return nil
		})
	})
}

func TestTheStateOfTheCircleHasDefaults(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		state := &circle.State{Settings: circle.Settings{QuietFrom: "22:00", CallsPerDay: 3}, UpdatedAt: start}
		e.viewCircle(func(tx circle.Tx) error {
			s, err := tx.CircleState()
			e.equal("state", *s, circle.State{Settings: circle.DefaultSettings()})
			return err
		})
		e.inCircle(func(tx circle.Tx) error { return tx.PutCircleState(&circle.State{}) })
		e.inCircle(func(tx circle.Tx) error { return tx.PutCircleSettings(state) })
		looked := &circle.State{LookedAt: start, AsleepAt: new(start)} // it was read before the settings were stored
		e.inCircle(func(tx circle.Tx) error { return tx.PutCircleState(looked) })
		e.viewCircle(func(tx circle.Tx) error {
			s, err := tx.CircleState()
			e.equal("settings", s.Settings, state.Settings)
			e.equal("of", s.UpdatedAt, start)
			e.equal("asleep", s.AsleepAt.Equal(start), true)
			e.equal("looked", s.LookedAt, start)
			return err
		})
	})
}

func TestAPlanIsReplaced(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ada := e.member("")
		plan := &circle.Plan{CharacterID: ada, Day: "2026-03-14", Items: []circle.PlanItem{{ID: "1", Text: "tea", Source: "card"}}}
		e.inCircle(func(tx circle.Tx) error { return tx.PutPlan(plan) })
		plan.Items[0].Used = true
		e.inCircle(func(tx circle.Tx) error { return tx.PutPlan(plan) })
		e.viewCircle(func(tx circle.Tx) error {
			got, err := tx.Plan(ada, "2026-03-14")
			if err != nil {
				return err
			}
			e.equal("plan", *got, *plan)
			none, err := tx.Plan(ada, "2026-03-15")
			e.equal("no plan", none == nil, true)
			return err
		})
	})
}

func TestEndedTurnsAreKeptForNinetyDays(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ada := e.member("")
		ended := e.clock.now()
		e.inCircle(func(tx circle.Tx) error {
			for _, turn := range []*circle.Turn{{PostID: named("p"), State: circle.TurnDone, EndedAt: &ended}, {PostID: named("q"), State: circle.TurnPlanned}} {
				turn.ID, turn.CharacterID, turn.DueAt = id(), ada, start
				if _, err := tx.InsertTurn(turn); err != nil {
					return err
				}
			}
			return nil
		})
		e.clock.advance(89 * day)
		e.equal("removed", e.maintain(), store.Removed{})
		e.clock.advance(day)
		e.equal("removed", e.maintain(), store.Removed{"turns": 1})
	})
}

// No query of the feed, of turns or of message boxes reads or sorts more rows than it
// returns.
func TestCircleQueriesUseTheirIndexes(t *testing.T) {
	t.Parallel()
	db := storetest.Open(t)
	const page = " ORDER BY created_at DESC, id DESC LIMIT 51"
	for query, index := range map[string]string{
		"SELECT * FROM circle_posts WHERE user_id = 'u' AND deleted_at IS NULL AND (created_at, id) < (1, 'x')" + page: "circle_posts_list",
		"SELECT * FROM circle_posts WHERE user_id = 'u' AND deleted_at IS NULL AND author_id IS NULL" + page:           "circle_posts_author",
		"SELECT * FROM circle_posts WHERE user_id = 'u' AND deleted_at IS NULL AND favorite" + page:                    "circle_posts_favorite",
		"SELECT * FROM circle_posts WHERE user_id = 'u' AND deleted_at IS NULL AND created_at >= 5" + page:             "circle_posts_list",
		strings.NewReplacer("IN (?)", "IN ('p', 'q')", "?", "1").Replace(store.LatestComments):                         "circle_comments_list (post_id=? AND created_at>?)",
		strings.NewReplacer("IN (?)", "IN ('p', 'q')", "?", "1").Replace(store.AllComments):                            "circle_comments_list",
		"SELECT * FROM circle_turns WHERE user_id = 'u'" + page:                                                        "circle_turns_list",
		"SELECT * FROM circle_turns WHERE user_id = 'u' AND character_id = 'c'" + page:                                 "circle_turns_character",
		"SELECT * FROM circle_turns WHERE user_id = 'u' AND state = 'planned'" + page:                                  "circle_turns_planned",
		"SELECT * FROM circle_turns WHERE user_id = 'u' AND character_id = 'c' AND slot = '' AND ended_at >= 5" +
			" ORDER BY ended_at DESC, id DESC LIMIT 51": "circle_turns_recent",
		"SELECT * FROM circle_turns WHERE user_id = 'u' AND state = 'done' AND ended_at >= 5 ORDER BY ended_at DESC, id DESC LIMIT 51": "circle_turns_recent",
		"SELECT * FROM circle_turns WHERE user_id = 'u' AND post_id = 'p'" + page:                                                      "circle_turns_post",
		"SELECT * FROM circle_turns WHERE user_id = 'u' AND slot <> '' AND day = 'd'" + page:                                           "circle_turns_slot",
		"SELECT * FROM circle_items WHERE user_id = 'u' AND character_id = 'c'" + page:                                                 "circle_items_list",
		"SELECT * FROM circle_actions WHERE user_id = 'u' AND character_id = 'c'" + page:                                               "circle_actions_character",
		"SELECT user_id, id FROM circle_turns c WHERE c.ended_at <= 5 LIMIT 5":                                                         "circle_turns_", // users are few: an index by user serves too
		"SELECT user_id, id FROM circle_posts c WHERE c.deleted_at <= 5 LIMIT 5":                                                       "circle_posts_deleted",
		"SELECT * FROM circle_likes WHERE user_id = 'u' AND post_id IN ('p', 'q')":                                                     "circle_likes_one",
	} {
		plan, err := store.Plan(db, query)
		if err != nil {
			t.Fatal(err)
		}
		few := strings.Contains(query, "post_id") || strings.Contains(query, "day =") // sorted after they were read
		all := strings.Join(plan, "\n")
		if !strings.Contains(all, index) || strings.Contains(strings.ReplaceAll(all, "SCAN starts", ""), "SCAN") || strings.Contains(all, "TEMP B-TREE") && !few {
			t.Errorf("%s\nis answered by\n%s", query, all)
		}
	}
}

func TestTheSameWordsAreFoundInPostsAndComments(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		said := func(key string, since time.Time) (yes bool) {
			e.viewCircle(func(tx circle.Tx) (err error) {
				yes, err = tx.WasSaid(key, since)
				return err
			})
			return yes
		}
		before := e.clock.now()
		p := &circle.Post{ID: id(), Text: "tea", TextKey: "k1"}
		e.inCircle(func(tx circle.Tx) error { return tx.InsertPost(p) })
		c := &circle.Comment{ID: id(), PostID: p.ID, Depth: 1, Text: "so", TextKey: "k2"}
		e.inCircle(func(tx circle.Tx) error { return tx.InsertComment(c) })
		if !said("k1", before) || !said("k2", before) || said("k3", before) {
			e.Error("a text is not found by its key, or another one is")
		}
		if said("k1", e.clock.now().Add(time.Hour)) {
			e.Error("a text is found that is older")
		}
		e.deleteComment(c)
		if said("k2", before) {
			e.Error("a deleted comment is found")
		}
	})
}
