package framework

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"nodest/card"
	"nodest/llm"
)

// lookup returns the texts of an input by id.
func lookup(in Input) func(ids []string) ([]string, error) {
	return func(ids []string) ([]string, error) {
		out := make([]string, len(ids))
		for i, id := range ids {
			at := slices.IndexFunc(in.History, func(m Message) bool { return m.ID == id })
			switch {
			case at >= 0:
				out[i] = in.History[at].Text
			case id == in.User.ID:
				out[i] = in.User.Text
			default:
				return nil, errors.New("asked for an unknown id " + id)
			}
		}
		return out, nil
	}
}

// A stored prompt replays the identical request.
func TestStoredPromptReplaysTheIdenticalRequest(t *testing.T) {
	named := sample()
	for i := range named.History {
		named.History[i].Name = []string{"Mara", "Sam", ""}[i%3]
	}
	previous := sample()
	previous.Previous = build(t, sample()).Hashes
	previous.Sources.Card.Personality = "wet"
	small := sample()
	small.Options.Context = 420
	for name, in := range map[string]Input{"usual": sample(), "named": named, "with a prefix": previous, "small": small, "nothing": {}} {
		t.Run(name, func(t *testing.T) {
			p := build(t, in)
			got, err := Expand(p.Compact(), lookup(in))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Messages, p.Messages) {
				t.Errorf("messages differ:\n%v\n%v", got.Messages, p.Messages)
			}
			x, _ := json.Marshal(got)
			y, _ := json.Marshal(p)
			if string(x) != string(y) {
				t.Errorf("got  %s\nwant %s", x, y)
			}
			if !reflect.DeepEqual(got.Compact(), p.Compact()) {
				t.Error("stored again it is another")
			}
			if !slices.Equal(HashesOf(p.Compact()), p.Hashes) {
				t.Error("the hashes cannot be read")
			}
		})
	}
}

func TestStoredPromptDoesNotRepeatTheChat(t *testing.T) {
	in := Input{History: chatOf(1000), User: Message{ID: "u", Text: "hi"}}
	for i := range in.History {
		in.History[i].Text = strings.Repeat("words of the chat ", 20)
	}
	p := build(t, in)
	size, text := sizeOf(p.Compact()), 0
	for _, m := range p.Messages {
		text += len(m.Text)
	}
	t.Logf("%d bytes for %d bytes of text in %d messages", size, text, len(p.Messages))
	if size > 40*len(p.Messages) {
		t.Errorf("%d bytes for %d messages", size, len(p.Messages))
	}
}

// deflated is what is stored of data, without the dictionary of the store.
func deflated(data []byte) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.DefaultCompression)
	_, _ = w.Write(data)
	_ = w.Close()
	return b.Bytes()
}

// sizeOf is the size of a stored prompt with its parts, compressed, in bytes.
func sizeOf(s Stored) int {
	n := len(deflated(s.Body))
	for _, part := range s.Parts {
		n += len(deflated(part))
	}
	return n
}

// What two prompts of a conversation have in common is the same parts, also when the chat has
// moved on and its oldest messages no longer fit.
func TestStoredPromptsShareTheirParts(t *testing.T) {
	in := sample()
	in.Sources.Card.Description = noise(4000)
	in.History, in.User = chatOf(400), Message{ID: "u1", Text: "And now?"}
	kept := map[string]bool{}
	size := func(s Stored) (n int) {
		for _, part := range s.Parts {
			if !kept[string(part)] {
				kept[string(part)] = true
				n += len(deflated(part))
			}
		}
		return n + len(deflated(s.Body))
	}
	first := size(build(t, in).Compact())
	total := 0
	for i := range 20 {
		in.History = append(in.History[2:], in.User, Message{ID: fmt.Sprint("reply-", i), Role: "assistant", Text: fmt.Sprint("This happens, part ", i)})
		in.User = Message{ID: fmt.Sprint("user-", i), Role: "user", Text: fmt.Sprint("What happens, part ", i)}
		total += size(build(t, in).Compact())
	}
	t.Logf("the first prompt takes %d bytes, each further one %d", first, total/20)
	if total/20 > min(first/6, 1250) {
		t.Errorf("a further prompt takes %d bytes, the first one %d", total/20, first)
	}
}

// noise is a text of n letters that does not compress well.
func noise(n int) string {
	var b strings.Builder
	for i, h := 0, uint64(1); i < n; i++ {
		h = h*6364136223846793005 + 1442695040888963407
		b.WriteByte('a' + byte(h>>59)%26)
	}
	return b.String()
}

