package card

import (
	"encoding/json"
	"time"

	"nodest/card/date"
)

// DateOf reads the date of a message in any of the forms that logs have had; zero is a date that cannot be read.
func DateOf(doc json.RawMessage) time.Time {
	s, ok := textOf(doc)
	if !ok {
		return time.Time{}
	}
	return date.Parse(s)
}

// Times are the times of the messages. One without a readable date has that of the message
// before it, the first ones that of the next; if no message has any, it is when the log was
// begun by its header, else now.
func (c *Chat) Times(now time.Time) []time.Time {
	times := make([]time.Time, len(c.Messages))
	last := DateOf(fieldsOf(c.Header)["create_date"])
	for _, m := range c.Messages {
		if !m.SentAt.IsZero() {
			last = m.SentAt
			break
		}
	}
	if last.IsZero() || last.After(now) && c.undated() == len(c.Messages) {
		last = now
	}
	for i, m := range c.Messages {
		if !m.SentAt.IsZero() {
			last = m.SentAt
		}
		times[i] = last
	}
	return times
}

func (c *Chat) undated() (n int) {
	for _, m := range c.Messages {
		if m.SentAt.IsZero() {
			n++
		}
	}
	return n
}

func (im *importer) warnUndated(c *Chat) {
	switch n := c.undated(); {
	case n == 0:
	case n == len(c.Messages) && DateOf(fieldsOf(c.Header)["create_date"]).IsZero():
		im.warn("send_date", "unreadable_date", "no readable date in any of %d messages; they get the time of the import", n)
	case n == len(c.Messages):
		im.warn("send_date", "unreadable_date", "no readable date in any of %d messages; they get the date of the log", n)
	default:
		im.warn("send_date", "unreadable_date", "no readable date in %d of %d messages; each gets that of the message before it", n, len(c.Messages))
	}
}
