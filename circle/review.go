package circle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"nodest/character"
	"nodest/circle/rules"
	"nodest/framework"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
)

// reviewAttempts is how often a review is tried.
const reviewAttempts = 3

// actionEvery is the least time between two actions that a character offers.
const actionEvery = 7 * 24 * time.Hour

// review lets a character think about what its message box says of others. Its items are
// read then, and the relationships change by at most 10 each. Without a model, or when the
// calls of the day are used up, the box stays unread.
func (svc *Service) review(ctx context.Context, j *jobs.Job) error {
	in, err := op.Read(ctx, svc.store, j.UserID, func(tx Tx) (*reviewed, error) { return svc.readBox(tx, j.Subject) })
	if err != nil || in == nil {
		return err
	}
	m, err := svc.opts.Model(ctx, j.UserID)
	if err != nil || m == nil {
		return svc.reviewFailed(ctx, j, err)
	}
	p, err := in.request.prompt(ctx)
	if err != nil {
		return svc.reviewFailed(ctx, j, err)
	}
	p.JSON = false
	reply, err := svc.ask(ctx, j.UserID, m, p, byHabit, nil)
	if err != nil {
		return svc.reviewFailed(ctx, j, err)
	}
	updates := rules.ReadReview(reply)
	return svc.store.Update(ctx, j.UserID, func(tx Tx) error {
		if _, err := takesPart(tx, j.Subject); err != nil {
			return goneOr(err)
		}
		for _, u := range updates {
			if sender, ok := in.senders[u.TargetID]; ok {
				if err := reviewOne(tx, in, sender, u); err != nil {
					return err
				}
			}
		}
		if err := tx.ReadItems(j.Subject, in.items...); err != nil {
			return err
		}
		return tx.Jobs.FinishJob(j)
	})
}

// reviewFailed tells of the last attempt that failed.
func (svc *Service) reviewFailed(ctx context.Context, j *jobs.Job, cause error) error {
	if errors.Is(cause, errBudget) {
		return nil
	}
	if cause == nil || ctx.Err() != nil {
		return cause
	}
	public := fault.Public(cause)
	if public.Retry() != "no" && j.Attempt < reviewAttempts {
		return cause
	}
	err := svc.store.Update(ctx, j.UserID, func(tx Tx) error {
		return emit(tx, server, "circle.failed", map[string]any{"characterId": j.Subject, "error": op.FailureOf(public)})
	})
	if err != nil {
		return err
	}
	return cause
}

type reviewed struct {
	request  *request
	language framework.Language
	name     string            // name of the character
	senders  map[string]string // members by what the prompt calls them
	items    []string          // that it has
}

// readBox returns nil when there is nothing to review.
func (svc *Service) readBox(tx Tx, characterID string) (*reviewed, error) {
	ch, err := takesPart(tx, characterID)
	if fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	state, err := tx.CircleState()
	if err != nil || state.AsleepAt != nil {
		return nil, err
	}
	items, err := tx.Items(characterID, true)
	if err != nil || len(items) < reviewAt {
		return nil, err
	}
	set, err := tx.Characters.Settings()
	if err != nil {
		return nil, err
	}
	docs, err := svc.documentsOf(tx, set, characterID)
	if err != nil {
		return nil, err
	}
	in := &reviewed{language: docs.Language, name: ch.Name, senders: map[string]string{}}
	return in, svc.composeReview(tx, in, docs, set, items)
}

func (svc *Service) composeReview(tx Tx, in *reviewed, docs *character.Documents, set *character.UserSettings, items []*Item) error {
	w := wordsOf(docs.Language)
	var people, box []string
	known := map[string]bool{}
	for _, i := range items {
		in.items = append(in.items, i.ID)
		if len(box) < maxShownBox {
			box = append(box, w.item(i))
		}
		if known[i.SenderID] {
			continue
		}
		known[i.SenderID] = true
		r, err := tx.Relation(docs.CharacterID, i.SenderID)
		if fault.Is(err, fault.NotFound) {
			continue // the sender was deleted
		}
		if err != nil {
			return err
		}
		short := "r" + strconv.Itoa(len(people)+1)
		in.senders[short] = i.SenderID
		people = append(people, "["+short+"] "+w.relationOf(r, i.SenderName))
	}
	user, err := nameOf(tx, Me)
	if err != nil {
		return err
	}
	in.request = &request{docs: docs, user: line(user), now: tx.Now().In(set.Zone())}
	in.request.scene = paragraphs(block("relationships", w.Relations, people...), block("box", w.Box, box...))
	in.request.own = paragraphs(
		fmt.Sprintf(w.You, line(in.name)), fmt.Sprintf(w.Review, strings.Join(rules.Types, ", ")), w.ShapeReview)
	return nil
}

// reviewOne changes a relationship as the model says, and offers the user what it makes
// possible, at most once a week.
func reviewOne(tx Tx, in *reviewed, sender string, u rules.Update) error {
	r, err := tx.Relation(in.request.docs.CharacterID, sender)
	if err != nil {
		return goneOr(err)
	}
	offers := rules.Offers(r.Type, r.Strength, r.Interactions)
	if sender != Me || len(offers) == 0 || r.ActionAt != nil && tx.Now().Sub(*r.ActionAt) < actionEvery {
		return change(tx, server, r, u.StrengthDelta, u.NewType)
	}
	r.ActionAt = new(tx.Now())
	if err := change(tx, server, r, u.StrengthDelta, u.NewType); err != nil {
		return err
	}
	offer := offers[0]
	a := &Action{
		ID: op.NewID(), CharacterID: r.CharacterID, TargetID: sender, Type: offer.Type, State: "pending",
		Text: fmt.Sprintf(wordsOf(in.language).Offers[offer.Type], in.name), ExpiresAt: tx.Now().Add(offer.For), CreatedAt: tx.Now(),
	}
	if err := tx.InsertAction(a); err != nil {
		return err
	}
	return emitAction(tx, server, a)
}

// item is an entry of a message box in a prompt. What somebody says privately when they
// forward a post is not shown.
func (w *words) item(i *Item) string {
	did, known := w.Did[i.Type], false
	if i.Type == itemAlert {
		did, known = w.Did[i.Text]
	}
	text := fmt.Sprintf(cmp.Or(did, w.Did[itemAlert]), w.name(i.SenderID, i.SenderName))
	if i.Context != "" {
		text += " (" + fmt.Sprintf(w.Quote, line(i.Context)) + ")"
	}
	if i.Text != "" && i.Type != itemMessage && !known {
		text += ": " + line(i.Text)
	}
	return "- " + text
}

// relationOf is a relationship in a prompt.
func (w *words) relationOf(r *Relation, name string) string {
	text := fmt.Sprintf(w.Relation, w.name(r.TargetID, name), r.Type, r.Strength)
	if r.Description != "" {
		text += " – " + line(r.Description)
	}
	return text
}
