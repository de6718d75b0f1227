package rules

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Answer is what a model answered. Its JSON form is the CircleResponse of the NodeST app,
// with Evidence and End.
type Answer struct {
	Success             bool     `json:"success"`
	Error               string   `json:"error,omitempty"` // why there is no success
	Action              *Act     `json:"action,omitempty"`
	Emotion             *Emotion `json:"emotion,omitempty"`
	RelationshipUpdates []Update `json:"relationshipUpdates,omitempty"`
	Thoughts            string   `json:"thoughts"`
	Response            string   `json:"response,omitempty"` // to its own post
	Expectation         string   `json:"expectation,omitempty"`
	Post                string   `json:"post,omitempty"`
	Emoticon            string   `json:"emoticon,omitempty"`
	Evidence            []string `json:"evidence,omitempty"` // ids that statements about others rest on
	End                 bool     `json:"end,omitempty"`      // it wants to say no more in the thread
}

// Act is what a character does about a post or a comment; the zero value is nothing.
type Act struct {
	Like    bool   `json:"like"`
	Comment string `json:"comment,omitempty"`
}

// Limits of an answer, in code points unless they say otherwise.
const (
	maxReply      = 64 << 10 // bytes that are read of a reply
	maxScan       = 1 << 20  // bytes that are looked at in search of objects
	maxNesting    = 64       // levels of objects and lists
	maxLongText   = 5_000    // text of a post
	maxText       = 2_000    // any other text
	maxShortText  = 100      // a name or an id
	maxEvidence   = 20       // ids
	noAnswer      = "the reply contains no usable JSON object"
	defaultStrong = 0.5 // intensity of an emotion that states none
)

// ReadAnswer reads the reply of a model: the first JSON object in it that says something.
// It ignores code fences and text around the object, and accepts raw line breaks in
// strings. Texts are cut to their limits, and an emoticon that is not one of emoticons is
// dropped. A reply without a usable object has no Success; nothing is made up for it.
func ReadAnswer(reply string, emoticons []string) Answer {
	reply = withoutThoughts(reply[:min(len(reply), maxReply)])
	left := maxScan
	for at := 0; left > 0; at++ {
		next := strings.IndexByte(reply[at:], '{')
		if next < 0 {
			break
		}
		at += next
		end, looked := objectEnd(reply[at:])
		left -= looked
		if end == 0 {
			continue
		}
		var o object
		if json.Unmarshal(withoutBreaks(reply[at:at+end]), &o) != nil {
			continue
		}
		if a, ok := o.answer(); ok {
			o.details(&a, emoticons)
			if u := ReadReview(reply[:at] + "\n\n" + reply[at+end:]); len(u) > 0 {
				a.RelationshipUpdates = u
			}
			return a
		}
	}
	return Answer{Error: noAnswer}
}

// answer reads what the character does, in the order of the app.
func (o object) answer() (Answer, bool) {
	a := Answer{Success: true, Thoughts: o.text(maxText, "thoughts")}
	act := o.object("action")
	if a.Post = o.text(maxLongText, "post"); a.Post != "" {
		a.Action = &Act{Comment: cut(a.Post, maxText)}
		return a, true
	}
	if a.Response = o.text(maxText, "response"); a.Response != "" && a.Thoughts != "" {
		a.Action = &Act{Comment: a.Response}
		return a, true
	}
	if act != nil {
		a.Action = &Act{Like: act.truth("like"), Comment: act.text(maxText, "comment")}
		return a, true
	}
	for _, key := range []string{"reflection", "response", "comment", "content", "message", "text"} {
		if text := o.text(maxText, key); text != "" {
			a.Action = &Act{Like: o.truth("like"), Comment: text}
			return a, true
		}
	}
	if o.truth("like") {
		a.Action = &Act{Like: true}
		return a, true
	}
	return a, false
}

// details reads what goes with any answer.
func (o object) details(a *Answer, emoticons []string) {
	a.Emotion = o.emotion()
	a.Expectation = o.text(maxText, "expectation")
	if e := o.text(maxShortText, "emoticon"); slices.Contains(emoticons, e) {
		a.Emoticon = e
	}
	for _, id := range o.list("evidence") {
		if id != "" && len(a.Evidence) < maxEvidence && !slices.Contains(a.Evidence, id) {
			a.Evidence = append(a.Evidence, id)
		}
	}
	a.End = o.truth("end")
}

// emotion returns nil if the object states none.
func (o object) emotion() *Emotion {
	kind, strength := o.text(maxShortText, "emotion"), defaultStrong
	if e := o.object("emotion"); e != nil {
		kind = e.text(maxShortText, "type")
		if f, err := strconv.ParseFloat(e.text(maxShortText, "intensity"), 64); err == nil && f == f {
			strength = min(max(f, 0), 1)
		}
	} else if kind == "" {
		return nil
	}
	kind = strings.ToLower(kind)
	if kind != "positive" && kind != "negative" {
		kind = "neutral"
	}
	return &Emotion{Type: kind, Intensity: strength}
}

// object is a JSON object whose members are read leniently: a member of another type
// counts as missing, unless its meaning is clear.
type object map[string]json.RawMessage

func (o object) object(key string) object {
	var in object
	_ = json.Unmarshal(o[key], &in)
	return in
}

// text returns a string, cut to most code points; a number is spelled out.
func (o object) text(most int, key string) string { return plain(o[key], most) }

func (o object) list(key string) []string {
	var all []json.RawMessage
	if json.Unmarshal(o[key], &all) != nil {
		all = []json.RawMessage{o[key]}
	}
	out := make([]string, 0, len(all))
	for _, doc := range all {
		out = append(out, plain(doc, maxShortText))
	}
	return out
}

// truth reports whether a member is true, "true" or 1.
func (o object) truth(key string) bool {
	switch strings.ToLower(strings.TrimSpace(string(o[key]))) {
	case "true", `"true"`, "1", `"1"`:
		return true
	}
	return false
}

func plain(doc json.RawMessage, most int) string {
	var s string
	if json.Unmarshal(doc, &s) != nil {
		var n json.Number
		if json.Unmarshal(doc, &n) != nil {
			return ""
		}
		s = n.String()
	}
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s))
	if strings.EqualFold(s, "null") {
		return ""
	}
	return cut(s, most)
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n--; n < 0 {
			return strings.TrimSpace(s[:i])
		}
	}
	return s
}

// withoutThoughts removes the thinking that a reply begins with.
func withoutThoughts(reply string) string {
	if before, after, found := strings.Cut(reply, "</think>"); found && !strings.HasPrefix(strings.TrimSpace(before), "{") {
		return after
	}
	return reply
}

// objectEnd returns where the object that s begins with ends, 0 if it does not or is
// nested too deeply, and how many bytes it looked at. Braces in strings do not count.
func objectEnd(s string) (end, looked int) {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxNesting {
				return 0, i
			}
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1, i + 1
			}
		}
	}
	return 0, len(s)
}

// withoutBreaks makes raw control characters in strings spaces, which JSON does not allow
// there; a line break of two characters is one space.
func withoutBreaks(doc string) []byte {
	out := make([]byte, 0, len(doc))
	quoted := false
	for i := 0; i < len(doc); i++ {
		c := doc[i]
		switch {
		case quoted && c == '\\' && i+1 < len(doc) && doc[i+1] >= ' ':
			out = append(out, c)
			i++
			c = doc[i]
		case c == '"':
			quoted = !quoted
		case quoted && c == '\r' && i+1 < len(doc) && doc[i+1] == '\n':
			continue
		case quoted && c < ' ':
			c = ' '
		}
		out = append(out, c)
	}
	return out
}
