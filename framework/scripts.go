package framework

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"nodest/card"
	"nodest/framework/jsregex"
	"nodest/llm"
)

// Scripts are compiled regex scripts in the order in which they apply. They are safe
// for concurrent use; nil is no scripts.
type Scripts struct {
	id       uint64 // distinguishes compiled sets in a Cache
	limit    time.Duration
	list     []*script
	warnings []Warning // about scripts that cannot be used
}

type script struct {
	card.RegexScript
	pattern *jsregex.Pattern
	index   int // in the set
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

// CompileScripts prepares scripts in the order in which they apply. Those that are
// disabled, without placement, empty or invalid are left out; prompts have warnings
// about the invalid ones.
func CompileScripts(list []card.RegexScript) *Scripts { return compileScripts(list, scriptLimit) }

func compileScripts(list []card.RegexScript, limit time.Duration) *Scripts {
	s := &Scripts{id: compiledIDs.Add(1), limit: limit}
	c := compiler{limit: limit}
	for _, sc := range list {
		p, reason, err := c.prepare(sc)
		switch {
		case err != nil:
			s.warnings = append(s.warnings, Warning{reason, scriptPath(sc), err.Error()})
		case reason == "":
			s.list = append(s.list, &script{RegexScript: sc, pattern: p, index: len(s.list)})
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
)

// compiler compiles the patterns of one set of scripts.
type compiler struct {
	limit time.Duration
	used  int // of maxPatterns
}

// prepare compiles a script, or gives the reason why it never runs.
func (c *compiler) prepare(sc card.RegexScript) (p *jsregex.Pattern, reason string, err error) {
	switch {
	case sc.Disabled:
		return nil, skipDisabled, nil
	case sc.Find == "":
		return nil, skipEmpty, nil
	case len(sc.Placement) == 0:
		return nil, skipPlacement, nil
	}
	if p, err = c.compile(sc); err != nil {
		reason = skipInvalid
	}
	return p, reason, err
}

func (c *compiler) compile(sc card.RegexScript) (*jsregex.Pattern, error) {
	source, flags := scriptPattern(sc)
	if c.used += min(len(source), jsregex.MaxPattern); c.used > maxPatterns {
		return nil, fmt.Errorf("the patterns of all scripts together are longer than %d KiB", maxPatterns>>10)
	}
	return jsregex.Compile(source, flags, c.limit)
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
// own, and without any the pattern is global.
func scriptPattern(sc card.RegexScript) (source, flags string) {
	source, flags = jsregex.Split(sc.Find)
	return source, cmp.Or(flags, sc.Flags, "g")
}

func scriptPath(sc card.RegexScript) string {
	name := cmp.Or(sc.Name, sc.ID)
	return "regexScripts." + name
}

// ApplyReply runs the scripts for model output on a whole reply, before it is
// stored.
func (s *Scripts) ApplyReply(text string) (string, []Warning) {
	r := s.Run(nil)
	text = r.apply(text, s.pick(Occasion{Placement: card.PlaceAIOutput}))
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
	skipped  map[*script]bool // those in warnings
	warnings []Warning
}

// User runs the scripts for user input on what the user wrote, before it is sent.
func (r *ScriptRun) User(text string) string {
	if r == nil {
		return text
	}
	return r.apply(text, r.scripts.pick(Occasion{Placement: card.PlaceUserInput}))
}

// Request runs the scripts that change a message only in the request. depth is its
// place from the newest message (0).
func (r *ScriptRun) Request(role, text string, depth int) string {
	if r == nil {
		return text
	}
	return r.apply(text, r.scripts.pick(Occasion{Placement: placeOf(role), Depth: depth, IsPrompt: true}))
}

// Warnings returns the warnings about scripts that cannot be used or were skipped.
func (r *ScriptRun) Warnings() []Warning {
	if r == nil || r.scripts == nil {
		return nil
	}
	return slices.Concat(r.scripts.warnings, r.warnings)
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

// Occasion says which text scripts run over. Without IsMarkdown and IsPrompt it is a message
// of the user before it is sent, or a reply before it is stored.
type Occasion struct {
	Placement  int  // card.PlaceUserInput or card.PlaceAIOutput
	Depth      int  // of the message, counted from the newest (0)
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
	case sc.MinDepth != nil && *sc.MinDepth >= 0 && o.Depth < *sc.MinDepth,
		sc.MaxDepth != nil && *sc.MaxDepth >= 0 && o.Depth > *sc.MaxDepth:
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
	Detail       string `json:"detail,omitempty"` // of the reason, for people
}

// TestScripts runs scripts over a text as a turn does, each on the result of the one
// before, and says what each of them did.
func TestScripts(list []card.RegexScript, text string, o Occasion) (string, []ScriptResult) {
	return testScripts(list, text, o, scriptLimit)
}

func testScripts(list []card.RegexScript, text string, o Occasion, limit time.Duration) (string, []ScriptResult) {
	run := (&Scripts{limit: limit}).Run(nil)
	c := compiler{limit: limit}
	results := make([]ScriptResult, len(list))
	for i, sc := range list {
		result := &results[i]
		result.ID, result.Name = sc.ID, sc.Name
		p, reason, err := c.prepare(sc)
		if reason == "" {
			compiled := &script{RegexScript: sc, pattern: p}
			if reason = o.skips(compiled); reason == "" {
				if text, result.Replacements, err = run.one(compiled, text); err != nil {
					reason = skipSlow
				}
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
			r.skip(sc)
		}
		return off
	})
	if len(scripts) == 0 {
		return text
	}
	return r.cache.script(r.scripts.id, scriptsName(scripts), text, func() (result string, whole bool) {
		result, whole = text, true
		for _, sc := range scripts {
			changed, _, err := r.one(sc, result)
			if err != nil {
				r.skip(sc)
				whole = false
				continue
			}
			result = changed
		}
		return result, whole
	})
}

func (r *ScriptRun) one(sc *script, text string) (changed string, n int, err error) {
	changed = text
	err = r.time.Try(sc.pattern, func() (err error) {
		changed, n, err = sc.pattern.Replace(text, sc.Replace)
		return err
	})
	return changed, n, err
}

// skip warns about a script, once.
func (r *ScriptRun) skip(sc *script) {
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
	r.warnings = append(r.warnings, Warning{skipSlow, scriptPath(sc.RegexScript), detail})
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
