package tavern_test

import (
	"bytes"
	"testing"
	"time"

	"nodest/internal/tavern/taverntest"
	"nodest/store/storetest"
)

// A folder of chats of 200 messages; the figure is chats in a second of one import.
func BenchmarkImport(b *testing.B) {
	const chats = 100
	var archive bytes.Buffer
	if err := taverntest.Write(&archive, taverntest.Size{Cards: 5, Books: 2, Chats: chats, Messages: 200}); err != nil {
		b.Fatal(err)
	}
	db := storetest.Open(b)
	for b.Loop() {
		w := newWorld(b, db)
		began := time.Now()
		w.imported(archive.Bytes(), false)
		b.ReportMetric(chats/time.Since(began).Seconds(), "chats/s")
	}
}
