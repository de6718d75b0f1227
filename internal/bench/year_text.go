package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"

	"nodest/chat"
)

// yearChat are the texts of a long chat: exchanges of a line of the user, of about 200 bytes,
// and a reply of about 1,000, spread over a year. Every eighth day is Chinese. The same seed
// gives the same texts.
type yearChat struct {
	seed      uint64
	exchanges int
}

// plantedEvery is how many exchanges there are to one whose line has a fact that a question can
// ask for.
const plantedEvery = 20

// line is message i of the chat.
func (y yearChat) line(i int) line {
	e := i / 2
	perDay := max(1, (y.exchanges+364)/365)
	day, slot := e/perDay, e%perDay
	at := time.Date(2025, 1, 1, 8, 0, 0, 0, time.UTC).AddDate(0, 0, day).Add(time.Duration(slot) * 6 * time.Hour / time.Duration(perDay))
	if slot >= perDay/2 { // the evening
		at = at.Add(5 * time.Hour)
	}
	words := yearWords[0]
	if day%8 == 7 {
		words = yearWords[1]
	}
	r := rand.New(rand.NewPCG(y.seed, uint64(i)))
	if i%2 == 1 {
		return line{chat.RoleAssistant, "Mara", words.talk(r, 600+r.IntN(800)), at.Add(20 * time.Second)}
	}
	l := line{role: chat.RoleUser, name: "Ada", at: at}
	begin := ""
	if e%plantedEvery == plantedEvery/2 {
		begin = y.fact(e/plantedEvery, words) + words.join
	}
	if i == 0 {
		begin = "Remember " + rareWord + ". "
	}
	l.text = begin + words.talk(r, 100+r.IntN(200)-len(begin))
	return l
}

// facts is how many facts the chat has.
func (y yearChat) facts() int { return (y.exchanges + plantedEvery/2 - 1) / plantedEvery }

// planted are the words of a fact.
func (y yearChat) planted(k int) (who, name, thing, place string) {
	r := rand.New(rand.NewPCG(y.seed, 1<<40+uint64(k)))
	people, things := yearWords[0].words["who"], yearWords[0].words["n"]
	name = syllables(uint64(k)+y.seed*100_003, 4)
	return people[r.IntN(len(people))], name, things[r.IntN(len(things))], syllables(r.Uint64N(300), 2) + "ville"
}

// fact is a line that says something about a person whom no other line names.
func (y yearChat) fact(k int, words *yearScript) string {
	who, name, thing, place := y.planted(k)
	return fmt.Sprintf(words.fact, who, name, thing, place)
}

// question asks for a fact; answer is in the line that has it.
func (y yearChat) question(k int) (text, answer string) {
	who, name, thing, place := y.planted(k)
	return fmt.Sprintf("Do you remember where my %s %s took the old %s last year, and what we said about it?", who, name, thing), place
}

// syllables is a name made from a number.
func syllables(n uint64, count int) string {
	var b strings.Builder
	for range count {
		b.WriteByte("bdfgklmnprstvz"[n%14])
		n /= 14
		b.WriteByte("aeiou"[n%5])
		n /= 5
	}
	name := b.String()
	return strings.ToUpper(name[:1]) + name[1:]
}

// yearScript makes texts in a language: sentences from frames, whose gaps are filled with words
// as frequent as in real texts.
type yearScript struct {
	frames [][]string // parts; the odd ones are names of words
	words  map[string][]string
	fact   string
	join   string
}

// talk makes a text of about size bytes.
func (s *yearScript) talk(r *rand.Rand, size int) string {
	var b strings.Builder
	for b.Len() == 0 || b.Len() < size {
		if b.Len() > 0 {
			b.WriteString(s.join)
		}
		s.sentence(&b, r)
	}
	return b.String()
}

func (s *yearScript) sentence(b *strings.Builder, r *rand.Rand) {
	for i, part := range s.frames[r.IntN(len(s.frames))] {
		switch words := s.words[part]; {
		case i%2 == 0:
			b.WriteString(part)
		case r.IntN(40) == 0: // a word that comes seldom
			b.WriteString(strings.ToLower(syllables(skewed(r, 60_000), 3)))
		default:
			b.WriteString(words[skewed(r, len(words))])
		}
	}
}

// skewed is a number below n; small ones are frequent, as the first words of a language are.
func skewed(r *rand.Rand, n int) uint64 {
	f := r.Float64()
	return uint64(f * f * f * float64(n))
}

func newYearScript(join, fact, frames string, words map[string]string) *yearScript {
	s := &yearScript{join: join, fact: fact, words: map[string][]string{}}
	for frame := range strings.SplitSeq(frames, "|") {
		s.frames = append(s.frames, strings.Split(strings.ReplaceAll(frame, "}", "{"), "{"))
	}
	for kind, list := range words {
		for word := range strings.FieldsSeq(list) {
			s.words[kind] = append(s.words[kind], strings.ReplaceAll(word, "-", " "))
		}
		if !strings.Contains(list, " ") { // Chinese: two characters each
			s.words[kind] = nil
			for len(list) > 0 {
				_, first := utf8.DecodeRuneInString(list)
				_, second := utf8.DecodeRuneInString(list[first:])
				s.words[kind], list = append(s.words[kind], list[:first+second]), list[first+second:]
			}
		}
	}
	return s
}

