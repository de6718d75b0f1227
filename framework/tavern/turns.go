package tavern

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/llm"
)

// Turns is a form that a provider wants the messages of a prompt in. Presets name theirs in
// custom_prompt_post_processing.
type Turns string

// The forms. In all but the first names are part of the texts.
const (
	TurnsAsTheyAre Turns = ""
	TurnsMerged    Turns = "merge"  // neighbours of one role become one message
	TurnsSemi      Turns = "semi"   // merged, and the system speaks first or not at all
	TurnsStrict    Turns = "strict" // semi, and the user comes next
	TurnsSingle    Turns = "single" // one message of the user
	TurnsGemini    Turns = "gemini" // the system's first messages one by one, the others as the user, merged
	TurnsUser      Turns = "user"   // the same without a system, for models that have none
)

// withTools is the end of the names of forms that keep calls of tools and their results.
const withTools = "_tools"

// turnsOf reads the form that a preset names.
func turnsOf(word string) Turns {
	t := Turns(strings.TrimSuffix(word, withTools))
	switch t {
	case TurnsMerged, TurnsSemi, TurnsStrict, TurnsSingle:
		return Turns(word)
	}
	return TurnsAsTheyAre
}

// placeholder is the user's message where a form wants one and there is none.
const placeholder = "[Start a new chat]"

// betweenTexts stands between the texts of messages that became one.
const betweenTexts = "\n\n"

// arranger brings messages into a form. user and char are the names of both sides.
type arranger struct {
	turns      Turns
	tools      bool // calls of tools stay
	google     bool
	user, char string
}

// arrange returns messages in a form, and the new place of each one of them. It is the conversion
// of section 10 of the specification.
func arrange(messages []llm.Message, turns Turns, user, char string) ([]llm.Message, []llm.Place) {
	word, tools := strings.CutSuffix(string(turns), withTools)
	a := arranger{turns: Turns(word), tools: tools, user: user, char: char}
	a.google = a.turns == TurnsGemini || a.turns == TurnsUser
	named, shifts := a.named(messages)
	out, places := a.merged(named)
	if a.turns == TurnsSemi || a.turns == TurnsStrict {
		out, places = a.strict(out, places)
	}
	if len(out) == 0 && !a.google {
		out = []llm.Message{{Role: llm.User, Text: placeholder}}
	}
	for i, shift := range shifts {
		places[i].At += shift
	}
	return out, places
}

// named makes names part of the texts. shifts are the code points that came before each text.
func (a *arranger) named(messages []llm.Message) (named []llm.Message, shifts []int) {
	named, shifts = slices.Clone(messages), make([]int, len(messages))
	for i := range named {
		m := &named[i]
		prefix := ""
		if m.Role != llm.System || isExample(m.Name) {
			prefix = spokenBy(m.Name, m.Text, a.user, a.char)
		}
		m.Name = ""
		if !a.google && !a.tools {
			dropTools(m)
		}
		if a.turns == TurnsSingle {
			if name := a.nameOf(m.Role); name != "" {
				prefix += spokenBy(name, prefix+m.Text, a.user, a.char)
			}
			m.Role = llm.User
		}
		m.Text = prefix + m.Text
		shifts[i] = utf8.RuneCountInString(prefix)
	}
	return named, shifts
}

func (a *arranger) nameOf(role llm.Role) string {
	switch role {
	case llm.User:
		return a.user
	case llm.Assistant:
		return a.char
	}
	return ""
}

// dropTools makes a call or a result of a tool a message like any other.
func dropTools(m *llm.Message) {
	if m.Result != nil {
		m.Role, m.Text = llm.User, m.Result.Text
	}
	m.Calls, m.Echo, m.Result = nil, nil, nil
}

func isExample(name string) bool { return name == exampleUser || name == exampleAssistant }

// spokenBy returns what a text begins with where it says who speaks: "Name: ", or nothing if it
// begins so already.
func spokenBy(name, text, user, char string) string {
	switch name {
	case exampleUser:
		name = user
	case exampleAssistant:
		name = char
	}
	if prefix := name + ": "; name != "" && !strings.HasPrefix(text, prefix) {
		return prefix
	}
	return ""
}

// merged joins neighbours of one role. For Gemini the system's messages at the beginning stay
// apart, and the others are the user's.
func (a *arranger) merged(messages []llm.Message) (out []llm.Message, places []llm.Place) {
	j := joiner{empty: a.google}
	leading := a.turns == TurnsGemini
	for i, m := range messages {
		if leading = leading && m.Role == llm.System && i < len(messages)-1; leading {
			j.append(m)
			continue
		}
		if a.google && m.Role == llm.System {
			m.Role = llm.User
		}
		j.add(m)
	}
	return j.done()
}

// strict makes the system speak first or not at all, and for TurnsStrict the user next.
func (a *arranger) strict(messages []llm.Message, places []llm.Place) ([]llm.Message, []llm.Place) {
	j := joiner{empty: true}
	for i, m := range messages {
		if i > 0 && m.Role == llm.System {
			m.Role = llm.User
		}
		opens := i == 0 && m.Role == llm.Assistant || i == 1 && m.Role == llm.Assistant && messages[0].Role == llm.System
		if a.turns == TurnsStrict && opens {
			j.append(llm.Message{Role: llm.User, Text: placeholder})
			j.places = j.places[:len(j.places)-1]
		}
		j.add(m)
	}
	if a.turns == TurnsStrict && len(messages) == 1 && messages[0].Role == llm.System {
		j.append(llm.Message{Role: llm.User, Text: placeholder})
		j.places = j.places[:1]
	}
	out, moved := j.done()
	for i, p := range places {
		places[i] = llm.Place{Message: moved[p.Message].Message, At: moved[p.Message].At + p.At}
	}
	return out, places
}

// joiner joins neighbours of one role.
type joiner struct {
	out    []llm.Message
	texts  []*strings.Builder
	runes  []int
	places []llm.Place
	empty  bool // a message without a text becomes part of its neighbour
}

func (j *joiner) append(m llm.Message) {
	j.places = append(j.places, llm.Place{Message: len(j.out)})
	j.out, j.runes = append(j.out, m), append(j.runes, utf8.RuneCountInString(m.Text))
	text := &strings.Builder{}
	text.WriteString(m.Text)
	j.texts = append(j.texts, text)
}

func (j *joiner) add(m llm.Message) {
	last := len(j.out) - 1
	if last < 0 || j.out[last].Role != m.Role || usesTools(&m) || usesTools(&j.out[last]) || m.Text == "" && !j.empty {
		j.append(m)
		return
	}
	if m.Text != "" && j.runes[last] > 0 {
		j.texts[last].WriteString(betweenTexts)
		j.runes[last] += len(betweenTexts)
	}
	j.places = append(j.places, llm.Place{Message: last, At: j.runes[last]})
	j.texts[last].WriteString(m.Text)
	j.runes[last] += utf8.RuneCountInString(m.Text)
	j.out[last].Images = slices.Concat(j.out[last].Images, m.Images)
}

func (j *joiner) done() ([]llm.Message, []llm.Place) {
	for i := range j.out {
		j.out[i].Text = j.texts[i].String()
	}
	return j.out, j.places
}

func usesTools(m *llm.Message) bool { return len(m.Calls) > 0 || m.Result != nil }

// notInName matches what the names of messages must not have.
var notInName = regexp.MustCompile(`[^A-Za-z0-9_]`)

// maxName is how long the name of a message can be.
const maxName = 64

// sanitized is a name as providers take it with a message.
func sanitized(name string) string {
	name = notInName.ReplaceAllString(name, "_")
	return name[:min(len(name), maxName)]
}
