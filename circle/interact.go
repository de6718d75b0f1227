package circle

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"nodest/circle/rules"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// Interaction asks a character for its reaction to something that the caller shows it, as
// the NodeST app does. Nothing of it is stored.
type Interaction struct {
	// Type is newPost, replyToPost, replyToComment, forwardedPost, continuedConversation or
	// selfPost. post is newPost if the author is the responder, else replyToPost.
	Type        string             `json:"type"`
	Content     InteractionContent `json:"content"`
	ResponderID string             `json:"responderId"` // "" = the author
}

// InteractionContent is what a character reacts to. Each text is cut at 1,000 code points.
type InteractionContent struct {
	AuthorID   string   `json:"authorId"` // a character, or the id of the account
	AuthorName string   `json:"authorName,omitempty"`
	Text       string   `json:"text"` // in newPost: what the post should be about
	Context    string   `json:"context,omitempty"`
	Images     []string `json:"images,omitempty"` // attachments, or names
	// PostComments and ConversationHistory are a text, or a list of texts or messages. The
	// history is of a private chat: only forwardedPost and continuedConversation show it.
	PostComments        json.RawMessage `json:"postComments,omitempty"`
	ConversationHistory json.RawMessage `json:"conversationHistory,omitempty"`
}

// maxHistory is how many private messages are shown.
const maxHistory = 10

// Interact asks a character for its reaction. The request counts in the spend of the day.
//
// Errors: Invalid for the type, the text or a missing responder; NotFound for a responder
// or an author that the user does not have; NotConfigured without a model; QuotaExceeded
// when the calls or tokens of the day are used up; those of the model.
func (svc *Service) Interact(ctx context.Context, userID string, in Interaction) (rules.Answer, error) {
	if err := in.check(); err != nil {
		return rules.Answer{}, err
	}
	r, err := op.Read(ctx, svc.store, userID, func(tx Tx) (*reaction, error) { return svc.interaction(tx, &in) })
	if err != nil {
		return rules.Answer{}, err
	}
	m, err := svc.model(ctx, userID)
	if err != nil {
		return rules.Answer{}, err
	}
	if err := svc.show(ctx, userID, m, r, &in); err != nil {
		return rules.Answer{}, err
	}
	a, _, err := svc.answer(ctx, userID, m, r.request, 0, addressed, nil)
	if a.Action != nil && r.post.AuthorID == in.ResponderID {
		a.Action.Like = false
	}
	return a, err
}

// check completes the type and the responder.
func (in *Interaction) check() error {
	in.ResponderID = cmp.Or(in.ResponderID, in.Content.AuthorID)
	own := in.ResponderID == in.Content.AuthorID
	switch {
	case in.Type == "post" && own:
		in.Type = "newPost"
	case in.Type == "post":
		in.Type = "replyToPost"
	case in.Type == "replyToPost" && own:
		in.Type = "selfPost"
	}
	types := []string{"newPost", "replyToPost", "replyToComment", "forwardedPost", "continuedConversation", "selfPost"}
	if !slices.Contains(types, in.Type) {
		return fault.InvalidField("type", "range", "must be one of post, %s", strings.Join(types, ", "))
	}
	if in.ResponderID == "" {
		return fault.InvalidField("responderId", "required", "required")
	}
	if len(in.Content.Images) > MaxImages {
		return fault.InvalidField("content.images", "range", "must have at most %d images", MaxImages)
	}
	if in.Type != "newPost" && len(in.Content.Images) == 0 {
		return op.CheckText("content.text", in.Content.Text, MaxPost)
	}
	return op.CheckLength("content.text", in.Content.Text, MaxPost)
}

func (in *Interaction) private() bool {
	return in.Type == "forwardedPost" || in.Type == "continuedConversation"
}

