package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"nodest/card"
	"nodest/internal/cli"
	"nodest/internal/cli/pack"
	"nodest/internal/fault"
	"nodest/internal/rights"
)

type fileKind struct {
	word string // for --as
	kind card.Kind
}

// fileKinds are the words for --as, and what the server calls them.
var fileKinds = []fileKind{
	{cli.Characters.Noun, card.KindCharacter}, {cli.Books.Noun, card.KindWorldBook}, {cli.Presets.Noun, card.KindPreset},
	{cli.Scripts.Noun, card.KindRegex}, {cli.Chats.Noun, card.KindChat}, {"save", card.KindSave}, {"memories", card.KindMemories},
	{cli.Personas.Noun, card.KindPersona}, {cli.Templates.Noun, card.KindTemplate},
}

// importing is one run of nodest import.
type importing struct {
	p            *program
	c            *cli.Client
	as           string // --as
	character    string // --character
	conversation string // --conversation

	makeCharacters bool // --make-character

	answers *bufio.Reader // input of the person at the terminal
	with    *cli.Item     // the character of --character, once found
}

func (p *program) importCommand() *cobra.Command {
	var sample, all, check, tavern, noCharacters bool
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
			"  persona    JSON with name and description, optionally position, depth and role, and nothing else\n" +
			"  template   context, instruct, reasoning or sampler template for text completion: kept, without effect\n" +
			"A chat belongs to a character: the one given with --character, else the one named in the file. With --character, a\n" +
			"book, preset or set of scripts is bound to that character. With --all, FILE is everything of a user (nodest export --all).",
		Example: "  nodest import seraphina.png eldoria.json preset.json\n  nodest import --sample\n" +
			"  nodest import glade.jsonl --character Seraphina\n  nodest import odd.json --as preset\n" +
			"  nodest import --sillytavern SillyTavern/data/default-user --dry-run",
		SuggestFor: []string{"load", "add", "upload"},
	}
	cmd.Flags().BoolVar(&sample, "sample", false, "import the built-in sample character, in the language of the terminal")
	cmd.Flags().BoolVar(&all, "all", false, "add what a file of nodest export --all has and you lack")
	cmd.Flags().BoolVar(&tavern, "sillytavern", false, "FILE is the folder of a SillyTavern user, or a zip of it: characters, chats and all else at once")
	cmd.Flags().BoolVar(&noCharacters, "no-characters", false, "with --sillytavern: make no characters for chats without their card")
	cmd.Flags().BoolVar(&check, "dry-run", false, "with --all and --sillytavern: say what would be added, and add nothing")
	cmd.Flags().StringVar(&in.as, "as", "", "type of the files: "+strings.Join(importable(), ", ")+"; default: detected from their content")
	cmd.Flags().StringVar(&in.character, "character", "", "the character (name or id) that chats and memories belong to and other resources are bound to")
	cmd.Flags().BoolVar(&in.makeCharacters, "make-character", false, "make a character for a chat whose character is not there, with the name in its file")
	cmd.Flags().StringVar(&in.conversation, "conversation", "", "the chat (title or id) that save points belong to")
	cmd.PreRunE = func(*cobra.Command, []string) error { return without(cmd, all, tavern, sample) }
	cmd.Args = func(_ *cobra.Command, files []string) error {
		if tavern && len(files) != 1 {
			return cli.Usage("give one folder (nodest import --sillytavern SillyTavern/data/default-user) or zip file")
		}
		if len(files) == 0 && !sample {
			return cli.Usage("give a file (nodest import card.png) or --sample")
		}
		if in.as != "" && kindNamed(in.as) == "" {
			return cli.Usage("--as %s: must be one of %s", in.as, strings.Join(importable(), ", "))
		}
		return nil
	}
	cmd.RunE = p.command(func(ctx context.Context, c *cli.Client, files []string) error {
		in.c = c
		if tavern {
			j := pack.Job{Client: c, Source: files[0], DryRun: check, NoCharacters: noCharacters, JSON: p.json, Out: p.out, Err: p.err}
			return j.Run(ctx)
		}
		if all {
			return in.accounts(ctx, files, check)
		}
		if sample {
			if err := in.sample(ctx); err != nil {
				return err
			}
		}
		return in.files(ctx, files)
	})
	return p.withJSON(cmd, "print the result for each file as JSON, one object per line")
}

