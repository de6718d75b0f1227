package cite

import (
	"fmt"
	"nodest/internal/index"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var digitRe = regexp.MustCompile(`\d+`)

func mutations(text string) map[string]string {
	out := map[string]string{}
	if m := digitRe.FindAllStringIndex(text, -1); len(m) > 0 {
		at := m[len(m)/2]
		n, _ := strconv.Atoi(text[at[0]:at[1]])
		out["number"] = text[:at[0]] + strconv.Itoa(n+3) + text[at[1]:]
	}
	for _, p := range [][2]string{{" was ", " was not "}, {" is ", " is not "}, {" were ", " were not "}, {" are ", " are not "}, {" had ", " had not "}, {"是", "不是"}, {"于", "并未于"}, {"位于", "不位于"}} {
		if strings.Count(text, p[0]) == 1 {
			out["negation"] = strings.Replace(text, p[0], p[1], 1)
			break
		}
	}
	if names := namesIn(text); len(names) >= 2 {
		a, b := names[0], names[len(names)-1]
		i, j := strings.Index(text, a), strings.LastIndex(text, b)
		if a != b && i >= 0 && j > i+len(a)+12 && strings.Count(text, a) == 1 && strings.Count(text, b) == 1 {
			out["swap"] = text[:i] + b + text[i+len(a):j] + a + text[j+len(b):]
		}
	}
	if hasDense(text) {
		out["tail"] = strings.TrimRight(text, "。") + "，其中大多数后来被送到了邻近的渔村。"
	} else {
		out["tail"] = strings.TrimRight(text, ".") + ", and most of them were later painted by pupils."
	}
	return out
}

func TestMutate(t *testing.T) {
	for _, dir := range []string{"xquad", "cmrc"} {
		files, _ := filepath.Glob("/work/shared/data/" + dir + "/docs/*")
		var sources []Source
		for i, f := range files {
			if dir == "cmrc" && i%9 != 0 || strings.Contains(f, ".zh.") {
				continue
			}
			doc, _ := os.ReadFile(f)
			title, rest := strings.NewReplacer("_", " ", ".en.txt", "").Replace(filepath.Base(f)), string(doc)
			sources = append(sources, Source{URL: fmt.Sprint("https://", i, ".test/"), Title: strings.TrimLeft(title, "# "), Chunks: lines(rest, 1)})
		}
		n, struck := map[string]int{}, map[string]int{}
		said := map[string]int{}
		for i := range sources {
			few := sources[max(0, i-2):min(len(sources), i+3)]
			for _, c := range sources[i].Chunks {
				for k, s := range plainSentences(c.Text) {
					text := c.Text[s.Span[0]:s.Span[1]]
					if k%2 != 0 || len(index.Terms(text)) < 5 || strings.ContainsAny(text, "[]") || !needsSource(text) {
						continue
					}
					for kind, wrong := range mutations(text) {
						at := min(i, 2)
						v := Verify(t.Context(), nil, fmt.Sprintf("%s[%d]", wrong, at+1), few, VerifyOptions{})
						n[kind]++
						if len(v.References) == 0 {
							struck[kind]++
						} else if said[kind]++; said[kind] < 6 {
							t.Logf("%s: %s", kind, wrong)
						}
					}
				}
			}
		}
		t.Log(dir, n, struck)
	}
}

func TestOne(t *testing.T) {
	doc, _ := os.ReadFile("/work/shared/data/xquad/docs/Civil_disobedience.en.txt")
	title, rest, _ := strings.Cut(string(doc), "\n")
	src := []Source{{URL: "https://a.test/", Title: title, Chunks: lines(rest, 1)}}
	v := Verify(t.Context(), nil, "It has been claimed that the Hungarians under Ferenc Deák directed revolutionary civil disobedience against the Austrian government, and most of them were later painted by pupils[1].", src, VerifyOptions{})
	for _, r := range v.References {
		t.Logf("%q", r.ExactQuote)
	}
	t.Logf("%+v", v.Report)
	b, _ := os.ReadFile("/work/shared/data/cmrc/docs/")
	_ = b
}
