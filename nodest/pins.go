package nodest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"nodest/fault"
)

// stampsInForce is what counts for a conversation with pins: now are the newest
// versions of the character, of everything that is bound to it, of what named
// lists and of what the pins name. named are the resources that are wanted by
// their ids.
//
// A document that nobody has changed since the pins were set is the pinned one,
// whether it still exists or not; one that is not pinned did not count then and
// does not count now. A document that was changed, made, bound, unbound or
// deleted since counts as it is now.
func (p *Pins) stampsInForce(now *Stamps, named []string) *Stamps {
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

// settingsInForce are the user's settings for a conversation with pins: the
// pinned ones as long as the user has not changed theirs.
func (p *Pins) settingsInForce(now *Settings) *Settings {
	if p == nil || p.Settings == nil || p.Over == nil || p.Over.Settings != now.Version {
		return now
	}
	return p.Settings
}

// ids are the resources that p names, each once.
func (p *Pins) ids() []string {
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
	return slices.DeleteFunc(p.ids(), func(id string) bool { return names(now.Resources, id) })
}

// pinnedNow are the documents that are in force for a conversation, to be kept
// with a save point of it.
func pinnedNow(tx Tx, conv *Conversation) (*Pins, error) {
	user, err := tx.Settings()
	if err != nil {
		return nil, err
	}
	settings := conv.Pins.settingsInForce(user)
	set, err := optionsOf(conv)
	if err != nil {
		return nil, err
	}
	character := cmp.Or(set.CharacterID, conv.CharacterID)
	stamps, err := wantedBy(settings, conv.PersonaID, character).stamps(tx, conv.pinsOf(character))
	if err != nil {
		return nil, err
	}
	pins := &Pins{Character: stamps.Character, Resources: stamps.Resources, Settings: settings}
	if character != conv.CharacterID {
		pins.CharacterID = character
	}
	return pins, nil
}

// pinsOf are the pins for a turn of that character; nil = the newest documents
// count.
func (c *Conversation) pinsOf(characterID string) *Pins {
	if c.Pins == nil || cmp.Or(c.Pins.CharacterID, c.CharacterID) != characterID {
		return nil
	}
	return c.Pins
}

// optionsOf are the settings of a conversation.
func optionsOf(conv *Conversation) (TurnOptions, error) {
	var set TurnOptions
	if len(conv.Settings) > 0 {
		if err := json.Unmarshal(conv.Settings, &set); err != nil {
			return set, fmt.Errorf("settings of conversation %s: %w", conv.ID, err)
		}
	}
	return set, nil
}

// over is p for a conversation with that character: from now on it counts where
// nothing is changed.
func (p *Pins) over(tx Tx, characterID string) (*Pins, error) {
	if p == nil {
		return nil, nil
	}
	user, err := tx.Settings()
	if err != nil {
		return nil, err
	}
	now, err := tx.Stamps(cmp.Or(p.CharacterID, characterID), p.ids()...)
	if err != nil {
		return nil, err
	}
	set := *p
	set.Over = &Over{Character: now.Character, Resources: now.Resources, Settings: user.Version}
	return &set, nil
}

// characterAt reads a version of a character; the newest where that one was
// purged.
func characterAt(tx Tx, id string, version int64) (*Character, error) {
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
