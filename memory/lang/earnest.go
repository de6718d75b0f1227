package lang

import (
	"regexp"
	"strings"
)

// What is not said in earnest gives rules no facts. The patterns rather leave out too much: the
// texts themselves are found anyway.
var (
	// joking marks a whole message.
	joking = patternOf(`(?i)\b(?:kidding|joking|jk|lo+l|lmao|rofl|(?:ha){2,}h?|(?:he){2,}|sarcas\w+|yeah,? right|as if)\b|(?:^|\s)/s\b|\b(?:oh,? )?sure,? i (?:just )?(?:love|like)\b|\boh,? (?:great|joy|wonderful|how nice)\b|\bi just (?:love|adore) |开玩笑|说笑|骗你|逗你|才怪|哈哈|呵呵|嘿嘿|嘻嘻|笑死|2333|hhh|可真(?:是)?(?:喜欢|爱|享受)|真是太(?:喜欢|爱)|[😂🤣🙄😜😝😏😹🤪]`)
	// takesBack is the beginning of the message after a joke.
	takesBack = patternOf(`(?i)^\W*(?:(?:no|nah|oh|sorry|haha|lol)\W+)*(?:(?:i'm |i am |i was )?(?:just |only )?(?:kidding|joking)|jk|just a joke|not really|psych)\b|^[\s\pP]*(?:哈+|嘿+|不|其实)?[\s\pP]*(?:(?:我)?(?:是)?(?:开个?玩笑|骗你|逗你|说着玩|瞎说|乱说))`)
	// playing marks a message that is part of a scene, a song or somebody else's text.
	playing = patternOf("(?i)\\*[^*\\n]+\\*|（[^）]*）|【[^】]*】|(?m:^\\s*\\([^)]*\\))|```|[♪♫🎵🎶]|\\blyrics\\b|\\bsong goes\\b|\\brole-?play|\\bin[- ]character\\b|\\booc\\b|\\(\\(|\\bmy character\\b|\\bonce upon a time\\b|\\bas (?:an?|your) [\\p{L}' -]{2,30}, i\\b|\\bin (?:this|the|our|my) (?:story|game|scene|play|novel)\\b|歌词|扮演|假装|剧情|设定|台词|剧本|游戏里|故事里|戏里|小说里|作为一?[名个位]")
	// supposed marks a sentence: conditions, dreams, doubts, and what others say.
	supposed = patternOf(`(?i)如果|要是|假如|假设|假使|倘若|若是|万一|除非|的话(?:[，,]|$)|比如|例如|听说|据说|传说|传闻|人家说|有人说|梦见|梦到|梦里|做梦|想象|好像|仿佛|似乎|可能|也许|或许|恨不得|就好了|差点|以前|曾经|小时候|(?:朋友|同事|同学|闺蜜|室友|妈|爸|老师|老板|医生|他|她|们|别人|大家|网上)(?:都|总|老|就|也|还|一直|经常|总是)*(?:说|认为|觉得|以为|讲过?|猜)` +
		`|\b(?:if|unless|suppose|supposing|imagine|pretend|i wish|dream(?:ed|t)?|what if|let's say|would|could|might|maybe|perhaps|probably|not sure|used to|apparently|supposedly|allegedly|rumou?r\w*|according to|word is|i(?:'ve)? hear[d]?|i was told|i'm told|as though)\b` +
		`|\b(?:he|she|they|people|everyone|everybody|somebody|someone|some|(?:my|the|our|her|his) [\p{L}'-]+(?: [\p{L}'-]+)?) (?:always |often |just |still |keeps? )*(?:says?|said|saying|thinks?|thought|claims?|believes?|reckons?|tells?|told|telling)\b|^>`)
	// formerly is the beginning of a sentence that continues with the present.
	formerly = patternOf(`(?i)\bi used to [^,;.]*?[,;]?\s(?:but |and )?now,? (i\b)|(我)(?:以前|曾经)(?:[是住当做]|在)[^，,。]*[，,]\s*(?:但是?|不过|可是?)?现在`)
	// correcting is how people correct what was known of them.
	correcting = patternOf(`(?i)\b(?:actually|real name|full name|legal name|changed my name|new name|renamed|correction|i meant|i misspoke|from now on|not [\p{L}\d]+ (?:any ?more|but)|call me|now|turned)\b|改名|改叫|改成|更正|纠正|其实|真名|真实|本名|大名|说错|记错|搞错|不是.{1,12}[，,]?(?:而)?是|从今|以后叫|现在|刚满|满了`)
)

// earnest reports whether rules may read a message. A character's promises are always part of
// its scene.
func earnest(m Line) bool {
	return !joking.MatchString(m.Text) && (m.Role == RoleCharacter || !playing.MatchString(m.Text))
}

// takenBack reports whether the user's next message says that this one was a joke.
func takenBack(all []Line, at int) bool {
	if all[at].Role != RoleUser {
		return false
	}
	for _, m := range all[at+1:] {
		if m.Role == RoleUser {
			return takesBack.MatchString(m.Text)
		}
	}
	return false
}

// Corrects reports whether a sentence of the user about text is a correction.
func Corrects(text string, sources []Line) bool {
	pieces := PiecesOf(text)
	for _, m := range sources {
		if m.Role != RoleUser {
			continue
		}
		for _, s := range SentencesOf(m.Text) {
			if correcting.MatchString(s) && SaidIn(s).Shares(pieces) {
				return true
			}
		}
	}
	return false
}

// What an object must not be: a reference to something mentioned elsewhere, or without content.
var (
	pointing = regexp.MustCompile(`(?i)\b(?:it|its|it's|this|these|those|them|him|her|he|she|his|they|their|you|your|yours|here|there|such|stuff|things?|everything|something|anything|nothing|someone|one|ones|same|both|others?|each other|together|that's|what|how|why|when)\b|^that\b|\bthat$|\b(?:to|in|of|at|with|about|for|from) that\b|^(?:seeing|hearing|knowing|having|being|getting|feeling|to (?:hear|know|see|say|think|ask|have|get|be|do|help|let|keep|share))\b|\b(?:waiting|traffic|taxes|mondays|paperwork|overtime)\b`)
	definite = regexp.MustCompile(`^(?:all )?the\b`)
	places   = regexp.MustCompile(`(?i)^the (?:beach|ocean|sea|outdoors|mountains?|forest|woods|countryside|city|rain|snow|sun|cold|heat|summer|winter|night|theat(?:er|re)|opera|cinema|piano|violin|guitar|cello|flute|drums|gym|library|blues)\b`)
	hanVague = regexp.MustCompile(`[这那你您他她它]|(?:喜欢|爱)(?:电影|影片|片子|书|小说|歌曲?|故事|游戏|剧|节目)[里中]|^(?:的|了|着|过|上了?|吗|就好|一些?|什么|怎么|东西|事情?)$|加班|堵车|排队|挨骂|被骂`)
)

// saysLittle reports whether the object of an English clause is not worth remembering.
func saysLittle(object string) bool {
	object = strings.TrimSpace(object)
	if object == "" || pointing.MatchString(object) || len(strings.Fields(object)) > 16 {
		return true
	}
	return definite.MatchString(object) && !places.MatchString(object) && !capitalised.MatchString(object[1:])
}
