package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"nodest/card"
	"nodest/chat/archive"
	"nodest/fault"
	"nodest/memory"
)

// What a file can be imported as, besides a kind.
const (
	asSave     = "save"
	asMemories = "memories"
)

// importing is one run of nodest import.
type importing struct {
	p            *program
	c            *client
	as           string // --as
	character    string // --character
	conversation string // --conversation

	answers *bufio.Reader // of the person at the terminal
	with    *item         // the character of --character, once found
}

func (p *program) importCommand() *cobra.Command {
	var sample bool
	in := &importing{p: p}
	cmd := &cobra.Command{
		Use: "import FILE…", Short: "Import character cards, world books, presets, regex scripts, chats, save points and memories",
		Long: "Import files. The type of each file is detected from its content:\n" +
			"  character  card as PNG, JSON or CHARX (V1, V2, V3, NodeST and other apps)\n" +
			"  book       world book (lorebook)\n" +
			"  preset     chat-completion preset, or a system prompt\n" +
			"  script     regex scripts\n" +
			"  chat       SillyTavern JSONL, JSON of other apps, or nodest export --chat with all its branches\n" +
			"  save       save point from nodest save export or the NodeST app\n" +
			"  memories   memory export\n" +
			"  persona    JSON with name and description; only with --as persona\n" +
			"A chat belongs to a character: the one given with --character, else the one named in the file. With --character, a\n" +
			"book, preset or set of scripts is bound to that character.",
		Example: "  nodest import seraphina.png eldoria.json preset.json\n  nodest import --sample\n" +
			"  nodest import glade.jsonl --character Seraphina\n  nodest import odd.json --as preset",
		SuggestFor: []string{"load", "add", "upload"},
	}
	cmd.Flags().BoolVar(&sample, "sample", false, "import the built-in sample character")
	cmd.Flags().StringVar(&in.as, "as", "", "type of the files: "+strings.Join(importable(), ", ")+"; default: detected from their content")
	cmd.Flags().StringVar(&in.character, "character", "", "the character (name or id) that chats and memories belong to and other resources are bound to")
	cmd.Flags().StringVar(&in.conversation, "conversation", "", "the chat (title or id) that save points belong to")
	p.jsonFlag(cmd, "print the result for each file as JSON, one object per line")
	cmd.Args = func(_ *cobra.Command, files []string) error {
		if len(files) == 0 && !sample {
			return usage("give a file (nodest import card.png) or --sample")
		}
		if in.as != "" && !strings.Contains(" "+strings.Join(importable(), " ")+" ", " "+in.as+" ") {
			return usage("--as %s: must be one of %s", in.as, strings.Join(importable(), ", "))
		}
		return nil
	}
	cmd.RunE = p.command(func(ctx context.Context, c *client, files []string) error {
		in.c = c
		if sample {
			var raw json.RawMessage
			if err := c.call(ctx, http.MethodPost, characters.path+"/sample", nil, &raw); err != nil {
				return err
			}
			if err := in.say(characters.noun, raw); err != nil {
				return err
			}
		}
		return in.files(ctx, files)
	})
	return cmd
}

// importable lists the words for --as.
func importable() []string {
	return []string{characters.noun, books.noun, presets.noun, scripts.noun, chats.noun, asSave, asMemories, personas.noun}
}

// files imports each file and says what became of it; one that cannot be used
// does not keep the others out.
func (in *importing) files(ctx context.Context, files []string) error {
	failed := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		switch {
		case err != nil:
		case len(bytes.TrimSpace(data)) == 0:
			err = fault.New(fault.InvalidImport, "the file is empty")
		default:
			err = in.file(ctx, file, data)
		}
		if err == nil {
			continue
		}
		var wrong *usageError
		switch {
		case len(files) > 1:
			failed++
			fmt.Fprintf(in.p.err, "%s: %s\n", file, reason(err))
		case errors.As(err, &wrong):
			return usage("%s: %s", file, wrong.text)
		default:
			return fmt.Errorf("%s: %s", file, reason(err))
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d files were not imported", failed, len(files))
	}
	return nil
}

func (in *importing) file(ctx context.Context, file string, data []byte) error {
	as := cmp.Or(in.as, detect(data))
	switch as {
	case "":
		return unknownFile(data)
	case chats.noun:
		return in.chat(ctx, file, data)
	case asSave:
		return in.save(ctx, file, data)
	case asMemories:
		return in.memories(ctx, file, data)
	case personas.noun:
		return in.persona(ctx, data)
	}
	for _, k := range []*kind{characters, books, presets, scripts} {
		if k.noun == as {
			return in.document(ctx, k, file, data)
		}
	}
	return fmt.Errorf("cannot import a %s", as) // --as was checked
}

