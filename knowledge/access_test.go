package knowledge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"nodest/internal/fault"
	"nodest/internal/op"
	"nodest/knowledge"
	"nodest/store/storetest"
)

// shared is a knowledge base of one user, as four users have it.
type shared struct {
	base, file, private, added string // of the owner; added is a file of the writer in it
	character                  string // of the owner, which has the knowledge base and the file
	reader, stranger           string // users

	own, ownBase, ownCharacter string // of the acting user
}

// roles are the users of the matrix.
var roles = []string{knowledge.AccessOwner, knowledge.AccessWrite, knowledge.AccessRead, "none"}

// share makes a knowledge base with users of all roles, and returns it as one of them has it.
func (f *fixture) share(role string) (*fixture, shared) {
	f.Helper()
	owner, writer, reader, none := f.other(), f.other(), f.other(), f.other()
	base := owner.base("private")
	x := shared{base: base.ID, character: owner.character(), reader: reader.user, stranger: storetest.User(f.T, f.db)}
	owner.grant(base.ID, writer, knowledge.AccessWrite)
	owner.grant(base.ID, reader, knowledge.AccessRead)
	x.file = owner.uploadTo(base.ID, "private/a.md", "private text").ID
	x.private = owner.upload("private/b.md", "more private text").ID
	x.added = writer.uploadTo(base.ID, "private/c.md", "private text of the writer").ID
	owner.set(x.file, func(file *knowledge.File) { file.State = knowledge.Failed })
	_, err := owner.svc.BindBase(background, owner.call(), x.character, x.base, nil)
	f.must(err)
	_, err = owner.svc.BindFile(background, owner.call(), x.character, x.file, nil, nil)
	f.must(err)
	acting := map[string]*fixture{roles[0]: owner, roles[1]: writer, roles[2]: reader, roles[3]: none}[role]
	x.own, x.ownBase, x.ownCharacter = acting.upload("own.md", "own text").ID, acting.base("own").ID, acting.character()
	return acting, x
}

// The codes of the matrix.
const (
	ok        = fault.Code("")
	forbidden = fault.Forbidden
	notFound  = fault.NotFound
)

// attempt is a call by each of the roles.
type attempt struct {
	method string
	what   string
	try    func(f *fixture, x shared) error
	want   [4]fault.Code // of owner, writer, reader, none
}

func errOf[T any](_ T, err error) error { return err }

var (
	everybodyElse = [4]fault.Code{ok, ok, ok, notFound}               // who may read
	ownersOnly    = [4]fault.Code{ok, forbidden, forbidden, notFound} // who may change what others may read
	hidden        = [4]fault.Code{ok, notFound, notFound, notFound}   // what is not shared
	writers       = [4]fault.Code{ok, ok, forbidden, notFound}
)

var fileAttempts = []attempt{
	{"File", "a shared one", func(f *fixture, x shared) error { return errOf(f.svc.File(background, f.user, x.file)) }, everybodyElse},
	{"File", "a private one", func(f *fixture, x shared) error { return errOf(f.svc.File(background, f.user, x.private)) }, hidden},
	{"Content", "a shared one", func(f *fixture, x shared) error { return f.read(x.file) }, everybodyElse},
	{"Content", "a private one", func(f *fixture, x shared) error { return f.read(x.private) }, hidden},
	{"Replace", "a shared one", func(f *fixture, x shared) error {
		return errOf(f.svc.Replace(background, f.call(), x.file, 0, newFile("", "other")))
	}, ownersOnly},
	{"Replace", "a private one", func(f *fixture, x shared) error {
		return errOf(f.svc.Replace(background, f.call(), x.private, 0, newFile("", "other")))
	}, hidden},
	{"Room", "a shared one", func(f *fixture, x shared) error { return errOf(f.svc.Room(background, f.call(), x.file)) }, ownersOnly},
	{"Room", "a private one", func(f *fixture, x shared) error { return errOf(f.svc.Room(background, f.call(), x.private)) }, hidden},
	{"Retry", "a shared one", func(f *fixture, x shared) error { return errOf(f.svc.Retry(background, f.call(), x.file)) }, ownersOnly},
	{"DeleteFile", "a shared one", func(f *fixture, x shared) error { return f.svc.DeleteFile(background, f.call(), x.file) }, ownersOnly},
	{"DeleteFile", "a private one", func(f *fixture, x shared) error { return f.svc.DeleteFile(background, f.call(), x.private) }, hidden},
	{
		"DeleteFile", "one of the writer", func(f *fixture, x shared) error { return f.svc.DeleteFile(background, f.call(), x.added) },
		[4]fault.Code{forbidden, ok, forbidden, notFound},
	},
	{"Upload", "to the base", func(f *fixture, x shared) error {
		in := newFile("new.md", "new")
		in.BaseID = x.base
		return errOf(f.svc.Upload(background, f.call(), in))
	}, writers},
	{"Unzip", "to the base", func(f *fixture, x shared) error {
		in := archive(f.T, "new.md", "new")
		in.BaseID = x.base
		_, _, err := f.svc.Unzip(background, f.call(), in)
		return err
	}, writers},
	{"Fetch", "to the base", func(f *fixture, x shared) error {
		return errOf(f.svc.Fetch(background, f.call(), "https://halden.example/", x.base))
	}, writers},
}

