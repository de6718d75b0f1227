package chat

import (
	"iter"
	"math"
	"slices"
	"strings"

	"nodest/internal/summary"
	"nodest/llm"
)

// Sizes of the pages in which a chat is read backwards, in messages.
const (
	FirstPage = 32
	largePage = 512
)

// ReadPath reads a branch backwards, page by page, the messages before one ("" =
// from its end on), until room tokens are full or a page has the message until.
func ReadPath(before string, room int, until string, read PageReader) (path []*Message, more bool, err error) {
	var pages [][]*Message
	for size := FirstPage; ; size = min(size*2, largePage) {
		page, more, err := read(before, size)
		if err != nil {
			return nil, false, err
		}
		pages = append(pages, page)
		room -= PathTokens(page)
		reached := until != "" && slices.ContainsFunc(page, func(m *Message) bool { return m.ID == until })
		if !more || len(page) == 0 || room <= 0 || reached {
			slices.Reverse(pages)
			return slices.Concat(pages...), more, nil
		}
		before = page[0].ID
	}
}

// MessageTokens is at most about the number of tokens of a message. Tokenizers make
// fewer tokens than the estimate out of some texts, so that three quarters of it
// count; the exact limit is the business of the build.
func MessageTokens(m *Message) int { return llm.EstimateTokens(m.Text())*3/4 + 3 }

// PathTokens is the sum of MessageTokens.
func PathTokens(path []*Message) int {
	n := 0
	for _, m := range path {
		n += MessageTokens(m)
	}
	return n
}

// PageReader reads a page of a branch, as Tx.Path does.
type PageReader func(before string, size int) ([]*Message, bool, error)

// Summarised is a branch with a summary in place of messages that were not read.
type Summarised struct {
	Front []*Message // before the summary
	Rest  []*Message // that are sent word for word
	More  bool       // there are more messages before
}

// ReadSummarised reads what a prompt shows of a branch with s on it. tail is the end of
// the branch, read as far back as the last message of s or as room goes; more says
// that it does not begin with the first message. unstored is the number of messages
// that follow and are not stored. ok is false if s does not apply to the branch.
func ReadSummarised(s *summary.Summary, tail []*Message, unstored int, more bool, room int, read PageReader) (a Summarised, ok bool, err error) {
	from, ok := behind(s, tail, unstored)
	switch {
	case ok:
		a.Rest = tail[from:]
	case more && PathTokens(tail) >= room: // there is no room for what is before
		a.Rest, a.More = tail, true
		return a, true, nil
	default:
		return a, false, nil
	}
	a.Front, a.More, err = ReadPath(s.Range.StartID, max(1, room-PathTokens(a.Rest)), "", read)
	return a, true, err
}

// behind is the index in tail of the first message that is sent word for word behind s:
// the one after those that s covers, and at the latest the third from the end of the
// branch, with unstored messages counted.
func behind(s *summary.Summary, tail []*Message, unstored int) (from int, ok bool) {
	lines := LinesOf(tail)
	at := slices.IndexFunc(lines, func(l summary.ChatLine) bool { return l.MessageID == s.Range.EndID })
	if at < 0 {
		return 0, false
	}
	_, next := s.Overlay(append(lines, make([]summary.ChatLine, unstored)...))
	first := s.Range.EndID
	if next < len(lines) {
		first = lines[next].MessageID
	}
	from = slices.IndexFunc(tail, func(m *Message) bool { return m.ID == first })
	if next >= len(lines) {
		from++
	}
	return from, true
}

// ShownBranch returns the shown branch, oldest first.
func ShownBranch(tx Tx, conv *Conversation) ([]*Message, error) {
	if conv.HeadID == "" {
		return nil, nil
	}
	path, _, err := ReadPath("", math.MaxInt, "", func(before string, size int) ([]*Message, bool, error) {
		return tx.Path(conv.ID, conv.HeadID, before, size)
	})
	return path, err
}

// walkPage is how many messages a walk holds at a time.
const walkPage = 100

// Shown are the messages of the shown branch, oldest first. It holds some of them at a time; after an
// error it ends.
func Shown(tx Tx, conv *Conversation) iter.Seq2[*Message, error] {
	return walk(conv.HeadID, func(after string) ([]*Message, bool, error) {
		return tx.PathAfter(conv.ID, conv.HeadID, after, walkPage)
	})
}

// walk are the messages of the branch that ends in head, of which read reads the next page.
func walk(head string, read func(after string) ([]*Message, bool, error)) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		for after, more := "", head != ""; more; {
			var page []*Message
			var err error
			if page, more, err = read(after); err != nil {
				yield(nil, err)
				return
			}
			for _, m := range page {
				after = m.ID
				if !yield(m, nil) {
					return
				}
			}
		}
	}
}

// InPrompt are the messages of a branch that go into a prompt. Hidden messages and
// places without a text are left out, and so is a failed exchange: a reply that failed
// before its first word, with the message that it was to answer.
func InPrompt(branch []*Message) []*Message {
	clean, f := make([]*Message, 0, len(branch)), promptFilter{}
	for _, m := range branch {
		if sure := f.next(m); sure != nil {
			clean = append(clean, sure)
		}
	}
	if f.held != nil {
		clean = append(clean, f.held)
	}
	return clean
}

// EachInPrompt is InPrompt for a branch that is read as it goes.
func EachInPrompt(branch iter.Seq2[*Message, error]) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		f := promptFilter{}
		for m, err := range branch {
			if err != nil {
				yield(nil, err)
				return
			}
			if sure := f.next(m); sure != nil && !yield(sure, nil) {
				return
			}
		}
		if f.held != nil {
			yield(f.held, nil)
		}
	}
}

// promptFilter is the rule of InPrompt. It holds the last message that passed, until what follows
// shows whether its reply failed.
type promptFilter struct{ held *Message }

// next takes the next message of a branch, and returns the one that is sure to pass, if any.
func (f *promptFilter) next(m *Message) (sure *Message) {
	switch {
	case m.Hidden:
	case strings.TrimSpace(m.Text()) != "":
		sure, f.held = f.held, m
	case m.Status == StatusError && f.held != nil && f.held.ID == m.ParentID && f.held.Role == RoleUser:
		f.held = nil
	}
	return sure
}
