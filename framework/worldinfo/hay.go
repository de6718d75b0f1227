package worldinfo

import (
	"strings"

	"nodest/card"
)

// marker begins each text that is searched, so that a pattern can bind to the beginning of a message.
const marker = "\x01"

// The texts beside the messages, as bits of a place.
const (
	inPersona = 1 << iota
	inDescription
	inPersonality
	inDepthPrompt
	inScenario
	inCreatorNotes
	inInjection
	inRecursion
)

// maskOf is the texts that an entry asks for.
func maskOf(t card.ScanTexts) (mask uint8) {
	for i, on := range []bool{t.Persona, t.Description, t.Personality, t.DepthPrompt, t.Scenario, t.CreatorNotes} {
		if on {
			mask |= 1 << i
		}
	}
	return mask
}

// places is where a key was found.
type places struct {
	any, whole     int32 // 1 + the number of the newest message; 0 = in none
	anyIn, wholeIn uint8 // other texts
}

func (p *places) note(message int, in uint8, whole bool) {
	if in != 0 {
		p.anyIn |= in
		if whole {
			p.wholeIn |= in
		}
		return
	}
	if at := int32(message) + 1; p.any == 0 {
		p.any = at
	}
	if whole && p.whole == 0 {
		p.whole = int32(message) + 1
	}
}

// view is the texts in which the keys of an entry are looked for. Without depth there are none.
type view struct {
	depth int   // newest messages
	in    uint8 // other texts
}

func (v view) sees(message int32, in uint8) bool {
	return v.depth > 0 && (message > 0 && int(message) <= v.depth || in&v.in != 0)
}

// hay is the texts of a scan, and where the keys of a set are in them.
type hay struct {
	set      *keyset
	find     *finder
	folded   []places // by the numbers of the automata
	exact    []places
	patterns []places // by the numbers of keys; of the local ones
}

func newHay(f *finder) *hay {
	return &hay{
		set: f.set, find: f, folded: make([]places, len(f.set.folded.Keys())), exact: make([]places, len(f.set.exact.Keys())),
		patterns: make([]places, len(f.set.keys)),
	}
}

// scan notes the keys in a text: of a message, the newest of which is 0, or of another text.
func (h *hay) scan(text string, message int, in uint8) unit {
	u := h.find.find(text)
	for _, hit := range u.folded {
		h.folded[hit.Key()].note(message, in, hit.Whole())
	}
	for _, hit := range u.exact {
		h.exact[hit.Key()].note(message, in, hit.Whole())
	}
	for _, k := range u.patterns {
		h.patterns[k].note(message, in, false)
	}
	return u
}

// texts are the texts of a scan, and what was found in them.
type texts struct {
	messages []string // the newest first, those that were scanned, each trimmed and behind a marker
	scanned  int
	others   [6]string // in the order of the bits
	injected []string
	recursed []string
	touched  []bool  // by entries: a key of theirs is in the text of entries that came last
	fresh    []int32 // the touched ones
	source   []Message
	names    bool

	hays   [2]*hay         // for keys without and with macros; the second may be nil
	joined map[view][]rune // at most maxJoined code points
	memo   map[patternAt]bool
}

// maxJoined bounds the joined texts that are kept for patterns, in code points. Entries of many depths
// ask for many.
const maxJoined = 4 << 20

type patternAt struct {
	set  int
	key  int32
	view view
}

// scanTo scans the newest n messages.
func (t *texts) scanTo(n int) {
	for ; t.scanned < min(n, len(t.source)); t.scanned++ {
		m := &t.source[len(t.source)-1-t.scanned]
		text := trim(m.Text)
		if t.names {
			text = trim(m.Name + ": " + m.Text)
		}
		text = marker + text
		t.messages = append(t.messages, text)
		t.each(text, t.scanned, 0)
	}
}

func (t *texts) each(text string, message int, in uint8) {
	for _, h := range t.hays {
		if h != nil {
			h.scan(text, message, in)
		}
	}
}

// scanOthers scans the texts beside the messages that some entry asks for.
func (t *texts) scanOthers(wanted uint8) {
	if len(t.source) == 0 {
		t.each(marker, 0, 0) // a chat without messages is the marker alone
	}
	for i, text := range t.others {
		if wanted&(1<<i) != 0 && text != "" {
			t.each(marker+text, 0, 1<<i)
		}
	}
	for _, text := range t.injected {
		t.each(marker+text, 0, inInjection)
	}
}

