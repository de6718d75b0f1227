package framework

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"nodest/card"
)

// TestHostileScriptRestsAfterItsLimit: over the messages of a chat a hostile
// script must not take its limit for each.
func TestHostileScriptRestsAfterItsLimit(t *testing.T) {
	s := hostile(false)
	text := strings.Repeat("a", 60) + "!"
	s.ApplyReply(text)
	bad := s.list[0]
	bad.patience.resting[bad.pattern] = time.Now().Add(time.Hour) // however slow the machine
	bad.pattern.re.MatchTimeout = time.Hour                       // this test would not end if it ran
	for range 3 {
		got, warnings := s.ApplyReply(text)
		if !strings.HasSuffix(got, "a?") || len(warnings) != 1 || warnings[0].Path != "regexScripts.hostile" {
			t.Fatalf("got %q, warnings %+v", got, warnings)
		}
	}
}

func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 250 * time.Millisecond
		p := &patience{limit: limit}
		compiled := func() *pattern {
			c, err := compilePattern("a", "g", limit)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		quick, slow := compiled(), compiled()
		for range 100_000 {
			p.note(quick, time.Millisecond, false)
		}
		if !p.allows(quick) {
			t.Error("quick runs used the set up")
		}
		p.note(slow, limit, true)
		if p.allows(slow) || !p.allows(quick) {
			t.Error("a script that ran out of its time must rest, and no other one")
		}
		time.Sleep(restFor * limit)
		if !p.allows(slow) {
			t.Error("a script rests for ever")
		}
		for range setMay {
			p.note(compiled(), limit, true)
		}
		if p.allows(quick) {
			t.Error("a set that used all its time must rest")
		}
		time.Sleep(setRecover * limit / 2)
		if !p.allows(quick) {
			t.Error("nothing is forgiven")
		}
	})
}

// TestThousandsOfHostileScriptsAreBounded: what they cost together does not grow
// with their number.
func TestThousandsOfHostileScriptsAreBounded(t *testing.T) {
	list := make([]card.RegexScript, 2000)
	for i := range list {
		list[i] = card.RegexScript{Name: "hostile", Find: "(a+)+$", Replace: "x"}
	}
	s := CompileScripts(replying(list...), "", time.Millisecond)
	text := strings.Repeat("a", 60) + "!"
	got, warnings := s.ApplyReply(text)
	if got != text || len(warnings) != len(list) {
		t.Errorf("%d warnings, text %q", len(warnings), got)
	}
	if tried := len(s.list[0].patience.resting); tried > setMay+1 {
		t.Errorf("%d scripts were tried", tried)
	}
}
