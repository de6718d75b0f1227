package card

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// HeaderLine is the first line of a log as SillyTavern JSONL, without its line break. A
// header that says the same as its Raw form is written as it came; otherwise the fields of
// Raw that Chat does not cover are kept. So it is with ChatMessage.Line.
func (c *Chat) HeaderLine() json.RawMessage {
	metadata := valueOr(c.Metadata, map[string]any{})
	if !absent(c.Header) {
		o, err := parseObject(c.Header)
		if err == nil && sameJSON(o.get("chat_metadata"), c.Metadata) {
			return oneLine(c.Header)
		}
		if err == nil {
			o.set("chat_metadata", metadata)
			return o.encode()
		}
	}
	o := newObject()
	o.set("chat_metadata", metadata)
	o.put("user_name", cmp.Or(c.UserName, UnusedName))
	o.put("character_name", cmp.Or(c.CharacterName, UnusedName))
	return o.encode()
}

// oneLine takes line breaks out of a document that may have been stored with them.
func oneLine(doc json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, doc) != nil {
		return doc
	}
	return b.Bytes()
}

// Line is the line of a message, without its line break.
func (m ChatMessage) Line() json.RawMessage {
	o, err := parseObject(m.Raw)
	if err == nil && m.equal(parseMessage(m.Raw)) {
		return oneLine(m.Raw)
	}
	if err != nil {
		o = newObject()
	}
	o.put("name", m.Name)
	o.put("is_user", m.Role == "user")
	o.put("is_system", m.Hidden)
	putDate(o, m.SentAt)
	o.put("mes", m.Text)
	extra := o.objectOrNew("extra")
	switch m.Role {
	case "narrator":
		extra.put("type", "narrator")
	case "system":
		extra.fill("type", "comment")
	}
	putOrRemove(extra, "reasoning", m.Reasoning)
	o.put("extra", extra)
	if len(m.Swipes) > 1 || m.Role == "assistant" || o.has("swipes") {
		m.putSwipes(o)
	}
	return o.encode()
}

func (m ChatMessage) putSwipes(o *object) {
	texts := make([]string, len(m.Swipes))
	infos := make([]json.RawMessage, len(m.Swipes))
	for i, s := range m.Swipes {
		texts[i], infos[i] = s.Text, s.info()
	}
	o.put("swipe_id", m.Swipe)
	o.put("swipes", texts)
	o.set("swipe_info", encodeList(infos))
}

// info writes the element of swipe_info, over the one that it came from.
func (s ChatSwipe) info() json.RawMessage {
	o, err := parseObject(s.Raw)
	if err != nil {
		o = newObject()
	}
	putDate(o, s.SentAt)
	extra := o.objectOrNew("extra")
	putOrRemove(extra, "reasoning", s.Reasoning)
	putOrRemove(extra, "model", s.Model)
	o.put("extra", extra)
	return o.encode()
}

// putOrRemove leaves no member for an empty text.
func putOrRemove(o *object, key, text string) {
	if text == "" {
		o.remove(key)
	} else {
		o.put(key, text)
	}
}

// putDate leaves a date that says the same as it is.
func putDate(o *object, t time.Time) {
	if !t.IsZero() && !DateOf(o.get("send_date")).Equal(t) {
		o.put("send_date", t.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
}

// equal compares what the messages say, not how it was written.
func (m ChatMessage) equal(other ChatMessage) bool {
	return m.Role == other.Role && m.Name == other.Name && m.Text == other.Text && m.Reasoning == other.Reasoning &&
		m.SentAt.Equal(other.SentAt) && m.Swipe == other.Swipe && m.Hidden == other.Hidden &&
		slices.EqualFunc(m.Swipes, other.Swipes, func(a, b ChatSwipe) bool {
			return a.Text == b.Text && a.Reasoning == b.Reasoning && a.Model == b.Model && a.SentAt.Equal(b.SentAt)
		})
}

// WithMember returns an object with a member set, the others as they are. What is no object becomes one.
func WithMember(doc json.RawMessage, key string, value any) json.RawMessage {
	o, err := parseObject(doc)
	if err != nil {
		o = newObject()
	}
	o.put(key, value)
	return o.encode()
}
