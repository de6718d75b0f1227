package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"

	"nodest/card"
	"nodest/character"
	"nodest/chat"
	"nodest/internal/fault"
	"nodest/internal/op"
)

// Limits of the files of one conversation.
const (
	maxLogBytes    = 64 << 20 // each file
	maxLogMessages = 100_000  // each file
	maxLogsBytes   = 128 << 20
	maxLogFiles    = 1_000
	maxLogHeader   = 256 << 10 // bytes of the header of a branch, and of the lines that it has in a form of its own
)

var logLimits = card.Limits{FileBytes: maxLogBytes, Messages: maxLogMessages}

// LogFile is a chat log that is imported.
type LogFile struct {
	Name string // the file has it
	Read func() ([]byte, error)
}

// ImportedChat is the answer of ImportChat and ImportLogs.
type ImportedChat struct {
	Conversation *chat.Conversation `json:"conversation"`
	Warnings     []card.Warning     `json:"warnings"`
	Branches     []ImportedBranch   `json:"branches,omitempty"` // every file but the main one
}

// ImportedBranch is a branch that a file became.
type ImportedBranch struct {
	Name   string `json:"name"` // the file has it, without .jsonl
	HeadID string `json:"headId"`
	SaveID string `json:"saveId"` // the save point that has its name
}

// ImportChat makes a conversation from a chat log (SillyTavern JSONL with its
// swipes, or one of the foreign forms that package card reads). The other
// members of the log are kept for the export.
//
// Errors: NotFound for the character; TooLarge for more than 100,000 messages, 400,000
// swipes, or 1,000 swipes of one message; InvalidImport.
func (svc *Service) ImportChat(ctx context.Context, c *op.Call, characterID string, data []byte, filename string) (*ImportedChat, error) {
	return svc.ImportLogs(ctx, c, characterID, LogFile{filename, func() ([]byte, error) { return data, nil }})
}

// ImportLogs makes one conversation of chat logs that are branches of one chat, as SillyTavern
// keeps them: each file is a whole copy. Messages that several files begin with are stored once,
// with the swipes of all of them. The shown branch is that of the main file, which names none of
// the others as its main_chat; each other file becomes a save point with its name, its note, its
// variables and its overrides. WriteLogs gives the files back. Each file is read twice, one at a time.
//
// Errors: as ImportChat, with the name of the file where there are several; TooLarge also for more than 1,000 files,
// 200,000 different messages, 128 MiB of them, or a branch with a header of 256 KiB.
func (svc *Service) ImportLogs(ctx context.Context, c *op.Call, characterID string, files ...LogFile) (*ImportedChat, error) {
	if known, err := svc.Answered(ctx, c); known || err != nil {
		return replayed[ImportedChat](ctx, svc, c, err)
	}
	in := &importedLogs{characterID: characterID}
	if err := svc.store.View(ctx, c.UserID, in.begin); err != nil {
		return nil, err
	}
	if err := in.all(files); err != nil {
		return nil, err
	}
	a := in.contents()
	p := in.tree.pieces(in.conv)
	return Import(ctx, svc, c, p, func() (*ImportedChat, error) {
		return op.Once(ctx, svc.store, c, func(tx chat.Tx) (*ImportedChat, error) {
			conv, err := a.finish(tx, c, p)
			return &ImportedChat{conv, in.warnings, in.branches}, err
		})
	})
}

// TryLogs returns the warnings that ImportLogs would give about files of a character with this name, and stores nothing.
//
// Errors: as ImportLogs, except those about the character.
func TryLogs(name string, files ...LogFile) ([]card.Warning, error) {
	in := &importedLogs{names: card.ChatNames{Character: name, User: "User"}, now: time.Now()}
	err := in.all(files)
	return in.warnings, err
}

// importedLogs are the files of one conversation that were read.
type importedLogs struct {
	characterID string
	several     bool
	names       card.ChatNames
	now         time.Time
	conv        *chat.Conversation
	tree        logTree
	own         logExtra // that of the main file
	saves       []*chat.Save
	plays       []*chat.Play
	branches    []ImportedBranch
	warnings    []card.Warning
}

func (in *importedLogs) begin(tx chat.Tx) error {
	ch, err := tx.Characters.Character(in.characterID)
	if err != nil {
		return op.InField("characterId", err)
	}
	in.names.Character, in.now = ch.Name, tx.Now()
	in.names.User, err = character.UserName(tx.Characters, ch, "")
	in.tree.names = in.names
	return err
}

// all reads the files.
func (in *importedLogs) all(files []LogFile) error {
	if len(files) == 0 || len(files) > maxLogFiles {
		return fault.New(fault.TooLarge, "a conversation can have 1 to %d files", maxLogFiles).With("limit", maxLogFiles)
	}
	in.several = len(files) > 1
	files, err := inLogOrder(files)
	if err != nil {
		return err
	}
	for _, file := range files {
		if err := in.read(file); err != nil {
			return err
		}
	}
	return nil
}

// read adds a file; the first one is the main one.
func (in *importedLogs) read(file LogFile) error {
	data, err := file.Read()
	if err != nil {
		return err
	}
	branch := in.tree.begin()
	log, err := card.ReadChat(data, in.names, logLimits, func(m *card.ChatMessage) error { return in.tree.add(branch, m) })
	if err != nil {
		return in.inFile(file, err)
	}
	in.tree.end(branch, log, in.now)
	record := recordOf(log, branch, data)
	play, warnings := playFromLog(log.Metadata)
	if play != nil {
		play.ID = op.NewID()
		in.plays = append(in.plays, play)
		branch.keepPlay(play.ID)
	}
	in.warn(file, append(log.Warnings, warnings...))
	if in.conv == nil {
		in.main(file, log, record, branch, play)
		return nil
	}
	return in.inFile(file, in.branch(file, log, record, branch, play))
}

