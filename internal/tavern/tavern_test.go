package tavern_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/character"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/internal/tavern"
	"nodest/internal/tavern/folder"
	"nodest/internal/tavern/taverntest"
	"nodest/store"
	"nodest/store/storetest"
)

// notTaken are the files of folder119 that are refused, and words of the reason.
var notTaken = map[string]string{
	"characters/notes.txt": "no place", "chats/Sera/broken.jsonl": "not a chat message", "worlds/no book.json": "",
	"QuickReplies/Default.json":  "quick replies",
	"thumbnails/avatar/Sera.png": "made anew", "backups/chat_sera.jsonl": "backup", "vectors/x/index.json": "made anew", "themes/Dark.json": "page",
	"secrets.json": "keys", "stats.json": "statistics", "content.log": "statistics",
}

func TestAWholeFolderComesIn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, open storetest.Opener) {
		t.Parallel()
		w := newWorld(t, open(t, store.Options{}))
		all := folder119()
		imp := w.imported(all.Zip("data/default-user/"), false)
		sum := imp.Counts.Sum()
		if imp.State != jobs.Done || imp.Found != len(all) || sum.Taken+sum.Kept+sum.NotTaken != imp.Found || imp.Done != imp.Found || sum.Kept != 0 {
			t.Errorf("%+v", imp)
		}
		files := w.files(imp.ID)
		for path := range all {
			f, words := files[path], notTaken[path]
			_, refused := notTaken[path]
			switch {
			case f == nil:
				t.Errorf("%s is not in the report", path)
			case refused && (f.Outcome != tavern.NotTaken || f.Reason == "" || !strings.Contains(f.Reason, words)):
				t.Errorf("%s: %s %q, want a reason with %q", path, f.Outcome, f.Reason, words)
			case !refused && f.Outcome != tavern.Taken:
				t.Errorf("%s: %s %q", path, f.Outcome, f.Reason)
			}
		}
		w.same("the user has", w.has(), []string{
			`character Bo v3 [made] {"scripts":{"card":true},"worldInfo":{"depth":4}} note {"content":"Bo is shy.","injection_depth":4,"interval":1,"position":1,"role":"system"}`,
			`character Lost v2 [] {"worldInfo":{"depth":4}} note `,
			`character Sera v3 [made elf] {"worldInfo":{"depth":4}} note `,
			`character Us v2 [] {"worldInfo":{"depth":4}} note `,
			"chat 17a with Us: 3 messages, 0 save points",
			"chat Sera - first with Sera: 3 messages, 1 save points",
			"chat hidden with Sera: 2 messages, 0 save points",
			"chat only with Lost: 1 messages, 0 save points",
			"persona Ann v1 all false bound []",
			"preset Actor v1 all false bound []",
			"preset Mine v1 all false bound []",
			"regexscript stars v2 all true bound []",
			`settings "Ann" persona true preset true scripts true`,
			"template Alpaca v1 all false bound []",
			"template Alpaca v1 all false bound []",
			"template Big O v1 all false bound []",
			"template DeepSeek v1 all false bound []",
			"worldbook Eldoria v3 all false bound [Bo Sera]",
			"worldbook World v2 all true bound []",
		})
		if files["chats/Sera/Sera - first.jsonl"].ObjectID != files["chats/Sera/Branch #1 - first.jsonl"].ObjectID {
			t.Error("a branch is another conversation")
		}
		if f := files["characters/Sera/joy.png"]; f.ObjectID != files["characters/Sera.png"].ObjectID {
			t.Errorf("a sprite is with %+v", f)
		}
	})
}

func TestASecondImportAddsNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, open storetest.Opener) {
		t.Parallel()
		clock := &later{}
		w := newWorld(t, open(t, store.Options{Now: clock.now}))
		archive := folder119().Zip("")
		first := w.imported(archive, false)
		has := w.has()
		for _, wait := range []time.Duration{0, 49 * time.Hour} {
			clock.by = wait // the idempotency keys are gone
			again := w.imported(archive, false)
			one, two := first.Counts.Sum(), again.Counts.Sum()
			if two.Taken != 0 || two.Kept != one.Taken || two.NotTaken != one.NotTaken {
				t.Errorf("after %v: %+v, before %+v", wait, two, one)
			}
			w.same("a second import changed what the user has", w.has(), has)
		}
	})
}

