package intent

import (
	"regexp"
	"strings"
	"unicode"
)

type english struct{}

var (
	enOrder = regexp.MustCompile(`\b(?:search|look|check) (?:\w+ ){0,3}?(?:online|on (?:google|the (?:web|internet|net))|the (?:web|internet|net)\b)` +
		`|\b(?:google|bing)(?: it| that| this|\s*["“]|[ :]+\w+)` +
		`|` + enAsked + `(?:do an? (?:\w+ )?search|search (?:for|up|about)|search:|look up (?:how|what|when|where|who|why|if|the|a|some|["“]|\w)|look (?:it|that|this|them) up` +
		`|find me (?:an?|the|some|more)? ?(?:\w+ )?(?:article|information|info|source|video|recipe|link|website|page|study|studies|paper|restaurant|hotel|cafe|place|flight|train|data|statistic)s?)\b` +
		`|(?:^\W*|\bplease |\b(?:can|could|would|will) you (?:please )?)find out (?:how|what|when|where|who|why|if|whether|about)\b` +
		`|\bwhat (?:does|do) (?:wikipedia|google|the (?:internet|web)) say\b|\baccording to (?:wikipedia|google)\b`)
	// enInScene is what one searches in a story, or with the eyes.
	enInScene = regexp.MustCompile(`\b(?:search|look up|find)\b.*\b(?:room|chest|house|forest|woods|body|bodies|pockets?|bag|cave|desk|drawers?|tower|castle|village|dungeon|ship|cellar|key|clues?|survivors?)\b|\blook(?:s|ed|ing)? up (?:at|to|from|into|and|when|as|slowly)\b`)

	// enWrapper is what surrounds a question without being part of it.
	enWrapper = regexp.MustCompile(`\b(?:(?:do|did) you (?:happen to )?know(?: if| whether)?|any idea|(?:can|could|would|will) you (?:please )?(?:tell|explain|show|remind)(?: to)?(?: me| us)?|(?:please )?tell me|let me know|i(?:'d| would)? (?:want|like) to know|i wonder(?: if| whether)?|i was wondering(?: if| whether)?|i(?:'m| am) curious(?: about)?|(?:can|could) you please|please|are there|is there|there (?:is|are)|in your opinion|(how) (?:do|can|would|should) you (make|cook|bake|remove|fix|clean|get rid|spell|pronounce|calculate|build|grow|use|install|change|play)|\p{L}+ ya)\b`)
	enTag     = regexp.MustCompile(`,\s*(?:(?:is|are|was|were|do|does|did|have|has|can|could|will|would|should)(?:n't)? (?:he|she|it|we|they|there|this|that|you|i)|right|huh|eh|no|yes)[^\pL]*$`)

	enAsks = regexp.MustCompile(`^\W*(?:(?:and|but|so|ok|okay|hey|hi|well|oh|hmm|um|also),?\s+)*(?:(?:what|who|whom|whose|which|when|where|why|how)(?:'s|'re|'d)?\s|(?:is|are|was|were|do|does|did|has|have|can|could|will|would|should|may)\s[^?]*[?]|any news\b)|\b(?:what|who|which|when|where|why|how)(?:'s)?\s[^?]*[?]`)
	// enVocative is a name that a message is addressed to.
	enVocative = regexp.MustCompile(`^\W*(?:(?i:hey|hi|hello|yo|dear|wow|cool|thanks|thank you|ok|okay|oh|so|well|yeah|yes|no|sure|great|awesome)[, ]+)*\p{Lu}\p{L}+[,!]\s*|,\s*\p{Lu}\p{L}+\s*[?!.]*$`)
	enRequest  = regexp.MustCompile(`\b(?:tell me|explain|describe|i(?:'d| would)? (?:want|like) to know|i wonder|curious about|show me|give me|let me know|do you know|list|define)\b`)
	enNoAsk    = regexp.MustCompile(`^\W*(?:guess|you know what|what if|how about|what about|have any|got any|anything|write|let's|translate|pretend|imagine|say|sing|that's)\b|^\W*(?:what an? [^?]*|how \w+[^?]*!)$`)

	enSpeakers = regexp.MustCompile(`\b(?:you(?:'re|'ve|'ll|'d)?|your|yours|yourself|my|mine|we(?:'re|'ve|'ll|'d)?|our|ours|us|me|myself|am)\b`)
	// enGeneral are questions in the first person that everybody may ask.
	enGeneral = regexp.MustCompile(`\b(?:how|where|when) (?:do|can|should|would|could) i\b|\b(?:do|should|can|would|must) i (?:need|take|use|buy|get|eat|bring|wear|visit|see|pay)\b`)
	enSelf    = regexp.MustCompile(`\bi(?:'m|'ve|'ll|'d)?\b`)
	enHow     = regexp.MustCompile(`\bhow (?:do|should|did) i (?:look|sound|smell|feel|know|trust|do)\b`)

	enExpletive = regexp.MustCompile(`\b(?:is it (?:true|possible|safe|legal|going to|raining|snowing|normal|in|healthy|worth|open)|will it (?:rain|snow|be)|(?:does|did|do|will|would) it (?:take|cost|rain|snow)|it (?:is|was|takes?|costs?|rains?|snows?)|it'?s)\b`)
	enScene     = regexp.MustCompile(`\b(?:this|these|those|here|everybody|everyone|anything|anybody|anyone|somebody|someone|something|over there|outside|upstairs|downstairs)\b|\bthere\W*$|\bwho'?s there\b|\b(?:is|was|are|what's|who's|did|hear|see|do|like|about|mean|than) that\b|^\W*that\b|\bthat\W*$`)
	// enSomeone refers to somebody or something that the question may have named.
	enSomeone = regexp.MustCompile(`\b(?:he|she|him|her|hers|his|they|them|their|it|its)\b`)
	// enThis are times that begin like things of the scene.
	enThis = regexp.MustCompile(`\b(?:this (?:year|month|week|weekend|morning|afternoon|evening|summer|winter|spring|autumn|fall|season|time|monday|tuesday|wednesday|thursday|friday|saturday|sunday)|these days)\b`)

	enFresh = regexp.MustCompile(`\b(?:weather|forecast|temperature|rain|snow|storm|price|prices|cost|costs|how much (?:is|are|does|do|for)|stock|stocks|shares|share price|exchange rate|bitcoin|news|headlines?|latest|newest|current|currently|right now|at the moment|next (?:year|season|month|week|election|match|game)|this (?:year|month|week|weekend|season|summer|winter)|today|tonight|tomorrow|yesterday|last (?:night|week|month)|20[2-9]\d|release date|come out|comes out|coming out|released|schedule|score|scores|standings|who won|won|winning|opening hours|closed|playing at|airing|election|president|prime minister|ceo|timetable|traffic|delayed|available|in stock)\b`)

	// enFrame are questions about the world whatever their words.
	enFrame = regexp.MustCompile(`\b(?:capital of|population of|who (?:wrote|painted|composed|directed|invented|discovered|founded|designed|sang|sings|coined|starred)|what does (?:the (?:word|term|phrase) )?\S+(?: \S+)? (?:mean|stand for)|what (?:year|century)|in which (?:year|country|city)|which (?:country|city|planet|animal|language|continent)s?|(?:symptoms|causes|history|recipe|recipes|lyrics|definition|origin|author|plot|ingredients) (?:of|for)|difference between|was \w+ (?:invented|discovered|founded)|when was|how to|speed of|distance (?:from|between)|how far .* (?:from|to))\b`)
	// enUnique are things that "the" does not tie to a scene.
	enUnique = regexp.MustCompile(`\bthe (?:sky|sun|moon|earth|sea|ocean|world|universe|internet|human|brain|heart|body|government|economy|planet|solar system|equator|(?:printing )?press|telephone|wheel|radio|weather|forecast|news|latest|newest|current|temperature|(?:exchange )?rate|price|cost|capital|score|(?:game|match) last|stock|election|best|most|first|last|next|largest|biggest|tallest|longest|oldest|fastest|average|same|word|term|phrase|north|south|east|west|president|prime minister|film|movie|book|\w+ (?:of|between|for|from))\b`)
	enThe    = regexp.MustCompile(`\bthe \p{L}`)

	enFunction = enWords(`a an and any are as at be been by can could did do does for from get gets give go goes going had has have how i if in into is it its just know like make many may me more most much must no not of on one or other our out over please so some such than that the their them then there these they this those to too up was were what what's when where where's which who who's whom whose why will with would you your
		ok okay really sure yes hey hi hello oh well hmm still ever now then even also explain tell describe about define s`)
	// enEveryday are things of every chat; a question of nothing else is small talk.
	enEveryday = enWords(`wrong new up next happening happen happens happened left dinner lunch breakfast tea coffee food bed home plan matter point problem love life happiness freedom death truth friendship beauty fear hope meaning old friend darling dear honey sweetheart buddy thing things stuff time today tonight tomorrow day night morning good bad nice fine ready true real sleep mother father mom dad brother sister master question answer name fun cold warm hungry tired happy sad bored alone safe funny serious cute pretty mean say said think feel feeling stop wait come leave hurt fault idea joke story kiss hug secret favorite favourite`)
)

