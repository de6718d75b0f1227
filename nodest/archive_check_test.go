package nodest

import (
	"strings"
	"testing"

	"nodest/fault"
)

// FuzzArchive: whatever a file says, it is refused with a code of imports, or what
// was read agrees with itself.
func FuzzArchive(f *testing.F) {
	const small = `{"format":"nodest.conversation","formatVersion":1,"conversation":{"title":"t","version":3,"headId":"a"},
		"messages":[{"id":"a","seq":1,"role":"user","rev":2,"status":"pending","swipes":[{"id":"s"}],
		"texts":[{"id":"x","swipeId":"s","rev":1,"text":"hi","blocks":[{"part":"mem","text":"b","at":1}],"usage":{}}],
		"states":[{"version":1,"rev":1,"revisionId":"x","status":"complete"}],"error":{"code":"busy","detail":"d"}}],
		"states":[{"version":1,"headId":"a","settings":{"maxTokens":3},"authorNote":{"content":"n"}}],
		"rewinds":[{"at":2,"to":1}],"saves":[{"version":1,"headId":"a","pins":{"character":1}}]}`
	f.Add([]byte(small))
	for _, change := range [][2]string{
		{`"seq":1`, `"seq":-1`}, {`"id":"a"`, `"id":null`}, {`"rev":2`, `"rev":1e99`}, {`[{"id":"a"`, `[null,{"id":"a"`},
		{`"usage":{}`, `"usage":[]`}, {`"at":1`, `"at":-1`}, {`formatVersion":1`, `formatVersion":7`}, {`"messages"`, `"MESSAGES"`},
		{`"headId":"a"`, `"headId":"\u0000"`}, {`"settings":{`, `"settings":{"stop":[],`}, {`"swipes":[{"id":"s"}]`, `"swipes":null`},
	} {
		f.Add([]byte(strings.Replace(small, change[0], change[1], 1)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := parseArchive(data)
		var l *loadable
		if err == nil {
			l, err = a.loadable()
		}
		if err != nil {
			switch fault.Public(err).Code {
			case fault.InvalidImport, fault.NewerVersion, fault.TooLarge:
			default:
				t.Errorf("error = %v", err)
			}
			return
		}
		agrees(t, l)
	})
}

// agrees checks what the store trusts in.
func agrees(t *testing.T, l *loadable) {
	t.Helper()
	seen, seq := map[string]bool{"": true}, int64(0)
	for _, m := range l.messages {
		if seen[m.ID] || !seen[m.ParentID] || m.Seq <= seq || m.ConversationID != l.conv.ID || len(m.States) == 0 {
			t.Fatalf("message %+v", m.Message)
		}
		seen[m.ID], seq = true, m.Seq
		texts := map[string]bool{"": true}
		for _, text := range m.Texts {
			if texts[text.RevisionID] {
				t.Fatalf("text %+v", text)
			}
			texts[text.RevisionID] = true
		}
		for _, s := range m.Swipes {
			if s.RevisionID == "" || !texts[s.RevisionID] {
				t.Fatalf("swipe %+v", s)
			}
		}
		version := int64(0)
		for _, s := range m.States {
			if s.Version <= version || s.Version > l.conv.Version || !texts[s.RevisionID] {
				t.Fatalf("state %+v", s)
			}
			version = s.Version
		}
	}
	versions := map[int64]bool{l.conv.Version: true}
	for _, s := range append([]*Conversation{l.conv}, l.states...) {
		versions[s.Version] = true
		if !seen[s.HeadID] || s.ID != l.conv.ID {
			t.Fatalf("conversation %+v", s)
		}
	}
	for _, s := range l.saves {
		if !seen[s.HeadID] || !versions[s.Version] || s.ConversationID != l.conv.ID {
			t.Fatalf("save point %+v", s)
		}
	}
}