// detect returns what a file is, as a word for --as; "" if unknown.
func detect(data []byte) string {
	if _, ok := memory.IsExport(data); ok {
		return asMemories
	}
	switch {
	case archive.IsArchive(data):
		return chats.noun
	case archive.IsSave(data):
		return asSave
	}
	return map[card.Kind]string{
		card.KindCharacter: characters.noun, card.KindWorldBook: books.noun, card.KindPreset: presets.noun,
		card.KindRegex: scripts.noun, card.KindChat: chats.noun,
	}[card.Detect(data)]
}

// unknownFile says why a file is none that can be imported.
func unknownFile(data []byte) error {
	if err := card.CheckEncoding(data, fault.InvalidImport); err != nil {
		return err
	}
	text := strings.TrimSpace(strings.TrimPrefix(string(data), "\ufeff"))
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
		var document json.RawMessage
		if err := json.Unmarshal([]byte(text), &document); err != nil {
			return fault.Wrap(err, fault.InvalidImport, "invalid JSON: %v", err)
		}
	}
	return fault.New(fault.InvalidImport, "unknown file type; give it with --as %s", strings.Join(importable(), "|"))
}

// document imports a character or a resource.
func (in *importing) document(ctx context.Context, k *kind, file string, data []byte) error {
	return in.create(ctx, k, func(made *json.RawMessage) error {
		return in.c.upload(ctx, k.path+"/import", file, data, nil, made)
	})
}

// create stores a file, says what it became, and binds it to the character of
// --character.
func (in *importing) create(ctx context.Context, k *kind, store func(made *json.RawMessage) error) error {
	var with item
	bind := in.character != "" && k != characters
	if bind { // an unknown character is an error before anything is stored
		var err error
		if with, err = in.given(ctx); err != nil {
			return err
		}
	}
	var raw json.RawMessage
	if err := store(&raw); err != nil {
		return err
	}
	if err := in.say(k.noun, raw); err != nil || !bind {
		return err
	}
	r := imported(raw)
	r.kind = k
	bound, err := in.c.bind(ctx, r, []item{with}, false, true)
	if err == nil && k == scripts {
		err = in.p.switchScriptsOn(ctx, in.c)
	}
	if err != nil || in.p.json {
		return err
	}
	return in.p.sayBound(ctx, in.c, k, bound)
}

// persona creates a persona: REST has no file form of it.
func (in *importing) persona(ctx context.Context, data []byte) error {
	if !json.Valid(data) {
		return unknownFile(data)
	}
	return in.create(ctx, personas, func(made *json.RawMessage) error {
		return in.c.call(ctx, http.MethodPost, personas.path, map[string]any{"document": json.RawMessage(data)}, made)
	})
}

func (in *importing) chat(ctx context.Context, file string, data []byte) error {
	with, err := in.chatCharacter(ctx, file, data)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := in.c.upload(ctx, chats.path+"/import", file, data, map[string]string{"characterId": with.ID}, &raw); err != nil {
		return err
	}
	return in.say("chat with "+with.Name, raw)
}

func (in *importing) save(ctx context.Context, file string, data []byte) error {
	var of struct {
		ConversationID string `json:"conversationId"`
	}
	_ = json.Unmarshal(data, &of) // of another type it names no chat of ours
	conv, err := in.owner(in.conversation, of.ConversationID,
		func(c *client, word string) (item, error) { return c.findChat(ctx, word) },
		"the chat of this save point was not found; choose a chat with --conversation NAME")
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := in.c.upload(ctx, conv.path()+"/saves/import", file, data, nil, &raw); err != nil {
		return err
	}
	return in.say("save point of "+conv.Title, raw)
}

func (in *importing) memories(ctx context.Context, file string, data []byte) error {
	named, _ := memory.IsExport(data)
	with, err := in.owner(in.character, named,
		func(c *client, word string) (item, error) { return c.find(ctx, word, characters) },
		"the character of these memories was not found; choose a character with --character NAME")
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := in.c.upload(ctx, with.path()+"/memories/import", file, data, nil, &raw); err != nil {
		return err
	}
	if in.p.json {
		return in.p.printJSON(raw)
	}
	var out struct {
		Memories memory.Imported
		Warnings []struct{ Path, Detail string }
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return err
	}
	fmt.Fprintf(in.p.out, "%d memories for %s, %d already known\n", out.Memories.Created, with.Name, out.Memories.Skipped)
	for _, f := range out.Memories.Failed {
		fmt.Fprintf(in.p.out, "  note: line %d: %s\n", f.Line, f.Detail)
	}
	for _, w := range out.Warnings {
		fmt.Fprintf(in.p.out, "  note: %s: %s\n", w.Path, w.Detail)
	}
	return nil
}

// owner is what a file belongs to: what the command line gives, else what the file
// names by its whole name or id.
func (in *importing) owner(given, named string, find func(c *client, word string) (item, error), missing string) (item, error) {
	if given != "" {
		return find(in.c, given)
	}
	notFound := fault.New(fault.InvalidImport, "%s", missing)
	if named == "" {
		return item{}, notFound
	}
	found, err := find(in.c.whole(), named)
	if fault.Is(err, fault.NotFound) {
		err = notFound
	}
	return found, err
}

