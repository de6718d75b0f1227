package circle

import (
	"maps"

	"nodest/circle/rules"
	"nodest/internal/op"
)

// wireMember is a member of the circle. The id of the user is that of the account.
type wireMember struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	IsUser bool   `json:"isUser"`
}

func wireMemberOf(userID, id, name string) wireMember {
	return wireMember{wireID(userID, id), name, id == Me}
}

// wireID is the id of a member on the wire; fromWire reads one.
func wireID(userID, id string) string {
	if id == Me {
		return userID
	}
	return id
}

func fromWire(userID, id string) string {
	if id == userID {
		return Me
	}
	return id
}

type wirePost struct {
	ID           string         `json:"id"`
	Author       wireMember     `json:"author"`
	Kind         rules.Kind     `json:"kind,omitempty"`
	Text         string         `json:"text"`
	Images       []string       `json:"images"`     // ids of attachments
	ImageNames   []string       `json:"imageNames"` // names of their files, in the same order
	HasThoughts  bool           `json:"hasThoughts"`
	Thoughts     string         `json:"thoughts,omitempty"`
	Emotion      *rules.Emotion `json:"emotion,omitempty"`
	Evidence     []string       `json:"evidence,omitempty"`
	Favorite     bool           `json:"favorite"`
	Rating       *int           `json:"rating"`
	Liked        bool           `json:"liked"` // by the user
	Likes        []wireLike     `json:"likes"`
	CommentCount int            `json:"commentCount"`
	Comments     []wireComment  `json:"comments,omitempty"`
	CreatedAt    op.Time        `json:"createdAt"`
}

type wireComment struct {
	ID          string         `json:"id"`
	PostID      string         `json:"postId"`
	Author      wireMember     `json:"author"`
	ReplyTo     string         `json:"replyTo,omitempty"`
	Thread      string         `json:"thread"`
	Depth       int            `json:"depth"`
	Text        string         `json:"text"`
	HasThoughts bool           `json:"hasThoughts"`
	Thoughts    string         `json:"thoughts,omitempty"`
	Emotion     *rules.Emotion `json:"emotion,omitempty"`
	Emoticon    string         `json:"emoticon,omitempty"`
	Evidence    []string       `json:"evidence,omitempty"`
	End         bool           `json:"end"`
	Deleted     bool           `json:"deleted"`
	CreatedAt   op.Time        `json:"createdAt"`
}

type wireLike struct {
	Author      wireMember `json:"author"`
	HasThoughts bool       `json:"hasThoughts"`
	Thoughts    string     `json:"thoughts,omitempty"`
	CreatedAt   op.Time    `json:"createdAt"`
}

// Wire encodes what a user reads.
type Wire struct {
	UserID   string
	Thoughts bool // with what the authors did not say
}

func (w Wire) thoughts(text string) string {
	if w.Thoughts {
		return text
	}
	return ""
}

// Post returns a post in its wire format.
func (w Wire) Post(p *Post) any { return w.post(p) }

// Entry returns an entry of the feed in its wire format.
func (w Wire) Entry(e *Entry) any {
	out := w.post(e.Post)
	out.Comments = make([]wireComment, len(e.Comments))
	for i, c := range e.Comments {
		out.Comments[i] = w.comment(c)
	}
	return out
}

func (w Wire) post(p *Post) wirePost {
	out := wirePost{
		ID: p.ID, Author: wireMemberOf(w.UserID, p.AuthorID, p.AuthorName), Kind: p.Kind, Text: p.Text, Images: make([]string, len(p.Images)), ImageNames: make([]string, len(p.Images)),
		HasThoughts: p.Thoughts != "", Thoughts: w.thoughts(p.Thoughts), Emotion: p.Emotion, Evidence: p.Evidence,
		Favorite: p.Favorite, Likes: make([]wireLike, len(p.Likes)), CommentCount: p.Comments, CreatedAt: op.Time(p.CreatedAt),
	}
	for i, image := range p.Images {
		out.Images[i], out.ImageNames[i] = image.ID, image.Name
	}
	if p.Rating > 0 {
		out.Rating = &p.Rating
	}
	for i, l := range p.Likes {
		out.Likes[i] = w.like(&l)
		out.Liked = out.Liked || l.AuthorID == Me
	}
	return out
}

// Comment returns a comment in its wire format. Of a deleted one, only its place and its
// author are left.
func (w Wire) Comment(c *Comment) any { return w.comment(c) }

func (w Wire) comment(c *Comment) wireComment {
	out := wireComment{
		ID: c.ID, PostID: c.PostID, Author: wireMemberOf(w.UserID, c.AuthorID, c.AuthorName), ReplyTo: c.ReplyTo, Thread: c.Thread,
		Depth: c.Depth, End: c.End, Deleted: c.DeletedAt != nil, CreatedAt: op.Time(c.CreatedAt),
	}
	if out.Deleted {
		return out
	}
	out.Text, out.HasThoughts, out.Thoughts = c.Text, c.Thoughts != "", w.thoughts(c.Thoughts)
	out.Emotion, out.Emoticon, out.Evidence = c.Emotion, c.Emoticon, c.Evidence
	return out
}

func (w Wire) like(l *Like) wireLike {
	return wireLike{wireMemberOf(w.UserID, l.AuthorID, l.AuthorName), l.Thoughts != "", w.thoughts(l.Thoughts), op.Time(l.CreatedAt)}
}

