package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"nodest/internal/cli"
	"nodest/internal/fault"
	"nodest/knowledge/filename"
)

func (p *program) kbSync() *cobra.Command {
	var base string
	var gone, later bool
	cmd := &cobra.Command{
		Use: "sync DIR --base NAME", Short: "Make a knowledge base contain the files of a folder", Args: cobra.ExactArgs(1),
		Long: "Make a knowledge base contain the files of a folder: new ones are added, changed ones replaced. Files are compared by their\n" +
			"content, not by their dates. Folders become part of the names; hidden files, hidden folders and links are left out. Files that\n" +
			"this command has added and that are no longer in the folder are named; with --delete they leave the knowledge base, and are\n" +
			"deleted if they are in no other one and no character has them. What was added in another way stays.",
		Example: "  nodest kb sync ~/notes --base Notes\n  nodest kb sync ~/notes --base Notes --delete",
		RunE: p.command(func(ctx context.Context, c *cli.Client, args []string) error {
			if base == "" {
				return cli.Usage("give the knowledge base with --base NAME")
			}
			found, err := c.Find(ctx, base, cli.KnowledgeBases)
			if err != nil {
				return err
			}
			run := syncing{adding: adding{p: p, c: c, base: found.ID}, dir: args[0], remove: gone}
			if err := run.sync(ctx, found.Path); err != nil {
				return err
			}
			return errors.Join(p.sayFiles(ctx, c, run.added, !later), run.summary(), run.err())
		}),
	}
	cmd.Flags().StringVar(&base, "base", "", "knowledge base (name or id)")
	cmd.Flags().BoolVar(&gone, "delete", false, "remove files that are no longer in the folder")
	cmd.Flags().BoolVar(&later, "no-wait", false, "do not wait until the files are processed")
	return p.withJSON(cmd, "print JSON, one file per line and the summary at the end")
}

// syncing is one run of nodest kb sync.
type syncing struct {
	adding
	dir    string
	remove bool // --delete

	New       int `json:"new"`
	Changed   int `json:"changed"`
	Gone      int `json:"gone"`
	Unchanged int `json:"unchanged"`
}

// sync compares the folder with the knowledge base at path.
func (s *syncing) sync(ctx context.Context, path string) error {
	local, err := s.filesOf()
	if err != nil {
		return err
	}
	list, err := cli.All[knowledgeFile](ctx, s.c, path+"/files")
	if err != nil {
		return err
	}
	sums, wanted := s.contentsOf(local)
	done, err := s.put(ctx, path, local, list, sums, wanted)
	if err != nil {
		return err
	}
	for _, f := range list {
		unread := local[f.Name] != "" && sums[f.Name] == ""
		if !wanted[f.SHA256] && !done[f.ID] && !unread {
			if err := s.gone(ctx, path, f); err != nil {
				s.fail(f.Name, err)
			}
		}
	}
	return nil
}

// contentsOf returns the hashes of files by name, and which hashes there are. A file that cannot
// be read has none.
func (s *syncing) contentsOf(local map[string]string) (sums map[string]string, wanted map[string]bool) {
	sums, wanted = map[string]string{}, map[string]bool{}
	for name, file := range local {
		sum, err := hashOf(file)
		if err != nil {
			s.fail(name, err)
			continue
		}
		sums[name], wanted[sum] = sum, true
	}
	return sums, wanted
}

// put adds or replaces files of the folder, and returns the ids of those in list that it has
// replaced, or should have.
func (s *syncing) put(ctx context.Context, path string, local map[string]string, list []knowledgeFile, sums map[string]string, wanted map[string]bool) (map[string]bool, error) {
	named, known := map[string]knowledgeFile{}, map[string]bool{}
	for _, f := range list {
		if f.Access != "owner" { // files that others have added are theirs
			continue
		}
		known[f.SHA256] = true
		if named[f.Name].Source != "sync" { // among several with one name, the one of this command wins
			named[f.Name] = f
		}
	}
	done := map[string]bool{}
	defer s.p.tell("")
	for i, name := range slices.Sorted(maps.Keys(sums)) {
		s.p.tell("%d of %d: %s", i+1, len(sums), name)
		old, sum := named[name], sums[name]
		if wanted[old.SHA256] { // another name has its content now, or this one has it still
			old = knowledgeFile{}
		}
		done[old.ID] = true
		err := s.file(ctx, path, name, local[name], old, known[sum])
		known[sum] = known[sum] || err == nil
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			s.fail(name, err)
		}
	}
	return done, nil
}

