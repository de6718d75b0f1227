package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"nodest/framework"
	"nodest/internal/account"
	"nodest/internal/cite"
	"nodest/internal/outbound"
	"nodest/llm"
	"nodest/llm/offline"
	"nodest/store"
	"nodest/websearch"
	"nodest/websearch/intent"
	"nodest/websearch/miniweb"
	engines "nodest/websearch/provider"
	"nodest/websearch/provider/providertest"
	"nodest/websearch/reader"
)

// citations is what the replies to the questions of a mini-web cite.
type citations struct {
	questions, found, quoted int // questions; their page is in the prompt; the quote that answers is, too
	replies, answers         int // with a citation; that quote what answers the question
	marks, precise           int // in the replies; of the right page, with a quote that is literally in it
	stated, covered          int // lines that repeat a source; those with a mark
	checks                   [3]markCheck
	quick                    []time.Duration
}

// markCheck counts made-up replies of one sentence and one mark, and those that keep it.
type markCheck struct{ replies, kept int }

// The made-up replies.
const (
	rightMark = iota
	wrongMark
	wrongNumber
)

// measureCitations answers the questions of the mini-web in a folder with the offline
// model, as a chat does, and prints how right and how complete the citations are.
func measureCitations(ctx context.Context, out io.Writer, folder string) error {
	if _, err := os.Stat(folder); err != nil {
		_, err := fmt.Fprintf(out, "\nno mini-web at %s (NODEST_MINIWEB names its folder): citations are not judged\n", folder)
		return err
	}
	web, err := miniweb.Open(folder)
	if err != nil {
		return err
	}
	defer web.Close()
	c, err := judgeCitations(ctx, web)
	if err == nil {
		c.print(out)
	}
	return err
}

func judgeCitations(ctx context.Context, web *miniweb.Web) (c citations, err error) {
	s, err := openSearcher(ctx, web)
	defer func() { err = errors.Join(err, s.close()) }()
	if err != nil {
		return c, err
	}
	for _, q := range web.Questions {
		if err := c.ask(ctx, s, &q); err != nil {
			return c, fmt.Errorf("question %s: %w", q.ID, err)
		}
	}
	return c, nil
}

func (c *citations) print(out io.Writer) {
	row := func(name string, n, of int) {
		fmt.Fprintf(out, "%-72s %4d of %d\n", name, n, of)
	}
	fmt.Fprintf(out, "\nprecision and coverage of citations over the mini-web's questions with the offline model\n")
	row("questions whose page is in the prompt", c.found, c.questions)
	row("questions whose quote is in the prompt", c.quoted, c.questions)
	row("replies with a citation", c.replies, c.questions)
	row("replies that cite the quote which answers the question", c.answers, c.questions)
	row("precision: marks of the right page with a quote that is literally in it", c.precise, c.marks)
	row("coverage: lines that repeat a source and have a mark", c.covered, c.stated)
	row("made up: the quote with its mark is kept (want all)", c.checks[rightMark].kept, c.checks[rightMark].replies)
	row("made up: the quote with the mark of another source is kept (want none)", c.checks[wrongMark].kept, c.checks[wrongMark].replies)
	row("made up: the quote with another number is kept (want none)", c.checks[wrongNumber].kept, c.checks[wrongNumber].replies)
	quick := spreadOf(c.quick)
	fmt.Fprintf(out, "searching and reading for a reply: %.1f ms p50, %.1f ms p95\n", quick.P50, quick.P95)
}

// ask answers a question and counts what the reply cites.
func (c *citations) ask(ctx context.Context, s *searcher, q *miniweb.Question) error {
	began := time.Now()
	found, err := s.search.Quick(ctx, websearch.Turn{UserID: s.user, Text: q.Question, Lang: q.Lang})
	if err != nil {
		return err
	}
	c.quick = append(c.quick, time.Since(began))
	c.questions++
	good := []string{q.ExpectedURL}
	for _, id := range q.AlsoAcceptable {
		good = append(good, s.web.Route(id).URL)
	}
	right := slices.IndexFunc(found.Sources, func(s cite.Source) bool { return slices.Contains(good, s.URL) })
	if right >= 0 {
		c.found++
		if has(found.Sources[right], q.Quote) {
			c.quoted++
			c.check(ctx, found.Sources, right, q.Quote)
		}
	}
	text, err := offlineReply(ctx, q, found)
	if err != nil {
		return err
	}
	cited := cite.CheckMarks(ctx, nil, text, found.Sources, cite.MarkOptions{Auto: cite.DefaultReferences(cite.BySentence)})
	return c.judge(ctx, s, cited, found.Sources, good, q.Quote)
}

// judge counts the marks of a reply.
func (c *citations) judge(ctx context.Context, s *searcher, cited cite.Cited, sources []cite.Source, good []string, quote string) error {
	marks := cite.Marks(cited.Answer)
	c.marks += len(marks)
	if len(marks) > 0 {
		c.replies++
	}
	answered := false
	for _, n := range marks {
		ref := cited.References[n-1]
		page, err := s.page(ctx, ref.URL)
		if err != nil {
			return err
		}
		if slices.Contains(good, ref.URL) && strings.Contains(page, ref.ExactQuote) {
			c.precise++
			answered = answered || strings.Contains(letters(ref.ExactQuote), letters(quote))
		}
	}
	if answered {
		c.answers++
	}
	for line := range strings.Lines(cited.Answer) {
		said := cite.StripMarks(line)
		if letters(said) == "" || !slices.ContainsFunc(sources, func(s cite.Source) bool { return has(s, said) }) {
			continue
		}
		c.stated++
		if len(cite.Marks(line)) > 0 {
			c.covered++
		}
	}
	return nil
}

