package circle

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"nodest/character"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory"
)

// The jobs of the circle.
const (
	JobSpread = "circle.spread" // subject: a post or comment; decides who reacts to it
	JobReact  = "circle.react"  // subject: a turn; a character reacts
	JobDay    = "circle.day"    // no subject; plans the posts of a user's day, and the job for the next day
	JobPost   = "circle.post"   // subject: a turn; a character posts
	JobReview = "circle.review" // subject: a character; reviews its relationships by its message box
)

// Model is a language model that works for a user's circle.
type Model struct {
	llm.Asker
	Provider string
	Name     string
	Key      string // whose requests are sent one after another; "" = not paced
	Sees     bool   // understands images
}

// Options are what a Service works with.
type Options struct {
	Characters *character.Service
	Memory     *memory.Service
	// Model returns what works for a user; nil = no provider is configured, or the day's
	// tokens of the user are used up.
	Model func(ctx context.Context, userID string) (*Model, error)
	// Image returns the name of an attachment and, with data, the picture; nil = posts have
	// no pictures.
	Image func(ctx context.Context, userID, id string, data bool) (name string, img llm.Image, err error)
	// LastChats returns when the user wrote in a private chat last (zero = never), and the
	// newest conversation with each character, by its id. Greet lets the character of a
	// conversation write, once for each key. nil = characters write no private messages.
	LastChats func(ctx context.Context, userID string) (wrote time.Time, newest map[string]string, err error)
	Greet     func(ctx context.Context, userID, conversationID, key string) error
	Pause     time.Duration // between two requests with one key; 0 = 2 s
	Log       *slog.Logger
}

// Service has the operations on the circle. It is safe for concurrent use.
type Service struct {
	store Store
	opts  Options
	paces paces
}

// New returns a Service.
func New(store Store, o Options) *Service {
	if o.Pause == 0 {
		o.Pause = 2 * time.Second
	}
	o.Log = cmp.Or(o.Log, slog.Default())
	return &Service{store: store, opts: o}
}

// Kinds are the jobs of the circle.
func (svc *Service) Kinds() []jobs.Kind { return slices.Concat(svc.reactKinds(), svc.tellKinds()) }

// takesPart returns fault.NotFound for a character that is not the user's, and
// fault.Conflict for one that does not take part in the circle.
func takesPart(tx Tx, characterID string) (*character.Character, error) {
	ch, err := tx.Characters.CharacterCard(characterID)
	if err != nil {
		return nil, err
	}
	set, err := ch.ParseSettings()
	if err != nil {
		return nil, err
	}
	if !set.Circle.Enabled || ch.Archived {
		return nil, fault.New(fault.Conflict, "%s does not take part in the circle", ch.Name)
	}
	return ch, nil
}

// nameOf is what a member is called.
func nameOf(tx Tx, id string) (string, error) {
	if id != Me {
		ch, err := tx.Characters.CharacterCard(id)
		if err != nil {
			return "", err
		}
		return ch.Name, nil
	}
	return character.UserName(tx.Characters, &character.Character{}, "")
}

func emit(tx Tx, by, kind string, data map[string]any) error {
	return tx.Emit(op.Event(tx.UserID(), kind, by, data))
}
