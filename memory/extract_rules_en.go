package memory

import (
	"regexp"
	"strings"
)

var (
	englishLead  = regexp.MustCompile(`(?i)^(?:(?:well|oh|so|actually|yes|yeah|no|hey|hi|hello|ok|okay|also|and|but|because|although|though|then|by the way|btw|honestly|to be honest|you know|just so you know|fyi|thanks|thank you|sorry|anyway|besides|today|currently|right now|these days)\b[\s,.!:]*)+`)
	englishBreak = regexp.MustCompile(`(?i)(?:[,;:]|\s[-–—])\s+(?:(?:and|but|so|because|although|though|while|then|or|which|where) )*(?:i|i'm|i've|i'll|i'd|my|you|your|he|she|it|they|we|do|what|how|is|are|there|that's|it's|who|when)\b|\s(?:and|but|so|because) (?:i|i'm|i've|i'll|my|you|we|he|she|they|it)\b`)
	englishEnd   = regexp.MustCompile(`[\s.!,;:~…)]+$`)
	englishMemo  = regexp.MustCompile(`(?i)^(?:please )?(?:always )?(?:remember|don't forget|do not forget|never forget|keep in mind)(?: that| this)?[:,]? (.{3,})$`)
	memoNoise    = regexp.MustCompile(`(?i)^(?:when|how|what|the time|me|it|that|this|us|i said)\b.{0,12}$|^(?:when|how|what)\b`)
	aside        = regexp.MustCompile(`(?i)^(?:it|that|this|them|those|these|him|her|one|to (?:hear|know|see|say|think|ask)\b.*|(?:that|how|what|when|it) .*)$`)
)

const (
	iAm      = `(?:i am|i'm)`
	adverbs  = `(?:(?:really|also|absolutely|still|just|always|do|currently|now|even|truly|usually|often|secretly|kind of|recently|actually|only|particularly|especially|very much) )*`
	whenSoon = `(?:tomorrow|tonight|next (?:week|month|year|weekend|summer|winter|spring|fall|autumn|mon|tues|wednes|thurs|fri|satur|sun)\w*|this (?:weekend|friday|saturday|sunday)|on (?:mon|tues|wednes|thurs|fri|satur|sun)day|in (?:a|\d+|two|three) (?:days?|weeks?|months?))`
)

