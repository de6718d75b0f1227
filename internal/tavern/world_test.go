package tavern_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/chat/archive"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/internal/tavern"
	"nodest/internal/tavern/taverntest"
	"nodest/store"
	"nodest/store/storetest"
)

// world is a user with a database.
type world struct {
	testing.TB
	db   *store.DB
	user string
	life *storetest.Life // the process that works; it may end
}

func newWorld(t testing.TB, db *store.DB) *world {
	t.Helper()
	return &world{t, db, storetest.User(t, db), &storetest.Life{}}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// service is that of a process with the life of w.
func (w *world) service() *tavern.Service {
	quiet := slog.New(slog.DiscardHandler)
	return tavern.New(storetest.Mortal[tavern.Tx]{Store: w.db.Tavern(), Life: w.life}, tavern.Options{
		Characters: character.New(storetest.Mortal[character.Tx]{Store: w.db.Characters(), Life: w.life}, character.Options{}),
		Archives:   archive.New(storetest.Mortal[chat.Tx]{Store: w.db.Chats(), Life: w.life}), Log: quiet,
	})
}

func (w *world) call() *op.Call { return &op.Call{UserID: w.user} }

func (w *world) start(archive []byte, dry bool) *tavern.Import {
	w.Helper()
	imp, err := w.send(archive, dry)
	w.must(err)
	return imp
}

// send is start that may fail.
func (w *world) send(archive []byte, dry bool) (*tavern.Import, error) {
	w.Helper()
	svc := w.service()
	in := svc.Intake(w.Context(), w.user)
	defer in.Drop()
	_, err := in.Write(archive)
	w.must(err)
	return svc.Start(w.Context(), w.call(), tavern.Upload{Name: "default-user.zip", Archive: in, DryRun: dry, MakeCharacters: true})
}

// work runs the job of an import as far as the process lives.
func (w *world) work() error {
	w.Helper()
	claimed, err := w.db.ClaimJobs(w.Context(), "process", time.Hour, []jobs.Want{{Kind: tavern.JobImport, Free: 1, PerUser: 1}})
	w.must(err)
	if len(claimed) == 0 {
		w.Fatal("no job is due")
	}
	if err := w.service().Kinds()[0].Run(w.Context(), claimed[0]); err != nil {
		return err
	}
	_ = w.db.EndJob(w.Context(), claimed[0], jobs.Outcome{State: jobs.Done}) // mostly it has ended
	return nil
}

// takeOver is what another process does when it finds that the one with the job has died.
func (w *world) takeOver() {
	w.Helper()
	w.life = &storetest.Life{}
	w.must(w.db.RecoverJobs(w.Context(), map[string]int{tavern.JobImport: w.service().Kinds()[0].Attempts}, "another"))
}

// imported imports an archive.
func (w *world) imported(archive []byte, dry bool) *tavern.Import {
	w.Helper()
	imp := w.start(archive, dry)
	w.must(w.work())
	return w.get(imp.ID)
}

func (w *world) get(id string) *tavern.Import {
	w.Helper()
	imp, err := w.service().Get(w.Context(), w.user, id)
	w.must(err)
	return imp
}

// files is the report of an import by path.
func (w *world) files(id string) map[string]*tavern.File {
	w.Helper()
	files := map[string]*tavern.File{}
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := w.service().Files(w.Context(), w.user, id, tavern.Filter{}, cursor, 7)
		w.must(err)
		for _, f := range page.Items {
			if files[f.Path] != nil {
				w.Errorf("%s is in the report twice", f.Path)
			}
			files[f.Path] = f
		}
		cursor = page.NextCursor
	}
	return files
}

// has says what the user has, in words that are the same whatever the ids are.
func (w *world) has() []string {
	w.Helper()
	var all []string
	w.must(w.db.Chats().View(w.Context(), w.user, func(tx chat.Tx) error {
		characters, _, err := tx.Characters.Characters(character.Filter{}, "", 200)
		w.must(err)
		names := map[string]string{}
		for _, ch := range characters {
			whole, err := tx.Characters.Character(ch.ID)
			w.must(err)
			names[ch.ID] = ch.Name
			all = append(all, fmt.Sprintf("character %s v%d %v %s note %s", whole.Name, whole.Version, whole.Tags, whole.Settings, whole.AuthorNote))
		}
		for _, kind := range []character.ResourceKind{character.WorldBook, character.Preset, character.RegexScript, character.Persona, character.Template} {
			resources, _, err := tx.Characters.Resources(kind, "", 200)
			w.must(err)
			for _, r := range resources {
				var bound []string
				for _, id := range r.Characters {
					bound = append(bound, names[id])
				}
				slices.Sort(bound)
				all = append(all, fmt.Sprintf("%s %s v%d all %v bound %v", kind, r.Name, r.Version, r.BindAll, bound))
			}
		}
		for cursor, more := "", true; more; more = cursor != "" {
			var chats []*chat.Conversation
			chats, cursor, err = tx.Conversations(chat.ConversationFilter{}, cursor, 200)
			w.must(err)
			for _, c := range chats {
				n := 0
				for _, err := range chat.Shown(tx, c) {
					w.must(err)
					n++
				}
				saves, _, err := tx.Saves(c.ID, true, "", 100)
				w.must(err)
				all = append(all, fmt.Sprintf("chat %s with %s: %d messages, %d save points", c.Title, names[c.CharacterID], n, len(saves)))
			}
		}
		set, err := tx.Characters.Settings()
		w.must(err)
		all = append(all, fmt.Sprintf("settings %q persona %v preset %v scripts %v", set.UserName, set.PersonaID != "", set.GlobalPreset.Enabled, set.GlobalRegexEnabled))
		return nil
	}))
	slices.Sort(all)
	return all
}

