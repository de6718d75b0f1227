package circle

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"nodest/card"
	"nodest/character"
	"nodest/framework"
	"nodest/internal/op"
	"nodest/llm"
)

// A prompt of the circle has two messages. The first is the scene: the rules, the post
// and what was said about it. It is the same, byte for byte, for everybody who is asked
// about it, so that providers can reuse it. The second is about the one who is asked: the
// card and the entries of world books that apply, relationships, the message box, public
// memories, own posts, and the answer that is wanted.

// Limits of a prompt.
const (
	maxQuoted     = 1_000  // code points of each text
	maxThread     = 40     // comments that are shown
	maxShownBox   = 15     // items of the message box
	maxOwnPosts   = 5      // posts of the one who is asked
	maxRecalled   = 5      // memories
	maxPrompt     = 24_000 // tokens of a request with its answer
	answerTokens  = 700    // tokens of an answer
	thoughtTokens = 4_000  // tokens that a model thinks before it answers
)

// circlePreset is what a prompt has of a card: not its private scene. It has no words, so it fits any language.
var circlePreset = &card.Preset{
	Name: "circle",
	Order: []card.OrderItem{
		{Identifier: "charDescription", Enabled: true}, {Identifier: "charPersonality", Enabled: true},
		{Identifier: "scenario"}, {Identifier: "dialogueExamples"}, {Identifier: "chatHistory", Enabled: true},
	},
}

// documentsOf returns the documents of a character as prompts of the circle have them:
// without its chats, personas, author's note and what the user says about themselves.
func (svc *Service) documentsOf(tx Tx, set *character.UserSettings, characterID string) (*character.Documents, error) {
	return svc.opts.Characters.Documents(tx.Characters, character.WantedBy(set, "", characterID).WithPreset(circlePreset), nil)
}

// request is what a character is asked.
type request struct {
	docs   *character.Documents
	user   string    // the name that the user is called by
	now    time.Time // in the user's time zone
	scene  string
	images []llm.Image // images of the scene
	own    string      // the second message, without the card
}

// messages builds the request.
//
// Errors: ContextTooLarge for a card that leaves no room.
func (r *request) messages(ctx context.Context) ([]llm.Message, error) {
	in := framework.Input{
		Compiled: r.docs.Compiled, Persona: framework.Persona{Name: private},
		User:        framework.Message{Role: string(llm.User), Text: r.scene},
		Instruction: &framework.Instruction{Task: llm.Circle, Text: paragraphs(r.own, fmt.Sprintf(wordsOf(r.docs.Language).Language, r.language())), Role: llm.User},
		Options:     r.docs.BuildOptions(),
	}
	in.Options.Now, in.Options.Context, in.Options.Reserve = r.now, maxPrompt, answerTokens
	p, err := framework.Build(ctx, in)
	if err != nil {
		return nil, err
	}
	var rest []string
	for i, m := range p.Messages {
		if i != p.Base {
			rest = append(rest, public(m.Text))
		}
	}
	return []llm.Message{
		{Role: llm.User, Text: p.Messages[p.Base].Text, Images: r.images},
		{Role: llm.User, Text: strings.Join(rest, "\n\n")},
	}, nil
}

// prompt is the request to a model.
func (r *request) prompt(ctx context.Context) (llm.Prompt, error) {
	messages, err := r.messages(ctx)
	return llm.Prompt{
		Messages: messages, JSON: true, MaxTokens: answerTokens, MaxThought: thoughtTokens, Task: llm.Circle,
		CharName: r.docs.Card.Name, UserName: r.user,
	}, err
}

// tags is what a model may take for a tag or a token that separates messages, and what the
// framework may take for a macro.
var tags = regexp.MustCompile(`<[\s\x{200c}\x{200d}]*/|<[|!\pL｜]|\{{2,}|\[(/?INST)\]`)

var untag = strings.NewReplacer("<", "‹", "{", "{ ", "[", "(", "]", ")")

