package character

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/tavern"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// keepDocs bounds the documents whose compiled form is kept, in bytes.
const keepDocs = 128 << 20

// Documents are the documents of a turn, read, parsed and compiled. They are
// immutable and shared by all turns that name the same versions.
type Documents struct {
	CharacterID  string
	Card         card.RoleCard
	Language     framework.Language  // language of built-in words
	Compiled     *framework.Compiled // nil = Tavern
	Tavern       *tavern.Compiled    // for chats in the SillyTavern dialect; nil = Compiled
	Sampling     TurnOptions         // options of the preset in force
	Scripts      *framework.Scripts
	Note         *card.AuthorNote // the character's; nil = none
	Settings     Settings
	Personas     map[string]framework.Persona
	Bound        string              // persona that is bound to the character; "" = none
	Warnings     []framework.Warning // about scripts that wait for the user's consent
	HasKnowledge bool                // a file or a knowledge base is switched on for the character
	size         int                 // estimated memory, in bytes

	parts *tavernParts // until they are compiled
}

// Wanted selects the documents that a turn needs besides the character's own.
type Wanted struct {
	characterID, personaID string
	user                   *UserSettings
	preset                 *card.Preset // in the place of all others; nil = theirs count
}

// WithPreset is w with a preset that replaces the character's and the global one, whatever the
// character's dialect. Only the card fields that the preset lists are used. Presets with
// different contents must have different names.
func (w Wanted) WithPreset(p *card.Preset) Wanted {
	w.preset = p
	return w
}

// WantedBy returns the documents that a character needs in a chat with personaID.
func WantedBy(s *UserSettings, personaID, characterID string) Wanted {
	return Wanted{characterID: characterID, personaID: personaID, user: s}
}

// inUse is the id of a resource that is switched on; "" = none is.
func (g GlobalResource) inUse() string {
	if g.Enabled {
		return g.ID
	}
	return ""
}

// Stamps are the versions of the documents that count. pins are those of the
// conversation; nil = the newest count.
func (w Wanted) Stamps(tx Tx, pins *Pins) (*Stamps, error) {
	named := slices.DeleteFunc(
		[]string{w.personaID, w.user.PersonaID, w.user.GlobalPreset.inUse(), w.user.GlobalWorldBook.inUse()},
		func(id string) bool { return id == "" })
	now, err := tx.Stamps(w.characterID, named...)
	if err != nil {
		return nil, err
	}
	if book, err := w.personaBook(tx, now); err != nil {
		return nil, err
	} else if book != "" {
		named = append(named, book)
		if now, err = tx.Stamps(w.characterID, named...); err != nil {
			return nil, err
		}
		now.Resources = slices.DeleteFunc(now.Resources, func(r ResourceStamp) bool { return r.ID == book && r.Kind != WorldBook })
	}
	if pins == nil {
		return now, nil
	}
	if missing := pins.missingIn(now); len(missing) > 0 {
		if now, err = tx.Stamps(w.characterID, append(missing, named...)...); err != nil {
			return nil, err
		}
	}
	return pins.StampsInForce(now, named), nil
}

// personaBook is the world book of the persona that speaks, if nothing else brings it in; "" = none.
func (w Wanted) personaBook(tx Tx, now *Stamps) (string, error) {
	speaks := w.personaID
	if speaks == "" {
		speaks = w.user.PersonaID
		for _, r := range now.Resources {
			if r.Kind == Persona && r.Bound {
				speaks = r.ID // the last one of several
			}
		}
	}
	if speaks == "" {
		return "", nil
	}
	r, err := tx.Resource(Persona, speaks)
	if err != nil {
		if fault.Is(err, fault.NotFound) {
			err = nil // it was deleted
		}
		return "", err
	}
	p := &personaDocument{}
	_ = op.DecodeLenient("document", r.Document, p) // it has none if a member is of another type
	book, _ := p.WorldBook.(string)
	if slices.ContainsFunc(now.Resources, func(r ResourceStamp) bool { return r.ID == book }) {
		return "", nil
	}
	return book, nil
}

// key identifies the input of compiling for a user: equal keys, equal documents. Ids are unique within a user only.
func (w Wanted) key(userID string, s *Stamps) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s|%s@%d|%v|%v|%t", userID, w.characterID, s.Character, w.user.GlobalPreset, w.user.GlobalWorldBook, w.user.GlobalRegexEnabled)
	for _, r := range s.Resources {
		fmt.Fprintf(&b, "|%s@%d%t", r.ID, r.Version, r.Bound)
	}
	if w.preset != nil {
		b.WriteString("|preset " + w.preset.Name)
	}
	return b.String()
}

