package circle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"nodest/character"
	"nodest/circle/rules"
	"nodest/internal/fault"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/recall"
)

// errNoModel says that there is nobody to ask.
var errNoModel = fault.New(fault.NotConfigured, "no model is available to the circle")

// reaction is a reaction in the making.
type reaction struct {
	*occasion
	w       *words
	request *request
	facts   map[string]fact   // that the prompt shows, by what it calls them
	members map[string]string // ids by name, without the one who reacts
	about   []string          // blocks on relationships, the message box and own posts
	own     []string          // latest texts of the one who reacts, newest first
	feed    []string          // latest texts of all
	cost    cost
}

// prepare reads what the prompt of a reaction needs.
func (svc *Service) prepare(tx Tx, o *occasion) (*reaction, error) {
	docs, err := svc.documentsOf(tx, o.set, o.who.ID)
	if err != nil {
		return nil, err
	}
	r := &reaction{occasion: o, w: wordsOf(docs.Language), facts: map[string]fact{}}
	user, err := nameOf(tx, Me)
	if err != nil {
		return nil, err
	}
	r.request = &request{docs: docs, user: line(user), now: o.now}
	members, err := tx.Members()
	if err != nil {
		return nil, err
	}
	known := r.request.user
	if known == unnamed {
		known = ""
	}
	r.members = others(members, o.who.ID, known)
	for _, read := range []func(Tx) error{r.readRelations, r.readBox, r.readOwnPosts} {
		if err := read(tx); err != nil {
			return nil, err
		}
	}
	r.own, r.feed, err = recentTexts(tx, o.who.ID)
	return r, err
}

// unnamed is what a user without a name is called. It is an ordinary word, so that a text
// which has it need not be about the user.
const unnamed = "User"

// others are the ids of those whom a member may speak of, by their names; user is that of the user, "" =
// none.
func others(members []*character.Character, but, user string) map[string]string {
	ids := map[string]string{}
	for _, ch := range members {
		if ch.ID != but {
			ids[ch.Name] = ch.ID
		}
	}
	if user != "" {
		ids[user] = Me
	}
	return ids
}

// readRelations adds what the character thinks of the author and of those in the thread.
func (r *reaction) readRelations(tx Tx) error {
	names := map[string]string{r.post.AuthorID: r.post.AuthorName}
	ids := []string{r.post.AuthorID}
	for _, c := range r.comments[max(0, len(r.comments)-maxThread):] {
		if _, known := names[c.AuthorID]; !known && c.DeletedAt == nil {
			names[c.AuthorID] = c.AuthorName
			ids = append(ids, c.AuthorID)
		}
	}
	var lines []string
	for _, id := range ids {
		if id == r.who.ID {
			continue
		}
		rel, err := tx.Relation(r.who.ID, id)
		if fault.Is(err, fault.NotFound) {
			continue // deleted meanwhile
		}
		if err != nil {
			return err
		}
		lines = append(lines, "- "+r.w.relationOf(rel, names[id]))
	}
	r.about = append(r.about, block("relationships", r.w.Relations, lines...))
	return nil
}

func (r *reaction) readBox(tx Tx) error {
	items, err := tx.Items(r.who.ID, false)
	if err != nil {
		return err
	}
	var lines []string
	for _, i := range items[:min(len(items), maxShownBox)] {
		lines = append(lines, r.w.item(i))
	}
	r.about = append(r.about, block("box", r.w.Box, lines...))
	return nil
}

func (r *reaction) readOwnPosts(tx Tx) error {
	posts, err := ownPosts(tx, r.who.ID)
	if err != nil {
		return err
	}
	var lines []string
	for i, p := range posts {
		if p.ID == r.post.ID {
			continue
		}
		short := "o" + strconv.Itoa(i+1)
		said := fmt.Sprintf("[%s] %s: %s", short, r.w.age(r.now.Sub(p.CreatedAt)), line(p.Text))
		r.facts[short] = fact{p.ID, p.AuthorID, said}
		lines = append(lines, said)
	}
	r.about = append(r.about, block("own_posts", r.w.OwnPosts, lines...))
	return nil
}

// ownPosts are the latest posts of a character, newest first.
func ownPosts(tx Tx, characterID string) ([]*Post, error) {
	posts, _, err := tx.Posts(PostFilter{AuthorID: &characterID}, "", maxOwnPosts)
	return posts, err
}

