package character

import (
	"cmp"
	"slices"

	"nodest/fault"
)

// StampsInForce is what counts for a conversation with pins: now are the newest
// versions of the character, of everything that is bound to it, of what named
// lists and of what the pins name. named are the resources that are wanted by
// their ids.
//
// A document that has not changed since the pins were set has its pinned version, even if
// that no longer exists; one without a pin is not used. A document that was changed,
// created, bound, unbound or deleted since is used as it is now.
func (p *Pins) StampsInForce(now *Stamps, named []string) *Stamps {
	was, is := Over{}, versionsOf(now.Resources)
	if p.Over != nil {
		was = *p.Over
	}
	then, pinned := versionsOf(was.Resources), versionsOf(p.Resources)
	changed := func(id string) bool { return is[id] != then[id] }

	s := &Stamps{Character: now.Character}
	if now.Character == was.Character && p.Character != 0 {
		s.Character = p.Character
	}
	s.Resources = boundInForce(p.Resources, now.Resources, changed)
	for _, id := range named {
		stamp, ok := stampOf(now.Resources, id)
		if version := pinned[id]; version != 0 && !changed(id) {
			stamp, ok = stampOf(p.Resources, id)
			stamp.Version = version
		}
		if ok {
			stamp.Bound = false
			s.Resources = append(s.Resources, stamp)
		}
	}
	return s
}

// boundInForce merges the resources that were bound, where they did not change,
// with those that are bound and did. Both lists are in the order of creation, and
// so is the result, where those that are not bound any more stand before those
// that came since.
func boundInForce(pinned, now []ResourceStamp, changed func(id string) bool) []ResourceStamp {
	left, now := boundOf(pinned), boundOf(now)
	var all []ResourceStamp
	next := func() { // the first of left, if it counts
		if !changed(left[0].ID) {
			all = append(all, left[0])
		}
		left = left[1:]
	}
	for _, n := range now {
		for len(left) > 0 && !names(now, left[0].ID) {
			next()
		}
		if changed(n.ID) {
			all = append(all, n)
		}
		if len(left) > 0 && left[0].ID == n.ID {
			next()
		}
	}
	for len(left) > 0 {
		next()
	}
	return all
}

func boundOf(list []ResourceStamp) []ResourceStamp {
	var bound []ResourceStamp
	for _, r := range list {
		if r.Bound {
			bound = append(bound, r)
		}
	}
	return bound
}

func names(list []ResourceStamp, id string) bool {
	_, ok := stampOf(list, id)
	return ok
}

func stampOf(list []ResourceStamp, id string) (ResourceStamp, bool) {
	at := slices.IndexFunc(list, func(r ResourceStamp) bool { return r.ID == id })
	if at < 0 {
		return ResourceStamp{}, false
	}
	return list[at], true
}

// versionsOf are the versions by id.
func versionsOf(list []ResourceStamp) map[string]int64 {
	versions := make(map[string]int64, len(list))
	for _, r := range list {
		versions[r.ID] = r.Version
	}
	return versions
}

// SettingsInForce are the user's settings for a conversation with pins: the
// pinned ones as long as the user has not changed theirs.
func (p *Pins) SettingsInForce(now *UserSettings) *UserSettings {
	if p == nil || p.Settings == nil || p.Over == nil || p.Over.Settings != now.Version {
		return now
	}
	return p.Settings
}

// IDs are the resources that p names, each once.
func (p *Pins) IDs() []string {
	var ids []string
	for _, r := range p.Resources {
		if !slices.Contains(ids, r.ID) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// missingIn are the resources that p names and now does not.
func (p *Pins) missingIn(now *Stamps) []string {
	return slices.DeleteFunc(p.IDs(), func(id string) bool { return names(now.Resources, id) })
}

// InForce is p for a conversation with that character: from now on it counts where
// nothing is changed.
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

// At reads a version of a character; the newest where that one was
// purged.
func At(tx Tx, id string, version int64) (*Character, error) {
	newest, err := tx.Character(id)
	if err != nil || newest.Version == version {
		return newest, err
	}
	old, err := tx.CharacterVersion(id, version)
	if fault.Is(err, fault.NotFound) {
		return newest, nil
	}
	return old, err
}

// resourceAt reads a version of a resource, deleted or not; the newest where that
// one was purged, and nil where nothing is left.
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

// Pins name versions of the documents of a turn, and hold the user's settings. A
// save point keeps those that were in force. A conversation that was restored is
// bound to them until a document is changed again: Over says what was newest when
// they were set, and where that is no longer so the newest counts.
type Pins struct {
	CharacterID string          `json:"characterId,omitempty"` // "" = that of the conversation
	Character   int64           `json:"character"`
	Resources   []ResourceStamp `json:"resources,omitempty"`
	Settings    *UserSettings   `json:"settings,omitempty"`
	Over        *Over           `json:"over,omitempty"` // nil in a save point
}

// Over is what was newest when pins were set.
type Over struct {
	Character int64           `json:"character"`
	Resources []ResourceStamp `json:"resources,omitempty"`
	Settings  int64           `json:"settings"` // version
}
