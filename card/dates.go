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
	sent := make([]time.Time, len(c.Messages))
	for i, m := range c.Messages {
		sent[i] = m.SentAt
	}
	return c.TimesOf(sent, now)
}

// TimesOf is Times for messages that say these dates.
func (c *Chat) TimesOf(sent []time.Time, now time.Time) []time.Time {
	times := make([]time.Time, len(sent))
	last, dated := DateOf(fieldsOf(c.Header)["create_date"]), false
	for _, at := range sent {
		if !at.IsZero() {
			last, dated = at, true
			break
		}
	}
	if last.IsZero() || last.After(now) && !dated {
		last = now
	}
	for i, at := range sent {
		if !at.IsZero() {
			last = at
		}
		times[i] = last
	}
	return times
}

// warnUndated is about so many messages without a date of all.
func (im *importer) warnUndated(c *Chat, n, all int) {
	switch {
	case n == 0:
	case n == all && DateOf(fieldsOf(c.Header)["create_date"]).IsZero():
		im.warn("send_date", "unreadable_date", "no readable date in any of %d messages; they get the time of the import", n)
	case n == all:
		im.warn("send_date", "unreadable_date", "no readable date in any of %d messages; they get the date of the log", n)
	default:
		im.warn("send_date", "unreadable_date", "no readable date in %d of %d messages; each gets that of the message before it", n, all)
	}
}