// enAsked begins an order: the start of a sentence, or words of asking.
const enAsked = `(?:^\W*|[.!?;:,]\s*|\b(?:please|can you|could you|would you|will you|go|and|let's|let us|you should|i want you to|i need you to|just|to|hey|ok|okay|now|then)\s+(?:please |quickly |just |also |maybe |first )?)`

func enWords(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}

func (english) orders(folded string) bool {
	return enOrder.MatchString(folded) && !enInScene.MatchString(folded)
}

// question takes the sentence that is a search, or else the last one that asks.
func (english) question(said, _ string) Reason {
	reason := Chat
	list := sentences(said)
	long := 0
	for _, sentence := range list {
		if len(strings.Fields(sentence)) > 2 {
			long++
		}
	}
	for _, sentence := range list {
		switch r := enSentenceAsks(enVocative.ReplaceAllString(sentence, ""), long <= 1); r {
		case Fresh, Fact:
			return r
		case Chat:
		default:
			reason = r
		}
	}
	return reason
}

var sentenceEnd = regexp.MustCompile(`\.["')]*\s+|[!?。]+["')”」]*\s*|\n+`)

func sentences(text string) (list []string) {
	from := 0
	for _, end := range sentenceEnd.FindAllStringIndex(text, -1) {
		list = append(list, text[from:end[1]])
		from = end[1]
	}
	if from < len(text) || len(list) == 0 {
		list = append(list, text[from:])
	}
	return list
}

