package lang

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"nodest/index"
)

// Chinese, Japanese and Korean are indexed by pairs of characters, which are no words. A
// question is split at characters that mean little by themselves; what remains between two of
// them is a word, of one character (狗 车 家 茶) or several.

// littleCharacters, besides functionCharacters, end a word of a question: common verbs, measure
// words, and question words.
const littleCharacters = "叫说讲聊问诉想觉知记养喝吃看听买卖住做玩读送放拿只条几谁何怎啥咱俩之其而但因所且若该真太更些着呀哦嘛哈嗯最近里上下外好多少" +
	"はがをにでのともへやかねよだすまたしれるなさいうくんっけどらりみつそあこえおきせてめろわ何誰私僕俺君ー" // of Japanese

// everydayCharacters are weak evidence alone: they are about time, size, doing.
const everydayCharacters = "人岁大小新旧老高低长短快慢早晚前后左右男女天日年月周时分秒次回遍点半总全每各另刚正越挺够对错假坏见谈等用走跑进出起坐站躺睡醒笑哭怕帮带换找算行成变猜事话意声色样种名位件张块片段层本定当"

// wholeWords are common words with such a character in them.
var wholeWords = WordSet("可乐 可可 可爱 未来 将来 会议 社会 机会 对象 女的 男的 得分 知识 日记 记者 厨师 爱人 爱好 爱情 恋爱 好友 好莱坞 少年 少女 理想 梦想 想象 小说 传说 音乐 听力 看法 住址 住宅 住院 做法" +
	" 玩具 玩偶 玩家 读书 读者 条件 面条 油条 薯条 几何 厕所 研究所 真相 太太 太阳 太极 道歉 道路 味道 街道 频道 跆拳道 行为 到达 过年 过敏 过程 通过 难过 经过 上海 上班 下班 上学 下雨 下雪 中国 中学 中文 中秋 外国 外婆 外公 大学" +
	" 不同 都市 首都 成都 京都 就业 就医 和平 和服 在线 在职 存在 有名 以色列 能力 能量 功能 可能 要求 重要 需要 主要 请假 请求 申请 被子 被套 把手 来源" +
	" 小时候 放假 放学 放心 放弃 放松 播放 解放 拿手 拿铁 过去 去年 去世 最后 讨论 说明 说法 故事 目的 目的地 出租车 近视 附近 ねこ いぬ すし りんご みかん さくら おちゃ ごはん うさぎ とり くるま")

var emptyWords = WordSet("什么 怎么 怎样 为什么 时候 时间 地方 东西 事情 名字 名称 喜欢 讨厌 觉得 知道 记得 记住 告诉 最近 现在 目前 如今 以前 之前 以后 之后 从前 今天 昨天 明天 昨晚 今晚 问题 自己 大家 一起 一下 一些 一个 一只 一条 一点 开始 已经 正在 应该 所以 因为 但是 没有 还有 这个 那个 哪里 哪儿 哪个 你们 我们 他们 她们 咱们 可以 需要 打算 准备 希望 想要 刚才 刚刚 还是 或者 如果 有点 真的 其实 非常 特别 比较 名前 何処 今日 昨日 明日 了解 再见 所有 最好 起来 出来 下来 聊天 聊聊 说说 看看 好像 这里 那里 这边 那边 这样 那样 这么 那么 有时 有时候 经常 总是 一直 永远 从来 每次 整天 今早 今年 意思" +
	" 别人 有人 任何 一样 一定 一会儿 差不多 几乎 完全 肯定 当然 也许 大概 必须 突然 终于 马上 立刻 好久 一点儿 好多 许多 很多")

var hardlyWords = WordSet("每天 早上 上午 中午 下午 晚上 半夜 周末 外面 里面 上面 下面 前面 后面 旁边 心情 感觉 样子 天气 一个人")

// beginsWith returns the length in bytes of the word that text begins with.
func beginsWith(text string, words map[string]bool) int {
	for _, n := range [...]int{9, 6} { // bytes: three characters, two
		if len(text) >= n && words[text[:n]] {
			return n
		}
	}
	return 0
}

// particles follow Korean words, the longest first.
var particles = strings.Fields("에서는 에게서 에게는 한테는 으로는 이라고 까지는 부터는 에는 에도 와는 과는 에서 에게 한테 으로 까지 부터 처럼 보다 이나 이랑 하고 라고 은 는 이 가 을 를 에 의 도 와 과 로 만 랑 야 요")

var predicates = WordSet("뭐 뭐야 뭐예요 무엇 어디 어디야 어디예요 누구 누구야 언제 언제야 몇 살 살이야 이름 있어 있어요 없어 없어요 했어 했지 해 해요 좋아해 좋아하니 좋아해요 내 나 나는 내가 너 너는 네 네가 우리 그 이 저 그것 이것 정말 아주 너무 기억해 기억나 알아 알려줘 말해줘 어떻게 왜 제 저는 제가")

