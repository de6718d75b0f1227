package lang

import (
	"cmp"
	"regexp"
	"strings"
	"sync"
)

var (
	englishLead  = regexp.MustCompile(`(?i)^(?:(?:well|oh|so|actually|yes|yeah|no|hey|hi|hello|ok|okay|also|and|but|because|although|though|then|by the way|btw|honestly|to be honest|you know|just so you know|fyi|thanks|thank you|sorry|anyway|besides|today|currently|right now|these days)\b[\s,.!:]*)+`)
	englishBreak = regexp.MustCompile(`(?i)(?:[,;:]|\s[-–—])\s+(?:(?:and|but|so|because|although|though|while|then|or|which|where) )*(?:i|i'm|i've|i'll|i'd|my|you|your|he|she|it|they|we|do|what|how|is|are|there|that's|it's|who|when)\b|\s(?:and|but|so|because) (?:i|i'm|i've|i'll|my|you|we|he|she|they|it)\b`)
	englishEnd   = regexp.MustCompile(`[\s.!,;:~…)]+$`)
	englishMemo  = regexp.MustCompile(`(?i)^(?:please )?(?:always )?(?:remember|don't forget|do not forget|never forget|keep in mind)(?: that| this)?[:,]? (.{3,})$`)
	memoNoise    = regexp.MustCompile(`(?i)^(?:when|how|what|the time|me|it|that|this|us|i said)\b.{0,12}$|^(?:when|how|what|it's|to (?:be|take|have|get|keep|stay))\b|\byour(?:self|s)?\b|\bwe\b`)
	mine         = regexp.MustCompile(`(?i)^please\b|\b(?:i|i'm|i've|my|me)\b`) // what a person wants kept is theirs, or asked for
)

const (
	iAm      = `(?:i am|i'm)`
	adverbs  = `(?:(?:really|also|absolutely|still|just|always|do|currently|now|even|truly|usually|often|secretly|kind of|recently|finally|already|actually|only|particularly|especially|very much|definitely) )*`
	whenSoon = `(?:tomorrow|tonight|next (?:week|month|year|weekend|summer|winter|spring|fall|autumn|mon|tues|wednes|thurs|fri|satur|sun)\w*|this (?:coming )?(?:weekend|friday|saturday|sunday|summer|winter)|on (?:mon|tues|wednes|thurs|fri|satur|sun)day|in (?:a|\d+|two|three) (?:days?|weeks?|months?)|in (?:january|february|march|april|may|june|july|august|september|october|november|december)|on (?:january|february|march|april|may|june|july|august|september|october|november|december) \d+)`
	justThen = `(?: (?:today|yesterday|recently|last \w+|this \w+))?`
	weighty  = `(?:move|marry|get married|study|major|visit|travel|fly|go to|start|open|launch|apply|adopt|quit|retire|graduate|buy|sell|have a baby|attend|join|compete|enrol?l|propose|host|learn|renovate|emigrate|take (?:an?|the) [\p{L} -]*(?:exam|test|course|class|trip)|be an? (?:father|mother|dad|mom|mum|parent|uncle|aunt))`
	closeTo  = `(?:son|daughter|brother|sister|sibling|twin|kid|child|children|bab(?:y|ies)|wife|husband|fianc[eé]e?|girlfriend|boyfriend|niece|nephew|cousin|grand\w+|roommate|dog|cat|pupp(?:y|ies)|kitten|rabbit|bunny|hamster|parrot|turtle|tortoise|snake|horse|pony|guinea pig|pet)`
	owned    = `(?:car|motorcycle|motorbike|boat|house|apartment|cottage|farm|garden|bakery|shop|store|restaurant|company|business|blog|podcast|band|degree|phd|master's|allergy|diabetes|asthma|tattoo|piano|violin|guitar)`
	illness  = `diabetes|asthma|epilepsy|adhd|migraines?|arthritis|celiac(?: disease)?|blood pressure|hypertension|depression|anxiety|cancer|lupus|insomnia|dyslexia|autism|hiv|ptsd|ocd|tinnitus|anemia|endometriosis|multiple sclerosis|parkinson's|a heart condition|an? [\p{L}-]+ (?:allergy|intolerance)`
	trade    = `(?:teacher|professor|nurse|doctor|surgeon|dentist|vet|veterinarian|pharmacist|therapist|psychologist|lawyer|engineer|developer|programmer|designer|architect|actor|actress|journalist|editor|translator|photographer|chef|cook|baker|barista|waiter|waitress|farmer|mechanic|electrician|plumber|carpenter|driver|pilot|sailor|firefighter|paramedic|police officer|accountant|economist|consultant|manager|secretary|librarian|scientist|researcher|biologist|chemist|physicist|mathematician|analyst|bookkeeper|cashier|janitor|coach|surveyor|florist|bartender|receptionist|hairdresser|salesperson|butcher|tailor|technician|tutor|clerk|bookbinder|binder|potter|blacksmith|welder|cleaner|builder|roofer|lecturer|solicitor|judge|banker|trader|recruiter|midwife|caretaker|security guard|soldier|courier|postman|bus driver)` // one at a time
	whatOne  = `(?:man|woman|girl|boy|guy|mother|father|mom|mum|dad|parent|grand(?:mother|father|ma|pa)|student|freshman|sophomore|artist|painter|musician|singer|pianist|guitarist|violinist|drummer|dancer|writer|author|poet|gardener|freelancer|entrepreneur|athlete|swimmer|runner|gamer|streamer|vegetarian|vegan|christian|muslim|buddhist|hindu|jew|atheist|catholic|twin|only child|widow|widower|veteran|immigrant|teenager|` + trade + `)`
	aName    = `(\p{Lu}[\p{L}'.-]*(?: \p{Lu}[\p{L}'.-]*){0,3})`
)

