package lang

import (
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"nodest/index"
)

var (
	asking = bothForms(`\?|\b(?:what|who|whom|whose|which|when|where|why|how)(?:'s|'re|'d|s)?\b|^[^\p{L}\p{N}]*(?:do|does|did|is|are|am|was|were|can|could|will|would|have|has|had|don't|didn't|isn't|aren't)\s+\w+`+
		`|\b(?:tell me|remind me|remember|recall|recap|name (?:the|my|a)|list (?:the|my|all)|i forgot|i forget|i wonder|do you know)\b`,
		`？|什么|怎么|怎样|哪|谁|几[个只岁点号次本天位月码斤块件楼层]|多[少大久重高远长]|是不是|有没有|会不会|[吗呢][^\p{L}\p{N}]*$|还?记[得不]|告诉我|提醒我|^[^\p{L}\p{N}]*(?:跟我|给我|和我|再)?(?:说说|讲讲|聊聊|介绍)|想不起|忘了`+
			`|何|どこ|いつ|誰|どの|なぜ|(?:です|ます|した|る|の|た)か[^\p{L}\p{N}]*$|覚えて|教えて|뭐|무엇|어디|누구|언제|얼마|몇|어떤|무슨|기억|알려`)

	askingThePast = bothForms(`\b(?:before|previously|formerly|originally|earlier|in the past|used to|at first|back then|the old|my old|my (?:ex|last|former|previous))\b`, `以前|之前|原来|曾经|过去|从前|先前|当时|那时候?|(?:^|[^名])前は|昔|かつて|이전|예전|전에|옛날`)

	// someone refers to somebody or something mentioned before.
	someone = patternOf(`\b(?:he|she|him|her|hers|his|they|them|their|theirs|it|its|that one|this one|there)\b|[他她它]|那[个位只本家里儿部件]|彼|それ|その|あれ|그[녀는가를의]|그것|거기`)
	// thereAlone does not refer to a place mentioned before.
	thereAlone = patternOf(`\b(?:in|out|over|up|down|is|are|was|were|be|you) there\b|\bthere(?:'s| is| are| was| were)\b`)

	goingOn = patternOf(`^[^\p{L}\p{N}]*(?:and|but|or|also|then)?[^\p{L}\p{N}]*(?:what|how) about\b|^[^\p{L}\p{N}]*and\b|^[^\p{L}\p{N}]*那(?:[^我你咱]|[我你](?:的|家|妈|爸|姐|妹|哥|弟|老))|呢[^\p{L}\p{N}]*$|^[^\p{L}\p{N}]*(?:じゃあ|では)|^[^\p{L}\p{N}]*그럼`)

	// tag turns a statement into a question that needs no answer.
	tag = patternOf(`,\s*(?:(?:is|are|was|were|do|does|did|have|has|can|could|will|would|should)(?:n't)? (?:he|she|it|we|they|there|this|that)|right|huh|eh)[^\p{L}\p{N}]*$|[,，]?\s*(?:对吧|是吧|对不对|是不是|不是吗|对吗|是吗)[^\p{L}\p{N}]*$`)

	sentenceWords = patternOf(`\b(?:me|us|i|i'm|i've|i'll|i'd|you|he|she|it|it's|we|they|my|your|is|are|was|were|am|be|been|have|has|had|do|did|will|would|can|could|just|so|not|don't|let's|this|that)\b|[我你您他她它了吧啊呀呢吗是在有很太挺真好]`)
)

// mostKeywords is the maximum length of a message of keywords, in words or characters without
// spaces.
const (
	mostKeywords   = 6
	mostCharacters = 8
)

// twoForms are a form for Latin letters and one that needs others: most texts have the letters
// of one of them only, and a smaller expression takes less time.
type twoForms struct{ latin, other *pattern }

// bothForms compiles them. Whatever matches other has a character outside ASCII.
func bothForms(latin, other string) twoForms {
	return twoForms{patternOf(latin), patternOf(other)}
}