// recurse adds the texts of entries, and notes which entries they may bring in.
func (t *texts) recurse(text string) {
	t.recursed = append(t.recursed, text)
	clear(t.memo)
	more, held := []rune("\n"+marker+text), 0
	for v, runes := range t.joined {
		if v.in&inRecursion != 0 {
			t.joined[v] = append(runes, more...)
		}
		if held += len(t.joined[v]); held > maxJoined {
			clear(t.joined)
			break
		}
	}
	for _, h := range t.hays {
		if h == nil {
			continue
		}
		u := h.scan(marker+text, 0, inRecursion)
		for _, hit := range u.folded {
			t.touch(h.set.users.folded.of(hit.Key()))
		}
		for _, hit := range u.exact {
			t.touch(h.set.users.exact.of(hit.Key()))
		}
		for _, k := range u.patterns {
			t.touch(h.set.users.local.of(k))
		}
	}
}

func (t *texts) touch(entries []int32) {
	for _, n := range entries {
		if !t.touched[n] {
			t.touched[n] = true
			t.fresh = append(t.fresh, n)
		}
	}
}

// settle forgets which entries were touched.
func (t *texts) settle() {
	for _, n := range t.fresh {
		t.touched[n] = false
	}
	t.fresh = t.fresh[:0]
}

// join returns the texts of a view as one, for patterns.
func (t *texts) join(v view) []rune {
	v.depth = min(v.depth, len(t.messages))
	if runes, ok := t.joined[v]; ok {
		return runes
	}
	var b strings.Builder
	add := func(text string) {
		b.WriteString("\n" + marker)
		b.WriteString(text)
	}
	b.WriteString(strings.Join(t.messages[:v.depth], "\n"))
	if v.depth == 0 {
		b.WriteString(marker) // as SillyTavern has it without messages
	}
	for i, text := range t.others {
		if v.in&(1<<i) != 0 && text != "" {
			add(text)
		}
	}
	for _, text := range t.injected {
		add(text)
	}
	if v.in&inRecursion != 0 {
		for _, text := range t.recursed {
			add(text)
		}
	}
	runes := []rune(b.String())
	held := len(runes)
	for _, other := range t.joined {
		held += len(other)
	}
	if held > maxJoined {
		clear(t.joined)
	}
	t.joined[v] = runes
	return runes
}

// found reports whether a key of an entry is in its texts.
func (t *texts) found(k int32, v view, exact, whole bool) bool {
	if v.depth <= 0 {
		return false
	}
	which := 0
	if k < 0 {
		which, k = 1, -1-k
	}
	h := t.hays[which]
	if h == nil {
		return false
	}
	switch key := &h.set.keys[k]; key.kind {
	case blankKey:
		return true
	case plainKey:
		p := h.places(k, exact)
		if whole && !key.spaced {
			return v.sees(p.whole, p.wholeIn)
		}
		return v.sees(p.any, p.anyIn)
	case patternKey:
		return t.pattern(patternAt{which, k, v}, h, key)
	}
	return false
}

func (h *hay) places(k int32, exact bool) *places {
	if exact {
		return &h.exact[h.set.inExact[k]]
	}
	return &h.folded[h.set.inFolded[k]]
}

// places returns where a key was found; nil if that is not known.
func (t *texts) places(k int32, exact bool) *places {
	which := 0
	if k < 0 {
		which, k = 1, -1-k
	}
	h := t.hays[which]
	switch key := &h.set.keys[k]; {
	case key.kind == plainKey:
		return h.places(k, exact)
	case key.kind == patternKey && key.local:
		return &h.patterns[k]
	}
	return nil
}

// pattern runs a pattern over the texts of a view, unless its literals are not there.
func (t *texts) pattern(at patternAt, h *hay, k *key) bool {
	if k.local {
		p := &h.patterns[at.key]
		return at.view.sees(p.any, p.anyIn)
	}
	if need := h.set.required[at.key]; need != nil {
		there := false
		for _, l := range need {
			there = there || at.view.sees(h.folded[l].any, h.folded[l].anyIn)
		}
		if !there {
			return false
		}
	}
	if found, ok := t.memo[at]; ok {
		return found
	}
	found, ok := h.find.patterns.run(k, func() []rune { return t.join(at.view) })
	if ok {
		t.memo[at] = found
	}
	return found
}
