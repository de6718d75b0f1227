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
	"nodest/knowledge/knowledgetest"
	"nodest/store/storetest"
)

// shared is a knowledge base of one user, as four users have it.
type shared struct {
	base, file, private, added string // the owner's; added is a file of the writer in it
	character                  string // the owner's, which has the knowledge base and the file
	reader, stranger           string // users

	own, ownBase, ownCharacter string // the acting user's
}

// roles are the users of the matrix.
var roles = []string{knowledge.AccessOwner, knowledge.AccessWrite, knowledge.AccessRead, "none"}

// share makes a knowledge base with users of all roles, and returns it as one of them has it.
func (f *fixture) share(role string) (*fixture, shared) {
	f.Helper()
	owner, writer, reader, none := f.other(), f.other(), f.other(), f.other()
	base := owner.Base("private")
	x := shared{base: base.ID, character: owner.Character(), reader: reader.User, stranger: storetest.User(f.T, f.DB)}
	owner.Grant(base.ID, writer.User, knowledge.AccessWrite)
	owner.Grant(base.ID, reader.User, knowledge.AccessRead)
	x.file = owner.UploadTo(base.ID, "private/a.md", "private text").ID
	x.private = owner.Upload("private/b.md", "more private text").ID
	x.added = writer.UploadTo(base.ID, "private/c.md", "private text of the writer").ID
	owner.set(x.file, func(file *knowledge.File) { file.State = knowledge.Failed })
	_, err := owner.Svc.BindBase(background, owner.Call(), x.character, x.base, nil)
	f.Must(err)
	_, err = owner.Svc.BindFile(background, owner.Call(), x.character, x.file, nil, nil)
	f.Must(err)
	acting := map[string]*fixture{roles[0]: owner, roles[1]: writer, roles[2]: reader, roles[3]: none}[role]
	x.own, x.ownBase, x.ownCharacter = acting.Upload("own.md", "own text").ID, acting.Base("own").ID, acting.Character()
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
	want   [4]fault.Code // for owner, writer, reader, none
}

func errOf[T any](_ T, err error) error { return err }

var (
	everybodyElse = [4]fault.Code{ok, ok, ok, notFound}               // who may read
	ownersOnly    = [4]fault.Code{ok, forbidden, forbidden, notFound} // who may change what others may read
	hidden        = [4]fault.Code{ok, notFound, notFound, notFound}   // things that are not shared
	writers       = [4]fault.Code{ok, ok, forbidden, notFound}
)

var fileAttempts = []attempt{
	{"File", "a shared one", func(f *fixture, x shared) error { return errOf(f.Svc.File(background, f.User, x.file)) }, everybodyElse},
	{"File", "a private one", func(f *fixture, x shared) error { return errOf(f.Svc.File(background, f.User, x.private)) }, hidden},
	{"Content", "a shared one", func(f *fixture, x shared) error { return f.read(x.file) }, everybodyElse},
	{"Content", "a private one", func(f *fixture, x shared) error { return f.read(x.private) }, hidden},
	{"Replace", "a shared one", func(f *fixture, x shared) error {
		return errOf(f.Svc.Replace(background, f.Call(), x.file, 0, knowledgetest.NewFile("", "other")))
	}, ownersOnly},
	{"Replace", "a private one", func(f *fixture, x shared) error {
		return errOf(f.Svc.Replace(background, f.Call(), x.private, 0, knowledgetest.NewFile("", "other")))
	}, hidden},
	{"Room", "a shared one", func(f *fixture, x shared) error { return errOf(f.Svc.Room(background, f.Call(), x.file)) }, ownersOnly},
	{"Room", "a private one", func(f *fixture, x shared) error { return errOf(f.Svc.Room(background, f.Call(), x.private)) }, hidden},
	{"Retry", "a shared one", func(f *fixture, x shared) error { return errOf(f.Svc.Retry(background, f.Call(), x.file)) }, ownersOnly},
	{"DeleteFile", "a shared one", func(f *fixture, x shared) error { return f.Svc.DeleteFile(background, f.Call(), x.file) }, ownersOnly},
	{"DeleteFile", "a private one", func(f *fixture, x shared) error { return f.Svc.DeleteFile(background, f.Call(), x.private) }, hidden},
	{
		"DeleteFile", "one of the writer", func(f *fixture, x shared) error { return f.Svc.DeleteFile(background, f.Call(), x.added) },
		[4]fault.Code{forbidden, ok, forbidden, notFound},
	},
	{"Upload", "to the base", func(f *fixture, x shared) error {
		in := knowledgetest.NewFile("new.md", "new")
		in.BaseID = x.base
		return errOf(f.Svc.Upload(background, f.Call(), in))
	}, writers},
	{"Unzip", "to the base", func(f *fixture, x shared) error {
		in := archive(f.T, "new.md", "new")
		in.BaseID = x.base
		_, _, err := f.Svc.Unzip(background, f.Call(), in)
		return err
	}, writers},
	{"Fetch", "to the base", func(f *fixture, x shared) error {
		return errOf(f.Svc.Fetch(background, f.Call(), "https://halden.example/", x.base))
	}, writers},
}

