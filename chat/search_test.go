package chat_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/nodest/nodesttest"
	"nodest/store"
)

// search returns the texts found on all pages.
func search(t *testing.T, h *nodesttest.Fixture, in chat.SearchInput) (found []string) {
	t.Helper()
	for {
		page, err := h.Chats.Search(t.Context(), nodesttest.Ann, in)
		nodesttest.Must(t, err)
		for _, hit := range page.Items {
			for _, s := range hit.Message.Swipes {
				if s.ID == hit.SwipeID {
					found = append(found, s.Text)
				}
			}
		}
		if in.Cursor = page.NextCursor; in.Cursor == "" {
			return found
		}
	}
}

func TestSearchFindsTextsThatHaveAllWords(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, _ := h.NewChat(t, 0)
	texts := []string{
		"Green tea is served.", "The TEA is green.", "Straße nach Köln", "他喜欢喝绿茶。", "ＴＥＡ time", "Nothing.",
	}
	for _, text := range texts {
		conv = h.AddMessage(t, conv.ID, conv.HeadID, text)
	}
	tests := []struct {
		name, query string
		want        []int
	}{
		{"one word", "tea", []int{4, 1, 0}},
		{"two words in any order", "tea green", []int{1, 0}},
		{"a phrase", `"green tea"`, []int{0}},
		{"a phrase and a word", `"is green" tea`, []int{1}},
		{"a part of a word", "serv", []int{0}},
		{"without regard to case", "GREEN", []int{1, 0}},
		{"another writing of a letter", "STRASSE", []int{2}},
		{"a separate accent", "ko\u0308ln", []int{2}},
		{"Chinese", "绿茶", []int{3}},
		{"full width in the query", "Ｔｅａ", []int{4, 1, 0}},
		{"what nobody said", "coffee", nil},
		{"a wildcard is none", "%", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var want []string
			for _, i := range tt.want {
				want = append(want, texts[i])
			}
			if got := search(t, h, chat.SearchInput{Query: tt.query}); !slices.Equal(got, want) {
				t.Errorf("%q finds %q, want %q", tt.query, got, want)
			}
		})
	}
}