var emptyOf = regexp.MustCompile(`(?i)\b(?:part|thing|one|memory|moment|pic|picture|photo|bit|scene|aspect|time)s?\b`)

// dayNamed is a capitalised word that is no name.
var dayNamed = regexp.MustCompile(`^\w+ (?:\w+ )?\w+,? (?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|January|February|March|April|May|June|July|August|September|October|November|December|Christmas|Easter|God|Lord)\b`)

// englishRules match the beginning of a clause.
var englishRules = sync.OnceValue(func() []rule {
	return []rule{
		{form: regexp.MustCompile(`^(?i:my (?:real |full |first )?name(?: is|'s)(?: now| actually)?|(?:you can |please |just )?call me|i'm called|i am called|i changed my name to) ` + aName + `$`), kind: KindProfile, importance: 0.9, text: "User's name is $1"},
		{form: regexp.MustCompile(`^(?:my name(?: is|'s)) (\p{Ll}{2,})$`), not: regexp.MustCompile(`(?:is|'s) (?:not|on|in|the|mud|too|so|very|hard|long|short|weird|common|unusual|important|secret|private|nobody|none)\b`), kind: KindProfile, importance: 0.9, text: "User's name is $1"},
		{form: regexp.MustCompile(`(?i)^` + iAm + ` (?:now |actually |already )?([1-9]\d?)(?: now)?(?: years old(?: now)?)$`), kind: KindProfile, importance: 0.8, text: "User is $1 years old"},
		{form: regexp.MustCompile(`(?i)^` + iAm + ` (?:now |actually |already )?([1-9]\d)(?: now)?$`), kind: KindProfile, importance: 0.8, text: "User is $1 years old"},
		{form: regexp.MustCompile(`(?i)^i (?:just )?turned ([1-9]\d)(| today| yesterday| last \w+| this \w+)$`), kind: KindProfile, importance: 0.8, text: "User turned $1$2"},
		{form: regexp.MustCompile(`(?i)^my birthday(?: is|'s)(?: actually)?(?: on)? (.*(?:\d|today|tomorrow|yesterday|january|february|march|april|may|june|july|august|september|october|november|december).*)$`), not: regexp.MustCompile(`(?i)coming|soon`), kind: KindProfile, importance: 0.9, text: "User's birthday is $1"},
		{form: regexp.MustCompile(`(?i)^i was born ((?:in|on) .+)$`), object: 1, kind: KindProfile, importance: 0.8, text: "User was born $1"},
		{form: regexp.MustCompile(`(?i)^i ` + adverbs + `(?:live|reside) ((?:in|at|near|with|on) .+)$`), not: regexp.MustCompile(`(?i)\bfear\b|(?:moment|present|past|world|edge|hope|peace)$`), object: 1, kind: KindProfile, importance: 0.8, text: "User lives $1"},
		{form: regexp.MustCompile(`(?i)^i(?:'ve| have)? ` + adverbs + `moved ((?:to|from|into|back to) .+|(?:out|away)(?: .+)?)$`), not: regexp.MustCompile(`(?i)to tears`), object: 1, kind: KindProfile, importance: 0.8, text: "User moved $1"},
		{form: regexp.MustCompile(`^(?i:` + iAm + `|i come) (?i:originally )?(?i:from) (\p{Lu}.*|(?:a|the) [\p{L}, -]*(?:town|village|city|coast|south|north|east|west|island)\b.*)$`), kind: KindProfile, importance: 0.8, text: "User is from $1"},
		{form: regexp.MustCompile(`(?i)^i ` + adverbs + `(?:work|started working|(?:got|found|took) an? (?:[\p{L}-]+ )?(?:job|position)) ((?:as|at|for|in) .+)$`), not: regexp.MustCompile(`(?i)\bat (?:night|home)\b|\bin the (?:morning|evening|afternoon|field|same)\b|\bfor (?:years|a living|free)\b`), object: 1, kind: KindProfile, importance: 0.8, text: "User works $1"},
		{form: regexp.MustCompile(`(?i)^i ` + adverbs + `(?:study|major in) (.+)$`), not: regexp.MustCompile(`(?i)study (?:hard|a lot|every|for|at|with|until|all)\b`), object: 1, kind: KindProfile, importance: 0.7, text: "User studies $1"},
		{form: regexp.MustCompile(`(?i)^` + iAm + ` ` + adverbs + `(studying|learning|majoring in) (.+)$`), not: regexp.MustCompile(`(?i)\b(?:an? new|new|a lot|so much|more|to|that|how)\b`), object: 2, kind: KindProfile, importance: 0.7, text: "User is $1 $2"},
		{form: regexp.MustCompile(`(?i)^` + iAm + ` ` + adverbs + `((?:\w+ly )?allergic to .+)$`), not: regexp.MustCompile(`(?i)to (?:work\w*|mornings|people|fun|school|nonsense|drama|commitment|exercise)$`), object: 1, kind: KindProfile, importance: 0.9, text: "User is $1"},
		{form: regexp.MustCompile(`(?i)^` + iAm + ` ` + adverbs + `(vegetarian|vegan|married|single|divorced|engaged|widowed|retired|unemployed|self-employed|pregnant|diabetic|gay|lesbian|bisexual|transgender|left-handed|colou?r-?blind|deaf|blind|autistic)$`), kind: KindProfile, importance: 0.7, text: "User is $1"},
		{form: regexp.MustCompile(`(?i)^i(?: have|'ve got| have got| suffer from| live with) ` + adverbs + `((?:(?:chronic|severe|mild|type [12]|high) )?(?:` + illness + `))$`), kind: KindProfile, importance: 0.8, text: "User has $1"},
		{form: regexp.MustCompile(`(?i)^i ` + adverbs + `(?:don't|do not) ` + adverbs + `(like|love|enjoy|eat|drink) (.+)$`), object: 2, kind: KindPreference, importance: 0.7, text: "User doesn't $1 $2"},
		{form: regexp.MustCompile(`(?i)^i ` + adverbs + `(?:can't|cannot) stand (.+)$`), object: 1, kind: KindPreference, importance: 0.7, text: "User can't stand $1"},
		{form: regexp.MustCompile(`(?i)^i ` + adverbs + `(like|love|hate|prefer|enjoy|adore|dislike|detest) (.+)$`), object: 2, kind: KindPreference, importance: 0.7, text: "User ${1}s $2"},
		{form: regexp.MustCompile(`(?i)^my (?:all-time )?favou?rite (.+?) (is|are) (.+)$`), not: emptyOf, object: 3, kind: KindPreference, importance: 0.7, text: "User's favorite $1 $2 $3"},
		{form: regexp.MustCompile(`^(?i:my) ((?i:(?:best|little|big|older|younger|elder|eldest|youngest|twin|late) )?(?i:` + closeTo + `|mother|father|mom|mum|dad|partner|boss|neighbou?r|friend|best friend)),? (\p{Lu}\p{Ll}+)(?:,? \p{Ll}.*)?$`), not: dayNamed, kind: KindRelation, importance: 0.7, text: "User's $1 is called $2"},
		{form: regexp.MustCompile(`^(?i:my) ([\p{L}][\p{L}' -]{0,30}?)(?i:'s name is| is called| is named|'s called|'s named) ` + aName + `$`), kind: KindRelation, importance: 0.8, text: "User's $1 is called $2"},
		{form: regexp.MustCompile(`(?i)^i(?:'ve got| have got| have| own) ` + adverbs + `((?:an?|one|two|three|four|five|\d+) (?:[\p{L}-]+ ){0,3}?(?:` + closeTo + `|` + owned + `)(?:s|es)?(?: (?:named|called|and|who|from|in|with)\b.{1,60})?)$`), not: regexp.MustCompile(`(?i)\b(?:picture|pic|photo|bit|lot|question|story|dream)\b`), object: 1, kind: KindProfile, importance: 0.7, text: "User has $1"},
		{form: regexp.MustCompile(`(?i)^` + iAm + ` ` + adverbs + `(?:planning|going) to (.*\b` + whenSoon + `.*|` + weighty + `\b.+|go .+ (?:in|to) \p{L}+.*)$`), object: 1, kind: KindPlan, importance: 0.6, text: "User plans to $1"},
		{form: regexp.MustCompile(`(?i)^i(?:'ve| have)? ` + adverbs + `(?:plan|intend|decided) to (.*\b` + whenSoon + `.*|` + weighty + `\b.+)$`), object: 1, kind: KindPlan, importance: 0.6, text: "User plans to $1"},
		{form: regexp.MustCompile(`(?i)^i(?:'ll| will| have to| need to| must|'ve got to)(?: be)? (.*\b` + whenSoon + `.*)$`), not: idleWords, object: 1, kind: KindPlan, importance: 0.6, text: "User will $1"},
		{form: regexp.MustCompile(`(?i)^i(?: have|'m having|'ve got) (.*\b` + whenSoon + `.*)$`), object: 1, kind: KindPlan, importance: 0.6, text: "User has $1"},
		{form: regexp.MustCompile(`(?i)^my ((?:[\p{L}' -]{0,40} )?(?:deadline|exam|interview|appointment|flight|wedding|surgery)) (is (?:on|at|in|due|tomorrow|tonight|next|this)\b.*)$`), kind: KindPlan, importance: 0.8, text: "User's $1 $2"},
		{form: regexp.MustCompile(`(?i)^` + iAm + ` (an? (?:[\p{L}-]+ ){0,3}?` + whatOne + `(?: (?:at|in|for|from|of|with)\b.{1,50}?)?)(?: now| these days)?$`), not: regexp.MustCompile(`(?i)\b(?:bit|little|lot|good|bad|terrible|great|huge|big|real|new|changed|lucky|happy|proud|simple|total)\b`), object: 1, kind: KindProfile, importance: 0.7, text: "User is $1"},
		{form: regexp.MustCompile(`(?i)^i(?:'ve| have)? ` + adverbs + `(?:quit|resigned|(?:quit|left) (?:my|the)(?: \w+)? job|handed in my (?:notice|resignation)|retired)(?: (?:from|at|as) .+)?` + justThen + `$`), kind: KindProfile, importance: 0.7, text: "User has quit their job"},
		{form: regexp.MustCompile(`(?i)^(?:i(?:'ve| have)? ` + adverbs + `lost my(?: \w+)? job|i(?: was| got|'ve| have) ` + adverbs + `(?:been )?(?:fired|sacked|laid off|let go|made redundant))(?: (?:from|by|at) .+)?` + justThen + `$`), kind: KindProfile, importance: 0.7, text: "User has lost their job"},
		{form: regexp.MustCompile(`(?i)^i (?:no longer work ((?:as|at|for|in) .+?|here|there)|(?:don't|do not) work ((?:as|at|for|in) .+?|here|there) (?:any ?more|any longer))$`), kind: KindProfile, importance: 0.7, text: "User no longer works $1$2"},
		{form: regexp.MustCompile(`(?i)^` + iAm + ` (?:no longer (an? (?:[\p{L}-]+ ){0,3}?` + whatOne + `)|not (an? (?:[\p{L}-]+ ){0,3}?` + whatOne + `) (?:any ?more|any longer))$`), kind: KindProfile, importance: 0.7, text: "User is no longer $1$2"},
		{form: regexp.MustCompile(`(?i)^i (?:no longer live ((?:in|at|on) .+?|here|there)|(?:don't|do not) live ((?:in|at|on) .+?|here|there) (?:any ?more|any longer))$`), kind: KindProfile, importance: 0.7, text: "User no longer lives $1$2"},
		{form: regexp.MustCompile(`(?i)^` + iAm + ` ` + adverbs + `a (?:\w+ )?fan of (.+)$`), object: 1, kind: KindPreference, importance: 0.6, text: "User is a fan of $1"},
	}
})

