package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// terminal collects what a program prints.
type terminal struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *terminal) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *terminal) shows(t *testing.T, text string, times int) {
	t.Helper()
	eventually(t, "the terminal shows "+text, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if strings.Count(s.b.String(), text) < times {
			return errNotYet
		}
		return nil
	})
}

// startChat runs nodest chat as a process; write enters a line.
func startChat(t *testing.T, i *installation, out *terminal) (cmd *exec.Cmd, write func(line string)) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0], "chat")
	cmd.Env = i.env
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.shows(t, "\n> ", 1)
	return cmd, func(line string) {
		t.Helper()
		_, err := in.Write([]byte(line + "\n"))
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestChatSaysThatTheServerStopped stops the server in the middle of a reply.
func TestChatSaysThatTheServerStopped(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, "", "NODEST_OFFLINE_DELAY=1s", "NODEST_GRACE=0s")
	p := i.start(t)
	here := i.withAddrOf(p)
	here.mustRun(t, "import", "--sample")
	var out terminal
	cmd, write := startChat(t, here, &out)
	write("Hello there.")
	out.shows(t, "\nWren Halloway: ", 1)
	p.stop(t)
	out.shows(t, "(interrupted: the server stopped; /continue goes on)", 1)
	write("Hello again.")
	out.shows(t, "! no NodeST server at "+strings.TrimPrefix(p.client.Base, "http://"), 1)
	write("/quit")
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v", out.b.String(), err)
	}
}

func TestCtrlCStopsTheReplyAndNotTheProgram(t *testing.T) {
	t.Parallel()
	i := newDatabase(t, "NODEST_OFFLINE_DELAY=1s") // a reply takes longer than the test
	_, errOut, err := i.command(t, nil, "import", "--sample")
	if err != nil {
		t.Fatalf("%s: %v", errOut, err)
	}

	var out terminal
	cmd, write := startChat(t, i, &out)
	write("Hello there.")
	out.shows(t, "\nWren Halloway: ", 1) // the reply: the greeting has a number
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	out.shows(t, "(stopped)", 1)
	write("/history 1")
	out.shows(t, "Wren Halloway: ", 2)
	write("/quit")
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%s: %v", out.b.String(), err)
	}
}

func nothingMissing(string, int) (string, error) { return "", nil }

// A reply that ends before the server has streamed all of it is printed whole.
func TestTheRestOfAFastReplyIsPrinted(t *testing.T) {
	t.Parallel()
	for name, deltas := range map[string][]string{
		"nothing was streamed": nil,
		"a part was streamed":  {`{"ev":"gen.delta","off":7,"data":{"part":"text","text":"Good "}}`},
		"all was streamed":     {`{"ev":"gen.delta","off":7,"data":{"part":"text","text":"Good evening."}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			p := &printer{out: &out, name: "Mara", whole: func(generation string, from int) (string, error) {
				if generation != "g1" {
					t.Fatalf("generation is %q, want %q", generation, "g1")
				}
				if len(deltas) > 0 {
					if from != 7 {
						t.Fatalf("from is %d, want %d", from, 7)
					}
				}
				return "Good evening.", nil
			}}
			for _, frame := range append(deltas, `{"ev":"gen.done","generationId":"g1","data":{"status":"done"}}`) {
				var ev event
				if err := json.Unmarshal([]byte(frame), &ev); err != nil {
					t.Fatal(err)
				}
				if err := p.event(ev, nil); err != nil {
					t.Fatal(err)
				}
			}
			if got := out.String(); got != "\nMara: Good evening.\n" {
				t.Fatalf("out.String() is %q, want %q", got, "\nMara: Good evening.\n")
			}
		})
	}
}

func TestSourcesFollowTheReply(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &printer{out: &out, name: "Mara", whole: nothingMissing}
	for _, frame := range []string{
		`{"ev":"gen.context","data":{"warnings":["memory_unavailable","search_unavailable"]}}`,
		`{"ev":"gen.delta","data":{"part":"text","text":"In 1987 [1]."}}`,
		`{"ev":"gen.references","data":{"references":[{"marker":1,"title":"Keepers","url":"https://keepers.test/"}]}}`,
		`{"ev":"gen.done","data":{"status":"done"}}`,
	} {
		var ev event
		if err := json.Unmarshal([]byte(frame), &ev); err != nil {
			t.Fatal(err)
		}
		if err := p.event(ev, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); got != "(The web could not be searched; the reply does without.)\n\nMara: In 1987 [1].\n  [1] Keepers – https://keepers.test/\n" {
		t.Fatalf("out.String() is %q, want %q", got, "(The web could not be searched; the reply does without.)\n\nMara: In 1987 [1].\n  [1] Keepers – https://keepers.test/\n")
	}
}

// The server checks the marks of a reply when it is complete: wrong ones go, the others are numbered
// anew.
func TestTheNumbersOfAReplyAreThoseOfItsSources(t *testing.T) {
	t.Parallel()
	const streamed = "I have read it.\n\nMaren kept the light [^2]. It is blue [^3].\n\nShe left in 1987 [^5]."
	for name, c := range map[string]struct{ stored, want string }{
		"renumbered": {"I have read it.\n\nMaren kept the light[^1]. It is blue.\n\nShe left in 1987[^2].",
			"\n\n(With its citations checked:)\nMaren kept the light[^1]. It is blue.\nShe left in 1987[^2].\n"},
		"the same numbers":  {"I have read it.\n\nMaren kept the light[^2]. It is blue[^3].\n\nShe left in 1987[^5].", "\n"},
		"not changed":       {streamed, "\n"},
		"the rest came not": {streamed + " The end.", " The end.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			p := &printer{out: &out, name: "Mara", whole: func(string, int) (string, error) { return c.stored, nil }}
			delta, err := json.Marshal(map[string]string{"text": streamed})
			if err != nil {
				t.Fatal(err)
			}
			for _, ev := range []event{{Ev: "gen.delta", Data: delta}, {Ev: "gen.references", Data: []byte(`{"references":[
				{"kind":"knowledge","marker":1,"page":3,"title":"keepers.pdf","url":"nodest:file/f1","exactQuote":"Maren kept\nthe light."}]}`)}, {Ev: "gen.done", Data: []byte(`{}`)}} {
				if err := p.event(ev, nil); err != nil {
					t.Fatal(err)
				}
			}
			if got, expected := out.String(), "\nMara: "+streamed+c.want+"  [1] keepers.pdf, page 3: “Maren kept the light.”\n"; got != expected {
				t.Fatalf("out.String() is %q, want %q", got, expected)
			}
		})
	}
}

func TestReasoningSentAsTextIsMarked(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &printer{out: &out, name: "Mara", whole: nothingMissing}
	for _, frame := range []string{
		`{"ev":"gen.delta","data":{"part":"text","text":"Hm, tea?"}}`,
		`{"ev":"gen.rewind","off":0,"data":{}}`,
		`{"ev":"gen.delta","data":{"part":"text","text":"Tea!"}}`,
		`{"ev":"gen.done","data":{"status":"done"}}`,
	} {
		var ev event
		if err := json.Unmarshal([]byte(frame), &ev); err != nil {
			t.Fatal(err)
		}
		if err := p.event(ev, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.String(); got != "\nMara: Hm, tea?\n(The text above is what the model thought, not its reply.)\n\nMara: Tea!\n" {
		t.Fatalf("out.String() is %q, want %q", got, "\nMara: Hm, tea?\n(The text above is what the model thought, not its reply.)\n\nMara: Tea!\n")
	}
}
