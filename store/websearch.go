package store

import (
	"context"
	"time"

	"nodest/store/sqldb"
	"nodest/websearch"
)

// WebSearch returns the store of websearch.Service.
func (db *DB) WebSearch() websearch.Store { return part[websearch.Tx]{db, (*tx).forWebSearch} }

// forWebSearch returns t as package websearch has it.
func (t *tx) forWebSearch() websearch.Tx {
	return websearch.Tx{Tx: t, PageTx: t.web, Feedback: t.votes}
}

// webTx stores web pages that were read, and hosts that failed.
type webTx struct{ *tx }

type webPageRow struct {
	websearch.Page
	UserID string
}

type webHostRow struct {
	websearch.Host
	UserID string
}

func (t webTx) WebPage(url string) (*websearch.Page, error) {
	return sqldb.One[websearch.Page](t, "SELECT url, final_url, canonical, title, markdown, links, images, published, etag, last_modified, fetched_at, fresh_until"+
		" FROM web_pages WHERE user_id = ? AND url = ?", t.userID, url)
}

func (t webTx) GoodPageBytes(url string, since time.Time) (int, error) {
	query, args := "SELECT octet_length(markdown) FROM web_pages WHERE user_id = ? AND url = ? AND (fresh_until > ?", []any{t.userID, url, t.Now()}
	if !since.IsZero() {
		query, args = query+" OR fetched_at >= ?", append(args, since)
	}
	return sqldb.Value[int](t, query+")", args...)
}

func (t webTx) PutWebPage(p *websearch.Page) error {
	return t.Insert("web_pages", &webPageRow{*p, t.userID}, `ON CONFLICT (user_id, url) DO UPDATE SET
		final_url = EXCLUDED.final_url, canonical = EXCLUDED.canonical, title = EXCLUDED.title, markdown = EXCLUDED.markdown,
		links = EXCLUDED.links, images = EXCLUDED.images,
		published = EXCLUDED.published, etag = EXCLUDED.etag, last_modified = EXCLUDED.last_modified,
		fetched_at = EXCLUDED.fetched_at, fresh_until = EXCLUDED.fresh_until`)
}

func (t webTx) BadHosts(hosts []string) ([]websearch.Host, error) {
	if len(hosts) == 0 {
		return nil, nil
	}
	return sqldb.Map(t, func(h *websearch.Host) websearch.Host { return *h },
		"SELECT host, reason, until FROM web_hosts WHERE user_id = ? AND host IN (?) AND until > ?", t.userID, hosts, t.Now())
}

func (t webTx) PutBadHost(h websearch.Host) error {
	return t.Insert("web_hosts", &webHostRow{h, t.userID},
		"ON CONFLICT (user_id, host) DO UPDATE SET reason = EXCLUDED.reason, until = EXCLUDED.until")
}

// CountSearch adds a request with a key to a search provider in a month ("2006-01") and
// returns how many there are now.
func (db *DB) CountSearch(ctx context.Context, keyHash, month string) (requests int64, err error) {
	return writing(ctx, db, func(s *session) (int64, error) {
		return sqldb.Value[int64](s, "INSERT INTO search_usage (key_hash, month, requests) VALUES (?, ?, 1)"+
			" ON CONFLICT (key_hash, month) DO UPDATE SET requests = search_usage.requests + 1 RETURNING requests", keyHash, month)
	})
}
