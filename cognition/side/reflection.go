package side

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"nodest/character"
	"nodest/chat"
	"nodest/cognition"
	"nodest/framework"
	"nodest/internal/lexicon"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/lang"
)

// Limits of a reflection.
const (
	mostProposed = 12
	readMessages = 400
	readSize     = 12_000 // code points
	mostKnown    = 20     // proposals that it is told of
	knownSize    = 200    // code points of each
)

// reflection is what a run of the branch that proposes reads.
type reflection struct {
	from, to int64 // range of the new messages: those behind from, up to to
	newest   string
	path     []*chat.Message
	known    []string // contents that were proposed before, the oldest first
}

// reflect asks the model for knowledge to keep, if there are messages that no reflection has read, and proposes it.
func (svc *Service) reflect(ctx context.Context, userID, conversationID string) error {
	model, err := svc.model(ctx, userID)
	if err != nil {
		return err
	}
	r, err := op.Read(ctx, svc.store, userID, func(tx Tx) (*reflection, error) { return readReflection(tx, conversationID) })
	if err != nil {
		return err
	}
	var found []json.RawMessage
	switch {
	case model == nil:
		svc.opts.Log.InfoContext(ctx, "there is no model to propose knowledge", "conversation", conversationID)
		r.to = r.from
	case r.to > r.from:
		if found, err = svc.ask(ctx, conversationID, model, r); err != nil {
			return err
		}
	}
	_, err = op.Write(ctx, svc.store, userID, func(tx Tx) (bool, error) { return propose(tx, conversationID, r, found, true) })
	if err == nil || len(found) == 0 || ctx.Err() != nil {
		return err
	}
	approved, again := op.Write(ctx, svc.store, userID, func(tx Tx) (bool, error) { return propose(tx, conversationID, r, found, false) })
	if again != nil {
		return again
	}
	now := "proposals wait for a review: they could not be stored at first"
	if approved {
		now = "proposals are approved and wait for a commit: they could not be kept"
	}
	svc.opts.Log.WarnContext(ctx, now, "conversation", conversationID, "err", err)
	return nil
}

// ask asks for extractions, and once more, for the JSON answer alone, if nothing can be read. After two such answers the
// messages stay unread, for the next trigger.
func (svc *Service) ask(ctx context.Context, conversationID string, model llm.Asker, r *reflection) ([]json.RawMessage, error) {
	var bad error
	offer := savePending
	for range 2 {
		reply, err := model.Ask(ctx, llm.Prompt{Messages: r.messages(bad), JSON: true, Offer: offer, MaxTokens: 3000})
		if err != nil {
			return nil, err
		}
		found, err := readExtractions(reply)
		if err == nil {
			return found, nil
		}
		bad, offer = err, nil
		svc.opts.Log.WarnContext(ctx, "a reflection could not be read", "conversation", conversationID, "err", err)
		svc.opts.Log.DebugContext(ctx, "a reflection could not be read", "conversation", conversationID, "reply", op.Truncate(reply, 200))
	}
	r.to = r.from
	return nil, nil
}

// settings are those of the character of a conversation.
func settings(tx Tx, conv *chat.Conversation) (character.Settings, error) {
	ch, err := tx.Chats.Characters.CharacterCard(conv.CharacterID)
	if err != nil {
		return character.Settings{}, err
	}
	return ch.ParseSettings()
}

// unread reports whether knowledge is to be proposed, and there are messages that no reflection has read.
func unread(tx Tx, conv *chat.Conversation, s cognition.State) (bool, error) {
	set, err := settings(tx, conv)
	if err != nil || !set.Cognition.Extract {
		return false, err
	}
	path, err := newest(tx, conv, 2)
	return len(path) > 0 && path[len(path)-1].Seq > s.Reflected, err
}

func readReflection(tx Tx, conversationID string) (*reflection, error) {
	conv, err := tx.Chats.Conversation(conversationID)
	if err != nil {
		return nil, err
	}
	s, err := tx.Log.SideState(conversationID)
	if err != nil {
		return nil, err
	}
	r := &reflection{from: s.Reflected, to: s.Reflected}
	if r.path, err = newest(tx, conv, readMessages); err != nil {
		return nil, err
	}
	asks := false
	for _, m := range r.path {
		if m.Seq > r.from {
			r.to, r.newest, asks = max(r.to, m.Seq), m.ID, asks || m.Role == chat.RoleUser
		}
	}
	if !asks { // a greeting teaches nothing
		r.to = r.from
	}
	if r.path, err = withoutForgotten(tx, conv, r.path); err != nil {
		return nil, err
	}
	r.path = within(r.path, r.from)
	r.known, err = proposedBefore(tx, conversationID)
	return r, err
}

