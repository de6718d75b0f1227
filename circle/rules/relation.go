package rules

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// How much a relationship to somebody grows by what they did.
const (
	LikeDelta    = 1
	CommentDelta = 2
	ReplyDelta   = 3
	AcceptDelta  = 5 // for an action
	RejectDelta  = -2
)

const (
	maxStrength = 100
	maxReview   = 10 // most that one change adds or takes
)

// Types are the types of relationships. Those of romance, family and work do not follow
// from the strength: only the model or the user names them.
var Types = []string{
	"enemy", "rival", "stranger", "acquaintance", "friend", "close_friend", "best_friend",
	"family", "lover", "crush", "admirer", "colleague", "ex", "mentor",
}

// TypeOf is the type that follows from a strength.
func TypeOf(strength int) string {
	switch {
	case strength < -60:
		return "enemy"
	case strength < -20:
		return "rival"
	case strength < 10:
		return "stranger"
	case strength < 40:
		return "acquaintance"
	case strength < 70:
		return "friend"
	case strength < 90:
		return "close_friend"
	}
	return "best_friend"
}

// Changed is a relationship after a change of its strength by at most 10 in either
// direction. newType is a type that the model has named, "" or unknown = none. A named
// type is kept from then on, unless the strength says the same.
func Changed(strength int, typ string, kept bool, delta int, newType string) (newStrength int, changedType string, nowKept bool) {
	delta = min(max(delta, -maxReview), maxReview)
	strength = min(max(strength+delta, -maxStrength), maxStrength)
	follows := TypeOf(strength)
	switch {
	case slices.Contains(Types, newType):
		return strength, newType, newType != follows
	case kept:
		return strength, typ, true
	}
	return strength, follows, false
}

// Offer is an action that a relationship allows.
type Offer struct {
	Type string        // gift, invitation or support
	For  time.Duration // until it expires
}

// Offers returns the actions that a relationship allows, the rarest first.
func Offers(typ string, strength int, interactions int64) []Offer {
	const day = 24 * time.Hour
	var all []Offer
	if (typ == "close_friend" || typ == "best_friend") && strength >= 70 {
		all = append(all, Offer{"gift", 7 * day})
	}
	if typ != "enemy" && typ != "rival" && strength >= 40 && interactions >= 3 {
		all = append(all, Offer{"invitation", 5 * day})
	}
	if interactions >= 5 {
		all = append(all, Offer{"support", 3 * day})
	}
	return all
}

// Update is a change of a relationship that a model asks for, as it was written: Changed
// bounds it.
type Update struct {
	TargetID      string `json:"targetId"`
	StrengthDelta int    `json:"strengthDelta"`
	NewType       string `json:"newType,omitempty"`
}

const (
	maxUpdates    = 100
	maxReviewLine = 300 // bytes
)

var (
	reviewHeading = regexp.MustCompile(`(?i)(?:关系更新|relationship updates?)\**[ \t]*[:：]\**`)
	reviewLine    = regexp.MustCompile(`^(.*)-([+-]\d{1,6})(?:-(.*))?$`)
)

// ReadReview reads the section "关系更新:" (or "Relationship updates:") of a reply: up to a
// blank line, lines of the form <id>-<±n>[-<type>]. It skips lines of any other form.
func ReadReview(reply string) []Update {
	reply = reply[:min(len(reply), maxReply)]
	updates := []Update{}
	at := reviewHeading.FindStringIndex(reply)
	if at == nil {
		return updates
	}
	for line := range strings.Lines(strings.TrimLeft(reply[at[1]:], " \t\r\n")) {
		line = strings.TrimSpace(line)
		if line == "" || len(updates) == maxUpdates {
			break
		}
		m := reviewLine.FindStringSubmatch(strings.TrimLeft(line, "-*•` "))
		if m == nil || len(line) > maxReviewLine {
			continue
		}
		id := strings.TrimSpace(m[1])
		delta, err := strconv.Atoi(m[2])
		if err != nil || id == "" {
			continue
		}
		updates = append(updates, Update{id, delta, strings.ToLower(strings.Trim(m[3], "` \t"))})
	}
	return updates
}
