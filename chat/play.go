package chat

import (
	"encoding/json"
	"slices"

	"nodest/character"
	"nodest/framework/worldinfo"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// Play is what a branch hands on from one reply to the next beside its texts: the variables of macros,
// and the timed effects of world-book entries, both in the form of SillyTavern's chat metadata. Each text
// of a reply names the Play after it, so another swipe, branch or save point has its own. A Play
// never changes: who changes something makes another.
type Play struct {
	ID             string `json:"id,omitempty"`
	ConversationID string `json:"-"`

	Variables json.RawMessage `json:"variables,omitempty"`      // object of texts, numbers and other values by name; nil = none
	Timed     json.RawMessage `json:"timedWorldInfo,omitempty"` // object; nil = none
}

// MaxPlay bounds both objects of a Play together, in bytes.
const MaxPlay = character.MaxVariables

// IsEmpty reports whether the Play says nothing.
func (p *Play) IsEmpty() bool { return len(p.Variables) == 0 && len(p.Timed) == 0 }

// Fits reports whether the Play is within its limits, which are those of an import: an archive that has it
// can be read again.
func (p *Play) Fits() bool {
	return len(p.Variables)+len(p.Timed) <= MaxPlay &&
		character.CheckVariables("variables", p.Variables) == nil && CheckTimed("timedWorldInfo", p.Timed) == nil
}

// PlayOf reads the Play of an id. An empty one stands for none, and for one that was removed for good.
func PlayOf(tx Tx, id string) (*Play, error) {
	if id == "" {
		return &Play{}, nil
	}
	p, err := tx.Play(id)
	if fault.Is(err, fault.NotFound) {
		return &Play{}, nil
	}
	return p, err
}

// playAt is the Play on the branch of a conversation that ends in a message.
func playAt(tx Tx, conv *Conversation, messageID string) (*Play, error) {
	id := conv.PlayID
	if messageID != conv.HeadID {
		var err error
		if id, err = tx.PlayAt(conv.ID, messageID); err != nil {
			return nil, err
		}
	}
	return PlayOf(tx, id)
}

// ChoosePlay makes the Play of the shown branch that in force.
func ChoosePlay(tx Tx, conv *Conversation) (err error) {
	if conv.HeadID == "" {
		conv.PlayID = ""
		return nil
	}
	conv.PlayID, err = tx.PlayAt(conv.ID, conv.HeadID)
	return err
}

// keepPlay makes the Play in force that of the shown branch, also for who comes back to it later.
func keepPlay(tx Tx, conv *Conversation) error {
	if conv.HeadID == "" {
		return nil
	}
	id, err := tx.PlayAt(conv.ID, conv.HeadID)
	if err != nil || id == conv.PlayID {
		return err
	}
	if conv.PlayID == "" { // an earlier text may have another one
		p := &Play{ID: op.NewID(), ConversationID: conv.ID}
		if err := tx.InsertPlay(p); err != nil {
			return err
		}
		conv.PlayID = p.ID
	}
	return tx.KeepPlay(conv.ID, conv.HeadID, conv.PlayID)
}

// takeOver gives the first of some new messages the Play in force, if it goes on with the shown
// branch: an earlier text need not be looked for, and the first message has none before it.
func takeOver(conv *Conversation, created []*Message) {
	if conv.PlayID == "" || len(created) == 0 || created[0].ParentID != conv.HeadID {
		return
	}
	if s := created[0].Chosen(); s != nil && s.PlayID == "" {
		s.PlayID = conv.PlayID
	}
}

func hasPlay(m *Message) bool {
	return slices.ContainsFunc(m.Swipes, func(s Swipe) bool { return s.PlayID != "" })
}

// play gives conv another Play.
func (in ConversationPatch) play(tx Tx, conv *Conversation) error {
	if err := CheckIdle(tx, conv.ID, AnyMessage); err != nil {
		return err
	}
	was, err := PlayOf(tx, conv.PlayID)
	if err != nil {
		return err
	}
	p := &Play{ID: op.NewID(), ConversationID: conv.ID, Variables: was.Variables, Timed: was.Timed}
	for _, m := range []struct {
		field string
		sent  json.RawMessage
		to    *json.RawMessage
		check func(string, json.RawMessage) error
	}{{"variables", in.Variables, &p.Variables, character.CheckVariables}, {"timedWorldInfo", in.Timed, &p.Timed, CheckTimed}} {
		if len(m.sent) == 0 {
			continue
		}
		if err := m.check(m.field, m.sent); err != nil {
			return err
		}
		*m.to = ObjectOrNil(m.sent)
	}
	if !p.Fits() {
		return fault.InvalidField("variables", "range", "must have at most %s together with timedWorldInfo", fault.Size(MaxPlay))
	}
	if err := tx.InsertPlay(p); err != nil {
		return err
	}
	conv.PlayID = p.ID
	return keepPlay(tx, conv)
}

// ObjectOrNil is an object in its shortest form; nil for an empty one and for null.
func ObjectOrNil(doc json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(doc, &members) != nil || len(members) == 0 {
		return nil
	}
	return op.MustJSON(members)
}

// CheckTimed refuses timed effects that a prompt could not read: those that have another form than
// SillyTavern's, or are beyond the limits. null passes.
func CheckTimed(field string, doc json.RawMessage) error {
	if err := character.CheckState(field, doc); err != nil || op.IsNull(doc) {
		return err
	}
	var timed worldinfo.Timed
	return op.DecodeLenient(field, doc, &timed)
}
