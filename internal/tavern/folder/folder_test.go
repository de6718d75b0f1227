package folder_test

import (
	"slices"
	"strings"
	"testing"

	"nodest/internal/tavern/folder"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]folder.Kind{
		"characters/Seraphina.png":                     folder.Character,
		"characters/Seraphina/joy.png":                 folder.Sprite,
		"characters/Seraphina/winter/joy.webp":         folder.Sprite,
		"characters/notes.txt":                         folder.Other,
		"chats/Seraphina/a - 2024-1-1@01h.jsonl":       folder.Chat,
		"chats/loose.jsonl":                            folder.Chat,
		"group chats/2024-1-1.jsonl":                   folder.GroupChat,
		"groups/1700000000000.json":                    folder.Group,
		"worlds/Eldoria.json":                          folder.World,
		"Worlds/Eldoria.JSON":                          folder.World,
		"OpenAI Settings/Default.json":                 folder.Preset,
		"OpenAI Settings/Default.settings":             folder.Preset,
		"TextGen Settings/Default.json":                folder.TextPreset,
		"KoboldAI Settings/Default.json":               folder.KoboldPreset,
		"NovelAI Settings/Default.json":                folder.NovelPreset,
		"context/Alpaca.json":                          folder.Context,
		"instruct/Alpaca.json":                         folder.Instruct,
		"sysprompt/Neutral.json":                       folder.SysPrompt,
		"reasoning/DeepSeek.json":                      folder.Reasoning,
		"QuickReplies/Default.json":                    folder.QuickReply,
		"User Avatars/user-default.png":                folder.Persona,
		"backgrounds/tavern day.jpg":                   folder.Background,
		"backgrounds/mine/tavern.mp4":                  folder.Background,
		"thumbnails/avatar/Seraphina.png":              folder.Thumbnail,
		"backups/chat_seraphina_2024.jsonl":            folder.Backup,
		"assets/bgm/song.mp3":                          folder.Asset,
		"extensions/third-party/x/index.js":            folder.Extension,
		"themes/Dark.json":                             folder.Theme,
		"movingUI/Default.json":                        folder.Theme,
		"user/images/Seraphina/a.png":                  folder.Image,
		"user/images/a.png":                            folder.Image,
		"user/files/a.txt":                             folder.File,
		"user/workflows/comfy.json":                    folder.Extension,
		"vectors/openai/x/index.json":                  folder.Vectors,
		"settings.json":                                folder.Settings,
		"backups/settings_20240101.json":               folder.Backup,
		"secrets.json":                                 folder.Secrets,
		"stats.json":                                   folder.Log,
		"content.log":                                  folder.Log,
		"README.md":                                    folder.Other,
		"../secrets.json":                              folder.Unsafe,
		"/etc/passwd":                                  folder.Unsafe,
		"C:/x.png":                                     folder.Unsafe,
		"chats/a\x00b.jsonl":                           folder.Unsafe,
		"chats//a.jsonl":                               folder.Unsafe,
		"chats/" + strings.Repeat("a", 300) + ".jsonl": folder.Unsafe,
	} {
		if got := folder.Classify(name); got != want {
			t.Errorf("Classify(%q) = %s, want %s", name, got, want)
		}
	}
}

func TestRoot(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		paths []string
		want  string
		known bool
	}{
		{"the folder itself", []string{"characters/a.png", "settings.json"}, "", true},
		{"default-user", []string{"default-user/chats/a/b.jsonl", "default-user/worlds/a.json"}, "default-user/", true},
		{"a whole installation", []string{
			"SillyTavern/public/backgrounds/a.png", "SillyTavern/default/content/settings.json",
			"SillyTavern/data/default-user/characters/a.png", "SillyTavern/data/default-user/chats/a/b.jsonl",
		}, "SillyTavern/data/default-user/", true},
		{"the old layout", []string{"public/characters/a.png", "public/settings.json"}, "public/", true},
		{"something else", []string{"a/b.txt"}, "", false},
		{"hostile", []string{"../characters/a.png"}, "", false},
	} {
		got, known := folder.Root(tt.paths)
		if got != tt.want || known != tt.known {
			t.Errorf("%s: Root = %q, %v", tt.name, got, known)
		}
	}
}

func TestFamilies(t *testing.T) {
	t.Parallel()
	heads := map[string]folder.Head{
		"chats/A/Branch #1.jsonl": {Main: "main"}, "chats/A/Branch #2.jsonl": {Main: "Branch #1"},
		"chats/A/lost.jsonl": {Main: "gone"}, "chats/A/r1.jsonl": {Main: "r2"}, "chats/A/r2.jsonl": {Main: "r1"},
	}
	files := []string{"chats/A/main.jsonl", "chats/A/Branch #1.jsonl", "chats/A/Branch #2.jsonl", "chats/A/lost.jsonl", "chats/A/r1.jsonl", "chats/A/r2.jsonl"}
	var got []string
	n := 0
	for _, f := range folder.Families(files, heads) {
		got = append(got, strings.Join(f.Files, "+"))
		n += len(f.Files)
	}
	if n != len(files) {
		t.Errorf("%d of %d files are in a family: %q", n, len(files), got)
	}
	if want := "chats/A/main.jsonl+chats/A/Branch #1.jsonl+chats/A/Branch #2.jsonl"; !slices.Contains(got, want) {
		t.Errorf("families %q, want %q among them", got, want)
	}
	if !slices.Contains(got, "chats/A/lost.jsonl") {
		t.Errorf("families %q: a branch of nothing must stand by itself", got)
	}
}

