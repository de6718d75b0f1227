package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	codeBlocks    = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`")
	markdownLinks = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headings      = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	namedFiles    = regexp.MustCompile("`((?:[a-z_0-9]+/)+[a-z_0-9]+\\.(?:go|yaml|sql))`")
	notInAnchors  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinksOfThePagesResolve checks that every relative link in a page leads to a file of
// the project, every #anchor to a heading, and that files named by their path exist,
// except those of the example in docs/adding-a-subject.md.
func TestLinksOfThePagesResolve(t *testing.T) {
	t.Parallel()
	const root = "../.."
	out, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "*.md").Output()
	if err != nil {
		t.Skip("skipped: this is not a git checkout")
	}
	for page := range strings.FieldsSeq(string(out)) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range markdownLinks.FindAllStringSubmatch(codeBlocks.ReplaceAllString(string(text), ""), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(link[1], "#")
			target := filepath.Join(root, page)
			if file != "" {
				target = filepath.Join(filepath.Dir(target), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, link[1])
			} else if anchor != "" && !anchorsOf(t, target)[anchor] {
				t.Errorf("%s links to %s, and there is no such heading", page, link[1])
			}
		}
		for _, file := range namedFiles.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, file[1])); err != nil && !strings.Contains(file[1], "bookmark") {
				t.Errorf("%s names the file %s, which does not exist", page, file[1])
			}
		}
	}
}

// anchorsOf returns the anchors of a page's headings, as GitHub makes them.
func anchorsOf(t *testing.T, page string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	anchors := map[string]bool{}
	for _, h := range headings.FindAllStringSubmatch(codeBlocks.ReplaceAllString(string(text), ""), -1) {
		plain := notInAnchors.ReplaceAllString(strings.ToLower(strings.TrimSpace(h[1])), "")
		anchors[strings.ReplaceAll(plain, " ", "-")] = true
	}
	return anchors
}

// TestReadmeIsReadInOneGo keeps the README below 1,800 words: details belong to docs/.
func TestReadmeIsReadInOneGo(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if got := len(strings.Fields(string(text))); got > 1800 {
		t.Fatalf("len(strings.Fields(string(text))) is %d, want at most %d", got, 1800)
	}
}