// check tries the check of marks itself with made-up replies.
func (c *citations) check(ctx context.Context, sources []cite.Source, right int, quote string) {
	try := func(kind int, said string, source int) {
		c.checks[kind].replies++
		cited := cite.CheckMarks(ctx, nil, fmt.Sprintf("%s [%d]", said, source+1), sources, cite.MarkOptions{})
		if len(cite.Marks(cited.Answer)) > 0 {
			c.checks[kind].kept++
		}
	}
	try(rightMark, quote, right)
	for i := range sources {
		if !has(sources[i], quote) {
			try(wrongMark, quote, i)
		}
	}
	if said := anotherNumber(quote); said != quote && !has(sources[right], said) {
		try(wrongNumber, said, right)
	}
}

var (
	digits     = regexp.MustCompile(`\d+|[一二三四五六七八九]|\b(?:two|three|four|five|six|seven|eight|nine|ten)\b`)
	nextNumber = map[string]string{
		"一": "二", "二": "三", "三": "四", "四": "五", "五": "六", "六": "七", "七": "八", "八": "九", "九": "三",
		"two": "three", "three": "four", "four": "five", "five": "six", "six": "seven", "seven": "eight", "eight": "nine", "nine": "ten", "ten": "six",
	}
)

// anotherNumber changes the last number of a text, if it has one.
func anotherNumber(text string) string {
	all := digits.FindAllStringIndex(text, -1)
	if len(all) == 0 {
		return text
	}
	at := all[len(all)-1]
	number := text[at[0]:at[1]]
	next, ok := nextNumber[number]
	if !ok {
		last := number[len(number)-1]
		next = number[:len(number)-1] + string('0'+(last-'0'+1)%10)
	}
	return text[:at[0]] + next + text[at[1]:]
}

// has reports whether a source has a text, whatever the marks and spaces between.
func has(s cite.Source, text string) bool {
	return slices.ContainsFunc(s.Chunks, func(c cite.Chunk) bool { return strings.Contains(letters(c.Text), letters(text)) })
}

// letters are the letters and digits of a text.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
}

// offlineReply is what the offline model says, without its blocks.
func offlineReply(ctx context.Context, q *miniweb.Question, found *websearch.Found) (string, error) {
	language := framework.English
	if q.Lang == "zh" {
		language = framework.Chinese
	}
	prompt, err := framework.Build(ctx, framework.Input{
		User: framework.Message{Role: "user", Text: q.Question}, Findings: framework.Findings{Web: found.Block(1)},
		Options: framework.Options{Language: language},
	})
	if err != nil {
		return "", err
	}
	var split framework.Splitter
	var text strings.Builder
	say := func(pieces []framework.Piece) {
		for _, p := range pieces {
			if p.Part == framework.PartText {
				text.WriteString(p.Text)
			}
		}
	}
	req := llm.Request{Model: offline.Model, Messages: prompt.Messages, UserText: q.Question}
	for chunk, err := range offline.New(offline.Options{}).Stream(ctx, req) {
		if err != nil {
			return "", err
		}
		say(split.Feed(chunk.Text))
	}
	say(split.Close())
	return text.String(), nil
}

// searcher is web search over a mini-web, on a database of its own.
type searcher struct {
	web    *miniweb.Web
	engine *httptest.Server // answers each question with its results
	chain  *engines.Chain
	reader *reader.Reader
	dir    string
	db     *store.DB
	search *websearch.Service
	user   string
}

// openSearcher returns what is open of it also with an error.
func openSearcher(ctx context.Context, web *miniweb.Web) (s *searcher, err error) {
	answers := &providertest.Server{}
	for _, q := range web.Questions {
		var results []providertest.Result
		for _, r := range q.Serp {
			results = append(results, providertest.Result{Title: r.Title, URL: r.URL, Content: r.Description})
		}
		answers.Answer(intent.Query(q.Question), results...)
	}
	s = &searcher{web: web, engine: httptest.NewServer(answers), user: uuid.Must(uuid.NewV7()).String()}
	guard, err := outbound.New(web.Options())
	if err != nil {
		return s, err
	}
	s.reader = reader.New(guard, reader.Config{})
	s.chain, err = engines.New(engines.Config{Names: []string{engines.SearXNG}, BaseURL: s.engine.URL, Client: s.engine.Client()})
	if err != nil {
		return s, err
	}
	if s.dir, err = os.MkdirTemp("", "nodest-citations-"); err != nil {
		return s, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if s.db, err = store.Open(ctx, store.Options{Dir: s.dir, Log: log}); err != nil {
		return s, err
	}
	s.search = websearch.New(s.db.WebSearch(), websearch.Options{Chain: s.chain, Reader: s.reader, ReadTime: time.Minute, Log: log})
	return s, s.db.InsertUser(ctx, &account.User{ID: s.user, Username: "reader", Role: account.RoleMember})
}

func (s *searcher) close() error {
	var failed []error
	if s.chain != nil {
		failed = append(failed, s.chain.Close())
	}
	if s.reader != nil {
		s.reader.Close()
	}
	s.engine.Close()
	if s.db != nil {
		failed = append(failed, s.db.Close())
	}
	if s.dir != "" {
		failed = append(failed, os.RemoveAll(s.dir))
	}
	return errors.Join(failed...)
}

// page is the text of a page that was read; "" = it was not.
func (s *searcher) page(ctx context.Context, url string) (text string, err error) {
	err = s.db.WebSearch().View(ctx, s.user, func(tx websearch.Tx) error {
		page, err := tx.WebPage(url)
		if page != nil {
			text = page.Markdown
		}
		return err
	})
	return text, err
}
