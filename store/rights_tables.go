package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"nodest/chat"
	"nodest/internal/rights"
)

// A user takes out rows as they are. Every key of user data begins with the user, so the same ids are free for
// whoever brings them in. A table with a user is in the file, unless it is listed here.

// leftOut are the tables that no file has, and why.
var leftOut = map[string]string{
	"tokens": "secret", "tickets": "secret", "provider_keys": "secret",
	"quotas": "counted by the server", "usage_days": "counted by the server", "circle_spends": "counted by the server",
	"call_keys": "answers to devices", "streams": "answers to devices", "events": "answers to devices", "devices": "answers to devices",
	"prompts": "kept for days", "prompt_files": "kept for days", "web_pages": "kept for days", "web_hosts": "kept for days",
	"jobs": "work of the server", "loads": "work of the server", "research_calls": "work of the server",
	"message_words": "made of other rows", "memory_scopes": "made of other rows", "memory_segments": "made of other rows",
	"memory_segment_parts": "made of other rows", "knowledge_segments": "made of other rows", "knowledge_vectors": "made of other rows",
	"knowledge_spaces": "made of other rows",
	"knowledge_grants": "names other users",
	"file_parts":       "the document is beside the rows",
	"tavern_parts":     "work of the server",
}

// leftColumns are columns that no file has, by table. Rows that come in have 0, "" or NULL there.
var leftColumns = map[string][]string{
	"generations":  {"is_open", "lease_owner", "lease_until", "prompt_id"},
	"memory_texts": {"model", "vector"},
	"memories":     {"model", "vector"},
	"files":        {"progress"},
	"avatars":      {"data"}, // a file beside the rows
	"attachments":  {"data"}, // likewise
}

// rightsFilters are conditions on the rows c of tables: others are in no file.
var rightsFilters = map[string]string{
	"characters":      "c.deleted_at IS NULL",
	"conversations":   "c.deleted_at IS NULL AND NOT EXISTS (SELECT 1 FROM loads l WHERE l.user_id = c.user_id AND l.conversation_id = c.id AND l.chain = 0)",
	"resources":       "(c.deleted_at IS NULL OR NOT " + noSaveNeeds + ")",
	"files":           "c.deleted_at IS NULL",
	"knowledge_bases": "c.deleted_at IS NULL",
	"circle_posts":    "c.deleted_at IS NULL",
	"circle_turns":    "c.ended_at IS NOT NULL",
	"dream_runs":      "c.finished_at IS NOT NULL",
	"research_runs":   "c.state NOT IN ('queued', 'running')",
	"generations":     "c.ended_at IS NOT NULL",
	"tavern_imports":  "c.state NOT IN ('queued', 'running')",
}

// openStates are the values of a column status that only a running process ends: it is interrupted, as after a crash.
var openStates = map[string][]string{
	"messages":    {chat.StatusPending, chat.StatusStreaming},
	"generations": {chat.GenQueued, chat.GenBuilding, chat.GenWaiting, chat.GenStreaming},
}

// otherDocuments are the columns that have JSON although they cannot be NULL. A text that can be NULL is JSON.
var otherDocuments = []string{
	"settings.document", "user_variables.document", "generations.options", "circle_states.settings",
	"research_runs.plan", "research_runs.estimate", "research_runs.cost", "tavern_imports.counts",
}

// plainBlobs are the columns of bytes that are no JSON.
var plainBlobs = []string{"cognition_events.hash", "tavern_contents.data"}

// ownedTable is a table of a file.
type ownedTable struct {
	*table
	root    string         // table of the bundle that its rows are in
	up      *reference     // to the table of the bundle that its rows belong to; nil = it is the root
	refs    []*ownedRef    // to rows of other bundles that may be in no file
	columns []*ownedColumn // all columns of the table
}

type ownedRef struct {
	column string
	parent string
	filter string
}

// ownedColumn is a column of a table in a file.
type ownedColumn struct {
	column
	isUser     bool // the user, whoever that is
	isLeft     bool // in no file
	isDocument bool // JSON, as text or as a frame
	isNull     bool // may be NULL
}

// owned are the tables of a file, each after those that it refers to.
type owned []*ownedTable

