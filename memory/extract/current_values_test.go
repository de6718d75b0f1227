package extract_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/framework"
	"nodest/memory"
	"nodest/memory/recall"
)

// If a property has one value at a time, only the current value is in the profile and
// first in an answer, whatever the wording, with or without a new value.
func TestOnlyCurrentValuesAreRecalled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		said     []string
		asked    string
		profile  []string // lines that it has, in any order
		now, old string   // parts of lines: now comes back before old, if that comes at all
	}{
		{[]string{"I work as a nurse at the General", "I quit, I'm a baker now"}, "What do I do for a living?", []string{"User is a baker"}, "baker", "nurse"},
		{[]string{"I'm a nurse.", "I work for Acme.", "I finally quit my job!"}, "What do I do for a living?", []string{"User has quit their job"}, "quit", "nurse"},
		{[]string{"I work at Acme.", "I'm a nurse.", "I quit.", "I'm a baker now."}, "Where do I work?", []string{"User is a baker"}, "baker", "Acme"},
		{[]string{"I work as a waiter.", "I no longer work as a waiter."}, "What is my job?", []string{"User no longer works as a waiter"}, "no longer", "work as a waiter."},
		{[]string{"I live in Paris.", "I've moved out."}, "Where do I live?", []string{"User moved out"}, "moved out", "Paris"},
		{[]string{"I live in Paris.", "I've moved from Paris to Rome."}, "Where do I live?", []string{"User moved from Paris to Rome"}, "Rome", "live in Paris"},
		{[]string{"I work as a nurse.", "I work at the General."}, "What is my job?", []string{"User works as a nurse", "User works at the General"}, "General", ""},
		{[]string{"I'm a nurse.", "I'm a vegetarian.", "I'm a runner."}, "What is my job?", []string{"User is a nurse", "User is a vegetarian", "User is a runner"}, "nurse", ""},
		{[]string{"I work as a nurse.", "I quit smoking."}, "What is my job?", []string{"User works as a nurse"}, "nurse", ""},
		{[]string{"我是咖啡师", "我辞职了，现在是花艺师"}, "我做什么工作？", []string{"用户现在是花艺师"}, "花艺师", "咖啡师"},
		{[]string{"我在医院当护士", "辞职了，现在在面包店上班"}, "我做什么工作？", []string{"用户现在在面包店上班"}, "面包店", "护士"},
		{[]string{"我在银行上班。", "我离职了。"}, "我在哪里上班？", []string{"用户离职了"}, "离职", "银行"},
		{[]string{"我住在上海", "我搬走了"}, "我住在哪里？", []string{"用户搬走了"}, "搬走", "上海"},
		{[]string{"我住在上海", "我毕业了，现在住在苏州"}, "我住在哪里？", []string{"用户现在住在苏州"}, "苏州", "上海"},
		{[]string{"I'm a nurse.", "I used to be a nurse, but now I'm a baker."}, "What is my job?", []string{"User is a baker"}, "baker", "I'm a nurse."},
		{[]string{"I'm a nurse at the General.", "I got a job as a baker.", "I no longer work at the General."}, "What is my job?", []string{"User works as a baker", "User no longer works at the General"}, "no longer", "I'm a nurse"},
		{[]string{"我在医院上班", "我现在在面包店工作，已经不在医院上班了"}, "我在哪里上班？", []string{"用户现在在面包店工作", "用户已经不在医院上班"}, "面包店", "我在医院"},
		{[]string{"我以前是护士，现在是面包师"}, "我做什么工作？", []string{"用户是面包师"}, "面包师", ""},
		{[]string{"我是护士", "我不想辞职"}, "我做什么工作？", []string{"用户是护士"}, "护士", ""},
	} {
		t.Run(tt.said[len(tt.said)-1], func(t *testing.T) {
			c := newChatter(t, "sqlite")
			c.model = nil
			for _, line := range tt.said {
				c.exchange(line, "Oh.")
				c.pass(time.Hour)
				c.read()
			}
			var lines []string
			ask, q := memory.Ask{CharacterID: c.character}, recall.Query{Text: tt.asked, Now: sometime.Add(24 * time.Hour)}
			hits, _, err := c.remembering().Turn(t.Context(), c.user, ask, q, func(found []memory.Memory) []string {
				for _, f := range memory.ProfileOf(found, framework.English).Facts {
					lines = append(lines, f.Text)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(lines)
			slices.Sort(tt.profile)
			if !slices.Equal(lines, tt.profile) {
				t.Errorf("profile %q, want %q", lines, tt.profile)
			}
			now, old := placeOf(hits, tt.now), placeOf(hits, tt.old)
			if now < 0 || tt.old != "" && old >= 0 && old < now {
				t.Errorf("%q finds %q", tt.asked, textsOfHits(hits))
			}
		})
	}
}

// Changes in somebody else's life do not end facts about the user.
func TestFactsAboutOthersDoNotEndFactsAboutTheUser(t *testing.T) {
	t.Parallel()
	for _, said := range [][2]string{
		{"你哥哥还在医院吗？", "辞职了，现在在面包店上班"}, {"嗯。", "我哥哥辞职了，现在在面包店上班"}, {"嗯。", "我遇到小王了，现在在银行上班"}, {"嗯。", "我养了只猫，现在住在阳台"},
		{"嗯。", "我打算明年辞职"}, {"嗯。", "老板辞职了"}, {"嗯。", "我以前的同事，现在住在北京"}, {"嗯。", "我以前有个朋友，叫小王"}, {"嗯。", "我看了一部电影，叫《活着》"}, {"Hm.", "I quit chess."}, {"Hm.", "My brother quit."}, {"Hm.", "I moved the sofa out."},
	} {
		c := newChatter(t, "sqlite")
		c.model = nil
		c.exchange("我叫小明，是医生，住在天津。", said[0])
		c.exchange(said[1], "Oh.")
		c.pass(time.Hour)
		c.read()
		known := strings.Join(c.known(), "|")
		for _, want := range []string{"用户叫小明", "用户是医生", "用户住在天津"} {
			if !strings.Contains(known, want) {
				t.Errorf("%q: known %q, want %q", said, known, want)
			}
		}
	}
}

func textsOfHits(hits []recall.Hit) (all []string) {
	for _, h := range hits {
		all = append(all, h.Text)
	}
	return all
}

// placeOf returns the index of the first hit that contains part, or -1.
func placeOf(hits []recall.Hit, part string) int {
	return slices.IndexFunc(textsOfHits(hits), func(text string) bool { return strings.Contains(text, part) })
}
