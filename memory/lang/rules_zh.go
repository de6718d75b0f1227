package lang

import (
	"strings"
	"unicode/utf8"

	"nodest/internal/lexicon"
)

func chinese(name string) *lexicon.Rule { return data.Rule(name, "zh") }

var (
	hanLead  = chinese("lead")  // with which a sentence begins, before it says something
	hanSelf  = chinese("self")  // the speaker is the subject
	hanOther = chinese("other") // somebody else is the subject
	hanEnd   = chinese("end")
	hanMemo  = chinese("memo")          // the user wants something kept
	hanWeToo = chinese("we-too")        // said of us, and holds for the speaker
	hanGone  = chinese("gone-for-good") // somebody or something is there no more

	hanStopCalling = chinese("stop-calling") // the speaker gives up a name
	hanNoise       = chinese("noise")        // clauses behind 我 that say little
	hanLove        = chinese("love")
	hanPledge      = chinese("pledge")
	hanEmpty       = chinese("empty-pledge")
	hanVow         = chinese("vow")  // a promise that is called one, that has a time, or that is for ever
	hanIdle        = chinese("idle") // promises that are not worth remembering
	hanCallMe      = chinese("call-me")
	hanSummons     = chinese("summons")      // a call, or a role
	hanTurn        = chinese("turn")         // a change in the speaker's own life: the next clause is about them too
	hanEnding      = chinese("ending-alone") // the same, also without 我
	hanPeople      = chinese("people")
	hanGreeting    = chinese("greeting")
)

func (n Names) readChinese(sentence string, m Line) []Statement {
	if m.Role == RoleCharacter {
		return n.chinesePledges(sentence)
	}
	sentence = hanLead.ReplaceAllString(sentence, "")
	if memo := hanMemo.Form().FindStringSubmatch(sentence); memo != nil {
		if inner := n.chineseClauses(memo[1], m); len(inner) > 0 {
			return inner
		}
		what := hanEnd.ReplaceAllString(memo[1], "")
		if utf8.RuneCountInString(what) < 2 || questionWords.MatchString(what) || strings.Contains(what, "你自己") || !strings.ContainsAny(what, "我明后下周月日号") {
			return nil
		}
		return []Statement{{"用户要求记住：" + n.hanThird("用户", what), AboutUser, KindOther, 0.9, false}}
	}
	return n.chineseClauses(sentence, m)
}

// chineseClauses reads the clauses of a sentence. After one about 我 with a statement, or about
// a change in the user's life, the next may omit 我; after any other its subject may be
// something else (我看了一部电影，叫《活着》).
func (n Names) chineseClauses(sentence string, m Line) []Statement {
	var out []Statement
	self := false
	for _, text := range commas.Split(sentence, -1) {
		c := hanClauseOf(text)
		if f, ok := n.outright(c); ok {
			out = append(out, f)
			continue
		}
		if !c.named && !leavesSelfOut(c.text, m.Text, self) || c.empty() {
			self = false
			continue
		}
		f, ok := n.chineseClause(c.time+c.rest, c.named, hanGreeting.MatchString(m.Text))
		if ok {
			out = append(out, f)
		}
		self = (ok && f.Kind != KindRelation || hanTurn.MatchString(c.rest)) && !strings.ContainsAny(c.rest, "有养")
	}
	return out
}

// hanClause is a clause, without words that only lead to it.
type hanClause struct {
	text  string
	named bool   // its subject is 我
	time  string // before 我
	rest  string // behind 我, or the whole clause; without its particles
}

func hanClauseOf(text string) hanClause {
	text = hanLead.ReplaceAllString(strings.TrimSpace(text), "")
	c := hanClause{text: text, rest: text}
	if at := hanSelf.Form().FindStringSubmatch(text); at != nil {
		if we := strings.TrimPrefix(at[2], "们"); we == at[2] || hanWeToo.MatchString(we) {
			c.time, c.rest, c.named = at[1], we, true
		}
	}
	c.rest = hanEnd.ReplaceAllString(c.rest, "")
	return c
}

// empty reports whether a clause states nothing.
func (c hanClause) empty() bool {
	return c.rest == "" || hanNoise.MatchString(c.rest) || questionWords.MatchString(c.rest)
}

// outright reads a clause that says by its words what it is about: what the user is called, and what is gone.
func (n Names) outright(c hanClause) (Statement, bool) {
	if name := hanCallMe.Form().FindStringSubmatch(c.text); name != nil && !hanSummons.MatchString(c.text) {
		return Statement{"用户叫" + name[1], AboutUser, KindProfile, 0.9, false}, true
	}
	if name := hanStopCalling.Form().FindStringSubmatch(hanEnd.ReplaceAllString(c.text, "")); name != nil && hanStopCalling.MatchString(c.text) {
		return Statement{"用户不再叫" + name[1], AboutUser, KindEvent, 0.7, true}, true
	}
	if !c.named && hanGone.MatchString(c.text) {
		return Statement{n.hanThird("用户", c.text), AboutUser, KindEvent, 0.6, true}, true
	}
	return Statement{}, false
}

// leavesSelfOut reports whether a clause without 我 is about the user; self: the one before was.
func leavesSelfOut(clause, message string, self bool) bool {
	ends := hanEnding.MatchString(clause) && !hanPeople.MatchString(message)
	return (self || ends) && !hanOther.MatchString(clause)
}

// chineseClause reads a clause after 我; named is whether 我 is there.
func (n Names) chineseClause(clause string, named, greets bool) (Statement, bool) {
	if named && hanLove.MatchString(clause) {
		return Statement{"用户" + n.hanThird("用户", clause), AboutRelationship, KindRelation, 0.8, false}, true
	}
	text, r, ok := statement("zh", clause, greets)
	if !ok || r.explicit && !named {
		return Statement{}, false
	}
	return Statement{"用户" + n.hanThird("用户", text), AboutUser, r.kind, r.importance, r.ends}, true
}

func (n Names) chinesePledges(sentence string) []Statement {
	var out []Statement
	for _, clause := range commas.Split(sentence, -1) {
		at := hanSelf.Form().FindStringSubmatch(hanLead.ReplaceAllString(strings.TrimSpace(clause), ""))
		if at == nil {
			continue
		}
		rest := hanEnd.ReplaceAllString(at[2], "")
		pledge := hanPledge.Form().FindStringSubmatch(rest)
		if pledge == nil || hanEmpty.MatchString(pledge[1]) || questionWords.MatchString(rest) || !hanVow.MatchString(at[1]+rest) || hanIdle.MatchString(rest) {
			continue
		}
		who := n.character("角色")
		out = append(out, Statement{who + n.hanThird(who, at[1]+rest), AboutCharacter, KindPromise, 0.6, false})
	}
	return out
}

func (n Names) character(missing string) string {
	if n.Character != "" {
		return n.Character
	}
	return missing
}

// hanThird turns a predicate of speaker from the first person into the third.
func (n Names) hanThird(speaker, predicate string) string {
	other := n.character("角色")
	if speaker != "用户" {
		other = "用户"
	}
	predicate = strings.ReplaceAll(strings.TrimPrefix(predicate, "自己"), "我们", "\x01")
	predicate = strings.NewReplacer("我自己", "自己", "我", "自己", "你们", "你们", "您", other, "你", other).Replace(predicate)
	predicate = strings.ReplaceAll(predicate, "\x01", "两人")
	return strings.TrimSpace(predicate)
}