// yearWords are the languages of a yearChat: English and Chinese.
var yearWords = [2]*yearScript{
	newYearScript(" ", "My %s %s moved the old %s to %s last year.",
		"I {v} the {n} by the {p} {t}, and it was {a}.|You know, the {n} at the {p} looks {a} {t}.|My {who} {v} a {a} {n} for me {t}.|"+
			"What do you make of the {a} {n} that we {v} at the {p}?|{t} we {v} the {n}, and nobody minded.|The {n} and the {n} were both {a}, so I {v} them.|"+
			"I would rather have a {a} {n} than another {n} from the {p}.|It took all of the morning until the {n} was {a} again.|"+
			"There is a {n} in the {p} that my {who} {v} {t}.|Honestly, a {a} {p} without a {n} is no {p} at all.|Did your {who} ever say why the {n} was so {a}?|"+
			"I dreamt that the {p} was full of {a} things, and a {n} sang.|She smiled, {v} the {n}, and walked towards the {p}.|Let me tell you about the {n} that I {v} {t}.|"+
			"The {a} light over the {p} reminded me of a {n} from long ago.|We should go back to the {p} before the {n} gets {a}.|"+
			"He never liked the {n}, but my {who} {v} it anyway, {t} of all days.|Tea helps, and so does a {a} {n}.",
		map[string]string{
			"n": "letter kettle lamp book coat bicycle garden dog cat window door table song picture bread soup apple key map clock radio bag boat bridge candle chair " +
				"coin cup dress engine feather fence flute glove guitar hammer hat jar jacket ladder lantern leaf mirror needle notebook oven painting paper pen piano pillow " +
				"plate pocket poem pot quilt ribbon ring rope scarf shelf shirt shoe spoon stamp stone stove suitcase sweater telescope ticket towel toy train tree trumpet umbrella " +
				"vase violin wagon wallet watch wheel whistle anchor basket blanket bottle bowl box bucket button cake camera card carpet cello chest compass cookie cradle crown " +
				"curtain cushion drum easel envelope fiddle flag kite knife knot lens marble mask medal mug nail net oar orchid parcel pebble plum postcard puppet puzzle rake",
			"v": "found fixed lost bought painted sold cleaned carried moved borrowed broke dropped forgot hid kept liked missed opened packed planted pushed read repaired saw sent shared " +
				"showed stole tasted threw tried used wanted washed wrapped admired baked burned buried caught chose counted covered drew fed filled folded gathered hung lifted mended",
			"a": "old red quiet small warm blue broken bright cold dusty empty familiar fine gentle golden green grey heavy huge kind late light lonely long lovely new noisy odd pale plain " +
				"pretty rough round rusty sad sharp shiny short silver simple slow soft strange strong sweet tall thin tiny tired wet white wild wooden wrong yellow young careful clever",
			"p":   "kitchen harbour market station garden river school library bakery beach bridge café cellar church corner courtyard farm field forest gate hall hill hospital island lake lighthouse mill museum office orchard park porch roof square stairs street theatre tower valley village wharf workshop",
			"t":   "yesterday today tonight again once twice recently on-Monday on-Friday on-Sunday at-noon at-dawn in-spring in-winter last-week last-month in-the-rain before-supper after-work",
			"who": "sister brother mother father aunt uncle cousin neighbour friend teacher grandmother grandfather nephew niece doctor colleague landlord roommate boss partner",
		}),
	newYearScript("", "我的%s %s去年把旧的%s搬到了%s。",
		"{t}我在{p}把{n}{v}了。|你觉得那个{a}的{n}怎么样？|我的{who}{t}{v}了一个{a}的{n}。|{p}里的{n}很{a}，我们都很喜欢。|说真的，没有{n}的{p}就不算{p}。|"+
			"她笑了笑，{v}了{n}，慢慢走向{p}。|那天的{n}让我想起了{p}，心里有点{a}。|{t}下雨了，{who}还是去{p}{v}了{n}。|我宁愿要一个{a}的{n}，也不要两个{n}。|我们什么时候再去{p}看{n}？",
		map[string]string{
			"n":   "茶壶台灯书本外套单车花园小狗窗户桌子照片面包苹果钥匙地图时钟收音雨伞蜡烛椅子杯子吉他手套帽子梯子灯笼镜子笔记钢琴枕头盘子围巾毛衣车票玩具火车树叶花瓶手表相机",
			"v":   "找到修好弄丢买来画完卖掉洗净搬走借走打碎忘记藏好留下打开收拾种下寄出分享尝试包好",
			"a":   "古老安静温暖明亮冰冷空荡熟悉温柔沉重巨大善良孤单可爱奇怪简单柔软甜美疲惫潮湿聪明",
			"p":   "厨房港口市场车站学校海边老街教堂农场森林医院小岛湖边灯塔公园屋顶广场剧院山谷村子",
			"t":   "昨天今天今晚后来最近周一周五周日中午清晨春天冬天上周上月",
			"who": "姐姐哥哥妈妈爸爸姑姑叔叔表弟邻居朋友老师奶奶爷爷同事房东",
		}),
}
