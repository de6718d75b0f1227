package lexicon

import "testing"

func mustForm(t *testing.T, expression string) *Form {
	t.Helper()
	f, err := formOf(expression)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFormsLookForWhatEveryMatchHas(t *testing.T) {
	for expression, text := range map[string]string{
		`\b(?:mother|mum|mom)\b`:       "the month",
		`(?i)a{0,3}Kilo`:               "A KILT",
		`[xy]a(?:bc)?d`:                "xab",
		`(?:go|come) (?:to|\d+ )sleep`: "go to bed, come",
		`.{1,4}(?:lion|zebra)+`:        "a lioness"[:4],
	} {
		p := mustForm(t, expression)
		if p.any || p.mayMatch(text) {
			t.Errorf("%s is tried on %q", expression, text)
		}
	}
	for _, expression := range []string{`a*`, `\w+`, `(?:ab)?`, `^$`, `[^a]`} {
		if p := mustForm(t, expression); !p.any {
			t.Errorf("%s is tried on few texts: %v", expression, p.needs)
		}
	}
}
