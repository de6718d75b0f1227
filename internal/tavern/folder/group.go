package folder

import (
	"bytes"
	"errors"
	"slices"
	"strings"
)

// GroupOf is a file of a group.
type GroupOf struct {
	ID         string   `json:"-"` // a text or a number
	Name       string   `json:"-"`
	Members    []string `json:"-"` // files of cards
	Disabled   []string `json:"-"` // likewise
	Chats      []string `json:"-"` // names of files without their extension
	Mode       int      `json:"-"` // 0 = the speaker's card alone, 1 = joined, 2 = joined with the disabled ones
	JoinPrefix string   `json:"-"`
	JoinSuffix string   `json:"-"`
}

// ReadGroup reads a file of a group.
func ReadGroup(data []byte) (*GroupOf, error) {
	m := object(bytes.TrimPrefix(data, []byte("\ufeff")))
	if m == nil {
		return nil, errors.New("it is no JSON object")
	}
	g := &GroupOf{
		ID: strings.Trim(string(bytes.TrimSpace(m["id"])), `"`), Name: text(m["name"]),
		Members: texts(m["members"]), Disabled: texts(m["disabled_members"]), Chats: texts(m["chats"]),
		JoinPrefix: text(m["generation_mode_join_prefix"]), JoinSuffix: text(m["generation_mode_join_suffix"]),
	}
	if n := number(m["generation_mode"]); n != nil {
		g.Mode = *n
	}
	if id := text(m["chat_id"]); id != "" && !slices.Contains(g.Chats, id) {
		g.Chats = append(g.Chats, id)
	}
	if g.Members == nil {
		return nil, errors.New("it has no members")
	}
	return g, nil
}

// Member is a member of a group, as its card describes it.
type Member struct {
	Name, Description, Personality, Scenario, Examples string
}

// Joined is what a card made of the members of a group says.
type Joined = Member

// Join joins the texts of members, a line break between them, each with the group's prefix and suffix around it,
// in which <FIELDNAME> is the name of the field; {{char}} and <BOT> in a text of a member are its name.
func (g *GroupOf) Join(members []Member) Joined {
	field := func(name string, of func(*Member) string) string {
		around := strings.NewReplacer("<FIELDNAME>", name)
		var parts []string
		for i := range members {
			m := &members[i]
			t := strings.TrimSpace(of(m))
			if t == "" {
				continue
			}
			named := strings.NewReplacer("{{char}}", m.Name, "{{Char}}", m.Name, "<BOT>", m.Name, "<CHAR>", m.Name)
			parts = append(parts, named.Replace(around.Replace(g.JoinPrefix)+t+around.Replace(g.JoinSuffix)))
		}
		return strings.Join(parts, "\n")
	}
	return Joined{
		Name:        g.Name,
		Description: field("Description", func(m *Member) string { return m.Description }),
		Personality: field("Personality", func(m *Member) string { return m.Personality }),
		Scenario:    field("Scenario", func(m *Member) string { return m.Scenario }),
		Examples:    field("Example Messages", func(m *Member) string { return m.Examples }),
	}
}
