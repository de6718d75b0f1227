package store

import (
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/schema"
)

// pageLength is limit, or 50 where none is given.
func pageLength(limit int) int {
	if limit <= 0 {
		return 50
	}
	return limit
}

// page orders q newest first by a time and then by id, beginning after cursor,
// and asks for one row more than the page has, which tells whether there is
// more. Reading on is a search in the index, however far the cursor is.
func page(q *bun.SelectQuery, column, cursor string, limit int) error {
	if cursor != "" {
		after, err := parseCursor(cursor)
		if err != nil {
			return err
		}
		q.Where("(?, id) < (?, ?)", bun.Ident(column), after.ms, text(after.id))
	}
	q.OrderExpr("? DESC, id DESC", bun.Ident(column)).Limit(int64(limit) + 1)
	return nil
}

// cut returns the rows of the page, and the cursor of the next one if there is one.
func cut[T any](rows []T, limit int, where func(T) place) ([]T, string) {
	if len(rows) <= limit {
		return rows, ""
	}
	rows = rows[:limit]
	return rows, where(rows[limit-1]).cursor()
}

// fillTimes gives times that are not set the time of the transaction, and cuts
// the others to what is stored.
func (t *tx) fillTimes(times ...*time.Time) {
	for _, p := range times {
		if p.IsZero() {
			*p = t.Now()
		}
		*p = moment(millis(*p))
	}
}

// among is a condition on ids, one at least, and its argument. For one id, as it
// mostly is, the statement is always the same.
func among(ids []string) (condition string, arg any) {
	if len(ids) == 1 {
		return "= ?", text(ids[0])
	}
	return "IN (?)", list(ids)
}

// list is ids in a statement: IN (?). There must be one at least.
func list(ids []string) schema.QueryAppender {
	texts := make([]text, len(ids))
	for i, id := range ids {
		texts[i] = text(id)
	}
	return bun.List(texts)
}