// englishRules read a clause from its beginning; $1 and so on are put into text.
var englishRules = []rule{
	{form: regexp.MustCompile(`(?i)^(?:my name is|my name's|call me|i'm called|i am called) (\p{L}[\p{L}'.-]*(?: \p{Lu}[\p{L}'.-]*){0,3})$`), not: regexp.MustCompile(`(?i)call me (?:later|back|when|tomorrow|a|an|crazy|if)\b`), kind: Profile, importance: 0.9, text: "User's name is $1"},
	{form: regexp.MustCompile(`(?i)^` + iAm + ` (\d{1,3})(?: years old)?$`), kind: Profile, importance: 0.8, text: "User is $1 years old"},
	{form: regexp.MustCompile(`(?i)^i (?:just )?turned (\d{1,3})\b(.*)$`), kind: Profile, importance: 0.8, text: "User turned $1$2"},
	{form: regexp.MustCompile(`(?i)^my birthday(?: is|'s)(?: on)? (.+)$`), not: regexp.MustCompile(`(?i)coming|soon`), kind: Profile, importance: 0.9, text: "User's birthday is $1"},
	{form: regexp.MustCompile(`(?i)^i was born ((?:in|on) .+)$`), kind: Profile, importance: 0.8, text: "User was born $1"},
	{form: regexp.MustCompile(`(?i)^i ` + adverbs + `(?:live|reside) ((?:in|at|near|with|on) .+)$`), kind: Profile, importance: 0.8, text: "User lives $1"},
	{form: regexp.MustCompile(`(?i)^i(?:'ve| have)? ` + adverbs + `moved ((?:to|from|into|back) .+)$`), kind: Profile, importance: 0.8, text: "User moved $1"},
	{form: regexp.MustCompile(`(?i)^(?:` + iAm + `|i come) (?:originally )?from (.+)$`), kind: Profile, importance: 0.8, text: "User is from $1"},
	{form: regexp.MustCompile(`(?i)^i ` + adverbs + `work ((?:as|at|for|in|with) .+)$`), kind: Profile, importance: 0.8, text: "User works $1"},
	{form: regexp.MustCompile(`(?i)^i ` + adverbs + `(?:study|major in) (.+)$`), kind: Profile, importance: 0.7, text: "User studies $1"},
	{form: regexp.MustCompile(`(?i)^` + iAm + ` ` + adverbs + `(studying|learning|majoring in) (.+)$`), kind: Profile, importance: 0.7, text: "User is $1 $2"},
	{form: regexp.MustCompile(`(?i)^` + iAm + ` ` + adverbs + `((?:\w+ly )?allergic to .+)$`), kind: Profile, importance: 0.9, text: "User is $1"},
	{form: regexp.MustCompile(`(?i)^i ` + adverbs + `(?:don't|do not) ` + adverbs + `(like|love|enjoy|eat|drink) (.+)$`), kind: Preference, importance: 0.7, text: "User doesn't $1 $2"},
	{form: regexp.MustCompile(`(?i)^i ` + adverbs + `(?:can't|cannot) stand (.+)$`), kind: Preference, importance: 0.7, text: "User can't stand $1"},
	{form: regexp.MustCompile(`(?i)^i ` + adverbs + `(like|love|hate|prefer|enjoy|adore|dislike|detest) (.+)$`), kind: Preference, importance: 0.7, text: "User ${1}s $2"},
	{form: regexp.MustCompile(`(?i)^my favou?rite (.+?) (?:is|are) (.+)$`), kind: Preference, importance: 0.7, text: "User's favorite $1 is $2"},
	{form: regexp.MustCompile(`(?i)^my ([\p{L}][\p{L}' -]{0,30}?)(?:'s name is| is called| is named|'s called|'s named) (.+)$`), kind: Relation, importance: 0.8, text: "User's $1 is called $2"},
	{form: regexp.MustCompile(`(?i)^i(?:'ve got| have got| have| own)` + ` ` + adverbs + `((?:a|an|one|two|three|four|five|\d+) .+)$`), not: regexp.MustCompile(`(?i)\b(?:a|an|one) (?:question|idea|feeling|lot|bit|good|great|bad|nice|problem|headache|plan|point|favor|hunch|thing|few|moment|minute|request|hard|tough|long|rough)\b`), kind: Profile, importance: 0.7, text: "User has $1"},
	{form: regexp.MustCompile(`(?i)^` + iAm + ` ` + adverbs + `(?:planning|going) to (.+)$`), not: regexp.MustCompile(`(?i)going to (?:be honest|say|tell you|ask|need you)`), kind: Intention, importance: 0.6, text: "User plans to $1"},
	{form: regexp.MustCompile(`(?i)^i(?:'ve| have)? ` + adverbs + `(?:plan|intend|decided) (to .+)$`), kind: Intention, importance: 0.6, text: "User plans $1"},
	{form: regexp.MustCompile(`(?i)^i(?:'ll| will| have to| need to| must|'ve got to)(?: be)? (.*\b` + whenSoon + `.*)$`), kind: Intention, importance: 0.6, text: "User will $1"},
	{form: regexp.MustCompile(`(?i)^i(?: have|'m having|'ve got) (.*\b` + whenSoon + `.*)$`), kind: Intention, importance: 0.6, text: "User has $1"},
	{form: regexp.MustCompile(`(?i)^my ((?:[\p{L}' -]{0,40} )?(?:deadline|exam|interview|appointment|flight|wedding)) (is .+)$`), kind: Intention, importance: 0.8, text: "User's $1 $2"},
	{form: regexp.MustCompile(`^(?:I am|I'm) (an? .+)$`), not: regexp.MustCompile(`(?i)\ba (?:bit|little|lot|huge mess|mess)\b|fan of`), kind: Profile, importance: 0.7, text: "User is $1"},
	{form: regexp.MustCompile(`(?i)^` + iAm + ` a (?:\w+ )?fan of (.+)$`), kind: Preference, importance: 0.6, text: "User is a fan of $1"},
	{form: regexp.MustCompile(`^(?:I am|I'm) (\p{Lu}\p{Ll}+(?: \p{Lu}\p{Ll}+)?)$`), kind: Profile, importance: 0.8, text: "User is $1"},
}