// given is the character of --character.
func (in *importing) given(ctx context.Context) (item, error) {
	if in.with == nil {
		with, err := in.c.find(ctx, in.character, characters)
		if err != nil {
			return item{}, err
		}
		in.with = &with
	}
	return *in.with, nil
}

// chatCharacter is the character that a chat belongs to: the given one, else the
// one that the file names, else one that the person at the terminal chooses.
func (in *importing) chatCharacter(ctx context.Context, file string, data []byte) (item, error) {
	if in.character != "" {
		return in.given(ctx)
	}
	list, err := in.c.items(ctx, characters)
	if err != nil {
		return item{}, err
	}
	named := partner(data)
	found := matches(named, list)
	if named != "" && len(found) == 1 {
		return found[0], nil
	}
	if !in.p.interactive() {
		if named != "" && len(found) > 1 {
			return item{}, usage("choose the character with --character: %v", in.c.ambiguous(ctx, named, found))
		}
		says := "this is a chat"
		if named != "" {
			says = fmt.Sprintf("this is a chat with %q", named)
		}
		return item{}, usage("%s; choose its character with --character NAME (see nodest list characters), or import the card first", says)
	}
	return in.choose(ctx, file, named, list)
}

// partner is the character that a chat file names, "" for none.
func partner(data []byte) string {
	if archive.IsArchive(data) {
		var of struct {
			Character struct{ Name string } `json:"character"`
		}
		_ = json.Unmarshal(data, &of) // the server says what is wrong with it
		return of.Character.Name
	}
	const nobody = "\x00" // no file names anybody so
	chat, err := card.ImportChat(data, card.ChatNames{User: nobody, Character: nobody}, card.Limits{})
	if err != nil {
		return ""
	}
	for _, m := range chat.Messages {
		if m.Role == "assistant" && m.Name != nobody {
			return m.Name
		}
	}
	if chat.CharacterName == nobody || chat.CharacterName == "unused" { // what SillyTavern writes there today
		return ""
	}
	return chat.CharacterName
}

// choose asks which character a chat belongs to. A new one can be made of the
// name in the file.
func (in *importing) choose(ctx context.Context, file, named string, list []item) (item, error) {
	out := in.p.err
	fmt.Fprintf(out, "%s is a chat. Which character does it belong to?\n", file)
	for i, ch := range list {
		fmt.Fprintf(out, "%3d  %s\n", i+1, ch.Name)
	}
	if named != "" {
		fmt.Fprintf(out, "  0  a new character named %s\n", named)
	}
	if in.answers == nil {
		in.answers = bufio.NewReader(in.p.in)
	}
	for {
		fmt.Fprint(out, "Number or name: ")
		line, err := in.answers.ReadString('\n')
		if line = strings.TrimSpace(line); line == "" {
			return item{}, cmp.Or(err, errors.New("not imported"))
		}
		n, notNumber := strconv.Atoi(line)
		found := matches(line, list)
		if len(found) == 0 {
			found = begunBy(line, list)
		}
		switch {
		case notNumber == nil && n == 0 && named != "":
			made := item{kind: characters}
			err := in.c.call(ctx, http.MethodPost, characters.path, map[string]any{"roleCard": map[string]any{"name": named}}, &made)
			return made, err
		case notNumber == nil && n > 0 && n <= len(list):
			return list[n-1], nil
		case len(found) == 1:
			return found[0], nil
		}
	}
}

// interactive reports whether a person can be asked.
func (p *program) interactive() bool {
	f, ok := p.in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// imported is the object that an import answered with: one beside its warnings, or
// the created persona itself.
func imported(raw json.RawMessage) item {
	var out struct {
		item
		Character, Resource, Conversation *item
	}
	_ = json.Unmarshal(raw, &out) // an answer of our own server, checked by its tests
	return *cmp.Or(out.Character, out.Resource, out.Conversation, &out.item)
}

// say prints what a file became.
func (in *importing) say(what string, raw json.RawMessage) error {
	if in.p.json {
		return in.p.printJSON(raw)
	}
	var notes struct {
		Warnings []struct{ Path, Detail string }
		Save     struct{ Description string }
	}
	if err := json.Unmarshal(raw, &notes); err != nil {
		return err
	}
	became := imported(raw)
	line := became.ID + "  " + cmp.Or(became.called(), notes.Save.Description)
	if what != characters.noun {
		line += "  (" + what + ")"
	}
	fmt.Fprintln(in.p.out, line)
	for _, w := range notes.Warnings {
		fmt.Fprintf(in.p.out, "  note: %s: %s\n", w.Path, w.Detail)
	}
	return nil
}