// ownedTables returns the tables that a file of today has.
func ownedTables(ctx context.Context) (owned, error) {
	tables, err := tablesAt(ctx, newestVersion())
	if err != nil {
		return nil, err
	}
	var all owned
	for _, t := range tables {
		if leftOut[t.name] != "" || !slices.Contains(t.columnNames(), "user_id") {
			continue
		}
		o := &ownedTable{table: t}
		for _, c := range t.columns {
			o.columns = append(o.columns, columnOf(t, c))
		}
		if err := o.place(all); err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

func columnOf(t *table, c column) *ownedColumn {
	name := t.name + "." + c.Name
	o := &ownedColumn{column: c, isUser: c.Name == "user_id" || strings.HasSuffix(c.Name, "_user_id"), isNull: t.nullable[c.Name]}
	o.isLeft = o.isUser || slices.Contains(leftColumns[t.name], c.Name)
	switch c.Kind {
	case kindText:
		o.isDocument = o.isNull || slices.Contains(otherDocuments, name)
	case kindBlob:
		o.isDocument = !slices.Contains(plainBlobs, name)
	}
	return o
}

// place finds the bundle that rows of o are in, among tables before it.
func (o *ownedTable) place(before owned) error {
	for _, r := range o.table.refs {
		column := r.columns[len(r.columns)-1]
		parent := before.table(r.parent)
		switch {
		case r.parent == "users":
			o.root = o.name
		case parent == nil:
			return fmt.Errorf("%s belongs to %s, which no file has", o.name, r.parent)
		case o.root == "" && !o.nullable[column]:
			o.root, o.up = parent.root, &r
		}
		if parent != nil && parent.root != o.root && rightsFilters[parent.root] != "" {
			o.refs = append(o.refs, &ownedRef{column, r.parent, rightsFilters[parent.root]})
		}
	}
	if o.root == "" {
		return fmt.Errorf("%s belongs to nobody", o.name)
	}
	return nil
}

func (all owned) table(name string) *ownedTable {
	for _, o := range all {
		if o.name == name {
			return o
		}
	}
	return nil
}

// inBundle returns the tables of a bundle, its root first.
func (all owned) inBundle(root string) owned {
	return slices.DeleteFunc(slices.Clone(all), func(o *ownedTable) bool { return o.root != root })
}

// roots are the tables of which each row makes a bundle.
func (all owned) roots() owned {
	return slices.DeleteFunc(slices.Clone(all), func(o *ownedTable) bool { return o.up != nil })
}

// isSingle reports whether a user has one row at most.
func (o *ownedTable) isSingle() bool { return slices.Equal(o.key, []string{"user_id"}) }

// inside is a condition on the rows c of o: they are in a bundle, and in a file.
func (o *ownedTable) inside(all owned, userID string, b rights.Bundle) (where string, args []any) {
	where, args = o.within(all, userID, b)
	if filter := rightsFilters[o.name]; filter != "" {
		where += " AND " + filter
	}
	for _, c := range o.columns {
		if c.isUser && c.Name != "user_id" {
			where, args = where+" AND c."+c.Name+" = ?", append(args, userID)
		}
	}
	for _, r := range o.refs {
		where += " AND (c." + r.column + " IS NULL OR c." + r.column + " IN (SELECT c.id FROM " + r.parent + " c WHERE c.user_id = ? AND " + r.filter + "))"
		args = append(args, userID)
	}
	return where, args
}

// within is inside for all rows of the bundle.
func (o *ownedTable) within(all owned, userID string, b rights.Bundle) (where string, args []any) {
	where, args = "c.user_id = ?", []any{userID}
	switch {
	case o.up == nil && b.ID != "":
		return where + " AND c.id = ?", append(args, b.ID)
	case o.up == nil:
		return where, args
	case o.up.parent == o.root:
		return where + " AND c." + o.up.columns[len(o.up.columns)-1] + " = ?", append(args, b.ID)
	}
	above, more := all.table(o.up.parent).within(all, userID, b)
	return where + " AND (c." + strings.Join(o.up.columns, ", c.") + ") IN (SELECT c." + strings.Join(o.up.keys, ", c.") +
		" FROM " + o.up.parent + " c WHERE " + above + ")", append(args, more...)
}

// order is the order of the rows c of o, which is the same in both databases.
func (o *ownedTable) order() string {
	var by []string
	for _, c := range o.columns {
		switch {
		case c.isUser || len(o.key) > 0 && !slices.Contains(o.key, c.Name):
		case c.isNull:
			by = append(by, "c."+c.Name+" IS NULL", "c."+c.Name)
		default:
			by = append(by, "c."+c.Name)
		}
	}
	if len(by) == 0 {
		return ""
	}
	return " ORDER BY " + strings.Join(by, ", ")
}