func TestSearchScopes(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	first, _ := h.NewChat(t, 0)
	second, _ := h.NewChat(t, 0)
	gone, _ := h.NewChat(t, 0)
	h.AddMessage(t, first.ID, first.HeadID, "tea in the first")
	h.AddMessage(t, second.ID, second.HeadID, "tea in the second")
	h.AddMessage(t, gone.ID, gone.HeadID, "tea that is gone")
	nodesttest.Must(t, h.DeleteConversation(t.Context(), h.Call(), gone.ID))

	for name, tt := range map[string]struct {
		in   chat.SearchInput
		want []string
	}{
		"everywhere":        {chat.SearchInput{}, []string{"tea in the second", "tea in the first"}},
		"in a conversation": {chat.SearchInput{ConversationID: first.ID}, []string{"tea in the first"}},
		"with a character":  {chat.SearchInput{CharacterID: second.CharacterID}, []string{"tea in the second"}},
	} {
		tt.in.Query = "tea"
		if got := search(t, h, tt.in); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	page, err := h.Chats.Search(t.Context(), nodesttest.Bob, chat.SearchInput{Query: "tea"})
	nodesttest.Must(t, err)
	if len(page.Items) != 0 {
		t.Error("a stranger found something")
	}
	_, err = h.Chats.Search(t.Context(), nodesttest.Bob, chat.SearchInput{Query: "tea", ConversationID: first.ID})
	nodesttest.WantError(t, err, fault.NotFound, "")
	_, err = h.Chats.Search(t.Context(), nodesttest.Bob, chat.SearchInput{Query: "tea", CharacterID: first.CharacterID})
	nodesttest.WantError(t, err, fault.NotFound, "")
}

func TestSearchFindsWhatCanBeShown(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, _ := h.NewChat(t, 1)
	conv = h.AddMessage(t, conv.ID, conv.HeadID, "black tea", "green tea", "coffee")
	page, err := h.Chats.History(t.Context(), nodesttest.Ann, conv.ID, "", 0)
	nodesttest.Must(t, err)
	reply := page.Items[len(page.Items)-1]

	if got := search(t, h, chat.SearchInput{Query: "tea"}); !slices.Equal(got, []string{"black tea"}) {
		t.Errorf("found %q, want the text that is shown", got)
	}
	if got := search(t, h, chat.SearchInput{Query: "green"}); !slices.Equal(got, []string{"green tea"}) {
		t.Errorf("found %q, want the hidden swipe", got)
	}
	_, err = h.Edit(t.Context(), h.Call(), chat.EditInput{MessageID: reply.ID, Text: "black milk"})
	nodesttest.Must(t, err)
	if got := search(t, h, chat.SearchInput{Query: "black tea"}); len(got) != 0 {
		t.Errorf("found %q, which was edited", got)
	}
	_, err = h.Chats.DeleteMessage(t.Context(), h.Call(), reply.ID, "swipe")
	nodesttest.Must(t, err)
	if got := search(t, h, chat.SearchInput{Query: "black"}); len(got) != 0 {
		t.Errorf("found %q, a deleted swipe", got)
	}
	_, err = h.Chats.DeleteMessage(t.Context(), h.Call(), reply.ID, "one")
	nodesttest.Must(t, err)
	if got := search(t, h, chat.SearchInput{Query: "green"}); len(got) != 0 {
		t.Errorf("found %q, a deleted message", got)
	}
}

// A hit tells its conversation, archived or not, and whether its message is shown there.
func TestAHitTellsWhereItIs(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	first, all := h.NewChat(t, 2)
	h.AddMessage(t, first.ID, all[1].ID, "tea on the branch that was left")
	h.AddMessage(t, first.ID, all[1].ID, "tea that is shown")
	second, _ := h.NewChat(t, 0)
	h.AddMessage(t, second.ID, second.HeadID, "tea in the archive")
	archived := true
	_, err := h.Chats.UpdateConversation(t.Context(), h.Call(), chat.ConversationPatch{ID: second.ID, Archived: &archived})
	nodesttest.Must(t, err)

	page, err := h.Chats.Search(t.Context(), nodesttest.Ann, chat.SearchInput{Query: "tea"})
	nodesttest.Must(t, err)
	var got []string
	for _, hit := range page.Items {
		got = append(got, fmt.Sprintf("%s: %t, archived %t, %t", hit.Message.Text(), hit.Shown, hit.Chat.Archived, hit.Chat.ID == hit.Message.ConversationID))
	}
	want := []string{
		"tea in the archive: true, archived true, true",
		"tea that is shown: true, archived false, true",
		"tea on the branch that was left: false, archived false, true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestASnippetSurroundsTheFirstMatch(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, _ := h.NewChat(t, 0)
	long := strings.Repeat("茶", 300) + " Green Tea, and tea. " + strings.Repeat("ж", 300)
	conv = h.AddMessage(t, conv.ID, conv.HeadID, long)
	h.AddMessage(t, conv.ID, conv.HeadID, "oﬃce tea")
	for name, tt := range map[string]struct {
		query, from string
		length      int
		marked      []string
	}{
		"in the middle":           {"tea", "茶", 200, []string{"Tea", "tea"}},
		"words that touch":        {`"green tea" ten`, "", 0, nil},
		"overlapping words":       {`"green tea" "tea, and"`, "茶", 200, []string{"Green Tea, and"}},
		"at the end":              {"жж", "茶", 200, []string{strings.Repeat("ж", 140)}},
		"a character that is two": {"of tea", "oﬃce", 8, []string{"oﬃ", "tea"}},
	} {
		t.Run(name, func(t *testing.T) {
			page, err := h.Chats.Search(t.Context(), nodesttest.Ann, chat.SearchInput{Query: tt.query})
			nodesttest.Must(t, err)
			if tt.length == 0 {
				if len(page.Items) != 0 {
					t.Errorf("%d hits", len(page.Items))
				}
				return
			}
			hit := page.Items[0]
			if tt.from == "oﬃce" != strings.HasPrefix(hit.Snippet, "oﬃce") {
				hit = page.Items[len(page.Items)-1]
			}
			runes := []rune(hit.Snippet)
			if len(runes) != tt.length || !strings.HasPrefix(hit.Snippet, tt.from) || !strings.Contains(hit.Message.Text(), hit.Snippet) {
				t.Errorf("snippet of %d: %q", len(runes), hit.Snippet)
			}
			var marked []string
			for _, m := range hit.Matches {
				marked = append(marked, string(runes[m[0]:m[1]]))
			}
			if !slices.Equal(marked, tt.marked) {
				t.Errorf("marked %q, want %q", marked, tt.marked)
			}
		})
	}
}

func TestSearchPagesAreComplete(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, _ := h.NewChat(t, 0)
	var want []string
	for i := range 40 {
		text := fmt.Sprintf("tea %d", i)
		if i%3 == 0 {
			text = "milk"
		} else {
			want = append(want, text)
		}
		conv = h.AddMessage(t, conv.ID, conv.HeadID, text)
	}
	slices.Reverse(want)
	for _, limit := range []int{1, 7, 26, 27, 200} {
		for _, in := range []chat.SearchInput{{}, {ConversationID: conv.ID}} {
			in.Query, in.Limit = "tea", limit
			if got := search(t, h, in); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) || in.ConversationID != "" && !slices.Equal(got, want) {
				t.Errorf("by %d: %q, want %q", limit, got, want)
			}
		}
	}
}

// A search page stops after so many messages and returns a cursor, even without a hit.
func TestASearchPageReadsABoundedNumberOfMessages(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	h.ImportLongChat(t, h.Character(nodesttest.Alice).ID, nodesttest.SearchReach+700)
	page, err := h.Chats.Search(t.Context(), nodesttest.Ann, chat.SearchInput{Query: `"number 3 of"`})
	nodesttest.Must(t, err)
	if len(page.Items) != 0 || page.NextCursor == "" {
		t.Fatalf("%d hits, cursor %q", len(page.Items), page.NextCursor)
	}
	page, err = h.Chats.Search(t.Context(), nodesttest.Ann, chat.SearchInput{Query: `"number 3 of"`, Cursor: page.NextCursor})
	nodesttest.Must(t, err)
	if len(page.Items) != 1 || page.NextCursor != "" {
		t.Errorf("%d hits, cursor %q", len(page.Items), page.NextCursor)
	}
}

func TestInvalidSearchesAreRefused(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	for name, tt := range map[string]struct {
		in    chat.SearchInput
		field string
	}{
		"nothing":           {chat.SearchInput{}, "q"},
		"blanks":            {chat.SearchInput{Query: " \t "}, "q"},
		"quotes alone":      {chat.SearchInput{Query: `""`}, "q"},
		"201 characters":    {chat.SearchInput{Query: strings.Repeat("茶", 201)}, "q"},
		"no text":           {chat.SearchInput{Query: "\xff"}, "q"},
		"a long page":       {chat.SearchInput{Query: "a", Limit: 201}, "limit"},
		"a negative page":   {chat.SearchInput{Query: "a", Limit: -1}, "limit"},
		"a foreign cursor":  {chat.SearchInput{Query: "a", Cursor: "nonsense"}, "cursor"},
		"a cursor of lists": {chat.SearchInput{Query: "a", Cursor: "MTIzOmFiYw"}, "cursor"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := h.Chats.Search(t.Context(), nodesttest.Ann, tt.in)
			nodesttest.WantError(t, err, fault.Invalid, tt.field)
		})
	}
	_, err := h.Chats.Search(t.Context(), nodesttest.Ann, chat.SearchInput{Query: strings.Repeat("茶", 200)})
	nodesttest.Must(t, err)
}

