package character

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"nodest/card"
	"nodest/framework"
	"nodest/internal/fault"
	"nodest/internal/op"
)

func TestACharacterWithoutABookHasItsAttributes(t *testing.T) {
	ch := &Character{Dialect: "nodest", RoleCard: json.RawMessage(`{"name":"Alice","personality":"calm"}`)}
	s, err := ch.sources(&Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Book.Entries) != 1 || !s.Preset.BuiltIn {
		t.Fatalf("book = %+v, preset = %+v", s.Book, s.Preset)
	}
	e := s.Book.Entries[0]
	if e.ID != "Alist" || e.Position != card.AtDepth || !e.Constant || e.Order != 1 || e.Depth != 1 ||
		!strings.Contains(e.Content, "Alice") || !strings.Contains(e.Content, "calm") {
		t.Errorf("entry = %+v", e)
	}
	for name, other := range map[string]*Character{
		"an empty book of its own": {Dialect: "nodest", RoleCard: ch.RoleCard, WorldBook: json.RawMessage(`{"entries":{}}`)},
		"an imported card":         {Dialect: "sillytavern", RoleCard: ch.RoleCard},
	} {
		s, err := other.sources(&Settings{})
		if err != nil || len(s.Book.Entries) != 0 {
			t.Errorf("%s: %d entries, error %v; want none", name, len(s.Book.Entries), err)
		}
	}
}

func TestAPresetIsCompletedWithoutChangingWhatItSays(t *testing.T) {
	tests := []struct {
		name, preset string
		order        string // identifiers in force, in order
	}{
		{"history before the instruction", `{"prompts":[{"identifier":"a"}],"prompt_order":[{"order":[{"identifier":"a"},{"identifier":"contextInstruction"}]}]}`,
			"a chatHistory contextInstruction"},
		{"history at the end", `{"prompts":[{"identifier":"a"}],"prompt_order":[{"order":[{"identifier":"a"}]}]}`, "a chatHistory"},
		{"history is there", `{"prompts":[{"identifier":"a"}],"prompt_order":[{"order":[{"identifier":"chatHistory"},{"identifier":"a"}]}]}`, "chatHistory a"},
		{"history by another name", `{"prompts":[{"identifier":"h","name":"Chat History"}],"prompt_order":[{"order":[{"identifier":"a"}]}]}`, "a h"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			plain, err := card.ParsePreset(json.RawMessage(tt.preset))
			if err != nil {
				t.Fatal(err)
			}
			p := completed(plain, framework.English)
			var order []string
			for _, o := range p.Order {
				order = append(order, o.Identifier)
			}
			if got := strings.Join(order, " "); got != tt.order {
				t.Errorf("order = %q, want %q", got, tt.order)
			}
			for _, id := range requiredPrompts {
				if !slices.ContainsFunc(p.Prompts, func(p card.Prompt) bool { return p.Identifier == id && p.Content != "" }) {
					t.Errorf("prompt %s is missing", id)
				}
			}
		})
	}
}

func TestSizeOfAWebP(t *testing.T) {
	webp := func(chunk string) []byte {
		return fmt.Appendf(nil, "RIFF%c\x00\x00\x00WEBP%s", len(chunk)+4, chunk)
	}
	const tooLarge = "image too large: 8193 x 32 pixels, limit 8192 per side"
	for name, tt := range map[string]struct {
		data []byte
		want string // the error; "" = none
	}{
		"lossy":               {webp("VP8 \x0a\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x40\x00\x20\x00"), ""},
		"lossy, too large":    {webp("VP8 \x0a\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x01\x20\x20\x00"), tooLarge},
		"lossless":            {webp("VP8L\x05\x00\x00\x00\x2f\x3f\xc0\x07\x00\x00"), ""},
		"lossless, too large": {webp("VP8L\x05\x00\x00\x00\x2f\x00\xe0\x07\x00\x00"), tooLarge},
		"animated":            {webp("VP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x3f\x00\x00\x1f\x00\x00"), ""},
		"animated, too large": {webp("VP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x00\x20\x00\x1f\x00\x00"), tooLarge},
		"odd":                 {webp("JUNK\x02\x00\x00\x00\x00\x00"), "not a PNG, JPEG, WebP or GIF image"},
		"cut":                 {[]byte("RIFF\x00\x00\x00\x00WEBPVP8 "), "not a PNG, JPEG, WebP or GIF image"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newAvatar(tt.data)
			got := ""
			if err != nil {
				got = fault.Public(err).Message
			}
			if got != tt.want {
				t.Errorf("error %q, want %q", got, tt.want)
			}
		})
	}
}

// FuzzNewAvatar: no bytes make NewAvatar panic.
func FuzzNewAvatar(f *testing.F) {
	f.Add([]byte("RIFF\x16\x00\x00\x00WEBPVP8 \x0a\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x40\x00\x20\x00"))
	f.Add([]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if avatar, err := newAvatar(data); (avatar == nil) != (err != nil) {
			t.Errorf("avatar %v, error %v", avatar, err)
		}
	})
}

func TestShortenedCutsBetweenCharacters(t *testing.T) {
	for in, want := range map[string]string{"": "", "茶茶茶": "茶茶", "ab": "ab", "abc": "ab"} {
		if got := op.Truncate(in, 2); got != want {
			t.Errorf("shortened(%q) = %q, want %q", in, got, want)
		}
	}
}