// How much of the feed a new text is compared with.
const (
	comparedPosts    = 100
	comparedComments = 10 // comments on each post
)

// recentTexts returns the latest posts and comments of a character and of the feed, newest
// first: a new text must not repeat them.
func recentTexts(tx Tx, characterID string) (own, feed []string, err error) {
	posts, _, err := tx.Posts(PostFilter{}, "", comparedPosts)
	if err != nil {
		return nil, nil, err
	}
	type text struct {
		author, text string
		at           int64
	}
	var texts []text
	ids := make([]string, 0, len(posts))
	for _, p := range posts {
		ids = append(ids, p.ID)
		texts = append(texts, text{p.AuthorID, p.Text, p.CreatedAt.UnixMilli()})
	}
	if len(ids) > 0 {
		comments, err := tx.Comments(comparedComments, ids...)
		if err != nil {
			return nil, nil, err
		}
		for _, c := range comments {
			if c.DeletedAt == nil {
				texts = append(texts, text{c.AuthorID, c.Text, c.CreatedAt.UnixMilli()})
			}
		}
	}
	slices.SortStableFunc(texts, func(a, b text) int { return int(b.at - a.at) })
	for _, t := range texts {
		feed = append(feed, t.text)
		if t.author == characterID {
			own = append(own, t.text)
		}
	}
	return own, feed, nil
}

// decide asks the model what the character does. note says why nothing comes of the answer.
//
// Errors: errNoModel, errBudget, and those of the model.
func (svc *Service) decide(ctx context.Context, userID string, r *reaction) (a rules.Answer, note rules.Note, err error) {
	m, err := svc.model(ctx, userID)
	if err != nil {
		return a, "", err
	}
	if err := svc.complete(ctx, userID, m, r); err != nil {
		return a, "", err
	}
	correction := ""
	for try := range 2 {
		r.request.own = r.task(correction)
		next, _, err := svc.answer(ctx, userID, m, r.request, try, urgencyOf(r.turn), &r.cost)
		if try > 0 && errors.Is(err, errBudget) {
			break
		}
		if err != nil {
			return a, "", err
		}
		a = next
		if note, err = svc.objection(ctx, userID, r, a); err != nil || note == "" {
			return a, "", err
		}
		correction = r.w.Repeats
		if note == rules.NoteUnfounded {
			correction = r.w.Unfounded
		}
	}
	if a.Action.Like && r.answered == nil { // the like stands, without the comment
		a.Action.Comment, note = "", ""
	}
	return a, note, nil
}

func (svc *Service) complete(ctx context.Context, userID string, m *Model, r *reaction) error {
	attached := make([]string, len(r.post.Images))
	for i, image := range r.post.Images {
		attached[i] = image.ID
	}
	names, images, err := svc.pictures(ctx, userID, attached, m.Sees)
	if err != nil {
		return err
	}
	s := sceneOf(r.w, r.post, r.comments, names, m.Sees)
	r.request.scene, r.request.images = s.text, images
	maps.Copy(r.facts, s.facts)
	question := r.post.Text
	if r.answered != nil {
		question = r.answered.Text + "\n" + question
	}
	memories, err := svc.recall(ctx, userID, r, question)
	if err != nil {
		return err
	}
	r.about = append(r.about, memories)
	return nil
}

// recall returns what the character remembers in public of a text.
func (svc *Service) recall(ctx context.Context, userID string, r *reaction, text string) (string, error) {
	if svc.opts.Memory == nil {
		return "", nil
	}
	hits, err := svc.opts.Memory.Recall(ctx, userID, memory.Ask{CharacterID: r.who.ID}, recall.Query{
		Text: text, Now: r.now, Only: recall.Filter{Public: true}, Limit: maxRecalled,
	})
	if err != nil {
		return "", err
	}
	var lines []string
	for i := range hits {
		short := "m" + strconv.Itoa(i+1)
		said := "[" + short + "] " + line(hits[i].Shown())
		r.facts[short] = fact{hits[i].ID, r.who.ID, said}
		lines = append(lines, said)
	}
	return block("memories", r.w.Memories, lines...), nil
}

