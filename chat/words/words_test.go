package words

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

// The stored words of a text never rule out a part of it.
func TestStoredWordsHoldEveryPartOfAText(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := []string{
		"tea", "Tea ", " house", "Straße", "ＴＥＡ", "coﬀee", "e\u0301", "2026", " ", ", ", "\n", "“", "—", "他喜欢", "喝绿茶", "。", "コーヒー", "김치", "ภาษา",
		"🦊", "🦊🐻", "👩‍🚀", "é", "ʼn", "№", "\u200b", "\xff", strings.Repeat("QUJD", 60), strings.Repeat("茶", 40),
	}
	for range 3000 {
		var text strings.Builder
		for range 1 + rng.IntN(30) {
			text.WriteString(pieces[rng.IntN(len(pieces))])
		}
		var words Set
		words.Add("another text")
		words.Add(text.String())
		stored := words.Stored()
		form := []rune(strings.ToValidUTF8(string((&Folder{}).Folded(text.String())), ""))
		var f Folder
		for range 5 {
			from := rng.IntN(len(form) + 1)
			query := InQuery(string(form[from : from+rng.IntN(len(form)-from+1)]))
			if !f.Holds(text.String(), query) {
				continue
			}
			var buf []byte
			if may, err := MayHold(stored, Parts(query), &buf); !may || err != nil {
				t.Fatalf("%q is in %q, but not in its words (%v)", query, text.String(), err)
			}
		}
	}
}

func TestStoredWordsRuleOutOtherTexts(t *testing.T) {
	var words Set
	words.Add("Green tea is served. 他喜欢喝绿茶。 🦊")
	for query, want := range map[string]bool{
		"tea": true, "ea": true, "GREEN": true, `"tea is"`: true, "喝绿": true, "茶": true, "🦊": true, "…": true,
		"coffee": false, "teas": false, "绿喝": false, "咖": false, "🐻": false, "tea milk": false,
	} {
		var buf []byte
		if may, _ := MayHold(words.Stored(), Parts(InQuery(query)), &buf); may != want {
			t.Errorf("%q: %v", query, may)
		}
	}
}

// A range with too many words is read by every search.
func TestTooManyWordsRuleOutNothing(t *testing.T) {
	words := Set{words: map[string]struct{}{}, size: mostWords + 1}
	words.Add("tea")
	var buf []byte
	if may, err := MayHold(words.Stored(), Parts(InQuery("coffee")), &buf); !may || err != nil {
		t.Error(may, err)
	}
}

// Words of an older build, which kept accents, count as missing.
func TestWordsOfAnotherFormAreDamaged(t *testing.T) {
	var buf []byte
	older := wordCoder().encoder.EncodeAll([]byte("müller\n"), nil)
	if may, err := MayHold(older, Parts(InQuery("Muller")), &buf); !may || !errors.Is(err, ErrDamaged) {
		t.Error(may, err)
	}
}