// englishIntroduction reads "I'm Anna" in a message that greets.
var (
	englishIntroduction = rule{form: regexp.MustCompile(`^(?:I am|I'm) (\p{Lu}\p{Ll}+(?: \p{Lu}\p{Ll}+)?)(?:,? (?:from \p{Lu}.*|(?:so |very )?(?:nice|pleased|glad|good|lovely|happy|great) to (?:finally )?meet you.*))?$`), kind: KindProfile, importance: 0.8, text: "User's name is $1"}
	englishGreeting     = regexp.MustCompile(`(?i)\b(?:hi|hello|hey|nice to meet|pleased to meet|good (?:morning|evening|afternoon))\b`)
)

// idleWords are promises that are not worth remembering.
var idleWords = regexp.MustCompile(`(?i)\b(?:(?:keep|let) (?:you|ya|u)\b|be (?:right |straight )?(?:back|there|here|around|happy|glad|honest|sure|fine|ok|okay|careful|rooting|cheering|waiting|thinking|looking)\b|see you|see what|talk (?:to you|soon|later)|chat|text you|get back|check (?:it|that|this|them)|give (?:it|that|this|these|those|them)|do (?:it|that|this|so|my best)|have (?:to|a look)|try\b|take (?:it|that|a look|your advice)|look (?:into|forward)|think|remember|forget|say|admit|bet|guess|keep (?:that|it|this|trying|going|doing|on|at)|stay (?:positive|strong|motivated)|cherish|support|tell you|show you|share|send)`)

