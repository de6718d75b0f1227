// Package intent decides, without a model, whether a message is a question to documents.
package intent

import (
	"regexp"
	"slices"
	"strings"

	"nodest/index"
)

var (
	// emote is what a message describes instead of says.
	emote = regexp.MustCompile(`\*[^*\n]*\*`)
	// asking is a message that asks for something.
	asking = regexp.MustCompile(`(?i)[?？]|\b(who|whom|whose|what|when|where|which|why|how|tell me|explain|describe|list|name|summari[sz]e|according to|look up|find)\b|` +
		`谁|什么|何时|何地|哪|怎么|怎样|如何|为什么|为何|多少|几[个次年月天时人岁号点]|吗|呢|告诉我|介绍|解释|说明|列出|查一?下|根据`)
	// chatter is a question that nobody wants an answer from documents to.
	chatter = regexp.MustCompile(`(?i)^\W*(hi|hey|hello|good (morning|evening|night|afternoon))?[\s,!.]*(` +
		`how are you|how('s| is) it going|how do you (feel|do)|how was your (day|night)|what('s| is) up|what are you (up to|doing|thinking)( right now| now| today)?|` +
		`are you (ok|okay|all right|alright|there|tired|hungry|happy|sad|awake|sure|busy)|do you (love|like|miss) me|really|right|ok(ay)?|you know|guess what|can we talk|may i (sit|come in)|what do you think|shall we( go)?|ready` +
		`)( (my )?(friend|dear|love))?\W*$|^\W*(你好吗|最近(好吗|怎么样)|在(吗|干嘛|做什么)|你(在干什么|在做什么|还好吗|累了?吗|饿了?吗|开心吗|爱我吗|想我吗|觉得呢|怎么了|确定吗)|今天(过得)?(怎么样|好吗)|真的吗|是吗|好吗|对吗|可以吗|怎么了|为什么呢|吃了吗|睡了吗|然后呢)\W*$`)
	// pointing is a word that stands for what was named before.
	pointing = regexp.MustCompile(`(?i)\b(it|its|he|him|his|she|her|they|them|their|this|that|these|those|there)\b|[它他她这那]|上面|刚才`)
)

// Wanted reports whether a message may be answered by documents: it asks for something that is
// not small talk, or names what the knowledge bases are about. It is for models that do not
// call tools; others decide for themselves.
func Wanted(text string, about []string) bool {
	text = strings.TrimSpace(emote.ReplaceAllString(text, " "))
	terms := index.Terms(text)
	if len(terms) == 0 || chatter.MatchString(text) {
		return false
	}
	if asking.MatchString(text) {
		return true
	}
	named := index.Terms(strings.Join(about, "\n"))
	return slices.ContainsFunc(terms, func(t string) bool { return slices.Contains(named, t) })
}

// fewTerms is how many terms a message has at most that only points at what was said before.
const fewTerms = 4

// Standalone is a message as a question of its own: one that only points at what was said
// before gets the user's message before it.
func Standalone(text, before string) string {
	text = strings.TrimSpace(emote.ReplaceAllString(text, " "))
	if before == "" || !pointing.MatchString(text) || len(index.Terms(text)) > fewTerms {
		return text
	}
	return strings.TrimSpace(emote.ReplaceAllString(before, " ")) + "\n" + text
}