// defused is a text from outside, at most 1,000 code points, that cannot end its block,
// speak for somebody else or be replaced as a macro.
func defused(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r != '\n' && unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Cf, r) && r != '\u200d' && r != '\u200c': // they hide tags; joiners shape letters and emoji
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	text = tags.ReplaceAllStringFunc(text, untag.Replace)
	if cut := op.Truncate(text, maxQuoted); cut != text {
		text = cut + "…"
	}
	return strings.TrimSpace(text)
}

// line is defused text in one line.
func line(text string) string { return strings.Join(strings.Fields(defused(text)), " ") }

// block is a tagged block; "" without lines. heading may be empty.
func block(tag, heading string, lines ...string) string {
	if len(lines) == 0 {
		return ""
	}
	if heading != "" {
		heading += "\n"
	}
	return heading + "<" + tag + ">\n" + strings.Join(lines, "\n") + "\n</" + tag + ">"
}

func paragraphs(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n\n")
}

// fact is something in a prompt that a statement can rest on.
type fact struct {
	id     string // id of the post, the comment or the memory
	author string // id; of a memory the character
	text   string // with the author's name
}

// scene is the first message of a prompt.
type scene struct {
	text  string
	facts map[string]fact // by what the prompt calls them: p1, c2, …
}

// sceneOf shows a post with its comments, oldest first. images are the names of its
// pictures; attached says that the model sees them.
func sceneOf(w *words, p *Post, comments []*Comment, images []string, attached bool) *scene {
	s := &scene{facts: map[string]fact{}}
	lines := []string{fmt.Sprintf(w.Author, w.name(p.AuthorID, p.AuthorName))}
	if p.Text != "" {
		lines = append(lines, defused(p.Text))
	}
	switch {
	case len(images) > 0 && attached:
		lines = append(lines, fmt.Sprintf(w.Pictures, len(images)))
	case len(images) > 0:
		lines = append(lines, fmt.Sprintf(w.Images, line(strings.Join(images, ", "))))
	}
	s.facts["p1"] = fact{p.ID, p.AuthorID, strings.Join(lines, "\n")}
	var thread []string
	short := shortIDs(comments)
	for _, c := range comments[max(0, len(comments)-maxThread):] {
		if c.DeletedAt != nil {
			continue
		}
		label := short[c.ID]
		if to := short[c.ReplyTo]; to != "" {
			label += " to " + to
		}
		said := "[" + label + "] " + w.name(c.AuthorID, c.AuthorName) + ": " + line(c.Text)
		s.facts[short[c.ID]] = fact{c.ID, c.AuthorID, said}
		thread = append(thread, said)
	}
	s.text = paragraphs(w.Rules, block("post", "[p1]", lines...), block("thread", "", thread...))
	return s
}

// shortIDs names comments by their place, which does not change as others follow.
func shortIDs(comments []*Comment) map[string]string {
	short := map[string]string{}
	for i, c := range comments {
		short[c.ID] = "c" + strconv.Itoa(i+1)
	}
	return short
}

// resolve returns the ids that a model has named of those that were shown to it.
func resolve(facts map[string]fact, named []string) (ids []string) {
	for _, n := range named {
		if f, ok := facts[shown(n)]; ok && !slices.Contains(ids, f.id) {
			ids = append(ids, f.id)
		}
	}
	return ids
}

// shown is what a prompt calls something that a model has named, as in "[c2 to c1]".
func shown(named string) string {
	short, _, _ := strings.Cut(strings.Trim(strings.TrimSpace(named), "[]"), " ")
	return short
}

// name is what a member is called in a prompt.
func (w *words) name(id, name string) string {
	if name = line(name); name != "" {
		return name
	}
	if id == Me {
		return w.User
	}
	return "?"
}

// Scene returns what a prompt of the circle begins with, and the answer that it asks for.
func Scene(l framework.Language) (scenePrompt, responseFormat string) {
	w := wordsOf(l)
	return w.Rules, w.ShapeReaction
}