var (
	englishLove = regexp.MustCompile(`(?i)^i ` + adverbs + `(love|like|hate|adore|miss) you$`)
	englishVow  = regexp.MustCompile(`(?i)^i (?:promise|swear|vow)(?: you)?,?(?: that)? ?(?:i will|i'll|i won't|i will never|to|never to)? (.{3,})$`)
	englishWill = regexp.MustCompile(`(?i)^i(?:'ll| will| won't) (.{4,})$`)
	lasting     = regexp.MustCompile(`(?i)^(?:never|always)\b|\b(?:forever|every day|for the rest of my life)\b|\b` + whenSoon)
	// behind are reasons and asides, which are cut off.
	behind = regexp.MustCompile(`(?i)\s+[-–—]+\s.*$|,? (?:but|because|since|so|although|though|even though|which|cos|cuz)\b.*$`)
)

func (n Names) english(sentence string, m Line) []Statement {
	sentence = englishLead.ReplaceAllString(Contracted(sentence), "")
	if memo := englishMemo.FindStringSubmatch(sentence); memo != nil && m.Role == RoleUser {
		if inner := n.englishClauses(memo[1], m); len(inner) > 0 {
			return inner
		}
		what := englishEnd.ReplaceAllString(memo[1], "")
		if memoNoise.MatchString(what) || !mine.MatchString(sentence) {
			return nil
		}
		return []Statement{{"User asked to remember: " + n.englishThird(m.Role, what), AboutUser, KindOther, 0.9}}
	}
	return n.englishClauses(sentence, m)
}

