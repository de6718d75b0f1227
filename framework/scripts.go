package framework

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"nodest/card"
	"nodest/framework/jsregex"
	"nodest/framework/macro"
	"nodest/llm"
)

// Scripts are compiled regex scripts in the order in which they apply. They are safe
// for concurrent use; nil is no scripts.
type Scripts struct {
	id       uint64 // distinguishes compiled sets in a Cache
	dialect  card.Dialect
	limit    time.Duration
	list     []*script
	warnings []Warning // about scripts that cannot be used
}

type script struct {
	card.RegexScript
	pattern *jsregex.Pattern
	index   int          // in the set
	tavern  *tavernParts // parts that only the SillyTavern dialect has; nil in the other
}

// scriptLimit is the time that one script may take for one text. A script that
// takes longer leaves the text as it was and is off from then on.
const scriptLimit = 250 * time.Millisecond

// promptLimits is how many times the limit of one script all scripts together may
// take for the texts of one prompt.
const promptLimits = 8

// maxPatterns bounds the sources of the patterns of a set of scripts together, in bytes:
// compiled and in use, they take a hundred times as much.
const maxPatterns = 512 << 10

var compiledIDs atomic.Uint64

// CompileScripts prepares scripts in the order in which they apply: in SillyTavern those of the user,
// of the preset, and of the card. Those that are disabled, without placement, empty or invalid are
// left out; prompts have warnings about the invalid ones.
func CompileScripts(dialect card.Dialect, list []card.RegexScript) *Scripts {
	return compileScripts(dialect, list, scriptLimit)
}

func compileScripts(dialect card.Dialect, list []card.RegexScript, limit time.Duration) *Scripts {
	s := &Scripts{id: compiledIDs.Add(1), dialect: dialect, limit: limit}
	c := compiler{dialect: dialect, limit: limit}
	for _, sc := range list {
		compiled, reason, err := c.prepare(sc)
		switch {
		case err != nil:
			s.warnings = append(s.warnings, Warning{reason, scriptPath(sc), err.Error()})
		case reason == "":
			compiled.index = len(s.list)
			s.list = append(s.list, compiled)
		}
	}
	return s
}

// Why a script does not run over a text.
const (
	skipDisabled  = "disabled"
	skipEmpty     = "empty"           // it has no pattern
	skipInvalid   = "invalid_pattern" // its pattern is no regular expression
	skipSlow      = "slow_pattern"    // it took too long or produced too much text
	skipPlacement = "placement"       // it is for other texts
	skipPurpose   = "purpose"         // it is for another use of the text
	skipDepth     = "depth"           // the message is out of its range
	skipEdit      = "edit"            // the text is edited
)

// compiler compiles the patterns of one set of scripts.
type compiler struct {
	dialect card.Dialect
	limit   time.Duration
	used    int // the used part of maxPatterns
}

// prepare compiles a script, or gives the reason why it never runs.
func (c *compiler) prepare(sc card.RegexScript) (compiled *script, reason string, err error) {
	switch {
	case sc.Disabled:
		return nil, skipDisabled, nil
	case sc.Find == "":
		return nil, skipEmpty, nil
	case len(sc.Placement) == 0:
		return nil, skipPlacement, nil
	}
	p, err := c.compile(sc)
	if err != nil {
		return nil, skipInvalid, err
	}
	compiled = &script{RegexScript: sc, pattern: p}
	if c.dialect == card.SillyTavern {
		if compiled.tavern, err = newTavernParts(sc); err != nil {
			return nil, skipInvalid, err
		}
	}
	return compiled, "", nil
}

func (c *compiler) compile(sc card.RegexScript) (*jsregex.Pattern, error) {
	source, flags := scriptPattern(c.dialect, sc)
	if c.used += min(len(source), jsregex.MaxPattern); c.used > maxPatterns {
		return nil, fmt.Errorf("the patterns of all scripts together are longer than %d KiB", maxPatterns>>10)
	}
	p, err := jsregex.Compile(source, flags, c.limit)
	if err != nil && c.dialect == card.SillyTavern && hasMacros(sc) {
		return jsregex.Compile("(?!)", "", c.limit) // until its macros have values
	}
	return p, err
}

// Size estimates the memory of the patterns while they are in use, in bytes.
func (s *Scripts) Size() int {
	size := 0
	for _, sc := range s.list {
		size += patternBytes + len(sc.Find)*patternGrowth
	}
	return size
}

// The estimated size of a compiled pattern: a fixed part, and a part per byte of its source.
const (
	patternBytes  = 3000
	patternGrowth = 100
)

// scriptPattern reads a script's pattern: flags behind /…/ win over the script's
// own. Without any, the pattern is global in the NodeST dialect.
func scriptPattern(dialect card.Dialect, sc card.RegexScript) (source, flags string) {
	if dialect == card.SillyTavern {
		return tavernPattern(sc.Find, sc.Flags)
	}
	source, flags = jsregex.Split(sc.Find)
	return source, cmp.Or(flags, sc.Flags, "g")
}

