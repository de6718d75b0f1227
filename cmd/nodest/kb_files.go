package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nodest/internal/cli"
	"nodest/internal/fault"
)

// knowledgeFile is a file as the server answers it.
type knowledgeFile struct {
	ID          string `json:"id"`
	Access      string `json:"access"`
	Name        string `json:"name"`
	ContentType string `json:"contentType"`
	Size        int64  `json:"size"`
	SHA256      string `json:"sha256"`
	Source      string `json:"source"`
	State       string `json:"state"`
	Error       *struct {
		Code      string `json:"code"`
		Detail    string `json:"detail"`
		Retryable bool   `json:"retryable"`
	} `json:"error,omitempty"`
	Warnings  []string                   `json:"warnings"`
	Progress  *struct{ Done, Total int } `json:"progress,omitempty"`
	Chunks    int                        `json:"chunks"`
	Duplicate bool                       `json:"duplicate,omitempty"`
	UpdatedAt time.Time                  `json:"updatedAt"`
}

func (f *knowledgeFile) item() cli.Item {
	return cli.Item{ID: f.ID, Name: f.Name, UpdatedAt: f.UpdatedAt, State: f.State}.As(cli.Files)
}

// ended reports whether nothing more will happen by itself.
func (f *knowledgeFile) ended() bool { return f.State == "ready" || f.State == "failed" }

// note is what is to be said of a file beside its state.
func (f *knowledgeFile) note() string {
	switch {
	case f.Error != nil:
		return f.Error.Detail
	case f.Progress != nil && f.Progress.Total > 0:
		return fmt.Sprintf("%d of %d", f.Progress.Done, f.Progress.Total)
	}
	words := make([]string, len(f.Warnings))
	for i, code := range f.Warnings {
		words[i] = warning(code)
	}
	return strings.Join(words, "; ")
}

// warnings are those of a file in words; N stands for a number at the beginning of a code.
var warnings = map[string]string{
	"damaged_pdf":              "some pages could not be read",
	"invalid_csv":              "not valid CSV, so read as plain text",
	"invalid_json":             "not valid JSON, so read as plain text",
	"invalid_yaml":             "not valid YAML, so read as plain text",
	"N_chunks_without_vector":  "chunks found by words only, because the embedding model rejects them: N",
	"N_chunks_without_context": "chunks without a context line: N",
	"some_words_not_indexed":   "too many different words; the last ones are not found",
	"lexical_only":             "found by words only, without an embedding provider",
}

// warning is a code of a warning in words; one that is not known stays as it is.
func warning(code string) string {
	if typ, ok := strings.CutPrefix(code, "type_mismatch:"); ok {
		return "its name says something else; read as " + typ
	}
	kind := strings.TrimLeft(code, "0123456789")
	if number := strings.TrimSuffix(code, kind); number != "" {
		return strings.Replace(cmp.Or(warnings["N"+kind], code), "N", number, 1)
	}
	return cmp.Or(warnings[code], code)
}

func (p *program) kbFiles() *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use: "files [BASE]", Short: "List your files, or those of a knowledge base, with their states", Args: cobra.MaximumNArgs(1),
		Example: "  nodest kb files Harbour\n  nodest kb files --state failed",
		RunE: p.command(func(ctx context.Context, c *cli.Client, args []string) error {
			path := cli.Files.Path
			if state != "" {
				path += "?state=" + url.QueryEscape(state)
			}
			if len(args) > 0 {
				if state != "" {
					return cli.Usage("--state does not go with a BASE")
				}
				base, err := c.Find(ctx, args[0], cli.KnowledgeBases)
				if err != nil {
					return err
				}
				path = base.Path + "/files"
			}
			if p.json {
				return p.showList(ctx, c, cli.Files, path)
			}
			files, err := cli.All[knowledgeFile](ctx, c, path)
			if err != nil {
				return err
			}
			return p.showFiles(files)
		}),
	}
	cmd.Flags().StringVar(&state, "state", "", "only files in this state: pending, parsing, chunking, embedding, ready or failed")
	return p.withJSON(cmd, "print JSON, one file per line")
}

