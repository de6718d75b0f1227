package character

import (
	"encoding/json"
	"time"

	"nodest/card"
	"nodest/op"
)

// TurnOptions steer one turn. Message beats conversation beats preset beats user: a
// nil member leaves the choice to the next. A preset sets no more than temperature,
// topP, maxTokens and contextTokens.
type TurnOptions struct {
	CharacterID   string   `json:"characterId,omitempty"`
	Provider      string   `json:"provider,omitempty"`
	Model         string   `json:"model,omitempty"`
	Temperature   *float64 `json:"temperature,omitempty"`   // 0–2
	TopP          *float64 `json:"topP,omitempty"`          // 0–1
	MaxTokens     *int     `json:"maxTokens,omitempty"`     // 1–1,000,000: length of the reply
	ContextTokens *int     `json:"contextTokens,omitempty"` // 512–10,000,000: whole request
	Stop          []string `json:"stop,omitempty"`
	UseToolCalls  *bool    `json:"useToolCalls,omitempty"`
	SearchEnabled *bool    `json:"searchEnabled,omitempty"`
	Memory        *bool    `json:"memory,omitempty"`
}

// UserSettings are a user's defaults.
type UserSettings struct {
	TurnOptions
	PersonaID          string          `json:"personaId,omitempty"`
	UserName           string          `json:"userName,omitempty"`       // {{user}} without a persona
	TimeZone           string          `json:"timeZone,omitempty"`       // of the user's days, an IANA name; "" = that of the device
	DeviceTimeZone     string          `json:"deviceTimeZone,omitempty"` // that a device reported last; "" = none did. Only PutDeviceZone sets it
	GlobalPreset       GlobalResource  `json:"globalPreset"`
	GlobalWorldBook    GlobalResource  `json:"globalWorldBook"`
	GlobalRegexEnabled bool            `json:"globalRegexEnabled"`
	CustomSetting      json.RawMessage `json:"customSetting,omitempty"` // 自设
	Version            int64           `json:"version"`
	UpdatedAt          time.Time       `json:"updatedAt"`
}

// GlobalResource switches a resource on for every character.
type GlobalResource struct {
	Enabled  bool   `json:"enabled"`
	ID       string `json:"id,omitempty"`
	Priority string `json:"priority,omitempty"` // world book: 全局优先 or 角色优先
}

// Character is a character with its documents as they were imported: their own
// field names, unknown fields included.
type Character struct {
	ID           string          `json:"id"`
	Name         string          `json:"name"`
	Dialect      string          `json:"dialect"` // "nodest" or "sillytavern"
	IsCradle     bool            `json:"isCradle"`
	RoleCard     json.RawMessage `json:"roleCard"`
	WorldBook    json.RawMessage `json:"worldBook"`
	Preset       json.RawMessage `json:"preset"`
	AuthorNote   json.RawMessage `json:"authorNote"`
	RegexScripts json.RawMessage `json:"regexScripts"`
	Source       json.RawMessage `json:"-"` // what is kept of an imported file besides the documents, for export; not always read
	Settings     json.RawMessage `json:"-"`
	HasAvatar    bool            `json:"hasAvatar"`
	Tags         []string        `json:"tags"` // the user's; those of the card are in the card
	Archived     bool            `json:"archived"`
	Version      int64           `json:"version"`
	CreatedAt    time.Time       `json:"createdAt"`
	UpdatedAt    time.Time       `json:"updatedAt"`

	// DocumentsVersion is the newest version that changed more than Tags and Archived.
	// Prompts know a character by it; the store sets it.
	DocumentsVersion int64 `json:"-"`
}

// keptCharacter refers to a version of a character.
type keptCharacter struct {
	ID        string   `json:"id"`
	Version   int64    `json:"version"`
	HasAvatar bool     `json:"hasAvatar,omitempty"`
	Tags      []string `json:"tags"` // nil or empty, as the answer has it
}

// Kept refers to the version, which does not change.
func (ch *Character) Kept() any { return keptCharacter{ch.ID, ch.Version, ch.HasAvatar, ch.Tags} }

