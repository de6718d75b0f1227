package lang

import (
	"regexp"
	"slices"
)

// slot is one form of a fact about a property with one value at a time. Its named groups are
// the parts of the value; overGroup matches if the value has ended.
type slot struct {
	property string
	form     *regexp.Regexp
}

const (
	NameSlot  = "name" // the user's
	WorkSlot  = "work"
	overGroup = "over"
)

// The beginnings of facts.
const (
	ofUser   = `(?i)^(?:the )?user`
	aUser    = ofUser + ` `
	userNow  = aUser + `(?:(?:has )?(?:quit|left|lost|resigned|retired)\b.{0,60}? (?:and|but) )?(?:has |is |now |currently |just |finally )*`
	hanUser  = `^用户(?:` + hanNow + `|` + hanPast + `)*`
	enDayPut = `(?: (?:on|in|last|this|today|yesterday)\b.*)?`
)

// slots: the first matching form counts.
var slots = func() []slot {
	var all []slot
	add := func(property string, forms ...string) {
		for _, f := range forms {
			all = append(all, slot{property, regexp.MustCompile(f)})
		}
	}
	add(NameSlot, `(?:`+nameForms.String()+`)(?P<is>.*)$`)
	add("home",
		userNow+`(?:lives? in|resides? in|based in|settled in|(?:moved|relocated) (?:from .+ )?(?:away |back |out )?(?:in)?to)\b(?P<is>.*)$`,
		aUser+`(?:has )?(?P<over>moved|relocated) (?:out|away|from)\b(?: ?(?:of|from)?\b (?P<is>.*))?$`,
		aUser+`no longer (?P<over>lives) (?:here|there|(?:in|at|on) (?P<is>.*))$`,
		`^用户`+hanJust+`(?:从\S{1,12})?(?:(?P<over>搬走|搬家了?$|搬出)|不再?(?P<over>住)在?(?:[这那]\S*|(?P<is>\S{2,})))`,
		hanUser+`(?:住在?|家就?在|家住在?|`+hanMoved+`|定居在?)了?(?P<is>.*)$`)
	add("origin", aUser+`is (?:originally )?from\b(?P<is>.*)$`, `^用户(?:来自|老家(?:在|是)?)(?P<is>.*)$`)
	add("age", aUser+`(?:is|turned) (?:now )?(?P<is>\d+)(?: years old)?`+enDayPut+`$`, `^用户(?:`+hanNow+`|快|刚满|满)*(?P<is>[\d一二三四五六七八九十百]+)岁`)
	add("birthday", ofUser+`(?:'s birthday is| was born)\b(?P<is>.*)$`, `^用户的?生日(?P<is>.*)$`)
	add("", aUser+`is an? (?:\w+ )?(?:amateur|hobby|keen|avid|good|great|passionate|aspiring|future|former|retired)\b`) // read first: "a keen baker" is no job
	add(WorkSlot,
		aUser+`(?:is )?(?:no longer|not) (?P<over>works?|employed|an?)\b(?: (?:here|there)| (?:at|for|in) (?P<at>.+)|(?: as)?(?: an?)? (?P<as>(?:[\p{L}-]+ )?`+trade+`.*))?$`,
		userNow+`(?:works?|working|worked|employed|got a job|started) (?:as|a job as) (?P<as>.+?)(?: (?:at|for|in) (?P<at>.+))?$`,
		userNow+`(?:works?|working|employed|got a job) (?:at|for|in an?|in the) (?P<at>.+?)(?: as (?P<as>.+))?$`,
		userNow+`(?:became |an? )+(?P<as>(?:[\p{L}-]+ ){0,3}?`+trade+`)(?: (?:at|for|in) (?P<at>.+))?$`,
		ofUser+`'s (?:current |new )?(?:job|profession|occupation) is (?:now )?(?:as )?(?P<as>.+)$`,
		aUser+`(?:has |is |now |just |recently )*(?P<over>(?:quit|left|lost)(?: (?:their|the|his|her)(?: old| former)? (?:job|position)|$)|resigned|retired|unemployed|fired|laid off)\b`,
		`^用户`+hanJust+`(?:从\S{1,12}|把工作)?(?P<over>辞|离职|退休|跳槽|失业|下岗|转行|换了?工作|被(?:裁|辞退|开除))`,
		`^用户`+hanJust+`不再?(?:(?P<over>在)(?P<at>.+)(?:工作|上班|干)|(?P<over>[当做])(?P<as>.+))$`,
		hanUser+`在(?P<at>.+?)(?:工作|上班|任职|实习|[当做](?:一[名个位])?(?P<as>.{1,10}))$`,
		hanUser+`[是当做](?:一[名个位])?(?:在?(?P<at>[^的，]{2,12})的)?(?P<as>[^的，]{0,8}`+hanTrade+`)$`,
		`^用户的(?:工作|职业)(?:现在)?是(?P<as>.*)$`)
	for _, person := range []struct{ en, zh string }{
		{"boyfriend", "男(?:朋)?友"}, {"girlfriend", "女(?:朋)?友"}, {"fianc[eé]e?", "未婚[夫妻]"}, {"husband", "老公|丈夫|先生"}, {"wife", "老婆|妻子|太太"},
		{"boss", "老板|上司"}, {"mother|mom|mum", "妈妈?|母亲"}, {"father|dad", "爸爸?|父亲"},
	} {
		add(person.en,
			ofUser+`'s (?:new )?(?:`+person.en+`) (?:is (?:now )?(?:called|named)|is)\b(?P<is>.*)$`,
			`^用户的?(?:`+person.zh+`)(?:的名字)?(?:现在)?(?:叫做?|名叫|是叫|是)(?P<is>.*)$`)
	}
	return all
}()

// Slot is what a fact says of a property; the zero value is nothing.
type Slot struct {
	Property string
	parts    map[string]string // of the value, by group
}

func SlotOf(text string) Slot {
	for _, s := range slots {
		at := s.form.FindStringSubmatch(text)
		if at == nil {
			continue
		}
		g := Slot{s.property, map[string]string{}}
		for i, group := range s.form.SubexpNames() {
			if group != "" && at[i] != "" {
				g.parts[group] = at[i]
			}
		}
		return g
	}
	return Slot{}
}

func (g Slot) of(other Slot) bool { return g.Property != "" && g.Property == other.Property }

// Over reports whether the value of the property has ended.
func (g Slot) Over() bool { return g.parts[overGroup] != "" }

// Contradicts reports whether g, which is newer, has another value of the same property. A
// value that is only more or less specific (Paris, the city of Paris) is not another one, and
// neither are different parts (a place of work, a profession).
func (g Slot) Contradicts(older Slot) bool {
	if !g.of(older) || older.Over() {
		return g.of(older) && !g.Over()
	}
	compared, differs := false, false
	for part, x := range g.parts {
		if y, both := older.parts[part]; both {
			compared, differs = true, differs || !HoldsWords(x, y) && !HoldsWords(y, x)
		}
	}
	if g.Over() { // of a value that it names, only of that
		return len(g.parts) == 1 || compared && !differs
	}
	return differs
}

// Repeats reports whether both have the same part of one property.
func (g Slot) Repeats(other Slot) bool {
	return g.of(other) && g.Over() == other.Over() && slices.ContainsFunc([]string{"is", "as", "at", overGroup}, func(part string) bool {
		return g.parts[part] != "" && other.parts[part] != ""
	})
}

// SameSlot reports whether a text has another value of the same property than an older one.
func SameSlot(text, older string) bool { return SlotOf(text).Contradicts(SlotOf(older)) }
