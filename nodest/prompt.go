package nodest

import (
	"context"
	"slices"
	"time"

	"nodest/chat"
	"nodest/framework"
	"nodest/framework/worldinfo"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/nodest/record"
)

// PreviewPrompt builds the request that a message would cause now, or without a
// text the one that continuing the shown branch would, and asks no model.
// Without a provider it assumes a context of default size.
func (e *Engine) PreviewPrompt(ctx context.Context, userID string, in PreviewInput) (*framework.Prompt, error) {
	p, err := e.ExplainPrompt(ctx, userID, in)
	if err != nil {
		return nil, err
	}
	return p.Prompt, nil
}

// Explained is a preview of a prompt with what became of the entries of world books.
type Explained struct {
	*framework.Prompt
	World *worldinfo.Output // nil = the prompt is not of the SillyTavern dialect
}

// ExplainPrompt is PreviewPrompt that says more.
func (e *Engine) ExplainPrompt(ctx context.Context, userID string, in PreviewInput) (*Explained, error) {
	return e.preview(ctx, userID, query{conversationID: in.ConversationID}, in)
}

// PreviewSave returns what ExplainPrompt would after restoring a save point. It
// restores nothing. in.ConversationID is not read.
//
// Errors: NotFound, and those of ExplainPrompt.
func (e *Engine) PreviewSave(ctx context.Context, userID, saveID string, in PreviewInput) (*Explained, error) {
	if saveID == "" {
		return nil, fault.New(fault.NotFound, "no such save point")
	}
	return e.preview(ctx, userID, query{saveID: saveID}, in)
}

func (e *Engine) preview(ctx context.Context, userID string, q query, in PreviewInput) (*Explained, error) {
	if err := op.CheckLength("text", in.Text, chat.MaxText); err != nil {
		return nil, err
	}
	if err := in.Options.Validate("options"); err != nil {
		return nil, err
	}
	q.options, q.typed = in.Options, in.Text
	s, err := e.loadSetup(ctx, userID, q)
	if err != nil {
		return nil, err
	}
	s.model, err = e.models.Resolve(ctx, userID, s.Options.Provider, s.Options.Model, "")
	if err != nil && !fault.Is(err, fault.NotConfigured) {
		return nil, err
	}
	h := &storedChat{engine: e, userID: userID, conv: s.Conversation, save: s.save, plays: s.Docs.Tavern != nil}
	if in.Text != "" {
		h.behind = 1
	}
	turn := e.newTurn(s, h, &chat.Generation{UserID: userID, Moments: chat.Moments{CreatedAt: s.at}})
	if err := turn.readPreview(ctx, in.Text); err != nil {
		return nil, err
	}
	e.askSources(ctx, turn, func(string) func() { return func() {} })
	p, err := turn.build(ctx)
	if err != nil {
		return nil, err
	}
	turn.built(p, time.Since(turn.since))
	x := &Explained{Prompt: p}
	if turn.after != nil {
		x.World = turn.after.World
	}
	return x, nil
}

// readPreview reads the chat into the input of the build.
func (t *turn) readPreview(ctx context.Context, text string) error {
	if err := t.readPast(ctx); err != nil {
		return err
	}
	path := t.past.messages
	t.input.Options.Seed = shownSeed(t.setup.Conversation.ID, path)
	t.noteQuestion(t.gen.CreatedAt, text)
	t.input.History = t.lines()
	switch {
	case text != "":
		if t.setup.Docs.Tavern == nil {
			text = t.input.Scripts.User(text)
		} else {
			text = t.setup.typed
		}
		t.input.User = framework.Message{Role: chat.RoleUser, Name: t.setup.Persona.Name, Text: text}
	case len(path) > 0 && path[len(path)-1].Role == chat.RoleUser:
		t.answerLast()
	default:
		t.instruct(llm.Continue, "")
	}
	return nil
}

// shownSeed seeds the random macros of a preview. It depends on the last message shown,
// so that repeated previews agree, also after a restore.
func shownSeed(conversationID string, path []*chat.Message) uint64 {
	shown := conversationID
	if len(path) > 0 {
		last := path[len(path)-1]
		shown += "@" + last.ID
		if s := last.Chosen(); s != nil {
			shown += "@" + s.RevisionID
		}
	}
	return op.Seed(shown)
}

// Prompt returns the request that was sent for a generation.
func (e *Engine) Prompt(ctx context.Context, userID, promptID string) (*SentPrompt, error) {
	return op.Read(ctx, e.store, userID, func(tx Tx) (*SentPrompt, error) { return readPrompt(tx, promptID) })
}

// DiffPrompts compares two requests that were sent; with is the later one.
func (e *Engine) DiffPrompts(ctx context.Context, userID, promptID, with string) (*framework.Difference, error) {
	return op.Read(ctx, e.store, userID, func(tx Tx) (*framework.Difference, error) {
		a, err := readPrompt(tx, promptID)
		if err != nil {
			return nil, err
		}
		b, err := readPrompt(tx, with)
		if err != nil {
			return nil, err
		}
		return framework.Diff(a.Prompt, b.Prompt), nil
	})
}

// readPrompt reads a stored prompt with the texts that it refers to.
func readPrompt(tx Tx, id string) (*SentPrompt, error) {
	stored, err := tx.Prompt(id)
	if err != nil {
		return nil, err
	}
	p, err := record.Unpack(tx.Chats, stored.ConversationID, stored.Body)
	if err != nil {
		return nil, err
	}
	return &SentPrompt{ID: stored.ID, ConversationID: stored.ConversationID, GenerationID: stored.GenerationID, Prompt: p}, nil
}

// StoredPrompt is what was sent for a generation.
type StoredPrompt struct {
	ID             string
	ConversationID string
	GenerationID   string
	Body           []byte   // JSON, see package record
	FileIDs        []string // documents that it may have texts of; a character stands for those of its memory
	CreatedAt      time.Time
}

func (t *turn) pack() ([]byte, error) { return record.Pack(t.prompt, t.chat, t.found.recalled) }

// fileIDs names the documents that the prompt may have texts of, each once.
func (t *turn) fileIDs() (ids []string) {
	for _, part := range t.input.Knowledge {
		ids = append(ids, part.ID)
	}
	for source := range t.found.numbers.All() {
		ids = append(ids, source.FileID)
	}
	if len(t.input.Notes.Documents) > 0 {
		ids = append(ids, t.setup.Docs.CharacterID)
	}
	slices.Sort(ids)
	return slices.DeleteFunc(slices.Compact(ids), func(id string) bool { return id == "" })
}