// interaction reads what the prompt needs.
func (svc *Service) interaction(tx Tx, in *Interaction) (*reaction, error) {
	who, err := tx.Characters.Character(in.ResponderID)
	if err != nil {
		return nil, op.InField("responderId", err)
	}
	set, err := tx.Characters.Settings()
	if err != nil {
		return nil, err
	}
	p := &Post{AuthorID: in.Content.AuthorID, AuthorName: in.Content.AuthorName, Text: in.Content.Text, CreatedAt: tx.Now()}
	if p.AuthorID == tx.UserID() {
		p.AuthorID = Me
	}
	if p.AuthorID != Me || p.AuthorName == "" {
		if p.AuthorName, err = nameOf(tx, p.AuthorID); err != nil {
			return nil, op.InField("content.authorId", err)
		}
	}
	return svc.prepare(tx, &occasion{post: p, who: who, set: set, now: tx.Now().In(set.Zone())})
}

func (svc *Service) show(ctx context.Context, userID string, m *Model, r *reaction, in *Interaction) error {
	w, shape := r.w, r.w.ShapeReaction
	var names, attached []string
	for i, image := range in.Content.Images {
		if op.IsClientID(image) {
			attached = append(attached, image)
		} else {
			names = append(names, imageName(image, i))
		}
	}
	more, images, err := svc.pictures(ctx, userID, attached, m.Sees)
	if err != nil {
		return err
	}
	names = append(names, more...)
	r.request.images = images
	s := sceneOf(w, r.post, nil, names, len(images) > 0)
	thread := block("thread", "", textsOf(in.Content.PostComments, maxThread)...)
	r.request.scene = paragraphs(s.text, thread)
	what := fmt.Sprintf(w.ReactToPost, w.name(r.post.AuthorID, r.post.AuthorName), w.JustNow)
	var private string
	switch in.Type {
	case "newPost":
		r.request.scene, what, shape = w.Rules, w.Write, w.ShapePost
		if in.Content.Text != "" {
			what += "\n" + block("tell", w.Hint, defused(in.Content.Text))
		}
	case "selfPost":
		what, shape = w.Own, w.ShapeResponse
	case "forwardedPost":
		what = fmt.Sprintf(w.Forwarded, r.request.user)
	case "continuedConversation":
		what = w.Continued
	}
	if in.private() {
		private = block("history", w.History, textsOf(in.Content.ConversationHistory, maxHistory)...)
	}
	memories, err := svc.recall(ctx, userID, r, in.Content.Text)
	if err != nil {
		return err
	}
	var given string
	if in.Content.Context != "" {
		given = block("context", w.Context, defused(in.Content.Context))
	}
	all := append([]string{fmt.Sprintf(w.You, line(r.who.Name)), w.moment(r.now)}, r.about...)
	r.request.own = paragraphs(append(all, memories, private, given, what, shape)...)
	return nil
}

// imageName is what a picture is called that is no attachment.
func imageName(image string, i int) string {
	if strings.HasPrefix(image, "data:") {
		return "image " + strconv.Itoa(i+1)
	}
	return op.Truncate(path.Base(image), 100)
}

// textsOf reads a text, or the last texts or messages of a list, a line each.
func textsOf(raw json.RawMessage, most int) (lines []string) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	for _, one := range list[max(0, len(list)-most):] {
		var text string
		if json.Unmarshal(one, &text) != nil {
			text = messageText(one)
		}
		if text = line(text); text != "" {
			lines = append(lines, text)
		}
	}
	return lines
}

// messageText reads a message of the app: who says it, and its text in any of its forms.
func messageText(raw json.RawMessage) string {
	var m struct {
		Role, UserName, Content, Text string
		Parts                         []struct{ Text string }
	}
	if json.Unmarshal(raw, &m) != nil {
		return ""
	}
	text := cmp.Or(m.Content, m.Text)
	for _, p := range m.Parts {
		text += p.Text
	}
	if who := cmp.Or(m.UserName, m.Role); who != "" && text != "" {
		return who + ": " + text
	}
	return text
}