var baseAttempts = []attempt{
	{"Base", "", func(f *fixture, x shared) error { return errOf(f.svc.Base(background, f.user, x.base)) }, everybodyElse},
	{"BaseFiles", "", func(f *fixture, x shared) error { return errOf(f.svc.BaseFiles(background, f.user, x.base, "", 0)) }, everybodyElse},
	{"Grants", "", func(f *fixture, x shared) error { return errOf(f.svc.Grants(background, f.user, x.base)) }, everybodyElse},
	{"allowed", "", func(f *fixture, x shared) error { return errOf(f.allowed(knowledge.Scope{BaseIDs: []string{x.base}})) }, everybodyElse},
	{"allowed", "with an own one", func(f *fixture, x shared) error {
		return errOf(f.allowed(knowledge.Scope{BaseIDs: []string{x.ownBase, x.base}}))
	}, everybodyElse},
	{"UpdateBase", "", func(f *fixture, x shared) error {
		return errOf(f.svc.UpdateBase(background, f.call(), x.base, 0, knowledge.NewBase{Description: new("d")}))
	}, ownersOnly},
	{"DeleteBase", "", func(f *fixture, x shared) error { return f.svc.DeleteBase(background, f.call(), x.base, false) }, ownersOnly},
	{"DeleteBase", "with files", func(f *fixture, x shared) error { return f.svc.DeleteBase(background, f.call(), x.base, true) }, ownersOnly},
	{"AddFile", "an own one", func(f *fixture, x shared) error { return f.svc.AddFile(background, f.call(), x.base, x.own) }, writers},
	{
		"AddFile", "one of the owner", func(f *fixture, x shared) error { return f.svc.AddFile(background, f.call(), x.base, x.private) },
		[4]fault.Code{ok, notFound, forbidden, notFound},
	},
	{"AddFile", "a shared one to an own base", func(f *fixture, x shared) error {
		return f.svc.AddFile(background, f.call(), x.ownBase, x.file)
	}, ownersOnly},
	{"RemoveFile", "one of the owner", func(f *fixture, x shared) error { return f.svc.RemoveFile(background, f.call(), x.base, x.file, false) }, writers},
	{"RemoveFile", "one of the writer", func(f *fixture, x shared) error {
		return f.svc.RemoveFile(background, f.call(), x.base, x.added, false)
	}, writers},
	{"PutGrant", "", func(f *fixture, x shared) error {
		return errOf(f.svc.PutGrant(background, f.call(), x.base, x.stranger, knowledge.AccessRead))
	}, ownersOnly},
	{"PutGrant", "to oneself", func(f *fixture, x shared) error {
		return errOf(f.svc.PutGrant(background, f.call(), x.base, f.user, knowledge.AccessWrite))
	}, [4]fault.Code{fault.Invalid, forbidden, forbidden, notFound}},
	{
		"DeleteGrant", "of the reader", func(f *fixture, x shared) error { return f.svc.DeleteGrant(background, f.call(), x.base, x.reader) },
		[4]fault.Code{ok, forbidden, ok, notFound},
	},
	{
		"DeleteGrant", "of oneself", func(f *fixture, x shared) error { return f.svc.DeleteGrant(background, f.call(), x.base, f.user) },
		[4]fault.Code{notFound, ok, ok, notFound},
	},
}

