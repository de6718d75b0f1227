package tavern

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"nodest/card"
	"nodest/character"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/tavern/folder"
)

// takeGroup makes a character of a group, so that its chats can go on: with the name of the group, and the texts of its members.
func (r *run) takeGroup(ctx context.Context, it *item) (*File, error) {
	g, err := folder.ReadGroup(it.data)
	if err != nil {
		return nil, fault.Wrap(err, fault.InvalidImport, "%v", err)
	}
	f, err := r.object(ctx, it, it.path, func(c *op.Call) (*became, error) {
		members, notes, err := r.members(ctx, g)
		if err != nil {
			return nil, err
		}
		notes = append(notes, Note{"group", "members", "a group answers as one character here, which speaks for all of its members: " + strings.Join(namesOf(members), ", ")})
		got, err := r.importCard(ctx, c, &item{entry: it.entry, data: groupCard(g, members)})
		if err != nil {
			return nil, err
		}
		ch, err := r.withSettings(ctx, c, got.Character)
		if err != nil {
			return nil, err
		}
		return &became{kind: ofCharacter, id: ch.ID, name: ch.Name, version: ch.Version, notes: notes, keep: true}, nil
	})
	if err != nil {
		return nil, err
	}
	for _, name := range g.Chats {
		r.groups[lower(name)] = f.ObjectID
	}
	return f, nil
}

func namesOf(members []folder.Member) []string {
	names := make([]string, len(members))
	for i := range members {
		names[i] = members[i].Name
	}
	return names
}

// members reads the cards of the members of a group, without those that are switched off.
func (r *run) members(ctx context.Context, g *folder.GroupOf) (members []folder.Member, notes []Note, err error) {
	for _, file := range g.Members {
		name := folder.Base(file)
		id, ok, err := r.characterOf(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			notes = append(notes, Note{"missing_member", "members", fmt.Sprintf("the card %q of a member is not in the folder", file)})
			members = append(members, folder.Member{Name: name})
			continue
		}
		if g.Mode != 2 && slices.Contains(g.Disabled, file) {
			continue
		}
		roleCard, err := r.roleCard(ctx, id, name)
		if err != nil {
			return nil, nil, err
		}
		view, err := card.ParseRoleCard(op.JSONOrNil(roleCard))
		if err != nil {
			return nil, nil, err
		}
		members = append(members, folder.Member{
			Name: view.Name, Description: view.Description, Personality: view.Personality, Scenario: view.Scenario, Examples: view.MesExample,
		})
	}
	return members, notes, nil
}

// roleCard is that of a character which a card of the folder became, or would become.
func (r *run) roleCard(ctx context.Context, id, name string) (json.RawMessage, error) {
	if !isDry(id) {
		ch, err := r.opts.Characters.Get(ctx, r.userID, id)
		if err != nil {
			return nil, err
		}
		return ch.RoleCard, nil
	}
	for _, ext := range cardFiles {
		e := r.there[lower("characters/"+name+ext)]
		if e == nil {
			continue
		}
		it, err := e.read()
		if err != nil {
			continue
		}
		if got, err := character.TryImport(&op.Call{}, it.data, it.path); err == nil {
			return got.Character.RoleCard, nil
		}
	}
	return op.MustJSON(card2{Name: name}), nil
}

// groupCard is the card of a group.
func groupCard(g *folder.GroupOf, members []folder.Member) []byte {
	joined := g.Join(members)
	names := strings.Join(namesOf(members), ", ")
	name := op.Truncate(character.OneLine(joined.Name), 200)
	if strings.TrimSpace(name) == "" {
		name = op.Truncate(names, 200)
	}
	return op.MustJSON(map[string]any{"spec": "chara_card_v2", "spec_version": "2.0", "data": &card2{
		Name: name, Description: joined.Description, Personality: joined.Personality, Scenario: joined.Scenario, MesExample: joined.Examples,
	}})
}
