package cli

import (
	"fmt"
	"strings"
	"time"
)

// AuditPath is where the newest entries of the audit log are.
const AuditPath = "/api/v1/audit?limit=200"

// AuditPage is a page of the audit log.
type AuditPage struct {
	Items []struct {
		At                              time.Time
		Count                           int64
		Action, Object, Detail, Address string
		Actor, Subject                  *struct{ Username string }
	}
}

// Rows are the entries as a table shows them, with a heading.
func (p *AuditPage) Rows() [][]string {
	rows := [][]string{{"TIME", "ACTION", "BY", "ACCOUNT", "ADDRESS", "MORE"}}
	name := func(u *struct{ Username string }) string {
		if u == nil {
			return "-"
		}
		return Brief(u.Username, 40)
	}
	for _, e := range p.Items {
		more := strings.TrimSpace(e.Object + " " + e.Detail)
		if e.Count > 1 {
			more = fmt.Sprintf("%d times %s", e.Count, more)
		}
		rows = append(rows, []string{ShortTime(e.At), e.Action, name(e.Actor), name(e.Subject), e.Address, more})
	}
	return rows
}