func TestNamesAreUniqueAndAllowed(t *testing.T) {
	t.Parallel()
	var names folder.Names
	got := []string{
		names.Take("chats/A", "a/b: c?", ".jsonl"), names.Take("chats/A", "A B c", ".jsonl"), names.Take("chats/A", "a b C", ".jsonl"),
		names.Take("worlds", "con", ".json"), names.Take("worlds", "..", ".json"), names.Take("worlds", strings.Repeat("茶", 200), ".json"),
	}
	seen := map[string]bool{}
	for _, n := range got {
		if !folder.Safe(n) || seen[strings.ToLower(n)] {
			t.Errorf("%q: not safe, or there twice", n)
		}
		seen[strings.ToLower(n)] = true
	}
}

func TestReadSettings(t *testing.T) {
	t.Parallel()
	s, err := folder.ReadSettings([]byte(`{"username": "Ann", "user_avatar": "ann.png", "theme": "x",
		"power_user": {"default_persona": "ann.png", "personas": {"ann.png": "Ann", "bo.png": "Bo"},
			"persona_descriptions": {"ann.png": {"description": "tall", "position": 4, "depth": 3, "role": 1, "lorebook": "Eldoria"}}},
		"world_info_settings": {"world_info_depth": 4, "world_info": {"globalSelect": ["Eldoria"], "charLore": [{"name": "Seraphina", "extraBooks": ["More"]}]}},
		"extension_settings": {"regex": [{"scriptName": "s"}], "character_allowed_regex": ["Seraphina.png"], "variables": {"global": {"a": "1"}},
			"note": {"default": "rain", "defaultDepth": 2, "chara": [{"name": "Seraphina", "prompt": "kind", "useChara": true}]}},
		"oai_settings": {"preset_settings_openai": "Mine"},
		"tags": [{"id": "1", "name": "elf"}], "tag_map": {"Seraphina.png": ["1", "2"]}, "odd": 5}`))
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case s.UserName != "Ann" || s.Default != "ann.png" || len(s.Personas) != 2 || *s.Personas[0].Depth != 3 || s.Personas[0].Lorebook != "Eldoria":
		t.Errorf("personas: %+v", s)
	case len(s.Global) != 1 || s.Extra["Seraphina"][0] != "More" || !strings.Contains(string(s.World), "world_info_depth"):
		t.Errorf("world info: %+v", s)
	case s.Scripts == nil || s.Variables == nil || s.Note.Text != "rain" || s.Notes["Seraphina"].Text != "kind" || len(s.Allowed) != 1:
		t.Errorf("extensions: %+v", s)
	case s.Preset != "Mine" || s.Tags["Seraphina.png"][0] != "elf" || !slices.Equal(s.Rest, []string{"odd", "theme"}):
		t.Errorf("rest: %+v", s)
	}
	for _, odd := range []string{`{}`, `{"power_user": 5, "tags": {}, "extension_settings": []}`, `{"power_user": {"personas": []}, "world_info_settings": {"world_info": 1}}`} {
		if _, err := folder.ReadSettings([]byte(odd)); err != nil {
			t.Errorf("%s: %v", odd, err)
		}
	}
	if _, err := folder.ReadSettings([]byte(`[`)); err == nil {
		t.Error("damaged settings were read")
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	g, err := folder.ReadGroup([]byte(`{"id": 17, "name": "Us", "members": ["A.png", "B.png"], "chats": ["x"], "chat_id": "y",
		"generation_mode": 1, "generation_mode_join_prefix": "<FIELDNAME> of {{char}}: "}`))
	if err != nil || g.ID != "17" || !slices.Equal(g.Chats, []string{"x", "y"}) {
		t.Fatalf("%+v, %v", g, err)
	}
	j := g.Join([]folder.Member{{Name: "Ann", Description: "{{char}} is tall."}, {Name: "Bo", Description: " Bo sings. "}})
	if want := "Description of Ann: Ann is tall.\nDescription of Bo: Bo sings."; j.Description != want {
		t.Errorf("Join = %q, want %q", j.Description, want)
	}
}

func TestMedia(t *testing.T) {
	t.Parallel()
	one := folder.Media{Path: "user/images/A/1.png", Name: "1.png"}
	all := []folder.Media{one, {Path: "user/images/A/2.mp4", Name: "2.mp4"}, {Path: "user/files/3.txt", Name: "My notes.txt"}}
	line := []byte(`{"mes": "x", "extra": {"image": "/user/images/A/1.png", "media": [{"url": "/user/images/A/2.mp4", "type": "video"}],
		"files": [{"url": "user/files/3.txt", "name": "My notes.txt"}],
		"image_swipes": ["user/images/A/1.png", "../../etc/passwd", "https://x.example/images/a.png", "data:images/png;base64,AA", "characters/A.png"]},
		"swipes": ["y", "x", "z"], "swipe_id": 1, "swipe_info": [{"extra": {"image": "user\\images\\A\\1.png"}}, {"extra": {}}, {}]}`)
	for swipe, want := range map[int][]folder.Media{-1: all, 1: all, 0: {one}, 2: nil, 3: nil} {
		if got := folder.MediaOf(line, swipe); !slices.Equal(got, want) {
			t.Errorf("MediaOf(%d) = %q, want %q", swipe, got, want)
		}
	}
	for _, line := range []string{`{"mes": "images", "extra": 7}`, `{"mes": "files", "extra": {"media": 7, "files": [7, {"url": 7}], "image": []}}`, `images`} {
		if got := folder.MediaOf([]byte(line), -1); got != nil {
			t.Errorf("MediaOf(%s) = %q", line, got)
		}
	}
}
