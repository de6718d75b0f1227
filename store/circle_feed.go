package store

import (
	"cmp"
	"slices"
	"time"

	"nodest/circle"
	"nodest/store/sqldb"
)

// Circle returns the store of circle.Service.
func (db *DB) Circle() circle.Store { return part[circle.Tx]{db, (*tx).forCircle} }

// forCircle returns t as package circle has it.
func (t *tx) forCircle() circle.Tx {
	return circle.Tx{
		Tx: t, Jobs: t.jobs, Characters: t.forCharacters(), Memory: t.forMemory(), Attachments: t.forAttachments(),
		FeedTx: t.circle, TurnTx: t.circle, RelationTx: t.circle, StateTx: t.circle,
	}
}

// circleTx stores the social circle.
type circleTx struct{ *tx }

type postRow struct {
	circle.Post `db:"-Images -Likes"`
	UserID      string
}

type imageRow struct {
	UserID, PostID string
	Position       int
	AttachmentID   string
}

type commentRow struct {
	circle.Comment `db:"ReplyTo=reply_to_id Thread=thread_id End=is_end"`
	UserID         string
}

type likeRow struct {
	circle.Like
	UserID string
}

// withMembers returns the session for statements about members of the circle: each returns
// fault.NotFound for a character that is not there, or is not the user's.
func (t circleTx) withMembers(ids ...string) *sqldb.Session {
	for _, id := range ids {
		if id == circle.Me {
			continue
		}
		if err := t.characters.owns(id); err != nil {
			return t.Unless(err)
		}
	}
	return t.Session
}

// InsertPost stores a new post; fault.NotFound for an image that is not there.
func (t circleTx) InsertPost(p *circle.Post) error {
	t.fillTimes(&p.CreatedAt)
	row := &postRow{*p, t.userID}
	row.Comments = 0
	if err := t.withMembers(p.AuthorID).Insert("circle_posts", row); err != nil {
		return err
	}
	images := make([]*imageRow, len(p.Images))
	for i, image := range p.Images {
		if err := t.Require("attachment", "SELECT 1 FROM attachments WHERE user_id = ? AND id = ?", t.userID, image.ID); err != nil {
			return err
		}
		images[i] = &imageRow{t.userID, p.ID, i, image.ID}
	}
	return t.Insert("circle_images", images)
}

func (t circleTx) Post(id string) (*circle.Post, error) {
	query := "SELECT * FROM circle_posts WHERE user_id = ? AND id = ? AND deleted_at IS NULL"
	if t.Writable() == nil {
		query += t.ForNoKeyUpdate()
	}
	row, err := sqldb.Get[postRow](t, "post", query, t.userID, id)
	if err != nil {
		return nil, err
	}
	return &row.Post, t.fillPosts(&row.Post)
}

func (t circleTx) Posts(f circle.PostFilter, cursor string, limit int) ([]*circle.Post, string, error) {
	where, args := "user_id = ? AND deleted_at IS NULL", []any{t.userID}
	if f.AuthorID != nil {
		if *f.AuthorID == circle.Me {
			where += " AND author_id IS NULL"
		} else {
			where, args = where+" AND author_id = ?", append(args, *f.AuthorID)
		}
	}
	if f.Favorite {
		where += " AND favorite"
	}
	if !f.Since.IsZero() {
		where, args = where+" AND created_at >= ?", append(args, f.Since)
	}
	if !f.Before.IsZero() {
		where, args = where+" AND created_at < ?", append(args, f.Before)
	}
	posts, next, err := sqldb.Page(t, func(r *postRow) *circle.Post { return &r.Post }, "created_at", cursor, limit,
		"SELECT * FROM circle_posts WHERE "+where, args...)
	if err != nil {
		return nil, "", err
	}
	return posts, next, t.fillPosts(posts...)
}

// fillPosts reads the images and likes of posts.
func (t circleTx) fillPosts(posts ...*circle.Post) error {
	if len(posts) == 0 {
		return nil
	}
	ids, byID := make([]string, len(posts)), make(map[string]*circle.Post, len(posts))
	for i, p := range posts {
		ids[i], byID[p.ID] = p.ID, p
	}
	type named struct {
		circle.Image
		PostID string
	}
	err := sqldb.Each(t, func(r *named) error {
		p := byID[r.PostID]
		p.Images = append(p.Images, r.Image)
		return nil
	}, "SELECT i.post_id, a.id, a.name FROM circle_images i JOIN attachments a ON a.user_id = i.user_id AND a.id = i.attachment_id"+
		" WHERE i.user_id = ? AND i.post_id IN (?) ORDER BY i.post_id, i.position", t.userID, ids)
	if err != nil {
		return err
	}
	return sqldb.Each(t, func(r *likeRow) error {
		p := byID[r.PostID]
		p.Likes = append(p.Likes, r.Like)
		return nil
	}, "SELECT * FROM circle_likes WHERE user_id = ? AND post_id IN (?) ORDER BY created_at, author_id NULLS FIRST", t.userID, ids)
}

