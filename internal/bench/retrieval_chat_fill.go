package bench

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/framework"
	"nodest/llm"
	"nodest/memory"
	"nodest/memory/lang"
	"nodest/nodest"
)

// filling is what a memory is filled with, by one user and one character.
type filling struct {
	people    lang.Names
	now       time.Time
	greetings []string
	talks     []*talk
	facts     []chatCase // those with a fact that the user writes by hand
	embedder  llm.Embedder
}

// filled is a memory with everything of a filling, and a new chat.
type filled struct {
	*library
	character string
	here      string            // the chat that turns are taken in
	said      []string          // the texts in the memory
	known     map[string]string // facts by id
	messages  int
}

// fill imports what was said, has the product's own jobs extract facts (by rules) and
// embed the texts, writes the user's own facts, and starts a chat.
func (s *filling) fill(ctx context.Context) (f *filled, err error) {
	began := time.Now()
	l, err := openLibrary(ctx, libraryOptions{
		chat: true, embedder: s.embedder,
		now: func() time.Time { return s.now.Add(time.Since(began)) },
	})
	if err != nil {
		return nil, err
	}
	f = &filled{library: l, known: map[string]string{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	if _, err := l.engine.Characters.PutUserSettings(ctx, f.call(), character.UserSettings{UserName: s.people.User}, 0); err != nil {
		return nil, err
	}
	if f.character, err = l.newCharacter(ctx, s.people, s.greetings); err != nil {
		return nil, err
	}
	for _, t := range s.talks {
		if err := f.takeIn(ctx, t); err != nil {
			return nil, err
		}
	}
	if err := f.writeFacts(ctx, s.facts); err != nil {
		return nil, err
	}
	if err := f.embed(ctx); err != nil {
		return nil, err
	}
	facts, err := f.allFacts(ctx)
	for i := range facts {
		f.known[facts[i].ID] = facts[i].Text
	}
	if err != nil {
		return nil, err
	}
	conv, err := l.engine.Chats.CreateConversation(ctx, f.call(), chat.ConversationInput{CharacterID: f.character})
	if err == nil {
		f.here = conv.ID
	}
	return f, err
}

// takeIn imports one chat and waits until facts were extracted from it.
func (f *filled) takeIn(ctx context.Context, t *talk) error {
	t.character = f.character
	err := f.importTalk(ctx, t, func(conv *chat.Conversation, _ []int) error { return f.extract(ctx, conv.ID) })
	if err != nil {
		return err
	}
	for i := range t.items {
		for _, s := range t.items[i].said {
			f.said = append(f.said, s.text)
		}
	}
	f.messages = len(f.said)
	return nil
}

// extract has the product's job extract facts from a conversation, and waits for it.
func (f *filled) extract(ctx context.Context, conversation string) error {
	if err := f.memory.ExtractNow(ctx, f.call(), conversation); err != nil {
		return err
	}
	return f.finish(ctx, memory.JobExtract)
}

// writeFacts edits the fact with a stale value as a user would, or writes a new one
// where rules found none.
func (f *filled) writeFacts(ctx context.Context, cases []chatCase) error {
	known, err := f.allFacts(ctx)
	if err != nil {
		return err
	}
	for i := range cases {
		c := &cases[i]
		if c.Fact == "" {
			continue
		}
		f.said = append(f.said, c.Fact)
		id := ""
		for k := range known {
			if firstWith([]string{known[k].Text}, c.Stale) >= 0 {
				id = known[k].ID
			}
		}
		if id == "" {
			_, err = f.memory.Create(ctx, f.call(), f.character, memory.Draft{Text: c.Fact})
		} else {
			_, err = f.memory.Edit(ctx, f.call(), f.character, id, memory.Patch{Text: &c.Fact})
		}
		if err != nil {
			return fmt.Errorf("%q: %w", c.Fact, err)
		}
	}
	return nil
}

func (f *filled) allFacts(ctx context.Context) (all []memory.Listed, err error) {
	for cursor, more := "", true; more; more = cursor != "" {
		page, err := f.memory.List(ctx, f.user, f.character, memory.Filter{}, cursor, 200)
		if err != nil {
			return nil, err
		}
		all, cursor = append(all, page.Items...), page.NextCursor
	}
	return all, nil
}

var (
	memBlock = regexp.MustCompile(`(?s)<mem>\n.*?</mem>`)
	memLine  = regexp.MustCompile(`(?m)^\d+\. (.*)$`)
)

// turn returns what a message would put into the prompt: the request is built as for
// a turn, and not sent.
func (f *filled) turn(ctx context.Context, text string) (p prompted, err error) {
	built, err := f.engine.PreviewPrompt(ctx, f.user, nodest.PreviewInput{ConversationID: f.here, Text: text})
	if err != nil {
		return p, err
	}
	recalled := map[int]int{} // lines by message
	for _, e := range built.Entries {
		switch {
		case e.Source == framework.SourceMemory:
			recalled[e.Message]++
		case e.Source == framework.SourceProfile && e.ID != "":
			p.profile = append(p.profile, f.known[e.ID])
		}
	}
	var rest []string
	for i, m := range built.Messages {
		whole := m.Text
		if recalled[i] > 0 {
			lines := memLine.FindAllStringSubmatch(memBlock.FindString(whole), -1)
			if len(lines) != recalled[i] {
				return p, fmt.Errorf("the prompt has %d memories but %d memory lines", recalled[i], len(lines))
			}
			for _, line := range lines {
				p.block = append(p.block, line[1])
			}
			whole = memBlock.ReplaceAllString(whole, "")
		}
		rest = append(rest, strings.ReplaceAll(whole, text, ""))
	}
	p.always = strings.Join(rest, "\n")
	return p, nil
}