var baseAttempts = []attempt{
	{"Base", "", func(f *fixture, x shared) error { return errOf(f.Svc.Base(background, f.User, x.base)) }, everybodyElse},
	{"BaseFiles", "", func(f *fixture, x shared) error { return errOf(f.Svc.BaseFiles(background, f.User, x.base, "", 0)) }, everybodyElse},
	{"Grants", "", func(f *fixture, x shared) error { return errOf(f.Svc.Grants(background, f.User, x.base)) }, everybodyElse},
	{"allowed", "", func(f *fixture, x shared) error { return errOf(f.allowed(knowledge.Scope{BaseIDs: []string{x.base}})) }, everybodyElse},
	{"allowed", "with an own one", func(f *fixture, x shared) error {
		return errOf(f.allowed(knowledge.Scope{BaseIDs: []string{x.ownBase, x.base}}))
	}, everybodyElse},
	{"UpdateBase", "", func(f *fixture, x shared) error {
		return errOf(f.Svc.UpdateBase(background, f.Call(), x.base, 0, knowledge.NewBase{Description: new("d")}))
	}, ownersOnly},
	{"DeleteBase", "", func(f *fixture, x shared) error { return f.Svc.DeleteBase(background, f.Call(), x.base, false) }, ownersOnly},
	{"DeleteBase", "with files", func(f *fixture, x shared) error { return f.Svc.DeleteBase(background, f.Call(), x.base, true) }, ownersOnly},
	{"AddFile", "an own one", func(f *fixture, x shared) error { return f.Svc.AddFile(background, f.Call(), x.base, x.own) }, writers},
	{
		"AddFile", "one of the owner", func(f *fixture, x shared) error { return f.Svc.AddFile(background, f.Call(), x.base, x.private) },
		[4]fault.Code{ok, notFound, forbidden, notFound},
	},
	{"AddFile", "a shared one to an own base", func(f *fixture, x shared) error {
		return f.Svc.AddFile(background, f.Call(), x.ownBase, x.file)
	}, ownersOnly},
	{"RemoveFile", "one of the owner", func(f *fixture, x shared) error { return f.Svc.RemoveFile(background, f.Call(), x.base, x.file, false) }, writers},
	{"RemoveFile", "one of the writer", func(f *fixture, x shared) error {
		return f.Svc.RemoveFile(background, f.Call(), x.base, x.added, false)
	}, writers},
	{"PutGrant", "", func(f *fixture, x shared) error {
		return errOf(f.Svc.PutGrant(background, f.Call(), x.base, x.stranger, knowledge.AccessRead))
	}, ownersOnly},
	{"PutGrant", "to oneself", func(f *fixture, x shared) error {
		return errOf(f.Svc.PutGrant(background, f.Call(), x.base, f.User, knowledge.AccessWrite))
	}, [4]fault.Code{fault.Invalid, forbidden, forbidden, notFound}},
	{
		"DeleteGrant", "of the reader", func(f *fixture, x shared) error { return f.Svc.DeleteGrant(background, f.Call(), x.base, x.reader) },
		[4]fault.Code{ok, forbidden, ok, notFound},
	},
	{
		"DeleteGrant", "of oneself", func(f *fixture, x shared) error { return f.Svc.DeleteGrant(background, f.Call(), x.base, f.User) },
		[4]fault.Code{notFound, ok, ok, notFound},
	},
}

