package api

import (
	"context"
	"encoding/json"
	"net/http"

	"nodest/chat"
	"nodest/circle"
	"nodest/internal/op"
	"nodest/nodest"
)

// circleOperations are about the social circle. An operation without a command exists in REST only.
var circleOperations = []Operation{
	{Command: "circle.feed", Route: "GET /circle/posts", Data: takes(circleFeed)},
	{Command: "circle.post", Route: "POST /circle/posts", Status: http.StatusCreated, Key: true, Data: takes(func(ctx context.Context, c *Call, in circle.PostInput) (any, error) {
		return Result(wire(c.Call, true).Post)(c.Circle.Post(ctx, c.Call, in))
	})},
	{Route: "GET /circle/posts/:postId", Data: takes(func(ctx context.Context, c *Call, in circleReadData) (any, error) {
		return Result(wire(c.Call, in.Thoughts).Entry)(c.Circle.Read(ctx, c.UserID, in.PostID))
	})},
	{Command: "circle.delete", Key: true, Data: takes(circleDelete)}, // in REST, posts and comments have routes of their own
	{Route: "DELETE /circle/posts/:postId", Status: http.StatusNoContent, Data: takes(circleDeletePost)},
	{Command: "circle.comment", Route: "POST /circle/posts/:postId/comments", Status: http.StatusCreated, Key: true, Data: takes(func(ctx context.Context, c *Call, in circleCommentData) (any, error) {
		return Result(wire(c.Call, true).Comment)(c.Circle.Comment(ctx, c.Call, in.PostID, in.Text, in.ReplyTo))
	})},
	{Route: "DELETE /circle/posts/:postId/comments/:commentId", Status: http.StatusNoContent, Data: takes(circleDeleteComment)},
	{Command: "circle.like", Route: "PUT /circle/posts/:postId/like", Key: true, Data: takes(func(ctx context.Context, c *Call, in postData) (any, error) {
		return Result(wire(c.Call, false).Post)(c.Circle.Like(ctx, c.Call, in.PostID))
	})},
	{Command: "circle.unlike", Route: "DELETE /circle/posts/:postId/like", Key: true, Data: takes(func(ctx context.Context, c *Call, in postData) (any, error) {
		return Result(wire(c.Call, false).Post)(c.Circle.Unlike(ctx, c.Call, in.PostID))
	})},
	{Route: "PUT /circle/posts/:postId/favorite", Data: takes(func(ctx context.Context, c *Call, in postData) (any, error) {
		return Result(wire(c.Call, false).Post)(c.Circle.SetFavorite(ctx, c.Call, in.PostID, true))
	})},
	{Route: "DELETE /circle/posts/:postId/favorite", Data: takes(func(ctx context.Context, c *Call, in postData) (any, error) {
		return Result(wire(c.Call, false).Post)(c.Circle.SetFavorite(ctx, c.Call, in.PostID, false))
	})},
	{Route: "PUT /circle/posts/:postId/rating", Data: takes(func(ctx context.Context, c *Call, in circleRateData) (any, error) {
		return Result(wire(c.Call, false).Post)(c.Circle.Rate(ctx, c.Call, in.PostID, in.Rating))
	})},
	{Command: "circle.forward", Route: "POST /circle/posts/:postId/forward", Key: true, Starts: true, Data: takes(circleForward)},
	{Route: "GET /circle/posts/:postId/turns", Data: takes(func(ctx context.Context, c *Call, in circlePostTurnsData) (any, error) {
		return Pages(circle.WireTurn)(c.Circle.PostTurns(ctx, c.UserID, in.PostID, in.Cursor, int(in.Limit)))
	})},
	{Route: "GET /circle/turns", Data: takes(func(ctx context.Context, c *Call, in circleTurnsData) (any, error) {
		return Pages(circle.WireTurn)(c.Circle.Turns(ctx, c.UserID, in.CharacterID, in.State, in.Cursor, int(in.Limit)))
	})},
	{Route: "POST /circle/turns/:turnId/retry", Status: http.StatusAccepted, Data: takes(func(ctx context.Context, c *Call, in circleRetryData) (any, error) {
		return Result(circle.WireTurn)(c.Circle.Retry(ctx, c.Call, in.TurnID))
	})},
	{Route: "GET /circle/relationships", Data: takes(func(ctx context.Context, c *Call, in circleMemberData) (any, error) {
		return Result(wire(c.Call, false).Graph)(c.Circle.Relationships(ctx, c.UserID, in.CharacterID))
	})},
	{Route: "PATCH /circle/relationships/:characterId/:targetId", Data: takes(func(ctx context.Context, c *Call, in circleRelationData) (any, error) {
		return Result(wire(c.Call, false).Relation)(c.Circle.SetRelation(ctx, c.Call, in.CharacterID, in.TargetID, in.RelationPatch))
	})},
	{Route: "GET /circle/messagebox", Data: takes(func(ctx context.Context, c *Call, in circleMemberData) (any, error) {
		return List(wire(c.Call, false).Item)(c.Circle.MessageBox(ctx, c.UserID, in.CharacterID))
	})},
	{Route: "GET /circle/actions", Data: takes(func(ctx context.Context, c *Call, in circleActionsData) (any, error) {
		return Pages(wire(c.Call, false).Action)(c.Circle.Actions(ctx, c.UserID, in.CharacterID, in.Cursor, int(in.Limit)))
	})},
	{Route: "POST /circle/actions/:actionId", Data: takes(func(ctx context.Context, c *Call, in circleDecideData) (any, error) {
		return Result(wire(c.Call, false).Action)(c.Circle.Decide(ctx, c.Call, in.ActionID, in.Decision))
	})},
	{Route: "GET /circle/settings", Data: takes(func(ctx context.Context, c *Call, _ struct{}) (any, error) {
		return Result(circle.WireStateOf)(c.Circle.State(ctx, c.UserID))
	})},
	{Route: "PUT /circle/settings", Data: takes(func(ctx context.Context, c *Call, in circleSettingsData) (any, error) {
		return Result(circle.WireStateOf)(c.Circle.SetSettings(ctx, c.Call, in.Settings))
	})},
	{Route: "GET /circle/spend", Data: takes(func(ctx context.Context, c *Call, in circleCostData) (any, error) {
		return Result(circle.WireCost)(c.Circle.Cost(ctx, c.UserID, in.From, in.To))
	})},
	{Route: "POST /circle/characters/:id/init", Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return Result(func(j *circle.Joined) any { return j })(c.Circle.Join(ctx, c.Call, in.ID))
	})},
}

