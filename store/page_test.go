package store

import (
	"strconv"
	"testing"
)

func TestAPageOfLargeDocumentsEndsEarly(t *testing.T) {
	const all = 95
	read := func(cursor string, limit int) ([]int, string, error) {
		from, _ := strconv.Atoi(cursor)
		var some []int
		for i := from; i < min(from+limit, all); i++ {
			some = append(some, i)
		}
		if from+limit >= all {
			return some, "", nil
		}
		return some, strconv.Itoa(from + limit), nil
	}
	for size, want := range map[int]int{1: 50, 1 << 20: 40, pageBytes + 1: pageStep} {
		seen, cursor := 0, ""
		for {
			items, next, err := pageOfDocuments(cursor, 50, read, func(int) int { return size })
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range items {
				if item != seen {
					t.Fatalf("item %d comes after %d", item, seen-1)
				}
				seen++
			}
			if next != "" && len(items) != want {
				t.Errorf("size %d: a page of %d, want %d", size, len(items), want)
			}
			if cursor = next; next == "" {
				break
			}
		}
		if seen != all {
			t.Errorf("size %d: %d items, want %d", size, seen, all)
		}
	}
}
