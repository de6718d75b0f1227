package chat

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"unicode/utf8"

	"nodest/chat/words"
	"nodest/internal/fault"
	"nodest/internal/op"
)

const (
	maxQuery    = 200 // code points
	snippetSize = 200 // code points
	snippetLead = 60  // at most, before the first match
)

// Search looks for words in the texts of the user's messages, the newest first.
// A text must contain all words, in any order; a quoted phrase is one word. Case and
// width of letters are ignored.
// A message is found once: by the text that is shown, or else by the first of its
// other swipes that has all words. Deleted messages and swipes are not found.
//
// Ranges of messages that have not all words, by what is stored of them, are left out. One call reads
// about Options.SearchReach messages. NextCursor continues the search, even after a
// page with few or no hits; the search is complete when it is "".
// Limit is 1 to 200, 0 = 50.
//
// Errors: Invalid for a query (field q) that is blank or longer than 200 code
// points, a limit, a cursor; NotFound for a conversation or character that the
// user does not have.
func (svc *Service) Search(ctx context.Context, userID string, in SearchInput) (*op.Page[*Hit], error) {
	limit, err := op.CheckLimit(in.Limit)
	if err != nil {
		return nil, err
	}
	if !utf8.ValidString(in.Query) || utf8.RuneCountInString(in.Query) > maxQuery {
		return nil, fault.InvalidField("q", "range", "must have 1 to %d characters", maxQuery)
	}
	wanted := words.InQuery(in.Query)
	if len(wanted) == 0 {
		return nil, fault.InvalidField("q", "required", "must not be blank")
	}
	from, err := parseSearchCursor(in.Cursor)
	if err != nil {
		return nil, err
	}
	page := &op.Page[*Hit]{}
	var damaged []TextRange
	err = svc.store.View(ctx, userID, func(tx Tx) error {
		filter := TextFilter{ConversationID: in.ConversationID, CharacterID: in.CharacterID}
		s := searcher{words: wanted, parts: words.Parts(wanted), filter: filter, limit: limit, reach: svc.opts.SearchReach}
		next, err := s.walk(tx, from)
		if err != nil {
			return err
		}
		page.NextCursor, damaged = next, s.damaged
		if page.Items, err = s.hits(tx); err != nil {
			return err
		}
		return placeHits(tx, page.Items)
	})
	if err != nil {
		return nil, err
	}
	svc.mend(ctx, userID, damaged)
	return page, nil
}

func placeHits(tx Tx, hits []*Hit) error {
	ids, shown := map[string][]string{}, map[string]bool{}
	for _, h := range hits {
		ids[h.Message.ConversationID] = append(ids[h.Message.ConversationID], h.Message.ID)
	}
	chats := make(map[string]*Conversation, len(ids))
	for id, messages := range ids {
		conv, err := tx.Conversation(id)
		if err != nil {
			return err
		}
		on, err := tx.OnPath(id, conv.HeadID, messages)
		if err != nil {
			return err
		}
		chats[id] = conv
		for _, messageID := range on {
			shown[messageID] = true
		}
	}
	for _, h := range hits {
		h.Chat, h.Shown = chats[h.Message.ConversationID], shown[h.Message.ID]
	}
	return nil
}

// span is a part of a text, in bytes.
type span struct{ from, to int }

func (s *searcher) hit(m *Message, c *Swipe) *Hit {
	matches := s.matches(c.Text)
	cut := snippetAround(c.Text, matches[0])
	hit := &Hit{Message: m, SwipeID: c.ID, Snippet: c.Text[cut.from:cut.to]}
	for _, match := range matches {
		if match.from >= cut.to {
			break
		}
		from := utf8.RuneCountInString(c.Text[cut.from:match.from])
		n := utf8.RuneCountInString(c.Text[match.from:min(match.to, cut.to)])
		hit.Matches = append(hit.Matches, [2]int{from, from + n})
	}
	return hit
}

// matches returns where the words occur in a text that has them, in its order; what
// overlaps or touches is one match.
func (s *searcher) matches(text string) []span {
	form, at := s.folder.Placed(text)
	var all []span
	for _, word := range s.words {
		for from := 0; ; {
			i := bytes.Index(form[from:], word)
			if i < 0 {
				break
			}
			from += i
			to := from + len(word)
			found := span{at[from], at[to]}
			for to < len(form) && at[to] == at[to-1] { // it ends within a piece
				to++
				found.to = at[to]
			}
			all = append(all, found)
			from += len(word)
		}
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	merged := all[:1]
	for _, m := range all[1:] {
		last := &merged[len(merged)-1]
		if m.from <= last.to {
			last.to = max(last.to, m.to)
			continue
		}
		merged = append(merged, m)
	}
	return merged
}

// snippetAround cuts snippetSize code points out of a text, a match among them.
func snippetAround(text string, match span) span {
	cut := span{match.from, match.from}
	back := func(n int) (left int) {
		for ; n > 0 && cut.from > 0; n-- {
			_, size := utf8.DecodeLastRuneInString(text[:cut.from])
			cut.from -= size
		}
		return n
	}
	left := snippetSize - snippetLead + back(snippetLead)
	for ; left > 0 && cut.to < len(text); left-- {
		_, size := utf8.DecodeRuneInString(text[cut.to:])
		cut.to += size
	}
	back(left) // the text ends soon: more of the text before
	return cut
}

type wireHit struct {
	Message        wireMessage      `json:"message"`
	ConversationID string           `json:"conversationId"`
	Conversation   wireConversation `json:"conversation"`
	Shown          bool             `json:"shown"`
	SwipeID        string           `json:"swipeId"`
	Snippet        string           `json:"snippet"`
	Matches        [][2]int         `json:"matches"` // in the snippet, from and to, code points
}

// WireHit is h as clients see it.
func WireHit(h *Hit) any {
	at := h.Message.SwipeIndex
	if i, err := SwipeTarget(h.Message, h.SwipeID); err == nil {
		at = i
	}
	return wireHit{messageAround(h.Message, at), h.Chat.ID, conversationOf(h.Chat), h.Shown, h.SwipeID, h.Snippet, h.Matches}
}