var bindingAttempts = []attempt{
	{"Bound", "", func(f *fixture, x shared) error { return errOf(f.svc.Bound(background, f.user, x.character)) }, hidden},
	{"BindBase", "to an own character", func(f *fixture, x shared) error {
		return errOf(f.svc.BindBase(background, f.call(), x.ownCharacter, x.base, nil))
	}, everybodyElse},
	{"BindBase", "to the owner's character", func(f *fixture, x shared) error {
		return errOf(f.svc.BindBase(background, f.call(), x.character, x.ownBase, nil))
	}, hidden},
	{"BindFile", "to an own character", func(f *fixture, x shared) error {
		return errOf(f.svc.BindFile(background, f.call(), x.ownCharacter, x.file, nil, nil))
	}, everybodyElse},
	{"BindFile", "a private one", func(f *fixture, x shared) error {
		return errOf(f.svc.BindFile(background, f.call(), x.ownCharacter, x.private, nil, nil))
	}, hidden},
	{"BindFile", "to the owner's character", func(f *fixture, x shared) error {
		return errOf(f.svc.BindFile(background, f.call(), x.character, x.own, nil, nil))
	}, hidden},
	{"UnbindBase", "", func(f *fixture, x shared) error { return f.svc.UnbindBase(background, f.call(), x.character, x.base) }, hidden},
	{"UnbindFile", "", func(f *fixture, x shared) error { return f.svc.UnbindFile(background, f.call(), x.character, x.file) }, hidden},
}

// withoutIDs are methods that name nothing of others, or are tried where they are tested:
// those of the pipeline.
var withoutIDs = "Files Bases CreateBase Kinds Sweep Resume Cached Text Chunks View Search SearchIn VectorOf CountTokens Widen Reindexing Reindex CancelReindex Ask"

func (f *fixture) read(id string) error {
	_, r, err := f.svc.Content(background, f.user, id)
	if err != nil {
		return err
	}
	_, err = io.ReadAll(r)
	return errors.Join(err, r.Close())
}

var readsPages = knowledge.Options{ReadPage: func(context.Context, string, string) (*knowledge.WebPage, error) {
	return &knowledge.WebPage{URL: "https://halden.example/", Title: "t", Markdown: "page"}, nil
}}

func TestEveryRoleMayDoWhatItsAccessSays(t *testing.T) {
	t.Parallel()
	var all []attempt
	for _, some := range [][]attempt{fileAttempts, baseAttempts, bindingAttempts} {
		all = append(all, some...)
	}
	tried := " " + withoutIDs + " "
	for _, a := range all {
		tried += a.method + " "
	}
	for m := range reflect.TypeFor[*knowledge.Service]().Methods() {
		if !strings.Contains(tried, " "+m.Name+" ") {
			t.Errorf("no attempt at %s", m.Name)
		}
	}
	onBoth(t, readsPages, func(f *fixture) {
		for _, a := range all {
			for i, role := range roles {
				acting, x := f.share(role)
				err := a.try(acting, x)
				if got := code(err); got != a.want[i] {
					f.Errorf("%s %s by %s: %v, want %q", a.method, a.what, role, err, a.want[i])
				}
			}
		}
	})
}

func code(err error) fault.Code {
	if err == nil {
		return ok
	}
	return fault.Public(err).Code
}