// withoutForgotten leaves out messages that the user had forgotten, and those whose statements were.
func withoutForgotten(tx Tx, conv *chat.Conversation, path []*chat.Message) (left []*chat.Message, _ error) {
	graves, err := tx.Memory.Tombstones(conv.CharacterID)
	if err != nil {
		return nil, err
	}
	gone := map[string]bool{}
	for _, g := range graves {
		for _, e := range g.Evidence {
			gone[e.RevisionID] = true
		}
	}
	texts := make([]memory.Evidence, len(path))
	for i, m := range path {
		texts[i] = memory.Evidence{ConversationID: conv.ID, MessageID: m.ID, RevisionID: revisionOf(m), Seq: m.Seq}
	}
	shown, err := tx.Memory.Shown(nil, texts)
	if err != nil {
		return nil, err
	}
	for i, m := range path {
		if shown[i] && !gone[texts[i].RevisionID] {
			left = append(left, m)
		}
	}
	return left, nil
}

func revisionOf(m *chat.Message) string {
	if m.Chosen() == nil {
		return ""
	}
	return m.Chosen().RevisionID
}

// within keeps the end of a branch: the last messages, and those before that are new, as far as there is room.
func within(path []*chat.Message, from int64) []*chat.Message {
	size := 0
	for i := len(path) - 1; i >= 0; i-- {
		size += min(utf8.RuneCountInString(path[i].Text()), seenText)
		if size > readSize || len(path)-i > seenMessages && path[i].Seq <= from {
			return path[i+1:]
		}
	}
	return path
}

// proposedBefore are the contents of all proposals of a conversation and of their edits, the oldest first.
func proposedBefore(tx Tx, conversationID string) (all []string, err error) {
	for after := int64(0); ; {
		events, err := tx.Log.Events(conversationID, after, readAtOnce, cognition.TypePending, cognition.TypeReviewed)
		for _, e := range events {
			var o struct {
				Payload       json.RawMessage `json:"payload"`
				EditedPayload json.RawMessage `json:"edited_payload"`
			}
			_ = json.Unmarshal(e.Body, &o) // a body that cannot be read says nothing
			if text := cmp.Or(contentOf(o.EditedPayload), contentOf(o.Payload)); text != "" {
				all = append(all, text)
			}
			after = e.Ordinal
		}
		if err != nil || len(events) < readAtOnce {
			return all, err
		}
	}
}

// propose adds what was found and is new to the log, and ends the branch, unless another run has read these messages
// meanwhile. With the setting, the proposals of this run, and no others, are approved and, if keep is set, become memories
// at once; approved reports whether some were.
func propose(tx Tx, conversationID string, r *reflection, found []json.RawMessage, keep bool) (approved bool, _ error) {
	s, err := tx.Log.LockSideState(conversationID)
	if err != nil {
		return false, err
	}
	s.Leave(cognition.BranchReflection)
	if s.Reflected != r.from || r.to == r.from {
		return false, tx.Log.PutSideState(conversationID, s)
	}
	s.Reflected = r.to
	if err := tx.Log.PutSideState(conversationID, s); err != nil || len(found) == 0 {
		return false, err
	}
	conv, err := tx.Chats.Conversation(conversationID)
	if err != nil {
		return false, err
	}
	set, err := settings(tx, conv)
	if err != nil || !set.Cognition.Extract {
		return false, err
	}
	if err := tx.Memory.LockMemory(conv.CharacterID); err != nil { // nothing is forgotten until the proposals are there
		return false, err
	}
	if found, err = unknown(tx, conv, found); err != nil {
		return false, err
	}
	all, err := r.events(tx, conv, found)
	if err != nil || !set.Cognition.AutoCommit {
		return false, err
	}
	return len(all) > 0, approve(tx, conversationID, all, keep)
}

