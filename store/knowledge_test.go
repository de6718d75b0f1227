package store_test

import (
	"bytes"
	"context"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/knowledge"
	"nodest/nodest"
	"nodest/store"
)

// knowledgeUser is a user of knowledge.Service.
type knowledgeUser struct {
	*env
	svc *knowledge.Service
	id  string
}

func (e *env) knows(user string) *knowledgeUser {
	return &knowledgeUser{e, knowledge.New(e.db.Knowledge(), knowledge.Options{}), user}
}

func (u *knowledgeUser) call() *op.Call { return &op.Call{UserID: u.id} }

func (u *knowledgeUser) must(err error) {
	u.Helper()
	if err != nil {
		u.Fatal(err)
	}
}

func (u *knowledgeUser) upload(base, name, content string) *knowledge.File {
	u.Helper()
	f, err := u.svc.Upload(context.Background(), u.call(), knowledge.NewFile{
		Name: name, Body: strings.NewReader(content), Size: int64(len(content)), BaseID: base,
	})
	u.must(err)
	return f
}

// rowsOf counts the rows of a table.
func (e *env) rowsOf(table string) int64 {
	e.Helper()
	n, err := store.Query[int64](e.db, "SELECT COUNT(*) FROM "+table)
	if err != nil {
		e.Fatal(err)
	}
	return n[0]
}

// purge runs the job that removes what the user has deleted.
func (u *knowledgeUser) purge() {
	u.Helper()
	for _, kind := range u.svc.Kinds() {
		if kind.Name == knowledge.PurgeKind {
			u.must(kind.Run(context.Background(), &jobs.Job{UserID: u.id}))
		}
	}
}

func TestOriginalsThatNoFileHasAreRemoved(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ctx := context.Background()
		u := e.knows(e.user)
		f := u.upload("", "a.md", strings.Repeat("long ", 1<<19))
		e.equal("parts", e.rowsOf("file_parts"), 3)
		_, err := u.svc.Replace(ctx, u.call(), f.ID, 0, knowledge.NewFile{Body: strings.NewReader("short"), Size: 5})
		u.must(err)
		e.equal("after a replacement", e.rowsOf("file_parts"), 1)
		u.upload("", "b.md", "short")
		e.equal("after a duplicate", e.rowsOf("file_parts"), 1)

		e.update(func(tx nodest.Tx) error {
			k := store.Knowledge(tx)
			if err := k.PutPart(named("lost"), 0, []byte("a")); err != nil {
				return err
			}
			return k.PutPart(named("lost"), 1, []byte("b"))
		})
		e.maintain()
		e.equal("an upload that may go on", e.rowsOf("file_parts"), 3)
		e.clock.advance(2 * day)
		e.equal("removed", e.maintain()["uploads"], int64(2))
		e.equal("after a day", e.rowsOf("file_parts"), 1)
	})
}

func TestAPurgeLeavesNothing(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ctx := context.Background()
		u, friend := e.knows(e.user), e.knows(newUser(e))
		name := "lore"
		base, err := u.svc.CreateBase(ctx, u.call(), knowledge.NewBase{Name: &name})
		u.must(err)
		_, err = u.svc.PutGrant(ctx, u.call(), base.ID, friend.id, knowledge.AccessWrite)
		u.must(err)
		u.upload(base.ID, "a.md", strings.Repeat("long ", 1<<22)) // 20 parts
		kept := u.upload("", "b.md", "kept")
		friend.upload(base.ID, "c.md", "theirs")

		u.must(u.svc.DeleteBase(ctx, u.call(), base.ID, true))
		_, err = u.svc.Base(ctx, u.id, base.ID)
		e.code(fault.NotFound, err)
		_, err = friend.svc.Base(ctx, friend.id, base.ID)
		e.code(fault.NotFound, err)
		u.purge()
		e.equal("rows of files", e.rowsOf("files"), int64(2))
		e.equal("parts", e.rowsOf("file_parts"), int64(2))
		for _, table := range []string{"knowledge_bases", "knowledge_base_files", "knowledge_grants"} {
			e.equal(table, e.rowsOf(table), int64(0))
		}
		_, err = u.svc.File(ctx, u.id, kept.ID)
		u.must(err)
	})
}