var (
	englishLove  = regexp.MustCompile(`(?i)^i ` + adverbs + `(love|like|hate|adore|miss) you$`)
	englishVow   = regexp.MustCompile(`(?i)^i (?:promise|swear)(?: you)?,?(?: that)? ?(?:i will|i'll|i won't|i will never|to|never to)? (.{3,})$`)
	englishWill  = regexp.MustCompile(`(?i)^i(?:'ll| will| won't) (.{4,})$`)
	englishNoVow = regexp.MustCompile(`(?i)^(?:be (?:happy|glad|honest|back|right)|see|try|say|admit|think|let you know if|bet)\b`)
)

// english reads one sentence.
func (n Names) english(sentence string, m Message) []found {
	sentence = strings.NewReplacer("’", "'", "‘", "'").Replace(sentence)
	sentence = englishLead.ReplaceAllString(sentence, "")
	if memo := englishMemo.FindStringSubmatch(sentence); memo != nil && m.Role == RoleUser {
		if inner := n.englishClauses(memo[1], m.Role); len(inner) > 0 {
			return inner
		}
		what := englishEnd.ReplaceAllString(memo[1], "")
		if memoNoise.MatchString(what) {
			return nil
		}
		return []found{{"User asked to remember: " + n.englishThird(m.Role, what), AboutUser, OtherSort, 0.9}}
	}
	return n.englishClauses(sentence, m.Role)
}

func (n Names) englishClauses(sentence string, role Role) []found {
	sentence = englishBreak.ReplaceAllStringFunc(sentence, func(s string) string {
		return "\n" + strings.TrimLeft(s, ",;:-–— ")
	})
	var out []found
	for clause := range strings.SplitSeq(sentence, "\n") {
		clause = englishEnd.ReplaceAllString(englishLead.ReplaceAllString(strings.TrimSpace(clause), ""), "")
		if role == RoleCharacter {
			out = append(out, n.englishPledge(clause)...)
			continue
		}
		if m := englishLove.FindStringSubmatch(clause); m != nil {
			text := "User " + strings.ToLower(m[1]) + "s " + n.character("the character")
			out = append(out, found{text, AboutRelationship, Relation, 0.8})
			continue
		}
		if text, r, ok := firstRule(englishRules, clause); ok && !idle(r, clause) {
			out = append(out, found{n.englishThird(role, text), AboutUser, r.kind, r.importance})
		}
	}
	return out
}

// idle reports whether a liking has no object that says anything: "I love it".
func idle(r rule, clause string) bool {
	m := r.form.FindStringSubmatch(clause)
	return r.kind == Preference && len(m) > 0 && aside.MatchString(strings.TrimSpace(m[len(m)-1]))
}

func (n Names) englishPledge(clause string) []found {
	who := n.character("The character")
	if m := englishVow.FindStringSubmatch(clause); m != nil {
		word := "promises: "
		return []found{{who + " " + word + n.englishThird(RoleCharacter, m[1]), AboutCharacter, Promise, 0.7}}
	}
	m := englishWill.FindStringSubmatch(clause)
	if m == nil || englishNoVow.MatchString(m[1]) {
		return nil
	}
	will := " will "
	if strings.HasPrefix(strings.ToLower(clause), "i won't") {
		will = " won't "
	}
	return []found{{who + will + n.englishThird(RoleCharacter, m[1]), AboutCharacter, Promise, 0.6}}
}

var englishPronouns = regexp.MustCompile(`(?i)\b(?:i am|i'm|i've|i'll|i|my|me|mine|myself|you're|you|your|yours|yourself)\b`)

// englishThird turns what a side says from the first person into the third.
func (n Names) englishThird(role Role, text string) string {
	other := n.character("the character")
	if role == RoleCharacter {
		other = "the user"
	}
	return englishPronouns.ReplaceAllStringFunc(text, func(w string) string {
		switch strings.ToLower(w) {
		case "i":
			return "they"
		case "i am", "i'm":
			return "they are"
		case "i've":
			return "they have"
		case "i'll":
			return "they will"
		case "my":
			return "their"
		case "me":
			return "them"
		case "mine":
			return "theirs"
		case "myself":
			return "themselves"
		case "you're":
			return other + " is"
		case "your", "yours":
			return other + "'s"
		}
		return other
	})
}
