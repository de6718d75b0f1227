package bench

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/chat/archive"
	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/memory"
	"nodest/memory/extract"
	"nodest/memory/lang"
	"nodest/memory/recall"
	"nodest/nodest"
	"nodest/store"
)

// library is the product on a database of its own, in a temporary folder, with one
// user and a character for every conversation: what a chat has, without a server.
type library struct {
	dir      string
	user     string
	db       *store.DB
	engine   *nodest.Engine
	archives *archive.Service
	memory   *memory.Service
	model    string // its vectors are stored under this id
	jobs     *jobs.Runner
	people   map[string]lang.Names // by character
}

// libraryOptions tell what a library does.
type libraryOptions struct {
	chat     bool             // turns recall, and what was said is read for facts
	now      func() time.Time // nil = the present
	embedder llm.Embedder     // the model that a server has configured; nil = none
}

// openLibrary makes one. It is closed with close, which removes the folder.
func openLibrary(ctx context.Context, o libraryOptions) (l *library, err error) {
	l = &library{people: map[string]lang.Names{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if l.dir, err = os.MkdirTemp("", "nodest-retrieval-"); err != nil {
		return l, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	l.db, err = store.Open(ctx, store.Options{Dir: l.dir, Now: o.now, Log: log, Jobs: func(cancelled []string) { l.jobs.Changed(cancelled) }})
	if err != nil {
		return l, err
	}
	l.user = op.NewID()
	if err := l.db.InsertUser(ctx, &account.User{ID: l.user, Username: "reader", Role: account.RoleMember}); err != nil {
		return l, err
	}
	options := nodest.Options{Alone: true, Log: log}
	scenes := l.scene
	if o.chat {
		scenes = func(ctx context.Context, userID, characterID, conversationID string) (memory.Scene, error) {
			return l.engine.Chats.MemoryScene(ctx, userID, characterID, conversationID)
		}
	}
	embedder := cmp.Or[llm.Embedder](o.embedder, offline.Embedder{})
	l.model = embedder.ModelID()
	l.memory = memory.New(l.db.Memory(), memory.Options{
		Scenes: scenes, Log: log,
		Embedder: func(context.Context, string) (llm.Embedder, error) { return embedder, nil },
	})
	if o.chat {
		options.Sources = []nodest.Source{nodest.Memories(l.memory, time.Minute)}
	}
	characters := character.New(l.db.Characters(), character.Options{})
	l.engine = nodest.New(nodest.Deps{
		Store: l.db, Characters: characters, Chats: chat.New(l.db.Chats(), characters, chat.Options{Memory: o.chat, Log: log}),
		Models: noModel{},
	}, options)
	l.archives = archive.New(l.db.Chats())
	l.jobs = jobs.New(l.db, jobs.Options{Alone: true, Log: log})
	l.jobs.Handle(l.memory.Kinds()...)
	if o.chat { // else what is found again are the words as they were said
		l.jobs.Handle(extract.New(l.db.Memory(), extract.Options{Scenes: scenes}).Kinds()...)
	}
	l.jobs.Start()
	return l, nil
}

func (l *library) close() error {
	var failed []error
	if l.jobs != nil {
		failed = append(failed, l.jobs.Close(context.Background()))
	}
	if l.engine != nil {
		failed = append(failed, l.engine.Close(context.Background()))
	}
	if l.db != nil {
		failed = append(failed, l.db.Close())
	}
	if l.dir != "" {
		failed = append(failed, os.RemoveAll(l.dir))
	}
	return errors.Join(failed...)
}

func (l *library) scene(_ context.Context, _, characterID, _ string) (memory.Scene, error) {
	return memory.Scene{Names: l.people[characterID], Recall: true, Limit: recall.DefaultLimit, Share: true}, nil
}

// noModel takes the place of a server's models.
type noModel struct{}

func (noModel) Resolve(context.Context, string, string, string, string) (nodest.Model, error) {
	return nodest.Model{}, fault.New(fault.NotConfigured, "no model")
}

// importMessages is how many messages one import takes.
const importMessages = 10_000

func (l *library) call() *op.Call { return &op.Call{UserID: l.user} }

// take imports a conversation with a character of its own, and notes which item each of
// its texts belongs to.
func (l *library) take(ctx context.Context, t *talk) (err error) {
	if t.character, err = l.newCharacter(ctx, t.people, nil); err != nil {
		return err
	}
	t.itemOf = map[string]int{}
	return l.importTalk(ctx, t, func(conv *chat.Conversation, of []int) error {
		return l.db.View(ctx, l.user, func(tx nodest.Tx) error {
			path, _, err := tx.Chats.Path(conv.ID, conv.HeadID, "", len(of)+1)
			if err != nil {
				return err
			}
			if len(path) != len(of) {
				return fmt.Errorf("imported %d messages, want %d", len(path), len(of))
			}
			for i, m := range path {
				t.itemOf[m.Chosen().RevisionID] = of[i]
			}
			return nil
		})
	})
}

// importTalk imports a conversation as chat logs, one or several where it is longer
// than an import may be, and calls done after each with the items of its messages.
func (l *library) importTalk(ctx context.Context, t *talk, done func(conv *chat.Conversation, of []int) error) error {
	for _, log := range t.logs(importMessages) {
		imported, err := l.archives.ImportChat(ctx, l.call(), t.character, log.text, t.name+".jsonl")
		if err == nil {
			err = done(imported.Conversation, log.of)
		}
		if err != nil {
			return fmt.Errorf("conversation %s: %w", t.name, err)
		}
	}
	return nil
}

// newCharacter creates one with the greetings of its chats, and returns its id.
func (l *library) newCharacter(ctx context.Context, people lang.Names, greetings []string) (string, error) {
	fields := map[string]any{"name": people.Character}
	if len(greetings) > 0 {
		fields["first_mes"], fields["alternate_greetings"] = greetings[0], greetings[1:]
	}
	card, err := json.Marshal(fields)
	if err != nil {
		return "", err
	}
	ch, err := l.engine.Characters.Create(ctx, l.call(), character.Input{RoleCard: card})
	if err != nil {
		return "", err
	}
	l.people[ch.ID] = people
	return ch.ID, nil
}

// chatLog is a log as SillyTavern writes it. of tells the item of each message.
type chatLog struct {
	text []byte
	of   []int
}

func (l *chatLog) line(v map[string]any) { l.text = append(append(l.text, llm.JSONLine(v)...), '\n') }

// logs returns a conversation as logs of at most so many messages.
func (t *talk) logs(messages int) (logs []*chatLog) {
	var log *chatLog
	for i := range t.items {
		for _, s := range t.items[i].said {
			if log == nil || len(log.of) == messages {
				log = &chatLog{}
				log.line(map[string]any{"user_name": t.people.User, "character_name": t.people.Character, "chat_metadata": struct{}{}})
				logs = append(logs, log)
			}
			log.line(map[string]any{"name": s.name, "is_user": s.role == lang.RoleUser, "mes": s.text, "send_date": s.at.Format(time.RFC3339)})
			log.of = append(log.of, i)
		}
	}
	return logs
}

// embed has the product's job make all vectors, and waits for it.
func (l *library) embed(ctx context.Context) error {
	if err := l.memory.Sweep(ctx); err != nil {
		return err
	}
	if err := l.finish(ctx, memory.JobEmbed); err != nil {
		return err
	}
	left, err := l.db.Memory().Unembedded(ctx, l.model, memory.Scope{}, 1)
	if err == nil && len(left) > 0 {
		err = errors.New("not all texts were embedded; see the log")
	}
	return err
}

// finish waits until no job of a kind is left.
func (l *library) finish(ctx context.Context, kind string) error {
	for {
		var open []*jobs.Job
		err := l.db.View(ctx, l.user, func(tx nodest.Tx) (err error) {
			open, _, err = tx.Jobs.Jobs(jobs.Filter{Kind: kind, Open: true}, "", 1)
			return err
		})
		if err != nil || len(open) == 0 {
			return err
		}
		if err := llm.Sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}
