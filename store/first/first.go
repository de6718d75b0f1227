// Package first turns rows of a backup of schema 1 into rows of the schema of today. It knows no
// database and reads no files: package store hands it each row, and stores what it returns.
package first

import (
	_ "embed"
	"slices"
	"strings"
)

// Schema is the version of the schema that the package reads.
const Schema = 1

// schema has a line for each table: its name, and its columns with their kinds. A name or kind with
// a question mark is not in the backups of all programs that wrote this schema.
//
//go:embed schema.txt
var schema string

// known are the tables of the schema, by name.
var known = readSchema()

type knownTable struct {
	optional bool
	columns  []string // "name kind"
	some     []string // those that a backup may lack
}

func readSchema() map[string]knownTable {
	tables := map[string]knownTable{}
	for line := range strings.Lines(schema) {
		var t knownTable
		name, columns, _ := strings.Cut(strings.TrimSpace(line), ": ")
		name, t.optional = strings.CutSuffix(name, "?")
		for c := range strings.SplitSeq(columns, ", ") {
			c, optional := strings.CutSuffix(c, "?")
			t.columns = append(t.columns, c)
			if optional {
				t.some = append(t.some, c)
			}
		}
		tables[name] = t
	}
	return tables
}

// Tables are all tables that a database of the schema may have.
func Tables() (names []string) {
	for name := range known {
		names = append(names, name)
	}
	return names
}

// Required reports whether a backup without a table is not complete.
func Required(table string) bool { return !known[table].optional }

// Fits reports whether a table of the schema has these columns, each "name kind", in any order.
func Fits(table string, columns []string) bool {
	t, ok := known[table]
	lacks := func(c string) bool { return !slices.Contains(columns, c) && !slices.Contains(t.some, c) }
	return ok && !slices.ContainsFunc(t.columns, lacks) &&
		!slices.ContainsFunc(columns, func(c string) bool { return !slices.Contains(t.columns, c) })
}

// Row is a row by columns: texts (also ids, "" = none), int64, float64, bool, []byte, or nil. Who
// gets one may change it.
type Row map[string]any

// Step makes rows of a table of today of each row of a table of the schema.
type Step struct {
	From string // the table of the schema
	make func(old Row, add func(Row)) error
}

// Steps returns how the rows of a table of today are made. There are none of a table that the schema
// does not have, and of those that only live for days: prompts, events and answers of commands.
func Steps(table string) []Step {
	if steps, ok := special[table]; ok {
		return steps
	}
	if _, ok := known[table]; !ok {
		return nil
	}
	return []Step{{table, same}}
}

// Make calls add with the rows that are made of one.
func (s Step) Make(old Row, add func(Row)) error {
	for column, now := range renamed[s.From] {
		if v, ok := old[column]; ok {
			delete(old, column)
			old[now] = v
		}
	}
	return s.make(old, add)
}