// main makes the conversation of the first file.
func (in *importedLogs) main(file LogFile, log *card.Chat, record logExtra, branch *logBranch, play *chat.Play) {
	in.conv = &chat.Conversation{
		ID: op.NewID(), CharacterID: in.characterID, Title: importedTitle(file.Name, in.names.Character),
		AuthorNote: noteFromLog(log.Metadata), Settings: settingsFromLog(log.Metadata),
		Version: 1, CreatedAt: in.now,
	}
	if in.own = record; in.several {
		in.own.Name, in.own.Head = LogName(file.Name), branch.seq()
	}
	if branch.head != nil {
		in.conv.HeadID, in.conv.LastMessage = branch.head.id, in.tree.preview(branch.head)
	}
	if play != nil {
		in.conv.PlayID = play.ID
	}
}

// branch makes the save point of another file.
func (in *importedLogs) branch(file LogFile, log *card.Chat, record logExtra, branch *logBranch, play *chat.Play) error {
	if n := len(record.Header) + len(record.Metadata); n > maxLogHeader {
		return fault.New(fault.TooLarge, "the header of a branch is too large: %s", fault.OverLimit(n, maxLogHeader))
	}
	record.Name, record.Lines = LogName(file.Name), branch.lines
	head, preview := "", ""
	if branch.head != nil {
		head, preview = branch.head.id, in.tree.preview(branch.head).Text
	}
	record.Grows = *in.tree.below(branch.head) == nil
	state := chat.Conversation{AuthorNote: noteFromLog(log.Metadata), Settings: settingsFromLog(log.Metadata)}
	if play != nil {
		state.PlayID = play.ID
	}
	s := &chat.Save{
		ID: op.NewID(), ConversationID: in.conv.ID, CharacterID: in.characterID, Version: in.conv.Version,
		Description: op.Truncate(chat.CleanText(record.Name), chat.MaxDescription), HeadID: head, PreviewText: preview, MessageCount: branch.count,
		Extra: encoded(&importedExtra{State: state, Log: &record}), ImportedAt: &in.now, CreatedAt: in.now,
	}
	in.saves = append(in.saves, s)
	in.branches = append(in.branches, ImportedBranch{record.Name, s.HeadID, s.ID})
	return nil
}

// contents is what is stored beside the messages.
func (in *importedLogs) contents() *contents {
	a := &contents{Plays: in.plays, Saves: in.saves}
	in.own.Merged = in.tree.merged()
	in.conv.Extra = in.own.encode()
	a.Conversation.Conversation = *in.conv
	return a
}

func (in *importedLogs) warn(file LogFile, warnings []card.Warning) {
	for _, w := range warnings {
		if in.several {
			w.Path = strings.TrimSuffix(file.Name+": "+w.Path, ": ")
		}
		in.warnings = append(in.warnings, w)
	}
}

// inFile says in which of several files an error is.
func (in *importedLogs) inFile(file LogFile, err error) error {
	if err == nil || !in.several {
		return err
	}
	e := fault.Public(err)
	return fault.Wrap(err, e.Code, "%s: %s", file.Name, e.Message).With("file", file.Name)
}

// LogName is the name of a file by which SillyTavern knows a chat: without folders and .jsonl.
func LogName(filename string) string {
	return strings.TrimSuffix(path.Base(strings.ReplaceAll(filename, `\`, "/")), ".jsonl")
}

// inLogOrder puts the main file first, and each file behind the one that it names as its main_chat.
func inLogOrder(files []LogFile) ([]LogFile, error) {
	if len(files) == 1 {
		return files, nil
	}
	below := map[string][]int{} // by the main_chat
	byName, mains := map[string]int{}, make([]string, len(files))
	for i, file := range files {
		data, err := file.Read()
		if err != nil {
			return nil, err
		}
		mains[i] = MainChat(data)
		byName[LogName(file.Name)] = i
	}
	for i := range files {
		at, known := byName[mains[i]]
		if !known || at == i {
			mains[i] = ""
		}
		below[mains[i]] = append(below[mains[i]], i)
	}
	roots := slices.Clone(below[""])
	slices.SortStableFunc(roots, func(a, b int) int { return len(below[LogName(files[b].Name)]) - len(below[LogName(files[a].Name)]) })
	ordered, taken := make([]LogFile, 0, len(files)), make([]bool, len(files))
	for i := range files { // behind the roots, whoever is in a circle
		roots = append(roots, i)
	}
	for len(roots) > 0 {
		i := roots[0]
		if roots = roots[1:]; !taken[i] {
			taken[i] = true
			ordered = append(ordered, files[i])
			roots = append(slices.Clone(below[LogName(files[i].Name)]), roots...)
		}
	}
	return ordered, nil
}

// MainChat is the chat that a log names as the one that it branched off from; "" = none.
func MainChat(data []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\ufeff")), " \t\r\n"), []byte("\n"))
	var header struct {
		Metadata json.RawMessage `json:"chat_metadata"`
	}
	_ = json.Unmarshal(line, &header) // the import says what is wrong with it
	return mainOf(header.Metadata)
}

func mainOf(metadata json.RawMessage) string {
	var of struct {
		Main any `json:"main_chat"`
	}
	if len(metadata) > 0 {
		_ = json.Unmarshal(metadata, &of)
	}
	name, _ := of.Main.(string)
	return name
}