// oddFolder has files that depend on others, which differ, are damaged or not there.
func oddFolder() taverntest.Files {
	card := func(name, world, book string) []byte {
		return []byte(`{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"` + name + `","first_mes":"Hi.","extensions":{"world":"` + world + `"}` + book + `}}`)
	}
	own := `,"character_book":{"entries":[{"keys":["sea"],"content":"Salt.","enabled":true,"insertion_order":1,"extensions":{}}]}`
	good := line("Kay", false, "Hello.", "")
	return taverntest.Files{
		"characters/differs.json":  card("Kay", "Sea", own),
		"characters/missing.json":  card("Lee", "Nowhere", ""),
		"characters/broken.json":   []byte(`{"spec":`),
		"characters/damaged.json":  card("Moe", "Broken", ""),
		"characters/noted.json":    card("Noe", "", ""),
		"worlds/Sea.json":          []byte(`{"entries":{"0":{"uid":0,"key":["sea"],"content":"Deep."}}}`),
		"worlds/Sea copy.json":     []byte(`{"entries":{"0":{"uid":0,"key":["sea"],"content":"Deep."}}}`),
		"worlds/Broken.json":       []byte(`{`),
		"chats/differs/a.jsonl":    []byte(good),
		"chats/differs/twin.jsonl": []byte(good),
		"chats/differs/odd.jsonl":  []byte(`{"chat_metadata":{"variables":{"a":{"b":[1]}},"timedWorldInfo":7,"main_chat":"a"},"user_name":"x","character_name":"y"}` + "\n" + line("Kay", false, "Hello.", `,"swipes":[1,2],"swipe_id":9`)),
		"chats/broken/b.jsonl":     []byte(good),
		"chats/Nobody/c.jsonl":     []byte(good),
		"chats/loose.jsonl":        []byte(line("Kay", false, "Who?", "")),
		"groups/g.json":            []byte(`{"id":"g","name":"","members":["differs.json","broken.json","missing.json"],"chats":["g1"]}`),
		"group chats/g1.jsonl":     []byte(line("Kay", false, "One.", "")),
		"group chats/h1.jsonl":     []byte(line("Kay", false, "Two.", "")),
		"groups/broken.json":       []byte(`[]`),
		"User Avatars/a.png":       []byte("a"), "User Avatars/none.png": []byte("n"),
		"user/images/Kay/1.png": []byte("picture"),
		"settings.json": op.MustJSON(map[string]any{
			"power_user": map[string]any{"personas": map[string]any{"a.png": "Ann", "long.png": strings.Repeat("n", 200)}, "persona_descriptions": map[string]any{"a.png": map[string]any{"description": "tall", "connections": []int{1, 2}}}},
			"extension_settings": map[string]any{
				"regex":     []any{map[string]any{"scriptName": "slash", "findRegex": "/(?<x>a)/", "placement": []int{3, 6}}, map[string]any{"scriptName": "none"}, 7},
				"note":      map[string]any{"default": "x", "chara": []any{map[string]any{"name": "noted", "useChara": true, "prompt": strings.Repeat("word ", 20_000)}}},
				"variables": map[string]any{"global": map[string]any{"big": strings.Repeat("v", 70_000)}},
			},
			"oai_settings":        map[string]any{"preset_settings_openai": "Gone"},
			"world_info_settings": map[string]any{"world_info_depth": 100_000, "world_info": map[string]any{"charLore": []any{map[string]any{"name": "noted", "extraBooks": []string{"Sea", "Broken"}}}}},
		}),
	}
}

// A dry run adds nothing, and its report is that of the import which follows, but for the ids of what it has not made.
func TestADryRunAddsNothingAndTellsTheSame(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]taverntest.Files{"of 1.19": folder119(), "of a user": folderOfUser(), "odd": oddFolder()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, storetest.Open(t))
			archive, has := files.Zip("default-user/"), w.has()
			for _, again := range []bool{false, true} {
				dry := w.imported(archive, true)
				if w.same("a dry run added something", w.has(), has); again {
					w.same("and after the import", w.has(), has)
				}
				tried, real := w.files(dry.ID), w.imported(archive, false)
				if !maps.Equal(dry.Counts, real.Counts) {
					t.Errorf("the dry run counts %+v, the import %+v", dry.Counts, real.Counts)
				}
				for path, f := range w.files(real.ID) {
					d := tried[path]
					if d == nil || d.Kind != f.Kind || d.Size != f.Size || d.Outcome != f.Outcome || d.Reason != f.Reason || d.ObjectKind != f.ObjectKind || !slices.Equal(d.Notes, f.Notes) {
						t.Errorf("%s:\nthe dry run says %+v\nthe import      %+v", path, d, f)
					}
					if name == "odd" {
						t.Logf("%s %s %s %.300v", path, f.Outcome, f.Reason, f.Notes)
					}
				}
				has = w.has()
			}
		})
	}
}

