package lang

import (
	"bufio"
	"os"
	"slices"
	"strings"
	"testing"
)

// Plain statements of users about themselves become facts in their language. Those about others, wishes,
// suppositions, questions, jokes, play and words for a task do not. testdata/statements.txt has a line for each:
// the words of the user, and behind "=>" the facts, if any.
func TestStatementsByDataAlone(t *testing.T) {
	file, err := os.Open("testdata/statements.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		said, facts, _ := strings.Cut(lines.Text(), " => ")
		if said == "" || strings.HasPrefix(said, "#") {
			continue
		}
		var want []string
		if facts != "" {
			want = strings.Split(facts, " | ")
		}
		var got []string
		for _, f := range (Names{}).StatementsIn([]Line{{Role: RoleUser, Text: said}})[0] {
			got = append(got, f.Text)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s\n\tgives %q, want %q", said, got, want)
		}
	}
}
