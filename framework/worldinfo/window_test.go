package worldinfo_test

import (
	"fmt"
	"reflect"
	"testing"

	"nodest/framework/worldinfo"
)

// A scan of the end of a chat that knows how many messages are before it decides as that of the whole chat.
func TestTheEndOfAChatIsScannedAsTheWhole(t *testing.T) {
	entries := `{"0":{"key":["moon"],"content":"sticky","sticky":3,"cooldown":4},"1":{"key":["moon"],"content":"late","delay":20},
		"2":{"constant":true,"content":"@@activate_only_after 12\nafter"},"3":{"constant":true,"content":"@@activate_only_every 5\nevery"}}`
	var whole []worldinfo.Message
	var timed, windowed worldinfo.Timed
	const window = 4
	for i := range 40 {
		text := "hello"
		if i%6 == 2 {
			text = "the moon"
		}
		whole = append(whole, said("", text)[min(i%2, 1)])
		whole[i].Text = text
		all := scan(t, entries, worldinfo.Input{Messages: whole, Timed: timed})
		in := worldinfo.Input{Messages: whole, Timed: windowed}
		if from := len(whole) - window; from > 0 {
			in.Messages = whole[from:]
			for _, m := range whole[:from] {
				in.Before.Messages++
				if m.User {
					in.Before.Users++
				}
			}
		}
		end := scan(t, entries, in)
		if !reflect.DeepEqual(all.Activated, end.Activated) || !reflect.DeepEqual(all.Timed, end.Timed) {
			t.Fatalf("message %d: %v %+v, and of the end %v %+v", i, all.Activated, all.Timed, end.Activated, end.Timed)
		}
		timed, windowed = all.Timed, end.Timed
	}
	if len(timed.Cooldown) == 0 {
		t.Error(fmt.Sprint("nothing was in a cooldown: ", timed))
	}
}