var bindingAttempts = []attempt{
	{"Bound", "", func(f *fixture, x shared) error { return errOf(f.Svc.Bound(background, f.User, x.character)) }, hidden},
	{"BindBase", "to an own character", func(f *fixture, x shared) error {
		return errOf(f.Svc.BindBase(background, f.Call(), x.ownCharacter, x.base, nil))
	}, everybodyElse},
	{"BindBase", "to the owner's character", func(f *fixture, x shared) error {
		return errOf(f.Svc.BindBase(background, f.Call(), x.character, x.ownBase, nil))
	}, hidden},
	{"BindFile", "to an own character", func(f *fixture, x shared) error {
		return errOf(f.Svc.BindFile(background, f.Call(), x.ownCharacter, x.file, nil, nil))
	}, everybodyElse},
	{"BindFile", "a private one", func(f *fixture, x shared) error {
		return errOf(f.Svc.BindFile(background, f.Call(), x.ownCharacter, x.private, nil, nil))
	}, hidden},
	{"BindFile", "to the owner's character", func(f *fixture, x shared) error {
		return errOf(f.Svc.BindFile(background, f.Call(), x.character, x.own, nil, nil))
	}, hidden},
	{"UnbindBase", "", func(f *fixture, x shared) error { return f.Svc.UnbindBase(background, f.Call(), x.character, x.base) }, hidden},
	{"UnbindFile", "", func(f *fixture, x shared) error { return f.Svc.UnbindFile(background, f.Call(), x.character, x.file) }, hidden},
}

// withoutIDs are methods that name nothing of others, or are tried where they are tested:
// those of the pipeline.
var withoutIDs = "Files Bases CreateBase Kinds Sweep IndexWords Resume Cached Text Chunks View Search SearchIn VectorOf CountTokens Widen Reindexing Reindex CancelReindex Ask"

func (f *fixture) read(id string) error {
	_, r, err := f.Svc.Content(background, f.User, id)
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
		base, character := owner.Base("lore"), friend.Character()
		owner.Grant(base.ID, friend.User, knowledge.AccessWrite)
		theirs := owner.UploadTo(base.ID, "a.md", "of the owner")
		mine := friend.UploadTo(base.ID, "b.md", "of the friend")
		_, err := friend.Svc.BindBase(background, friend.Call(), character, base.ID, nil)
		f.Must(err)
		_, err = friend.Svc.BindFile(background, friend.Call(), character, theirs.ID, nil, nil)
		f.Must(err)
		names, err := friend.allowed(knowledge.Scope{BaseIDs: []string{base.ID}, CharacterID: character})
		f.Must(err)
		f.Equal("before", names, "[a.md b.md]")
		_, open, err := friend.Svc.Content(background, friend.User, theirs.ID)
		f.Must(err)

		f.Must(owner.Svc.DeleteGrant(background, owner.Call(), base.ID, friend.User))
		_, err = friend.allowed(knowledge.Scope{BaseIDs: []string{base.ID}})
		f.Wants(err, notFound)
		for _, s := range []knowledge.Scope{{}, {CharacterID: character}, {CharacterID: character, FilesOnly: true}, {FilesOnly: true, FileIDs: []string{theirs.ID}}} {
			names, err = friend.allowed(s)
			f.Must(err)
			f.Equal("after", names, "[]")
		}
		_, err = open.Read(make([]byte, 1))
		f.Wants(err, notFound)
		_, err = friend.Svc.File(background, friend.User, theirs.ID)
		f.Wants(err, notFound)
		bound, err := friend.Svc.Bound(background, friend.User, character)
		f.Must(err)
		f.Equal("bound", []int{len(bound.Files), len(bound.Bases)}, "[0 0]")
		page, err := friend.Svc.Bases(background, friend.User, "", 0)
		f.Must(err)
		f.Equal("bases", len(page.Items), 0)

		// The file that the friend has added is the friend's alone again.
		_, err = owner.Svc.File(background, owner.User, mine.ID)
		f.Wants(err, notFound)
		names, err = owner.allowed(knowledge.Scope{})
		f.Must(err)
		f.Equal("files of the owner", names, "[a.md]")
		f.Equal("content", friend.content(mine.ID), "of the friend")
	})
}

