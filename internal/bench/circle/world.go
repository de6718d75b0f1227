package circle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/circle"
	"nodest/internal/account"
	"nodest/internal/bench/figure"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/memory"
	"nodest/nodest"
	"nodest/store"
)

// circleWorld is a user with characters, on a database of its own, in virtual time.
type circleWorld struct {
	o          Options
	clock      *figure.Clock
	zone       *time.Location
	rnd        *rand.Rand
	processes  []*circleProcess
	call       op.Call
	characters []*character.Character
	secrets    []string // words that only private chats and memories hold
	model      *watchedModel
}

// circleProcess is what works on a circle in one process, with its own connections to the
// database.
type circleProcess struct {
	name       string
	clock      *figure.Clock
	db         *store.DB
	characters *character.Service
	chats      *chat.Service
	memories   *memory.Service
	circle     *circle.Service
	kinds      map[string]jobs.Kind
	wants      []jobs.Want
	jobs       int // that it has run
}

// circleStart is before a change to summer time in the user's zone.
var circleStart = time.Date(2026, 3, 16, 5, 0, 0, 0, time.UTC)

const circleZone = "Europe/Berlin"

// openCircleWorld fills a database with a user and characters. PostgreSQL has two processes.
func openCircleWorld(ctx context.Context, options store.Options, o Options, model *watchedModel) (w *circleWorld, err error) {
	w = &circleWorld{
		o: o, clock: figure.NewClock(circleStart), rnd: rand.New(rand.NewPCG(o.Seed, 17)), model: model,
		call: op.Call{UserID: op.NewID()},
	}
	if w.zone, err = time.LoadLocation(circleZone); err != nil {
		return w, err
	}
	names := []string{"one", "two"}
	if options.URL == "" {
		names = names[:1]
	}
	for _, name := range names {
		p, err := openCircleProcess(ctx, name, w.clock, options, model)
		if err != nil {
			return w, err
		}
		w.processes = append(w.processes, p)
	}
	if err := w.first().db.InsertUser(ctx, &account.User{ID: w.call.UserID, Username: "ada", Role: account.RoleOwner}); err != nil {
		return w, err
	}
	return w, w.fill(ctx)
}

// first is the process that also serves the user.
func (w *circleWorld) first() *circleProcess { return w.processes[0] }

func (w *circleWorld) close() (err error) {
	for _, p := range w.processes {
		err = errors.Join(err, p.db.Close())
	}
	return err
}

func openCircleProcess(ctx context.Context, name string, clock *figure.Clock, options store.Options, model *watchedModel) (*circleProcess, error) {
	options.Now = clock.Now
	p := &circleProcess{name: name, clock: clock, kinds: map[string]jobs.Kind{}}
	var err error
	if p.db, err = store.Open(ctx, options); err != nil {
		return nil, err
	}
	p.characters = character.New(p.db.Characters(), character.Options{})
	p.chats = chat.New(p.db.Chats(), p.characters, chat.Options{Memory: true, Log: quiet})
	p.memories = memory.New(p.db.Memory(), memory.Options{Scenes: p.chats.MemoryScene, Settings: p.chats.MemorySettings, Log: quiet})
	p.circle = circle.New(p.db.Circle(), circle.Options{
		Characters: p.characters, Memory: p.memories, Model: model.of, Pause: time.Nanosecond, Log: quiet,
	})
	for _, k := range p.circle.Kinds() {
		p.kinds[k.Name] = k
		p.wants = append(p.wants, jobs.Want{Kind: k.Name, Free: 1, PerUser: 1})
	}
	return p, nil
}

// fill makes the characters, with private chats and memories.
func (w *circleWorld) fill(ctx context.Context) error {
	characters := w.first().characters
	_, err := characters.PutUserSettings(ctx, &w.call, character.UserSettings{
		UserName: "Ada", TimeZone: circleZone, CustomSetting: op.MustJSON(map[string]any{"comment": "me", "content": w.secret("setting")}),
	}, 0)
	if err != nil {
		return err
	}
	for i := range w.o.Characters {
		call := op.Call{UserID: w.call.UserID}
		ch, err := characters.Create(ctx, &call, character.Input{RoleCard: op.MustJSON(cardOf(i))})
		if err != nil {
			return err
		}
		settings := json.RawMessage(fmt.Sprintf(`{"circle":{"enabled":true,"postsPerDay":%d,"interactionFrequency":%q,"scheduledTimes":%s}}`,
			1+i%3, circleFrequency(i), []string{"[]", `["08:30"]`}[i%2]))
		if _, _, err := characters.PutSettings(ctx, &op.Call{UserID: w.call.UserID}, ch.ID, settings, 0); err != nil {
			return err
		}
		if err := w.confide(ctx, ch); err != nil {
			return err
		}
		w.characters = append(w.characters, ch)
	}
	return nil
}

