package outbox

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// For every event (row) and phase (column): the next phase and the action; "." is the
// same phase. Text is only queued in order, and dropped text is either caught up or
// superseded by message.updated.
const transitionTable = `
event    unknown       awaiting      live          behind        final
started  live:start    .:start       .:start       .:start       .:start
text     live:queue    .:miss        .:queue       .:miss        behind:miss
full     behind:fallBehind .:miss      behind:fallBehind .:miss        behind:miss
held     behind:miss   .:miss        behind:miss   .:miss        behind:miss
gap      .:miss        .:miss        behind:miss   .:miss        behind:miss
lost     .             .             unknown       unknown       unknown
part     .             .             .:queue       .             behind
aside    .:pass        .:pass        .:pass        .             .
rewound  .:rewind      .:rewind      .:rewind      .:rewind      .:rewind
updated  .             .             .             final         .
ended    .:leave       unknown:leave unknown:leave unknown:leave unknown:leave
named    awaiting      .             .             .             .
reached  live          live          .             live          live
short    behind        behind        behind        .             .
current  .             .             .             live:settle   live:settle
`

func TestTransitions(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(transitionTable), "\n")
	names := strings.Fields(lines[0])
	if len(lines) != int(events)+1 || len(names) != int(phases) {
		t.Fatalf("%d events and %d phases are specified", len(lines)-1, len(names)-1)
	}
	for ev, line := range lines[1:] {
		want := strings.Fields(line)
		for p := unknown; p < phases; p++ {
			got := transitions[ev][p]
			word := "."
			if got.to != same {
				word = names[got.to]
			}
			if got.do != nil {
				name := runtime.FuncForPC(reflect.ValueOf(got.do).Pointer()).Name()
				word += ":" + name[strings.LastIndex(name, ".")+1:]
			}
			if word != want[p] {
				t.Errorf("%s in phase %s: %s, want %s", want[0], names[p], word, want[p])
			}
		}
	}
}
