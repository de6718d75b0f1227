package character

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"nodest/card"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// Settings returns the settings of a character in full: what was set,
// and the default of everything else. Their version is the character's.
func (svc *Service) Settings(ctx context.Context, userID, id string) (settings json.RawMessage, version int64, err error) {
	err = svc.store.View(ctx, userID, func(tx Tx) error {
		ch, err := tx.Character(id)
		if err == nil {
			version = ch.Version
			settings, err = FullSettings(tx, ch)
		}
		return err
	})
	return settings, version, err
}

// FullSettings are the settings in full. When a summary was made last is read from
// the summaries: a summary makes no version of the character.
func FullSettings(tx Tx, ch *Character) (json.RawMessage, error) {
	last, err := tx.LastSummarised(ch.ID)
	if err != nil {
		return nil, err
	}
	set, err := storedSettings(ch.Settings)
	if err != nil {
		return nil, err
	}
	if !last.IsZero() {
		set.put("memory", "lastSummarizedAt", last.UnixMilli())
	}
	return set.full(ch.Dialect), nil
}

// setSettings are the settings that were set, by group and name.
type setSettings map[string]map[string]json.RawMessage

// storedSettings reads them. Who sets the length at which chats are summarised, and no share of the
// context, wants the length to count.
func storedSettings(doc json.RawMessage) (setSettings, error) {
	set := setSettings{}
	if len(doc) > 0 {
		if err := json.Unmarshal(doc, &set); err != nil {
			return nil, fmt.Errorf("stored settings: %w", err)
		}
	}
	if m := set["memory"]; m["summaryThreshold"] != nil && m["summaryShare"] == nil {
		set.put("memory", "summaryShare", 0)
	}
	return set, nil
}

func (set setSettings) put(group, name string, value any) {
	if set[group] == nil {
		set[group] = map[string]json.RawMessage{}
	}
	set[group][name] = op.MustJSON(value)
}

type keptSettings struct {
	ID       string          `json:"id"` // the character
	Settings json.RawMessage `json:"settings"`
	Version  int64           `json:"version"`
}

// PutSettings replaces the settings. A member that is not given has
// its default again.
//
// Errors: Invalid with the member and its range; PreconditionFailed when
// ifVersion is not 0 and not the character's version.
func (svc *Service) PutSettings(ctx context.Context, c *op.Call, id string, settings json.RawMessage, ifVersion int64) (json.RawMessage, int64, error) {
	kept, err := op.LastWins(ctx, svc.store, c, ifVersion, func(tx Tx) (*keptSettings, error) {
		ch, err := tx.Character(id)
		if err != nil {
			return nil, err
		}
		if err := op.CheckVersion(ifVersion, ch.Version); err != nil {
			return nil, err
		}
		before, err := ch.ParseSettings()
		if err != nil {
			return nil, err
		}
		if ch.Settings, err = givenSettings(settings, ch.Settings); err != nil {
			return nil, err
		}
		if err := Put(tx, c, ch); err != nil {
			return nil, err
		}
		after, err := ch.ParseSettings()
		if err != nil {
			return nil, err
		}
		if err := svc.checkServers(before.Tools.Servers, after.Tools.Servers); err != nil {
			return nil, err
		}
		if err := svc.replan(tx, !reflect.DeepEqual(before.Circle, after.Circle)); err != nil {
			return nil, err
		}
		full, err := FullSettings(tx, ch)
		return &keptSettings{ch.ID, full, ch.Version}, err
	})
	if err != nil {
		return nil, 0, err
	}
	return kept.Settings, kept.Version, nil
}

// CheckSettings refuses what PutSettings would refuse of the settings of a new character, whatever the server has.
func CheckSettings(settings json.RawMessage) error {
	_, err := givenSettings(settings, nil)
	return err
}

// checkServers refuses names of servers that do not exist. One that the settings had before may
// stay: the operator has removed the server since, and it is not used.
func (svc *Service) checkServers(before, after []string) error {
	for i, name := range after {
		if !slices.Contains(before, name) && (svc.opts.HasToolServer == nil || !svc.opts.HasToolServer(name)) {
			return fault.InvalidField(fmt.Sprintf("tools.servers[%d]", i), "unknown", "unknown server %q", name)
		}
	}
	return nil
}

// settingRule is one member of the settings: its default and what it may be.
type settingRule struct {
	name     string
	def      any // bool, float64, string, []string or nil (an object)
	imported any // default of imported SillyTavern characters; nil = def
	min, max float64
	oneOf    []string
	clock    bool // "HH:MM"; of a list: its elements
	readOnly bool // a client may send it back; it changes nothing
	notZero  bool // 0 would mean nothing here
	text     int  // longest text, in code points
}

