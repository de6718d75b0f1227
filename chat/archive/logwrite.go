package archive

import (
	"context"
	"encoding/json"
	"io"
	"slices"

	"nodest/card"
	"nodest/chat"
)

// ExportChat writes the shown branch of a conversation to out as SillyTavern JSONL, with
// all its swipes. After an error, out has a part of the file.
func (svc *Service) ExportChat(ctx context.Context, userID, conversationID string, out io.Writer) (filename string, err error) {
	return svc.export(ctx, userID, conversationID, ".jsonl", func(tx chat.Tx, conv *chat.Conversation) error {
		w, err := newLogWriter(tx, conv)
		if err != nil {
			return err
		}
		return w.write(w.mainLog(), out)
	})
}

// LogSink takes the files of a conversation.
type LogSink interface {
	// Name is the name, without .jsonl, of a file that wants one: another one where that is taken.
	Name(wanted string) string
	// File begins a file. The one before is complete.
	File(name string) (io.Writer, error)
}

// WriteLogs writes a conversation as SillyTavern keeps it: a file for each branch, the main one first. Files that
// ImportLogs has read, and that were not changed, are as they were. A branch that came in no file
// has its name in the line where it parts from the file that it names as its main_chat.
func (svc *Service) WriteLogs(ctx context.Context, userID, conversationID string, sink LogSink) error {
	return svc.store.View(ctx, userID, func(tx chat.Tx) error {
		conv, err := tx.Conversation(conversationID)
		if err != nil {
			return err
		}
		w, err := newLogWriter(tx, conv)
		if err != nil {
			return err
		}
		plan, err := w.plan()
		if err != nil {
			return err
		}
		w.name(plan, sink)
		for _, f := range plan {
			out, err := sink.File(f.name)
			if err == nil {
				err = w.write(f, out)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// logWriter writes the files of a conversation.
type logWriter struct {
	tx        chat.Tx
	conv      *chat.Conversation
	own       logExtra
	character string
	user      string
	renamed   map[string]string // names that files have now, by those that they had
}

func newLogWriter(tx chat.Tx, conv *chat.Conversation) (*logWriter, error) {
	w := &logWriter{tx: tx, conv: conv, renamed: map[string]string{}}
	if len(conv.Extra) > 0 {
		_ = json.Unmarshal(conv.Extra, &w.own) // else there is none
	}
	ch, err := tx.Characters.Character(conv.CharacterID)
	if err != nil {
		return nil, err
	}
	w.character = ch.Name
	w.user, err = chat.UserNameIn(tx, ch, conv)
	return w, err
}

// log is a file that is written.
type log struct {
	record   *logExtra           // nil = it came in no file
	name     string              // without .jsonl
	head     string              // where the file that it came in ended; "" = not known
	anchor   string              // the message behind which it goes on; "" = the beginning
	seq      int64               // that of the anchor
	grows    bool                // messages behind the anchor belong to it
	end      string              // its last message; "" = it has none
	of       *log                // the file that it parts from, for a branch that came in no file
	branches map[string][]string // names of such branches, by the message where they part from this one
}

// mainLog is the shown branch, as the main file.
func (w *logWriter) mainLog() *log { return &log{record: &w.own, grows: true, end: w.conv.HeadID} }

func (w *logWriter) write(f *log, out io.Writer) error {
	header, err := w.header(f)
	if err != nil {
		return err
	}
	lines := newWriter(out)
	_, _ = lines.Write(header.HeaderLine())
	at := *w.conv
	at.HeadID = f.end
	for m, err := range chat.Shown(w.tx, &at) {
		var line json.RawMessage
		if err == nil {
			line, err = w.line(f, m)
		}
		if err != nil {
			return err
		}
		if line != nil {
			_ = lines.WriteByte('\n')
			_, _ = lines.Write(line)
		}
	}
	if f.record == nil || !f.record.Open {
		_ = lines.WriteByte('\n')
	}
	return lines.Flush()
}

// header is the beginning of a file. A branch that is not shown has the note that it came with.
func (w *logWriter) header(f *log) (*card.Chat, error) {
	file := &card.Chat{CharacterName: w.character, UserName: w.user}
	shown := f.end == w.conv.HeadID
	switch {
	case f.record != nil:
		file.Header, file.Metadata = f.record.Header, f.record.Metadata
	default:
		file.Metadata = card.WithMember(f.of.record.Metadata, "main_chat", f.of.name)
		shown = shown || f.of.end == w.conv.HeadID
	}
	if shown {
		settings, err := chat.SettingsOf(w.conv)
		if err != nil {
			return nil, err
		}
		file.Metadata = metadataWithNote(file.Metadata, w.conv.AuthorNote)
		file.Metadata = metadataWithOverrides(file.Metadata, settings.Overrides)
	}
	if f.end != w.conv.HeadID && f.record != nil && f.end == f.head {
		return file, w.renameMain(file)
	}
	id := w.conv.PlayID
	if f.end != w.conv.HeadID && f.end != "" {
		var err error
		if id, err = w.tx.PlayAt(w.conv.ID, f.end); err != nil {
			return nil, err
		}
	}
	play, err := chat.PlayOf(w.tx, id)
	if err != nil {
		return nil, err
	}
	file.Metadata = playInLog(play, file.Metadata)
	return file, w.renameMain(file)
}

// renameMain has the metadata name a file that has another name now.
func (w *logWriter) renameMain(file *card.Chat) error {
	was := mainOf(file.Metadata)
	if now := w.renamed[was]; now != "" && now != was {
		file.Metadata = card.WithMember(file.Metadata, "main_chat", now)
	}
	return nil
}

// line is the line of a message; nil for one without text.
func (w *logWriter) line(f *log, m *chat.Message) (line json.RawMessage, err error) {
	if m.Extra, err = lineOf(w.tx, m); err != nil {
		return nil, err
	}
	var own json.RawMessage
	if f.record != nil {
		own = f.record.Lines[m.Seq]
	}
	switch {
	case m.Rev == 1 && own != nil:
		line = own
	case m.Rev == 1 && m.Extra != nil && slices.Contains(w.own.Merged, m.Seq):
		line = m.Extra
	default:
		said, ok := exportedMessage(m)
		if !ok {
			return nil, nil
		}
		line = said.Line()
	}
	return withBranches(line, f.branches[m.ID]), nil
}

// withBranches adds the names of files that branch off at a message, which SillyTavern keeps in extra.branches.
func withBranches(line json.RawMessage, names []string) json.RawMessage {
	if len(names) == 0 {
		return line
	}
	var in struct{ Extra json.RawMessage }
	var extra struct{ Branches []string }
	_ = json.Unmarshal(line, &in)
	_ = json.Unmarshal(in.Extra, &extra) // another type counts as none
	for _, name := range names {
		if !slices.Contains(extra.Branches, name) {
			extra.Branches = append(extra.Branches, name)
		}
	}
	return card.WithMember(line, "extra", card.WithMember(in.Extra, "branches", extra.Branches))
}