type wireTurn struct {
	ID          string       `json:"id"`
	CharacterID string       `json:"characterId"`
	PostID      string       `json:"postId,omitempty"`
	CommentID   string       `json:"commentId,omitempty"`
	Slot        string       `json:"slot,omitempty"`
	Day         string       `json:"day,omitempty"`
	Reason      rules.Reason `json:"reason"`
	State       TurnState    `json:"state"`
	Note        rules.Note   `json:"note,omitempty"`
	Error       *op.Failure  `json:"error,omitempty"`
	Calls       int64        `json:"calls"`
	Tokens      int64        `json:"tokens"`
	DueAt       op.Time      `json:"dueAt"`
	CreatedAt   op.Time      `json:"createdAt"`
	EndedAt     *op.Time     `json:"endedAt"`
}

// WireTurn returns a turn in its wire format.
func WireTurn(t *Turn) any {
	return wireTurn{
		t.ID, t.CharacterID, t.PostID, t.CommentID, t.Slot, t.Day, t.Reason, t.State, t.Note, t.Error, t.Calls, t.Tokens,
		op.Time(t.DueAt), op.Time(t.CreatedAt), op.OptionalTime(t.EndedAt),
	}
}

type wireRelation struct {
	CharacterID  string  `json:"characterId"`
	TargetID     string  `json:"targetId"`
	Strength     int     `json:"strength"`
	Type         string  `json:"type"`
	Kept         bool    `json:"kept"`
	Description  string  `json:"description"`
	Interactions int64   `json:"interactions"`
	UpdatedAt    op.Time `json:"updatedAt"`
}

// Relation returns a relationship in its wire format.
func (w Wire) Relation(r *Relation) any {
	return wireRelation{r.CharacterID, wireID(w.UserID, r.TargetID), r.Strength, r.Type, r.Kept, r.Description, r.Interactions, op.Time(r.UpdatedAt)}
}

// Graph returns relationships in their wire format.
func (w Wire) Graph(g *Graph) any {
	type node struct {
		wireMember
		TakesPart bool `json:"takesPart"`
	}
	nodes, edges := make([]node, len(g.Members)), make([]any, len(g.Relations))
	for i, m := range g.Members {
		nodes[i] = node{wireMemberOf(w.UserID, m.ID, m.Name), m.TakesPart}
	}
	for i, r := range g.Relations {
		edges[i] = w.Relation(r)
	}
	unfit := make(map[string]rules.Unfit, len(g.Unfit))
	maps.Copy(unfit, g.Unfit)
	return map[string]any{"nodes": nodes, "edges": edges, "unfit": unfit}
}

type wireItem struct {
	ID        string     `json:"id"`
	Sender    wireMember `json:"sender"`
	Type      string     `json:"type"`
	Text      string     `json:"text"`
	ContextID string     `json:"contextId,omitempty"`
	Context   string     `json:"context,omitempty"`
	Read      bool       `json:"read"`
	CreatedAt op.Time    `json:"createdAt"`
}

// Item returns an entry of a message box in its wire format.
func (w Wire) Item(i *Item) any {
	return wireItem{
		i.ID, wireMemberOf(w.UserID, i.SenderID, i.SenderName), i.Type, i.Text, i.ContextID, i.Context, i.ReadAt != nil, op.Time(i.CreatedAt),
	}
}

type wireAction struct {
	ID          string   `json:"id"`
	CharacterID string   `json:"characterId"`
	TargetID    string   `json:"targetId"`
	Type        string   `json:"type"`
	Text        string   `json:"text"`
	State       string   `json:"state"`
	ExpiresAt   op.Time  `json:"expiresAt"`
	CreatedAt   op.Time  `json:"createdAt"`
	EndedAt     *op.Time `json:"endedAt"`
}

// Action returns an action in its wire format.
func (w Wire) Action(a *Action) any {
	return wireAction{
		a.ID, a.CharacterID, wireID(w.UserID, a.TargetID), a.Type, a.Text, a.State,
		op.Time(a.ExpiresAt), op.Time(a.CreatedAt), op.OptionalTime(a.EndedAt),
	}
}

// WireState is the state of the circle in its wire format.
type WireState struct {
	Settings
	LookedAt  *op.Time `json:"lookedAt"`
	AsleepAt  *op.Time `json:"asleepAt"`
	UpdatedAt *op.Time `json:"updatedAt"` // null = the settings were never stored
}

// WireStateOf returns the state in its wire format.
func WireStateOf(s *State) WireState {
	w := WireState{Settings: s.Settings, AsleepAt: op.OptionalTime(s.AsleepAt)}
	if !s.LookedAt.IsZero() {
		w.LookedAt = op.OptionalTime(&s.LookedAt)
	}
	if !s.UpdatedAt.IsZero() {
		w.UpdatedAt = op.OptionalTime(&s.UpdatedAt)
	}
	return w
}

// WireCost returns what the circle costs in its wire format.
func WireCost(c *Cost) any {
	type day struct {
		Day     string `json:"day"`
		Calls   int64  `json:"calls"`
		Tokens  int64  `json:"tokens"`
		LeftOut int64  `json:"leftOut"`
	}
	days := make([]day, len(c.Days))
	for i, s := range c.Days {
		days[i] = day{s.Day, s.Calls, s.Tokens, s.LeftOut}
	}
	return map[string]any{"today": c.Today, "days": days, "callsPerDay": c.CallsPerDay, "tokensPerDay": c.TokensPerDay}
}
