package chat_test

import (
	"encoding/json"
	"slices"
	"testing"

	"nodest/chat"
	"nodest/internal/fault"
	"nodest/nodest/nodesttest"
)

// The list of branches has one entry for each leaf of the message tree and counts the
// messages that are not deleted.
func TestBranchesAreTheLeavesOfTheTree(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, all := h.NewChat(t, 4)
	h.AddMessage(t, conv.ID, all[1].ID, "second way")
	third := h.AddMessage(t, conv.ID, all[3].ID, "third way")
	read := func(limit int) (heads []string, counts []int, shown []bool) {
		for cursor, more := "", true; more; more = cursor != "" {
			page, err := h.Chats.Branches(t.Context(), nodesttest.Ann, conv.ID, cursor, limit)
			nodesttest.Must(t, err)
			for _, b := range page.Items {
				heads, counts, shown = append(heads, b.Head.Text()), append(counts, b.MessageCount), append(shown, b.Shown)
			}
			cursor = page.NextCursor
		}
		return heads, counts, shown
	}
	for _, limit := range []int{0, 1, 2, 3} {
		heads, counts, shown := read(limit)
		if !slices.Equal(heads, []string{"third way", "second way", "text 4"}) || !slices.Equal(counts, []int{5, 3, 5}) ||
			!slices.Equal(shown, []bool{true, false, false}) {
			t.Errorf("limit %d: %v %v %v", limit, heads, counts, shown)
		}
	}
	// A branch whose last message is deleted ends at the message before it and counts what is left.
	_, err := h.Chats.DeleteMessage(t.Context(), h.Call(), all[4].ID, "one")
	nodesttest.Must(t, err)
	_, err = h.Chats.DeleteMessage(t.Context(), h.Call(), all[2].ID, "one")
	nodesttest.Must(t, err)
	heads, counts, _ := read(0)
	if !slices.Equal(heads, []string{"third way", "second way"}) || !slices.Equal(counts, []int{4, 3}) {
		t.Errorf("%v %v", heads, counts)
	}
	// A head in the middle is no leaf.
	_, err = h.Chats.ChooseHead(t.Context(), h.Call(), conv.ID, all[1].ID)
	nodesttest.Must(t, err)
	if _, _, shown := read(0); slices.Contains(shown, true) {
		t.Error("an end is shown that is not the head")
	}
	_, err = h.Chats.Branches(t.Context(), nodesttest.Bob, conv.ID, "", 0)
	nodesttest.WantError(t, err, fault.NotFound, "")
	_, err = h.Chats.Branches(t.Context(), nodesttest.Ann, conv.ID, "", 201)
	nodesttest.WantError(t, err, fault.Invalid, "limit")
	_, err = h.Chats.Branches(t.Context(), nodesttest.Ann, conv.ID, "nonsense", 0)
	nodesttest.WantError(t, err, fault.Invalid, "cursor")

	page, err := h.Chats.Branches(t.Context(), nodesttest.Ann, conv.ID, "", 1)
	nodesttest.Must(t, err)
	wire, err := json.Marshal(chat.WireBranch(page.Items[0]))
	nodesttest.Must(t, err)
	var got struct {
		Head struct {
			ID string `json:"id"`
		} `json:"head"`
		Shown        *bool `json:"shown"`
		MessageCount int   `json:"messageCount"`
	}
	nodesttest.Must(t, json.Unmarshal(wire, &got))
	if got.Head.ID != third.HeadID || got.Shown == nil || got.MessageCount != 4 {
		t.Errorf("on the wire: %s", wire)
	}
}