func TestARevokedGrantActsAtTheNextCall(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		owner, friend := f.other(), f.other()
		base, character := owner.base("lore"), friend.character()
		owner.grant(base.ID, friend, knowledge.AccessWrite)
		theirs := owner.uploadTo(base.ID, "a.md", "of the owner")
		mine := friend.uploadTo(base.ID, "b.md", "of the friend")
		_, err := friend.svc.BindBase(background, friend.call(), character, base.ID, nil)
		f.must(err)
		_, err = friend.svc.BindFile(background, friend.call(), character, theirs.ID, nil, nil)
		f.must(err)
		names, err := friend.allowed(knowledge.Scope{BaseIDs: []string{base.ID}, CharacterID: character})
		f.must(err)
		f.equal("before", names, "[a.md b.md]")
		_, open, err := friend.svc.Content(background, friend.user, theirs.ID)
		f.must(err)

		f.must(owner.svc.DeleteGrant(background, owner.call(), base.ID, friend.user))
		_, err = friend.allowed(knowledge.Scope{BaseIDs: []string{base.ID}})
		f.wants(err, notFound)
		for _, s := range []knowledge.Scope{{}, {CharacterID: character}, {CharacterID: character, FilesOnly: true}, {FilesOnly: true, FileIDs: []string{theirs.ID}}} {
			names, err = friend.allowed(s)
			f.must(err)
			f.equal("after", names, "[]")
		}
		_, err = open.Read(make([]byte, 1))
		f.wants(err, notFound)
		_, err = friend.svc.File(background, friend.user, theirs.ID)
		f.wants(err, notFound)
		bound, err := friend.svc.Bound(background, friend.user, character)
		f.must(err)
		f.equal("bound", []int{len(bound.Files), len(bound.Bases)}, "[0 0]")
		page, err := friend.svc.Bases(background, friend.user, "", 0)
		f.must(err)
		f.equal("bases", len(page.Items), 0)

		// What the friend has added is the friend's alone again.
		_, err = owner.svc.File(background, owner.user, mine.ID)
		f.wants(err, notFound)
		names, err = owner.allowed(knowledge.Scope{})
		f.must(err)
		f.equal("files of the owner", names, "[a.md]")
		f.equal("content", friend.content(mine.ID), "of the friend")
	})
}

func TestUsersSeeOnlyWhatTheyMayInLists(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		for i, role := range roles {
			acting, x := f.share(role)
			bases, err := acting.svc.Bases(background, acting.user, "", 0)
			f.must(err)
			var got []string
			for _, b := range bases.Items {
				got = append(got, b.Name+" "+b.Access)
			}
			want := []string{"[own owner private owner]", "[own owner private write]", "[own owner private read]", "[own owner]"}[i]
			f.equal("bases of "+role, got, want)
			grants, err := acting.svc.Grants(background, acting.user, x.base)
			if i < 3 {
				f.must(err)
				f.equal("grants for "+role, len(grants), []int{2, 1, 1}[i])
			}
		}
	})
}

// Random and borrowed ids lead nobody to a text of another user.
func TestGuessedIDsShowNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, readsPages, func(f *fixture) {
		_, x := f.share(knowledge.AccessOwner)
		stranger := f.other()
		known := []string{x.base, x.file, x.private, x.added, x.character, x.reader, "", "'", "%", "\x00", op.NewID()}
		rng := rand.New(rand.NewPCG(1, 2))
		pick := func() string { return known[rng.IntN(len(known))] }
		for range 300 {
			base, file, character := pick(), pick(), pick()
			one, _ := stranger.svc.File(background, stranger.user, file)
			some, _ := stranger.svc.BaseFiles(background, stranger.user, base, "", 0)
			b, _ := stranger.svc.Base(background, stranger.user, base)
			bound, _ := stranger.svc.Bound(background, stranger.user, character)
			grants, _ := stranger.svc.Grants(background, stranger.user, base)
			scope := knowledge.Scope{FilesOnly: rng.IntN(2) == 0, FileIDs: []string{file}}
			if rng.IntN(2) == 0 {
				scope.BaseIDs = []string{base}
			}
			if rng.IntN(2) == 0 {
				scope.CharacterID = character
			}
			names, _ := stranger.allowed(scope)
			if stranger.read(file) == nil || stranger.svc.DeleteFile(background, stranger.call(), file) == nil ||
				stranger.svc.RemoveFile(background, stranger.call(), base, file, true) == nil {
				f.Fatalf("%q and %q could be used", base, file)
			}
			if shown := fmt.Sprint(one, some.Items, b, bound, grants, names); strings.Contains(shown, "private") {
				f.Fatalf("%q, %q and %q showed %s", base, file, character, shown)
			}
		}
	})
}

