package intent

import (
	"regexp"
	"strings"
)

// longest is the length in UTF-16 units from which a message is no search.
const longest = 300

var (
	seedKeywords = []string{
		"搜索", "查询", "查找", "寻找", "检索", "了解", "信息", "最新", "新闻", "什么是", "谁是", "哪里", "如何", "怎么",
		"search", "find", "lookup", "query", "information about", "latest", "news", "what is", "who is", "where", "how to",
	}
	seedQuestion = regexp.MustCompile(`是什么|有哪些|如何|怎么|怎样|什么时候|为什么|哪些|多少|what is|how to|when is|why is|where is|[?？]`)
)

// Seed reports whether text needs a web search by the rules of the original application: a
// keyword or a question in fewer than 300 UTF-16 units. It takes nearly every question for a
// search; Better is more careful.
func Seed(text string) bool {
	if units(text) >= longest {
		return false
	}
	lower := strings.ToLower(text)
	for _, k := range seedKeywords {
		if strings.Contains(lower, k) {
			return true
		}
	}
	return seedQuestion.MatchString(lower)
}

// units is the length of s in UTF-16 units.
func units(s string) (n int) {
	for _, r := range s {
		if n++; r > 0xFFFF {
			n++
		}
	}
	return n
}