// UpdatePost stores what can change. A deletion hides the post; maintenance removes it
// later.
func (t circleTx) UpdatePost(p *circle.Post) error {
	if p.DeletedAt != nil {
		if err := t.dropReplies(t.userID, p.ID); err != nil {
			return err
		}
	}
	return t.ExecOne("post", "UPDATE circle_posts SET favorite = ?, rating = ?, deleted_at = ? WHERE user_id = ? AND id = ? AND deleted_at IS NULL",
		p.Favorite, p.Rating, p.DeletedAt, t.userID, p.ID)
}

func (t circleTx) WasSaid(textKey string, since time.Time) (bool, error) {
	n, err := sqldb.Value[int64](t, `SELECT COUNT(*) FROM (
		SELECT 1 FROM circle_posts WHERE user_id = ? AND text_key = ? AND created_at >= ? AND deleted_at IS NULL
		UNION ALL SELECT 1 FROM circle_comments WHERE user_id = ? AND text_key = ? AND created_at >= ? AND deleted_at IS NULL) AS same`,
		t.userID, textKey, since, t.userID, textKey, since)
	return n > 0, err
}

// countComments changes the number of comments of a post.
func (t circleTx) countComments(postID string, by int) error {
	return t.ExecOne("post", "UPDATE circle_posts SET comments = comments + ? WHERE user_id = ? AND id = ? AND deleted_at IS NULL", by, t.userID, postID)
}

func (t circleTx) InsertComment(c *circle.Comment) error {
	if err := t.countComments(c.PostID, 1); err != nil {
		return err
	}
	t.fillTimes(&c.CreatedAt)
	return t.withMembers(c.AuthorID).Insert("circle_comments", &commentRow{*c, t.userID})
}

// inLivingPost is a condition on comments c.
const inLivingPost = "EXISTS (SELECT 1 FROM circle_posts p WHERE p.user_id = c.user_id AND p.id = c.post_id AND p.deleted_at IS NULL)"

// Comment returns one that is not deleted, of such a post.
func (t circleTx) Comment(id string) (*circle.Comment, error) {
	return sqldb.Find(t, "comment", (*commentRow).comment, "SELECT c.* FROM circle_comments c"+
		" WHERE c.user_id = ? AND c.id = ? AND c.deleted_at IS NULL AND "+inLivingPost, t.userID, id)
}

func (r *commentRow) comment() *circle.Comment { return &r.Comment }

// latestComments reads comments since the time of the oldest one to return of each post,
// in one search of the index for each. Its arguments are the number of them less one, the
// user and the posts, and the user.
const latestComments = `WITH starts AS MATERIALIZED (
		SELECT p.id, COALESCE((SELECT x.created_at FROM circle_comments x WHERE x.user_id = p.user_id AND x.post_id = p.id AND x.deleted_at IS NULL
			ORDER BY x.created_at DESC, x.id DESC LIMIT 1 OFFSET ?), 0) AS since
		FROM circle_posts p WHERE p.user_id = ? AND p.id IN (?) AND p.deleted_at IS NULL)
	SELECT c.* FROM starts CROSS JOIN circle_comments c
	WHERE c.user_id = ? AND c.post_id = starts.id AND c.created_at >= starts.since ORDER BY c.created_at, c.id`

// allComments has the user and the posts as arguments.
const allComments = "SELECT c.* FROM circle_comments c WHERE c.user_id = ? AND c.post_id IN (?) AND " + inLivingPost + " ORDER BY c.created_at, c.id"

func (t circleTx) Comments(latest int, postIDs ...string) ([]*circle.Comment, error) {
	if len(postIDs) == 0 {
		return []*circle.Comment{}, nil
	}
	query, args := allComments, []any{t.userID, postIDs}
	if latest > 0 {
		query, args = latestComments, []any{latest - 1, t.userID, postIDs, t.userID}
	}
	comments, err := sqldb.Map(t, (*commentRow).comment, query, args...)
	if err != nil {
		return nil, err
	}
	// A reply is newer than what it answers, so one pass from the end knows which deleted
	// comments are needed.
	replied, of := map[string]bool{}, map[string]int{}
	for i, c := range slices.Backward(comments) {
		if c.DeletedAt != nil && !replied[c.ID] || latest > 0 && of[c.PostID] == latest {
			comments[i] = nil
			continue
		}
		replied[c.ReplyTo] = true
		of[c.PostID]++
	}
	return slices.DeleteFunc(comments, func(c *circle.Comment) bool { return c == nil }), nil
}

func (t circleTx) UpdateComment(c *circle.Comment) error {
	postID, err := sqldb.Get[string](t, "comment", "UPDATE circle_comments SET deleted_at = ?, is_end = ?"+
		" WHERE user_id = ? AND id = ? AND deleted_at IS NULL RETURNING post_id", c.DeletedAt, c.End, t.userID, c.ID)
	if err != nil || c.DeletedAt == nil {
		return err
	}
	return cmp.Or(t.dropReplies(t.userID, c.ID), t.countComments(*postID, -1))
}