// Others lose what they have of a deleted user too: access, files, and knowledge bases.
func TestADeletedUserLeavesWhatOthersShare(t *testing.T) {
	t.Parallel()
	onBothDatabases(t, func(e *env) {
		ctx := context.Background()
		u, gone := e.knows(e.user), e.knows(newUser(e))
		name := "lore"
		base, err := u.svc.CreateBase(ctx, u.call(), knowledge.NewBase{Name: &name})
		u.must(err)
		theirs, err := gone.svc.CreateBase(ctx, gone.call(), knowledge.NewBase{Name: &name})
		u.must(err)
		_, err = u.svc.PutGrant(ctx, u.call(), base.ID, gone.id, knowledge.AccessWrite)
		u.must(err)
		_, err = gone.svc.PutGrant(ctx, gone.call(), theirs.ID, u.id, knowledge.AccessRead)
		u.must(err)
		file := gone.upload(base.ID, "a.md", "theirs")
		var character string
		e.update(func(tx nodest.Tx) error { character = ownCharacter(e, tx); return nil })
		_, err = u.svc.BindFile(ctx, u.call(), character, file.ID, nil, nil)
		u.must(err)
		_, err = u.svc.BindBase(ctx, u.call(), character, theirs.ID, nil)
		u.must(err)

		err = e.db.DeleteUser(ctx, gone.id, anyUser, nil)
		u.must(err)
		for _, table := range []string{"knowledge_grants", "knowledge_base_files", "character_files", "character_bases", "files", "file_parts"} {
			e.equal(table, e.rowsOf(table), int64(0))
		}
	})
}

// exemptStatements are functions of the store of knowledge bases with statements that do not
// name the acting user, each with the reason.
var exemptStatements = map[string]string{
	"Grantee":          "finds the user that something is shared with",
	"abandonedUploads": "is maintenance of all users",
	"FileOwners":       "is maintenance of all users",
	"chunks":           "runs what its callers ask, whose arguments are checked",
	"addTexts":         "completes chunks that its callers have read as the acting user",
}

// asking are the calls with which a function first asks whether the acting user may read what
// its statements name, in the same transaction.
var asking = []string{"t.readable(ownerID, fileID)", "t.readableFiles(ownerID, "}

// Every statement of files and knowledge bases has the acting user among its arguments, so
// that no id that a client sends is enough to reach a row.
func TestEveryStatementOfKnowledgeNamesTheActingUser(t *testing.T) {
	t.Parallel()
	statements := 0
	for _, pattern := range []string{"knowledge*.go", "kbindex*.go"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if !strings.HasSuffix(path, "_test.go") {
				statements += checkStatements(t, path)
			}
		}
	}
	if statements < 40 {
		t.Errorf("only %d statements were found", statements)
	}
}

// running are the calls that run a statement.
const running = " Exec Run ExecOne Require Has each Insert InsertNew Update UpdateOne chunks All Map One Get Find Value Each Page PageOf "

func checkStatements(t *testing.T, path string) (statements int) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || exemptStatements[fn.Name.Name] != "" {
			continue
		}
		whole := printed(t, set, fn)
		ast.Inspect(fn, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !runsStatement(call) {
				return true
			}
			statements++
			args := ""
			for _, arg := range call.Args {
				args += printed(t, set, arg) + " "
			}
			// A row, or a list of arguments, was put together before.
			before := call.Ellipsis.IsValid() || strings.Contains(args, "Row") || strings.Contains(args, "row")
			asked := slices.ContainsFunc(asking, func(call string) bool { return strings.Contains(whole, call) })
			if !strings.Contains(args, "userID") && !(before && strings.Contains(whole, "userID")) && !asked {
				t.Errorf("%s: a statement of %s does not name the acting user", set.Position(call.Pos()), fn.Name.Name)
			}
			return true
		})
	}
	return statements
}

// runsStatement says that a call runs a statement, of a session or by a function of sqldb.
func runsStatement(call *ast.CallExpr) bool {
	f := call.Fun
	if generic, ok := f.(*ast.IndexExpr); ok {
		f = generic.X
	}
	selector, ok := f.(*ast.SelectorExpr)
	return ok && strings.Contains(running, " "+selector.Sel.Name+" ")
}

func printed(t *testing.T, set *token.FileSet, n ast.Node) string {
	t.Helper()
	var b bytes.Buffer
	if err := printer.Fprint(&b, set, n); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
