package lang

import (
	"strings"
	"testing"
)

// A pattern finds what its expression finds.
func TestPatternsFindWhatTheirExpressionsFind(t *testing.T) {
	texts := []string{
		"", "?", "x", "Do you remember where I live?", "whats my name", "What's up? Good morning", "我住在哪里？", "He said JUST KIDDING lol",
		"i got back home", "I’m called Anna, my name is Anna", "我叫王小明", "what do you call me", "*smiles* (ooc)", "if I were you", "ſure, i love it",
		"I no longer work at the bank", "my mum and dad", "does it rain", "and him?", "そうですね", "안녕하세요", "not here anymore", "nice to meet you, isn't it?",
	}
	patterns := []*pattern{
		asking.latin, asking.other, askingThePast.latin, askingThePast.other, someone, thereAlone, goingOn, tag, sentenceWords, ofTrade, ofOthers,
		impersonal, mayIntroduce, notNow, changed, aboutUs, nameForms, questionWords, joking, takesBack, playing, supposed, formerly, correcting,
		latinSmallTalk, phrasesOfSmallTalk, QuestionBegins, questionEnds, knowsNothing, Narration,
	}
	for _, p := range properties() {
		if p.asked != nil {
			patterns = append(patterns, p.asked, p.told)
		}
	}
	for _, r := range thesaurus() {
		patterns = append(patterns, r.asked)
	}
	looking := 0
	for _, p := range patterns {
		if !p.any {
			looking++
		}
		for _, text := range texts {
			for _, text := range []string{text, strings.ToLower(text), strings.ToUpper(text), "so " + text + ", well"} {
				if got, want := p.MatchString(text), p.Regexp.MatchString(text); got != want {
					t.Errorf("%s in %q: %t, want %t", p, text, got, want)
				}
				if got, want := p.ReplaceAllString(text, "-"), p.Regexp.ReplaceAllString(text, "-"); got != want {
					t.Errorf("%s in %q leaves %q, want %q", p, text, got, want)
				}
			}
		}
	}
	if looking < len(patterns)*9/10 {
		t.Errorf("only %d of %d patterns look for words first", looking, len(patterns))
	}
}

func TestPatternsLookForWhatEveryMatchHas(t *testing.T) {
	for expression, text := range map[string]string{
		`\b(?:mother|mum|mom)\b`:       "the month",
		`(?i)a{0,3}Kilo`:               "A KILT",
		`[xy]a(?:bc)?d`:                "xab",
		`(?:go|come) (?:to|\d+ )sleep`: "go to bed, come",
		`.{1,4}(?:lion|zebra)+`:        "a lioness"[:4],
	} {
		p := patternOf(expression)
		if p.any || p.mayMatch(text) {
			t.Errorf("%s is tried on %q", expression, text)
		}
	}
	for _, expression := range []string{`a*`, `\w+`, `(?:ab)?`, `^$`, `[^a]`} {
		if p := patternOf(expression); !p.any {
			t.Errorf("%s is tried on few texts: %v", expression, p.needs)
		}
	}
}

func TestContractionsWithoutAMark(t *testing.T) {
	for text, want := range map[string]string{
		"im here": "i'm here", "Dont, he said, DIDNT": "Don't, he said, DIDn't", "its ill": "its ill", "him imx x_im": "him imx x_im",
		"theyre what’s whats": "they're what's what's", "ive": "i've", "": "",
	} {
		if got := Contracted(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