func (p *program) showFiles(files []knowledgeFile) error {
	if len(files) == 0 {
		_, err := fmt.Fprintln(p.err, "no files")
		return err
	}
	rows := [][]string{{"ID", "CHANGED", "NAME", "STATE", "SIZE", "CHUNKS", "NOTE"}}
	for i := range files {
		f := &files[i]
		rows = append(rows, []string{
			f.ID, cli.ShortTime(f.UpdatedAt), cli.Brief(f.Name, 60), f.State, fault.Size(int(f.Size)), strconv.Itoa(f.Chunks), cli.Brief(f.note(), 80),
		})
	}
	return cli.Table(p.out, rows)
}

func (p *program) kbAdd() *cobra.Command {
	var base string
	var later bool
	cmd := &cobra.Command{
		Use: "add FILE…", Short: "Add files, archives or pages of the web", Args: cobra.MinimumNArgs(1),
		Long: "Add files, each of at most 100 MiB, and wait until they are processed. With --base they are added to a knowledge base;\n" +
			"searches find only files that are in one, the others can be bound to a character (nodest kb bind --file). The files of a zip\n" +
			"archive are added one by one, which requires --base. A FILE that begins with http:// or https:// is a page of the web. A\n" +
			"file that you have already is not stored twice.",
		Example: "  nodest kb add keepers.pdf lore/*.md --base Harbour\n  nodest kb add https://example.org/history --base Harbour\n  nodest kb add notes.zip --base Harbour --no-wait",
		RunE: p.command(func(ctx context.Context, c *cli.Client, files []string) error {
			run := adding{p: p, c: c}
			if base != "" {
				found, err := c.Find(ctx, base, cli.KnowledgeBases)
				if err != nil {
					return err
				}
				run.base = found.ID
			}
			for i, file := range files {
				p.tell("%d of %d: %s", i+1, len(files), file)
				if err := run.add(ctx, file); err != nil {
					run.fail(file, err)
				}
			}
			p.tell("")
			return errors.Join(p.sayFiles(ctx, c, run.added, !later), run.err())
		}),
	}
	cmd.Flags().StringVar(&base, "base", "", "knowledge base (name or id) that they are added to")
	cmd.Flags().BoolVar(&later, "no-wait", false, "do not wait until the files are processed")
	return p.withJSON(cmd, "print JSON, one file per line")
}

// adding is one run of a command that uploads files.
type adding struct {
	p     *program
	c     *cli.Client
	base  string // id of a knowledge base; "" = none
	added []knowledgeFile
	lost  int // that were not stored
}

// tell shows one line that the next one replaces, if somebody looks; "" clears it.
func (p *program) tell(format string, args ...any) {
	if cli.IsTerminal(p.screen) {
		fmt.Fprint(p.screen, "\r\x1b[K", cli.Visible(fmt.Sprintf(format, args...)))
	}
}

func (a *adding) fail(name string, err error) {
	a.p.tell("")
	a.lost++
	fmt.Fprintf(a.p.err, "%s: %s\n", name, reason(err))
}

func (a *adding) err() error {
	if a.lost == 0 {
		return nil
	}
	return fmt.Errorf("not stored: %d", a.lost)
}

// add stores what one word of the command line names.
func (a *adding) add(ctx context.Context, word string) error {
	var got struct{ File knowledgeFile }
	switch {
	case strings.HasPrefix(word, "http://"), strings.HasPrefix(word, "https://"):
		body := map[string]any{"url": word}
		if a.base != "" {
			body["knowledgeBaseId"] = a.base
		}
		if err := a.c.Call(ctx, http.MethodPost, cli.Files.Path+"/web", body, &got); err != nil {
			return err
		}
	case strings.EqualFold(filepath.Ext(word), ".zip"):
		return a.unzip(ctx, word)
	default:
		fields := map[string]string{"knowledgeBaseId": a.base}
		if err := a.c.UploadFile(ctx, http.MethodPost, cli.Files.Path, word, fields, &got); err != nil {
			return err
		}
	}
	a.added = append(a.added, got.File)
	return nil
}

