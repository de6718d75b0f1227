// Package learning measures what a character learns: what evaluations do to the rank of memories, and the
// documents that it dreams.
package learning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"nodest/character"
	"nodest/chat"
	"nodest/internal/account"
	"nodest/internal/bench/figure"
	"nodest/internal/jobs"
	"nodest/internal/op"
	"nodest/llm"
	"nodest/memory/dream"
	"nodest/memory/lang"
	"nodest/nodest"
	"nodest/store"
)

// DreamOptions are those of Dream.
type DreamOptions struct {
	Nights int // default 30
	JSON   bool
}

// DreamFigures are what became of the documents of a memory.
type DreamFigures struct {
	Nights         int      `json:"nights"`
	Messages       int      `json:"messages"`
	UserLines      int      `json:"userLines"`
	UserLinesKept  int      `json:"userLinesKept"` // word for word, after every night
	LowestShare    float64  `json:"lowestShare"`   // share of a document's best version of 30 days
	DreamLines     int      `json:"dreamLines"`
	Junk           int      `json:"junk"` // those that are invented, or said twice
	JunkShare      float64  `json:"junkShare"`
	Proposed       int      `json:"proposed"` // changes, by the model
	Refused        int      `json:"refused"`
	EmptyNights    int      `json:"emptyNights"`
	EmptyVersions  int      `json:"emptyVersions"` // that they made
	MostCalls      int      `json:"mostCalls"`     // calls of one night
	MostTokens     int      `json:"mostTokens"`
	FailedNights   int      `json:"failedNights"`
	CallsOfANewRun int      `json:"callsOfANewRun"` // directly after a run
	Problems       []string `json:"problems"`
}

// Dream lets a character dream for some nights in virtual time, with a scripted model that rewrites,
// shrinks, invents and says things twice, on SQLite in a temporary folder. It prints what became of the
// documents.
func Dream(ctx context.Context, out io.Writer, o DreamOptions) error {
	if o.Nights == 0 {
		o.Nights = 30
	}
	dir, err := os.MkdirTemp("", "nodest-dream-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	w, err := openDreamWorld(ctx, dir)
	if err != nil {
		return err
	}
	err = errors.Join(w.live(ctx, o.Nights), w.db.Close())
	if err != nil {
		return err
	}
	if o.JSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(w.figures)
	}
	f := &w.figures
	_, err = fmt.Fprintf(out, "%d nights, %d messages\nlines of the user: %d of %d kept\nlowest size: %.0f %% of the best of 30 days\njunk: %d of %d lines (%.1f %%)\nchanges: %d proposed, %d refused\nempty nights: %d, versions by them: %d\nmost in a night: %d calls, %d tokens\nproblems: %v\n",
		f.Nights, f.Messages, f.UserLinesKept, f.UserLines, f.LowestShare*100, f.Junk, f.DreamLines, f.JunkShare*100, f.Proposed, f.Refused,
		f.EmptyNights, f.EmptyVersions, f.MostCalls, f.MostTokens, f.Problems)
	return err
}

// dreamStart is before a change to summer time.
var dreamStart = time.Date(2026, 3, 16, 5, 0, 0, 0, time.UTC)

type dreamWorld struct {
	clock           *figure.Clock
	db              *store.DB
	dreams          *dream.Service
	userID          string
	character, chat string
	night, said     int
	truth           map[string]bool // hashes of what was said
	mine            []string        // lines of the user
	figures         DreamFigures
}

func openDreamWorld(ctx context.Context, dir string) (*dreamWorld, error) {
	w := &dreamWorld{clock: figure.NewClock(dreamStart), userID: op.NewID(), truth: map[string]bool{}, figures: DreamFigures{LowestShare: 1, Problems: []string{}}}
	var err error
	if w.db, err = store.Open(ctx, store.Options{Dir: dir, Now: w.clock.Now, Log: slog.New(slog.DiscardHandler)}); err != nil {
		return nil, err
	}
	if err := w.db.InsertUser(ctx, &account.User{ID: w.userID, Username: "ada", Role: account.RoleOwner}); err != nil {
		return nil, err
	}
	characters := character.New(w.db.Characters(), character.Options{})
	chats := chat.New(w.db.Chats(), characters, chat.Options{Memory: true, Log: slog.New(slog.DiscardHandler)})
	w.dreams = dream.New(w.db.Dreams(), dream.Options{
		Scenes: chats.DreamScene,
		Model:  func(context.Context, string, string) (llm.Asker, error) { return llm.AskerFunc(w.ask), nil },
	})
	ch, err := characters.Create(ctx, w.call(), character.Input{RoleCard: json.RawMessage(`{"name":"Wren","description":"Wren keeps the harbour light.","first_mes":"Come in, {{user}}."}`)})
	if err != nil {
		return nil, err
	}
	conv, err := chats.CreateConversation(ctx, w.call(), chat.ConversationInput{CharacterID: ch.ID})
	if err != nil {
		return nil, err
	}
	w.character, w.chat = ch.ID, conv.ID
	return w, nil
}

