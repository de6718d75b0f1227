package loretool

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"nodest/card"
	"nodest/framework/worldinfo"
	"nodest/internal/sharedtest"
	"nodest/memory/lang"
)

// listOf is a book whose entries have ids "lore.NAME".
func listOf(entries ...card.Entry) *worldinfo.Vectorized {
	for i := range entries {
		entries[i].Vectorized = true
	}
	return worldinfo.Compile(worldinfo.Source{Name: "lore", Origin: worldinfo.OfCharacter, Entries: entries}).Vectorized()
}

// lines is a book of lines "NAME: TEXT".
func lines(text string) *worldinfo.Vectorized {
	var entries []card.Entry
	for line := range strings.Lines(strings.TrimSpace(text)) {
		name, content, _ := strings.Cut(line, ": ")
		entries = append(entries, card.Entry{ID: name, Content: strings.TrimSpace(content)})
	}
	return listOf(entries...)
}

const english = `
lighthouse: The lighthouse of Velmar has been dark since the great storm. {{char}} climbs its stairs every autumn to oil the lamp.
guild: The Thieves' Guild meets beneath the old brewery on Copper Street and is led by a woman called Sable.
plague: The grey plague turns the skin to ash within nine days. Only moonwort slows it.
dragon: Ysolde is a dragon of ice who sleeps beneath the glacier and wakes once in a century.
tavern: The Drunken Heron is a tavern at the harbour. Its landlord Bram waters the ale.
king: King Aldric the Third rules from the white palace. He lost an eye in the war against the north.
magic: Magic costs memories: every spell takes one from its caster, the oldest first.
train: The night train to Orsk leaves at two o'clock, and nobody who boarded it in winter has come back.
desert: Nomads of the Saffron Desert bury their dead in glass.
school: The academy of cartographers accepts twelve students each year.
sister: {{char}}'s sister Mirelle was taken by slavers from the coast.
coin: A silver crown is worth forty copper bits in the capital.
`

const chinese = `
灯塔: 维尔玛的灯塔自大风暴之后就熄灭了。{{char}}每年秋天都会爬上楼梯给灯加油。
公会: 盗贼公会在铜街的旧酿酒厂地下聚会，首领是一个叫貂的女人。
瘟疫: 灰色瘟疫会在九天内让皮肤化为灰烬，只有月见草能延缓它。
龙: 伊索德是一条冰龙，沉睡在冰川之下，每一百年醒来一次。
酒馆: 醉鹭是港口的一家酒馆，老板布拉姆往麦酒里掺水。
国王: 国王奥德里克三世住在白色宫殿，他在北方战争中失去了一只眼睛。
魔法: 施展魔法要付出记忆，每个咒语都会夺走施法者最早的一段记忆。
列车: 开往奥尔斯克的夜班列车凌晨两点出发，冬天上车的人没有一个回来。
沙漠: 藏红沙漠的游牧民用玻璃埋葬死者。
水灾: 那年六月十二，上游的青石堰决口，水在一个时辰内淹到了城隍庙的第三级台阶。全城四十八只路铃被冲走十九只。
学院: 制图师学院每年只招收十二名学生。
`

var people = lang.Names{User: "Ann", Character: "Alice"}

