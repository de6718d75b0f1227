package summary

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func FuzzAccept(f *testing.F) {
	f.Add("<think>x</think>```json\nabc```", "Mara: hello", 500)
	f.Add("--- CONVERSATION SUMMARY ---\n很抱歉，无法总结\n--- END OF SUMMARY ---", "", 1000)
	f.Add(strings.Repeat("They met. ", 200), "They met.", 600)
	f.Fuzz(func(t *testing.T, output, message string, length int) {
		length = 500 + int(uint(length)%1501)
		text, verdict := Accept(output, []ChatLine{{Text: message}}, length)
		if verdict == Accepted && (runes(text) < shortestSummary || runes(text) > acceptable(length)) {
			t.Errorf("accepted %d characters for a length of %d", runes(text), length)
		}
		if markerLine.MatchString(text) || text != strings.TrimSpace(text) {
			t.Errorf("kept %q", text)
		}
		if again, second := Accept(text, []ChatLine{{Text: message}}, length); verdict == Accepted && second != Accepted {
			t.Errorf("accepted %q, but not %q any more: %s", text, again, second)
		}
	})
}

func FuzzSentences(f *testing.F) {
	f.Add("Mr. Voss paid 3.50 crowns... \"Really?!\" she said. 她说：“好。”然后走了……", 20)
	f.Add(strings.Repeat("字", 450)+"。a\n\n\xff.", 500)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit = 50 + int(uint(limit)%3000)
		if len(text) > 20_000 {
			return // avoids quadratic time
		}
		rest := text
		for _, s := range sentences(text) {
			if n := runes(s); n < shortestSentence || n > longestSentence || s != strings.TrimSpace(s) {
				t.Errorf("a sentence of %d characters: %q", n, s)
			}
			_, behind, ok := strings.Cut(rest, s)
			if !ok {
				t.Fatalf("%q is not in the text behind the ones before it", s)
			}
			rest = behind
		}
		cut := cutAtSentence(text, limit)
		if runes(cut) > limit || !strings.HasPrefix(strings.TrimSpace(text), cut) || cut == "" && !blank(text) {
			t.Errorf("cut to %q", cut)
		}
		joined := ""
		for _, chunk := range chunked([]block{{text: text}, {text: "end"}}, limit) {
			if runes(chunk) > limit || blank(chunk) {
				t.Errorf("a chunk of %d characters, want at most %d", runes(chunk), limit)
			}
			joined += chunk
		}
		if got, want := withoutSpace(joined), withoutSpace(text+"end"); got != want {
			t.Errorf("the chunks hold %q, want %q", got, want)
		}
		w := Work{Lines: []ChatLine{{Text: text}, {Text: text}}, Length: 500, Location: time.UTC}
		if got := ExtractSummary(w); runes(got) > 500 || utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("extracted %q", got)
		}
	})
}

func withoutSpace(s string) string { return strings.Join(strings.Fields(s), "") }
