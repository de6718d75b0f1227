package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nodest/internal/cli"
	"nodest/internal/fault"
)

// knowledgeBase is one as the server answers it.
type knowledgeBase struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Description  string `json:"description"`
	Access       string `json:"access"`
	ChunkSize    int    `json:"chunkSize"`
	ChunkOverlap int    `json:"chunkOverlap"`
	ContextLines bool   `json:"contextLines"`
}

// kbCommand is nodest kb: files and knowledge bases without the page.
func (p *program) kbCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "kb", Short: "Add documents, search them, share them and give them to characters",
		Long: "Add documents to knowledge bases, search them, share them and give them to characters. BASE and CHARACTER are names or\n" +
			"ids; the beginning is enough where only one fits, except for what deletes.",
		Example: "  nodest kb create Harbour --description 'The lighthouse and its keepers'\n  nodest kb add lore/*.md --base Harbour\n" +
			"  nodest kb bind Harbour Seraphina\n  nodest kb search 'When was the light automated?'",
	}
	list := p.listCommandOf(cli.KnowledgeBases, "List the knowledge bases that you may read", "  nodest kb list")
	cmd.AddCommand(list, p.kbCreate(), p.kbShow(), p.kbDelete(), p.kbAdd(), p.kbRemove(), p.kbSync(), p.kbFiles(), p.kbRetry(), p.kbReindex(),
		p.kbSearch(), p.kbAsk(), p.kbGrant(), p.kbRevoke(), p.kbBind("bind", true), p.kbBind("unbind", false))
	return cmd
}

func (p *program) kbCreate() *cobra.Command {
	var description string
	var size, overlap int
	var lines bool
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Create a knowledge base", Args: cobra.ExactArgs(1),
		Long:    "Create a knowledge base. Models are told its description, and decide by it whether to search.",
		Example: "  nodest kb create Harbour --description 'The lighthouse and its keepers'\n  nodest kb create Compact --chunk-size 800 --chunk-overlap 100",
	}
	cmd.Flags().StringVar(&description, "description", "", "what it contains, for models")
	cmd.Flags().IntVar(&size, "chunk-size", 0, "largest size of a chunk in characters, 100 to 8000; default: that of the server")
	cmd.Flags().IntVar(&overlap, "chunk-overlap", 0, "characters that a chunk repeats of the one before, at most half of its size")
	cmd.Flags().BoolVar(&lines, "context-lines", false, "let your model write a line about each chunk, for search: one request for 8 chunks")
	cmd.RunE = p.command(func(ctx context.Context, c *cli.Client, args []string) error {
		in := map[string]any{
			"name": args[0], "description": description, "contextLines": lines,
			"chunkSize": given(cmd, "chunk-size", size), "chunkOverlap": given(cmd, "chunk-overlap", overlap),
		}
		var made knowledgeBase
		return p.answer(ctx, c, http.MethodPost, cli.KnowledgeBases.Path, in, &made, func() error {
			if _, err := fmt.Fprintf(p.out, "%s  %s\n", made.ID, made.Name); err != nil {
				return err
			}
			return p.warnOfNamesake(ctx, c, &made)
		})
	})
	return p.withJSON(cmd, "print JSON")
}

// warnOfNamesake says that another knowledge base has the name of a new one: then neither is
// found by it.
func (p *program) warnOfNamesake(ctx context.Context, c *cli.Client, made *knowledgeBase) error {
	bases, err := c.Items(ctx, cli.KnowledgeBases)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(bases, func(b cli.Item) bool { return b.ID != made.ID && b.Name == made.Name }) {
		_, err = fmt.Fprintln(p.err, "there is another knowledge base of this name; commands tell them apart by their ids (nodest kb list)")
	}
	return err
}

func (p *program) kbShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show BASE", Short: "Print a knowledge base with its files and who may use it", Args: cobra.ExactArgs(1),
		Example: "  nodest kb show Harbour\n  nodest kb show Harbour --json",
		RunE: p.named(cli.KnowledgeBases, func(ctx context.Context, c *cli.Client, found cli.Item, _ []string) error {
			var base knowledgeBase
			return p.answer(ctx, c, http.MethodGet, found.Path, nil, &base, func() error { return p.showBase(ctx, c, &base, found.Path) })
		}),
	}
	return p.withJSON(cmd, "print JSON")
}