func (w *dreamWorld) call() *op.Call { return &op.Call{UserID: w.userID} }

var (
	dreamColours = []string{"red", "green", "blue", "yellow", "purple", "white", "black", "orange", "brown", "silver"}
	dreamThings  = []string{
		"bicycle", "lamp", "kettle", "carpet", "guitar", "mirror", "sofa", "tent", "canoe", "camera", "piano", "wardrobe", "telescope", "backpack", "umbrella",
		"bookshelf", "violin", "clock", "helmet", "blanket", "kite", "drum", "basket", "scooter", "painting", "armchair", "printer", "wallet", "sledge", "vase",
		"teapot", "hammock", "ladder", "suitcase", "microscope", "accordion", "chandelier", "wheelbarrow", "trumpet", "pillow", "notebook", "fountain", "saddle",
		"compass", "flute", "toaster", "keyboard", "doormat", "lantern", "cradle", "harp", "bench", "skateboard", "anchor", "globe", "aquarium", "mixer", "easel",
		"stove", "dresser", "barrel", "fiddle", "banner", "turntable", "sewing machine", "rocking horse", "weather vane", "music box", "sundial", "birdhouse", "samovar", "loom",
	}
)

// perDay is how many things the user says each day.
const perDay = 22

// live says things each day and dreams each night. Every seventh night there is nothing new.
func (w *dreamWorld) live(ctx context.Context, nights int) error {
	w.figures.Nights = nights
	if err := w.write(ctx, "Ada keeps bees behind the old mill.\nAda never eats mushrooms.\nAda calls her sister every Sunday."); err != nil {
		return err
	}
	for w.night = 1; w.night <= nights; w.night++ {
		day := dreamStart.AddDate(0, 0, w.night-1)
		w.clock.To(day.Add(8 * time.Hour))
		empty := w.night%7 == 0
		if !empty {
			if err := w.talk(ctx); err != nil {
				return err
			}
		}
		if w.night == nights/2 {
			if err := w.rewrite(ctx); err != nil {
				return err
			}
		}
		w.clock.To(day.Add(23*time.Hour + 30*time.Minute)) // 04:30 of the next day
		if err := w.sleep(ctx, empty); err != nil {
			return err
		}
	}
	return w.count(ctx)
}

// write makes a text the user's document; its lines are the user's.
func (w *dreamWorld) write(ctx context.Context, text string) error {
	d, err := w.dreams.Put(ctx, w.call(), w.character, "user.md", dream.Edit{Text: &text})
	if err != nil {
		return err
	}
	w.mine = nil
	for _, l := range d.Lines {
		if l.Author == dream.ByUser {
			w.mine = append(w.mine, l.Text)
		}
	}
	return nil
}

// rewrite changes a line and adds another one, in the middle of what dreams have written.
func (w *dreamWorld) rewrite(ctx context.Context) error {
	d, err := w.dreams.Document(ctx, w.userID, w.character, "user.md", 0)
	if err != nil {
		return err
	}
	text := strings.Replace(d.Text(), "Ada never eats mushrooms.", "Ada never eats mushrooms or olives.", 1)
	lines := strings.Split(text, "\n")
	return w.write(ctx, strings.Join(slices.Insert(lines, len(lines)/2, "Ada is learning to sail."), "\n"))
}

