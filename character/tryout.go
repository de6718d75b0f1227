package character

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"nodest/card"
	"nodest/framework"
	"nodest/framework/macro"
	"nodest/framework/tavern"
	"nodest/framework/worldinfo"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// Bounds of what world books and regex scripts are tested with.
const (
	maxTestText     = 32_000 // code points of a text
	maxTestMessages = 1000
)

// The names in tests of documents that belong to no character.
const (
	testUser      = "User"
	testCharacter = "Character"
)

// BookTest asks which entries of a world book fire: of Document, WorldBookID, or all books
// of CharacterID. One of them is given; Document may come with CharacterID, and is tested
// as the only book of that character then.
type BookTest struct {
	Document    json.RawMessage `json:"document,omitempty"`
	Dialect     string          `json:"dialect,omitempty"` // dialect of Document; default: the character's, else by its form
	WorldBookID string          `json:"worldBookId,omitempty"`
	CharacterID string          `json:"characterId,omitempty"`
	Messages    []TestMessage   `json:"messages,omitempty"`  // the chat, oldest first
	Text        string          `json:"text,omitempty"`      // the user's message behind them
	ScanDepth   *int            `json:"scanDepth,omitempty"` // as in the settings of a character
}

// TestMessage is a message of a chat that exists only in a test.
type TestMessage struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

func (in *BookTest) check() error {
	if err := oneGiven("document, worldBookId or characterId", !op.IsNull(in.Document), in.WorldBookID != "", in.CharacterID != "" && op.IsNull(in.Document)); err != nil {
		return err
	}
	if in.Text == "" && len(in.Messages) == 0 {
		return fault.InvalidField("text", "required", "required: text or messages")
	}
	if len(in.Messages) > maxTestMessages {
		return fault.InvalidField("messages", "range", "must have at most %d messages", maxTestMessages)
	}
	checks := op.Checks{}
	for i, m := range in.Messages {
		field := fmt.Sprintf("messages[%d]", i)
		op.OneOf(&checks, field+".role", m.Role, []string{"user", "assistant", "system", framework.RoleNarrator})
		if err := op.CheckLength(field+".text", m.Text, maxTestText); err != nil {
			return err
		}
	}
	op.Between(&checks, "scanDepth", in.ScanDepth, -1, 100_000)
	checks.That(in.ScanDepth == nil || *in.ScanDepth != 0, "scanDepth", "range", "must not be 0; -1 = all messages")
	if err := checks.Err(); err != nil {
		return err
	}
	if err := checkDialect(in.Dialect); err != nil {
		return err
	}
	return op.CheckLength("text", in.Text, maxTestText)
}

// oneGiven refuses a request that does not name exactly one source.
func oneGiven(fields string, given ...bool) error {
	n := 0
	for _, ok := range given {
		if ok {
			n++
		}
	}
	if n != 1 {
		return fault.InvalidField("document", "required", "give exactly one of %s", fields)
	}
	return nil
}

// TestBook builds the prompt of a chat that is not stored, and says what became of the
// entries of its world books. A book by itself is tested as one that is bound to a
// character, in a chat with an author's note.
//
// Without a model the budget of the SillyTavern dialect, which also says how it decided, is that of a context
// of usual size.
//
// Errors: Invalid with the field; NotFound; InvalidWorldBook.
func (svc *Service) TestBook(ctx context.Context, userID string, in BookTest) ([]framework.BookEntry, *worldinfo.Output, error) {
	if err := in.check(); err != nil {
		return nil, nil, err
	}
	tried, err := op.Read(ctx, svc.store, userID, func(tx Tx) (*tried, error) {
		if in.CharacterID != "" {
			return svc.characterInput(tx, &in)
		}
		return in.bookInput(tx)
	})
	if err != nil {
		return nil, nil, err
	}
	input := &tried.Input
	if in.ScanDepth != nil {
		input.Options.ScanDepth = *in.ScanDepth
	}
	for _, m := range in.Messages {
		input.History = append(input.History, framework.Message{Role: m.Role, Text: m.Text})
	}
	input.User = framework.Message{Role: "user", Text: input.Scripts.User(in.Text)}
	if tried.tavern != nil {
		return tried.build(ctx, in.ScanDepth)
	}
	p, err := framework.Build(ctx, *input)
	if err != nil {
		return nil, nil, err
	}
	return input.Compiled.Books(p), nil, nil
}

