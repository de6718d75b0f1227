package lang

import (
	"cmp"
	"strings"

	"nodest/internal/lexicon"
)

func english(name string) *lexicon.Rule { return data.Rule(name, "en") }

var (
	englishLead     = english("lead")  // with which a sentence begins, before it says something
	englishBreak    = english("break") // before a new clause
	englishEnd      = english("end")
	englishMemo     = english("memo") // the user wants something kept
	memoNoise       = english("memo-noise")
	mine            = english("mine") // people want their own things kept, or ask for it
	englishGreeting = english("greeting")
	idleWords       = english("idle") // promises that are not worth remembering
	englishLove     = english("love")
	englishVow      = english("vow")
	englishWill     = english("will")
	lasting         = english("lasting") // for ever, or at a time
	behind          = english("behind")  // reasons and asides, which are cut off
	pointingAlone   = english("pointing-alone")
	englishPronouns = english("pronouns")
)

func (n Names) readEnglish(sentence string, m Line) []Statement {
	sentence = englishLead.ReplaceAllString(Contracted(sentence), "")
	if memo := englishMemo.Form().FindStringSubmatch(sentence); memo != nil && m.Role == RoleUser {
		if inner := n.englishClauses(memo[1], m); len(inner) > 0 {
			return inner
		}
		what := englishEnd.ReplaceAllString(memo[1], "")
		if memoNoise.MatchString(what) || !mine.MatchString(sentence) {
			return nil
		}
		return []Statement{{"User asked to remember: " + n.englishThird(m.Role, what), AboutUser, KindOther, 0.9, false}}
	}
	return n.englishClauses(sentence, m)
}

func (n Names) englishClauses(sentence string, m Line) []Statement {
	var out []Statement
	for clause := range strings.SplitSeq(brokenEnglish(sentence), "\n") {
		clause = englishLead.ReplaceAllString(strings.TrimSpace(clause), "")
		clause = englishEnd.ReplaceAllString(behind.ReplaceAllString(clause, ""), "")
		if m.Role == RoleCharacter {
			out = append(out, n.englishPledge(clause)...)
			continue
		}
		if m := englishLove.Form().FindStringSubmatch(clause); m != nil {
			text := "User " + strings.ToLower(m[1]) + "s " + n.character("the character")
			out = append(out, Statement{text, AboutRelationship, KindRelation, 0.8, false})
			continue
		}
		text, r, ok := statement("en", clause, englishGreeting.MatchString(m.Text))
		if ok {
			out = append(out, Statement{n.englishThird(m.Role, text), AboutUser, r.kind, r.importance, r.ends})
		}
	}
	return out
}

func brokenEnglish(sentence string) string { return broken(englishBreak.Form(), sentence) }

// broken has a line for each clause of a sentence, before which a form matches.
func broken(before *lexicon.Form, sentence string) string {
	return before.ReplaceAllStringFunc(sentence, func(s string) string {
		return "\n" + strings.TrimLeft(s, ",;:-–— 、，")
	})
}

// englishPledge keeps a promise that is called one, that has a time, or that is for ever.
func (n Names) englishPledge(clause string) []Statement {
	who := n.character("The character")
	if m := englishVow.Form().FindStringSubmatch(clause); m != nil && !idleWords.MatchString(m[1]) && !pointingAlone.MatchString(m[1]) {
		return []Statement{{who + " promises: " + n.englishThird(RoleCharacter, m[1]), AboutCharacter, KindPromise, 0.7, false}}
	}
	m := englishWill.Form().FindStringSubmatch(clause)
	if m == nil || idleWords.MatchString(m[1]) || pointingAlone.MatchString(m[1]) || !lasting.MatchString(m[1]) {
		return nil
	}
	will := " will "
	if strings.HasPrefix(strings.ToLower(clause), "i won't") {
		will = " won't "
	}
	return []Statement{{who + will + n.englishThird(RoleCharacter, m[1]), AboutCharacter, KindPromise, 0.6, false}}
}

// englishThird turns a statement from the first person into the third.
func (n Names) englishThird(role Role, text string) string {
	other := n.character("the character")
	if role == RoleCharacter {
		other = "the user"
	}
	return englishPronouns.Form().ReplaceAllStringFunc(text, func(w string) string {
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
