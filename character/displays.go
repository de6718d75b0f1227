package character

import (
	"fmt"
	"slices"

	"nodest/card"
)

// keepDisplays bounds for how many versions of documents it is kept whether scripts change how texts look.
const keepDisplays = 4096

// DisplayDocuments are the Documents of a chat in which regex scripts change how texts look for their
// readers; nil = none does. Only the SillyTavern dialect has such scripts. Documents of chats
// without them are not compiled.
func (svc *Service) DisplayDocuments(tx Tx, w Wanted, pins *Pins) (*Documents, error) {
	if !w.user.GlobalRegexEnabled {
		return nil, nil
	}
	d, stamps, err := svc.held(tx, w, pins)
	if err != nil {
		return nil, err
	}
	if d == nil {
		key := w.key(tx.UserID(), stamps)
		may, known := svc.displays.Get(key)
		if !known {
			if may, err = w.mayDisplay(tx, stamps); err != nil {
				return nil, err
			}
			svc.displays.Put(key, may, 1)
		}
		if !may {
			return nil, nil
		}
		if d, err = svc.Documents(tx, w, pins); err != nil {
			return nil, err
		}
	}
	if d.Tavern == nil || !d.Scripts.Displays() {
		return nil, nil
	}
	return d, nil
}

// mayDisplay reports whether some script of a character of the SillyTavern dialect is for display, whether
// it may run or not.
func (w Wanted) mayDisplay(tx Tx, stamps *Stamps) (bool, error) {
	ch, err := tx.CharacterCard(w.characterID)
	if err != nil {
		return false, err
	}
	if ch.DocumentsVersion == stamps.Character && ch.Dialect != string(card.SillyTavern) {
		return false, nil
	}
	if ch, err = At(tx, w.characterID, stamps.Character); err != nil || ch.Dialect != string(card.SillyTavern) {
		return false, err
	}
	own, err := card.ParsePreset(ch.Preset)
	if err != nil || slices.ContainsFunc(own.Scripts, isForDisplay) {
		return err == nil, err
	}
	for _, r := range stamps.Resources {
		if r.Kind != RegexScript && r.Kind != Preset {
			continue
		}
		res, err := resourceAt(tx, r)
		if err != nil {
			return false, err
		}
		if res == nil {
			continue
		}
		scripts, err := scriptsIn(res)
		if err != nil {
			return false, fmt.Errorf("%s %s: %w", r.Kind, r.ID, err)
		}
		if slices.ContainsFunc(scripts, isForDisplay) {
			return true, nil
		}
	}
	return false, nil
}

func scriptsIn(r *Resource) ([]card.RegexScript, error) {
	if r.Kind == RegexScript {
		return card.ParseRegexScripts(r.Document)
	}
	p, err := card.ParsePreset(r.Document)
	return p.Scripts, err
}

func isForDisplay(s card.RegexScript) bool { return s.MarkdownOnly && !s.Disabled }
