package circle

import (
	"context"
	"slices"

	"nodest/card"
	"nodest/character"
	"nodest/circle/rules"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// Relationships, message boxes and actions as the user reads and changes them.

const maxDescription = 500 // code points of the description of a relationship

// Graph is who knows whom.
type Graph struct {
	Members   []Member
	Relations []*Relation
	Unfit     map[string]rules.Unfit // characters that are not offered as members, and why; only where all are read
}

// Member is the user or a character in a Graph.
type Member struct {
	ID, Name  string
	TakesPart bool // in the circle; a character that has left it keeps its relationships
}

// Relationships returns the relationships of a character, or all (""), with everybody who
// takes part in one or in the circle.
func (svc *Service) Relationships(ctx context.Context, userID, characterID string) (*Graph, error) {
	return op.Read(ctx, svc.store, userID, func(tx Tx) (*Graph, error) {
		if err := isCharacter(tx, characterID); err != nil {
			return nil, err
		}
		relations, err := tx.Relations(characterID)
		if err != nil {
			return nil, err
		}
		name, err := nameOf(tx, Me)
		if err != nil {
			return nil, err
		}
		g := &Graph{Members: []Member{{Me, name, true}}, Relations: relations}
		members, err := tx.Members()
		if err != nil {
			return nil, err
		}
		related := func(ch *character.Character) bool {
			return slices.ContainsFunc(relations, func(r *Relation) bool { return ch.ID == r.CharacterID || ch.ID == r.TargetID })
		}
		for _, ch := range members {
			if characterID == "" || related(ch) {
				g.Members = append(g.Members, Member{ch.ID, ch.Name, true})
			}
		}
		if characterID == "" {
			if g.Unfit, err = unfitCards(tx, members); err != nil {
				return nil, err
			}
		}
		for _, r := range relations {
			for _, id := range []string{r.CharacterID, r.TargetID} {
				if err := g.add(tx, id); err != nil {
					return nil, err
				}
			}
		}
		return g, nil
	})
}

// mostOffered is how many characters are looked at when members are offered.
const mostOffered = 500

// unfitCards returns the characters, the members apart, whose cards are games, tools or several characters. A user
// may let them take part all the same.
func unfitCards(tx Tx, members []*character.Character) (map[string]rules.Unfit, error) {
	archived := false
	all, _, err := tx.Characters.Characters(character.Filter{Archived: &archived}, "", mostOffered)
	if err != nil {
		return nil, err
	}
	found := map[string]rules.Unfit{}
	for _, ch := range all {
		if slices.ContainsFunc(members, func(m *character.Character) bool { return m.ID == ch.ID }) {
			continue
		}
		whole, err := tx.Characters.CharacterCard(ch.ID)
		if err != nil {
			return nil, err
		}
		doc, err := card.ParseRoleCard(whole.RoleCard)
		if err != nil {
			continue // it cannot be read, and cannot join either
		}
		if why := rules.UnfitCard(doc.Name, append(doc.Tags, ch.Tags...), doc.Description, doc.Personality, doc.SystemPrompt); why != "" {
			found[ch.ID] = why
		}
	}
	return found, nil
}

// add adds a member unless it is there.
func (g *Graph) add(tx Tx, id string) error {
	if slices.ContainsFunc(g.Members, func(m Member) bool { return m.ID == id }) {
		return nil
	}
	name, err := nameOf(tx, id)
	if err == nil {
		g.Members = append(g.Members, Member{id, name, false})
	}
	return err
}

// RelationPatch changes the members that are given.
type RelationPatch struct {
	Strength    *int    `json:"strength,omitempty"` // −100 to 100
	Type        *string `json:"type,omitempty"`     // one of rules.Types, and kept; "" = it follows the strength again
	Description *string `json:"description,omitempty"`
}

func (p *RelationPatch) check() error {
	var c op.Checks
	op.Between(&c, "strength", p.Strength, -100, 100)
	if p.Type != nil && *p.Type != "" {
		op.OneOf(&c, "type", *p.Type, rules.Types)
	}
	if err := c.Err(); err != nil || p.Description == nil {
		return err
	}
	return op.CheckLength("description", *p.Description, maxDescription)
}

// SetRelation changes what a character thinks of another, or of the user. They need not
// have met.
func (svc *Service) SetRelation(ctx context.Context, c *op.Call, characterID, targetID string, in RelationPatch) (*Relation, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Relation, error) {
		target := fromWire(tx.UserID(), targetID)
		if target == characterID {
			return nil, fault.InvalidField("targetId", "value", "must be somebody else")
		}
		for _, id := range []string{characterID, target} {
			if id == Me {
				continue
			}
			if _, err := tx.Characters.CharacterCard(id); err != nil {
				return nil, err
			}
		}
		r, err := tx.Relation(characterID, target)
		if err != nil {
			return nil, err
		}
		if in.Strength != nil {
			r.Strength = *in.Strength
		}
		if in.Type != nil {
			r.Type, r.Kept = *in.Type, *in.Type != ""
		}
		if !r.Kept {
			r.Type = rules.TypeOf(r.Strength)
		}
		if in.Description != nil {
			r.Description = *in.Description
		}
		r.UpdatedAt = tx.Now()
		if err := tx.PutRelation(r); err != nil {
			return nil, err
		}
		return r, emitRelation(tx, c.By(), r)
	})
}