func scriptPath(sc card.RegexScript) string {
	name := cmp.Or(sc.Name, sc.ID)
	return "regexScripts." + name
}

// ApplyReply runs the scripts for model output on a whole reply, before it is
// stored. macros are those of the SillyTavern dialect; nil = they stay.
func (s *Scripts) ApplyReply(text string, macros *macro.Env) (string, []Warning) {
	r := s.Run(nil).With(macros)
	text = r.apply(text, s.pick(Occasion{Placement: card.PlaceAIOutput, NoDepth: s != nil && s.dialect == card.SillyTavern}))
	return text, r.warnings
}

// Run returns a run of the scripts over the texts of one prompt; cache may be nil.
func (s *Scripts) Run(cache *Cache) *ScriptRun {
	r := &ScriptRun{scripts: s, cache: cache}
	if s != nil {
		r.time = jsregex.NewAllowance(promptLimits * s.limit)
	}
	return r
}

// ScriptRun applies scripts to the texts of one prompt. The scripts share a time
// budget; once it is spent they are skipped. A ScriptRun is not safe for concurrent
// use; nil changes nothing.
type ScriptRun struct {
	scripts  *Scripts
	cache    *Cache
	time     *jsregex.Allowance
	macros   *macro.Env       // macros of the SillyTavern dialect; nil = macros stay
	varies   bool             // the result depended on macros
	skipped  map[*script]bool // those in warnings
	warnings []Warning
}

// With lets the scripts of the SillyTavern dialect use macros. It returns r.
func (r *ScriptRun) With(macros *macro.Env) *ScriptRun {
	if r != nil {
		r.macros = macros
	}
	return r
}

// Apply runs the scripts for an occasion over a text.
func (r *ScriptRun) Apply(text string, o Occasion) string {
	if r == nil {
		return text
	}
	return r.apply(text, r.scripts.pick(o))
}

// Display returns what a reader sees of a message: the scripts change only how it looks. depth is its
// place from the newest message (0), or NoDepth; messages of other roles than user and assistant stay.
func (r *ScriptRun) Display(role, text string, depth int) string {
	return r.Apply(text, Occasion{Placement: PlaceOf(role), Depth: depth, NoDepth: depth == NoDepth, IsMarkdown: true})
}

// NoDepth is the depth of a message that has no place in the prompt, because it is hidden.
const NoDepth = -1

// Displays reports whether a script changes how some message looks.
func (s *Scripts) Displays() bool {
	return s != nil && slices.ContainsFunc(s.list, func(sc *script) bool {
		return sc.MarkdownOnly && (slices.Contains(sc.Placement, card.PlaceUserInput) || slices.Contains(sc.Placement, card.PlaceAIOutput))
	})
}

// User runs the scripts for user input on what the user wrote, before it is sent.
func (r *ScriptRun) User(text string) string {
	return r.Apply(text, Occasion{Placement: card.PlaceUserInput})
}

// Request runs the scripts that change a message only in the request. depth is its
// place from the newest message (0).
func (r *ScriptRun) Request(role, text string, depth int) string {
	return r.Apply(text, Occasion{Placement: PlaceOf(role), Depth: depth, IsPrompt: true})
}

// Warnings returns those about scripts that cannot be used or were skipped.
func (r *ScriptRun) Warnings() []Warning {
	if r == nil || r.scripts == nil {
		return nil
	}
	return slices.Concat(r.scripts.warnings, r.warnings)
}

// PlaceOf is the placement of scripts for messages of a role; 0 = there is none.
func PlaceOf(role string) int {
	switch role {
	case string(llm.User):
		return card.PlaceUserInput
	case string(llm.Assistant):
		return card.PlaceAIOutput
	}
	return 0
}

// Occasion says which text scripts run over. Without IsMarkdown and IsPrompt it is a message
// of the user before it is sent, or a reply before it is stored.
type Occasion struct {
	Placement  int  // card.PlaceUserInput, card.PlaceAIOutput, …
	Depth      int  // depth of the message, counted from the newest (0)
	NoDepth    bool // the text has no depth: scripts for some depths run too
	IsEdit     bool // a stored message is edited
	IsMarkdown bool // the text will only be displayed
	IsPrompt   bool // the text will only be in a request
}

// skips gives the reason why a script does not run on an occasion; "" = it runs.
func (o Occasion) skips(sc *script) string {
	switch {
	case !slices.Contains(sc.Placement, o.Placement):
		return skipPlacement
	case !o.isFor(sc):
		return skipPurpose
	case o.IsEdit && !sc.RunOnEdit:
		return skipEdit
	case !o.NoDepth && (sc.MinDepth != nil && *sc.MinDepth >= 0 && o.Depth < *sc.MinDepth ||
		sc.MaxDepth != nil && *sc.MaxDepth >= 0 && o.Depth > *sc.MaxDepth):
		return skipDepth
	}
	return ""
}

