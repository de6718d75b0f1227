package character

import (
	"cmp"
	"slices"
	"strings"

	"nodest/internal/fault"
)

// Pins fix the versions of the documents that a conversation uses, and the user's
// settings. A save point records those that were in use when it was made. A restored
// conversation uses them until a document changes: Over holds the versions that were
// newest at the restore, and a document that differs from them is used as it is now.
type Pins struct {
	CharacterID string          `json:"characterId,omitempty"` // "" = that of the conversation
	Character   int64           `json:"character"`
	Resources   []ResourceStamp `json:"resources,omitempty"`
	Settings    *UserSettings   `json:"settings,omitempty"`
	Over        *Over           `json:"over,omitempty"` // nil in a save point
}

// Over holds the versions that were newest when a conversation was restored.
type Over struct {
	Character int64           `json:"character"`
	Resources []ResourceStamp `json:"resources,omitempty"`
	Settings  int64           `json:"settings"` // version
}

// StampsInForce returns the versions that a conversation with pins uses. now holds the
// newest versions of the character, of everything bound to it, and of the resources in
// named and in the pins; named are the resources that are used because of their ids.
//
// A document that has not changed since the restore has its pinned version, even if it
// was deleted before; without a pin it is not used. A document that was changed,
// created, bound, unbound or deleted since then is used as it is now.
func (p *Pins) StampsInForce(now *Stamps, named []string) *Stamps {
	over := Over{}
	if p.Over != nil {
		over = *p.Over
	}
	then, newest := versionsOf(over.Resources), versionsOf(now.Resources)
	changed := func(r ResourceStamp) bool { return newest[r.ID] != then[r.ID] }

	s := &Stamps{Character: now.Character, HasKnowledge: now.HasKnowledge}
	if now.Character == over.Character && p.Character != 0 {
		s.Character = p.Character
	}
	pinned := slices.DeleteFunc(slices.Clone(p.Resources), changed)
	current := slices.DeleteFunc(slices.Clone(now.Resources), func(r ResourceStamp) bool { return !changed(r) })
	for _, r := range slices.Concat(pinned, current) {
		if r.Bound {
			s.Resources = append(s.Resources, r)
		}
	}
	// Ids ascend in the order of creation.
	slices.SortFunc(s.Resources, func(a, b ResourceStamp) int { return strings.Compare(a.ID, b.ID) })
	for _, id := range named {
		for _, list := range [][]ResourceStamp{pinned, now.Resources} {
			at := slices.IndexFunc(list, func(r ResourceStamp) bool { return r.ID == id })
			if at >= 0 {
				stamp := list[at]
				stamp.Bound = false
				s.Resources = append(s.Resources, stamp)
				break
			}
		}
	}
	return s
}

func versionsOf(list []ResourceStamp) map[string]int64 {
	versions := make(map[string]int64, len(list))
	for _, r := range list {
		versions[r.ID] = r.Version
	}
	return versions
}

// SettingsInForce returns the user's settings for a conversation with pins: the pinned
// ones until the user changes theirs.
func (p *Pins) SettingsInForce(now *UserSettings) *UserSettings {
	if p == nil || p.Settings == nil || p.Over == nil || p.Over.Settings != now.Version {
		return now
	}
	return p.Settings
}

// IDs lists the pinned resources, each once.
func (p *Pins) IDs() []string {
	var ids []string
	for _, r := range p.Resources {
		if !slices.Contains(ids, r.ID) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// missingIn lists the pinned resources that now does not hold.
func (p *Pins) missingIn(now *Stamps) []string {
	newest := versionsOf(now.Resources)
	return slices.DeleteFunc(p.IDs(), func(id string) bool { return newest[id] != 0 })
}

// InForce returns the pins of a save point for a conversation with that character that is
// restored now.
func (p *Pins) InForce(tx Tx, characterID string) (*Pins, error) {
	if p == nil {
		return nil, nil
	}
	user, err := tx.Settings()
	if err != nil {
		return nil, err
	}
	now, err := tx.Stamps(cmp.Or(p.CharacterID, characterID), p.IDs()...)
	if err != nil {
		return nil, err
	}
	set := *p
	set.Over = &Over{Character: now.Character, Resources: now.Resources, Settings: user.Version}
	return &set, nil
}

// At reads a version of a character, or the newest one if that version was purged.
func At(tx Tx, id string, version int64) (*Character, error) {
	newest, err := tx.Character(id)
	if err != nil || newest.DocumentsVersion == version {
		return newest, err
	}
	old, err := tx.CharacterVersion(id, version)
	if fault.Is(err, fault.NotFound) {
		return newest, nil
	}
	return old, err
}

// resourceAt reads a version of a resource, even of a deleted one; the newest version if
// that one was purged, and nil if nothing is left.
func resourceAt(tx Tx, stamp ResourceStamp) (*Resource, error) {
	newest, err := tx.Resource(stamp.Kind, stamp.ID)
	if err == nil && newest.Version == stamp.Version {
		return newest, nil
	}
	if err != nil && !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	old, err := tx.ResourceVersion(stamp.Kind, stamp.ID, stamp.Version)
	if fault.Is(err, fault.NotFound) {
		return newest, nil
	}
	return old, err
}