type settingGroup struct {
	name  string
	rules []settingRule
	// open groups keep members that are not listed: the memory settings are a
	// document of their own with that promise.
	open bool
}

// characterSettings is the shape of a character's settings, in the order in
// which they are shown. Lengths are code points.
var characterSettings = []settingGroup{
	{name: "memory", open: true, rules: []settingRule{
		{name: "enabled", def: true},
		{name: "summaryShare", def: 50.0, max: 90},
		{name: "summaryTokens", def: 32_000.0, min: 1000, max: 1_000_000},
		{name: "summaryThreshold", def: 6000.0, min: 3000, max: 1_000_000},
		{name: "summaryLength", def: 1000.0, min: 500, max: 2000},
		{name: "lastSummarizedAt", def: 0.0, max: math.MaxInt64, readOnly: true},
		{name: "extractEvery", def: 5.0, min: 1, max: 50},
		{name: "scanSummary", def: false},
	}},
	{name: "retrieval", rules: []settingRule{
		{name: "enabled", def: true},
		{name: "limit", def: 10.0, min: 1, max: 10},
		{name: "shareAcrossConversations", def: true},
		{name: "includeCircle", def: true},
		{name: "feedback", def: true},
	}},
	{name: "knowledge", rules: []settingRule{
		{name: "citations", def: CiteInline, oneOf: []string{CiteInline, CiteHidden, CiteOff}},
	}},
	{name: "tools", rules: []settingRule{
		{name: "servers", def: []string{}, max: 16, text: 32},
	}},
	{name: "cognition", rules: []settingRule{
		{name: "goals", def: false},
		{name: "extract", def: false},
		{name: "autoCommit", def: false},
		{name: "logMemoryQueries", def: false},
	}},
	{name: "circle", rules: []settingRule{
		{name: "enabled", def: false},
		{name: "postsPerDay", def: 1.0, min: 0, max: 24},
		{name: "interactionFrequency", def: "medium", oneOf: []string{"low", "medium", "high"}},
		{name: "scheduledTimes", def: []string{}, clock: true, max: 24},
	}},
	{name: "dream", rules: []settingRule{
		{name: "mode", def: "full", oneOf: []string{"off", "recall", "full"}},
		{name: "at", def: "04:00", clock: true},
		{name: "newMessages", def: 20.0, min: 1, max: 1000},
	}},
	{name: "prompt", rules: []settingRule{
		{name: "depthMode", def: "messages", oneOf: []string{"messages", "user_messages"}},
		{name: "scanDepth", def: 20.0, min: -1, max: 100_000, notZero: true},
		{name: "language", def: "auto", oneOf: []string{"auto", "en", "zh"}},
		{name: "cardFields", def: "all", oneOf: []string{"all", "listed"}},
		{name: "recount", def: true, imported: false},
		{name: "filterKeyed", def: false, imported: true},
		{name: "pinExamples", def: false},
		{name: "cardSystemPrompt", def: true},
		{name: "cardPostHistory", def: true},
	}},
	{name: "worldInfo", rules: []settingRule{
		{name: "depth", def: 2.0, min: 0, max: 1000},
		{name: "budget", def: 25.0, min: 1, max: 100},
		{name: "budgetCap", def: 0.0, min: 0, max: 65_536},
		{name: "minActivations", def: 0.0, min: 0, max: 100},
		{name: "minActivationsDepth", def: 0.0, min: 0, max: 1000},
		{name: "maxRecursionSteps", def: 0.0, min: 0, max: 10},
		{name: "recursive", def: true},
		{name: "includeNames", def: true},
		{name: "caseSensitive", def: false},
		{name: "matchWholeWords", def: true},
		{name: "useGroupScoring", def: false},
		{name: "strategy", def: "character", oneOf: []string{"evenly", "character", "global"}},
	}},
	{name: "scripts", rules: []settingRule{
		{name: "card", def: true, imported: false},
		{name: "preset", def: false},
	}},
	{name: "user", rules: []settingRule{
		{name: "name", def: "", text: 100},
		{name: "customSetting"},
	}},
}

// The ways in which a reply shows its sources: setting knowledge.citations.
const (
	CiteInline = "inline" // marks in the text, and references
	CiteHidden = "hidden" // references only
	CiteOff    = "off"    // neither
)

