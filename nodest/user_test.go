package nodest_test

import (
	"slices"
	"testing"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/internal/stream"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
)

func TestAnAckTellsOtherDevicesWhatWasRead(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 1)
	other, _ := h.NewChat(t, 0)
	h.TakeEventTypes()
	nodesttest.Must(t, h.Ack(t.Context(), h.Call(), 3, map[string]string{conv.ID: all[1].ID}))
	if events := h.TakeEventTypes(); !slices.Equal(events, []string{"chat.read"}) {
		t.Errorf("events = %v", events)
	}
	nodesttest.Must(t, h.Ack(t.Context(), h.Call(), 4, nil))
	if events := h.TakeEventTypes(); len(events) != 0 {
		t.Errorf("events = %v, want none: nothing was read", events)
	}
	nodesttest.WantError(t, h.Ack(t.Context(), h.Call(), -1, nil), fault.Invalid, "seq")
	nodesttest.WantError(t, h.Ack(t.Context(), &op.Call{UserID: nodesttest.Ann}, 1, nil), fault.Invalid, "deviceId")
	nodesttest.WantError(t, h.Ack(t.Context(), h.Call(), 1, map[string]string{other.ID: all[1].ID}), fault.NotFound, "read."+other.ID)
}

func TestTypingIsATransientEvent(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, _ := h.NewChat(t, 0)
	h.TakeEventTypes()
	h.Typing(h.Call(), conv.ID)
	if n := len(h.Events.All()); n != 1 {
		t.Fatalf("%d events, want 1", n)
	}
	e := h.Events.All()[0]
	if e.Type != "typing" || e.ConversationID != conv.ID || e.By != "phone" || e.UserID != nodesttest.Ann || e.Durable() || e.At.IsZero() {
		t.Errorf("event = %+v", e)
	}
}

func TestUsageIsReadByDays(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	var today string
	nodesttest.Must(t, h.DB.Update(t.Context(), nodesttest.Ann, func(tx nodest.Tx) error {
		today = tx.Now().Format("2006-01-02")
		return tx.AddUsage(nodest.UsageRow{Provider: "offline", Model: "m", Requests: 1, PromptTokens: 7})
	}))
	for _, days := range [][2]string{{"", ""}, {today, today}, {"2020-01-01", ""}} {
		rows, err := h.Usage(t.Context(), nodesttest.Ann, days[0], days[1])
		nodesttest.Must(t, err)
		if len(rows) != 1 || rows[0].PromptTokens != 7 || rows[0].Day != today {
			t.Errorf("usage from %q to %q = %+v", days[0], days[1], rows)
		}
	}
	rows, err := h.Usage(t.Context(), nodesttest.Ann, "2020-01-01", "2020-01-31")
	nodesttest.Must(t, err)
	if rows == nil || len(rows) != 0 {
		t.Errorf("usage of 2020 = %+v, want an empty list", rows)
	}
	for days, field := range map[[2]string]string{
		{"yesterday", ""}: "from", {"", "2020-02-30"}: "to", {"2020-02-02", "2020-02-01"}: "from",
	} {
		_, err := h.Usage(t.Context(), nodesttest.Ann, days[0], days[1])
		nodesttest.WantError(t, err, fault.Invalid, field)
	}
}

func TestASnapshotShowsAllWithoutDocuments(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, _ := h.NewChat(t, 1)
	snap, err := h.Snapshot(t.Context(), nodesttest.Ann)
	nodesttest.Must(t, err)
	at, _, err := stream.Store(h.DB).Position(t.Context(), nodesttest.Ann)
	nodesttest.Must(t, err)
	if len(snap.Conversations) != 1 || snap.Conversations[0].ID != conv.ID || snap.Epoch != at.Epoch || snap.Seq != at.Seq || at.Seq == 0 {
		t.Errorf("snapshot = %+v, want one conversation at %v", snap, at)
	}
	if len(snap.Characters) != 1 || snap.Characters[0].Name != "Alice" || snap.Characters[0].RoleCard != nil {
		t.Errorf("characters = %+v, want Alice without a card", snap.Characters)
	}
}
