// Package cli is what the commands that use a server share: its client, the names of things, and
// texts, tables and slips of the pen as a terminal shows them. It must not know a command, or reach
// the data in another way than by REST.
package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/google/uuid"

	"nodest/internal/fault"
)

// Client talks to a server as any app does. The commands have no other way to
// the data, so what they show is what an app sees.
type Client struct {
	Base  string // http://host:port
	Token string
	HTTP  *http.Client

	WholeNames bool // Find takes no beginning of a name: for what deletes, and for words out of files
}

// New returns a client of the server at an address such as host:port; token "" = nobody.
func New(addr, token string) *Client {
	return &Client{Base: "http://" + addr, Token: token, HTTP: &http.Client{}}
}

// Whole is c with WholeNames.
func (c *Client) Whole() *Client {
	whole := *c
	whole.WholeNames = true
	return &whole
}

// Call sends body as JSON and decodes the answer into out; both may be nil.
func (c *Client) Call(ctx context.Context, method, path string, body, out any) error {
	res, err := c.Send(ctx, method, path, body, "application/json")
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if out == nil || res.StatusCode == http.StatusNoContent {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(out)
}

// Send returns the answer to a request that succeeded; the caller closes its body.
func (c *Client) Send(ctx context.Context, method, path string, body any, accept string) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, content)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	return c.Do(req)
}

// Do sends a request as the user.
//
// Errors: NobodyError; the problem that the server answers with.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	req.Header.Set("Authorization", "Bearer "+c.Token)
	if req.Method != http.MethodGet {
		req.Header.Set("Idempotency-Key", uuid.NewString())
	}
	res, err := c.HTTP.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) && req.Context().Err() != nil {
			return nil, req.Context().Err()
		}
		return nil, &NobodyError{req.URL.Host, fault.DialCause(err)}
	}
	if res.StatusCode >= 400 {
		defer func() { _ = res.Body.Close() }()
		return nil, ProblemOf(res)
	}
	return res, nil
}

// ProblemOf is a problem answer of NodeST as an error. Those of other programs do not
// have our type.
func ProblemOf(res *http.Response) error {
	var problem struct {
		Type    string         `json:"type"`
		Code    fault.Code     `json:"code"`
		Detail  string         `json:"detail"`
		Details map[string]any `json:"details"`
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&problem); err != nil || !strings.HasPrefix(problem.Type, "urn:nodest:") {
		return fmt.Errorf("the server responded with %s", res.Status)
	}
	f := fault.New(problem.Code, "%s", problem.Detail)
	f.Details = problem.Details
	return f
}

// Upload posts a file as multipart, behind the other fields of the form; empty ones are left out.
func (c *Client) Upload(ctx context.Context, path, filename string, data []byte, fields map[string]string, out any) error {
	return c.sendFile(ctx, http.MethodPost, path, filename, bytes.NewReader(data), int64(len(data)), fields, out)
}

// UploadContent is upload of so many bytes of content, which may be large.
func (c *Client) UploadContent(ctx context.Context, path, filename string, content io.ReaderAt, size int64, fields map[string]string, out any) error {
	return c.sendFile(ctx, http.MethodPost, path, filename, content, size, fields, out)
}

// UploadFile is upload of a file from the disk, which may be large.
func (c *Client) UploadFile(ctx context.Context, method, path, file string, fields map[string]string, out any) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("a folder; nodest kb sync %s --base NAME adds its files", file)
	case !info.Mode().IsRegular():
		return errors.New("not a file")
	}
	return c.sendFile(ctx, method, path, file, f, info.Size(), fields, out)
}

// sendFile sends size bytes of content as a file.
func (c *Client) sendFile(ctx context.Context, method, path, name string, content io.ReaderAt, size int64, fields map[string]string, out any) error {
	var frame bytes.Buffer
	form := multipart.NewWriter(&frame)
	var err error
	for name, value := range fields {
		if value != "" {
			err = errors.Join(err, form.WriteField(name, value))
		}
	}
	_, failed := formFile(form, name)
	head := frame.Len()
	if err = errors.Join(err, failed, form.Close()); err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, nil)
	if err != nil {
		return err
	}
	req.GetBody = func() (io.ReadCloser, error) { // once more, if a connection was lost before it was sent
		begin, end := bytes.NewReader(frame.Bytes()[:head]), bytes.NewReader(frame.Bytes()[head:])
		return io.NopCloser(io.MultiReader(begin, io.NewSectionReader(content, 0, size), end)), nil
	}
	req.Body, _ = req.GetBody() // never fails
	req.ContentLength = int64(frame.Len()) + size
	req.Header.Set("Content-Type", form.FormDataContentType())
	req.Header.Set("Expect", "100-continue") // a file that is refused is not sent
	res, err := c.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	return json.NewDecoder(res.Body).Decode(out)
}

// formFile begins the file of a form. The header with its name cannot contain control
// characters; the server removes them from names, too.
func formFile(form *multipart.Writer, filename string) (io.Writer, error) {
	name := strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return -1
		}
		return c
	}, filepath.Base(filename))
	return form.CreateFormFile("file", name)
}

// PageOf is a list as the server answers it.
type PageOf[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"nextCursor"`
}

// All reads every page of a list.
func All[T any](ctx context.Context, c *Client, path string) ([]T, error) {
	var items []T
	sep := "?"
	if strings.Contains(path, "?") {
		sep = "&"
	}
	for cursor := ""; ; {
		var page PageOf[T]
		if err := c.Call(ctx, http.MethodGet, path+sep+"limit=200&cursor="+url.QueryEscape(cursor), nil, &page); err != nil {
			return nil, err
		}
		items = append(items, page.Items...)
		if page.NextCursor == nil || *page.NextCursor == "" {
			return items, nil
		}
		cursor = *page.NextCursor
	}
}

// NobodyError says that no server listens at an address.
type NobodyError struct {
	Addr  string
	cause error
}

func (e *NobodyError) Error() string {
	return fmt.Sprintf("no NodeST server at %s (%v)", e.Addr, e.cause)
}

// greetWait is how long a server may take to say that it is there.
const greetWait = 3 * time.Second

// Greet reports whether a NodeST server answers and accepts the token.
//
// Errors: nobodyError; Unauthenticated or TokenExpired; others with the reason in
// words, also where another program answers.
func (c *Client) Greet(ctx context.Context) error {
	var connected bool
	addr := strings.TrimPrefix(c.Base, "http://")
	asked, cancel := context.WithTimeout(ctx, greetWait)
	defer cancel()
	var me struct{ ID, Username string }
	err := c.Call(httptrace.WithClientTrace(asked, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected = true },
	}), http.MethodGet, "/api/v1/me", nil, &me)
	var problem *fault.Error
	var nobody *NobodyError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && me.ID != "" && me.Username != "":
		return nil
	case errors.As(err, &problem):
		return err
	case !connected && errors.As(err, &nobody):
		return nobody
	case !connected:
		return &NobodyError{addr, fault.DialCause(err)}
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the program at %s did not respond within %s; it is busy, or not NodeST", addr, greetWait)
	}
	return fmt.Errorf("the program at %s is not NodeST; set the address of your server with --addr or NODEST_ADDR", addr)
}