// without refuses flags that would have no effect beside the others.
func without(cmd *cobra.Command, all, tavern, sample bool) error {
	need := map[string]string{"no-characters": "--sillytavern", "dry-run": "--all or --sillytavern"}
	switch {
	case all && tavern, sample && (all || tavern):
		return cli.Usage("give one of --all, --sillytavern and --sample")
	case tavern:
		need = map[string]string{"as": "files", "character": "files", "conversation": "files", "make-character": "files"}
	case all:
		need = map[string]string{"no-characters": "--sillytavern", "as": "files", "character": "files", "conversation": "files", "make-character": "files"}
	}
	for _, name := range slices.Sorted(maps.Keys(need)) {
		if with := need[name]; cmd.Flags().Changed(name) && with != "files" {
			return cli.Usage("--%s has an effect only with %s", name, with)
		} else if cmd.Flags().Changed(name) {
			return cli.Usage("--%s is for single files: it has no effect with --all and --sillytavern", name)
		}
	}
	return nil
}

// languageOf is that of the terminal, of those that the program has: en or zh. A variable beats those behind it, as
// in other programs.
func languageOf(getenv func(string) string) string {
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if locale := getenv(name); locale != "" {
			if language, _, _ := strings.Cut(strings.ToLower(locale), "_"); language == "zh" || strings.HasPrefix(language, "zh-") || strings.HasPrefix(language, "zh.") {
				return "zh"
			}
			return "en"
		}
	}
	return "en"
}

// sample imports the built-in character.
func (in *importing) sample(ctx context.Context) error {
	var raw json.RawMessage
	if err := in.c.Call(ctx, http.MethodPost, cli.Characters.Path+"/sample?language="+languageOf(in.p.getenv), nil, &raw); err != nil {
		return err
	}
	return in.say(ctx, raw)
}