// Settings are those of a character's settings that a prompt is built by.
type Settings struct {
	Memory struct {
		Enabled      bool `json:"enabled"`
		ExtractEvery int  `json:"extractEvery"`     // exchanges
		Share        int  `json:"summaryShare"`     // percent of the model's context that a chat may have before it is summarised; 0 = Threshold counts
		Tokens       int  `json:"summaryTokens"`    // that it may have at most by Share
		Threshold    int  `json:"summaryThreshold"` // in UTF-16 units; counts without Share, and where the context is not known
		Length       int  `json:"summaryLength"`
		ScanSummary  bool `json:"scanSummary"` // keys of world books are looked for in summaries
	} `json:"memory"`
	Retrieval struct {
		Enabled                  bool `json:"enabled"`
		Limit                    int  `json:"limit"`
		ShareAcrossConversations bool `json:"shareAcrossConversations"`
		IncludeCircle            bool `json:"includeCircle"` // memories of the circle are recalled in private chats
		Feedback                 bool `json:"feedback"`      // evaluations move what is recalled and found
	} `json:"retrieval"`
	Knowledge struct {
		Citations string `json:"citations"` // CiteInline, CiteHidden or CiteOff
	} `json:"knowledge"`
	Tools struct {
		Servers []string `json:"servers"` // whose tools it may call: names of the operator's MCP servers
	} `json:"tools"`
	Cognition struct {
		Goals            bool `json:"goals"`            // the model may set and end goals
		Extract          bool `json:"extract"`          // knowledge to keep is proposed
		AutoCommit       bool `json:"autoCommit"`       // and kept without a review
		LogMemoryQueries bool `json:"logMemoryQueries"` // recalled memories are logged as queries
	} `json:"cognition"`
	Circle struct {
		Enabled        bool     `json:"enabled"`
		PostsPerDay    int      `json:"postsPerDay"`
		Frequency      string   `json:"interactionFrequency"` // low, medium or high
		ScheduledTimes []string `json:"scheduledTimes"`       // HH:MM, each day
	} `json:"circle"`
	Dream struct {
		Mode        string `json:"mode"`        // dream.Off, RecallOnly or Full
		At          string `json:"at"`          // HH:MM of the user's day
		NewMessages int    `json:"newMessages"` // that make a night worth its price
	} `json:"dream"`
	Prompt struct {
		DepthMode   string `json:"depthMode"`
		ScanDepth   int    `json:"scanDepth"`   // newest messages in which keys are looked for; -1 = all
		Language    string `json:"language"`    // language of built-in words; "auto" = that of the card
		CardFields  string `json:"cardFields"`  // fields that the preset does not list: "all" are added, or "listed" ones alone count
		Recount     bool   `json:"recount"`     // ask for a <mem> block in replies
		FilterKeyed bool   `json:"filterKeyed"` // leave out keyed entries of the frame that match nothing

		// In the SillyTavern dialect only.
		PinExamples      bool `json:"pinExamples"`      // examples have precedence over old messages
		CardSystemPrompt bool `json:"cardSystemPrompt"` // the card's replaces that of the preset
		CardPostHistory  bool `json:"cardPostHistory"`  // likewise
	} `json:"prompt"`
	Scripts struct {
		Card   bool `json:"card"`   // regex scripts that came with the card run
		Preset bool `json:"preset"` // likewise with the preset; in the SillyTavern dialect only
	} `json:"scripts"`
	WorldInfo struct { // in the SillyTavern dialect only
		Depth               int    `json:"depth"`     // newest messages in which keys are looked for
		Budget              int    `json:"budget"`    // percent of the context
		BudgetCap           int    `json:"budgetCap"` // tokens; 0 = none
		MinActivations      int    `json:"minActivations"`
		MinActivationsDepth int    `json:"minActivationsDepth"` // 0 = the whole chat
		MaxRecursionSteps   int    `json:"maxRecursionSteps"`   // 0 = no limit
		Recursive           bool   `json:"recursive"`
		IncludeNames        bool   `json:"includeNames"`
		CaseSensitive       bool   `json:"caseSensitive"`
		MatchWholeWords     bool   `json:"matchWholeWords"`
		UseGroupScoring     bool   `json:"useGroupScoring"`
		Strategy            string `json:"strategy"` // evenly, character or global: whose books come first
	} `json:"worldInfo"`
	User struct {
		Name          string          `json:"name"`          // {{user}} for this character
		CustomSetting json.RawMessage `json:"customSetting"` // 自设 for this character
	} `json:"user"`
}

// ParseSettings reads what a turn needs, with the defaults.
func (ch *Character) ParseSettings() (Settings, error) {
	var s Settings
	set, err := storedSettings(ch.Settings)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(set.full(ch.Dialect), &s)
}

// full completes what was set with the defaults. Stored members that are no settings any more
// are left out.
func (set setSettings) full(dialect string) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, g := range characterSettings {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:{", g.name)
		for j, r := range g.rules {
			value, ok := set[g.name][r.name]
			if !ok {
				value = r.defaultFor(dialect)
			}
			delete(set[g.name], r.name)
			if j > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%q:%s", r.name, value)
		}
		if g.open {
			for _, name := range slices.Sorted(maps.Keys(set[g.name])) {
				fmt.Fprintf(&b, ",%s:%s", op.MustJSON(name), set[g.name][name])
			}
		}
		b.WriteByte('}')
	}
	b.WriteByte('}')
	return b.Bytes()
}

