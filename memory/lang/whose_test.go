package lang

import (
	"testing"
	"time"
)

// TestAThingOfSomebodyElseIsTold has questions about the user's things, and lines that tell of somebody else's.
func TestAThingOfSomebodyElseIsTold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ask, line string
		by        Role
		want      bool
	}{
		{"what's the name of my son?", "My son's ok, thank you.", RoleCharacter, true},
		{"what's the name of my son?", "Your son Tim is a treasure.", RoleCharacter, false},
		{"what's the name of my son?", "Glad your son is okay.", RoleUser, true},
		{"what's the name of my son?", "our youngest son is called Tim", RoleUser, false},
		{"what's the name of my son?", "A son should be called Tim.", RoleUser, false},
		{"what's the name of my son?", "Her son and my son are friends.", RoleUser, false},
		{"what's the name of my son?", "The rain has stopped.", RoleUser, false},
		{"what's the name of the son?", "My son's ok.", RoleCharacter, false},
		{"我的仓鼠叫什么？", "我的仓鼠昨天跑了。", RoleCharacter, true},
		{"我的仓鼠叫什么？", "你的仓鼠真可爱。", RoleCharacter, false},
		{"我的仓鼠叫什么？", "你的仓鼠真可爱。", RoleUser, true},
		{"我的仓鼠叫什么？", "仓鼠叫豆子。", RoleUser, false},
		{"我儿子叫什么？", "他儿子上大学了。", RoleUser, true},
		{"¿cómo se llama mi perro?", "tu perro es un sol", RoleUser, true},
		{"Wie heißt mein Hund?", "Mein Hund heißt Rübe.", RoleUser, false},
	} {
		q := ReadQuery(c.ask, Names{}, time.Time{})
		if got := BelongElsewhere(c.line, c.by, q.OwnThings(c.ask)); got != c.want {
			t.Errorf("%q, asked %q: %v of somebody else, want %v (things %q)", c.line, c.ask, got, c.want, q.OwnThings(c.ask))
		}
	}
}
