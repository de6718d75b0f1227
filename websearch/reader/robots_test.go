package reader

import (
	"strings"
	"testing"
)

func TestRobotsAreReadByTheirStandard(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text           string
		allowed, taken string // paths, separated by spaces: those that may be read, and those that may not
	}{
		"nothing":                               {"", "/ /x", ""},
		"everybody":                             {"User-agent: *\nDisallow: /private", "/ /public /privat", "/private /private/x /privately"},
		"our group before everybody's":          {"User-agent: *\nDisallow: /\nUser-agent: NODEST\nDisallow: /x", "/ /y", "/x"},
		"our version":                           {"User-agent: NodeST/2.1\nDisallow: /x", "/", "/x"},
		"another robot whose name begins ours":  {"User-agent: node\nDisallow: /", "/ /x", ""},
		"another robot whose name ours begins":  {"User-agent: nodestbot\nDisallow: /", "/ /x", ""},
		"our groups are one":                    {"User-agent: nodest\nDisallow: /a\nUser-agent: x\nDisallow: /b\nUser-agent: nodest\nDisallow: /c", "/b", "/a /c"},
		"several names of one group":            {"User-agent: x\nUser-agent: nodest\nSitemap: /s\nUser-agent: y\nDisallow: /a", "/b", "/a"},
		"a group of ours that forbids nothing":  {"User-agent: *\nDisallow: /\nUser-agent: nodest\nDisallow:", "/ /x", ""},
		"rules before the first name":           {"Crawl-delay: 3\nDisallow: /a\nUser-agent: *\nDisallow: /b", "/a", "/b"},
		"a delay that is no number":             {"User-agent: *\nCrawl-delay: fast\nDisallow: /b", "/a", "/b"},
		"a line that is not understood":         {"User-agent: *\nplease go away\nDisallow /a\nNoindex: /\nDisallow: /b", "/a", "/b"},
		"other records do not end a group":      {"User-agent: *\nDisallow: /a\nSitemap: http://a.test/s\nDisallow: /b", "/", "/a /b"},
		"the longest pattern":                   {"User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b/c", "/a/b", "/a /a/b/c"},
		"two of one length":                     {"User-agent: *\nDisallow: /a\nAllow: /a\n", "/a", ""},
		"two of one length, the other way":      {"User-agent: *\nAllow: /a\nDisallow: /a\n", "/a", ""},
		"any text":                              {"User-agent: *\nDisallow: /*.gif\nDisallow: /*/x/*/y", "/gif /a/x/y", "/a.gif /a.gif?b /q/x/r/y"},
		"the end":                               {"User-agent: *\nDisallow: /*.gif$\nDisallow: /a$", "/a.gif?b /ab", "/b.gif /a /x.gif.gif"},
		"the end counts as one byte":            {"User-agent: *\nAllow: /a\nDisallow: /a$\nDisallow: /\nAllow: /$", "/ /ab", "/a /b"},
		"a query":                               {"User-agent: *\nDisallow: /*?print=", "/x", "/x?print=1"},
		"UTF-8":                                 {"User-agent: *\nDisallow: /私有", "/公開", "/%E7%A7%81%E6%9C%89/x"},
		"lower-case percent signs":              {"User-agent: *\nDisallow: /%e7%a7%81\nDisallow: /caf%c3%a9", "/", "/%E7%A7%81 /%e7%a7%81 /café"},
		"a letter behind a percent sign":        {"User-agent: *\nDisallow: /%7Ejoe/%61", "/", "/~joe/a /%7ejoe/a"},
		"a reserved character is not the other": {"User-agent: *\nDisallow: /a%2Fb", "/a/b", "/a%2fb"},
		"an asterisk and a dollar as they are":  {"User-agent: *\nDisallow: /a%2Ab\nDisallow: /c%24\nDisallow: /$d", "/axb /c", "/a*b /c$ /$d"},
		"spaces, comments, other line ends":     {"\ufeffUSER-AGENT : * # all\r\rdisallow:\t/a # not\r\n  Disallow : /b", "/c", "/a /b"},
		"everything":                            {"User-agent: *\nDisallow: /", "", "/"},
		"a page instead":                        {"<html><body>User-agent: none</body></html>", "/", ""},
		"a pattern that would take long":        {"User-agent: *\nDisallow: /" + strings.Repeat("*a", 50_000) + "$", "/" + strings.Repeat("a", 2000), ""},
	} {
		r := rules{list: robotsFor(c.text, robotsName)}
		for _, path := range strings.Fields(c.allowed) {
			if !r.allow(path) {
				t.Errorf("%s: %.40s", name, path)
			}
		}
		for _, path := range strings.Fields(c.taken) {
			if r.allow(path) {
				t.Errorf("%s: %.40s", name, path)
			}
		}
	}
}
