package store

import (
	"context"

	"github.com/uptrace/bun"

	"nodest/chat"
	"nodest/fault"
	"nodest/nodest"
)

type generationRow struct {
	bun.BaseModel  `bun:"table:generations,alias:g"`
	ID             string `bun:"id,pk"`
	UserID         string
	ConversationID string
	MessageID      text
	SwipeID        text
	Kind           text
	Status         text
	IsOpen         bool
	Finish         text
	Options        document
	Instruction    text
	Device         text
	Model          text
	PromptID       text
	Text           text
	Reasoning      text
	Blocks         document
	Base           text
	Usage          document
	Error          document
	CreatedAt      int64
	StartedAt      *int64
	FirstTokenAt   *int64
	EndedAt        *int64
	LeaseOwner     text
	LeaseUntil     int64
}

func (r *generationRow) generation() (*chat.Generation, error) {
	g := &chat.Generation{
		ID: r.ID, UserID: r.UserID, ConversationID: r.ConversationID, MessageID: string(r.MessageID),
		SwipeID: string(r.SwipeID), Kind: string(r.Kind), Status: string(r.Status), Finish: string(r.Finish),
		Instruction: string(r.Instruction), By: string(r.Device), Model: string(r.Model), PromptID: string(r.PromptID),
		Text: string(r.Text), Reasoning: string(r.Reasoning), Base: string(r.Base),
		CreatedAt: moment(r.CreatedAt), StartedAt: momentOrNil(r.StartedAt),
		FirstTokenAt: momentOrNil(r.FirstTokenAt), EndedAt: momentOrNil(r.EndedAt),
		LeaseOwner: string(r.LeaseOwner), LeaseUntil: moment(r.LeaseUntil),
	}
	for _, part := range []struct {
		from document
		to   any
	}{{r.Options, &g.Options}, {r.Blocks, &g.Blocks}, {r.Usage, &g.Usage}, {r.Error, &g.Error}} {
		if err := decode(part.from, part.to); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (t *tx) generationRow(g *chat.Generation) (*generationRow, error) {
	r := &generationRow{
		ID: g.ID, UserID: t.userID, ConversationID: g.ConversationID, MessageID: text(g.MessageID),
		SwipeID: text(g.SwipeID), Kind: text(g.Kind), Status: text(g.Status), IsOpen: !g.Ended(),
		Finish: text(g.Finish), Instruction: text(g.Instruction), Device: text(g.By), Model: text(g.Model),
		PromptID: text(g.PromptID), Text: text(g.Text), Reasoning: text(g.Reasoning), Base: text(g.Base),
		CreatedAt: millis(g.CreatedAt), StartedAt: millisOrNull(g.StartedAt),
		FirstTokenAt: millisOrNull(g.FirstTokenAt), EndedAt: millisOrNull(g.EndedAt),
		LeaseOwner: text(g.LeaseOwner), LeaseUntil: millis(g.LeaseUntil),
	}
	for _, part := range []struct {
		from any
		to   *document
	}{{g.Options, &r.Options}, {g.Blocks, &r.Blocks}, {g.Usage, &r.Usage}, {g.Error, &r.Error}} {
		var err error
		if *part.to, err = encode(part.from); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// InsertGeneration stores a new generation in a conversation of the user.
func (t *tx) InsertGeneration(g *chat.Generation) error {
	if err := t.writable(); err != nil {
		return err
	}
	if _, err := t.findConversation(g.ConversationID, ""); err != nil {
		return err
	}
	t.fillTimes(&g.CreatedAt)
	g.UserID = t.userID
	row, err := t.generationRow(g)
	if err != nil {
		return err
	}
	return t.insert(row)
}

// Generation returns one, also of a conversation that was deleted.
func (t *tx) Generation(id string) (*chat.Generation, error) {
	items, err := t.generations("WHERE user_id = ? AND id = ?", text(t.userID), text(id))
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, fault.New(fault.NotFound, "no such generation")
	}
	return items[0], nil
}

func (s *session) generations(rest string, args ...any) ([]*chat.Generation, error) {
	var rows []*generationRow
	if _, err := s.scan(s.raw("SELECT * FROM generations "+rest, args...), &rows); err != nil {
		return nil, err
	}
	items := make([]*chat.Generation, len(rows))
	for i, row := range rows {
		var err error
		if items[i], err = row.generation(); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// UpdateGeneration stores everything of g but where it belongs.
func (t *tx) UpdateGeneration(g *chat.Generation) error {
	if err := t.writable(); err != nil {
		return err
	}
	row, err := t.generationRow(g)
	if err != nil {
		return err
	}
	n, err := t.update(row, []string{"id", "user_id", "conversation_id", "created_at"},
		"WHERE user_id = ? AND id = ?", text(t.userID), text(g.ID))
	if err == nil && n == 0 {
		return fault.New(fault.NotFound, "no such generation")
	}
	return err
}

// Running returns those that have not ended, oldest first.
func (t *tx) Running(conversationID string) ([]*chat.Generation, error) {
	if conversationID == "" {
		return t.generations("WHERE user_id = ? AND is_open ORDER BY created_at, id", text(t.userID))
	}
	return t.generations("WHERE user_id = ? AND is_open AND conversation_id = ? ORDER BY created_at, id",
		text(t.userID), text(conversationID))
}

// Checkpoint stores the text so far of a generation that g.LeaseOwner holds.
func (db *DB) Checkpoint(ctx context.Context, g *chat.Generation) error {
	blocks, err := encode(g.Blocks)
	if err != nil {
		return err
	}
	return db.backend.write(ctx, func(s *session) error {
		n, err := s.exec(s.raw("UPDATE generations SET text = ?, reasoning = ?, blocks = ?, lease_until = ?"+
			" WHERE user_id = ? AND id = ? AND is_open AND lease_owner = ?",
			text(g.Text), text(g.Reasoning), blocks, millis(g.LeaseUntil),
			text(g.UserID), text(g.ID), text(g.LeaseOwner)))
		if err == nil && n == 0 {
			return fault.New(fault.Conflict, "the generation has ended or belongs to another process")
		}
		return err
	})
}

// Abandoned returns generations without a living writer, over all users.
func (db *DB) Abandoned(ctx context.Context, owner string, limit int) (items []*chat.Generation, err error) {
	err = db.backend.read(ctx, func(s *session) error {
		if owner == "" {
			items, err = s.generations("WHERE is_open AND lease_until < ? ORDER BY created_at, id LIMIT ?", s.now, limit)
			return err
		}
		items, err = s.generations("WHERE is_open AND (lease_until < ? OR lease_owner <> ?) ORDER BY created_at, id LIMIT ?",
			s.now, text(owner), limit)
		return err
	})
	return items, err
}

type promptRow struct {
	bun.BaseModel  `bun:"table:prompts"`
	ID             string `bun:"id,pk"`
	UserID         string
	ConversationID string
	GenerationID   text
	Body           []byte
	CreatedAt      int64
}

func (r *promptRow) prompt() *nodest.StoredPrompt {
	return &nodest.StoredPrompt{
		ID: r.ID, ConversationID: r.ConversationID, GenerationID: string(r.GenerationID),
		Body: r.Body, CreatedAt: moment(r.CreatedAt),
	}
}

// PutPrompt stores what was sent in a conversation of the user.
func (t *tx) PutPrompt(p *nodest.StoredPrompt) error {
	if err := t.writable(); err != nil {
		return err
	}
	if _, err := t.findConversation(p.ConversationID, ""); err != nil {
		return err
	}
	t.fillTimes(&p.CreatedAt)
	return t.insert(&promptRow{
		ID: p.ID, UserID: t.userID, ConversationID: p.ConversationID, GenerationID: text(p.GenerationID),
		Body: append([]byte{}, p.Body...), CreatedAt: millis(p.CreatedAt),
	})
}

// Prompt returns one.
func (t *tx) Prompt(id string) (*nodest.StoredPrompt, error) {
	var row promptRow
	found, err := t.scan(t.raw("SELECT * FROM prompts WHERE user_id = ? AND id = ?", text(t.userID), text(id)), &row)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fault.New(fault.NotFound, "no such prompt")
	}
	return row.prompt(), nil
}

// LastPrompt returns the newest prompt of a conversation, nil without one.
func (t *tx) LastPrompt(conversationID string) (*nodest.StoredPrompt, error) {
	if _, err := t.findConversation(conversationID, ""); err != nil {
		return nil, err
	}
	var row promptRow
	found, err := t.scan(t.raw("SELECT * FROM prompts WHERE user_id = ? AND conversation_id = ?"+
		" ORDER BY created_at DESC, id DESC LIMIT 1", text(t.userID), text(conversationID)), &row)
	if err != nil || !found {
		return nil, err
	}
	return row.prompt(), nil
}