func (p *program) showBase(ctx context.Context, c *cli.Client, base *knowledgeBase, path string) error {
	fmt.Fprintf(p.out, "%s  %s (%s)\n", base.ID, base.Name, base.Access)
	if base.Description != "" {
		p.indented("    ", base.Description)
	}
	if base.ChunkSize > 0 {
		fmt.Fprintf(p.out, "    chunks of %d characters, overlap %d\n", base.ChunkSize, base.ChunkOverlap)
	}
	if base.ContextLines {
		fmt.Fprintln(p.out, "    a model writes a line about each chunk, for search")
		fmt.Fprintf(p.out, "    files that were processed before they were added may have none: nodest kb reindex %s --start\n", base.ID)
	}
	if base.Access == "owner" {
		var grants cli.PageOf[knowledgeGrant]
		if err := c.Call(ctx, http.MethodGet, path+"/grants", nil, &grants); err != nil {
			return err
		}
		for _, g := range grants.Items {
			fmt.Fprintf(p.out, "    shared with %s: %s\n", g.Username, g.Role)
		}
	}
	fmt.Fprintln(p.out)
	files, err := cli.All[knowledgeFile](ctx, c, path+"/files")
	if err != nil {
		return err
	}
	return p.showFiles(files)
}

func (p *program) kbDelete() *cobra.Command {
	cmd := &cobra.Command{
		Use: "delete BASE", Short: "Delete a knowledge base; its files stay, unless --files is given",
		Long: "Delete a knowledge base, given by its whole name or id. Its files stay; with --files, those of your files that are in no\n" +
			"other knowledge base are deleted as well. The command asks for confirmation; in a script, add --yes.",
		Example: "  nodest kb delete Harbour --files --yes",
	}
	files := cmd.Flags().Bool("files", false, "also delete your files that are in no other knowledge base")
	return p.deleting(cmd, cli.KnowledgeBases, func(base cli.Item) (what, path string) {
		what = "delete the knowledge base " + base.Name
		if *files {
			what += " and its files"
		}
		return what, fmt.Sprintf("%s?files=%t", base.Path, *files)
	})
}

// knowledgeGrant is the access of another user.
type knowledgeGrant struct {
	UserID   string `json:"userId"`
	Username string `json:"username"`
	Role     string `json:"role"`
}

