package accent_test

import (
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"nodest/internal/accent"
)

func TestAccentsAreFolded(t *testing.T) {
	for text, want := range map[string]string{
		"Zoë Müller in Tromsø":   "Zoe Muller in Tromso",
		"Straße, GROẞ":           "Strasse, GROSS",
		"Łódź, Đà Nẵng, phở":     "Lodz, Da Nang, pho",
		"İstanbul ılık Çağrı":    "Istanbul ilik Cagri",
		"cœur, Ærø, Þór, ð":      "coeur, AEro, THor, d",
		"año ção šťáva ősz":      "ano cao stava osz",
		"Ναύτης σοφός":           "Ναυτησ σοφοσ",
		"ёлка, чай, їжак":        "елка, чай, їжак",
		"أحمد إيمان آمنة مؤمن":   "احمد ايمان امنه مومن",
		"كِتَاب ـــ مُصطفى ٢٠٢٦": "كتاب  مصطفي 2026",
		"کتاب فارسی ۱۳":          "كتاب فارسي 13",
		"שָׁלוֹם":                "שלום",
		"がぎぐ パ か, 한국어, 茶":        "がぎぐ パ か, 한국어, 茶",
		"हिन्दी தமிழ் กำลัง বাংলা": "हिन्दी தமிழ் กำลัง বাংলা",
		"n̈ x̣":         "n x",
		"plain × ÷ ¿ 😀": "plain × ÷ ¿ 😀",
		"":              "",
	} {
		if got := accent.Fold(norm.NFKC.String(text)); got != norm.NFKC.String(want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzFold(f *testing.F) {
	for _, s := range []string{"Zoë ßẞ", "أحمد ـ", "\xff\u0301", "ǿ ỗ ἄ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once := accent.Fold(norm.NFKC.String(text))
		if again := accent.Fold(once); again != once {
			t.Errorf("%q is folded to %q, and that to %q", text, once, again)
		}
		if utf8.ValidString(text) && !utf8.ValidString(once) {
			t.Errorf("%q is broken: %q", text, once)
		}
	})
}
