package api

import (
	"context"
	"encoding/json"
	"net/http"

	"nodest/character"
	"nodest/internal/op"
	"nodest/nodest"
)

// DocumentBytes bounds the body of a request that carries documents: cards with large world books.
const DocumentBytes = 16 << 20

// documentOperations are about characters and settings. They exist in REST only.
var documentOperations = []Operation{
	{Route: "POST /characters", Status: http.StatusCreated, Bytes: DocumentBytes, Data: takes(func(ctx context.Context, c *Call, in character.Input) (any, error) {
		return characterOf(c.Characters.Create(ctx, c.Call, in))
	})},
	{Route: "GET /characters", Data: takes(characterList)},
	{Route: "GET /characters/:id", Bytes: DocumentBytes, Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return characterOf(c.Characters.Get(ctx, c.UserID, in.ID))
	})},
	{Route: "PUT /characters/:id", Bytes: DocumentBytes, IfMatch: true, Data: takes(func(ctx context.Context, c *Call, in characterData) (any, error) {
		return characterOf(c.Characters.Update(ctx, c.Call, in.ID, in.Input, true, in.IfVersion))
	})},
	{Route: "PATCH /characters/:id", Bytes: DocumentBytes, IfMatch: true, Data: takes(func(ctx context.Context, c *Call, in characterData) (any, error) {
		return characterOf(c.Characters.Update(ctx, c.Call, in.ID, in.Input, false, in.IfVersion))
	})},
	{Route: "DELETE /characters/:id", Status: http.StatusNoContent, Data: takes(func(ctx context.Context, c *Call, in idData) (any, error) {
		return nil, c.Engine.DeleteCharacter(ctx, c.Call, in.ID)
	})},
	{Route: "GET /characters/:id/settings", Data: takes(characterSettings)},
	{Route: "PUT /characters/:id/settings", IfMatch: true, Data: takes(characterPutSettings)},
	{Route: "GET /settings", Data: takes(func(ctx context.Context, c *Call, _ struct{}) (any, error) {
		return settingsOf(c.Characters.UserSettings(ctx, c.UserID))
	})},
	{Route: "PUT /settings", IfMatch: true, Data: takes(func(ctx context.Context, c *Call, in settingsData) (any, error) {
		return settingsOf(c.Characters.PutUserSettings(ctx, c.Call, in.UserSettings, in.IfVersion))
	})},
	{Route: "PUT /settings/device-time-zone", Data: takes(func(ctx context.Context, c *Call, in deviceZoneData) (any, error) {
		return settingsOf(c.Characters.DeviceZone(ctx, c.UserID, in.TimeZone))
	})},
	{Route: "GET /variables", Data: takes(func(ctx context.Context, c *Call, _ struct{}) (any, error) {
		return variablesOf(c.Characters.Variables(ctx, c.UserID))
	})},
	{Route: "PUT /variables", Data: takes(func(ctx context.Context, c *Call, in variablesData) (any, error) {
		return variablesOf(c.Characters.PutVariables(ctx, c.Call, in.Variables))
	})},
	{Route: "GET /usage", Data: takes(func(ctx context.Context, c *Call, in usageData) (any, error) {
		return List(func(r nodest.UsageRow) any { return r })(c.Engine.Usage(ctx, c.UserID, in.From, in.To))
	})},
}

// wireCharacterHead is a character in a list.
type wireCharacterHead struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Dialect   string   `json:"dialect"`
	IsCradle  bool     `json:"isCradle"`
	HasAvatar bool     `json:"hasAvatar"`
	Tags      []string `json:"tags"`
	Archived  bool     `json:"archived"`
	Version   int64    `json:"version"`
	CreatedAt op.Time  `json:"createdAt"`
	UpdatedAt op.Time  `json:"updatedAt"`
}

func wireCharacterHeadOf(c *character.Character) wireCharacterHead {
	return wireCharacterHead{
		ID: c.ID, Name: c.Name, Dialect: c.Dialect, IsCradle: c.IsCradle, HasAvatar: c.HasAvatar, Tags: OrEmpty(c.Tags), Archived: c.Archived,
		Version: c.Version, CreatedAt: op.Time(c.CreatedAt), UpdatedAt: op.Time(c.UpdatedAt),
	}
}

