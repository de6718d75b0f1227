package pack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"nodest/internal/cli"
)

// Job moves the folder of a user, or an archive of it, to a server.
type Job struct {
	Client       *cli.Client
	Source       string // a folder or a zip archive
	DryRun       bool
	NoCharacters bool // a chat without its card makes no character
	JSON         bool

	Out io.Writer // the report
	Err io.Writer // how far it is
}

// stopWait is how long the server may take to stop an import.
const stopWait = 10 * time.Second

// Run sends the files, waits for the end and prints the report. When ctx ends, the import is stopped on the server;
// what it has taken stays.
func (j *Job) Run(ctx context.Context) error {
	imp, left, err := j.send(ctx)
	if err != nil {
		return err
	}
	if err := j.wait(ctx, imp); err != nil {
		return j.stop(ctx, imp, err)
	}
	if j.JSON {
		err = JSON(ctx, j.Client, imp.ID, left, j.Out)
	} else {
		err = Report(ctx, j.Client, imp, left, j.Out)
	}
	switch {
	case err != nil:
		return err
	case imp.State == "failed" && imp.Error != nil:
		return fmt.Errorf("the import failed: %s; what was taken stays, and a second run goes on from there", imp.Error.Message)
	case imp.State != "done":
		return fmt.Errorf("the import ended as %s; what was taken stays, and a second run goes on from there", imp.State)
	}
	if j.DryRun && !j.JSON {
		fmt.Fprintln(j.Out, "Nothing was added. Without --dry-run, it is.")
	}
	return nil
}

// send packs and uploads, and returns the import that begins.
func (j *Job) send(ctx context.Context) (imp *Import, left []Left, err error) {
	info, err := os.Stat(j.Source)
	if err != nil {
		return nil, nil, err
	}
	var file *os.File
	name := filepath.Base(j.Source)
	if info.IsDir() {
		name += ".zip"
		file, left, err = j.pack(ctx)
	} else {
		file, err = os.Open(j.Source)
	}
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		defer os.Remove(file.Name()) //nolint:errcheck // in the folder of temporary files
	}
	defer file.Close() //nolint:errcheck // it was only read
	if info, err = file.Stat(); err != nil {
		return nil, nil, err
	}
	fmt.Fprintf(j.Err, "sending %d MiB…\n", (info.Size()+1<<20-1)>>20)
	fields := map[string]string{"dryRun": strconv.FormatBool(j.DryRun), "makeCharacters": strconv.FormatBool(!j.NoCharacters)}
	imp = &Import{}
	return imp, left, j.Client.UploadContent(ctx, Path, name, file, info.Size(), fields, imp)
}

// pack writes the archive of a folder to a temporary file.
func (j *Job) pack(ctx context.Context) (*os.File, []Left, error) {
	dir, err := UserFolder(j.Source)
	if err != nil {
		return nil, nil, err
	}
	fmt.Fprintf(j.Err, "packing %s…\n", dir)
	file, err := os.CreateTemp("", "nodest-sillytavern-*.zip")
	if err != nil {
		return nil, nil, err
	}
	packed, err := Folder(ctx, dir, file)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close(), os.Remove(file.Name()))
	}
	return file, packed.Left, nil
}

// wait follows an import until it has ended.
func (j *Job) wait(ctx context.Context, imp *Import) error {
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	told := time.Now()
	for !imp.Ended() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if err := j.Client.Call(ctx, "GET", Path+"/"+url.PathEscape(imp.ID), nil, imp); err != nil {
			return err
		}
		if time.Since(told) > 2*time.Second {
			told = time.Now()
			fmt.Fprintf(j.Err, "%d of %d files\n", imp.Done, imp.Found)
		}
	}
	return nil
}

// stop ends an import whose reader goes away, because of err.
func (j *Job) stop(ctx context.Context, imp *Import, err error) error {
	if ctx.Err() == nil {
		return err
	}
	asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWait)
	defer cancel()
	if failed := j.Client.Call(asked, "POST", Path+"/"+url.PathEscape(imp.ID)+"/stop", nil, imp); failed != nil {
		return fmt.Errorf("the import %s could not be stopped (%w); it goes on while the server runs", imp.ID, failed)
	}
	fmt.Fprintf(j.Err, "stopped after %d of %d files; what was taken stays, and a second run goes on from there\n", imp.Done, imp.Found)
	return err
}
