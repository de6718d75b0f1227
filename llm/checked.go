package llm

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"nodest/internal/fault"
)

// MaxReply is the default of Request.MaxBytes, and longestModel bounds the name of a model, in
// code points.
const (
	MaxReply     = 1 << 20
	longestModel = 200
)

// Checked makes sure that a reply is complete and bounded. It turns
//
//   - a sequence that ends without a chunk that has Last set into
//     fault.UpstreamBadAnswer "cut off" (or the context's error),
//   - a reply without any text and calls into fault.EmptyReply,
//   - calls that are too many or too large into fault.UpstreamBadAnswer (CheckCalls),
//   - the finish word FinishBlocked into fault.Blocked with details.stage,
//   - a panic of the adapter into fault.Internal,
//   - a reply longer than Request.MaxBytes into one that ends there with FinishLength; the rest is
//     not read,
//   - the name of the model into one line of at most 200 characters,
//   - the marks of a model's own format into tags (Marked).
//
// What was received before, including the usage, is passed on first. Calls that the request
// did not allow (it has no Tools, or NoCalls) are left out.
func Checked(provider string, gen Generator) Generator {
	gen = guarded(provider, Marked(gen))
	return stream(func(ctx context.Context, req Request, yield func(Chunk, error) bool) {
		hasText, room := false, cmp.Or(req.MaxBytes, MaxReply)
		for c, err := range gen.Stream(ctx, req) {
			if err != nil {
				yield(Chunk{}, err)
				return
			}
			if c.Model != "" {
				c.Model = shortLine(c.Model, longestModel)
			}
			room = c.fit(room)
			hasText = hasText || strings.TrimSpace(c.Text) != ""
			if c.Usage != nil {
				c.Usage = c.Usage.bounded()
			}
			if !c.Last {
				if !yield(c, nil) {
					return
				}
				continue
			}
			if len(req.Tools) == 0 || req.NoCalls {
				c.Calls, c.Echo = nil, nil
			}
			if bad := checkEnd(provider, c, hasText); bad != nil {
				c.Last, c.Finish, c.Calls, c.Echo = false, "", nil, nil
				if yield(c, nil) {
					yield(Chunk{}, bad)
				}
				return
			}
			yield(c, nil)
			return
		}
		if ended := contextError(ctx, provider); ended != nil {
			yield(Chunk{}, ended)
			return
		}
		yield(Chunk{}, CutOff(provider, nil))
	})
}

// fit cuts c to room bytes and ends the reply there if c has more. It returns the room that is left.
func (c *Chunk) fit(room int) (left int) {
	size := len(c.Text) + len(c.Reasoning)
	if size <= room {
		return room - size
	}
	c.Reasoning = cutTo(c.Reasoning, room)
	c.Text = cutTo(c.Text, room-len(c.Reasoning))
	c.Last, c.Finish, c.Calls, c.Echo = true, FinishLength, nil, nil
	return 0
}

// cutTo returns at most n bytes of s that end with a whole code point.
func cutTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// errNoRoom is the cause of an empty reply whose tokens all went into reasoning:
// asking again would end the same way.
var errNoRoom = errors.New("the token limit was reached before the first word")

// NoRoom reports whether a reply stayed empty because the limit of tokens was spent on reasoning.
func NoRoom(err error) bool { return errors.Is(err, errNoRoom) }

func checkEnd(provider string, last Chunk, hasText bool) error {
	switch finish := last.Finish; {
	case finish == FinishBlocked:
		return BlockedError(provider, StageReply, "")
	case len(last.Calls) > 0 && finish != "":
		return checkTools(provider, last)
	case !hasText && finish == FinishLength:
		e := Upstream(provider, fault.EmptyReply, 0, errNoRoom)
		e.Message += ": " + errNoRoom.Error()
		return e
	case !hasText:
		return Upstream(provider, fault.EmptyReply, 0, nil)
	case finish == "":
		return CutOff(provider, errors.New("the last chunk has no finish reason"))
	}
	return nil
}