func (w *dreamWorld) talk(ctx context.Context) error {
	for range perDay {
		n := w.said
		w.said++
		thing := dreamColours[n%len(dreamColours)] + " " + dreamThings[n/len(dreamColours)%len(dreamThings)]
		w.truth[lang.ContentHash("User bought a "+thing+".")] = true
		w.figures.Messages++
		err := w.db.Update(ctx, w.userID, func(tx nodest.Tx) error {
			conv, err := tx.Chats.LockConversation(w.chat)
			if err != nil {
				return err
			}
			conv.Version++
			m := &chat.Message{
				ID: op.NewID(), ConversationID: conv.ID, ParentID: conv.HeadID, Role: chat.RoleUser, Name: "Ada", Status: chat.StatusComplete, Rev: 1,
				Swipes: []chat.Swipe{{ID: op.NewID(), RevisionID: op.NewID(), Rev: 1, Text: "I bought a " + thing + ".", CreatedAt: tx.Now()}},
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
	}
	return nil
}

// sleep dreams, if it is time, and looks at what has become of the documents.
func (w *dreamWorld) sleep(ctx context.Context, empty bool) error {
	before, err := w.versions(ctx)
	if err != nil {
		return err
	}
	if err := w.dreams.Sweep(ctx); err != nil {
		return err
	}
	if empty {
		w.figures.EmptyNights++
		if _, err := w.dreams.Start(ctx, w.call(), w.character, dream.Order{}); err != nil {
			return err
		}
	}
	if err := w.work(ctx); err != nil {
		return err
	}
	runs, err := w.dreams.Runs(ctx, w.userID, w.character, "", 1)
	if err != nil {
		return err
	}
	if len(runs.Items) == 0 {
		w.problem("no run")
		return nil
	}
	w.note(runs.Items[0])
	after, err := w.versions(ctx)
	if err != nil {
		return err
	}
	if empty {
		w.figures.EmptyVersions += len(after) - len(before)
		w.figures.CallsOfANewRun += runs.Items[0].Calls
	}
	return w.look(ctx, after)
}

func (w *dreamWorld) problem(format string, args ...any) {
	w.figures.Problems = append(w.figures.Problems, fmt.Sprintf("night %d: ", w.night)+fmt.Sprintf(format, args...))
}

func (w *dreamWorld) note(r *dream.Run) {
	f := &w.figures
	f.MostCalls, f.MostTokens = max(f.MostCalls, r.Calls), max(f.MostTokens, r.Tokens)
	if r.State != dream.Done {
		f.FailedNights++
		w.problem("the run is %s: %s", r.State, r.Failure)
	}
	for _, c := range r.Changes {
		f.Proposed++
		if c.Refused != "" {
			f.Refused++
		}
	}
}

// work runs the jobs of dreams as a runner does.
func (w *dreamWorld) work(ctx context.Context) error {
	kind := w.dreams.Kinds()[0]
	for {
		claimed, err := w.db.ClaimJobs(ctx, "bench", time.Hour, []jobs.Want{{Kind: kind.Name, Free: 1, PerUser: 1}})
		if err != nil || len(claimed) == 0 {
			return err
		}
		for _, j := range claimed {
			if err := kind.Run(ctx, j); err != nil {
				return err
			}
		}
	}
}

func (w *dreamWorld) versions(ctx context.Context) (all []dream.Version, err error) {
	return op.Read(ctx, w.db.Dreams(), w.userID, func(tx dream.Tx) ([]dream.Version, error) { return tx.VersionsOfDocuments(w.character) })
}

// look checks the lines of the user, and the floor of each document.
func (w *dreamWorld) look(ctx context.Context, versions []dream.Version) error {
	documents, err := w.dreams.Documents(ctx, w.userID, w.character)
	if err != nil {
		return err
	}
	best := dream.BestSizes(versions, w.clock.Now())
	kept := 0
	for _, d := range documents {
		if d.Path != dream.Archive && best[d.Path] > 0 {
			w.figures.LowestShare = min(w.figures.LowestShare, float64(d.Size())/float64(best[d.Path]))
		}
		for _, l := range d.Lines {
			if d.Path == "user.md" && l.Author == dream.ByUser && slices.Contains(w.mine, l.Text) {
				kept++
			}
		}
	}
	if kept != len(w.mine) {
		w.problem("%d of %d lines of the user are left", kept, len(w.mine))
	}
	w.figures.UserLines += len(w.mine)
	w.figures.UserLinesKept += kept
	return nil
}

// count counts junk at the end.
func (w *dreamWorld) count(ctx context.Context) error {
	documents, err := w.dreams.Documents(ctx, w.userID, w.character)
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, d := range documents {
		for _, l := range d.Lines {
			if d.Path == dream.Archive || l.Author != dream.ByDream {
				continue
			}
			w.figures.DreamLines++
			hash := lang.ContentHash(l.Text)
			if !w.truth[hash] || seen[hash] {
				w.figures.Junk++
			}
			seen[hash] = true
		}
	}
	if w.figures.DreamLines > 0 {
		w.figures.JunkShare = float64(w.figures.Junk) / float64(w.figures.DreamLines)
	}
	return nil
}