// tried is the input of a prompt that is built to see what becomes of its world books.
type tried struct {
	framework.Input
	tavern *tavern.Compiled // nil = the other dialect
	rules  worldinfo.Settings
}

// usualContext is SillyTavern's, in tokens, and usualReply what it keeps of it for the reply.
const usualContext, usualReply = 32_768, 1_024

// build makes the prompt by the rules of SillyTavern.
func (t *tried) build(ctx context.Context, scanDepth *int) ([]framework.BookEntry, *worldinfo.Output, error) {
	if scanDepth != nil {
		t.rules.Depth = *scanDepth
		if *scanDepth < 0 {
			t.rules.Depth = maxTestMessages
		}
	}
	if t.Options.Context <= 0 {
		t.Options.Context, t.Options.Reserve = usualContext, usualReply
	}
	_, result, err := tavern.Build(ctx, &t.Input, &tavern.Play{Compiled: t.tavern, WorldInfo: &t.rules, Explain: true})
	if err != nil {
		return nil, nil, err
	}
	return t.tavern.Books(result.World), result.World, nil
}

// characterInput is the input of a prompt of a character, without a chat.
func (svc *Service) characterInput(tx Tx, in *BookTest) (*tried, error) {
	ch, err := tx.Character(in.CharacterID)
	if err != nil {
		return nil, op.InField("characterId", err)
	}
	user, err := tx.Settings()
	if err != nil {
		return nil, err
	}
	wanted := WantedBy(user, "", ch.ID)
	var d *Documents
	if op.IsNull(in.Document) {
		d, err = svc.Documents(tx, wanted, nil)
	} else {
		d, err = in.documentsWith(tx, wanted, ch)
	}
	if err != nil {
		return nil, err
	}
	name, err := UserName(tx, ch, "")
	return &tried{Input: framework.Input{
		Compiled: d.Compiled, Note: d.Note, Persona: framework.Persona{Name: name}, Scripts: d.Scripts.Run(nil), Options: d.BuildOptions(),
	}, tavern: d.Tavern, rules: d.Settings.WorldInfoRules()}, err
}

// documentsWith are the documents of a character with Document as its only world book.
func (in *BookTest) documentsWith(tx Tx, w Wanted, ch *Character) (*Documents, error) {
	if err := checkDocument("document", WorldBook, in.Document); err != nil {
		return nil, err
	}
	stamps, err := w.Stamps(tx, nil)
	if err != nil {
		return nil, err
	}
	var book card.WorldBook
	d, err := readDocs(tx, w, stamps, func(s *framework.Sources) (err error) {
		book, err = card.ParseWorldBook(in.Document, card.Dialect(cmp.Or(in.Dialect, string(s.Dialect))))
		s.GlobalBook, s.MoreBooks, s.Book = nil, nil, book
		return err
	})
	if err == nil && d.Tavern != nil {
		d.Tavern = tavern.Compile(tavern.Sources{
			Card: d.Card, Language: d.Language, Character: worldinfo.Character{Tags: slices.Concat(d.Card.Tags, ch.Tags)},
			Books: []worldinfo.Source{{Name: bookNameOf(d.Card.Name, in.Document), Origin: worldinfo.OfCharacter, Entries: book.Entries}},
		})
	}
	return d, err
}

// bookInput is the input of a prompt with one world book.
func (in *BookTest) bookInput(tx Tx) (*tried, error) {
	doc, dialect := in.Document, card.Dialect(cmp.Or(in.Dialect, string(card.BookDialect(in.Document))))
	if in.WorldBookID != "" {
		r, err := tx.Resource(WorldBook, in.WorldBookID)
		if err != nil {
			return nil, op.InField("worldBookId", err)
		}
		doc, dialect = r.Document, card.Dialect(r.Dialect)
	} else if err := checkDocument("document", WorldBook, doc); err != nil {
		return nil, err
	}
	book, err := card.ParseWorldBook(doc, dialect)
	if err != nil {
		return nil, err
	}
	of := card.RoleCard{Name: testCharacter}
	t := &tried{Input: framework.Input{
		Note:    &card.AuthorNote{Depth: 4},
		Persona: framework.Persona{Name: testUser},
		Options: framework.Options{FilterKeyed: waitsForKeys(dialect)},
	}, rules: worldinfo.DefaultSettings()}
	if dialect != card.SillyTavern {
		t.Compiled = framework.Compile(framework.Sources{Dialect: dialect, Card: of, Book: book})
	} else {
		t.tavern = tavern.Compile(tavern.Sources{Card: of, Books: []worldinfo.Source{{Name: bookNameOf(of.Name, doc), Origin: worldinfo.OfCharacter, Entries: book.Entries}}})
	}
	return t, nil
}