func TestScopesSelectFiles(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		lore, rules := f.base("lore"), f.base("rules")
		a := f.uploadTo(lore.ID, "harbour/a.md", "a")
		f.clock.Add(1000)
		b := f.uploadTo(lore.ID, "harbour/old/b.pdf", "b")
		f.must(f.svc.AddFile(background, f.call(), rules.ID, b.ID))
		loose := f.upload("harbours/c.md", "c")
		f.set(a.ID, func(file *knowledge.File) { file.ContentType = "markdown" })
		f.set(b.ID, func(file *knowledge.File) { file.ContentType = "pdf" })
		character := f.character()
		_, err := f.svc.BindBase(background, f.call(), character, rules.ID, nil)
		f.must(err)
		_, err = f.svc.BindFile(background, f.call(), character, loose.ID, nil, nil)
		f.must(err)
		for what, c := range map[string]struct {
			scope knowledge.Scope
			want  string
		}{
			"all bases":           {knowledge.Scope{}, "[harbour/a.md harbour/old/b.pdf]"},
			"one base":            {knowledge.Scope{BaseIDs: []string{rules.ID}}, "[harbour/old/b.pdf]"},
			"two bases":           {knowledge.Scope{BaseIDs: []string{rules.ID, lore.ID}}, "[harbour/a.md harbour/old/b.pdf]"},
			"no base":             {knowledge.Scope{BaseIDs: []string{}}, "[]"},
			"files":               {knowledge.Scope{FilesOnly: true}, "[harbour/a.md harbour/old/b.pdf harbours/c.md]"},
			"these files":         {knowledge.Scope{FilesOnly: true, FileIDs: []string{loose.ID, a.ID}}, "[harbour/a.md harbours/c.md]"},
			"a type":              {knowledge.Scope{Types: []string{"pdf", "docx"}}, "[harbour/old/b.pdf]"},
			"a folder":            {knowledge.Scope{FilesOnly: true, Folder: "/harbour/"}, "[harbour/a.md harbour/old/b.pdf]"},
			"a deeper folder":     {knowledge.Scope{Folder: "harbour/old"}, "[harbour/old/b.pdf]"},
			"later ones":          {knowledge.Scope{After: a.UpdatedAt}, "[harbour/old/b.pdf]"},
			"character":           {knowledge.Scope{CharacterID: character}, "[harbour/old/b.pdf]"},
			"character's files":   {knowledge.Scope{CharacterID: character, FilesOnly: true}, "[harbour/old/b.pdf harbours/c.md]"},
			"not the character's": {knowledge.Scope{CharacterID: character, BaseIDs: []string{lore.ID}, FileIDs: []string{a.ID}}, "[]"},
		} {
			names, err := f.allowed(c.scope)
			f.must(err)
			f.equal(what, names, c.want)
		}
		_, err = f.svc.BindBase(background, f.call(), character, rules.ID, new(false))
		f.must(err)
		names, err := f.allowed(knowledge.Scope{CharacterID: character})
		f.must(err)
		f.equal("switched off", names, "[]")
		refs, err := f.refs(knowledge.Scope{FilesOnly: true, FileIDs: []string{a.ID}})
		f.must(err)
		f.equal("base name", refs[0].BaseName, "lore")
	})
}

// A knowledge base that was deleted does not keep a file, also before its rows are gone.
func TestAFileOfADeletedKnowledgeBaseIsUnused(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		old, notes := f.base("old"), f.base("notes")
		file := f.uploadTo(old.ID, "a.md", "a")
		f.must(f.svc.AddFile(background, f.call(), notes.ID, file.ID))
		f.must(f.svc.DeleteBase(background, f.call(), old.ID, false))
		f.must(f.svc.RemoveFile(background, f.call(), notes.ID, file.ID, true))
		_, err := f.svc.File(background, f.user, file.ID)
		f.wants(err, fault.NotFound)
	})
}