func (f twoForms) MatchString(text string) bool {
	return f.latin.MatchString(text) ||
		strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) && f.other.MatchString(text)
}

// intend reads what a question asks for; rest is folded without dates and small talk, and chats
// reports that there was some.
func (q *Question) intend(folded, rest string, chats bool) {
	folded, rest = Contracted(folded), Contracted(rest)
	if !aboutUs.MatchString(rest) {
		rest = tag.ReplaceAllString(rest, "")
	}
	q.Asks = asking.MatchString(rest)
	q.Past = askingThePast.MatchString(rest)
	q.Refers = q.Asks && (someone.MatchString(thereAlone.ReplaceAllString(rest, "")) || goingOn.MatchString(rest)) && q.asked() <= mostOfReference
	q.Keywords = !q.Asks && !chats && !Narration.MatchString(folded) && !sentenceWords.MatchString(folded) && len(strings.Fields(folded)) <= mostKeywords && countDense(folded) <= mostCharacters
	if q.Asks {
		q.Properties = propertiesAsked(rest, allProperties)
	}
}

// mostOfReference is the maximum evidence of a question that refers to the turn before.
const mostOfReference = 2.5

func (q *Question) asked() (sum float32) {
	for _, t := range q.Terms {
		if !t.Extra {
			sum += t.Evidence
		}
	}
	return sum
}

// Tells reports whether a term says what a question is about.
func Tells(t index.Term) bool {
	return t.Evidence >= ProvesLittle || t.Text[0] >= utf8.RuneSelf && !t.Extra && t.Evidence > provesHardly
}

// How the words of the turn before count in a question that refers to it.
const (
	referredWeight   = 0.5
	referredEvidence = 0.6
)

// Refer adds what the turn before is about; before are its texts, the user's first. These terms
// are optional, unless the question has none of its own.
func (q *Question) Refer(before []string, people Names, now time.Time) {
	if !q.Refers {
		return
	}
	known := map[string]bool{}
	for _, t := range q.Terms {
		known[t.Text] = true
	}
	alone := q.asked() < LeastAsked
	for i, text := range before {
		found := ReadQuery(text, people, now)
		if i == 0 && q.Sought == SeekAny {
			q.Sought = found.Sought
		}
		if i == 0 && alone {
			q.Properties |= found.Properties
		}
		added := false
		for _, t := range found.Terms {
			if known[t.Text] || !Tells(t) {
				continue
			}
			known[t.Text], added = true, true
			proof := t.Evidence * referredEvidence
			if first, _ := utf8.DecodeRuneInString(t.Text); unicode.Is(unicode.Han, first) {
				proof /= 1 - 2*partWeight // its characters are not taken along
			}
			q.Terms = append(q.Terms, index.Term{Text: t.Text, Weight: t.Weight * referredWeight, Evidence: proof, Extra: !alone || t.Extra})
		}
		alone = alone && !added
	}
}

// ProvesName is the evidence of a name that a message mentions: the message may be about
// nothing else that is remembered.
const ProvesName = 1.6

// Named are capitalised words inside a sentence.
var Named = regexp.MustCompile(`[\p{Ll}\d,;:] +(\p{Lu}\p{L}+)`)

// stress makes the names in a statement count more.
func (q *Question) stress(text string) {
	q.States = true
	names := map[string]bool{}
	for _, m := range Named.FindAllStringSubmatch(text, -1) {
		if w := strings.ToLower(m[1]); !TimeWords[w] && !strings.HasPrefix(w, "i'") {
			for _, t := range index.Terms(w) {
				names[t] = true
			}
		}
	}
	for i, t := range q.Terms {
		if names[t.Text] && t.Evidence == 1 {
			q.Terms[i].Evidence = ProvesName
		}
	}
}

// Silent reports whether nothing should be recalled for a message.
func (q *Question) Silent() bool {
	return q.asked() < LeastAsked && q.Properties == 0 && !(q.Asks && len(q.Days) > 0) && !q.Refers
}

const LeastAsked = 0.4 // evidence that a question, and keywords, need