// Reread reads the version.
func (ch *Character) Reread(tx Tx, kept json.RawMessage) error {
	var k keptCharacter
	if err := json.Unmarshal(kept, &k); err != nil {
		return err
	}
	found, err := tx.CharacterVersion(k.ID, k.Version)
	if err == nil {
		*ch = *found
		ch.Source, ch.HasAvatar, ch.Tags = nil, k.HasAvatar, k.Tags
	}
	return err
}

// Filter narrows and orders a list of characters. The zero value lists all.
type Filter struct {
	Archived *bool // nil = both
	op.Listing
}

// Avatar is a picture of a character.
type Avatar struct {
	ContentType string
	ETag        string // of the bytes
	Data        []byte
}

// ResourceKind is a kind of resource.
type ResourceKind string

// The kinds.
const (
	WorldBook   ResourceKind = "worldbook"
	Preset      ResourceKind = "preset"
	RegexScript ResourceKind = "regexscript"
	Persona     ResourceKind = "persona"
)

// Resource is a document apart from characters, bound to none, some or all of them.
type Resource struct {
	ID         string          `json:"id"`
	Kind       ResourceKind    `json:"kind"`
	Name       string          `json:"name"`
	Dialect    string          `json:"dialect"` // "nodest" or "sillytavern": the rules it was written for, and so its defaults
	Document   json.RawMessage `json:"document"`
	BindAll    bool            `json:"bindAll"`
	Characters []string        `json:"characterIds"` // bound to these
	Version    int64           `json:"version"`
	CreatedAt  time.Time       `json:"createdAt"`
	UpdatedAt  time.Time       `json:"updatedAt"`
}

// keptResource refers to a version of a resource.
type keptResource struct {
	Kind    ResourceKind `json:"kind"`
	ID      string       `json:"id"`
	Version int64        `json:"version"`
}

// Kept refers to the version, which does not change.
func (r *Resource) Kept() any { return keptResource{r.Kind, r.ID, r.Version} }

// Reread reads the version.
func (r *Resource) Reread(tx Tx, kept json.RawMessage) error {
	var k keptResource
	if err := json.Unmarshal(kept, &k); err != nil {
		return err
	}
	found, err := tx.ResourceVersion(k.Kind, k.ID, k.Version)
	if err == nil {
		*r = *found
	}
	return err
}

// Input are the documents of a character.
type Input struct {
	RoleCard     json.RawMessage `json:"roleCard"`
	WorldBook    json.RawMessage `json:"worldBook,omitempty"`
	Preset       json.RawMessage `json:"preset,omitempty"`
	AuthorNote   json.RawMessage `json:"authorNote,omitempty"`
	RegexScripts json.RawMessage `json:"regexScripts,omitempty"`
	IsCradle     *bool           `json:"isCradle,omitempty"`
	Dialect      string          `json:"dialect,omitempty"`
	Tags         []string        `json:"tags,omitzero"`      // nil = those that there are; of a new character those of the card
	Archived     *bool           `json:"archived,omitempty"` // nil = it stays
}

// Imported is an imported character with the warnings about its file.
type Imported struct {
	Character *Character     `json:"character"`
	Warnings  []card.Warning `json:"warnings"`
}

// keptImport refers to what an import has made.
type keptImport struct {
	Of       any            `json:"of"`
	Warnings []card.Warning `json:"warnings"`
}

// Kept refers to the character's version.
func (i *Imported) Kept() any { return keptImport{i.Character.Kept(), i.Warnings} }

// Reread reads the character's version.
func (i *Imported) Reread(tx Tx, kept json.RawMessage) error {
	var of json.RawMessage
	k := keptImport{Of: &of}
	if err := json.Unmarshal(kept, &k); err != nil {
		return err
	}
	i.Character, i.Warnings = &Character{}, k.Warnings
	return i.Character.Reread(tx, of)
}

// ResourceInput creates or replaces a resource; nil or empty members of a patch stay.
type ResourceInput struct {
	Name       string          `json:"name,omitempty"`
	Dialect    string          `json:"dialect,omitempty"` // default "nodest", of a world book that of its form
	Document   json.RawMessage `json:"document,omitempty"`
	BindAll    *bool           `json:"bindAll,omitempty"`
	Characters []string        `json:"characterIds,omitempty"`
}