func TestStoredPromptDetectsChangedTexts(t *testing.T) {
	in := sample()
	stored := build(t, in).Compact()
	in.History[3].Text = "another text"
	if _, err := Expand(stored, lookup(in)); err == nil {
		t.Error("a text that is not what was sent was accepted")
	}
	in.History[3].Text = "" // purged
	p, err := Expand(stored, lookup(in))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Warnings) != 1 || p.Warnings[0].Code != "text_gone" {
		t.Errorf("warnings = %+v", p.Warnings)
	}
	if _, err := Expand(stored, func([]string) ([]string, error) { return nil, nil }); err == nil {
		t.Error("missing texts were accepted")
	}
	if _, err := Expand(stored, func([]string) ([]string, error) { return nil, errors.New("down") }); err == nil {
		t.Error("an error of the lookup was lost")
	}
}

func FuzzExpand(f *testing.F) {
	p, err := Build(f.Context(), sample())
	if err != nil {
		f.Fatal(err)
	}
	whole := p.Compact()
	f.Add(whole.Body, whole.Parts[0])
	hash := make([]byte, 4)
	for _, s := range []stored{
		{Version: 3, Messages: []storedMessage{{Role: "x", ID: "a"}, {Role: "x", ID: "b", Said: new(int)}, {}}},
		{Version: 3, Messages: []storedMessage{{Role: "x", Text: "a", ID: "a", Entries: []Entry{{Message: 9}, {Message: -1}}}}},
		{Version: 1}, {Version: 3, Messages: []storedMessage{{}, {}}},
		{Version: 3, Messages: []storedMessage{{Role: "x", Text: "ab", Cuts: []storedCut{{At: 1}, {At: 1, Entry: 1, ID: "c", From: 3, Len: 9}}, Entries: []Entry{{ID: "a"}, {ID: "b"}}, Hash: hash}, {Role: "x", Apart: true, Hash: hash}}},
	} {
		f.Add(encode(&s), encode([]storedMessage{{Role: "x", Hash: hash}}))
	}
	f.Fuzz(func(t *testing.T, body, part []byte) {
		data := Stored{body, [][]byte{part}}
		p, err := Expand(data, func(ids []string) ([]string, error) { return make([]string, len(ids)), nil })
		if err == nil {
			p.Compact()
			Diff(p, p)
		}
		HashesOf(data)
	})
}

func TestDiffNamesWhatDiffers(t *testing.T) {
	in := sample()
	a := build(t, in)
	if d := Diff(a, a); len(d.Changes) != 0 || d.Same != len(a.Entries) || d.Prefix != len(a.Messages) || d.Tokens != 0 {
		t.Errorf("with itself: %+v", d)
	}
	in = sample()
	in.Sources.Card.Personality = "warm and wordy"           // changed
	in.Sources.Book.Entries[3].Disable = true                // removed
	in.Sources.Book.Entries[1].Depth = 1                     // not even in
	in.Sources.Book.Entries[0].Depth = 6                     // moved
	in.Sources.Book.Entries[5].Key = []string{"How is"}      // added
	in.Findings.Memories = in.Findings.Memories[:1]          // a memory removed
	in.History = append(in.History[:8:8], in.History[9:]...) // a message removed
	in.Sources.Book.Entries[4].Position = card.AfterNote     // moved
	d := Diff(a, build(t, in))
	got := map[string]string{}
	for _, c := range d.Changes {
		got[c.Op+" "+string(c.Source)+" "+c.ID] = c.Old + "→" + c.New
	}
	for _, want := range []string{
		"changed card charPersonality", "removed worldbook 3", "moved worldbook 0", "added worldbook 5",
		"removed memory m2", "removed history " + chatOf(9)[8].ID,
	} {
		if _, ok := got[want]; !ok {
			t.Errorf("%q is missing in %v", want, got)
		}
		delete(got, want)
	}
	if got["changed user_message u"] == "" {
		t.Errorf("the text with the findings has changed: %v", got)
	}
	if d.Prefix == 0 || d.Prefix >= len(a.Messages) {
		t.Errorf("prefix of %d messages", d.Prefix)
	}
}