// The trial says that a card's own book differs from the file that takes its place.
func TestADryRunComparesTheBookOfACard(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.Open(t))
	dry := w.imported(oddFolder().Zip(""), true)
	f := w.files(dry.ID)["characters/differs.json"]
	if f == nil || !slices.ContainsFunc(f.Notes, func(n tavern.Note) bool { return n.Code == "book_replaced" }) {
		t.Errorf("%+v", f)
	}
}

// A process that dies at any step, and another that goes on, end like one that does not die.
func TestAnImportThatDiesAnywhereEndsAlike(t *testing.T) {
	t.Parallel()
	archive := folder119().Zip("")
	whole := newWorld(t, storetest.Open(t))
	imp := whole.start(archive, false)
	whole.life = &storetest.Life{}
	whole.must(whole.work())
	has, counts, steps := whole.has(), whole.get(imp.ID).Counts.Sum(), whole.life.Steps()
	db := storetest.Open(t)
	for ends := 1; ends <= steps; ends++ {
		w := newWorld(t, db)
		imp := w.start(archive, false)
		w.life = &storetest.Life{Ends: ends}
		_ = w.work() // it dies
		if ends < steps-1 && !w.life.Over() {
			t.Fatalf("it lives after %d steps", ends)
		}
		w.takeOver()
		if w.get(imp.ID).Open() {
			w.must(w.work())
		}
		got := w.get(imp.ID)
		if got.State != jobs.Done || got.Counts.Sum() != counts {
			t.Errorf("died at step %d: %+v, want %+v", ends, got, counts)
		}
		w.same("died at step "+string(rune('0'+ends%10)), w.has(), has)
		if t.Failed() {
			t.Fatalf("died at step %d of %d", ends, steps)
		}
	}
}

func TestAStoppedImportKeepsWhatItHasTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.Open(t))
	archive := folder119().Zip("")
	imp := w.start(archive, false)
	stopped, err := w.service().Stop(t.Context(), w.call(), imp.ID)
	w.must(err)
	if stopped.State != jobs.Cancelled {
		t.Errorf("%+v", stopped)
	}
	w.must(w.service().Delete(t.Context(), w.call(), imp.ID))
	if _, err := w.service().Get(t.Context(), w.user, imp.ID); err == nil {
		t.Error("it is there after its deletion")
	}
	again := w.imported(archive, false)
	if again.State != jobs.Done || again.Counts.Sum().Taken == 0 {
		t.Errorf("%+v", again)
	}
}

// A chat that was continued since is another file: it becomes another chat, and the report says so.
func TestAChatThatWasContinuedStandsBesideItsOldState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.Open(t))
	old := line("Bo", false, "Hello.", "")
	w.imported(taverntest.Files{"chats/Bo/one.jsonl": []byte(old)}.Zip(""), false)
	imp := w.imported(taverntest.Files{"chats/Bo/one.jsonl": []byte(old + line("Ann", true, "Hi.", ""))}.Zip(""), false)
	f := w.files(imp.ID)["chats/Bo/one.jsonl"]
	if f.Outcome != tavern.Taken || len(f.Notes) == 0 || f.Notes[0].Code != "earlier_state" {
		t.Errorf("%+v", f)
	}
	w.same("both are there", w.has(), []string{
		"character Bo v1 []  note ", "chat one with Bo: 1 messages, 0 save points", "chat one with Bo: 2 messages, 0 save points", `settings "" persona false preset false scripts false`,
	})
}

// Things that a user has deleted come in again, as often as that happens, also under the keys of the same day.
func TestWhatWasDeletedComesInAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, storetest.Open(t))
	archive := taverntest.Files{"characters/Bo.png": taverntest.Card("Bo", "Bo sings.", ""), "characters/Bo/joy.png": []byte("joy")}.Zip("")
	for range 3 {
		imp := w.imported(archive, false)
		if sum := imp.Counts.Sum(); sum.Taken != 2 {
			t.Errorf("%+v", sum)
		}
		id := w.files(imp.ID)["characters/Bo.png"].ObjectID
		kept, err := w.service().KeptFiles(t.Context(), w.user, folder.Sprite, id, "", 0)
		w.must(err)
		if len(kept.Items) != 1 {
			t.Fatalf("%d sprites are with the character", len(kept.Items))
		}
		w.must(w.db.Characters().Update(t.Context(), w.user, func(tx character.Tx) error { return tx.DeleteCharacter(id) }))
		if kept, err = w.service().KeptFiles(t.Context(), w.user, "", "", "", 0); err != nil || len(kept.Items) != 0 {
			t.Errorf("%d files of a deleted character are listed, %v", len(kept.Items), err)
		}
	}
}