// ScriptTest asks what regex scripts do to a text: those of Document, or of
// RegexScriptID. One of them is given.
type ScriptTest struct {
	Dialect       string          `json:"dialect,omitempty"` // default nodest
	Document      json.RawMessage `json:"document,omitempty"`
	RegexScriptID string          `json:"regexScriptId,omitempty"`
	Text          string          `json:"text"`
	Placement     *int            `json:"placement,omitempty"` // default 2: a reply
	Depth         *int            `json:"depth,omitempty"`     // default 0: the newest message
	IsMarkdown    bool            `json:"isMarkdown,omitempty"`
	IsPrompt      bool            `json:"isPrompt,omitempty"`
}

// ScriptsTested is what they did.
type ScriptsTested struct {
	Text    string                   `json:"text"`
	Scripts []framework.ScriptResult `json:"scripts"`
}

// scriptPlaces are the placements that scripts of a dialect can have.
func scriptPlaces(dialect card.Dialect) []int {
	if dialect == card.SillyTavern {
		return []int{card.PlaceUserInput, card.PlaceAIOutput, card.PlaceSlashCommand, card.PlaceWorldInfo, card.PlaceReasoning}
	}
	return []int{card.PlaceUserInput, card.PlaceAIOutput}
}

// TestScripts runs regex scripts over a text as a turn does. Whether the user has switched
// scripts on, and what they are bound to, does not matter. In the SillyTavern dialect, macros have
// made-up names and no variables.
//
// Errors: Invalid with the field; NotFound; InvalidImport.
func (svc *Service) TestScripts(ctx context.Context, userID string, in ScriptTest) (*ScriptsTested, error) {
	if err := oneGiven("document or regexScriptId", !op.IsNull(in.Document), in.RegexScriptID != ""); err != nil {
		return nil, err
	}
	if err := op.CheckLength("text", in.Text, maxTestText); err != nil {
		return nil, err
	}
	if err := checkDialect(in.Dialect); err != nil {
		return nil, err
	}
	checks := op.Checks{}
	dialect := card.Dialect(cmp.Or(in.Dialect, string(card.NodeST)))
	places := scriptPlaces(dialect)
	checks.That(in.Placement == nil || slices.Contains(places, *in.Placement), "placement", "value", "must be one of %s", op.MustJSON(places))
	op.Between(&checks, "depth", in.Depth, 0, math.MaxInt32)
	if err := checks.Err(); err != nil {
		return nil, err
	}
	doc := in.Document
	if in.RegexScriptID != "" {
		r, err := svc.Resource(ctx, userID, RegexScript, in.RegexScriptID)
		if err != nil {
			return nil, op.InField("regexScriptId", err)
		}
		doc = r.Document
	} else if err := checkDocument("document", RegexScript, doc); err != nil {
		return nil, err
	}
	scripts, err := card.ParseRegexScripts(doc)
	if err != nil {
		return nil, err
	}
	occasion := framework.Occasion{Placement: card.PlaceAIOutput, IsMarkdown: in.IsMarkdown, IsPrompt: in.IsPrompt}
	if in.Placement != nil {
		occasion.Placement = *in.Placement
	}
	if in.Depth != nil {
		occasion.Depth = *in.Depth
	}
	out := &ScriptsTested{}
	macros := &macro.Env{Names: macro.People{User: testUser, Char: testCharacter}, Local: &macro.Vars{}, Global: &macro.Vars{}}
	out.Text, out.Scripts = framework.TestScripts(dialect, scripts, in.Text, occasion, macros)
	return out, nil
}