// denseWords are the words in a folded text without spaces: the evidence of their pairs, and
// single characters.
type denseWords struct {
	proof map[string]float32
	extra []index.Term // single characters
	some  bool         // there is a character of these scripts
}

// How much a single character counts: alone between two that mean little it is a word, else a
// part of one.
const (
	loneWeight = 1
	partWeight = 0.15
)

// weight is that of a pair in a question.
func (d *denseWords) weight(t string) float32 {
	r, n := utf8.DecodeRuneInString(t)
	second, _ := utf8.DecodeRuneInString(t[n:])
	_, whole := d.proof[t]
	switch {
	case unicode.Is(unicode.Hangul, r) && !whole, unicode.Is(unicode.Hiragana, r) && unicode.Is(unicode.Hiragana, second) && !whole:
		return functionTerm
	case unicode.Is(unicode.Hiragana, r) != unicode.Is(unicode.Hiragana, second) && !whole:
		return weakTerm
	}
	return denseWeight(t)
}

func denseWordsOf(folded string) denseWords {
	d := denseWords{proof: map[string]float32{}}
	var word []rune
	hangul, whole, empty := false, 0, 0 // where a whole word and an empty one end
	end := func() {
		d.enter(word, hangul)
		word = word[:0]
	}
	for at, r := range folded {
		if at >= max(whole, empty) && r >= 0x2e80 {
			if empty = at + beginsWith(folded[at:], emptyWords); empty == at {
				if n := wholeWord(folded[at:]); n > 0 || at == whole {
					end()
					whole = at + n
				}
			}
		}
		isHangul := unicode.Is(unicode.Hangul, r)
		dense := isDense(r)
		d.some = d.some || dense
		cut := !dense || at < empty || !isHangul && at >= whole && meansLittle(r, len(word))
		if cut || isHangul != hangul {
			end()
		}
		if hangul = isHangul; !cut {
			word = append(word, r)
		}
	}
	end()
	return d
}

func wholeWord(text string) int {
	return max(beginsWith(text, wholeWords), beginsWith(text, hardlyWords))
}

func isDense(r rune) bool { return IsCJK(r) || r == 'ー' }

func (d *denseWords) enter(word []rune, hangul bool) {
	if hangul {
		d.korean(word)
	} else {
		d.add(word)
	}
}

// meansLittle reports whether a character ends a word. The long mark ends none that has begun.
func meansLittle(r rune, begun int) bool {
	if r == 'ー' {
		return begun == 0
	}
	return strings.ContainsRune(functionCharacters, r) || strings.ContainsRune(littleCharacters, r)
}

// add enters a word. Its pairs and characters together are as much evidence as a word.
func (d *denseWords) add(word []rune) {
	switch n := len(word); n {
	case 0:
		return
	case 1:
		if unicode.In(word[0], unicode.Hiragana, unicode.Katakana) {
			return
		}
		t := index.Term{Text: string(word), Weight: loneWeight, Evidence: 1}
		if strings.ContainsRune(everydayCharacters, word[0]) {
			t.Weight, t.Evidence = weakTerm, provesHardly
		}
		d.extra = append(d.extra, t)
	default:
		if hardlyWords[string(word)] {
			d.proof[string(word[:2])] = provesHardly
			return
		}
		parts := float32(0) // what the characters prove that the pairs are made of
		for _, r := range word {
			if unicode.Is(unicode.Han, r) {
				parts += partWeight
				d.extra = append(d.extra, index.Term{Text: string(r), Weight: partWeight, Evidence: partWeight, Extra: true})
			}
		}
		for i := range n - 1 {
			d.proof[string(word[i:i+2])] = (float32(n)/2 - parts) / float32(n-1)
		}
	}
}

// korean enters a word without its particle.
func (d *denseWords) korean(word []rune) {
	text := string(word)
	if len(word) == 0 || predicates[text] {
		return
	}
	for _, p := range particles {
		if rest, ok := strings.CutSuffix(text, p); ok {
			text = rest // nothing, where it stood behind a date
			break
		}
	}
	if !predicates[text] {
		d.add([]rune(text))
	}
}

// addTo adds the single characters to terms, in place of equal ones.
func (d *denseWords) addTo(terms []index.Term, names map[string]bool) []index.Term {
	for _, t := range d.extra {
		at := slices.IndexFunc(terms, func(o index.Term) bool { return o.Text == t.Text })
		switch {
		case names[t.Text]:
		case at < 0:
			terms = append(terms, t)
		case t.Evidence > terms[at].Evidence:
			terms[at] = t
		}
	}
	return terms
}