// MessageBox returns the message box of a character, newest first.
func (svc *Service) MessageBox(ctx context.Context, userID, characterID string) ([]*Item, error) {
	return op.Read(ctx, svc.store, userID, func(tx Tx) ([]*Item, error) {
		if _, err := tx.Characters.CharacterCard(characterID); err != nil {
			return nil, op.InField("characterId", err)
		}
		return tx.Items(characterID, false)
	})
}

// The states of an action.
const (
	actionPending  = "pending"
	actionAccepted = "accepted"
	actionRejected = "rejected"
	actionExpired  = "expired"
)

// Actions lists the actions that a character has offered, or all (""), newest first.
func (svc *Service) Actions(ctx context.Context, userID, characterID, cursor string, limit int) (*op.Page[*Action], error) {
	return op.List(ctx, svc.store, userID, limit, func(tx Tx, limit int) ([]*Action, string, error) {
		if err := isCharacter(tx, characterID); err != nil {
			return nil, "", err
		}
		items, next, err := tx.Actions(characterID, cursor, limit)
		for _, a := range items {
			a.expire(tx)
		}
		return items, next, err
	})
}

// expire ends an action whose time is over.
func (a *Action) expire(tx Tx) {
	if a.State == actionPending && !tx.Now().Before(a.ExpiresAt) {
		a.State, a.EndedAt = actionExpired, &a.ExpiresAt
	}
}

// decisions are the states that a decision leads to, and what it does to the relationship.
var decisions = map[string]struct {
	state string
	delta int
}{"accept": {actionAccepted, rules.AcceptDelta}, "reject": {actionRejected, rules.RejectDelta}}

// Decide accepts or rejects an action. The character reads the decision in its message box,
// and it changes what the character thinks of the one who decided.
//
// Errors: Invalid for a decision that is neither accept nor reject; Conflict for an action
// that has ended.
func (svc *Service) Decide(ctx context.Context, c *op.Call, id, decision string) (*Action, error) {
	decided, ok := decisions[decision]
	if !ok {
		return nil, fault.InvalidField("decision", "value", "must be accept or reject")
	}
	return op.Once(ctx, svc.store, c, func(tx Tx) (*Action, error) {
		a, err := tx.Action(id)
		if err != nil {
			return nil, err
		}
		if a.expire(tx); a.State != actionPending {
			return nil, fault.New(fault.Conflict, "the action is %s", a.State)
		}
		now := tx.Now()
		a.State, a.EndedAt = decided.state, &now
		if err := tx.UpdateAction(a); err != nil {
			return nil, err
		}
		name, err := nameOf(tx, a.TargetID)
		if err != nil {
			return nil, err
		}
		item := &Item{
			CharacterID: a.CharacterID, SenderID: a.TargetID, SenderName: name, Type: itemAlert,
			Text: a.State, ContextID: a.ID, Context: a.Text,
		}
		if err := tell(tx, c.By(), item, decided.delta); err != nil {
			return nil, err
		}
		return a, emitAction(tx, c.By(), a)
	})
}

// Types of items that operations of the user put into message boxes.
const (
	itemAlert   = "alert"
	itemMessage = "message"
)