func (o Occasion) isFor(sc *script) bool {
	if !o.IsMarkdown && !o.IsPrompt {
		return !sc.MarkdownOnly && !sc.PromptOnly
	}
	return o.IsMarkdown && sc.MarkdownOnly || o.IsPrompt && sc.PromptOnly
}

func (s *Scripts) pick(o Occasion) []*script {
	if s == nil {
		return nil
	}
	var picked []*script
	for _, sc := range s.list {
		if o.skips(sc) == "" {
			picked = append(picked, sc)
		}
	}
	return picked
}

// ScriptResult says what a script did to a text.
type ScriptResult struct {
	ID           string `json:"id,omitempty"`
	Name         string `json:"name,omitempty"`
	Ran          bool   `json:"ran"`
	Replacements int    `json:"replacements"`
	Reason       string `json:"reason,omitempty"` // it did not run
	Detail       string `json:"detail,omitempty"` // explains the reason, for people
}

// TestScripts runs scripts over a text as a turn does, each on the result of the one
// before, and says what each of them did. Without macros, which only the SillyTavern dialect
// uses, they stay.
func TestScripts(dialect card.Dialect, list []card.RegexScript, text string, o Occasion, macros *macro.Env) (string, []ScriptResult) {
	return testScripts(compiler{dialect: dialect, limit: scriptLimit}, list, text, o, macros)
}

func testScripts(c compiler, list []card.RegexScript, text string, o Occasion, macros *macro.Env) (string, []ScriptResult) {
	run := (&Scripts{limit: c.limit}).Run(nil).With(macros)
	results := make([]ScriptResult, len(list))
	for i, sc := range list {
		result := &results[i]
		result.ID, result.Name = sc.ID, sc.Name
		compiled, reason, err := c.prepare(sc)
		if reason == "" {
			if reason = o.skips(compiled); reason == "" {
				text, result.Replacements, err = run.one(compiled, text)
				reason = whyFailed(err)
			}
		}
		result.Ran, result.Reason = reason == "", reason
		if err != nil {
			result.Detail = err.Error()
		}
	}
	return text, results
}

// apply runs scripts one after the other, each on the result of the one before.
func (r *ScriptRun) apply(text string, scripts []*script) string {
	scripts = slices.DeleteFunc(scripts, func(sc *script) bool {
		off := sc.pattern.Off()
		if off {
			r.skip(sc, jsregex.ErrTime)
		}
		return off
	})
	if len(scripts) == 0 {
		return text
	}
	return r.cache.script(r.scripts.id, scriptsName(scripts), text, func() (result string, whole bool) {
		result, whole = text, true
		r.varies = false
		for _, sc := range scripts {
			changed, _, err := r.one(sc, result)
			if err != nil {
				r.skip(sc, err)
				whole = false
				continue
			}
			result = changed
		}
		return result, whole && !r.varies
	})
}

func (r *ScriptRun) one(sc *script, text string) (changed string, n int, err error) {
	changed = text
	run := func() (string, int, error) { return sc.pattern.Replace(text, sc.Replace) }
	if sc.tavern != nil {
		t := &replacing{ScriptRun: r, sc: sc}
		run = func() (string, int, error) { return t.replace(text) }
	}
	err = r.time.Try(sc.pattern, func() (err error) {
		changed, n, err = run()
		return err
	})
	return changed, n, err
}

// whyFailed names the reason of an error of a script that ran.
func whyFailed(err error) string {
	var invalid *invalidPattern
	switch {
	case err == nil:
		return ""
	case errors.As(err, &invalid):
		return skipInvalid
	}
	return skipSlow
}

// skip warns about a script, once.
func (r *ScriptRun) skip(sc *script, err error) {
	if r.skipped[sc] {
		return
	}
	if r.skipped == nil {
		r.skipped = map[*script]bool{}
	}
	r.skipped[sc] = true
	detail := "the regex took too long or produced too much text; it was skipped"
	if sc.pattern.Off() {
		detail = "the regex took too long; it is off until you edit the script"
	}
	code := whyFailed(err)
	if code == skipInvalid {
		detail = err.Error()
	}
	r.warnings = append(r.warnings, Warning{code, scriptPath(sc.RegexScript), detail})
}

// scriptsName names a choice of scripts within their set.
func scriptsName(scripts []*script) string {
	var b strings.Builder
	for _, sc := range scripts {
		b.WriteString(strconv.Itoa(sc.index))
		b.WriteByte(' ')
	}
	return b.String()
}