// approve approves proposals and, if keep is set, makes memories of them.
func approve(tx Tx, conversationID string, all []*cognition.ExtractionPending, keep bool) error {
	for _, p := range all {
		yes := cognition.New(conversationID, &cognition.ExtractionReviewed{ExtractionID: p.ExtractionID, Decision: cognition.Approve})
		if err := tx.Log.AppendEvents(conversationID, yes); err != nil {
			return err
		}
		if !keep {
			continue
		}
		if _, err := commit(tx, "", conversationID, p.ExtractionID); err != nil {
			return err
		}
	}
	return nil
}

// unknown are the payloads whose contents were neither proposed before nor are those of memories or of what the user had
// forgotten, at most mostProposed.
func unknown(tx Tx, conv *chat.Conversation, found []json.RawMessage) (all []json.RawMessage, _ error) {
	before, err := proposedBefore(tx, conv.ID)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, text := range before {
		has[lang.ContentHash(text)] = true
	}
	var hashes []string
	for _, payload := range found {
		hashes = append(hashes, lang.ContentHash(contentOf(payload)))
	}
	memories, err := tx.Memory.Known(conv.CharacterID, nil, hashes)
	if err != nil {
		return nil, err
	}
	for _, m := range memories {
		has[m.Hash] = true
	}
	for i, payload := range found {
		if len(all) < mostProposed && !has[hashes[i]] {
			has[hashes[i]] = true
			all = append(all, payload)
		}
	}
	return all, nil
}

// enoughSaid is the part of the words of a proposal that a message has which it may be made of.
const enoughSaid = 0.34

// sources are the messages that a proposal may have words of: all of the new ones if none stands out.
func (r *reflection) sources(payload json.RawMessage) (all []*chat.Message) {
	pieces := lang.PiecesOf(contentOf(payload))
	for _, m := range r.path {
		if share, _ := lang.SaidIn(m.Text()).Share(pieces); share >= enoughSaid {
			all = append(all, m)
		}
	}
	if len(all) > 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(r.path), func(m *chat.Message) bool { return m.Seq <= r.from })
}

// events proposes payloads, without those whose sources were forgotten while the model wrote.
func (r *reflection) events(tx Tx, conv *chat.Conversation, payloads []json.RawMessage) (all []*cognition.ExtractionPending, _ error) {
	goals, _, err := tx.Log.Goals(conv.ID, cognition.GoalActive, "", 1)
	if err != nil {
		return nil, err
	}
	branch := cognition.NewReflectionID()
	for _, payload := range payloads {
		sources := r.sources(payload)
		left, err := withoutForgotten(tx, conv, sources)
		if err != nil {
			return nil, err
		}
		if len(left) < len(sources) {
			continue
		}
		p := &cognition.ExtractionPending{ExtractionID: cognition.NewExtractionID(), Sequence: r.to, BranchID: branch, Payload: payload}
		for _, g := range goals {
			p.GoalID = &g.ID
		}
		e := cognition.New(conv.ID, p)
		e.MessageID = r.newest
		for _, m := range sources {
			e.Revisions = append(e.Revisions, revisionOf(m))
		}
		err = cmp.Or(tx.Log.AppendEvents(conv.ID, e), tell(tx, "", conv.ID, "extraction.pending", map[string]any{"extractionId": p.ExtractionID}))
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

var (
	reflectChinese = lexicon.Prompts(promptFiles, "prompts/reflect-zh.txt")
	reflectEnglish = lexicon.Prompts(promptFiles, "prompts/reflect-en.txt")
)

// messages are the conversation and behind it the instruction, which says why an answer before could not be read.
func (r *reflection) messages(bad error) []llm.Message {
	said := ""
	for _, m := range r.path {
		said += m.Text()
	}
	w := reflectEnglish()
	if lang.MostlyCJK(said) {
		w = reflectChinese()
	}
	parts := []string{w["role"]}
	if known := r.known[max(0, len(r.known)-mostKnown):]; len(known) > 0 {
		lines := w["known"]
		for _, text := range known {
			lines += "\n- " + llm.JSONLine(framework.Defuse(op.Truncate(text, knownSize)))
		}
		parts = append(parts, lines)
	}
	parts = append(parts, w["request"], w["output"])
	if bad != nil {
		parts = append(parts, fmt.Sprintf(w["retry"], bad))
	}
	return append(history(r.path), llm.Message{Role: llm.User, Text: strings.Join(parts, "\n\n")})
}