// enDetailed is the content of a question that says enough to be about the world, whatever
// "the" in it refers to.
const enDetailed = 6

// enSentenceAsks judges one sentence. If it is not alone but for greetings, it must name what it asks about: chats are
// full of short questions about what was just said.
func enSentenceAsks(said string, alone bool) Reason {
	folded := strings.TrimSpace(strings.ToLower(said))
	folded = enTag.ReplaceAllString(folded, "")
	if enNoAsk.MatchString(folded) {
		return Chat
	}
	rest := strings.TrimSpace(enWrapper.ReplaceAllString(folded, " $1 $2 "))
	fresh, framed, named := enFresh.MatchString(folded), enFrame.MatchString(rest), hasName(said)
	content := enContent(rest)
	asks := enRequest.MatchString(folded) || enAsks.MatchString(rest) || enIsKeywords(rest, fresh || framed)
	if !asks || content == 0 && !(fresh && named) {
		return Chat
	}
	if reason, ok := enOurs(rest, fresh, named); ok {
		return reason
	}
	if !named && !framed && content < enDetailed && enPoints(rest, alone) {
		return Story
	}
	if fresh {
		return Fresh
	}
	return Fact
}

// enPoints reports whether a question may refer to what was said or to something of the scene.
func enPoints(rest string, alone bool) bool {
	return !alone || enThe.MatchString(enUnique.ReplaceAllString(rest, " "))
}

// enOurs tells whether a question is about the speakers or the scene.
func enOurs(rest string, fresh, named bool) (Reason, bool) {
	general := enGeneral.MatchString(rest) && !enHow.MatchString(rest)
	if enSpeakers.MatchString(rest) || enSelf.MatchString(rest) && !general && !fresh {
		return Speakers, true
	}
	rest = enExpletive.ReplaceAllString(enThis.ReplaceAllString(rest, " "), " ")
	if enScene.MatchString(rest) || !named && enSomeone.MatchString(rest) {
		return Story, true
	}
	return "", false
}

// enContent counts the words that say what a question is about.
func enContent(rest string) (n int) {
	for w := range strings.FieldsFuncSeq(rest, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '\'' }) {
		w = strings.TrimSuffix(w, "'s")
		if !enFunction[w] && !enEveryday[w] {
			n++
		}
	}
	return n
}

var enSentence = regexp.MustCompile(`\b(?:i|i'm|you|he|she|it|we|they|is|are|was|were|am|be|been|have|has|had|do|did|will|would|can|could|just|so|not|don't|let's|this|that|bought|went|got|took)\b|[!]`)

// mostKeywords is the maximum length of a message of keywords only, in words.
const mostKeywords = 6

// enIsKeywords reports whether a message is what people type into a search box; topical says
// that it has words of such a search.
func enIsKeywords(rest string, topical bool) bool {
	words := len(strings.Fields(rest))
	return topical && words >= 2 && words <= mostKeywords && !enSentence.MatchString(rest)
}

var honorifics = enWords(`i lord lady sir madam master mistress captain king queen prince princess majesty highness god mom dad mother father doctor professor mr mrs ms miss monday tuesday wednesday thursday friday saturday sunday`)

// hasName reports whether a word in the middle of a sentence has a capital letter, or a word
// has a digit.
func hasName(said string) bool {
	starts := true
	for word := range strings.FieldsSeq(said) {
		core := strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		base, _, _ := strings.Cut(strings.ToLower(core), "'")
		if core != "" && !honorifics[base] {
			first := []rune(core)[0]
			if unicode.IsUpper(first) && !starts || strings.ContainsAny(core, "0123456789") {
				return true
			}
		}
		starts = strings.ContainsAny(word[len(word)-1:], `.!?:"`)
	}
	return false
}
