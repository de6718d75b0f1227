package card_test

import (
	"fmt"
	"strings"
	"testing"

	"nodest/card"
)

// bookOf returns a card with a book of n full entries.
func bookOf(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"id":%d,"keys":["key %d","other %d"],"content":"%s","insertion_order":%d,"enabled":true,"extensions":{"depth":4}}`,
			i, i, i, strings.Repeat("lore ", 40), i)
	}
	return `{"spec":"chara_card_v2","data":{"name":"Ada","character_book":{"entries":[` + b.String()[1:] + `]}}}`
}

func BenchmarkImport500Entries(b *testing.B) {
	file := []byte(bookOf(500))
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		if _, err := card.Import(file, "x", card.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseWorldBook500Entries(b *testing.B) {
	ch, err := card.Import([]byte(bookOf(500)), "x", card.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := card.ParseWorldBook(ch.WorldBook, card.SillyTavern); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkExportPNG500Entries(b *testing.B) {
	ch, err := card.Import([]byte(bookOf(500)), "x", card.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := card.Export(ch, card.PNG, ""); err != nil {
			b.Fatal(err)
		}
	}
}
