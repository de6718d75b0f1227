package circle

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"nodest/circle/rules"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// tellWords are the words of prompts for posts.
type tellWords struct {
	Feed, Own, Tell, Digest, Write string
}

// told is something to tell, and whose plan it is from.
type told struct {
	PlanItem
	of string
}

// source is the id of what an item rests on.
func (t told) source() string {
	if t.Ref != "" {
		return t.Ref
	}
	return t.ID
}

// request builds the request for a post, with what was wrong with an earlier answer. facts
// are what statements about others can rest on, by what the prompt calls them.
func (w *telling) request(correction string) (r *request, facts map[string]fact) {
	l := w.docs.Language
	words := wordsOf(l)
	tell := words.TellPost
	facts = map[string]fact{}
	var feed, own, items []string
	for _, p := range w.feed[:min(len(w.feed), postsShown)] {
		if p.AuthorID == w.ch.ID {
			continue
		}
		id := "p" + strconv.Itoa(len(facts)+1)
		said := "[" + id + "] " + words.name(p.AuthorID, p.AuthorName) + ", " + words.age(w.now.Sub(p.CreatedAt)) + ": " + line(op.Truncate(p.Text, maxShownText))
		facts[id] = fact{p.ID, p.AuthorID, said}
		feed = append(feed, said)
	}
	for _, p := range w.own[:min(len(w.own), postsShown)] {
		own = append(own, words.age(w.now.Sub(p.CreatedAt))+": "+line(op.Truncate(p.Text, maxShownText)))
	}
	for i, item := range w.items {
		said := line(item.Text)
		if w.kind == rules.Digest || item.Ref != "" {
			id := "m" + strconv.Itoa(i+1)
			said = "[" + id + "] " + said
			facts[id] = fact{item.source(), item.of, said}
		}
		items = append(items, said)
	}
	heading, write := tell.Tell, tell.Write+" "
	if w.kind == rules.Digest {
		heading, write = tell.Digest, ""
	}
	return &request{
		docs: w.docs, user: w.user, now: w.now,
		scene: paragraphs(words.Rules, block("feed", tell.Feed, feed...)),
		own: paragraphs(
			fmt.Sprintf(words.You, line(w.ch.Name)), words.moment(w.now), block("own_posts", tell.Own, own...),
			block("tell", heading, items...), write+w.kind.Words(l), correction, words.ShapePost,
		),
	}, facts
}

// silentFor is how long a character may be silent for want of calls.
const silentFor = 48 * time.Hour

// emptyPost finds an answer that chooses to say nothing.
var emptyPost = regexp.MustCompile(`"post"\s*:\s*(""|null)`)

// write asks the model for the post, a second time if it cannot be posted. Without a post,
// note says why.
//
// Errors: errNoModel, errBudget, and those of the model.
func (svc *Service) write(ctx context.Context, w *telling) error {
	m, err := svc.model(ctx, w.userID)
	if err != nil {
		return err
	}
	words, correction := wordsOf(w.docs.Language), ""
	for try := range 2 {
		r, facts := w.request(correction)
		a, reply, err := svc.answer(ctx, w.userID, m, r, try, w.urgency(), &w.cost)
		switch {
		case try > 0 && errors.Is(err, errBudget):
			return nil // the first answer was no use, and there is no second
		case fault.Is(err, fault.UpstreamBadAnswer) && emptyPost.MatchString(reply):
			w.note = rules.NoteChoice
			return nil
		case err != nil:
			return err
		}
		if w.note, err = svc.judge(ctx, w, a, facts); err != nil {
			return err
		}
		switch w.note {
		case rules.NoteRepeats:
			correction = words.Repeats
		case rules.NoteUnfounded:
			correction = words.Unfounded
		default:
			return nil
		}
	}
	return nil
}

// urgency is higher for a character that has not posted for some days: those who speak late
// in the day would fall silent where each day's limits are used up before.
func (w *telling) urgency() urgency {
	if w.kind != rules.Digest && (len(w.own) == 0 || w.now.Sub(w.own[0].CreatedAt) > silentFor) {
		return addressed
	}
	return byHabit
}

// judge takes an answer, unless the same was said before.
func (svc *Service) judge(ctx context.Context, w *telling, a rules.Answer, facts map[string]fact) (rules.Note, error) {
	note := w.take(a, facts)
	if w.post == nil {
		return note, nil
	}
	again, err := svc.wasSaid(ctx, w.userID, w.post.Text)
	if again {
		w.post, note = nil, rules.NoteRepeats
	}
	return note, err
}

// take makes an answer the post, or returns why it cannot be posted.
func (w *telling) take(a rules.Answer, facts map[string]fact) rules.Note {
	text := strings.TrimSpace(a.Post)
	if text == "" && a.Action != nil { // the model calls it a comment
		text = strings.TrimSpace(a.Action.Comment)
	}
	switch {
	case text == "":
		return rules.NoteChoice
	case rules.Repeats(text, w.ownTexts, w.feedTexts):
		return rules.NoteRepeats
	}
	digested := map[string]string{} // an item given to a digest is evidence for the one whose plan it is from
	if w.kind == rules.Digest {
		for _, item := range w.items {
			digested[item.of] = item.source()
		}
	}
	if !founded(text, a.Evidence, facts, w.members, digested) {
		return rules.NoteUnfounded
	}
	evidence := resolve(facts, a.Evidence)
	for _, name := range named(text, w.members) {
		if id := digested[w.members[name]]; id != "" && !slices.Contains(evidence, id) {
			evidence = append(evidence, id)
		}
	}
	w.post = &Post{
		AuthorID: w.ch.ID, AuthorName: w.ch.Name, Kind: w.kind, Text: op.Truncate(text, MaxPost),
		Thoughts: a.Thoughts, Emotion: a.Emotion, Evidence: evidence,
	}
	return ""
}
