package store_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"nodest/circle"
	"nodest/circle/rules"
	"nodest/internal/attachment"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/nodest"
	"nodest/store"
)

func TestAPostIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ada := e.member("")
		var images []circle.Image
		for i := range 3 {
			a := &attachment.Attachment{ID: id(), Name: fmt.Sprintf("%d.png", i)}
			e.update(func(tx nodest.Tx) error { return store.Attachments(tx).InsertAttachment(a, nil) })
			images = append([]circle.Image{{ID: a.ID, Name: a.Name}}, images...) // not in the order of their ids
		}
		p := &circle.Post{
			ID: id(), AuthorID: ada, AuthorName: "Ada", Kind: "memory", Text: "tea \x00 茶", Images: images, Thoughts: "hm",
			Emotion: &rules.Emotion{Type: "positive", Intensity: 0.5}, Evidence: []string{"a", "b"},
		}
		likes := []circle.Like{{PostID: p.ID, AuthorID: ada, AuthorName: "Ada", Thoughts: "mine"}, {PostID: p.ID, AuthorName: "Eve"}}
		e.inCircle(func(tx circle.Tx) error { return tx.InsertPost(p) })
		for i := range likes {
			e.inCircle(func(tx circle.Tx) error { return errOf(tx.PutLike(&likes[i])) })
		}
		e.comment(p, circle.Me, "")
		want := *p
		want.Comments, want.Likes, want.Emotion = 1, likes, nil
		e.viewCircle(func(tx circle.Tx) error {
			got, err := tx.Post(p.ID)
			if err != nil {
				return err
			}
			e.equal("emotion", *got.Emotion, *p.Emotion)
			got.Emotion = nil
			e.equal("post", *got, want)
			return nil
		})
		e.update(func(tx nodest.Tx) error { return store.Attachments(tx).DeleteAttachment(images[1].ID) })
		e.viewCircle(func(tx circle.Tx) error {
			posts, _, err := tx.Posts(circle.PostFilter{}, "", 5)
			e.equal("images after one was deleted", posts[0].Images, []circle.Image{images[0], images[2]})
			return err
		})
	})
}

func TestTheFeedIsPagedAndFiltered(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ada := e.member("")
		var all []string // newest first
		for i := range 7 {
			author := []string{circle.Me, ada}[i%2]
			all = append([]string{e.post(author).ID}, all...)
		}
		since := e.clock.now().Add(-2 * time.Second)
		favorite := &circle.Post{ID: all[4], Favorite: true, Rating: 3}
		now := e.clock.now()
		e.inCircle(func(tx circle.Tx) error { return tx.UpdatePost(favorite) })
		e.inCircle(func(tx circle.Tx) error { return tx.UpdatePost(&circle.Post{ID: all[1], DeletedAt: &now}) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return store.Circle(tx).UpdatePost(&circle.Post{ID: all[1]}) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return errOf(store.Circle(tx).Post(all[1])) })
		me := circle.Me
		e.viewCircle(func(tx circle.Tx) error {
			for _, tt := range []struct {
				what string
				f    circle.PostFilter
				want []string
			}{
				{"all", circle.PostFilter{}, []string{all[0], all[2], all[3], all[4], all[5], all[6]}},
				{"the user's", circle.PostFilter{AuthorID: &me}, []string{all[0], all[2], all[4], all[6]}},
				{"a character's", circle.PostFilter{AuthorID: &ada}, []string{all[3], all[5]}},
				{"favourites", circle.PostFilter{Favorite: true}, []string{all[4]}},
				{"new ones", circle.PostFilter{Since: since}, []string{all[0], all[2]}},
			} {
				var got []string
				for cursor, first := "", true; first || cursor != ""; first = false {
					posts, next, err := tx.Posts(tt.f, cursor, 2)
					if err != nil {
						return err
					}
					got, cursor = append(got, postIDs(posts)...), next
				}
				e.equal(tt.what, got, tt.want)
			}
			p, err := tx.Post(all[4])
			e.equal("rating", p.Rating, 3)
			return err
		})
	})
}

