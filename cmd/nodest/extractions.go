package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"nodest/internal/cli"
	"nodest/internal/cli/review"
)

// extractionsCommand is nodest extractions: knowledge that was proposed in a chat, without the page.
func (p *program) extractionsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "extractions", Short: "List, review and commit knowledge that was proposed in a chat",
		Long: "List, review and commit knowledge that a model has proposed in a chat (setting cognition.extract of the character). CHAT is\n" +
			"a title, an id, or a character with only one chat; default: the most recently changed chat.",
		Example: "  nodest extractions list Seraphina --state pending\n  nodest extractions review Seraphina\n  nodest extractions commit Seraphina",
	}
	cmd.AddCommand(p.extractionsList(), p.extractionsReview(), p.extractionsCommit())
	return cmd
}

func (p *program) extractionsList() *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use: "list [CHAT]", Short: "List extractions, oldest first", Args: cobra.MaximumNArgs(1),
		Example: "  nodest extractions list Seraphina --state pending",
	}
	cmd.Flags().StringVar(&state, "state", "", "only those in this state: pending, approved, discarded or committed")
	cmd.RunE = p.inConversation(func(ctx context.Context, c *cli.Client, path string) error {
		all, err := review.List(ctx, c, path, state)
		if err != nil {
			return err
		}
		rows := [][]string{{"ID", "STATE", "PROPOSED", "CONTENT"}}
		for _, raw := range all {
			var x review.Extraction
			if p.json {
				err = cmp.Or(err, p.printJSON(raw))
			} else if err = cmp.Or(err, json.Unmarshal(raw, &x)); err == nil {
				rows = append(rows, []string{x.ID, x.State, cli.ShortTime(x.Timestamp), cli.Brief(x.Content(), 80)})
			}
		}
		if err != nil || p.json {
			return err
		}
		if len(all) == 0 {
			fmt.Fprintln(p.err, "no extractions; a model proposes them where the character's setting cognition.extract is on")
			return nil
		}
		return cli.Table(p.out, rows)
	})
	return p.withJSON(cmd, "print JSON, one object per line")
}

func (p *program) extractionsReview() *cobra.Command {
	cmd := &cobra.Command{
		Use: "review [CHAT]", Short: "Decide about pending extractions, one after the other", Args: cobra.MaximumNArgs(1),
		Long: "Decide about pending extractions, one after the other: approve, edit, discard, skip or quit. An edit opens the payload in\n" +
			"$VISUAL or $EDITOR, or asks for another content where neither is set, and shows the lines that it changes. The latest\n" +
			"decision counts until a commit, which makes memories of what is approved.",
		Example: "  EDITOR=nano nodest extractions review Seraphina",
	}
	cmd.RunE = p.inConversation(func(ctx context.Context, c *cli.Client, path string) error {
		pending, err := review.List(ctx, c, path, "pending")
		if err != nil {
			return err
		}
		all := make([]review.Extraction, len(pending))
		for i, raw := range pending {
			if err := json.Unmarshal(raw, &all[i]); err != nil {
				return err
			}
		}
		if len(all) == 0 {
			fmt.Fprintln(p.err, "nothing waits for a review")
			return nil
		}
		d := &review.Desk{Client: c, Path: path, In: bufio.NewReader(p.in), Out: p.out}
		if editor := strings.Fields(cmp.Or(p.getenv("VISUAL"), p.getenv("EDITOR"))); len(editor) > 0 && p.interactive() {
			d.Edit = func(text string) (string, error) { return p.editText(ctx, editor, text) }
		}
		approved, err := d.Review(ctx, all)
		if err != nil || approved == 0 || !d.Confirm(fmt.Sprintf("make memories of what is approved (%d)?", approved)) {
			return err
		}
		return p.commitExtractions(ctx, c, path)
	})
	return cmd
}

// editText lets a person edit a text with a program of theirs.
func (p *program) editText(ctx context.Context, editor []string, text string) (string, error) {
	f, err := os.CreateTemp("", "extraction-*.json")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(text + "\n")
	if err = cmp.Or(err, f.Close()); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, editor[0], append(editor[1:], f.Name())...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.in, p.screen, p.screen // the terminal itself
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w", editor[0], err)
	}
	edited, err := os.ReadFile(f.Name())
	return string(edited), err
}

func (p *program) extractionsCommit() *cobra.Command {
	cmd := &cobra.Command{
		Use: "commit [CHAT]", Short: "Make memories of the extractions that are approved or edited", Args: cobra.MaximumNArgs(1),
		Long:    "Make memories of the extractions that are approved or edited. It can be repeated: each becomes one memory.",
		Example: "  nodest extractions commit Seraphina",
	}
	cmd.RunE = p.inConversation(p.commitExtractions)
	return p.withJSON(cmd, "print the report as JSON")
}

func (p *program) commitExtractions(ctx context.Context, c *cli.Client, path string) error {
	var report struct {
		Committed []struct {
			ExtractionID string `json:"extraction_id"`
			KnowledgeID  string `json:"knowledge_id"`
		}
		Failed []struct {
			ExtractionID string `json:"extraction_id"`
			Error        string
		}
		Skipped []string
	}
	err := p.answer(ctx, c, http.MethodPost, path+"/extractions/commit", map[string]any{}, &report, func() error {
		for _, x := range report.Committed {
			fmt.Fprintf(p.out, "%s  memory %s\n", x.ExtractionID, x.KnowledgeID)
		}
		for _, x := range report.Failed {
			fmt.Fprintf(p.err, "%s: %s\n", x.ExtractionID, x.Error)
		}
		_, err := fmt.Fprintf(p.out, "%d committed, %d failed, %d skipped\n", len(report.Committed), len(report.Failed), len(report.Skipped))
		return err
	})
	if err == nil && len(report.Failed) > 0 {
		return errSaid
	}
	return err
}