// pictures reads the names of attachments and, for models that see, the pictures. Those
// that are gone, or damaged, are left out.
func (svc *Service) pictures(ctx context.Context, userID string, ids []string, sees bool) (names []string, images []llm.Image, err error) {
	if svc.opts.Image == nil {
		return nil, nil, nil
	}
	for _, id := range ids {
		name, image, err := svc.opts.Image(ctx, userID, id, sees)
		if fault.Is(err, fault.NotFound) || fault.Is(err, fault.UnsupportedMedia) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		names = append(names, name)
		if sees {
			images = append(images, image)
		}
	}
	return names, images, nil
}

// model returns what works for a user, or errNoModel.
func (svc *Service) model(ctx context.Context, userID string) (*Model, error) {
	m, err := svc.opts.Model(ctx, userID)
	if err == nil && m == nil {
		err = errNoModel
	}
	return m, err
}

// answer asks once, and reads the reply.
//
// Errors: errBudget; those of the model; UpstreamBadAnswer for a reply that cannot be used.
func (svc *Service) answer(ctx context.Context, userID string, m *Model, r *request, try int, u urgency, total *cost) (a rules.Answer, reply string, err error) {
	p, err := r.prompt(ctx)
	if err != nil {
		return a, "", err
	}
	p.Variant = try
	if reply, err = svc.ask(ctx, userID, m, p, u, total); err != nil {
		return a, "", err
	}
	if a = rules.ReadAnswer(reply, nil); !a.Success {
		err = fault.New(fault.UpstreamBadAnswer, "the model's answer cannot be used: %s", a.Error)
	}
	return a, reply, err
}

// task is the second message, behind the card.
func (r *reaction) task(correction string) string {
	w := r.w
	what := fmt.Sprintf(w.ReactToPost, w.name(r.post.AuthorID, r.post.AuthorName), w.age(r.now.Sub(r.post.CreatedAt)))
	if c := r.answered; c != nil {
		format := w.ReactToComment
		if r.post.AuthorID == r.who.ID {
			format = w.AnswerOnOwnPost
		}
		what = fmt.Sprintf(format, shortIDs(r.comments)[c.ID], w.name(c.AuthorID, c.AuthorName), line(c.Text))
	}
	all := []string{fmt.Sprintf(w.You, line(r.who.Name)), w.moment(r.now)}
	all = append(all, r.about...)
	return paragraphs(append(all, what, correction, w.ShapeReaction)...)
}

// objection says why a comment must not be stored; "" = it may.
func (svc *Service) objection(ctx context.Context, userID string, r *reaction, a rules.Answer) (rules.Note, error) {
	if a.Action == nil || strings.TrimSpace(a.Action.Comment) == "" {
		return "", nil
	}
	if rules.Repeats(a.Action.Comment, r.own, r.feed) {
		return rules.NoteRepeats, nil
	}
	if !founded(a.Action.Comment, a.Evidence, r.facts, r.members, r.answers()) {
		return rules.NoteUnfounded, nil
	}
	if again, err := svc.wasSaid(ctx, userID, a.Action.Comment); err != nil || again {
		return rules.NoteRepeats, err
	}
	return "", nil
}

// answers are the ids of what is answered, by its authors: it is evidence for what is said
// of them.
func (r *reaction) answers() map[string]string {
	ids := map[string]string{r.post.AuthorID: r.post.ID}
	if r.answered != nil {
		ids[r.answered.AuthorID] = r.answered.ID
	}
	return ids
}

// evidence returns the ids that a comment rests on.
func (r *reaction) evidence(a rules.Answer) []string {
	ids, answers := resolve(r.facts, a.Evidence), r.answers()
	for _, name := range named(a.Action.Comment, r.members) {
		if id := answers[r.members[name]]; id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// named returns the names of the members that a text mentions.
func named(text string, members map[string]string) []string {
	return rules.Mentions(text, slices.Sorted(maps.Keys(members)))
}

// founded reports whether there is evidence for what a text says of each member that it
// names: the text answers this member, or something in the prompt was written by the member
// or has the member's name.
func founded(text string, evidence []string, facts map[string]fact, members, answers map[string]string) bool {
	for _, name := range named(text, members) {
		id := members[name]
		if answers[id] != "" {
			continue
		}
		supported := slices.ContainsFunc(evidence, func(short string) bool {
			f, ok := facts[shown(short)]
			return ok && (f.author == id || len(rules.Mentions(f.text, []string{name})) > 0)
		})
		if !supported {
			return false
		}
	}
	return true
}