func TestADeletedCommentStaysWhileItHasLiveReplies(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		p, other := e.post(circle.Me), e.post(circle.Me)
		a := e.comment(p, circle.Me, "")
		b := e.comment(p, circle.Me, a.ID)
		c := e.comment(p, circle.Me, b.ID)
		d := e.comment(other, circle.Me, "")
		lone := e.comment(p, circle.Me, "")
		for _, gone := range []*circle.Comment{a, b, lone} {
			e.deleteComment(gone)
		}
		e.equal("comments", e.comments(0, p.ID, other.ID), []string{a.ID, b.ID, c.ID, d.ID})
		e.equal("comments of no post", e.comments(0), []string{})
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return errOf(store.Circle(tx).Comment(a.ID)) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return store.Circle(tx).UpdateComment(a) })
		e.viewCircle(func(tx circle.Tx) error {
			got, err := tx.Post(p.ID)
			e.equal("count", got.Comments, 1)
			return err
		})
		e.deleteComment(c)
		e.equal("comments", e.comments(0, p.ID, other.ID), []string{d.ID})
		now := e.clock.now()
		e.inCircle(func(tx circle.Tx) error { return tx.UpdatePost(&circle.Post{ID: other.ID, DeletedAt: &now}) })
		e.equal("comments of a deleted post", e.comments(0, other.ID), []string{})
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return errOf(store.Circle(tx).Comment(d.ID)) })
		e.refused(fault.NotFound, func(tx nodest.Tx) error {
			return store.Circle(tx).InsertComment(&circle.Comment{ID: id(), PostID: other.ID})
		})
		e.refused(fault.NotFound, func(tx nodest.Tx) error { return errOf(store.Circle(tx).PutLike(&circle.Like{PostID: other.ID})) })
	})
}

func TestTheNewestCommentsOfEachPostAreRead(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		first, second, none := e.post(circle.Me), e.post(circle.Me), e.post(circle.Me)
		var of [2][]string
		for i := range 5 {
			for j, p := range []*circle.Post{first, second} {
				if j == 0 || i < 2 {
					of[j] = append(of[j], e.comment(p, circle.Me, "").ID)
				}
			}
		}
		e.deleteComment(&circle.Comment{ID: of[0][4]})
		e.equal("comments", e.comments(3, first.ID, second.ID, none.ID), []string{of[1][0], of[0][1], of[1][1], of[0][2], of[0][3]})
	})
}

func TestEachAuthorLikesAPostOnce(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ada, p := e.member(""), e.post(circle.Me)
		for i, want := range []bool{true, false} {
			e.inCircle(func(tx circle.Tx) error {
				added, err := tx.PutLike(&circle.Like{PostID: p.ID, AuthorID: ada, Thoughts: fmt.Sprint(i)})
				e.equal("added", added, want)
				return err
			})
		}
		for _, want := range []bool{true, false} {
			e.inCircle(func(tx circle.Tx) error {
				deleted, err := tx.DeleteLike(p.ID, ada)
				e.equal("deleted", deleted, want)
				return err
			})
		}
	})
}

func TestConcurrentChangesOfAPostAreAllKept(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		for range 4 {
			p := e.post(circle.Me)
			var group sync.WaitGroup
			for _, change := range []func(p *circle.Post){
				func(p *circle.Post) { p.Favorite = true }, func(p *circle.Post) { p.Rating = 4 },
			} {
				group.Go(func() {
					err := e.db.Circle().Update(context.Background(), e.user, func(tx circle.Tx) error {
						p, err := tx.Post(p.ID)
						if err != nil {
							return err
						}
						change(p)
						return tx.UpdatePost(p)
					})
					if err != nil {
						e.Error(err)
					}
				})
			}
			group.Wait()
			e.viewCircle(func(tx circle.Tx) error {
				got, err := tx.Post(p.ID)
				e.equal("favourite and rated", got.Favorite && got.Rating == 4, true)
				return err
			})
		}
	})
}