// Documents returns the compiled documents of a turn. It reads them only where
// one of the versions is new.
func (svc *Service) Documents(tx Tx, w Wanted, pins *Pins) (*Documents, error) {
	d, stamps, err := svc.held(tx, w, pins)
	if d != nil || err != nil {
		return d, err
	}
	if d, err = readDocs(tx, w, stamps, nil); err != nil {
		return nil, err
	}
	svc.compiled.Put(w.key(tx.UserID(), stamps), d, min(d.size, keepDocs)) // larger ones stay too, alone
	return d.knowing(stamps), nil
}

// CompiledDocuments returns Documents that need not be compiled first; nil = they must be. It is for
// transactions that others wait for.
func (svc *Service) CompiledDocuments(tx Tx, w Wanted, pins *Pins) (*Documents, error) {
	d, _, err := svc.held(tx, w, pins)
	return d, err
}

func (svc *Service) held(tx Tx, w Wanted, pins *Pins) (*Documents, *Stamps, error) {
	stamps, err := w.Stamps(tx, pins)
	if err != nil {
		return nil, nil, err
	}
	d, _ := svc.compiled.Get(w.key(tx.UserID(), stamps))
	return d.knowing(stamps), stamps, nil
}

// knowing is d, of which all turns share one, with what is not compiled.
func (d *Documents) knowing(s *Stamps) *Documents {
	if d == nil || !s.HasKnowledge {
		return d
	}
	own := *d
	own.HasKnowledge = true
	return &own
}

// readDocs reads and compiles documents. change, if not nil, may change what is compiled.
func readDocs(tx Tx, w Wanted, stamps *Stamps, change func(*framework.Sources) error) (*Documents, error) {
	ch, err := At(tx, w.characterID, stamps.Character)
	if err != nil {
		return nil, err
	}
	d := &Documents{CharacterID: ch.ID, size: 16 << 10, Personas: map[string]framework.Persona{}, parts: &tavernParts{}}
	sources, err := d.readCharacter(ch)
	if err != nil {
		return nil, err
	}
	var scripts []card.RegexScript
	for _, r := range stamps.Resources {
		res, err := resourceAt(tx, r)
		if err != nil {
			return nil, err
		}
		if res == nil { // pinned, deleted and purged
			continue
		}
		d.size += len(res.Document)
		more, err := d.addResource(w, r, res, &sources)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.Kind, r.ID, err)
		}
		scripts = append(scripts, d.allowed(res, more)...)
	}
	if w.preset != nil {
		sources.Preset, sources.GlobalPreset, sources.CardFields = w.preset, nil, framework.CardFields("listed")
	}
	if change != nil {
		if err := change(&sources); err != nil {
			return nil, err
		}
	}
	if sources.Dialect == card.SillyTavern && w.preset == nil {
		d.Tavern = d.parts.compile(&sources)
		d.size += d.Tavern.Size()
	} else {
		d.Compiled = framework.Compile(sources)
		d.size += d.Compiled.Size()
	}
	d.Sampling = samplingOf(cmp.Or(sources.GlobalPreset, sources.Preset))
	scripts = d.tavernScripts(scripts, &sources)
	d.parts = nil
	if !w.user.GlobalRegexEnabled {
		scripts = nil
	}
	d.Scripts = framework.CompileScripts(sources.Dialect, scripts)
	d.size += d.Scripts.Size()
	return d, nil
}

// readCharacter parses the character's own documents. Its regex scripts are not
// among them: those work as a group of their own (autogroup.go).
func (d *Documents) readCharacter(ch *Character) (framework.Sources, error) {
	d.size += len(ch.RoleCard) + len(ch.WorldBook) + len(ch.Preset) + len(ch.AuthorNote)
	var err error
	if d.Settings, err = ch.ParseSettings(); err != nil {
		return framework.Sources{}, err
	}
	s, err := ch.sources(&d.Settings)
	if err != nil {
		return s, fmt.Errorf("documents of character %s: %w", ch.ID, err)
	}
	s.Card.Name = cmp.Or(ch.Name, s.Card.Name)
	d.Card, d.Language = s.Card, s.Language
	d.parts.last = s.Dialect == card.SillyTavern
	d.parts.tags = slices.Concat(s.Card.Tags, ch.Tags)
	d.parts.addBook(bookNameOf(s.Card.Name, ch.WorldBook), &s.Book, false)
	d.parts.addPreset(s.Preset, false)
	s.Preset = completed(*s.Preset, s.Language)
	if d.Note, err = card.ParseAuthorNote(ch.AuthorNote); err != nil {
		return s, fmt.Errorf("author's note of character %s: %w", ch.ID, err)
	}
	return s, nil
}