func TestUsersSeeOnlyWhatTheyMayInLists(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		for i, role := range roles {
			acting, x := f.share(role)
			bases, err := acting.Svc.Bases(background, acting.User, "", 0)
			f.Must(err)
			var got []string
			for _, b := range bases.Items {
				got = append(got, b.Name+" "+b.Access)
			}
			want := []string{"[own owner private owner]", "[own owner private write]", "[own owner private read]", "[own owner]"}[i]
			f.Equal("bases of "+role, got, want)
			grants, err := acting.Svc.Grants(background, acting.User, x.base)
			if i < 3 {
				f.Must(err)
				f.Equal("grants for "+role, len(grants), []int{2, 1, 1}[i])
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
			one, _ := stranger.Svc.File(background, stranger.User, file)
			some, _ := stranger.Svc.BaseFiles(background, stranger.User, base, "", 0)
			b, _ := stranger.Svc.Base(background, stranger.User, base)
			bound, _ := stranger.Svc.Bound(background, stranger.User, character)
			grants, _ := stranger.Svc.Grants(background, stranger.User, base)
			scope := knowledge.Scope{FilesOnly: rng.IntN(2) == 0, FileIDs: []string{file}}
			if rng.IntN(2) == 0 {
				scope.BaseIDs = []string{base}
			}
			if rng.IntN(2) == 0 {
				scope.CharacterID = character
			}
			names, _ := stranger.allowed(scope)
			if stranger.read(file) == nil || stranger.Svc.DeleteFile(background, stranger.Call(), file) == nil ||
				stranger.Svc.RemoveFile(background, stranger.Call(), base, file, true) == nil {
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
		lore, rules := f.Base("lore"), f.Base("rules")
		a := f.UploadTo(lore.ID, "harbour/a.md", "a")
		f.Clock.Add(1000)
		b := f.UploadTo(lore.ID, "harbour/old/b.pdf", "b")
		f.Must(f.Svc.AddFile(background, f.Call(), rules.ID, b.ID))
		loose := f.Upload("harbours/c.md", "c")
		f.set(a.ID, func(file *knowledge.File) { file.ContentType = "markdown" })
		f.set(b.ID, func(file *knowledge.File) { file.ContentType = "pdf" })
		character := f.Character()
		_, err := f.Svc.BindBase(background, f.Call(), character, rules.ID, nil)
		f.Must(err)
		_, err = f.Svc.BindFile(background, f.Call(), character, loose.ID, nil, nil)
		f.Must(err)
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
			f.Must(err)
			f.Equal(what, names, c.want)
		}
		_, err = f.Svc.BindBase(background, f.Call(), character, rules.ID, new(false))
		f.Must(err)
		names, err := f.allowed(knowledge.Scope{CharacterID: character})
		f.Must(err)
		f.Equal("switched off", names, "[]")
		refs, err := f.refs(knowledge.Scope{FilesOnly: true, FileIDs: []string{a.ID}})
		f.Must(err)
		f.Equal("base name", refs[0].BaseName, "lore")
	})
}

// A knowledge base that was deleted does not keep a file, also before its rows are gone.
func TestAFileOfADeletedKnowledgeBaseIsUnused(t *testing.T) {
	t.Parallel()
	onBoth(t, knowledge.Options{}, func(f *fixture) {
		old, notes := f.Base("old"), f.Base("notes")
		file := f.UploadTo(old.ID, "a.md", "a")
		f.Must(f.Svc.AddFile(background, f.Call(), notes.ID, file.ID))
		f.Must(f.Svc.DeleteBase(background, f.Call(), old.ID, false))
		f.Must(f.Svc.RemoveFile(background, f.Call(), notes.ID, file.ID, true))
		_, err := f.Svc.File(background, f.User, file.ID)
		f.Wants(err, fault.NotFound)
	})
}