// What was said in the chat is not in a stored prompt, wherever the prompt has it: in the
// new message, in a message that a text of a depth was merged with, and in a memory.
func TestStoredPromptHasNoTextOfTheChat(t *testing.T) {
	in := sample()
	in.History, in.User = chatOf(3), Message{ID: "new", Role: "user", Text: noise(900)}
	said := map[string]string{"new": in.User.Text, "old": noise(2000)[1000:]}
	for i := range in.History {
		in.History[i].Text = noise(3000 + 100*i)[2500:]
		said[in.History[i].ID] = in.History[i].Text
	}
	in.Findings.Memories = []Memory{{ID: "old", Text: "Sam: " + said["old"] + " (2026-01-02)", Kept: Kept{ID: "old", Text: said["old"]}}}
	in.Options.StrictTurns = true
	p := build(t, in)
	body := p.Compact()
	s, err := body.decode()
	if err != nil {
		t.Fatal(err)
	}
	kept, _ := json.Marshal(s)
	for id, text := range said {
		if strings.Contains(string(kept), text[:100]) {
			t.Errorf("the text of %s is in the stored prompt", id)
		}
	}
	texts := func(ids []string) ([]string, error) {
		out := make([]string, len(ids))
		for i, id := range ids {
			out[i] = said[id]
		}
		return out, nil
	}
	got, err := Expand(body, texts)
	if err != nil || !reflect.DeepEqual(got.Messages, p.Messages) || !reflect.DeepEqual(got.Compact(), body) {
		t.Fatalf("it is read as another: %v", err)
	}
	delete(said, "old")
	if got, err = Expand(body, texts); err != nil || len(got.Warnings) != len(p.Warnings)+1 {
		t.Errorf("without a text that was purged: %v, %v", got.Warnings, err)
	}
	said["old"] = "changed"
	if _, err = Expand(body, texts); err == nil {
		t.Error("a memory that is not what was sent was accepted")
	}
}

// The rest of a text that a message of the chat is within is stored once, whatever the
// message.
func TestStoredPromptsShareTheRestOfATurn(t *testing.T) {
	rest := noise(600)
	of := func(text string) Stored {
		p := &Prompt{Base: -1}
		p.contains(Kept{ID: "r", Text: text})
		p.Entries = []Entry{{Source: SourceHistory, ID: "r"}, {Source: SourceBook, ID: "b", At: len(text) + 2}}
		p.addMessage(llm.Message{Role: llm.User, Text: text + "\n\n" + rest}, "")
		return p.Compact()
	}
	a, b := of(noise(900)[100:]), of(noise(900)[200:])
	if len(a.Parts) != 1 || !reflect.DeepEqual(a.Parts, b.Parts) || len(a.Body) > 400 {
		t.Errorf("%d and %d parts, and %d bytes besides", len(a.Parts), len(b.Parts), len(a.Body))
	}
}

// Pieces of a text that is kept elsewhere are there by their places in it, and the whole text of a
// summary by a name of its own.
func TestStoredPromptRefersToPieces(t *testing.T) {
	said := map[string]string{"old": noise(600), "sum@3": noise(900)[300:]}
	first, second := said["old"][100:180], said["old"][300:340]
	in := sample()
	in.History = append([]Message{{Role: RoleSummary, Text: "-\n" + said["sum@3"] + "\n-", Kept: Kept{ID: "sum@3", Text: said["sum@3"]}}}, in.History...)
	in.Findings.Memories = []Memory{
		{ID: "old", Text: "Sam: " + first + " … " + second + " … short (2026-01-02)", Kept: Kept{ID: "old", Text: said["old"], Pieces: []string{first, second, "short"}}},
		{ID: "gone", Text: "no text of the chat"},
	}
	for name, strict := range map[string]bool{"apart": false, "merged": true} {
		t.Run(name, func(t *testing.T) {
			in.Options.StrictTurns = strict
			p := build(t, in)
			stored := p.Compact()
			for _, part := range append(stored.Parts, stored.Body) {
				for _, text := range []string{first, second, said["sum@3"][:32]} {
					if bytes.Contains(part, []byte(text)) {
						t.Errorf("%q is in %s", text, part)
					}
				}
			}
			asked := map[string]int{}
			texts := func(ids []string) ([]string, error) {
				out, err := lookup(in)(slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return said[id] != "" || id == "old" }))
				for i, id := range ids {
					asked[id]++
					if id == "old" || id == "sum@3" {
						out = slices.Insert(out, i, said[id])
					}
				}
				return out, err
			}
			got, err := Expand(stored, texts)
			if err != nil || !reflect.DeepEqual(got.Messages, p.Messages) || !reflect.DeepEqual(got.Compact(), stored) {
				t.Fatalf("it is read as another: %v", err)
			}
			if asked["old"] != 1 || asked["sum@3"] != 1 {
				t.Errorf("asked for %v", asked)
			}
			old := said["old"]
			defer func() { said["old"] = old }()
			said["old"] = "" // purged
			if got, err = Expand(stored, texts); err != nil || len(got.Warnings) != len(p.Warnings)+1 || !slices.Equal(got.Hashes, p.Hashes) {
				t.Errorf("without a text that was purged: %v", err)
			}
			said["old"] = old[:320]
			if _, err = Expand(stored, texts); err == nil {
				t.Error("a text that is not what was sent was accepted")
			}
		})
	}
}
