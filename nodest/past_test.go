package nodest

import (
	"testing"

	"nodest/chat"
	"nodest/framework/worldinfo"
)

// Both speak in turn before the messages that were read, also where a summary leaves none behind it.
func TestTheUsersMessagesBeforeThoseThatWereRead(t *testing.T) {
	user, reply := &chat.Message{Role: chat.RoleUser}, &chat.Message{Role: chat.RoleAssistant}
	for _, c := range []struct {
		p    past
		want worldinfo.Before
	}{
		{past{messages: []*chat.Message{user}}, worldinfo.Before{}},
		{past{messages: []*chat.Message{user}, earlier: 5}, worldinfo.Before{Messages: 5, Users: 2}},
		{past{messages: []*chat.Message{reply}, earlier: 5}, worldinfo.Before{Messages: 5, Users: 3}},
		{past{messages: []*chat.Message{reply, user}, front: 1, earlier: 7}, worldinfo.Before{Messages: 7, Users: 3}},
		{past{messages: []*chat.Message{reply}, front: 1, earlier: 7}, worldinfo.Before{Messages: 7, Users: 3}},
	} {
		if got := c.p.before(); got != c.want {
			t.Errorf("%d messages, %d of them in front, %d earlier: %+v, want %+v", len(c.p.messages), c.p.front, c.p.earlier, got, c.want)
		}
	}
}