type wireCharacter struct {
	wireCharacterHead
	RoleCard     json.RawMessage `json:"roleCard,omitempty"`
	WorldBook    json.RawMessage `json:"worldBook,omitempty"`
	Preset       json.RawMessage `json:"preset,omitempty"`
	AuthorNote   json.RawMessage `json:"authorNote,omitempty"`
	RegexScripts json.RawMessage `json:"regexScripts,omitempty"`
}

func wireCharacterOf(c *character.Character) wireCharacter {
	return wireCharacter{
		wireCharacterHead: wireCharacterHeadOf(c),
		RoleCard:          present(c.RoleCard), WorldBook: present(c.WorldBook), Preset: present(c.Preset),
		AuthorNote: present(c.AuthorNote), RegexScripts: present(c.RegexScripts),
	}
}

// present is a document, nil for none: a character from a stored answer has null where
// it has no document.
func present(document json.RawMessage) json.RawMessage {
	if string(document) == "null" {
		return nil
	}
	return document
}

var characterOf = Result(func(c *character.Character) Versioned { return Versioned{wireCharacterOf(c), c.Version} })

type characterListData struct {
	Archived *bool `json:"archived,omitempty"`
	op.Listing
	pageData
}

func characterList(ctx context.Context, c *Call, in characterListData) (any, error) {
	filter := character.Filter{Archived: in.Archived, Listing: in.Listing}
	return Pages(wireCharacterHeadOf)(c.Characters.List(ctx, c.UserID, filter, in.Cursor, int(in.Limit)))
}

type idData struct {
	ID string `json:"id"`
}

type characterData struct {
	character.Input
	ID        string `json:"id"`
	IfVersion int64  `json:"ifVersion,omitempty"`
}

func characterSettings(ctx context.Context, c *Call, in idData) (any, error) {
	settings, version, err := c.Characters.Settings(ctx, c.UserID, in.ID)
	return Versioned{settings, version}, err
}

// characterSettingsData lists the members so that unknown ones are refused; package
// character checks their content.
type characterSettingsData struct {
	ID        string `json:"id"`
	IfVersion int64  `json:"ifVersion,omitempty"`
	settingsParts
}

type settingsParts struct {
	Circle    json.RawMessage `json:"circle,omitempty"`
	Dream     json.RawMessage `json:"dream,omitempty"`
	Knowledge json.RawMessage `json:"knowledge,omitempty"`
	Memory    json.RawMessage `json:"memory,omitempty"`
	Prompt    json.RawMessage `json:"prompt,omitempty"`
	Scripts   json.RawMessage `json:"scripts,omitempty"`
	WorldInfo json.RawMessage `json:"worldInfo,omitempty"`
	Retrieval json.RawMessage `json:"retrieval,omitempty"`
	Cognition json.RawMessage `json:"cognition,omitempty"`
	Tools     json.RawMessage `json:"tools,omitempty"`
	User      json.RawMessage `json:"user,omitempty"`
}

func characterPutSettings(ctx context.Context, c *Call, in characterSettingsData) (any, error) {
	document, err := json.Marshal(in.settingsParts)
	if err != nil {
		return nil, err
	}
	settings, version, err := c.Characters.PutSettings(ctx, c.Call, in.ID, document, in.IfVersion)
	return Versioned{settings, version}, err
}

type wireSettings struct {
	character.UserSettings
	UpdatedAt *op.Time `json:"updatedAt"` // null = never stored
}

var settingsOf = Result(func(set *character.UserSettings) Versioned {
	w := wireSettings{UserSettings: *set}
	if !set.UpdatedAt.IsZero() {
		at := op.Time(set.UpdatedAt)
		w.UpdatedAt = &at
	}
	return Versioned{w, set.Version}
})

// settingsData may be the settings as they were read: deviceTimeZone, version and
// updatedAt are ignored.
type settingsData struct {
	character.UserSettings
	UpdatedAt json.RawMessage `json:"updatedAt,omitempty"`
	IfVersion int64           `json:"ifVersion,omitempty"`
}

type deviceZoneData struct {
	TimeZone string `json:"timeZone"`
}

type usageData struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// variablesData are the variables that all chats of a user share, as they are sent and as they are answered.
type variablesData struct {
	Variables json.RawMessage `json:"variables"`
}

var variablesOf = Result(func(v json.RawMessage) variablesData { return variablesData{v} })