// file adds one file to the knowledge base at base, or replaces old. A content that the knowledge
// base has under another name is not stored twice.
func (s *syncing) file(ctx context.Context, base, name, path string, old knowledgeFile, known bool) error {
	var got struct{ File knowledgeFile }
	if old.ID != "" && !known {
		err := s.c.UploadFile(ctx, http.MethodPut, cli.Files.Path+"/"+url.PathEscape(old.ID)+"/content", path, map[string]string{"name": name}, &got)
		if err == nil {
			s.added = append(s.added, got.File)
			s.Changed++
		}
		if !fault.Is(err, fault.Conflict) { // else the user has another file with this content
			return err
		}
	}
	if !known {
		fields := map[string]string{"name": name, "knowledgeBaseId": s.base, "source": "sync"}
		if err := s.c.UploadFile(ctx, http.MethodPost, cli.Files.Path, path, fields, &got); err != nil {
			return err
		}
		s.added = append(s.added, got.File)
	}
	switch {
	case old.ID != "":
		s.Changed++
		return s.c.Call(ctx, http.MethodDelete, base+"/files/"+url.PathEscape(old.ID)+"?unused=true", nil, nil)
	case known:
		s.Unchanged++
	default:
		s.New++
	}
	return nil
}

// gone removes a file that is not in the folder from the knowledge base at path, or says that it
// would, if this command has added it.
func (s *syncing) gone(ctx context.Context, path string, f knowledgeFile) error {
	if f.Access != "owner" || f.Source != "sync" {
		return nil
	}
	if !s.remove {
		s.Gone++
		_, err := fmt.Fprintf(s.p.err, "gone: %s; --delete removes it\n", f.Name)
		return err
	}
	if err := s.c.Call(ctx, http.MethodDelete, path+"/files/"+url.PathEscape(f.ID)+"?unused=true", nil, nil); err != nil {
		return err
	}
	s.Gone++
	_, err := fmt.Fprintf(s.p.err, "removed: %s\n", f.Name)
	return err
}

func (s *syncing) summary() error {
	if s.p.json {
		return s.p.printJSON(map[string]any{"new": s.New, "changed": s.Changed, "gone": s.Gone, "removed": s.remove, "unchanged": s.Unchanged, "failed": s.lost})
	}
	gone := "gone"
	if s.remove {
		gone = "removed"
	}
	_, err := fmt.Fprintf(s.p.out, "%d new, %d changed, %d %s, %d unchanged\n", s.New, s.Changed, s.Gone, gone, s.Unchanged)
	return err
}

// filesOf returns the paths of the files in the folder and those below, by the names that the
// server gives them: the way from the folder. Hidden ones, links and what is no file are left out.
func (s *syncing) filesOf() (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(s.dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && path == s.dir:
			return cli.Usage("%s: %s", path, reason(err))
		case err != nil:
			return err
		case path == s.dir:
			return nil
		case strings.HasPrefix(entry.Name(), ".") && entry.IsDir():
			return fs.SkipDir
		case strings.HasPrefix(entry.Name(), "."), !entry.Type().IsRegular():
			return nil
		}
		name, err := filepath.Rel(s.dir, path)
		if err != nil {
			return err
		}
		clean := filename.Clean(filepath.ToSlash(name))
		if files[clean] != "" {
			s.fail(name, fmt.Errorf("stored under the same name as %s", files[clean]))
			return nil
		}
		files[clean] = path
		return nil
	})
	if err == nil {
		if info, failed := os.Stat(s.dir); failed != nil || !info.IsDir() {
			err = errors.Join(failed, cli.Usage("%s is not a folder", s.dir))
		}
	}
	return files, err
}

func hashOf(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