func found(t *testing.T, s *Service, list *worldinfo.Vectorized, texts ...string) (names []string) {
	t.Helper()
	ids, err := s.search(t.Context(), "ann", list, &question{texts: texts, names: people, now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		names = append(names, strings.TrimPrefix(id, "lore."))
	}
	return names
}

func TestWordsFindEntries(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	defer s.Close()
	for _, c := range []struct {
		book, text, want string
	}{
		{english, "Why is the lighthouse dark?", "lighthouse"},
		{english, "Who leads the thieves' guild?", "guild"},
		{english, "I think I have caught the grey plague.", "plague"},
		{english, "She whispers to the dragon beneath the glacier.", "dragon"},
		{english, "Let's ask Bram, the landlord.", "tavern"},
		{english, "What does a spell cost its caster?", "magic"},
		{english, "When does the night train leave?", "train"},
		{english, "How do the nomads bury their dead?", "desert"},
		{english, "I must find Mirelle.", "sister"},
		{chinese, "灯塔为什么熄灭了？", "灯塔"},
		{chinese, "盗贼公会的首领是谁？", "公会"},
		{chinese, "我好像染上了灰色瘟疫。", "瘟疫"},
		{chinese, "冰龙什么时候醒来？", "龙"},
		{chinese, "冰龙睡在哪里？", "龙"},
		{chinese, "港口的酒馆老板是谁？", "酒馆"},
		{chinese, "夜班列车几点出发？", "列车"},
		{chinese, "游牧民怎么埋葬死者？", "沙漠"},
		{chinese, "我想报考制图师学院。", "学院"},
	} {
		if got := found(t, s, lines(c.book), c.text); len(got) == 0 || got[0] != c.want || len(got) > 2 {
			t.Errorf("%q finds %v, want %s first", c.text, got, c.want)
		}
	}
	reply := "The harbour is quiet tonight. Alice points at the Drunken Heron, where Bram is still pouring ale."
	if got := found(t, s, lines(english), "Go on.", reply); !slices.Equal(got, []string{"tavern"}) {
		t.Errorf("the reply before finds %v", got)
	}
}

// Small talk, and words that everybody uses, bring nothing into a prompt.
func TestSmallTalkFindsNothing(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	defer s.Close()
	for _, text := range strings.Split("Hi!|Good morning, Alice.|How are you today?|What's up?|I'm fine, thanks, and you?|Haha, nice one.|ok|Really?|I'm so tired."+
		"|What do you want to do now?|Let's go.|I love you.|Tell me something about yourself.|What is your name?|*smiles and nods*|Good night, sleep well."+
		"|How was your year?|Did you sleep well?|I open the door and walk into the room.|That is a great idea!|I will be back in nine days.|Every year the same.|Come here.|She takes my hand and looks into my eyes.|We were at work all day.", "|") {
		if got := found(t, s, lines(english), text, "I am well, thank you. What would you like to talk about?"); len(got) > 0 {
			t.Errorf("%q finds %v", text, got)
		}
	}
	for _, text := range strings.Split("你好！|早上好，Alice。|今天过得怎么样？|第1轮：弟子今日在后山练剑1个时辰，遇到一只灵鹿。|在干嘛？|我很好，谢谢，你呢？|哈哈，真有意思。|好的|真的吗？|我好累。|你现在想做什么？|走吧。|我爱你。|跟我说说你自己吧。"+
		"|你今年过得怎么样？|我走进房间，打开灯。|她看着窗外的雨。|你叫什么名字？|*微笑着点点头*|晚安，好梦。|这个主意太棒了！|我九天后回来。|每年都一样。|过来。|她牵起我的手，看着我的眼睛。|我们工作了一整天。", "|") {
		if got := found(t, s, lines(chinese), text, "我很好，谢谢你。你想聊点什么？"); len(got) > 0 {
			t.Errorf("%q finds %v", text, got)
		}
	}
}

func TestAtMostFiveEntriesAreFound(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	defer s.Close()
	var entries []card.Entry
	for _, name := range strings.Fields("a b c d e f g h") {
		entries = append(entries, card.Entry{ID: name, Content: "The lighthouse keeper " + name + " of Velmar"})
	}
	if got := found(t, s, listOf(entries...), "Who is the lighthouse keeper of Velmar?"); len(got) != mostFound {
		t.Errorf("found %v", got)
	}
}

// The list leaves out entries that need no search.
func TestOnlyEntriesThatASearchCanBringInAreSearched(t *testing.T) {
	t.Parallel()
	list := listOf(card.Entry{ID: "a", Content: "x"}, card.Entry{ID: "off", Content: "x", Disable: true}, card.Entry{ID: "always", Content: "x", Constant: true},
		card.Entry{ID: "empty", Content: " "}, card.Entry{ID: "told", Content: "@@activate\nx"}, card.Entry{ID: "not", Content: "@@dont_activate\nx"},
		card.Entry{ID: "deep", Content: "@@depth 3\ny"})
	if len(list.Entries) != 2 || list.Entries[0] != (worldinfo.VectorizedEntry{ID: "lore.a", Text: "x"}) || list.Entries[1] != (worldinfo.VectorizedEntry{ID: "lore.deep", Text: "y"}) {
		t.Errorf("%+v", list.Entries)
	}
}

// Everyday chats of other people have nothing to do with an invented town: few of their messages bring something of
// it into a prompt.
func TestChatsAboutOtherThingsFindLittle(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	defer s.Close()
	for _, c := range []struct {
		book, chat string
		most       float64 // share of the messages
	}{
		{"lore-lanternport.md", "data/locomo/dev.json", 0.025}, {"lore-lanternport.md", "data/madial/madial_en_context.jsonl", 0.025},
		{"lore-雾渡城.md", "data/madial/madial_zh_context.jsonl", 0.015}, {"lore-雾渡城.md", "data/madial/madial_zh.jsonl", 0.015},
	} {
		var entries []card.Entry
		for i, part := range strings.Split(string(sharedtest.Read(t, "data/kb/docs/"+c.book)), "\n\n") {
			entries = append(entries, card.Entry{ID: strconv.Itoa(i), Content: part})
		}
		list, messages, some := listOf(entries...), 0, 0
		for line := range strings.Lines(string(sharedtest.Read(t, c.chat))) {
			var m struct{ X string }
			if err := json.Unmarshal([]byte(line), &m); err != nil || m.X == "" || messages == 2000 {
				continue
			}
			messages++
			if len(found(t, s, list, m.X)) > 0 {
				some++
			}
		}
		t.Logf("%s: %d of %d messages of %s find something", c.book, some, messages, c.chat)
		if messages < 100 || float64(some) > c.most*float64(messages) {
			t.Errorf("%s: %d of %d messages of %s find something", c.book, some, messages, c.chat)
		}
	}
}
