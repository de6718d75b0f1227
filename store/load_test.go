package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"nodest/chat"
	"nodest/chat/archive"
	"nodest/internal/account"
	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/nodest"
	"nodest/store"
)

// importStore counts what imports store, and can fail.
type importStore struct {
	chat.Store
	updates int // so far
	most    int // messages in one transaction
	fails   int // the transaction that fails; 0 = none
	dies    bool
}

func (s *importStore) Update(ctx context.Context, userID string, fn func(chat.Tx) error) error {
	s.updates++
	if s.fails > 0 && (s.updates == s.fails || s.updates > s.fails && s.dies) {
		return errors.New("the disk is gone")
	}
	return s.Store.Update(ctx, userID, func(tx chat.Tx) error {
		stored := 0
		tx.MessageTx, tx.ArchiveTx = insertCounter{tx.MessageTx, &stored}, loadCounter{tx.ArchiveTx, &stored}
		err := fn(tx)
		s.most = max(s.most, stored)
		return err
	})
}

type insertCounter struct {
	chat.MessageTx
	stored *int
}

func (c insertCounter) InsertMessage(messages ...*chat.Message) error {
	*c.stored += len(messages)
	return c.MessageTx.InsertMessage(messages...)
}

type loadCounter struct {
	chat.ArchiveTx
	stored *int
}

func (c loadCounter) Load(conversationID string, messages []*chat.DumpedMessage) error {
	*c.stored += len(messages)
	return c.ArchiveTx.Load(conversationID, messages)
}

// longImport is an import of many messages with the text "porcelain".
type longImport struct {
	name         string
	conversation string // that it adds to; "" = none
	run          func(ctx context.Context, s *archive.Service, c *op.Call) error
}

// longImports returns imports for a character of a conversation.
func longImports(character, conversation string, messages int) []longImport {
	log := `{"chat_metadata":{}}` + strings.Repeat("\n"+`{"is_user":true,"mes":"porcelain"}`, messages)
	save := `{"description":"long","messages":[` + strings.Repeat(`{"text":"porcelain","sender":"user"},`, messages-1) + `{"text":"porcelain","sender":"bot"}]}`
	return []longImport{
		{"chat log", "", func(ctx context.Context, s *archive.Service, c *op.Call) error {
			_, err := s.ImportChat(ctx, c, character, []byte(log), "log.jsonl")
			return err
		}},
		{"save point", conversation, func(ctx context.Context, s *archive.Service, c *op.Call) error {
			_, err := s.ImportSave(ctx, c, conversation, []byte(save))
			return err
		}},
	}
}

// eachLongImport runs a test for each import, on both databases.
func eachLongImport(t *testing.T, messages int, test func(e *env, conversation string, one longImport)) {
	onBothDatabases(t, func(e *env) {
		for i := range longImports("", "", messages) {
			character := e.character()
			conversation := e.chat(character)
			e.say(conversation, "", "first")
			one := longImports(character, conversation, messages)[i]
			e.Log(one.name)
			test(e, conversation, one)
		}
	})
}

// shown returns how many of the texts of an import a client can find, and in how many branches.
func (e *env) shown(conversation string) (found, branches int) {
	e.Helper()
	for _, text := range e.searchable(chat.TextFilter{}) {
		if text == "porcelain" {
			found++
		}
	}
	e.view(func(tx nodest.Tx) error {
		dumped, err := tx.Chats.Dump(conversation, 0, 5000)
		if err != nil {
			return err
		}
		tips, _, err := tx.Chats.Tips(conversation, "", 50)
		if err != nil {
			return err
		}
		tree, err := tx.Chats.Tree(conversation, 50)
		e.equal("runs of the tree", len(tree.Runs), len(tips))
		e.equal("branches of a dump", len(dumped) > 1, len(tips) > 1)
		branches = len(tips)
		return err
	})
	return found, branches
}

func (e *env) call() *op.Call { return &op.Call{UserID: e.user, Key: id(), Hash: "import"} }

// A long transaction would make all other writers wait.
func TestALongImportTakesManySmallTransactions(t *testing.T) {
	t.Parallel()
	eachLongImport(t, 1001, func(e *env, conversation string, one longImport) {
		s := &importStore{Store: e.db.Chats()}
		before, _ := e.shown(conversation)
		if err := one.run(context.Background(), archive.New(s), e.call()); err != nil {
			e.Fatal(err)
		}
		if s.most > 250 {
			e.Errorf("%d messages in one transaction", s.most)
		}
		found, branches := e.shown(conversation)
		e.equal("messages", found-before, 1001)
		if one.conversation != "" {
			e.equal("branches", branches, 2)
		}
		e.equal("texts that memory is to read", e.queryInts("SELECT COUNT(*) FROM memory_texts WHERE NOT is_read AND user_id = ?", e.user)[0], 1)
		e.update(func(tx nodest.Tx) error { return store.Exec(tx, "DELETE FROM memory_texts WHERE user_id = ?", e.user) })
	})
}

func TestAnImportThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	eachLongImport(t, 600, func(e *env, conversation string, one longImport) {
		before := count(e, e.user)
		for fails := 1; ; fails++ {
			s := &importStore{Store: e.db.Chats(), fails: fails}
			if err := one.run(context.Background(), archive.New(s), e.call()); err == nil {
				e.equal("transactions", s.updates, 3)
				break
			}
			after := count(e, e.user)
			for _, table := range []string{"conversations", "messages", "message_states", "revisions", "memory_texts", "saves", "loads"} {
				e.equal(fmt.Sprintf("rows of %s after a failure of transaction %d", table, fails), after[table], before[table])
			}
		}
	})
}

func TestWhatADeadProcessImportedIsHiddenAndRemoved(t *testing.T) {
	t.Parallel()
	eachLongImport(t, 600, func(e *env, conversation string, one longImport) {
		before := count(e, e.user)
		foundBefore, branchesBefore := e.shown(conversation)
		s := &importStore{Store: e.db.Chats(), fails: 3, dies: true}
		if err := one.run(context.Background(), archive.New(s), e.call()); err == nil {
			e.Fatal("the process did not die")
		}
		e.equal("messages that stay", count(e, e.user)["messages"]-before["messages"], 500)
		found, branches := e.shown(conversation)
		e.equal("messages that are shown", found, foundBefore)
		e.equal("branches that are shown", branches, branchesBefore)
		e.clock.advance(time.Hour - time.Millisecond)
		e.maintain()
		e.equal("messages while it may go on", count(e, e.user)["messages"]-before["messages"], 500)
		e.clock.advance(time.Millisecond)
		e.equal("messages that maintenance removed", e.maintain()["loads"], 501)
		after := count(e, e.user)
		for _, table := range []string{"conversations", "messages", "message_states", "revisions", "loads"} {
			e.equal("rows of "+table, after[table], before[table])
		}
	})
}

func TestAnImportThatIsTooLargeWritesNothing(t *testing.T) {
	t.Parallel()
	eachLongImport(t, 600, func(e *env, conversation string, one longImport) {
		used := e.quotas()["messages"].Used
		e.db.SetQuotas(account.Quotas{Messages: used + 599})
		s := &importStore{Store: e.db.Chats()}
		err := one.run(context.Background(), archive.New(s), e.call())
		e.code(fault.QuotaExceeded, err)
		e.equal("transactions", s.updates, 1)
		e.equal("messages", e.quotas()["messages"].Used, used)
		e.db.SetQuotas(account.Quotas{Messages: used + 600})
		if err := one.run(context.Background(), archive.New(e.db.Chats()), e.call()); err != nil {
			e.Errorf("what fits was refused: %v", err)
		}
		e.db.SetQuotas(account.Quotas{})
	})
}

// A repeated import, at another process, stores its pieces before it finds the first answer.
func TestARepeatedImportLeavesNothing(t *testing.T) {
	t.Parallel()
	eachLongImport(t, 600, func(e *env, conversation string, one longImport) {
		c := e.call()
		ctx, s := context.Background(), archive.New(e.db.Chats())
		late := &lateStore{Store: e.db.Chats(), first: func() error { return one.run(ctx, s, c) }}
		again := &op.Call{UserID: c.UserID, Key: c.Key, Hash: c.Hash}
		if err := one.run(ctx, archive.New(late), again); err != nil {
			e.Fatal(err)
		}
		e.equal("replayed", again.Replayed, true)
		_, branches := e.shown(conversation)
		e.equal("branches", branches, map[string]int{"": 1, conversation: 2}[one.conversation])
		e.equal("loads", count(e, e.user)["loads"], 0)
	})
}

// lateStore lets another call overtake after its first transaction.
type lateStore struct {
	chat.Store
	first func() error
}

func (s *lateStore) Update(ctx context.Context, userID string, fn func(chat.Tx) error) error {
	err := s.Store.Update(ctx, userID, fn)
	if overtake := s.first; overtake != nil && err == nil {
		s.first = nil
		return overtake()
	}
	return err
}
