package bench

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"nodest/memory"
	"nodest/memory/lang"
	"nodest/nodest"
)

// Prints a sample of what the rules find in conversations, for a person to classify:
//
//	SAMPLE_FACTS=../../shared/data go test ./internal/bench -run SampleFacts -v -count 1
//
// Facts are drawn by a hash of the message that they were taken from, so that two
// versions of the rules are seen on the same messages as far as both read them.
// SAMPLE_SEED draws others.
func TestSampleFacts(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("SAMPLE_FACTS")
	if dir == "" {
		t.Skip("SAMPLE_FACTS names no folder of conversations")
	}
	const perGroup = 20
	groups := []struct{ name, memoryBank, locoMo, chats string }{
		{name: "Chinese", memoryBank: "memorybank/dev_zh.json", chats: "chats/zh_*.jsonl"},
		{name: "English", memoryBank: "memorybank/dev_en.json", chats: "chats/en_*.jsonl"},
		{name: "LoCoMo", locoMo: "locomo/dev.json"},
	}
	for _, g := range groups {
		s := newSampler(t)
		for kind, file := range map[string]string{"memorybank": g.memoryBank, "locomo": g.locoMo} {
			if file == "" {
				continue
			}
			q, err := readQuestions(kind, filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			for _, talk := range q.talks {
				for _, log := range talk.logs(importMessages) {
					s.read(talk.people, log.text)
				}
			}
		}
		if g.chats != "" {
			files, err := filepath.Glob(filepath.Join(dir, g.chats))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				s.read(lang.Names{User: "User", Character: "Character"}, data)
			}
		}
		slices.SortFunc(s.all, func(a, b sampledFact) int { return slices.Compare(a.order[:], b.order[:]) })
		fmt.Printf("\n%s: %d facts\n", g.name, len(s.all))
		for i, one := range s.all[:min(perGroup, len(s.all))] {
			fmt.Printf("%d. [%s/%s] %s\n   < %s\n", i+1, one.fact.Subject, one.fact.Kind, one.fact.Text, one.source)
		}
	}
}

// sampledFact is a fact with the messages that it was taken from.
type sampledFact struct {
	fact   memory.Memory
	source string
	order  [sha256.Size]byte
}

// sampler imports conversations, each with a character of its own, and collects what
// the rules find in them.
type sampler struct {
	*testing.T
	*filled
	all []sampledFact
}

func newSampler(t *testing.T) *sampler {
	l, err := openLibrary(t.Context(), libraryOptions{chat: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.close(); err != nil {
			t.Error(err)
		}
	})
	return &sampler{T: t, filled: &filled{library: l}}
}

func (s *sampler) read(people lang.Names, log []byte) {
	s.Helper()
	ctx := s.Context()
	var err error
	if s.character, err = s.newCharacter(ctx, people, nil); err != nil {
		s.Fatal(err)
	}
	imported, err := s.archives.ImportChat(ctx, s.call(), s.character, log, "chat.jsonl")
	if err != nil {
		s.Fatal(err)
	}
	if err := s.extract(ctx, imported.Conversation.ID); err != nil {
		s.Fatal(err)
	}
	found, err := s.allFacts(ctx)
	if err != nil {
		s.Fatal(err)
	}
	said := map[string]string{}
	err = s.db.View(ctx, s.user, func(tx nodest.Tx) error {
		var ids []string
		for _, one := range found {
			for _, e := range one.Evidence {
				ids = append(ids, e.RevisionID)
			}
		}
		texts, err := tx.Memory.SaidByID(s.character, ids...)
		for _, one := range texts {
			said[one.RevisionID] = one.Text
		}
		return err
	})
	if err != nil {
		s.Fatal(err)
	}
	for _, one := range found {
		source := ""
		for i, e := range one.Evidence {
			if i > 0 {
				source += " / "
			}
			source += said[e.RevisionID]
		}
		key := os.Getenv("SAMPLE_SEED") + people.User + "\n" + source + "\n" + one.Text
		s.all = append(s.all, sampledFact{one.Memory, source, sha256.Sum256([]byte(key))})
	}
}