func (w *world) same(what string, got, want []string) {
	w.Helper()
	if !slices.Equal(got, want) {
		w.Errorf("%s:\n--- got\n%s\n--- want\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// line is a line of a chat.
func line(name string, user bool, text, more string) string {
	return fmt.Sprintf(`{"name":%q,"is_user":%v,"is_system":false,"send_date":"2024-05-01T12:00:00Z","mes":%q,"extra":{}%s}`+"\n", name, user, text, more)
}

// folder119 is a folder as SillyTavern 1.19 lays it out, with something of each kind.
func folder119() taverntest.Files {
	r := rand.New(rand.NewPCG(7, 7)) //nolint:gosec // a made-up folder
	head := func(meta string) string {
		return `{"user_name":"unused","character_name":"unused","chat_metadata":{` + meta + `}}` + "\n"
	}
	main := head(`"integrity":"1"`) + line("Sera", false, "Welcome.", `,"swipes":["Welcome.","Hello."],"swipe_id":0`) + line("Ann", true, "Hi.", "") + line("Sera", false, "Sit down.", "")
	hidden := strings.Replace(line("Note", false, "Rain begins.", ""), `"is_system":false`, `"is_system":true`, 1)
	picture := taverntest.Card("x", "y", "")
	return taverntest.Files{
		"characters/Sera.png":                taverntest.Card("Sera", "{{char}} heals.", "Eldoria"),
		"characters/Bo.png":                  taverntest.Card("Bo", "Bo sings.", ""),
		"characters/Sera/joy.png":            picture,
		"characters/notes.txt":               []byte("notes"),
		"chats/Sera/Sera - first.jsonl":      []byte(main),
		"chats/Sera/Branch #1 - first.jsonl": []byte(head(`"main_chat":"Sera - first"`) + main[strings.Index(main, "\n")+1:] + line("Ann", true, "I stay.", "")),
		"chats/Sera/hidden.jsonl":            []byte(head(`"integrity":"3"`) + hidden + line("Ann", true, "Look!", `,"extra":{"image":"/user/images/Sera/look.png"}`)),
		"chats/Sera/broken.jsonl":            []byte("{\"user_name\": 1\nnothing"),
		"chats/Lost/only.jsonl":              []byte(head(`"integrity":"4"`) + line("Lost", false, "Who am I?", "")),
		"groups/17.json":                     []byte(`{"id":"17","name":"Us","members":["Sera.png","Bo.png","Gone.png"],"chats":["17a"],"chat_id":"17a","generation_mode":1}`),
		"group chats/17a.jsonl":              []byte(head(`"integrity":"5"`) + line("Sera", false, "One.", "") + line("Bo", false, "Two.", "") + line("Ann", true, "Three.", "")),
		"worlds/Eldoria.json":                taverntest.Book(r, 3),
		"worlds/World.json":                  taverntest.Book(r, 2),
		"worlds/no book.json":                []byte(`[1]`),
		"OpenAI Settings/Mine.json":          []byte(`{"temperature":0.7,"prompts":[{"identifier":"main","role":"system","content":"Write.","name":"Main"}],"prompt_order":[{"character_id":100001,"order":[{"identifier":"main","enabled":true}]}]}`),
		"TextGen Settings/Big O.json":        []byte(`{"temp":0.9,"rep_pen":1.1}`),
		"context/Alpaca.json":                []byte(`{"name":"Alpaca","story_string":"{{description}}"}`),
		"instruct/Alpaca.json":               []byte(`{"name":"Alpaca","input_sequence":"### Instruction:","output_sequence":"### Response:"}`),
		"sysprompt/Actor.json":               []byte(`{"name":"Actor","content":"You are an actor.","post_history":""}`),
		"reasoning/DeepSeek.json":            []byte(`{"name":"DeepSeek","prefix":"<think>","suffix":"</think>","separator":"\n"}`),
		"QuickReplies/Default.json":          []byte(`{}`),
		"User Avatars/ann.png":               picture,
		"User Avatars/user-default.png":      picture,
		"backgrounds/tavern.jpg":             []byte("\xff\xd8picture"),
		"user/images/Sera/look.png":          picture,
		"user/files/a.txt":                   []byte("a file"),
		"thumbnails/avatar/Sera.png":         {},
		"backups/chat_sera.jsonl":            {},
		"vectors/x/index.json":               {},
		"themes/Dark.json":                   []byte(`{}`),
		"secrets.json":                       {},
		"stats.json":                         []byte(`{}`),
		"content.log":                        []byte(`x`),
		"settings.json": []byte(`{"username":"Ann","user_avatar":"ann.png","theme":"Dark",
			"power_user":{"default_persona":"ann.png","personas":{"ann.png":"Ann"},"persona_descriptions":{"ann.png":{"description":"tall","position":0,"lorebook":"World"}}},
			"world_info_settings":{"world_info_depth":4,"world_info_budget":25,"world_info":{"globalSelect":["World"],"charLore":[{"name":"Bo","extraBooks":["Eldoria"]}]}},
			"extension_settings":{"regex":[{"id":"1","scriptName":"stars","findRegex":"/a/g","replaceString":"*","placement":[2],"promptOnly":true}],
				"note":{"chara":[{"name":"Bo","prompt":"Bo is shy.","useChara":true}]},"variables":{"global":{"gold":"7"}},"character_allowed_regex":["Bo.png"]},
			"oai_settings":{"preset_settings_openai":"Mine"},"tags":[{"id":"t","name":"elf"}],"tag_map":{"Sera.png":["t"]}}`),
	}
}

// later is a clock that leaps.
type later struct{ by time.Duration }

func (l *later) now() time.Time { return time.Now().Add(l.by) }

var _ = context.Background