// wire encodes for the user of a call.
func wire(c *op.Call, thoughts bool) circle.Wire {
	return circle.Wire{UserID: c.UserID, Thoughts: thoughts}
}

type circleFeedData struct {
	AuthorID  string `json:"authorId,omitempty"`
	Favorites bool   `json:"favorites,omitempty"`
	Thoughts  bool   `json:"thoughts,omitempty"`
	pageData
}

func circleFeed(ctx context.Context, c *Call, in circleFeedData) (any, error) {
	filter := circle.FeedFilter{AuthorID: in.AuthorID, Favorites: in.Favorites}
	return Pages(wire(c.Call, in.Thoughts).Entry)(c.Circle.Feed(ctx, c.Call, filter, in.Cursor, int(in.Limit)))
}

type postData struct {
	PostID string `json:"postId"`
}

type circleReadData struct {
	postData
	Thoughts bool `json:"thoughts,omitempty"`
}

type circleDeleteData struct {
	postData
	CommentID *string `json:"commentId,omitempty"` // an empty one is no comment, and must not delete the post
}

func circleDelete(ctx context.Context, c *Call, in circleDeleteData) (any, error) {
	if in.CommentID != nil {
		return circleDeleteComment(ctx, c, in)
	}
	return circleDeletePost(ctx, c, in.postData)
}

func circleDeletePost(ctx context.Context, c *Call, in postData) (any, error) {
	return struct{}{}, c.Circle.DeletePost(ctx, c.Call, in.PostID)
}

func circleDeleteComment(ctx context.Context, c *Call, in circleDeleteData) (any, error) {
	return struct{}{}, c.Circle.DeleteComment(ctx, c.Call, in.PostID, *in.CommentID)
}

type circleCommentData struct {
	postData
	Text    string `json:"text"`
	ReplyTo string `json:"replyTo,omitempty"`
}

type circleRateData struct {
	postData
	Rating int `json:"rating"`
}

type circleForwardData struct {
	postData
	CharacterID string `json:"characterId"`
	Text        string `json:"text,omitempty"`
}

// circleForward sends a post into the newest conversation with a character, or into a new
// one. Each step has a key of its own: a repeated call does what is missing, and its message
// is that of the first call, whatever became of the post.
func circleForward(ctx context.Context, c *Call, in circleForwardData) (any, error) {
	message, err := c.Circle.Forwarded(ctx, c.Part("post"), in.PostID, in.CharacterID, in.Text)
	if err != nil {
		return nil, err
	}
	into, err := c.newestChat(ctx, c.Call, in.CharacterID)
	if err != nil {
		return nil, err
	}
	sent, err := c.Engine.Send(ctx, c.Call, nodest.SendInput{ConversationID: into, Text: message})
	if err != nil {
		return nil, err
	}
	return sentOf(sent.UserMessage, sent.Message, sent.GenerationID), c.Circle.NoteForward(ctx, c.Part("note"), in.PostID)
}

func (s *Services) newestChat(ctx context.Context, c *op.Call, characterID string) (id string, err error) {
	open := false
	found, err := s.Chats.Conversations(ctx, c.UserID, chat.ConversationFilter{CharacterID: characterID, Archived: &open}, "", 1)
	if err != nil {
		return "", err
	}
	if len(found.Items) > 0 {
		return found.Items[0].ID, nil
	}
	made, err := s.Chats.CreateConversation(ctx, c.Part("chat"), chat.ConversationInput{CharacterID: characterID})
	if err != nil {
		return "", err
	}
	return made.ID, nil
}

type circlePostTurnsData struct {
	postData
	pageData
}

type circleTurnsData struct {
	CharacterID string           `json:"characterId,omitempty"`
	State       circle.TurnState `json:"state,omitempty"`
	pageData
}

type circleRetryData struct {
	TurnID string `json:"turnId"`
}

type circleMemberData struct {
	CharacterID string `json:"characterId,omitempty"`
}

type circleRelationData struct {
	CharacterID string `json:"characterId"`
	TargetID    string `json:"targetId"`
	circle.RelationPatch
}

type circleActionsData struct {
	circleMemberData
	pageData
}

type circleDecideData struct {
	ActionID string `json:"actionId"`
	Decision string `json:"decision"`
}

// circleSettingsData may be the settings as they were read: what is not a setting is
// ignored. A setting that is not given has its default.
type circleSettingsData struct {
	circle.Settings
	LookedAt  json.RawMessage `json:"lookedAt,omitempty"`
	AsleepAt  json.RawMessage `json:"asleepAt,omitempty"`
	UpdatedAt json.RawMessage `json:"updatedAt,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (d *circleSettingsData) UnmarshalJSON(text []byte) error {
	type plain circleSettingsData
	given := plain{Settings: circle.DefaultSettings()}
	err := json.Unmarshal(text, &given)
	*d = circleSettingsData(given)
	return err
}

type circleCostData struct {
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}
