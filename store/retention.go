package store

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"nodest/store/sqldb"
)

const day = 24 * time.Hour

// deletedLife is how long what a user deleted can be brought back.
const deletedLife = 30 * day

// promptLife is how long a prompt that was sent can be read.
const promptLife = 7 * day

// Retention says how long things are kept that the server makes for itself. Zero members are
// the defaults.
type Retention struct {
	Events     time.Duration // age of events in the log of a user; default 7 days
	EventCount int64         // newest events of a user that are kept at most; default 20,000
	Audit      time.Duration // age of the audit log; default 180 days
}

// Lifetime is how long one kind of thing is kept, in words for people.
type Lifetime struct{ What, How string }

// remover removes at most a batch of what is older than life; it is done when it removed none.
type remover func(s *session, life time.Duration) (int64, error)

// rule is how long one kind of thing is kept, and how it is removed.
type rule struct {
	what   string        // in what maintenance reports
	people string        // the name that people read; "" = belongs to another rule
	life   time.Duration // 0 = the row knows its end
	since  string        // when the time begins to count, and exceptions
	remove remover
}

// rules are all rules, in the order in which they are carried out. What docs/limits.md and
// nodest doctor tell is made of them.
func (r Retention) rules() []rule {
	events, count := cmp.Or(r.Events, 7*day), cmp.Or(r.EventCount, 20_000)
	newest := fmt.Sprintf("after they happened, and of each user the newest %d at most", count)
	return slices.Concat([]rule{
		{"events", "events for devices that were away", events, newest, oldEvents(count)},
		{"keys", "idempotency keys", keyLife, "after the call", oldRows("call_keys", "user_id, call_key", "c.created_at <= ?", 100)},
		{"audit", "the audit log", cmp.Or(r.Audit, 180*day), "", oldRows("audit_log", "id", "c.at <= ?", maintainBatch)},
		{"tickets", "sign-in links and WebSocket tickets", 0, "until they expire", oldRows("tickets", "hash", "c.expires_at <= ?", maintainBatch)},
		{"saves", "save points that the server made by itself", 30 * day, "", oldRows("saves", "user_id, id", "c.is_automatic AND c.created_at <= ?", maintainBatch)},
		{"loads", "imports that ended in the middle", loadLife, "after the last step", oldLoads},
		{"texts", "", deletedLife, "", oldTexts}, // those of messages that stay
		{"messages", "deleted messages that no save point needs", deletedLife, "after the deletion", oldLeaves},
		{"messages", "", deletedLife, "", messagesOfOldConversations},
		// A conversation that is not empty waits for the next round: what was copied from it was
		// removed in this one.
		{"conversations", "deleted chats, characters and resources", deletedLife, "after the deletion", oldWhole(&chatParts)},
		{"characters", "", deletedLife, "", oldWhole(&characterParts)},
		{"resources", "", deletedLife, "", oldWhole(&resourceParts)},
		{"web pages", "web pages that were read", 30 * day, "after the reading", oldRows("web_pages", "user_id, url", "c.fetched_at <= ?", 10)},
		{"uploads", "uploads that did not become a document", day, "after they began", abandonedUploads},
		{"uploads", "", day, "", abandonedFolders},
		{"imports", "reports of imported folders", 90 * day, "after they began", oldRows("tavern_imports", "user_id, id", "c.state NOT IN ('queued', 'running') AND c.created_at <= ?", 1)},
		{"imports", "", 3 * day, "", goneFiles},
		{"questions", "questions to documents", 90 * day, "", oldRows("knowledge_queries", "user_id, id", "c.created_at <= ?", maintainBatch)},
		{"dreams", "reports of dreams", 90 * day, "", oldRows("dream_runs", "user_id, id", "c.created_at <= ?", 20)},
		{"plans", "plans of research that nobody has started", 7 * day, "", oldRows("research_runs", "user_id, id", "c.state = 'planned' AND c.created_at <= ?", maintainBatch)},
		{"versions", "earlier versions of a memory's documents", 90 * day, "", oldDocumentVersions},
		{"hosts", "web servers that asked to wait", 0, "until the time they named", oldRows("web_hosts", "user_id, host", "c.until <= ?", maintainBatch)},
		{"prompts", "prompts that were sent", promptLife, "after they were sent, or until something in them is removed for good", oldIDs("prompts", "c.created_at <= ?")},
		{"generations", "how replies were made, and why memories were recalled (the replies stay)", 90 * day, "after their end", oldGenerations},
		{"jobs", "finished jobs", 7 * day, "after their end; one that is done, only until the next of its kind about the same thing is; of the server's own, the last that is done stays", oldRows("jobs", "id", "c.state IN ('done', 'failed', 'cancelled') AND NOT (c.state = 'done' AND c.user_id IS NULL) AND c.updated_at <= ?", maintainBatch)},
	}, circleRules)
}

// Rules lists what is removed by itself, and when.
func (r Retention) Rules() []Lifetime {
	var list []Lifetime
	for _, r := range r.rules() {
		if r.people == "" {
			continue
		}
		how := r.since
		if r.life > 0 {
			how = lifeText(r.life)
			if r.since != "" {
				how += " " + r.since
			}
		}
		list = append(list, Lifetime{r.people, how})
	}
	return list
}

// lifeText is a time of whole hours or days in words.
func lifeText(life time.Duration) string {
	n, unit := life/time.Hour, "hour"
	if life > 2*day || life == day {
		n, unit = life/day, "day"
	}
	if n != 1 {
		unit += "s"
	}
	return fmt.Sprintf("%d %s", n, unit)
}

// oldEvents removes events from the beginning of the logs, so that what is kept of a log has no
// holes: those that are too old, and those before the newest count of the user. It asks once
// which logs have any.
func oldEvents(count int64) remover {
	var users []string
	asked := false
	return func(s *session, life time.Duration) (n int64, err error) {
		old := s.Now().Add(-life)
		if !asked {
			users, err = sqldb.All[string](s, `SELECT st.user_id FROM streams st JOIN events e ON e.user_id = st.user_id
				AND e.seq = (SELECT MIN(f.seq) FROM events f WHERE f.user_id = st.user_id)
				WHERE e.at <= ? OR e.seq <= st.seq - ?`, old, count) // oldEventsOf removes none of the rows that reach beyond it
			asked = true
		}
		for err == nil && n == 0 && len(users) > 0 {
			if n, err = s.oldEventsOf(users[0], old, count); n == 0 {
				users = users[1:]
			}
		}
		return n, err
	}
}

// oldEventsOf removes a batch of the rows of one user whose events are not younger than old, or
// all before the newest count.
func (s *session) oldEventsOf(userID string, old time.Time, count int64) (int64, error) {
	// The row with the first of the newest events stays.
	kept, err := sqldb.Value[int64](s, "SELECT COALESCE(MAX(e.seq), 0) FROM streams st JOIN events e ON e.user_id = st.user_id"+
		" WHERE st.user_id = ? AND e.seq <= st.seq - ? + 1", userID, count)
	if err != nil {
		return 0, err
	}
	rows, err := sqldb.All[logRow](s, "SELECT seq, at FROM events WHERE user_id = ? ORDER BY seq LIMIT ?", userID, maintainBatch)
	if err != nil {
		return 0, err
	}
	end := int64(0)
	for _, r := range rows {
		if r.At.After(old) && r.Seq >= kept {
			break
		}
		end = r.Seq
	}
	return s.Exec("DELETE FROM events WHERE user_id = ? AND seq <= ?", userID, end)
}