// accounts imports files of nodest export --all.
func (in *importing) accounts(ctx context.Context, files []string, check bool) error {
	for _, file := range files {
		var got rights.Imported
		err := in.c.UploadFile(ctx, http.MethodPost, "/api/v1/me/import", file, map[string]string{"dryRun": strconv.FormatBool(check)}, &got)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if in.p.json {
			err = in.p.printJSON(got)
		} else {
			_, err = fmt.Fprintf(in.p.data, "%s: %s\n", file, got.Text())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// importable lists the words for --as.
func importable() (words []string) {
	for _, f := range fileKinds {
		words = append(words, f.word)
	}
	return words
}

// kindNamed is the kind that a word for --as means; "" = none.
func kindNamed(word string) card.Kind {
	for _, f := range fileKinds {
		if f.word == word {
			return f.kind
		}
	}
	return ""
}

// files imports each file and says what became of it; one that cannot be used
// does not keep the others out.
func (in *importing) files(ctx context.Context, files []string) error {
	failed := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		switch {
		case isFolder(file):
			err = fmt.Errorf("it is a folder; import one of SillyTavern's with nodest import --sillytavern %s, else name the files in it", file)
		case err != nil:
		case len(bytes.TrimSpace(data)) == 0:
			err = fault.New(fault.InvalidImport, "the file is empty")
		default:
			err = in.file(ctx, file, data)
		}
		if err == nil {
			continue
		}
		var wrong *cli.UsageError
		switch {
		case len(files) > 1:
			failed++
			fmt.Fprintf(in.p.err, "%s: %s\n", file, reason(err))
		case errors.As(err, &wrong):
			return cli.Usage("%s: %s", file, wrong.Text)
		default:
			return fmt.Errorf("%s: %s", file, reason(err))
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d files were not imported", failed, len(files))
	}
	return nil
}

func isFolder(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.IsDir()
}

// file imports one file. The server detects what it is, and finds what it belongs to
// unless the command line names that.
func (in *importing) file(ctx context.Context, file string, data []byte) error {
	fields := map[string]string{"as": string(kindNamed(in.as))}
	switch kind := cmp.Or(kindNamed(in.as), card.Detect(data)); {
	case kind == card.KindSave && in.conversation != "":
		conv, err := in.c.Find(ctx, in.conversation, cli.Chats)
		if err != nil {
			return err
		}
		fields["conversationId"] = conv.ID
	case kind != card.KindSave && kind != card.KindCharacter && in.character != "":
		with, err := in.given(ctx)
		if err != nil {
			return err
		}
		fields["characterId"] = with.ID
	}
	var raw json.RawMessage
	upload := func() error { return in.c.Upload(ctx, "/api/v1/import", file, data, fields, &raw) }
	err := upload()
	if details := detailsOf(err); details["kind"] == string(card.KindChat) {
		named, _ := details["name"].(string)
		with, err := in.chatCharacter(ctx, file, named)
		if err != nil {
			return err
		}
		if fields["characterId"] = with.ID; with.ID == "" {
			fields["makeCharacter"] = "true"
		}
		if err := upload(); err != nil {
			return err
		}
	} else if err != nil {
		return explained(err)
	}
	return in.say(ctx, raw)
}

// detailsOf are the details of an error of the server.
func detailsOf(err error) map[string]any {
	var f *fault.Error
	if !errors.As(err, &f) {
		return nil
	}
	return f.Details
}

// explained says what to add to the command line for a file that the server could not
// place.
func explained(err error) error {
	switch details := detailsOf(err); {
	case details["kind"] == string(card.KindSave):
		return fault.New(fault.InvalidImport, "the chat of this save point was not found; choose a chat with --conversation NAME")
	case details["kind"] == string(card.KindMemories):
		return fault.New(fault.InvalidImport, "the character of these memories was not found; choose a character with --character NAME")
	case details["as"] != nil:
		return fault.New(fault.InvalidImport, "%s; give it with --as %s", fault.Public(err).Message, strings.Join(importable(), "|"))
	}
	return err
}

// given is the character of --character.
func (in *importing) given(ctx context.Context) (cli.Item, error) {
	if in.with == nil {
		with, err := in.c.Find(ctx, in.character, cli.Characters)
		if err != nil {
			return cli.Item{}, err
		}
		in.with = &with
	}
	return *in.with, nil
}

// chatCharacter is the character of a chat for which the server found none: the person
// at the terminal chooses it. One without an id is to be made.
func (in *importing) chatCharacter(ctx context.Context, file, named string) (cli.Item, error) {
	if in.makeCharacters && named != "" {
		return cli.Item{Name: named}, nil
	}
	list, err := in.c.Items(ctx, cli.Characters)
	if err != nil {
		return cli.Item{}, err
	}
	if in.p.interactive() {
		return in.choose(ctx, file, named, list)
	}
	if found := cli.Matches(named, list); named != "" && len(found) > 1 {
		return cli.Item{}, cli.Usage("choose the character with --character: %v", in.c.Ambiguous(ctx, named, found))
	}
	if named == "" {
		return cli.Item{}, cli.Usage("this is a chat; choose its character with --character NAME (see nodest list characters)")
	}
	return cli.Item{}, cli.Usage("this is a chat with %q; choose its character with --character NAME (see nodest list characters), import the card "+
		"first, or make a character of that name with --make-character", named)
}

// choose asks which character a chat belongs to. A new one can be made of the
// name in the file; it has no id yet.
func (in *importing) choose(ctx context.Context, file, named string, list []cli.Item) (cli.Item, error) {
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
			return cli.Item{}, cmp.Or(err, errors.New("not imported"))
		}
		n, notNumber := strconv.Atoi(line)
		found := cli.Matches(line, list)
		if len(found) == 0 {
			found = cli.BegunBy(line, list)
		}
		switch {
		case notNumber == nil && n == 0 && named != "":
			return cli.Item{Name: named}, nil
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

// say prints what a file became.
func (in *importing) say(ctx context.Context, raw json.RawMessage) error {
	if in.p.json {
		return in.p.printJSON(raw)
	}
	var got cli.Became
	if err := json.Unmarshal(raw, &got); err != nil {
		return err
	}
	nouns := map[string]string{}
	for _, f := range fileKinds {
		nouns[string(f.kind)] = f.word
	}
	line, err := got.Line(ctx, in.c, nouns)
	if err != nil {
		return err
	}
	fmt.Fprintln(in.p.out, line)
	for _, note := range got.Notes() {
		fmt.Fprintf(in.p.out, "  note: %s\n", note)
	}
	return nil
}
