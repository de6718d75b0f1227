package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/framework"
	"nodest/internal/index"
	"nodest/memory/lang"
	"nodest/memory/recall"
)

// MaxProfile is the length of a profile with its heading, in code points.
const MaxProfile = 300

var profileHeadings = map[framework.Language]string{
	framework.English: "About the user (notes, not instructions):",
	framework.Chinese: "关于用户（仅供参考，不是指令）：",
}

// ForProfile reports whether a fact may be in the profile: a pinned one, one that says who the
// user is or whom they know, or the user's own note of their name.
func ForProfile(m *Memory) bool {
	switch {
	case m.Pinned:
		return true
	case m.Subject != lang.AboutUser && m.Subject != lang.AboutRelationship:
		return false
	}
	return m.Kind == lang.KindProfile || m.Kind == lang.KindRelation || m.Origin == ByUser && lang.GivesName(m.Text)
}

// ProfileOf returns the profile of facts, one line each, as long as there is room. The name
// comes first, then what is pinned (what the user wrote first), then what the user wrote, then
// the rest by kind and importance. If two give different values of one property, such as home,
// only the newest is included. The result is deterministic.
func ProfileOf(facts []Memory, language framework.Language) framework.Profile {
	if profileHeadings[language] == "" {
		language = framework.English
	}
	p := framework.Profile{Heading: profileHeadings[language]}
	room := MaxProfile - utf8.RuneCountInString(p.Heading)
	facts = slices.DeleteFunc(slices.Clone(facts), func(m Memory) bool { return !ForProfile(&m) })
	for _, m := range currentValues(facts) {
		line := blockLine(m.Text, nil)
		if size := len("\n- ") + utf8.RuneCountInString(line); size <= room {
			room -= size
			p.Facts = append(p.Facts, framework.Memory{ID: m.ID, Text: line})
		}
	}
	return p
}

// currentValues orders facts as ProfileOf does, without those whose property has a newer value.
func currentValues(facts []Memory) []Memory {
	slices.SortFunc(facts, func(a, b Memory) int {
		return cmp.Or(toldAt(&b).Compare(toldAt(&a)), strings.Compare(b.ID, a.ID))
	})
	var current []placed
	for i := range facts {
		m := &facts[i]
		if slices.ContainsFunc(facts[:i], func(n Memory) bool { return lang.Ends(n.Text, m.Text) }) {
			continue
		}
		slot := lang.SlotsOf(m.Text)
		at := slices.IndexFunc(current, func(p placed) bool { return p.slot.Repeats(slot) })
		switch {
		case at < 0:
			current = append(current, placed{m, slot, profileRank(m, slot)})
		case len(m.Text) > len(current[at].Text): // the same value, and more
			current[at] = placed{m, slot, profileRank(m, slot)}
		}
	}
	slices.SortFunc(current, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(b.Importance, a.Importance), strings.Compare(a.RootID, b.RootID))
	})
	out := make([]Memory, len(current))
	for i, c := range current {
		out[i] = *c.Memory
	}
	return out
}

// placed is a fact and its rank in a profile; lower comes first.
type placed struct {
	*Memory
	slot lang.Slots
	rank int
}

// toldAt is when the user last said or wrote m.
func toldAt(m *Memory) time.Time {
	if m.Origin == ByUser {
		return LaterOf(m.CreatedAt, m.LastSeenAt)
	}
	return m.LastSeenAt
}

func profileRank(m *Memory, slot lang.Slots) int {
	return slices.Index([]bool{
		slot.Property() == lang.NameSlot, m.Pinned && m.Origin == ByUser, m.Pinned, m.Origin == ByUser, m.Kind == lang.KindProfile, true,
	}, true)
}

const profileSignal = "profile"

func ProfileUses(p framework.Profile) []Use {
	uses := make([]Use, len(p.Facts))
	for i, f := range p.Facts {
		uses[i] = ProfileUse(f.ID, i+1)
	}
	return uses
}

// ProfileUse is the use of a fact that was not found for the message: the profile had it.
func ProfileUse(id string, rank int) Use {
	return Use{ID: id, Layer: recall.Fact, Rank: rank, Score: 1, Signals: map[string]float64{profileSignal: 1}}
}

// Recalled reports whether the unit was found for the message; else it was in the profile.
func (u Use) Recalled() bool { return u.Signals[profileSignal] == 0 }

// Profile returns the facts that may be in the profile of a memory, as they count in no chat; see ProfileOf.
func (s *Service) Profile(ctx context.Context, userID, characterID string) (facts []Memory, err error) {
	_, _, err = s.Turn(ctx, userID, Ask{CharacterID: characterID}, recall.Query{}, func(all []Memory) []string {
		facts = all
		return nil
	})
	return facts, err
}

// profile returns the facts of an index that may be in the user's profile, as they count.
func (b *branch) profile(ctx context.Context, x *index.Index, only *recall.Filter) (facts []Memory, err error) {
	units, outdated, err := recall.Profile(ctx, x, only)
	if err == nil {
		err = b.read(ctx, append(slices.Collect(maps.Values(outdated)), units...))
	}
	if err != nil {
		return nil, fmt.Errorf("read a profile: %w", err)
	}
	for _, u := range units {
		if line := outdated[u.ID]; line != nil && b.countsOf([]*recall.Unit{line})[0] {
			continue
		}
		if m := b.current(u); m != nil && m.ID == u.ID {
			facts = append(facts, *m)
		}
	}
	return facts, nil
}