func (a *adding) unzip(ctx context.Context, file string) error {
	if a.base == "" {
		return cli.Usage("an archive needs the knowledge base of its files; give it with --base NAME")
	}
	var got struct {
		Files  []knowledgeFile
		Failed []struct{ Name, Detail string }
	}
	if err := a.c.UploadFile(ctx, http.MethodPost, cli.KnowledgeBases.Path+"/"+url.PathEscape(a.base)+"/import", file, nil, &got); err != nil {
		return err
	}
	a.added = append(a.added, got.Files...)
	for _, f := range got.Failed {
		a.fail(file+": "+f.Name, errors.New(f.Detail))
	}
	return nil
}

// lookAgain is how long a command waits before it asks for the state of a file again.
const lookAgain = 300 * time.Millisecond

// sayFiles prints one line for each file, once they are processed if it is to wait. Then it fails if
// one has failed.
func (p *program) sayFiles(ctx context.Context, c *cli.Client, files []knowledgeFile, wait bool) error {
	if !wait {
		return p.printFiles(files)
	}
	ticker := time.NewTicker(lookAgain)
	defer ticker.Stop()
	for i := range files {
		for f := &files[i]; !f.ended(); {
			var now knowledgeFile
			if err := c.Call(ctx, http.MethodGet, cli.Files.Path+"/"+url.PathEscape(f.ID), nil, &now); err != nil {
				return fmt.Errorf("%s: %s", f.Name, reason(err))
			}
			now.Duplicate = f.Duplicate
			if *f = now; f.ended() {
				break
			}
			p.tell("%d of %d: %s: %s %s", i+1, len(files), f.Name, f.State, f.note())
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	p.tell("")
	if err := p.printFiles(files); err != nil {
		return err
	}
	failed := 0
	for i := range files {
		if files[i].State == "failed" {
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("failed: %d of %d", failed, len(files))
	}
	return nil
}

// printFiles prints one line for each file.
func (p *program) printFiles(files []knowledgeFile) error {
	for i := range files {
		f := &files[i]
		if p.json {
			if err := p.printJSON(f); err != nil {
				return err
			}
			continue
		}
		line := f.ID + "  " + f.Name + "  " + f.State
		if note := f.note(); note != "" {
			line += ": " + note
		}
		if f.Duplicate {
			line += " (you had it already)"
		}
		fmt.Fprintln(p.out, line)
	}
	return nil
}

func (p *program) kbRemove() *cobra.Command {
	var of string
	var yes bool
	cmd := &cobra.Command{
		Use: "remove FILE", Short: "Delete a file, or take it out of a knowledge base", Args: cobra.ExactArgs(1),
		Long: "Delete a file, given by its whole name or id: it leaves all knowledge bases and characters. With --base it is only taken out\n" +
			"of that knowledge base. Deleting asks for confirmation; in a script, add --yes.",
		Example: "  nodest kb remove lore/harbour.md --yes\n  nodest kb remove lore/harbour.md --base Harbour",
	}
	cmd.Flags().StringVar(&of, "base", "", "knowledge base (name or id) that it is taken out of; the file stays")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask for confirmation")
	cmd.RunE = p.command(func(ctx context.Context, c *cli.Client, args []string) error {
		files := *cli.Files
		if of != "" {
			base, err := c.Find(ctx, of, cli.KnowledgeBases)
			if err != nil {
				return err
			}
			files.Path = base.Path + "/files"
		}
		found, err := c.Whole().Find(ctx, args[0], &files)
		if err != nil {
			return err
		}
		if of == "" && !yes {
			if err := p.confirm("delete the file " + found.Name); err != nil {
				return err
			}
		}
		return c.Call(ctx, http.MethodDelete, found.Path, nil, nil)
	})
	return cmd
}
