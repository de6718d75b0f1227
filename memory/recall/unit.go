package recall

import (
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"nodest/internal/index"
	"nodest/memory/lang"
)

type Layer string

const (
	Fact     Layer = "fact"     // a statement taken from exchanges
	Exchange Layer = "exchange" // a text of an exchange, word for word
)

// Unit is one thing that can be recalled: a fact, or a text of an exchange.
type Unit struct {
	ID           string
	Version      int64
	Layer        Layer
	Conversation string
	Message      string    // a text's message
	Session      int       // a session of the conversation, from 1
	Order        int64     // place in the conversation
	Speaker      lang.Role // who says all of it; empty of a fact
	Name         string    // the speaker's name, where the message has one
	Text         string
	Cleaned      bool      // Text is not all of the text that was said
	Hash         string    // made of the text without case, blanks and signs; equal texts have equal hashes
	At           time.Time // when it happened, else when it was said
	Importance   float64   // 0 to 1
	Pinned       bool
	Claim

	Terms   string // index.Join of the text; the store fills it
	Vectors []index.Kept
}

// Claim says where a fact comes from and who may know it. A text of an exchange has none.
type Claim struct {
	ByHand  bool     // the user wrote it, or locked it
	ByRule  bool     // a rule took it from its sources
	Circle  bool     // it happened in the social circle
	Public  bool     // it may be told in the circle
	Profile bool     // it may be in the user's profile
	Sources []Source // it was taken from these; each is enough
	Root    string   // the id of its first version
}

// Source is the ids of texts that were said together and support a fact: a question and the "yes"
// that answers it.
type Source []string

// from reports whether a text is one of u's sources.
func (u *Unit) from(id string) bool {
	return slices.ContainsFunc(u.Sources, func(s Source) bool { return slices.Contains(s, id) })
}

// standsFor reports whether u is a fact that replaces its source in results. One that a rule
// wrote never does: the source may say more.
func (u *Unit) standsFor(source string) bool {
	return !u.ByRule && u.from(source)
}

// Row returns u as the index keeps it.
func (u *Unit) Row() index.Row {
	group := "" // facts stand alone
	if u.Layer != Fact {
		group = GroupOf(u.Conversation, u.Session)
	}
	row := u.Found()
	e := row.Data.(*entry)
	row.Group, row.Order, row.Marks, row.Attr = group, u.Order, e.marks(), uint64(e.line())
	row.Size = entryBytes + len(u.Text) + len(u.Conversation) + len(u.Speaker) + len(u.Hash)
	return row
}

// Found returns u as a row that is read because it was found.
func (u *Unit) Found() index.Row {
	e := &entry{Unit: *u, traits: lang.TraitsOf(u.Text)}
	e.Terms, e.Unit.Vectors = "", nil // the index has them
	return index.Row{ID: u.ID, Version: u.Version, Terms: u.Terms, Vectors: u.Vectors, Data: e}
}

// GroupOf names the group of a session's rows.
func GroupOf(conversation string, session int) string {
	return groupOf(conversation) + strconv.Itoa(session)
}

// groupOf is how the names of the groups of a conversation begin: its sessions.
func groupOf(conversation string) string { return conversation + "\x00" }

// entryOf returns the entry of a row; nil for none.
func entryOf(f index.Found) *entry {
	e, _ := f.Data.(*entry)
	return e
}

// entry is what the index keeps of a unit.
type entry struct {
	Unit
	traits lang.Traits

	asksOnly, changes atomic.Uint32 // the answers of knownOnce about the text
	giving            atomic.Uint32 // the answer of gives about it
}

const entryBytes = 248

// gives returns the properties of the user that a unit states, remembered unless it names them.
func (e *entry) gives(people lang.Names) lang.Properties {
	if !e.tellsOfUser() {
		return 0
	}
	if name := strings.ToLower(people.User); e.Layer == Fact && name != "" && strings.Contains(strings.ToLower(e.Text), name) {
		return lang.PropertiesTold(e.Text, name, false, e.traits.Self)
	}
	const known = 1 << 16 // the low half is the properties
	if e.giving.Load() == 0 {
		e.giving.Store(known | uint32(lang.PropertiesTold(e.Text, "", e.Layer == Exchange, e.traits.Self)))
	}
	return lang.Properties(e.giving.Load())
}

// pretends reports whether the user states one of these only in play, in jest or by hearsay.
func (e *entry) pretends(asked lang.Properties) bool {
	return asked != 0 && e.Layer == Exchange && e.Speaker == lang.RoleUser && e.gives(lang.Names{})&asked == 0 && lang.MentionsProperty(e.Text, asked)
}