// circleFrequency is how often the i-th character reacts.
func circleFrequency(i int) string { return []string{"medium", "low", "high"}[i%3] }

// secret makes a word that nobody but the two who know it may read.
func (w *circleWorld) secret(where string) string {
	word := fmt.Sprintf("zq%sq%d", where, len(w.secrets))
	w.secrets = append(w.secrets, word)
	return "Keep this to yourself: " + word + "."
}

// confide tells a character secrets: in a private chat, and as a memory. One memory may be
// told.
func (w *circleWorld) confide(ctx context.Context, ch *character.Character) error {
	p, call := w.first(), op.Call{UserID: w.call.UserID}
	conv, err := p.chats.CreateConversation(ctx, &call, chat.ConversationInput{CharacterID: ch.ID})
	if err != nil {
		return err
	}
	err = p.db.Update(ctx, w.call.UserID, func(tx nodest.Tx) error {
		conv, err := tx.Chats.LockConversation(conv.ID)
		if err != nil {
			return err
		}
		conv.Version++
		m := &chat.Message{
			ID: op.NewID(), ConversationID: conv.ID, ParentID: conv.HeadID, Role: chat.RoleUser, Name: "Ada", Status: chat.StatusComplete, Rev: 1,
			Swipes: []chat.Swipe{{ID: op.NewID(), RevisionID: op.NewID(), Rev: 1, Text: w.secret("chat"), CreatedAt: tx.Now()}},
			Dates:  chat.Dates{CreatedAt: tx.Now()},
		}
		if err := tx.Chats.InsertMessage(m); err != nil {
			return err
		}
		conv.HeadID = m.ID
		return tx.Chats.UpdateConversation(conv)
	})
	if err != nil {
		return err
	}
	for _, d := range []memory.Draft{
		{Text: "Ada told me about the harbour and the tea: " + w.secret("fact")},
		{Text: "Ada likes walks along the harbour and strong tea.", Shareable: true},
	} {
		if _, err := p.memories.Create(ctx, &op.Call{UserID: w.call.UserID}, ch.ID, d); err != nil {
			return err
		}
	}
	return nil
}

// The parts that cards are made of.
var (
	circleNames = []string{
		"Mira", "Tobias", "Wren", "Kasimir", "Juno", "Orla", "Bertrand", "Sefa", "Ilse", "Dario",
		"林晚晴", "顾承舟", "苏小蛮", "沈砚", "白芷", "陆千帆", "叶青禾", "唐阿九", "江雪见", "周不言",
	}
	circleTrades = []string{
		"keeps a lighthouse and repairs old clocks", "bakes rye bread and plays chess by post", "maps caves and collects moss",
		"tunes pianos and writes letters nobody asked for", "runs a night ferry and studies the stars", "breeds racing pigeons and paints their portraits",
		"restores bicycles and swims in the cold sea", "translates poems and grows tomatoes on the roof", "drives the last tram and hums operas",
		"sells umbrellas and keeps a diary of the weather",
	}
	circleTradesZH = []string{
		"在老街开了一家旧书店，喜欢修补古籍", "经营一间茶馆，研究各地的泡茶水", "是山里的植物学者，随身带着标本夹", "在夜市卖糖画，收集客人的故事", "养蜂人，会看云识天气",
		"在码头修船，闲时吹笛子", "是小学的音乐老师，爱逛花市", "做木偶戏，走遍了附近的镇子", "在气象站值夜班，迷恋老电影", "开一家小面馆，每天换一种浇头",
	}
	circleManners = []string{"dry and patient", "curious and quick", "shy but stubborn", "warm, a little vain", "blunt, with a soft heart"}
)

// cardOf is the card of the i-th character: half of them speak Chinese.
func cardOf(i int) map[string]any {
	name := circleNames[i%len(circleNames)]
	if round := i / len(circleNames); round > 0 {
		name += strings.Repeat("I", round)
	}
	if i%len(circleNames) >= 10 {
		trade := circleTradesZH[i%len(circleTradesZH)]
		return map[string]any{
			"name": name, "description": name + trade + "。说话慢，观察细。", "personality": "温和而固执",
			"scenario": "江边的小城。", "first_mes": "你来了。",
		}
	}
	return map[string]any{
		"name": name, "description": name + " " + circleTrades[i%len(circleTrades)] + ".", "personality": circleManners[i%len(circleManners)],
		"scenario": "A small harbour town.", "first_mes": "Come in, {{user}}.",
	}
}
