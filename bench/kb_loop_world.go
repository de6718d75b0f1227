package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"nodest/account"
	"nodest/character"
	"nodest/chat"
	"nodest/jobs"
	"nodest/knowledge"
	"nodest/knowledge/parse"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/nodest"
	"nodest/op"
	"nodest/store"
	"nodest/stream"
)

// kbWorld is a user with a character that has the documents of a library, on a database of its
// own.
type kbWorld struct {
	library   *kbLibrary
	dir       string
	db        *store.DB
	knowledge *knowledge.Service
	chats     *chat.Service
	engine    *nodest.Engine
	model     *kbReader
	user      string
	character string
	files     map[string]string // ids by name
}

// openKBWorld ingests the documents as the product does, but for parsing and embedding, which
// were done when the library was read.
func openKBWorld(ctx context.Context, l *kbLibrary, o KBOptions) (w *kbWorld, err error) {
	w = &kbWorld{library: l, model: &kbReader{}, user: op.NewID(), files: map[string]string{}}
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
		Embedder: func(context.Context, string) (llm.Embedder, error) { return knownEmbedder{library: l}, nil },
	}})
	w.engine = nodest.New(nodest.Deps{Store: w.db, Characters: characters, Chats: w.chats, Models: w, Publisher: w}, nodest.Options{
		Alone: true, Tools: []nodest.Toolbox{nodest.Knowledge(w.knowledge, time.Minute)}, Log: quiet,
	})
	ch, err := characters.Create(ctx, w.call(), character.Input{RoleCard: json.RawMessage(`{"name":"Maren","description":"A librarian.","first_mes":"Welcome."}`)})
	if err != nil {
		return nil, err
	}
	w.character = ch.ID
	return w, w.fill(ctx)
}

func (w *kbWorld) call() *op.Call { return &op.Call{UserID: w.user} }

func (w *kbWorld) close(ctx context.Context) error {
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
func (w *kbWorld) fill(ctx context.Context) error {
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
	worker := &circleProcess{name: "bench", clock: &virtualClock{now: time.Now()}, db: w.db, kinds: map[string]jobs.Kind{}}
	for _, k := range w.knowledge.Kinds() {
		worker.kinds[k.Name] = k
		worker.wants = append(worker.wants, jobs.Want{Kind: k.Name, Free: 1, PerUser: 1})
	}
	if err := worker.work(ctx); err != nil {
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

// talk says something to the character, in a new chat, and waits for the reply.
func (w *kbWorld) talk(ctx context.Context, text string, tools bool) (*kbTurn, error) {
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
	t := &kbTurn{kbSeen: w.model.take()}
	if s := m.Chosen(); s != nil {
		t.trace = s.Tools
		if s.Citations != nil {
			t.refs = s.Citations.References
		}
	}
	return t, nil
}

// Resolve returns the scripted model: nodest.Models.
func (w *kbWorld) Resolve(context.Context, string, string, string, string) (nodest.Model, error) {
	return nodest.Model{Generator: w.model, Provider: "scripted", Name: "reader"}, nil
}

// Transient drops an event: nobody looks.
func (w *kbWorld) Transient(*stream.Event) {}

// parse gives what parsing gave before: knowledge.Parser.
func (l *kbLibrary) parse(_ context.Context, in parse.Input) (*parse.Document, error) {
	known, ok := l.parsed[in.Name]
	if !ok {
		return nil, fmt.Errorf("%s was not read before", in.Name)
	}
	return known.doc, known.err
}

// knownEmbedder is the offline model, which remembers the vectors of a library.
type knownEmbedder struct {
	offline.Embedder
	library *kbLibrary
}

// Embed computes only what is new.
func (e knownEmbedder) Embed(ctx context.Context, task llm.EmbedTask, texts []string) (out llm.Embeddings, err error) {
	out = llm.Embeddings{Model: e.ModelID(), Dim: e.Dim()}
	for _, text := range texts {
		v := e.library.made[text]
		if v == nil {
			one, err := e.Embedder.Embed(ctx, task, []string{text})
			if err != nil {
				return out, err
			}
			v = one.Vectors[0]
		}
		out.Vectors = append(out.Vectors, v)
	}
	out.Usage.PromptTokens = len(texts)
	return out, nil
}
