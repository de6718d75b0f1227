package character

import (
	"encoding/json"
	"time"

	"nodest/card"
	"nodest/internal/op"
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
	NameDeclined       *string         `json:"nameDeclined,omitempty"`   // learnt name that the user was offered and put off; "" = asked while none was learnt; nil = never put off
	TimeZone           string          `json:"timeZone,omitempty"`       // zone of the user's days, an IANA name; "" = that of the device
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
	Source       json.RawMessage `json:"-"` // kept parts of an imported file besides the documents, for export; not always read
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

// Read reads the character of an id.
func (ch *Character) Read(tx Tx) error {
	found, err := tx.Character(ch.ID)
	if err == nil {
		*ch = *found
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
	ETag        string // identifies the bytes
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
	Template    ResourceKind = "template" // for text completion: kept as it came, never used
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

// Read reads the resource of a kind and an id.
func (r *Resource) Read(tx Tx) error {
	found, err := tx.Resource(r.Kind, r.ID)
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

// Read reads the character of an id.
func (i *Imported) Read(tx Tx) error { return i.Character.Read(tx) }

// ResourceInput creates or replaces a resource; nil or empty members of a patch stay.
type ResourceInput struct {
	Name       string          `json:"name,omitempty"`
	Dialect    string          `json:"dialect,omitempty"` // default "nodest", of a world book that of its form
	Document   json.RawMessage `json:"document,omitempty"`
	BindAll    *bool           `json:"bindAll,omitempty"`
	Characters []string        `json:"characterIds,omitempty"`
}
