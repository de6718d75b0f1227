package framework

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"nodest/card"
	"nodest/llm"
)

// ScriptGroup is a set of regex scripts and the characters it is for.
type ScriptGroup struct {
	ID          string
	BindType    string // "all", "character"; empty = all
	CharacterID string // of BindType "character"
	Scripts     []card.RegexScript
}

// Scripts are regex scripts ready for use, in the order in which they apply. It
// is immutable and safe for concurrent use; nil is no scripts.
type Scripts struct {
	id       uint64 // distinguishes compiled sets in a Cache
	list     []script
	warnings []Warning
}

type script struct {
	card.RegexScript
	pattern  *pattern
	patience *patience // of the set
	index    int       // in the set
}

// ScriptLimit is the time that one script may take for one text, unless
// CompileScripts is told another. Where it runs out that script leaves the text
// as it was, and rests; the others go on, within the patience of the set.
const ScriptLimit = 250 * time.Millisecond

var compiledIDs atomic.Uint64

// CompileScripts prepares the groups that apply to a character. limit is the time
// that one script may take for one text; 0 = ScriptLimit. Scripts that are
// disabled, bound elsewhere, without placement, empty or invalid are left out;
// Warnings names the invalid ones.
func CompileScripts(groups []ScriptGroup, characterID string, limit time.Duration) *Scripts {
	if limit <= 0 {
		limit = ScriptLimit
	}
	s, shared := &Scripts{id: compiledIDs.Add(1)}, &patience{limit: limit}
	for _, g := range groups {
		bound := g.BindType == "" || g.BindType == "all" ||
			g.BindType == "character" && g.CharacterID != "" && g.CharacterID == characterID
		if !bound {
			continue
		}
		for _, sc := range g.Scripts {
			if sc.Disabled || sc.Find == "" || len(sc.Placement) == 0 {
				continue
			}
			p, err := compileScript(sc, limit)
			if err != nil {
				s.warnings = append(s.warnings, Warning{"invalid_pattern", scriptPath(sc), err.Error()})
				continue
			}
			s.list = append(s.list, script{sc, p, shared, len(s.list)})
		}
	}
	return s
}

func compileScript(sc card.RegexScript, limit time.Duration) (*pattern, error) {
	source, flags := scriptPattern(sc)
	return compilePattern(source, flags, limit)
}

// scriptPattern reads a script's pattern: flags behind /…/ win over the script's
// own, and without any the pattern is global.
func scriptPattern(sc card.RegexScript) (source, flags string) {
	source, flags = splitPattern(sc.Find)
	if flags == "" {
		flags = sc.Flags
	}
	if flags == "" {
		flags = "g"
	}
	return source, flags
}

func scriptPath(sc card.RegexScript) string {
	name := sc.Name
	if name == "" {
		name = sc.ID
	}
	return "regexScripts." + name
}

// Warnings names the scripts that cannot be used.
func (s *Scripts) Warnings() []Warning {
	if s == nil {
		return nil
	}
	return s.warnings
}

// ApplyUser runs the scripts for user input on what the user wrote, before it is
// stored and sent.
func (s *Scripts) ApplyUser(text string) (string, []Warning) {
	return s.run(text, s.pick(card.PlaceUserInput, func(sc *script) bool {
		return !sc.MarkdownOnly && !sc.PromptOnly && inDepth(sc, 0)
	}))
}

// ApplyReply runs the scripts for model output on a whole reply, before it is
// stored.
func (s *Scripts) ApplyReply(text string) (string, []Warning) {
	return s.run(text, s.pick(card.PlaceAIOutput, func(sc *script) bool {
		return !sc.MarkdownOnly && !sc.PromptOnly && inDepth(sc, 0)
	}))
}

// ApplyDisplay runs the scripts that are for display only on a stored text of a
// role (user or assistant); depth is its place from the newest message (0).
func (s *Scripts) ApplyDisplay(role, text string, depth int) (string, []Warning) {
	return s.run(text, s.pick(placeOf(role), func(sc *script) bool {
		return sc.MarkdownOnly && inDepth(sc, depth)
	}))
}

// forRequest picks the scripts that change a message of the chat only in the
// request.
func (s *Scripts) forRequest(role string, depth int) []*script {
	return s.pick(placeOf(role), func(sc *script) bool {
		return sc.PromptOnly && inDepth(sc, depth)
	})
}

// hasRequestScripts reports whether forRequest can pick anything.
func (s *Scripts) hasRequestScripts() bool {
	return s != nil && slices.ContainsFunc(s.list, func(sc script) bool { return sc.PromptOnly })
}

func placeOf(role string) int {
	switch role {
	case string(llm.User):
		return card.PlaceUserInput
	case string(llm.Assistant):
		return card.PlaceAIOutput
	}
	return 0
}

// inDepth reports whether a message at a depth, counted from the newest (0), is
// in the range of a script.
func inDepth(sc *script, depth int) bool {
	return (sc.MinDepth == nil || *sc.MinDepth < 0 || depth >= *sc.MinDepth) &&
		(sc.MaxDepth == nil || *sc.MaxDepth < 0 || depth <= *sc.MaxDepth)
}

func (s *Scripts) pick(place int, wanted func(*script) bool) []*script {
	if s == nil {
		return nil
	}
	var picked []*script
	for i := range s.list {
		if sc := &s.list[i]; slices.Contains(sc.Placement, place) && wanted(sc) {
			picked = append(picked, sc)
		}
	}
	return picked
}

// run applies scripts one after the other, each to the result of the one before.
func (s *Scripts) run(text string, scripts []*script) (string, []Warning) {
	var warnings []Warning
	for _, sc := range scripts {
		changed, slow := runScript(sc, text)
		text, warnings = changed, append(warnings, slow...)
	}
	return text, warnings
}

// runScript applies one script, unless the set has cost too much of late; with a
// warning the text is as it was.
func runScript(sc *script, text string) (string, []Warning) {
	if !sc.patience.allows(sc.pattern) {
		return text, []Warning{slowScript(sc)}
	}
	started := time.Now()
	changed, err := sc.pattern.replace(text, sc.Replace)
	sc.patience.note(sc.pattern, time.Since(started), errors.Is(err, errPatternTime))
	if err != nil {
		return text, []Warning{slowScript(sc)}
	}
	return changed, nil
}

func slowScript(sc *script) Warning {
	return Warning{"slow_pattern", scriptPath(sc.RegexScript), "the regex took too long or produced too much text; it was skipped"}
}

// most is the time that a script may take for all messages of a chat.
func (sc *script) most() time.Duration { return 4 * sc.pattern.re.MatchTimeout }

// scriptsName names a choice of scripts within their set.
func scriptsName(scripts []*script) string {
	var b strings.Builder
	for _, sc := range scripts {
		b.WriteString(strconv.Itoa(sc.index))
		b.WriteByte(' ')
	}
	return b.String()
}
