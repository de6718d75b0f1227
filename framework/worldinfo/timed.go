package worldinfo

import "maps"

// Timed are the timed effects of a chat, as SillyTavern keeps them in its metadata
// (timedWorldInfo). Keys are ids of entries ("book.uid").
type Timed struct {
	Sticky   map[string]Effect `json:"sticky"`
	Cooldown map[string]Effect `json:"cooldown"`
}

// Effect is a sticky time or a cooldown. Start and End count the messages of the chat.
type Effect struct {
	// Hash is that of the entry, so that an edited entry loses the effect. One that is no text, such
	// as SillyTavern's, is not compared.
	Hash      any  `json:"hash,omitempty"`
	Start     int  `json:"start"`
	End       int  `json:"end"`
	Protected bool `json:"protected"` // it stays when the chat gets shorter
}

// effects ends the effects whose time is over and applies the others (spec 3.7).
func (s *scan) effects() {
	if s.in.DryRun {
		s.timed = s.in.Timed
		return
	}
	s.timed = Timed{Sticky: copied(s.in.Timed.Sticky), Cooldown: copied(s.in.Timed.Cooldown)}
	l := s.in.length()
	for id, e := range s.in.Timed.Sticky {
		n, live, ended := s.effect(id, e, func(e *entry) *int { return e.Sticky })
		if live {
			s.state[n].stuck, s.state[n].until = true, &e.End
			continue
		}
		if ended && orZero(s.b.entries[n].Cooldown) > 0 {
			s.timed.Cooldown[id] = Effect{Hash: s.b.entries[n].hash, Start: l, End: l + *s.b.entries[n].Cooldown, Protected: true}
		}
		s.drop(s.timed.Sticky, id, n)
	}
	for id, e := range maps.Clone(s.timed.Cooldown) {
		n, live, _ := s.effect(id, e, func(e *entry) *int { return e.Cooldown })
		if !live {
			s.drop(s.timed.Cooldown, id, n)
			continue
		}
		s.state[n].cooling = true
		if !s.state[n].stuck {
			s.state[n].until = &e.End
		}
	}
}

// drop removes an effect that does not last. That of an entry n < 0, which is not known, stays until
// its time is over.
func (s *scan) drop(effects map[string]Effect, id string, n int32) {
	l, e := s.in.length(), effects[id]
	if n >= 0 || l >= e.End || l <= e.Start && !e.Protected {
		delete(effects, id)
	}
}

func orZero(p *int) int {
	if p == nil {
		return 0
	}
	return *p
}

func copied(m map[string]Effect) map[string]Effect {
	c := make(map[string]Effect, len(m))
	maps.Copy(c, m)
	return c
}

// effect says what became of an effect: the number of its entry, -1 if it is not known; whether it
// lasts; and whether its time is over.
func (s *scan) effect(id string, e Effect, setting func(*entry) *int) (n int32, live, ended bool) {
	l := s.in.length()
	n, known := s.b.byID[id]
	if known {
		hash, ours := e.Hash.(string)
		known = !ours || hash == s.b.entries[n].hash
	}
	if !known {
		return -1, false, false
	}
	switch p := setting(&s.b.entries[n]); {
	case l <= e.Start && !e.Protected, orZero(p) <= 0:
		return n, false, false
	default:
		return n, l < e.End, l >= e.End
	}
}

// start stores the effects of entries that came in.
func (s *scan) start() {
	if s.in.DryRun {
		return
	}
	l := s.in.length()
	for _, n := range s.active {
		e := &s.b.entries[n]
		begin := func(effects map[string]Effect, messages *int) {
			if _, there := effects[e.id]; !there && orZero(messages) > 0 {
				effects[e.id] = Effect{Hash: e.hash, Start: l, End: l + *messages}
			}
		}
		begin(s.timed.Sticky, e.Sticky)
		begin(s.timed.Cooldown, e.Cooldown)
	}
}