func (t circleTx) PutLike(l *circle.Like) (added bool, err error) {
	if err := t.ownsPost(l.PostID); err != nil {
		return false, err
	}
	t.fillTimes(&l.CreatedAt)
	n, err := t.withMembers(l.AuthorID).InsertNew("circle_likes", &likeRow{*l, t.userID}, "ON CONFLICT DO NOTHING")
	return n > 0, err
}

func (t circleTx) DeleteLike(postID, authorID string) (deleted bool, err error) {
	if err := t.ownsPost(postID); err != nil {
		return false, err
	}
	n, err := t.Exec("DELETE FROM circle_likes WHERE user_id = ? AND post_id = ? AND author_id IS NOT DISTINCT FROM ?", t.userID, postID, authorID)
	return n > 0, err
}

// ownsPost returns fault.NotFound for a post that is deleted, or is not the user's.
func (t circleTx) ownsPost(id string) error {
	return t.Require("post", "SELECT 1 FROM circle_posts WHERE user_id = ? AND id = ? AND deleted_at IS NULL", t.userID, id)
}

// leaveCircle removes a deleted character from the circle: it hides its posts and comments
// and removes what else it has there.
func (t circleTx) leaveCircle(id string) error {
	err := t.jobs.cancel("kind LIKE ? AND (subject = ? OR subject IN (SELECT "+t.IDText("c.id")+" FROM circle_turns c WHERE c.user_id = ? AND c.character_id = ? AND c.state = ?))",
		circleJobs, id, t.userID, id, circle.TurnPlanned)
	if err != nil {
		return err
	}
	now := t.Now()
	for _, statement := range []struct {
		query string
		args  []any
	}{
		{"UPDATE circle_posts SET deleted_at = ? WHERE user_id = ? AND author_id = ? AND deleted_at IS NULL", []any{now, t.userID, id}},
		{"UPDATE circle_posts SET comments = comments - (SELECT COUNT(*) FROM circle_comments c WHERE c.user_id = circle_posts.user_id" +
			" AND c.post_id = circle_posts.id AND c.author_id = ? AND c.deleted_at IS NULL)" +
			" WHERE user_id = ? AND id IN (SELECT c.post_id FROM circle_comments c WHERE c.user_id = ? AND c.author_id = ?)",
			[]any{id, t.userID, t.userID, id}},
		{"UPDATE circle_comments SET deleted_at = ? WHERE user_id = ? AND author_id = ? AND deleted_at IS NULL", []any{now, t.userID, id}},
		{"DELETE FROM circle_likes WHERE user_id = ? AND author_id = ?", []any{t.userID, id}},
		{"DELETE FROM circle_relations WHERE user_id = ? AND character_id = ?", []any{t.userID, id}},
		{"DELETE FROM circle_relations WHERE user_id = ? AND target_id = ?", []any{t.userID, id}},
		{"DELETE FROM circle_items WHERE user_id = ? AND character_id = ?", []any{t.userID, id}},
		{"DELETE FROM circle_actions WHERE user_id = ? AND (character_id = ? OR target_id = ?)", []any{t.userID, id, id}},
		{"DELETE FROM circle_plans WHERE user_id = ? AND character_id = ?", []any{t.userID, id}},
		{"DELETE FROM circle_turns WHERE user_id = ? AND character_id = ? AND state = ?", []any{t.userID, id, circle.TurnPlanned}},
	} {
		if err := t.Run(statement.query, statement.args...); err != nil {
			return err
		}
	}
	return nil
}

// circleJobs is how the names of jobs of the circle begin.
const circleJobs = "circle.%"

var circleRules = []rule{
	{"posts", "deleted posts and comments", deletedLife, "after the deletion", oldRows("circle_posts", "user_id, id", "c.deleted_at <= ?", 10)},
	{"comments", "", deletedLife, "", oldRows("circle_comments", "user_id, id", "c.deleted_at <= ? AND NOT EXISTS (SELECT 1 FROM circle_comments r"+
		" WHERE r.user_id = c.user_id AND r.post_id = c.post_id AND r.reply_to_id = c.id)", maintainBatch)},
	{"comments", "", deletedLife, "", oldComments},
	{"turns", "turns of the social circle", turnLife, "after their end", oldRows("circle_turns", "user_id, id", "c.ended_at <= ?", maintainBatch)},
	{"plans", "plans of the social circle", turnLife, "after their last change", oldRows("circle_plans", "user_id, character_id, day", "c.updated_at <= ?", maintainBatch)},
	{"attachments", "uploaded images that no post has", day, "", oldRows("attachments", "user_id, id", "c.created_at <= ?"+
		" AND NOT EXISTS (SELECT 1 FROM circle_images i WHERE i.user_id = c.user_id AND i.attachment_id = c.id)", 10)},
}

// turnLife is how long turns are kept after they have ended, and plans.
const turnLife = 90 * day

// oldComments empties the deleted comments that must stay because of replies.
func oldComments(s *session, life time.Duration) (int64, error) {
	return s.Exec("UPDATE circle_comments SET text = '', thoughts = '', author_name = '', emotion = NULL, emoticon = '', evidence = NULL"+
		" WHERE deleted_at <= ? AND (text <> '' OR thoughts <> '' OR emoticon <> '')", s.Now().Add(-life))
}
