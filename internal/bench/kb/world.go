package kb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/account"
	"nodest/internal/jobs"
	"nodest/internal/kbtool"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/knowledge"
	"nodest/knowledge/parse"
	"nodest/llm"
	"nodest/nodest"
	"nodest/store"
)

var quiet = slog.New(slog.DiscardHandler)

// world is a user with a character that has the documents of a library, on a database of its
// own.
type world struct {
	library   *library
	dir       string
	db        *store.DB
	knowledge *knowledge.Service
	chats     *chat.Service
	engine    *nodest.Engine
	model     *watched      // the last turn's model
	name      string        // the model's name
	live      nodest.Models // nil = the scripted model
	user      string
	character string
	files     map[string]string // ids by name
}

// openWorld ingests the documents as the product does, but for parsing and embedding, which
// were done when the library was read.
func openWorld(ctx context.Context, l *library, o Options) (w *world, err error) {
	w = &world{library: l, model: &watched{Generator: reader{}}, name: scriptedModel, live: o.Models, user: op.NewID(), files: map[string]string{}}
	if w.dir, err = os.MkdirTemp("", "nodest-kb-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.close(ctx))
		}
	}()
	if w.db, err = store.Open(ctx, store.Options{Dir: w.dir, Log: quiet}); err != nil {
		return nil, err
	}
	if err := w.db.InsertUser(ctx, &account.User{ID: w.user, Username: "ada", Role: account.RoleOwner}); err != nil {
		return nil, err
	}
	characters := character.New(w.db.Characters(), character.Options{})
	w.chats = chat.New(w.db.Chats(), characters, chat.Options{Log: quiet})
	w.knowledge = knowledge.New(w.db.Knowledge(), knowledge.Options{Pipeline: knowledge.Pipeline{
		Parser: l.parse, InFlight: 1, NoRerank: o.Rerank == rerankNone, Log: quiet,
		Embedder: func(context.Context, string) (llm.Embedder, error) { return knownEmbedder{l.embedder, l}, nil },
	}})
	w.engine = nodest.New(nodest.Deps{Store: w.db, Characters: characters, Chats: w.chats, Models: w, Publisher: w}, nodest.Options{
		Alone: true, Tools: []nodest.Toolbox{kbtool.Toolbox(w.knowledge, time.Minute)}, Log: quiet,
	})
	ch, err := characters.Create(ctx, w.call(), character.Input{RoleCard: json.RawMessage(`{"name":"Maren","description":"A librarian.","first_mes":"Welcome."}`)})
	if err != nil {
		return nil, err
	}
	w.character = ch.ID
	return w, w.fill(ctx)
}

func (w *world) call() *op.Call { return &op.Call{UserID: w.user} }

func (w *world) close(ctx context.Context) error {
	var failed error
	if w.engine != nil {
		failed = w.engine.Close(ctx) // every turn was waited for
	}
	if w.db != nil {
		failed = errors.Join(failed, w.db.Close())
	}
	return errors.Join(failed, os.RemoveAll(w.dir))
}

// fill uploads the documents and does the work that follows.
func (w *world) fill(ctx context.Context) error {
	name := "Documents"
	base, err := w.knowledge.CreateBase(ctx, w.call(), knowledge.NewBase{Name: &name})
	if err != nil {
		return err
	}
	if _, err := w.knowledge.BindBase(ctx, w.call(), w.character, base.ID, nil); err != nil {
		return err
	}
	for _, f := range w.library.files {
		data := w.library.parsed[f.ID].data
		file, err := w.knowledge.Upload(ctx, w.call(), knowledge.NewFile{Name: f.ID, Body: bytes.NewReader(data), Size: int64(len(data)), BaseID: base.ID})
		if err != nil {
			return fmt.Errorf("%s: %w", f.ID, err)
		}
		w.files[f.ID] = file.ID
	}
	if err := w.work(ctx); err != nil {
		return err
	}
	for name, id := range w.files {
		f, err := w.knowledge.File(ctx, w.user, id)
		if err != nil {
			return err
		}
		if f.State != knowledge.Ready {
			return fmt.Errorf("%s is %s and not ready", name, f.State)
		}
	}
	return nil
}

