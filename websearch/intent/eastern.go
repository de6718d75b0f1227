package intent

import "regexp"

// patterns are the rules of a language that has only a few: a question that has a word of the
// world and no word of the speakers is a search.
type patterns struct {
	order, asks, quoted, ours, fresh, fact *regexp.Regexp
}

var (
	japanese = patterns{
		order:  regexp.MustCompile(`検索|調べて|調べよう|ググ[っれ]|ネットで`),
		asks:   regexp.MustCompile(`[?]|か[。\s]*$|教えて|知りたい|とは`),
		quoted: regexp.MustCompile(`「[^」]*」|『[^』]*』`),
		ours:   regexp.MustCompile(`あなた|君|きみ|お前|私|僕|俺|わたし|二人|一緒|これ|それ|あれ|ここ|そこ|この|その|あの|そんな|彼|元気|好き|どうしたの`),
		fresh:  regexp.MustCompile(`天気|気温|ニュース|最新|値段|価格|いくら|株価|為替|発売|公開|営業時間|速報|現在の|今年の|試合`),
		fact:   regexp.MustCompile(`とは|何(?:です|でしょう|年|人|語)|誰|いつ|どこ|なぜ|どうして|どれ(?:くらい|ぐらい)|いくつ|どうやって|意味|首都|人口|高さ|作り方|方法`),
	}
	korean = patterns{
		order:  regexp.MustCompile(`검색|찾아 ?(?:봐|줘|주세요)|알아 ?(?:봐|보고)`),
		asks:   regexp.MustCompile(`[?]|[까니야지][.\s]*$|알려|궁금`),
		quoted: regexp.MustCompile(`"[^"]*"|'[^']*'`),
		ours:   regexp.MustCompile(`(?:^|\s)(?:너|넌|널|니|네|당신|나|난|날|내|우리|저|제|걔|그녀|그|이거|그거|저거|여기|거기)(?:[는은를을의가도랑와]|\s|$)`),
		fresh:  regexp.MustCompile(`날씨|기온|뉴스|최신|가격|얼마|주가|환율|개봉|출시|경기|현재|올해`),
		fact:   regexp.MustCompile(`누구|언제|어디|무엇|뭐야|뭐예요|왜|어떻게|몇|뜻|수도|인구|높이|방법`),
	}
)

func (p patterns) orders(folded string) bool { return p.order.MatchString(folded) }

func (p patterns) question(_, folded string) Reason {
	switch fresh := p.fresh.MatchString(folded); {
	case !p.asks.MatchString(folded):
		return Chat
	case p.ours.MatchString(p.quoted.ReplaceAllString(folded, " ")):
		return Speakers
	case fresh:
		return Fresh
	case p.fact.MatchString(folded):
		return Fact
	}
	return Chat
}
