package filename_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"nodest/knowledge/filename"
)

func TestNamesAreSafeToShow(t *testing.T) {
	for in, want := range map[string]string{
		"":                                 "file",
		"   ":                              "file",
		"../../etc/passwd":                 "etc/passwd",
		"/abs/./x.md":                      "abs/x.md",
		`C:\Users\a\b.txt`:                 "C:/Users/a/b.txt",
		"a\u202egnp.exe":                   "agnp.exe",
		"a\x00b\nc\td.txt":                 "ab c d.txt",
		"x\"><inject name=\"y.md":          "x\"><inject name=\"y.md",
		"\ufeffname.md":                    "name.md",
		"Caf\u0065\u0301.md":               "Café.md",
		"雾渡城/设定.md":                        "雾渡城/设定.md",
		"👩\u200d🚒.txt":                     "👩\u200d🚒.txt",
		"a\xffb.md":                        "a\ufffdb.md",
		strings.Repeat("x", 5000) + ".md":  strings.Repeat("x", 197) + ".md",
		strings.Repeat("d/", 300) + "a.md": strings.Repeat("d/", 98) + "a.md",
	} {
		if got := filename.Clean(in); got != want {
			t.Errorf("%.60q: got %q, want %q", in, got, want)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add("../a\u202e/..\\b")
	f.Fuzz(func(t *testing.T, in string) {
		name := filename.Clean(in)
		if name == "" || utf8.RuneCountInString(name) > 200 || !utf8.ValidString(name) || strings.ContainsAny(name, "\x00\n\u202e\\") {
			t.Fatalf("%q became %q", in, name)
		}
		if again := filename.Clean(name); again != name {
			t.Fatalf("%q became %q, and that %q", in, name, again)
		}
		for part := range strings.SplitSeq(name, "/") {
			if part == "" || part == "." || part == ".." {
				t.Fatalf("%q became %q", in, name)
			}
		}
	})
}