// work does the work that is due, job by job.
func (w *world) work(ctx context.Context) error {
	kinds := map[string]jobs.Kind{}
	var wants []jobs.Want
	for _, k := range w.knowledge.Kinds() {
		kinds[k.Name] = k
		wants = append(wants, jobs.Want{Kind: k.Name, Free: 1, PerUser: 1})
	}
	for {
		claimed, err := w.db.ClaimJobs(ctx, "bench", time.Hour, wants)
		if err != nil || len(claimed) == 0 {
			return err
		}
		for _, j := range claimed {
			if err := kinds[j.Kind].Run(ctx, j); err != nil {
				return fmt.Errorf("%s: %w", j.Kind, err)
			}
			if err := w.db.EndJob(ctx, j, jobs.Outcome{State: jobs.Done}); err != nil && !errors.Is(err, jobs.ErrLost) { // it has ended itself
				return err
			}
		}
	}
}

// talk says something to the character, in a new chat, and waits for the reply.
func (w *world) talk(ctx context.Context, text string, tools bool) (*outcome, error) {
	conv, err := w.chats.CreateConversation(ctx, w.call(), chat.ConversationInput{CharacterID: w.character})
	if err != nil {
		return nil, err
	}
	w.model.take()
	sent, err := w.engine.Send(ctx, w.call(), nodest.SendInput{ConversationID: conv.ID, Text: text, Options: character.TurnOptions{UseToolCalls: &tools}})
	if err != nil {
		return nil, err
	}
	g, err := w.engine.Wait(ctx, w.user, sent.GenerationID)
	if err != nil {
		return nil, err
	}
	if g.Status != chat.GenDone {
		return nil, fmt.Errorf("the reply to %q is %s: %w", text, g.Status, g.Error)
	}
	m, err := w.chats.Message(ctx, w.user, sent.Message.ID)
	if err != nil {
		return nil, err
	}
	t := &outcome{sightings: w.model.take()}
	if s := m.Chosen(); s != nil {
		t.trace = s.Tools
		if s.Citations != nil {
			t.refs = s.Citations.References
		}
	}
	return t, nil
}

// Resolve returns the model that answers, watched: nodest.Models.
func (w *world) Resolve(ctx context.Context, _, provider, model, apiKey string) (nodest.Model, error) {
	if w.live == nil {
		return nodest.Model{Generator: w.model, Provider: "scripted", Name: "reader"}, nil
	}
	m, err := w.live.Resolve(ctx, "", provider, model, apiKey)
	if err == nil {
		w.model.Generator, m.Generator, w.name = m.Generator, w.model, m.Provider+":"+m.Name
	}
	return m, err
}

// Transient drops an event: nobody looks.
func (w *world) Transient(*stream.Event) {}

// parse gives what parsing gave before: knowledge.Parser.
func (l *library) parse(_ context.Context, in parse.Input) (*parse.Document, error) {
	known, ok := l.parsed[in.Name]
	if !ok {
		return nil, fmt.Errorf("%s was not read before", in.Name)
	}
	return known.doc, known.err
}

// knownEmbedder remembers the vectors of a library.
type knownEmbedder struct {
	llm.Embedder
	library *library
}

// Embed asks the model only for what is new.
func (e knownEmbedder) Embed(ctx context.Context, task llm.EmbedTask, texts []string) (out llm.Embeddings, err error) {
	out = llm.Embeddings{Model: e.ModelID(), Dim: e.Dim()}
	for _, text := range texts {
		v := e.library.made[text]
		if v == nil || task != llm.Passage {
			one, err := e.Embedder.Embed(ctx, task, []string{text})
			if err != nil {
				return out, err
			}
			v = one.Vectors[0]
		}
		out.Vectors = append(out.Vectors, v)
	}
	return out, nil
}