func (p *program) kbGrant() *cobra.Command {
	var write bool
	cmd := &cobra.Command{
		Use: "grant BASE USER", Short: "Let another user search and read a knowledge base", Args: cobra.ExactArgs(2),
		Long:    "Let another user search and read one of your knowledge bases; with --write also add files of their own and remove files.",
		Example: "  nodest kb grant Harbour tom\n  nodest kb grant Harbour tom --write",
		RunE: p.named(cli.KnowledgeBases, func(ctx context.Context, c *cli.Client, base cli.Item, rest []string) error {
			role := "read"
			if write {
				role = "write"
			}
			var made knowledgeGrant
			path := base.Path + "/grants/" + url.PathEscape(rest[0])
			err := p.answer(ctx, c, http.MethodPut, path, map[string]any{"role": role}, &made, func() error {
				_, err := fmt.Fprintf(p.out, "%s  %s: %s\n", made.UserID, made.Username, made.Role)
				return err
			})
			if fault.Is(err, fault.NotFound) {
				return cli.NotFound([]*cli.Kind{cli.Users}, rest[0], nil)
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&write, "write", false, "also let the user add and remove files")
	return p.withJSON(cmd, "print JSON")
}

func (p *program) kbRevoke() *cobra.Command {
	return &cobra.Command{
		Use: "revoke BASE USER", Short: "Take another user's access to a knowledge base back", Args: cobra.ExactArgs(2),
		Long:    "Take another user's access to a knowledge base back. With your own username you leave one that is shared with you.",
		Example: "  nodest kb revoke Harbour tom",
		RunE: p.inFull(cli.KnowledgeBases, func(ctx context.Context, c *cli.Client, base cli.Item, rest []string) error {
			err := c.Call(ctx, http.MethodDelete, base.Path+"/grants/"+url.PathEscape(rest[0]), nil, nil)
			if fault.Is(err, fault.NotFound) {
				return fault.New(fault.NotFound, "%s is not shared with %q; nodest kb show %s tells with whom it is", base.Name, rest[0], base.ID)
			}
			return err
		}),
	}
}

// kbBind is the command bind or unbind.
func (p *program) kbBind(name string, on bool) *cobra.Command {
	var file bool
	cmd := &cobra.Command{
		Use: name + " BASE CHARACTER", Args: cobra.ExactArgs(2),
		Short:   map[bool]string{true: "Let a character search a knowledge base, or read a file", false: "Take a knowledge base or a file from a character"}[on],
		Example: "  nodest kb " + name + " Harbour Seraphina\n  nodest kb " + name + " lore/harbour.md Seraphina --file",
	}
	if on {
		cmd.Long = "Let a character search and read a knowledge base by itself. With --file the name is that of a file; its whole text is then\n" +
			"in each prompt, as far as it fits."
	}
	cmd.Flags().BoolVar(&file, "file", false, "the name is that of a file")
	cmd.RunE = p.command(func(ctx context.Context, c *cli.Client, args []string) error {
		ch, err := c.Find(ctx, args[1], cli.Characters)
		if err != nil {
			return err
		}
		of, path := cli.KnowledgeBases, "/knowledge/"
		if file {
			of, path = cli.Files, "/files/"
		}
		found, err := c.Find(ctx, args[0], of)
		if err != nil {
			return err
		}
		method, body := http.MethodDelete, map[string]any(nil)
		if on {
			method, body = http.MethodPut, map[string]any{"enabled": true}
		}
		return c.Call(ctx, method, ch.Path+path+url.PathEscape(found.ID), body, nil)
	})
	return cmd
}

func (p *program) kbReindex() *cobra.Command {
	var start, cancel bool
	cmd := &cobra.Command{
		Use: "reindex BASE", Short: "Show how far the index of a knowledge base is, or build it again", Args: cobra.ExactArgs(1),
		Long: "Show how far the index of a knowledge base is. With --start it is built again, such as after a change of its chunk size; with\n" +
			"--cancel that is stopped. A change of the embedding model starts it by itself. The old index is searched meanwhile.",
		Example: "  nodest kb reindex Harbour\n  nodest kb reindex Harbour --start",
		RunE: p.named(cli.KnowledgeBases, func(ctx context.Context, c *cli.Client, base cli.Item, _ []string) error {
			if start && cancel {
				return cli.Usage("--start does not go with --cancel")
			}
			path := base.Path + "/reindex"
			method := http.MethodGet
			switch {
			case cancel:
				return c.Call(ctx, http.MethodDelete, path, nil, nil)
			case start:
				method = http.MethodPost
			}
			var state struct {
				State, Model, SearchedBy string
				Done, Total, Calls       int
				Error                    struct{ Detail string }
			}
			return p.answer(ctx, c, method, path, nil, &state, func() error {
				fmt.Fprintf(p.out, "%s: %d of %d chunks have a vector of %s\n", state.State, state.Done, state.Total, state.Model)
				if state.Error.Detail != "" {
					fmt.Fprintf(p.out, "failed: %s\n", state.Error.Detail)
				}
				if state.Calls > 0 {
					fmt.Fprintf(p.out, "about %d calls are missing; meanwhile searched by: %s\n", state.Calls, cmp.Or(state.SearchedBy, "words alone"))
				}
				return nil
			})
		}),
	}
	cmd.Flags().BoolVar(&start, "start", false, "build it again")
	cmd.Flags().BoolVar(&cancel, "cancel", false, "stop building it")
	return p.withJSON(cmd, "print JSON")
}

// given is the value of a flag that the command line has; nil, which the server takes as absent, for
// others.
func given(cmd *cobra.Command, flag string, value any) any {
	if !cmd.Flags().Changed(flag) {
		return nil
	}
	return value
}

// baseIDs are the ids of knowledge bases by words for them.
func baseIDs(ctx context.Context, c *cli.Client, words []string) ([]string, error) {
	var ids []string
	for _, word := range words {
		base, err := c.Find(ctx, word, cli.KnowledgeBases)
		if err != nil {
			return nil, err
		}
		ids = append(ids, base.ID)
	}
	return ids, nil
}

// foundPassages is the answer to a search.
type foundPassages struct {
	Files []struct {
		ID, Name, KnowledgeBase string
		Relevance               float64
	} `json:"files"`
	Chunks []struct {
		FileID     string  `json:"fileId"`
		Text       string  `json:"text"`
		Heading    string  `json:"heading"`
		Page       int     `json:"page"`
		Similarity float64 `json:"similarity"`
	} `json:"chunks"`
	Pending []struct{ Name, State string } `json:"pending"`

	Truncated bool     `json:"truncated"`
	Degraded  []string `json:"degraded"`
}

func (p *program) kbSearch() *cobra.Command {
	var in struct {
		bases, types        []string
		top                 int
		mode, folder, after string
	}
	cmd := &cobra.Command{
		Use: "search QUERY…", Short: "Search documents by words and meaning", Args: cobra.MinimumNArgs(1),
		Example: "  nodest kb search 'When was the light automated?'\n  nodest kb search 雾渡城 --base Harbour --top 5 --mode lexical",
		RunE: p.command(func(ctx context.Context, c *cli.Client, args []string) error {
			ids, err := baseIDs(ctx, c, in.bases)
			if err != nil {
				return err
			}
			body := map[string]any{
				"query": strings.Join(args, " "), "topK": in.top, "mode": in.mode, "folder": in.folder, "types": in.types, "knowledgeBaseIds": ids,
			}
			if in.after != "" {
				day, err := time.ParseInLocation(time.DateOnly, in.after, time.Local)
				if err != nil {
					return cli.Usage("--after must be a day such as 2026-03-14")
				}
				body["updatedAfter"] = day
			}
			var found foundPassages
			return p.answer(ctx, c, http.MethodPost, cli.KnowledgeBases.Path+"/search", body, &found, func() error { return p.showPassages(&found) })
		}),
	}
	cmd.Flags().StringArrayVar(&in.bases, "base", nil, "a knowledge base (name or id); may be given several times; default: all that you may read")
	cmd.Flags().IntVarP(&in.top, "top", "n", 5, "maximum number of passages, 1 to 100")
	cmd.Flags().StringVar(&in.mode, "mode", "hybrid", "hybrid: by words and meaning; lexical: by words; vector: by meaning")
	cmd.Flags().StringVar(&in.folder, "folder", "", "only files in this folder")
	cmd.Flags().StringArrayVar(&in.types, "type", nil, "only files of this type, such as pdf; may be given several times")
	cmd.Flags().StringVar(&in.after, "after", "", "only files changed since this day, such as 2026-03-14")
	return p.withJSON(cmd, "print JSON")
}

// searchParts are the parts of a search that may fail, in words.
var searchParts = map[string]string{
	"vector": "search by meaning, since the embedding provider did not answer; words were searched",
	"rerank": "the last step, which orders the best passages",
}

func (p *program) showPassages(found *foundPassages) error {
	names := map[string]string{}
	for _, f := range found.Files {
		names[f.ID] = f.Name
	}
	for i, c := range found.Chunks {
		where := onPage(names[c.FileID], c.Page)
		if c.Heading != "" {
			where += ", " + c.Heading
		}
		fmt.Fprintf(p.out, "%2d. %s (%.2f)\n", i+1, where, c.Similarity)
		p.indented("    ", cli.Brief(withoutHeadings(c.Text, c.Heading), 400))
	}
	if len(found.Chunks) == 0 {
		fmt.Fprintln(p.err, "nothing found")
	}
	for _, f := range found.Pending {
		fmt.Fprintf(p.err, "not searched yet: %s (%s)\n", f.Name, f.State)
	}
	if found.Truncated {
		fmt.Fprintln(p.err, "only the first 8,000 characters of the query were used")
	}
	for _, what := range found.Degraded {
		fmt.Fprintf(p.err, "did not work this time: %s\n", cmp.Or(searchParts[what], what))
	}
	return nil
}

// withoutHeadings is the text of a chunk without the lines at its beginning that its heading, a
// path such as "People › Maren Oduya", has as well.
func withoutHeadings(text, heading string) string {
	titles := strings.Split(heading, " › ")
	for {
		line, rest, more := strings.Cut(text, "\n")
		line = strings.Trim(line, "# \r")
		if !more || line != "" && !slices.Contains(titles, line) {
			return text
		}
		text = rest
	}
}

func (p *program) kbAsk() *cobra.Command {
	var bases []string
	cmd := &cobra.Command{
		Use: "ask QUESTION…", Short: "Have your model answer a question from documents, with sources", Args: cobra.MinimumNArgs(1),
		Example: "  nodest kb ask 'When was the light automated?' --base Harbour",
		RunE: p.command(func(ctx context.Context, c *cli.Client, args []string) error {
			ids, err := baseIDs(ctx, c, bases)
			if err != nil {
				return err
			}
			body := map[string]any{"question": strings.Join(args, " "), "knowledgeBaseIds": ids}
			var got struct {
				Answer     string
				Offline    bool
				References []citedSource
			}
			return p.answer(ctx, c, http.MethodPost, "/api/v1/knowledge/ask", body, &got, func() error {
				fmt.Fprintln(p.out, got.Answer)
				for _, r := range got.References {
					fmt.Fprintf(p.out, "\n[^%d] %s\n", r.Marker, onPage(r.Title, r.Page))
					p.indented("    ", r.ExactQuote)
				}
				if got.Offline {
					fmt.Fprintln(p.err, "answered by the offline demo model")
				}
				return nil
			})
		}),
	}
	cmd.Flags().StringArrayVar(&bases, "base", nil, "a knowledge base (name or id); may be given several times; default: all that you may read")
	return p.withJSON(cmd, "print JSON")
}

func (p *program) kbRetry() *cobra.Command {
	var everything bool
	cmd := &cobra.Command{
		Use: "retry [FILE…]", Short: "Process failed files again", Example: "  nodest kb retry lore/harbour.pdf\n  nodest kb retry --all",
		RunE: p.command(func(ctx context.Context, c *cli.Client, args []string) error {
			if everything == (len(args) > 0) {
				return cli.Usage("give files, or --all for all that have failed and may work now")
			}
			failed, err := cli.All[knowledgeFile](ctx, c, cli.Files.Path+"?state=failed")
			if err != nil {
				return err
			}
			chosen, err := chooseFailed(ctx, c, failed, args)
			if err != nil {
				return err
			}
			if len(chosen) == 0 {
				_, err := fmt.Fprintf(p.err, "nothing to retry; failed for good: %d (nodest kb files --state failed says why)\n", len(failed))
				return err
			}
			for i := range chosen {
				var got struct{ File knowledgeFile }
				if err := c.Call(ctx, http.MethodPost, cli.Files.Path+"/"+url.PathEscape(chosen[i].ID)+"/retry", nil, &got); err != nil {
					return err
				}
				chosen[i] = got.File
			}
			return p.sayFiles(ctx, c, chosen, true)
		}),
	}
	cmd.Flags().BoolVar(&everything, "all", false, "all failed files that may work now")
	return p.withJSON(cmd, "print JSON, one file per line")
}

// chooseFailed returns the failed files that words name; without words all that may work
// now.
func chooseFailed(ctx context.Context, c *cli.Client, failed []knowledgeFile, words []string) ([]knowledgeFile, error) {
	if len(words) == 0 {
		return slices.DeleteFunc(slices.Clone(failed), func(f knowledgeFile) bool { return f.Error != nil && !f.Error.Retryable }), nil
	}
	if len(failed) == 0 {
		return nil, fault.New(fault.NotFound, "none of your files has failed")
	}
	items := make([]cli.Item, len(failed))
	for i, f := range failed {
		items[i] = f.item()
	}
	var chosen []knowledgeFile
	for _, word := range words {
		found, err := c.Choice(ctx, word, items, cli.FailedFiles)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, failed[slices.IndexFunc(failed, func(f knowledgeFile) bool { return f.ID == found.ID })])
	}
	return chosen, nil
}