func (r settingRule) defaultFor(dialect string) json.RawMessage {
	if r.imported != nil && dialect == string(card.SillyTavern) {
		return op.MustJSON(r.imported)
	}
	return op.MustJSON(r.def)
}

// givenSettings checks what a client sent and returns what to store: the members
// that it named. Read-only members keep what stood in before.
func givenSettings(sent, before json.RawMessage) (json.RawMessage, error) {
	groups := map[string]json.RawMessage{}
	if err := op.DecodeStrict("settings", sent, &groups); err != nil {
		return nil, err
	}
	old, err := storedSettings(before)
	if err != nil {
		return nil, err
	}
	kept := setSettings{}
	for _, g := range characterSettings {
		members, err := g.check(groups[g.name], old[g.name])
		if err != nil {
			return nil, err
		}
		if len(members) > 0 {
			kept[g.name] = members
		}
		delete(groups, g.name)
	}
	if names := slices.Sorted(maps.Keys(groups)); len(names) > 0 {
		return nil, op.UnknownField(names[0])
	}
	return json.Marshal(kept)
}

func (g settingGroup) check(sent json.RawMessage, old map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if !op.IsNull(sent) {
		if err := op.DecodeStrict(g.name, sent, &members); err != nil {
			return nil, err
		}
	}
	known := map[string]bool{}
	for _, r := range g.rules {
		known[r.name] = true
		value, ok := members[r.name]
		if ok {
			if err := r.check(g.name+"."+r.name, value); err != nil {
				return nil, err
			}
		}
		if r.readOnly {
			delete(members, r.name)
			if was, ok := old[r.name]; ok {
				members[r.name] = was
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !known[name] && !g.open {
			return nil, op.UnknownField(g.name + "." + name)
		}
	}
	return members, nil
}

var clockTime = regexp.MustCompile(`^([01][0-9]|2[0-3]):[0-5][0-9]$`)

// check refuses a value that is not valid at path.
func (r settingRule) check(path string, value json.RawMessage) error {
	switch r.def.(type) {
	case bool:
		var v bool
		return op.DecodeStrict(path, value, &v)
	case float64:
		return r.checkNumber(path, value)
	case string:
		var v string
		if err := op.DecodeStrict(path, value, &v); err != nil {
			return err
		}
		return r.checkText(path, v)
	case []string:
		var list []string
		if err := op.DecodeStrict(path, value, &list); err != nil {
			return err
		}
		if len(list) > int(r.max) {
			return fault.InvalidField(path, "range", "must have at most %.0f elements", r.max)
		}
		for i, v := range list {
			if err := r.checkText(fmt.Sprintf("%s[%d]", path, i), v); err != nil {
				return err
			}
		}
		return nil
	}
	return checkCustomSetting(path, value)
}

func (r settingRule) checkNumber(path string, value json.RawMessage) error {
	var v float64
	if err := op.DecodeStrict(path, value, &v); err != nil {
		return err
	}
	switch {
	case v != math.Trunc(v):
		return fault.InvalidField(path, "type", "must be a whole number")
	case v == 0 && r.notZero:
		return fault.InvalidField(path, "range", "must be from 1 to %.0f, or -1 for all", r.max)
	case v < r.min || v > r.max:
		return fault.InvalidField(path, "range", "must be from %.0f to %.0f", r.min, r.max)
	}
	return nil
}

func (r settingRule) checkText(path, v string) error {
	switch {
	case r.oneOf != nil && !slices.Contains(r.oneOf, v):
		return fault.InvalidField(path, "range", "must be one of %s", strings.Join(r.oneOf, ", "))
	case r.clock && !clockTime.MatchString(v):
		return fault.InvalidField(path, "range", "must be a time of day from 00:00 to 23:59")
	case r.text > 0:
		return op.CheckLine(path, v, r.text)
	}
	return nil
}

// SetUserName makes name what the character calls the user; "" changes nothing.
func (ch *Character) SetUserName(name string) (changed bool, err error) {
	own, err := ch.ParseSettings()
	if err != nil || name == "" || own.User.Name == name {
		return false, err
	}
	set, err := storedSettings(ch.Settings)
	if err != nil {
		return false, err
	}
	set.put("user", "name", name)
	ch.Settings = op.MustJSON(set)
	return true, nil
}

// JoinCircle makes ch take part in the social circle.
func (ch *Character) JoinCircle() error {
	set, err := storedSettings(ch.Settings)
	if err != nil {
		return err
	}
	set.put("circle", "enabled", true)
	ch.Settings = op.MustJSON(set)
	return nil
}
