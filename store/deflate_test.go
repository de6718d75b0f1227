package store

import (
	"strings"
	"testing"
)

const (
	madeID  = "01a21fb8-86dc-7ac1-a96a-a10000000000"
	laterID = "01a21fb8-86e8-77af-b029-b80000000000"
	otherID = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
)

func TestDeflatedTextsAreReadAsTheyWere(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing":       "",
		"no id":         `{"text":"On 2026-11-28 – well-known."}`,
		"one id":        madeID,
		"ids":           `["` + strings.Join([]string{madeID, laterID, madeID, madeID, otherID, laterID, otherID, otherID}, `","`) + `"]`,
		"within a word": "x" + madeID + laterID + "y",
	} {
		if got, err := promptTexts.inflate(promptTexts.deflate(text)); err != nil || got != text {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestDamagedDeflatedTextsAreRefused(t *testing.T) {
	t.Parallel()
	whole := promptTexts.deflate(madeID + laterID + otherID)
	for n := range whole {
		if got, err := promptTexts.inflate(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes were read as %q", n, len(whole), got)
		}
	}
	for _, damaged := range [][]byte{
		append([]byte{whole[0], 0}, whole[2+whole[1]:]...),            // no ids
		append([]byte{whole[0], whole[1], 7}, whole[3:]...),           // the first id begins like none
		append([]byte{logTexts.number}, whole[1:]...),                 // another dictionary
		{whole[0], 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, // longer than an int
	} {
		if got, err := promptTexts.inflate(damaged); err == nil {
			t.Errorf("%x was read as %q", damaged, got)
		}
	}
}

func FuzzInflate(f *testing.F) {
	f.Add(promptTexts.deflate(madeID + laterID + otherID))
	f.Fuzz(func(_ *testing.T, stored []byte) { _, _ = promptTexts.inflate(stored) })
}
