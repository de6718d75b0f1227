package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"time"

	"nodest/internal/index"
	"nodest/internal/jobs"
	"nodest/llm"
	"nodest/memory/lang"
)

// Service recalls memories, has the user's operations on them, and embeds them in the
// background. It is safe for concurrent use.
type Service struct {
	store Store
	opts  Options
	cache *index.Cache
}

// Options tune a Service. Scenes is required; the rest has defaults.
type Options struct {
	// Scenes returns the settings of a character's memory.
	Scenes func(ctx context.Context, userID, characterID, conversationID string) (Scene, error)
	// Embedder returns the embedder of a user ("" = the server); default the offline one.
	Embedder func(ctx context.Context, userID string) (llm.Embedder, error)
	// Settings returns the settings line of an export; nil = none.
	Settings func(ctx context.Context, userID, characterID string) (ExportedSettings, error)

	CacheBytes int          // bytes of all indexes in memory; default 64 MB
	Loose      int          // units of a memory that are searched in memory before a segment is built of them; default 1,024
	Log        *slog.Logger // default slog.Default()
}

// Scene is the settings of one character's memory, and who speaks in one of its conversations.
type Scene struct {
	Names        lang.Names // names of the persona and of the character
	Enabled      bool       // texts are read for facts
	ExtractEvery int        // exchanges
	Recall       bool       // memories go into prompts
	Limit        int        // items in a prompt
	Feedback     bool       // evaluations move what is recalled, and a share of it explores
	Share        bool       // from all conversations with the character, not only this one

	Zone *time.Location // time zone of the user's days; nil = UTC
}

// Location is the time zone of the scene's days.
func (s *Scene) Location() *time.Location { return cmp.Or(s.Zone, time.UTC) }

// Kinds of jobs. The subject of an extraction is a conversation, that of embedding a character.
const (
	JobExtract = "memory.extract"
	JobEmbed   = "memory.embed"
)

func New(store Store, o Options) *Service {
	o.Log, o.Loose = cmp.Or(o.Log, slog.Default()), cmp.Or(o.Loose, defaultLoose)
	s := &Service{store: store, opts: o}
	s.cache = index.NewCache(loader{store}, o.CacheBytes)
	return s
}

// Kinds are the jobs of the service, for jobs.Runner.Handle.
func (s *Service) Kinds() []jobs.Kind { return []jobs.Kind{{Name: JobEmbed, Run: s.runEmbed}} }

// ExportedSettings is the line of an export with the settings of the character's memory.
type ExportedSettings struct {
	Type      string          `json:"type"`
	Memory    json.RawMessage `json:"memory"`
	Retrieval json.RawMessage `json:"retrieval"`
}

type loader struct{ store Store }

// key names a scope in the cache; ids have no byte 0.
func (s Scope) key() string { return s.UserID + "\x00" + s.CharacterID }

func scopeOf(key string) Scope {
	user, character, _ := strings.Cut(key, "\x00")
	return Scope{user, character}
}

// loadAtOnce is how many changes are loaded at once. A turn with little time loads a few
// thousand texts, and the next one continues.
const loadAtOnce = 2000

func (l loader) Load(ctx context.Context, key string, since, base int64) (index.Delta, error) {
	var changes *Changes
	scope := scopeOf(key)
	err := l.store.View(ctx, scope.UserID, func(tx Tx) (err error) {
		changes, err = tx.MemoryChanges(scope.CharacterID, since, base, loadAtOnce)
		return err
	})
	if err != nil {
		return index.Delta{}, err
	}
	d := index.Delta{
		Partial: changes.Partial,
		Version: changes.Version, Base: changes.Base, Removed: changes.Gone, Whole: changes.Whole, More: changes.More,
		Rows: make([]index.Row, len(changes.Units)),
	}
	for _, one := range changes.Segments {
		d.Segments = append(d.Segments, index.Segment{ID: one.ID, From: one.From, To: one.To})
	}
	for i := range changes.Units {
		d.Rows[i] = changes.Units[i].Row()
	}
	return d, nil
}
