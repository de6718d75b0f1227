package parse

import (
	"regexp"
	"strings"
)

// languages holds, by the extension of a file, which lines declare something. The first group
// is the indentation.
var languages = map[string]*regexp.Regexp{}

func init() {
	for extensions, pattern := range map[string]string{
		"go":     `^()(?:func|type|var|const)\s+[\w(]`,
		"py pyi": `^([ \t]*)(?:async\s+def|def|class)\s+\w`,
		"js mjs cjs jsx ts mts cts tsx vue svelte": `^([ \t]{0,4})(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?(?:(?:async\s+)?function\b|class\s|interface\s|enum\s|namespace\s|type\s+\w+.*=|(?:const|let|var)\s+\w+\s*(?::[^=]+)?=\s*(?:async\s*)?(?:function|\(|\w+\s*=>))`,
		"java kt kts cs scala groovy dart":         `^([ \t]*)(?:(?:public|private|protected|internal|static|final|abstract|sealed|open|override|data|async|virtual|partial|suspend|inline|readonly|synchronized|default|case)\s+)*(?:(?:class|interface|enum|record|struct|object|trait|fun|def|namespace)\s+\w|[\w<>\[\],.? ]+\s\w+\s*\([^;]*\)\s*(?:throws\s[\w., ]+)?\{\s*$)`,
		"c h cc cpp cxx hpp hh m mm":               `^()(?:(?:class|struct|union|enum|namespace|typedef|template)\b[^;]*$|[A-Za-z_][\w\s*&:<>,~]*\([^;]*$)`,
		"rs":                                       `^([ \t]*)(?:pub(?:\([^)]*\))?\s+)?(?:default\s+)?(?:const\s+|async\s+|unsafe\s+|extern\s+(?:"[^"]*"\s+)?)*(?:fn|struct|enum|trait|impl|mod|union|macro_rules!|type)\b`,
		"sql":                                      `^()(?i:create|alter|drop|insert\s+into|with)\s+\S`,
		"rb":                                       `^([ \t]*)(?:def|class|module)\s+\S`,
		"php":                                      `^([ \t]*)(?:(?:public|private|protected|static|final|abstract)\s+)*(?:function|class|interface|trait|enum)\s+\w`,
		"sh bash zsh":                              `^()(?:function\s+\w|[\w-]+\s*\(\)\s*\{?)`,
		"lua":                                      `^([ \t]*)(?:local\s+)?function\b`,
		"swift":                                    `^([ \t]*)(?:(?:public|private|internal|fileprivate|open|static|final|override|mutating)\s+)*(?:func|class|struct|enum|protocol|extension|actor|init)\b`,
		"pl pm":                                    `^()(?:sub|package)\s+\w`,
		"r jl ex exs erl hs ml fs":                 `^()(?:function|def|defp|defmodule|module|struct|macro|type|data|let|class|instance)\s+\S`,
		"css scss less":                            `^()[^\s/{}][^{};]*\{`,
		"xml toml ini cfg conf properties proto graphql gradle makefile dockerfile tf ps1 bat cmake": `^()(?:\[[^\]]+\]|(?:message|service|enum|type|resource|module|function)\s+\S)`,
	} {
		compiled := regexp.MustCompile(pattern)
		for ext := range strings.FieldsSeq(extensions) {
			languages[ext] = compiled
		}
	}
}

var codeComment = regexp.MustCompile(`^\s*(?://|/\*|\*|#|--|@|"""|;;|\[\w)`)

// parseCode keeps code as it is. Lines that declare something are headings, and a declaration
// at the top level with the comment above it is a unit.
func parseCode(p *parser, text string) error {
	b, declares := p.b, languages[extension(p.in.Name)]
	open := Unit{Kind: "code"}
	lead := -1 // where the comment above the next declaration begins, -1 = none
	for line := range p.lines(text) {
		start := b.n
		b.write(line)
		bare := strings.TrimRight(line, "\n")
		found := []string(nil)
		if declares != nil && len(bare) < 1000 && !strings.HasPrefix(bare, "//") {
			found = declares.FindStringSubmatch(bare)
		}
		top := found != nil && found[1] == ""
		switch {
		case top:
			if lead >= 0 {
				start = lead
			}
			if open.Start < start {
				closeUnit(b, open, start)
			}
			open = Unit{Kind: "code", Start: start, Title: symbol(bare)}
			b.heading(1, open.Title, start)
			lead = -1
		case found != nil:
			b.heading(2+min(len(strings.ReplaceAll(found[1], "\t", "    "))/4-1, 3), symbol(bare), start)
			lead = -1
		case codeComment.MatchString(bare) && !strings.HasPrefix(bare, " ") && !strings.HasPrefix(bare, "\t"):
			if lead < 0 {
				lead = start
			}
		default:
			lead = -1
		}
	}
	closeUnit(b, open, b.n)
	return p.ctx.Err()
}

// closeUnit adds a unit that ends before the end of the text.
func closeUnit(b *builder, u Unit, end int) {
	n := len(b.units)
	if b.unit(u); len(b.units) > n {
		b.units[n].End = end
	}
}

// symbol is the line of a declaration without what opens its body.
func symbol(line string) string {
	return strings.TrimRight(strings.TrimSpace(line), " \t{:(=")
}
