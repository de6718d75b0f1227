package server

import (
	"context"
	"encoding/json"
	"net/http"

	"nodest/character"
	"nodest/nodest"
	"nodest/op"
)

// documentBytes bounds the body of a request that carries documents: cards with
// large world books.
const documentBytes = 16 << 20

// documentOperations are about characters, resources and settings, and what a client
// loads. They exist in REST only, and go through the same table as the others.
var documentOperations = append([]operation{
	{route: "POST /characters", status: http.StatusCreated, bytes: documentBytes, data: takes(characterCreate)},
	{route: "GET /characters", data: takes(characterList)},
	{route: "GET /characters/:id", data: takes(characterGet)},
	{route: "PUT /characters/:id", bytes: documentBytes, ifMatch: true, data: takes(characterReplace)},
	{route: "PATCH /characters/:id", bytes: documentBytes, ifMatch: true, data: takes(characterUpdate)},
	{route: "DELETE /characters/:id", status: http.StatusNoContent, data: takes(characterDelete)},
	{route: "GET /characters/:id/settings", data: takes(characterSettings)},
	{route: "PUT /characters/:id/settings", ifMatch: true, data: takes(characterPutSettings)},
	{route: "GET /settings", data: takes(settingsGet)},
	{route: "PUT /settings", ifMatch: true, data: takes(settingsPut)},
	{route: "PUT /settings/device-time-zone", data: takes(settingsDeviceZone)},
	{route: "GET /usage", data: takes(usage)},
	{route: "GET /jobs", data: takes(jobList)},
	{route: "POST /jobs/:id/retry", status: http.StatusAccepted, data: takes(jobRetry)},
	{route: "GET /sync", data: takes(syncLog)},
}, resourceOperations()...)

// wireCharacterHead is a character in a list.
type wireCharacterHead struct {
	ID        string   `json:"id"`
	Name      string   `json:"name"`
	Dialect   string   `json:"dialect"`
	IsCradle  bool     `json:"isCradle"`
	HasAvatar bool     `json:"hasAvatar"`
	Tags      []string `json:"tags"`
	Version   int64    `json:"version"`
	CreatedAt wireTime `json:"createdAt"`
	UpdatedAt wireTime `json:"updatedAt"`
}

func wireCharacterHeadOf(c *character.Character) wireCharacterHead {
	return wireCharacterHead{
		ID: c.ID, Name: c.Name, Dialect: c.Dialect, IsCradle: c.IsCradle, HasAvatar: c.HasAvatar, Tags: orEmpty(c.Tags), Version: c.Version,
		CreatedAt: wireTime(c.CreatedAt), UpdatedAt: wireTime(c.UpdatedAt),
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

var characterOf = result(func(c *character.Character) versioned { return versioned{wireCharacterOf(c), c.Version} })

func characterCreate(ctx context.Context, s *Server, c *op.Call, in character.Input) (any, error) {
	return characterOf(s.Characters.Create(ctx, c, in))
}

type characterListData struct {
	op.Listing
	pageData
}

func characterList(ctx context.Context, s *Server, c *op.Call, in characterListData) (any, error) {
	return pages(wireCharacterHeadOf)(s.Characters.List(ctx, c.UserID, in.Listing, in.Cursor, int(in.Limit)))
}

type idData struct {
	ID string `json:"id"`
}

func characterGet(ctx context.Context, s *Server, c *op.Call, in idData) (any, error) {
	return characterOf(s.Characters.Get(ctx, c.UserID, in.ID))
}

type characterData struct {
	character.Input
	ID        string `json:"id"`
	IfVersion int64  `json:"ifVersion,omitempty"`
}

func characterReplace(ctx context.Context, s *Server, c *op.Call, in characterData) (any, error) {
	return characterOf(s.Characters.Update(ctx, c, in.ID, in.Input, true, in.IfVersion))
}

func characterUpdate(ctx context.Context, s *Server, c *op.Call, in characterData) (any, error) {
	return characterOf(s.Characters.Update(ctx, c, in.ID, in.Input, false, in.IfVersion))
}

func characterDelete(ctx context.Context, s *Server, c *op.Call, in idData) (any, error) {
	return nil, s.Engine.DeleteCharacter(ctx, c, in.ID)
}

func characterSettings(ctx context.Context, s *Server, c *op.Call, in idData) (any, error) {
	settings, version, err := s.Characters.Settings(ctx, c.UserID, in.ID)
	return versioned{settings, version}, err
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
	Cognition json.RawMessage `json:"cognition,omitempty"`
	Dream     json.RawMessage `json:"dream,omitempty"`
	Knowledge json.RawMessage `json:"knowledge,omitempty"`
	Memory    json.RawMessage `json:"memory,omitempty"`
	Prompt    json.RawMessage `json:"prompt,omitempty"`
	Retrieval json.RawMessage `json:"retrieval,omitempty"`
	User      json.RawMessage `json:"user,omitempty"`
}

func characterPutSettings(ctx context.Context, s *Server, c *op.Call, in characterSettingsData) (any, error) {
	document, err := json.Marshal(in.settingsParts)
	if err != nil {
		return nil, err
	}
	settings, version, err := s.Characters.PutSettings(ctx, c, in.ID, document, in.IfVersion)
	return versioned{settings, version}, err
}

type wireSettings struct {
	character.UserSettings
	UpdatedAt *wireTime `json:"updatedAt"` // null = never stored
}

var settingsOf = result(func(set *character.UserSettings) versioned {
	w := wireSettings{UserSettings: *set}
	if !set.UpdatedAt.IsZero() {
		at := wireTime(set.UpdatedAt)
		w.UpdatedAt = &at
	}
	return versioned{w, set.Version}
})

func settingsGet(ctx context.Context, s *Server, c *op.Call, _ struct{}) (any, error) {
	return settingsOf(s.Characters.UserSettings(ctx, c.UserID))
}

// settingsData may be the settings as they were read: deviceTimeZone, version and
// updatedAt are ignored.
type settingsData struct {
	character.UserSettings
	UpdatedAt json.RawMessage `json:"updatedAt,omitempty"`
	IfVersion int64           `json:"ifVersion,omitempty"`
}

func settingsPut(ctx context.Context, s *Server, c *op.Call, in settingsData) (any, error) {
	return settingsOf(s.Characters.PutUserSettings(ctx, c, in.UserSettings, in.IfVersion))
}

type deviceZoneData struct {
	TimeZone string `json:"timeZone"`
}

func settingsDeviceZone(ctx context.Context, s *Server, c *op.Call, in deviceZoneData) (any, error) {
	return settingsOf(s.Characters.DeviceZone(ctx, c.UserID, in.TimeZone))
}

type usageData struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func usage(ctx context.Context, s *Server, c *op.Call, in usageData) (any, error) {
	return list(func(r nodest.UsageRow) any { return r })(s.Engine.Usage(ctx, c.UserID, in.From, in.To))
}