func TestWireFormOfASearchHit(t *testing.T) {
	t.Parallel()
	h := nodesttest.NewWithoutModel(t)
	conv, _ := h.NewChat(t, 0)
	h.AddMessage(t, conv.ID, conv.HeadID, "green tea")
	page, err := h.Chats.Search(t.Context(), nodesttest.Ann, chat.SearchInput{Query: "tea"})
	nodesttest.Must(t, err)
	wire, err := json.Marshal(chat.WireHit(page.Items[0]))
	nodesttest.Must(t, err)
	var got struct {
		Message        struct{ ID, Text string }
		ConversationID string
		Conversation   struct{ ID, CharacterID string }
		SwipeID        string
		Snippet        string
		Matches        [][2]int
	}
	nodesttest.Must(t, json.Unmarshal(wire, &got))
	if got.Message.Text != "green tea" || got.ConversationID != conv.ID ||
		got.Conversation.ID != conv.ID || got.Conversation.CharacterID != conv.CharacterID || got.SwipeID == "" || got.Snippet != "green tea" ||
		!slices.Equal(got.Matches, [][2]int{{6, 9}}) {
		t.Errorf("on the wire: %s", wire)
	}
}

// BenchmarkSearch searches 100,000 messages for words that none of them has.
func BenchmarkSearch(b *testing.B) {
	const messages = 100_000
	db, err := store.Open(b.Context(), store.Options{Dir: b.TempDir(), Log: nodesttest.DiscardLog})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	e := nodesttest.NewEngine(db, nodesttest.NoModels{}, &nodesttest.EventLog{}, nodest.Options{Log: nodesttest.DiscardLog, Alone: true})
	if err := db.InsertUser(b.Context(), &account.User{ID: nodesttest.Ann, Username: nodesttest.Ann}); err != nil {
		b.Fatal(err)
	}
	call := &op.Call{UserID: nodesttest.Ann}
	ch, err := e.Characters.Create(b.Context(), call, character.Input{RoleCard: json.RawMessage(nodesttest.Alice)})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := e.Archives.ImportArchive(b.Context(), call, ch.ID, nodesttest.LongArchive(messages)); err != nil {
		b.Fatal(err)
	}
	for _, query := range []string{"coffee", "咖啡", `"green tea" milk`} {
		b.Run(query, func(b *testing.B) {
			b.ReportAllocs()
			requests := 0
			for b.Loop() {
				for in := (chat.SearchInput{Query: query}); ; requests++ {
					page, err := e.Chats.Search(b.Context(), nodesttest.Ann, in)
					if err != nil {
						b.Fatal(err)
					}
					if in.Cursor = page.NextCursor; in.Cursor == "" {
						break
					}
				}
			}
			b.ReportMetric(messages*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
