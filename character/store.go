package character

import (
	"encoding/json"
	"time"
)

// StampTx reads versions.
type StampTx interface {
	// Stamps returns the versions of the documents of a turn, without reading the
	// documents: the character (0 when there is none), then the world books,
	// presets, regex scripts and personas that are bound to it or to all, in the
	// order of their creation, then the resources named in more, in that order and
	// left out where they do not exist.
	Stamps(characterID string, more ...string) (*Stamps, error)
}

// Stamps names versions of documents; equal Stamps mean equal documents.
type Stamps struct {
	Character    int64
	Resources    []ResourceStamp
	HasKnowledge bool // a file or a knowledge base is switched on for the character; that is none of its documents
}

// ResourceStamp names one version of a resource.
type ResourceStamp struct {
	Kind    ResourceKind `json:"kind"`
	ID      string       `json:"id"`
	Version int64        `json:"version"`
	Bound   bool         `json:"bound,omitempty"` // false: it was asked for by its id
}

// SettingsTx keeps the user's defaults.
type SettingsTx interface {
	// Settings returns the user's defaults (zero Settings, version 0, if none were stored).
	Settings() (*UserSettings, error)
	// PutSettings stores s with s.Version, which must be one more than the stored
	// one, else fault.PreconditionFailed.
	PutSettings(s *UserSettings) error
	// Variables returns those that macros share in all chats of the user: an object of values by name.
	Variables() (json.RawMessage, error)
	// LockVariables is Variables that keeps others from changing them until the transaction ends.
	LockVariables() (json.RawMessage, error)
	// PutVariables stores them.
	PutVariables(variables json.RawMessage) error
	// PutDeviceZone stores Settings.DeviceTimeZone, without another version of them.
	PutDeviceZone(name string) error
}

// CharacterTx keeps characters. Each version stays readable, so that a
// conversation state can name the version it was made with.
type CharacterTx interface {
	InsertCharacter(c *Character) error
	// Character returns the newest version, without Source.
	Character(id string) (*Character, error)
	// CharacterCard returns the newest version with RoleCard and Settings, without the other
	// documents. These may be large: whoever writes for somebody needs few of them, and nobody
	// else can write on SQLite while they are read.
	CharacterCard(id string) (*Character, error)
	// CharacterSource returns the file that a version was imported from, nil for none.
	CharacterSource(id string, version int64) (json.RawMessage, error)
	// CharacterVersion returns one version, Source included, also of a deleted character.
	CharacterVersion(id string, version int64) (*Character, error)
	// Characters lists by default newest first, at most limit, after cursor ("" =
	// start), without documents and settings; next is "" at the end.
	Characters(f Filter, cursor string, limit int) (items []*Character, next string, err error)
	// UpdateCharacter stores c as a new version; c.Version must be one more than
	// the newest, else fault.PreconditionFailed. A nil Source stays what it was.
	UpdateCharacter(c *Character) error
	// UpdateLabels is UpdateCharacter for a change of Tags and Archived alone. Stamps do
	// not change.
	UpdateLabels(c *Character) error
	// DeleteCharacter deletes the character and its conversations (both stay as
	// hidden rows until purged).
	DeleteCharacter(id string) error
	// HideCharacter hides a character while its import takes several transactions, and shows it
	// again. One that is never shown is removed like a deleted one.
	HideCharacter(id string, hidden bool) error
	// LastSummarised is when a summary of a conversation with the character was made
	// last; zero = never.
	LastSummarised(characterID string) (time.Time, error)
	// PutAvatar replaces the avatar; Avatar returns fault.NotFound without one.
	PutAvatar(characterID string, a *Avatar) error
	Avatar(characterID string) (*Avatar, error)
	AvatarTag(characterID string) (string, error)
}

// ResourceTx keeps world books, presets, regex scripts and personas.
type ResourceTx interface {
	InsertResource(r *Resource) error
	Resource(kind ResourceKind, id string) (*Resource, error)
	// ResourceVersion returns one version, also of a deleted resource.
	ResourceVersion(kind ResourceKind, id string, version int64) (*Resource, error)
	// Resources lists newest first, as Characters does, without documents.
	Resources(kind ResourceKind, cursor string, limit int) (items []*Resource, next string, err error)
	// BoundResources returns all resources of a kind that are bound to the
	// character or to all, in the order of their creation.
	BoundResources(kind ResourceKind, characterID string) ([]*Resource, error)
	UpdateResource(r *Resource) error
	DeleteResource(kind ResourceKind, id string) error
}