func TestADeletedCharacterLeavesTheCircle(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ada, eve := e.member(""), e.member("")
		mine, hers := e.post(circle.Me), e.post(ada)
		question := e.comment(mine, ada, "")
		answer := e.comment(mine, eve, question.ID)
		e.comment(mine, ada, answer.ID)
		own, other := &circle.Turn{ID: id(), CharacterID: ada, PostID: mine.ID, CommentID: answer.ID}, &circle.Turn{ID: id(), CharacterID: eve, PostID: mine.ID}
		ended := &circle.Turn{ID: id(), CharacterID: ada, PostID: mine.ID, State: circle.TurnDone}
		e.inCircle(func(tx circle.Tx) error {
			for _, err := range []error{
				errOf(tx.PutLike(&circle.Like{PostID: mine.ID, AuthorID: ada})), errOf(tx.PutLike(&circle.Like{PostID: mine.ID})),
				tx.PutRelation(&circle.Relation{CharacterID: ada, TargetID: eve}), tx.PutRelation(&circle.Relation{CharacterID: eve, TargetID: ada}),
				tx.PutRelation(&circle.Relation{CharacterID: eve}),
				tx.PutItem(&circle.Item{ID: id(), CharacterID: ada}), tx.PutItem(&circle.Item{ID: id(), CharacterID: eve, SenderID: ada}),
				tx.InsertAction(&circle.Action{ID: id(), CharacterID: ada}), tx.InsertAction(&circle.Action{ID: id(), CharacterID: eve, TargetID: ada}),
				tx.InsertAction(&circle.Action{ID: id(), CharacterID: eve}),
				tx.PutPlan(&circle.Plan{CharacterID: ada, Day: "2026-03-14"}), tx.PutPlan(&circle.Plan{CharacterID: eve, Day: "2026-03-14"}),
			} {
				if err != nil {
					return err
				}
			}
			for _, turn := range []*circle.Turn{own, other, ended} {
				if turn.State == "" {
					turn.State = circle.TurnPlanned
				}
				turn.DueAt = start
				if _, err := tx.InsertTurn(turn); err != nil {
					return err
				}
				if err := tx.Jobs.Enqueue(jobs.Spec{Kind: circle.JobReact, Subject: turn.ID}); err != nil {
					return err
				}
			}
			return tx.Jobs.Enqueue(jobs.Spec{Kind: circle.JobReview, Subject: ada})
		})
		e.update(func(tx nodest.Tx) error { return tx.Characters.DeleteCharacter(ada) })
		left := count(e, e.user)
		for table, want := range map[string]int64{
			"circle_posts": 2, "circle_comments": 3, "circle_likes": 1, "circle_relations": 1, "circle_items": 1, "circle_actions": 1,
			"circle_plans": 1, "circle_turns": 2,
		} {
			e.equal("rows of "+table, left[table], want)
		}
		e.equal("comments", e.comments(0, mine.ID, hers.ID), []string{question.ID, answer.ID})
		e.viewCircle(func(tx circle.Tx) error {
			posts, _, err := tx.Posts(circle.PostFilter{}, "", 5)
			if err != nil {
				return err
			}
			e.equal("posts", postIDs(posts), []string{mine.ID})
			e.equal("comments of the post", posts[0].Comments, 1)
			open, _, err := tx.Jobs.Jobs(jobs.Filter{Open: true}, "", 9)
			var subjects []string
			for _, j := range open {
				subjects = append(subjects, j.Subject)
			}
			e.equal("open jobs", len(subjects), 2) // those of the ended turn and of the other character
			return err
		})
		e.clock.advance(31 * day)
		e.equal("removed", e.maintain(), store.Removed{"posts": 1, "comments": 2, "characters": 1, "jobs": 2})
	})
}

func TestDeletedPostsAndCommentsArePurged(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		image, unused := &attachment.Attachment{ID: id()}, &attachment.Attachment{ID: id()}
		for _, a := range []*attachment.Attachment{image, unused} {
			e.update(func(tx nodest.Tx) error { return store.Attachments(tx).InsertAttachment(a, nil) })
		}
		p, gone := e.post(circle.Me), e.post(circle.Me, image.ID)
		e.comment(gone, circle.Me, "")
		a := e.comment(p, circle.Me, "")
		b := e.comment(p, circle.Me, a.ID)
		c := e.comment(p, circle.Me, "")
		d := e.comment(p, circle.Me, c.ID)
		for _, comment := range []*circle.Comment{a, c, d} {
			e.deleteComment(comment)
		}
		now := e.clock.now()
		e.inCircle(func(tx circle.Tx) error { return tx.UpdatePost(&circle.Post{ID: gone.ID, DeletedAt: &now}) })
		e.clock.advance(day - time.Hour)
		e.equal("removed at once", e.maintain(), store.Removed{})
		e.clock.advance(time.Hour)
		e.equal("removed after a day", e.maintain(), store.Removed{"attachments": 1})
		e.clock.advance(30 * day)
		// Two of three comments are gone and one, which has a reply, is empty.
		e.equal("removed after 30 days", e.maintain()["comments"], 3)
		e.equal("comments", e.comments(0, p.ID), []string{a.ID, b.ID})
		e.viewCircle(func(tx circle.Tx) error {
			comments, err := tx.Comments(0, p.ID)
			e.equal("texts", comments[0].Text+"|"+comments[1].Text, "|so")
			return err
		})
		left := count(e, e.user)
		e.equal("posts, images and attachments", []int64{left["circle_posts"], left["circle_images"], left["attachments"]}, []int64{1, 0, 0})
	})
}
