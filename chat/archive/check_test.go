package archive

import (
	"strings"
	"testing"

	"nodest/chat"
	"nodest/internal/fault"
)

// FuzzArchive checks that any file, archive or save point, is either refused with an
// import error or read into consistent data.
func FuzzArchive(f *testing.F) {
	const small = `{"format":"nodest.conversation","formatVersion":1,"conversation":{"title":"t","version":3,"headId":"a"},
		"messages":[{"id":"a","seq":1,"role":"user","rev":2,"status":"pending","swipes":[{"id":"s"}],
		"texts":[{"revisionId":"x","id":"s","rev":1,"text":"hi","blocks":[{"part":"mem","text":"b","at":1}],"usage":{}}],
		"states":[{"version":1,"rev":1,"revisionId":"x","status":"complete"}],"error":{"code":"busy","detail":"d"}}],
		"states":[{"version":1,"headId":"a","settings":{"maxTokens":3},"authorNote":{"content":"n"}}],
		"rewinds":[{"at":2,"to":1}],"saves":[{"version":1,"headId":"a","pins":{"character":1},
			"extra":{"state":{"settings":{}},"messages":{"1":{"mood":1},"7":{}}}}],
		"summaries":[{"madeVersion":1,"texts":[{"version":1,"document":{"id":"o","summary":"s","generation":1,"method":"user","count":1,
			"originalMessagesRange":{"start":0,"end":0},"messageIds":{"start":"a","end":"a"}}}]}]}`
	const save = `{"format":"nodest.save","formatVersion":1,"timestamp":7,"mood":"calm","messages":[{"id":"a","text":"other","sender":"user"},
		{"id":"a","text":"again","sender":"bot","metadata":{"x":[1]}}],"nodestChatHistory":{"parts":[{"role":"user","parts":[{"text":"t"}]}]},"nodest":`
	f.Add([]byte(small))
	f.Add([]byte(save + small + "}"))
	for _, change := range [][2]string{
		{`"seq":1`, `"seq":-1`}, {`"id":"a"`, `"id":null`}, {`"rev":2`, `"rev":1e99`}, {`[{"id":"a"`, `[null,{"id":"a"`},
		{`"usage":{}`, `"usage":[]`}, {`"at":1`, `"at":-1`}, {`formatVersion":1`, `formatVersion":7`}, {`"messages"`, `"MESSAGES"`},
		{`"headId":"a"`, `"headId":"\u0000"`}, {`"settings":{`, `"settings":{"stop":[],`}, {`"swipes":[{"id":"s"}]`, `"swipes":null`},
	} {
		f.Add([]byte(strings.Replace(small, change[0], change[1], 1)))
		f.Add([]byte(save + strings.Replace(small, change[0], change[1], 1) + "}"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a := &contents{}
		err := readFile(data, archiveFormat, false, archiveLimits, a)
		if err == nil {
			_, err = a.check("")
		}
		if err == nil {
			checkConsistent(t, a)
		}
		in, saveErr := readSaveFile(data)
		if saveErr == nil && in.exact != nil {
			checkConsistent(t, in.exact)
		}
		for _, err := range []error{err, saveErr} {
			switch code := fault.Public(err); {
			case err == nil, code.Code == fault.InvalidImport, code.Code == fault.NewerVersion, code.Code == fault.TooLarge:
			default:
				t.Errorf("error = %v", err)
			}
		}
		if saveErr != nil {
			return
		}
		ids := map[string]bool{}
		for _, entry := range in.entries {
			if m := entry.exact; m != nil && ids[m.ID] {
				t.Errorf("message %s is there twice", m.ID)
			} else if m != nil {
				ids[m.ID] = true
			} else if len(entry.Parts) != 1 {
				t.Errorf("entry %+v", entry)
			}
		}
	})
}

// checkConsistent checks what the store relies on.
// The sources of a text become links: what cannot be a page is refused, and every page that
// was read can be exported and imported.
func TestASourceIsAPage(t *testing.T) {
	long := "https://a.test/" + strings.Repeat("x", 4000)
	for address, ok := range map[string]bool{
		long: true, "http://a.test/": true, "": false, "javascript:alert(1)": false, "data:text/html,x": false, "//a.test/": false, long + long: false,
	} {
		file := `{"format":"nodest.conversation","formatVersion":1,"conversation":{"title":"t","version":3,"headId":"a"},
			"messages":[{"id":"a","seq":1,"role":"assistant","rev":2,"status":"complete","swipes":[{"id":"s"}],
			"texts":[{"revisionId":"x","id":"s","rev":1,"text":"hi[^1]","citations":{"references":[{"marker":1,"kind":"web","evidence":"page","url":"` + address + `"}]}}],
			"states":[{"version":1,"rev":1,"revisionId":"x","status":"complete"}]}],
			"states":[{"version":1,"headId":"a"}]}`
		a := &contents{}
		if err := readFile([]byte(file), archiveFormat, false, archiveLimits, a); err != nil {
			t.Fatal(err)
		}
		if _, err := a.check(""); ok != (err == nil) || !ok && !strings.Contains(err.Error(), "url") {
			t.Errorf("%.40q: %v", address, err)
		}
	}
}

func checkConsistent(t *testing.T, a *contents) {
	t.Helper()
	conv := &a.Conversation.Conversation
	seen, seq := map[string]bool{"": true}, int64(0)
	for _, m := range a.Messages {
		if seen[m.ID] || !seen[m.ParentID] || m.Seq <= seq || m.ConversationID != conv.ID || len(m.States) == 0 {
			t.Fatalf("message %+v", m.Message)
		}
		seen[m.ID], seq = true, m.Seq
		texts := map[string]bool{"": true}
		for _, text := range m.Texts {
			if texts[text.RevisionID] || text.ID == "" || text.Rev < 1 {
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
			if s.Version <= version || s.Version > conv.Version || !texts[s.RevisionID] {
				t.Fatalf("state %+v", s)
			}
			version = s.Version
		}
	}
	versions := map[int64]bool{conv.Version: true}
	for _, s := range append([]*chat.Conversation{conv}, a.States...) {
		versions[s.Version] = true
		if !seen[s.HeadID] || s.ID != conv.ID {
			t.Fatalf("conversation %+v", s)
		}
	}
	for _, s := range a.Saves {
		if !seen[s.HeadID] || !versions[s.Version] || s.ConversationID != conv.ID {
			t.Fatalf("save point %+v", s)
		}
	}
}
