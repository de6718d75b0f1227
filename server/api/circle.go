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

// circleOperations are about the social circle. What has no command exists in REST only.
var circleOperations = []Operation{
	{Command: "circle.feed", Route: "GET /circle/posts", Data: takes(circleFeed)},
	{Command: "circle.post", Route: "POST /circle/posts", Status: http.StatusCreated, Key: true, Data: takes(circlePost)},
	{Route: "GET /circle/posts/:postId", Data: takes(circleRead)},
	{Command: "circle.delete", Key: true, Data: takes(circleDelete)}, // in REST, posts and comments have routes of their own
	{Route: "DELETE /circle/posts/:postId", Status: http.StatusNoContent, Data: takes(circleDeletePost)},
	{Command: "circle.comment", Route: "POST /circle/posts/:postId/comments", Status: http.StatusCreated, Key: true, Data: takes(circleComment)},
	{Route: "DELETE /circle/posts/:postId/comments/:commentId", Status: http.StatusNoContent, Data: takes(circleDeleteComment)},
	{Command: "circle.like", Route: "PUT /circle/posts/:postId/like", Key: true, Data: takes(circleLike)},
	{Command: "circle.unlike", Route: "DELETE /circle/posts/:postId/like", Key: true, Data: takes(circleUnlike)},
	{Route: "PUT /circle/posts/:postId/favorite", Data: takes(circleFavorite)},
	{Route: "DELETE /circle/posts/:postId/favorite", Data: takes(circleNoFavorite)},
	{Route: "PUT /circle/posts/:postId/rating", Data: takes(circleRate)},
	{Command: "circle.forward", Route: "POST /circle/posts/:postId/forward", Key: true, Starts: true, Data: takes(circleForward)},
	{Route: "GET /circle/posts/:postId/turns", Data: takes(circlePostTurns)},
	{Route: "GET /circle/turns", Data: takes(circleTurns)},
	{Route: "POST /circle/turns/:turnId/retry", Status: http.StatusAccepted, Data: takes(circleRetry)},
	{Route: "GET /circle/relationships", Data: takes(circleRelationships)},
	{Route: "PATCH /circle/relationships/:characterId/:targetId", Data: takes(circleSetRelation)},
	{Route: "GET /circle/messagebox", Data: takes(circleMessageBox)},
	{Route: "GET /circle/actions", Data: takes(circleActions)},
	{Route: "POST /circle/actions/:actionId", Data: takes(circleDecide)},
	{Route: "GET /circle/settings", Data: takes(circleSettings)},
	{Route: "PUT /circle/settings", Data: takes(circlePutSettings)},
	{Route: "GET /circle/spend", Data: takes(circleCost)},
	{Route: "POST /circle/characters/:id/init", Data: takes(circleJoin)},
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

func circleFeed(ctx context.Context, s *Services, c *op.Call, in circleFeedData) (any, error) {
	filter := circle.FeedFilter{AuthorID: in.AuthorID, Favorites: in.Favorites}
	return Pages(wire(c, in.Thoughts).Entry)(s.Circle.Feed(ctx, c, filter, in.Cursor, int(in.Limit)))
}

func circlePost(ctx context.Context, s *Services, c *op.Call, in circle.PostInput) (any, error) {
	return Result(wire(c, true).Post)(s.Circle.Post(ctx, c, in))
}

type postData struct {
	PostID string `json:"postId"`
}

type circleReadData struct {
	postData
	Thoughts bool `json:"thoughts,omitempty"`
}

func circleRead(ctx context.Context, s *Services, c *op.Call, in circleReadData) (any, error) {
	return Result(wire(c, in.Thoughts).Entry)(s.Circle.Read(ctx, c.UserID, in.PostID))
}

type circleDeleteData struct {
	postData
	CommentID *string `json:"commentId,omitempty"` // an empty one is no comment, and must not delete the post
}

func circleDelete(ctx context.Context, s *Services, c *op.Call, in circleDeleteData) (any, error) {
	if in.CommentID != nil {
		return circleDeleteComment(ctx, s, c, in)
	}
	return circleDeletePost(ctx, s, c, in.postData)
}

func circleDeletePost(ctx context.Context, s *Services, c *op.Call, in postData) (any, error) {
	return struct{}{}, s.Circle.DeletePost(ctx, c, in.PostID)
}

func circleDeleteComment(ctx context.Context, s *Services, c *op.Call, in circleDeleteData) (any, error) {
	return struct{}{}, s.Circle.DeleteComment(ctx, c, in.PostID, *in.CommentID)
}

type circleCommentData struct {
	postData
	Text    string `json:"text"`
	ReplyTo string `json:"replyTo,omitempty"`
}

func circleComment(ctx context.Context, s *Services, c *op.Call, in circleCommentData) (any, error) {
	return Result(wire(c, true).Comment)(s.Circle.Comment(ctx, c, in.PostID, in.Text, in.ReplyTo))
}

func circleLike(ctx context.Context, s *Services, c *op.Call, in postData) (any, error) {
	return Result(wire(c, false).Post)(s.Circle.Like(ctx, c, in.PostID))
}

func circleUnlike(ctx context.Context, s *Services, c *op.Call, in postData) (any, error) {
	return Result(wire(c, false).Post)(s.Circle.Unlike(ctx, c, in.PostID))
}

func circleFavorite(ctx context.Context, s *Services, c *op.Call, in postData) (any, error) {
	return Result(wire(c, false).Post)(s.Circle.SetFavorite(ctx, c, in.PostID, true))
}

func circleNoFavorite(ctx context.Context, s *Services, c *op.Call, in postData) (any, error) {
	return Result(wire(c, false).Post)(s.Circle.SetFavorite(ctx, c, in.PostID, false))
}

type circleRateData struct {
	postData
	Rating int `json:"rating"`
}

func circleRate(ctx context.Context, s *Services, c *op.Call, in circleRateData) (any, error) {
	return Result(wire(c, false).Post)(s.Circle.Rate(ctx, c, in.PostID, in.Rating))
}

type circleForwardData struct {
	postData
	CharacterID string `json:"characterId"`
	Text        string `json:"text,omitempty"`
}

// circleForward sends a post into the newest conversation with a character, or into a new
// one. Each step has a key of its own: a repeated call does what is missing, and its message
// is that of the first call, whatever became of the post.
func circleForward(ctx context.Context, s *Services, c *op.Call, in circleForwardData) (any, error) {
	message, err := s.Circle.Forwarded(ctx, c.Part("post"), in.PostID, in.CharacterID, in.Text)
	if err != nil {
		return nil, err
	}
	into, err := s.newestChat(ctx, c, in.CharacterID)
	if err != nil {
		return nil, err
	}
	sent, err := s.Engine.Send(ctx, c, nodest.SendInput{ConversationID: into, Text: message})
	if err != nil {
		return nil, err
	}
	return sentOf(sent.UserMessage, sent.Message, sent.GenerationID), s.Circle.NoteForward(ctx, c.Part("note"), in.PostID)
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

func circlePostTurns(ctx context.Context, s *Services, c *op.Call, in circlePostTurnsData) (any, error) {
	return Pages(circle.WireTurn)(s.Circle.PostTurns(ctx, c.UserID, in.PostID, in.Cursor, int(in.Limit)))
}

type circleTurnsData struct {
	CharacterID string           `json:"characterId,omitempty"`
	State       circle.TurnState `json:"state,omitempty"`
	pageData
}

func circleTurns(ctx context.Context, s *Services, c *op.Call, in circleTurnsData) (any, error) {
	return Pages(circle.WireTurn)(s.Circle.Turns(ctx, c.UserID, in.CharacterID, in.State, in.Cursor, int(in.Limit)))
}

type circleRetryData struct {
	TurnID string `json:"turnId"`
}

func circleRetry(ctx context.Context, s *Services, c *op.Call, in circleRetryData) (any, error) {
	return Result(circle.WireTurn)(s.Circle.Retry(ctx, c, in.TurnID))
}

type circleMemberData struct {
	CharacterID string `json:"characterId,omitempty"`
}

func circleRelationships(ctx context.Context, s *Services, c *op.Call, in circleMemberData) (any, error) {
	return Result(wire(c, false).Graph)(s.Circle.Relationships(ctx, c.UserID, in.CharacterID))
}

type circleRelationData struct {
	CharacterID string `json:"characterId"`
	TargetID    string `json:"targetId"`
	circle.RelationPatch
}

func circleSetRelation(ctx context.Context, s *Services, c *op.Call, in circleRelationData) (any, error) {
	return Result(wire(c, false).Relation)(s.Circle.SetRelation(ctx, c, in.CharacterID, in.TargetID, in.RelationPatch))
}

func circleMessageBox(ctx context.Context, s *Services, c *op.Call, in circleMemberData) (any, error) {
	return List(wire(c, false).Item)(s.Circle.MessageBox(ctx, c.UserID, in.CharacterID))
}

type circleActionsData struct {
	circleMemberData
	pageData
}

func circleActions(ctx context.Context, s *Services, c *op.Call, in circleActionsData) (any, error) {
	return Pages(wire(c, false).Action)(s.Circle.Actions(ctx, c.UserID, in.CharacterID, in.Cursor, int(in.Limit)))
}

type circleDecideData struct {
	ActionID string `json:"actionId"`
	Decision string `json:"decision"`
}

func circleDecide(ctx context.Context, s *Services, c *op.Call, in circleDecideData) (any, error) {
	return Result(wire(c, false).Action)(s.Circle.Decide(ctx, c, in.ActionID, in.Decision))
}

func circleSettings(ctx context.Context, s *Services, c *op.Call, _ struct{}) (any, error) {
	return Result(circle.WireStateOf)(s.Circle.State(ctx, c.UserID))
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

func circlePutSettings(ctx context.Context, s *Services, c *op.Call, in circleSettingsData) (any, error) {
	return Result(circle.WireStateOf)(s.Circle.SetSettings(ctx, c, in.Settings))
}

type circleCostData struct {
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

func circleCost(ctx context.Context, s *Services, c *op.Call, in circleCostData) (any, error) {
	return Result(circle.WireCost)(s.Circle.Cost(ctx, c.UserID, in.From, in.To))
}

func circleJoin(ctx context.Context, s *Services, c *op.Call, in idData) (any, error) {
	return Result(func(j *circle.Joined) any { return j })(s.Circle.Join(ctx, c, in.ID))
}
