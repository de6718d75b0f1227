package dream

import (
	"context"

	"nodest/memory"
)

// Profile is the document that facts make: it is in every prompt, whatever was said. Each of its lines is
// a fact, whose id it has; who changes, pins or deletes the fact changes the document. Neither users nor
// runs write it.
const Profile = "profile.md"

// profile makes the profile of the facts of a memory, as they count now; nil = there is none.
func (s *Service) profile(ctx context.Context, userID, characterID string) (*Document, error) {
	if s.opts.Facts == nil {
		return nil, nil
	}
	facts, err := s.opts.Facts(ctx, userID, characterID)
	if err != nil {
		return nil, err
	}
	scene, err := s.opts.Scenes(ctx, userID, characterID)
	if err != nil {
		return nil, err
	}
	d := &Document{Path: Profile, Version: 1, Newest: 1, Locked: true, Author: ByDream}
	for _, shown := range memory.ProfileOf(facts, scene.Language).Facts {
		for i := range facts {
			m := &facts[i]
			if m.ID != shown.ID {
				continue
			}
			l := Line{ID: m.ID, Text: shown.Text, Author: ByDream, Evidence: m.Evidence, At: m.UpdatedAt}
			if m.Origin == memory.ByUser {
				l.Author = ByUser
			}
			if d.Lines = append(d.Lines, l); l.At.After(d.UpdatedAt) {
				d.UpdatedAt = l.At
			}
		}
	}
	if len(d.Lines) == 0 {
		return nil, nil
	}
	return d, nil
}

// profileIn is Document of the profile, which has one version.
func (s *Service) profileIn(ctx context.Context, userID, characterID string, version int64) (*Shown, error) {
	d, err := s.profile(ctx, userID, characterID)
	if err != nil {
		return nil, err
	}
	if d == nil || version > 1 {
		return nil, NoDocument(Profile, version)
	}
	shown := &Shown{d, make([]bool, len(d.Lines))}
	for i := range shown.Counts {
		shown.Counts[i] = true
	}
	return shown, nil
}
