package extract

import (
	"testing"

	"nodest/memory/lang"
)

// Contractions are read the same with a straight apostrophe, a curly one, and none.
func TestContractionsWithoutApostrophe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"im allergic to penicillin": "User is allergic to penicillin",
		"I dont like olives":        "User doesn't like olives",
		"ive moved to Ghent":        "User moved to Ghent",
		"i’m fifty":                 "",
		"I'm 41 years old":          "User is 41 years old",
	} {
		got := textsByRule(userSays(1, text))
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || got[0] != want) {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"Im sure theyve said youre late, thats all": "I'm sure they've said you're late, that's all",
		"it wont, cant and didnt":                   "it won't, can't and didn't",
		"its ill, id well were":                     "its ill, id well were", // words of their own
		"the dint of dot":                           "the dint of dot",
	} {
		if got := lang.Contracted(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