// language is that of the built-in words in a character's prompts.
func (s *Settings) language(c card.RoleCard) framework.Language {
	if l := s.Prompt.Language; l != "auto" {
		return framework.Language(l)
	}
	return framework.LanguageOf(c.Name, c.Description, c.Personality, c.Scenario, c.FirstMes)
}

// addResource adds a resource to the sources, and returns its regex scripts.
func (d *Documents) addResource(w Wanted, r ResourceStamp, res *Resource, s *framework.Sources) ([]card.RegexScript, error) {
	globalBook := w.user.GlobalWorldBook
	switch r.Kind {
	case WorldBook:
		dialect := card.Dialect(cmp.Or(res.Dialect, string(s.Dialect)))
		book, err := card.ParseWorldBook(res.Document, dialect)
		if err != nil {
			return nil, err
		}
		if r.Bound && r.ID == globalBook.inUse() {
			return nil, nil // it is in the prompt once, as the global one
		}
		filter := waitsForKeys(dialect)
		d.parts.addBook(res.Name, &book, res.BindAll || r.ID == globalBook.inUse())
		if r.ID == globalBook.inUse() {
			s.GlobalBook, s.GlobalPriority, s.GlobalFilterKeyed = &book, framework.Priority(globalBook.Priority), filter
		} else {
			s.MoreBooks = append(s.MoreBooks, framework.BoundBook{ID: r.ID, Book: book, FilterKeyed: filter})
		}
	case Preset:
		return nil, d.addPreset(w, r, res, s)
	case RegexScript:
		return card.ParseRegexScripts(res.Document)
	case Persona:
		d.Personas[r.ID] = personaOf(res)
		if r.Bound {
			d.Bound = r.ID
		}
	}
	return nil, nil
}

// addPreset adds a preset that is a resource of its own.
func (d *Documents) addPreset(w Wanted, r ResourceStamp, res *Resource, s *framework.Sources) error {
	preset, err := card.ParsePreset(res.Document)
	if err != nil {
		return err
	}
	global := r.ID == w.user.GlobalPreset.inUse() && !r.Bound
	d.parts.addPreset(&preset, global)
	if global {
		s.GlobalPreset = completed(preset, s.Language)
	} else {
		s.Preset = completed(preset, s.Language) // bound to the character: it beats the card's own, and the newest wins
	}
	return nil
}

// waitsForKeys reports whether the entries of a book of its own wait for their keys at
// every position.
func waitsForKeys(d card.Dialect) bool { return d == card.SillyTavern }

// BuildOptions are the options of a prompt that the character's settings decide.
func (d *Documents) BuildOptions() framework.Options {
	set := d.Settings.Prompt
	return framework.Options{
		DepthMode: framework.DepthMode(set.DepthMode), ScanDepth: set.ScanDepth, FilterKeyed: set.FilterKeyed,
		ScanSummary: d.Settings.Memory.ScanSummary, Language: d.Language, Recount: set.Recount,
	}
}

// samplingOf is what a preset sets of a turn; p may be nil.
func samplingOf(p *card.Preset) TurnOptions {
	if p == nil {
		return TurnOptions{}
	}
	s := p.Sampling
	return TurnOptions{Temperature: s.Temperature, TopP: s.TopP, MaxTokens: s.MaxTokens, ContextTokens: s.ContextTokens}
}

func personaOf(r *Resource) framework.Persona {
	var p personaDocument
	_ = json.Unmarshal(r.Document, &p) // checked when it was stored
	return framework.Persona{Name: cmp.Or(p.Name, r.Name), Description: p.Description, Place: p.place()}
}

// SettingOf reads a user custom setting (自设); nil for none.
func SettingOf(doc json.RawMessage) *framework.Setting {
	if op.IsNull(doc) {
		return nil
	}
	s := customSetting{Order: 1}
	if json.Unmarshal(doc, &s) != nil { // checked when it was stored
		return nil
	}
	return &framework.Setting{
		Name: s.Comment, Text: s.Content, Disable: s.Disable, Position: s.Position, Order: s.Order, Depth: s.Depth, Global: s.Global,
	}
}
