package circle

import (
	"context"

	"nodest/card"
	"nodest/character"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// Joined is what the app gets when a character joins the circle.
type Joined struct {
	Base struct {
		CharDescription string `json:"charDescription"`
		CharPersonality string `json:"charPersonality"`
	} `json:"base"`
	Circle struct {
		ScenePrompt    string `json:"scenePrompt"`
		ResponseFormat string `json:"responseFormat"`
	} `json:"circle"`
}

// Join makes a character take part in the circle.
//
// Errors: Conflict for a character without a card.
func (svc *Service) Join(ctx context.Context, c *op.Call, characterID string) (*Joined, error) {
	return op.LastWins(ctx, svc.store, c, 0, func(tx Tx) (*Joined, error) {
		ch, err := tx.Characters.Character(characterID)
		if err != nil {
			return nil, err
		}
		if op.IsNull(ch.RoleCard) {
			return nil, fault.New(fault.Conflict, "%s has no card", ch.Name)
		}
		set, err := ch.ParseSettings()
		if err != nil {
			return nil, err
		}
		if !set.Circle.Enabled {
			if err := ch.JoinCircle(); err != nil {
				return nil, err
			}
			if err := character.Put(tx.Characters, c, ch); err != nil {
				return nil, err
			}
			if err := Replan(tx.Jobs); err != nil {
				return nil, err
			}
		}
		return joined(ch)
	})
}

func joined(ch *character.Character) (*Joined, error) {
	doc, err := card.ParseRoleCard(ch.RoleCard)
	if err != nil {
		return nil, err
	}
	language, err := ch.Language()
	if err != nil {
		return nil, err
	}
	j := &Joined{}
	j.Base.CharDescription, j.Base.CharPersonality = doc.Description, doc.Personality
	j.Circle.ScenePrompt, j.Circle.ResponseFormat = Scene(language)
	return j, nil
}