func (n Names) englishClauses(sentence string, m Line) []Statement {
	sentence = englishBreak.ReplaceAllStringFunc(sentence, func(s string) string {
		return "\n" + strings.TrimLeft(s, ",;:-–— ")
	})
	var out []Statement
	for clause := range strings.SplitSeq(sentence, "\n") {
		clause = englishLead.ReplaceAllString(strings.TrimSpace(clause), "")
		clause = englishEnd.ReplaceAllString(behind.ReplaceAllString(clause, ""), "")
		if m.Role == RoleCharacter {
			out = append(out, n.englishPledge(clause)...)
			continue
		}
		if m := englishLove.FindStringSubmatch(clause); m != nil {
			text := "User " + strings.ToLower(m[1]) + "s " + n.character("the character")
			out = append(out, Statement{text, AboutRelationship, KindRelation, 0.8})
			continue
		}
		text, r, ok := firstRule(englishRules(), clause)
		if !ok && englishGreeting.MatchString(m.Text) {
			r = englishIntroduction
			text, ok = r.read(clause)
		}
		if ok {
			out = append(out, Statement{n.englishThird(m.Role, text), AboutUser, r.kind, r.importance})
		}
	}
	return out
}

// englishPledge keeps a promise that is called one, that has a time, or that is for ever.
func (n Names) englishPledge(clause string) []Statement {
	who := n.character("The character")
	if m := englishVow.FindStringSubmatch(clause); m != nil && !idleWords.MatchString(m[1]) && !pointingAlone.MatchString(m[1]) {
		return []Statement{{who + " promises: " + n.englishThird(RoleCharacter, m[1]), AboutCharacter, KindPromise, 0.7}}
	}
	m := englishWill.FindStringSubmatch(clause)
	if m == nil || idleWords.MatchString(m[1]) || pointingAlone.MatchString(m[1]) || !lasting.MatchString(m[1]) {
		return nil
	}
	will := " will "
	if strings.HasPrefix(strings.ToLower(clause), "i won't") {
		will = " won't "
	}
	return []Statement{{who + will + n.englishThird(RoleCharacter, m[1]), AboutCharacter, KindPromise, 0.6}}
}

var pointingAlone = regexp.MustCompile(`(?i)\b(?:it|this|that|so|them|him|her)$`)

var englishPronouns = regexp.MustCompile(`(?i)\b(?:i am|i'm|i've|i'll|i|my|me|mine|myself|you're|you|your|yours|yourself)\b`)

// englishThird turns a statement from the first person into the third.
func (n Names) englishThird(role Role, text string) string {
	other := n.character("the character")
	if role == RoleCharacter {
		other = "the user"
	}
	return englishPronouns.ReplaceAllStringFunc(text, func(w string) string {
		switch w = strings.ToLower(w); w {
		case "you're":
			return other + " is"
		case "your", "yours":
			return other + "'s"
		}
		return cmp.Or(thirdPerson[w], other)
	})
}

var thirdPerson = map[string]string{
	"i": "they", "i am": "they are", "i'm": "they are", "i've": "they have", "i'll": "they will",
	"my": "their", "me": "them", "mine": "theirs", "myself": "themselves",
}
